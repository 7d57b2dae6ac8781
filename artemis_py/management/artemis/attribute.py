"""What an attribute of a bean is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from artemis_py.management.artemis.signature import java_type
from artemis_py.management.fields import AnyKind


@dataclass(frozen=True, slots=True)
class Attribute:
    """``type`` as Java names it. ``read`` gets the owner of the bean and returns a value of JSON. ``adds_up``: does it
    need numbers of all queues?
    """

    name: str
    type: str
    sentence: str
    read: Callable[[Any], Any]
    adds_up: bool = False

    @property
    def reader(self) -> str:
        """What reading it is called where somebody is permitted to do it, as in Java."""
        return f"is{self.name}" if self.type == "boolean" else f"get{self.name}"


def attribute(name: str, type: str, sentence: str, read: Callable[[Any], Any], *, adds_up: bool = False) -> Attribute:
    """An attribute; ``type`` as in a signature."""
    return Attribute(name, java_type(type), sentence, read, adds_up)


def field_of(kind: AnyKind, name: str, type: str, field: str, read: Callable[[Any], Any] | None = None) -> Attribute:
    """An attribute that is a field of our list."""
    known = kind.fields[field]
    return Attribute(name, java_type(type), known.sentence, read or known.read)


def by_name(attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    """The attributes of a bean."""
    return {one.name: one for one in attributes}
