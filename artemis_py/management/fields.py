"""The fields of a list: the name and the meaning of each, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

Owner = TypeVar("Owner")
Value = str | int | bool | Mapping[str, str] | None
Row = dict[str, Value]

TEXT: Final = "text"
NUMBER: Final = "number"
FLAG: Final = "flag"
MAP: Final = "map"
"""Texts by name. No list is sorted by one."""

EPOCH_MS: Final = "epoch ms"
"""The unit of dates; 0: never."""


class Field(NamedTuple, Generic[Owner]):
    """``name`` is Artemis' name where it has one. ``unit`` is empty for what is counted by itself. ``is_brief``: is it
    one of the few that a person sees first?
    """

    name: str
    type: str
    sentence: str
    read: Callable[[Owner], Value]
    unit: str = ""
    is_brief: bool = False


class Kind(Generic[Owner]):
    """A list: ``one`` is what a row is about, ``several`` the same for more of them. The first field is its name.
    ``as_artemis`` makes of a row what a bean of Artemis tells, where that is something else.
    """

    def __init__(
        self,
        one: str,
        several: str,
        fields: Sequence[Field[Owner]],
        as_artemis: Callable[[Row], Mapping[str, Any]] = lambda row: row,
    ) -> None:
        self.one = one
        self.several = several
        self.as_artemis = as_artemis
        self.fields: dict[str, Field[Owner]] = {field.name: field for field in fields}

    def row(self, owner: Owner, names: Sequence[str] = ()) -> Row:
        """The fields with these names, or all of them."""
        fields = self.fields
        return {name: fields[name].read(owner) for name in names or fields}

    @property
    def brief(self) -> list[str]:
        """The names of the fields that a person sees first."""
        return [field.name for field in self.fields.values() if field.is_brief]


AnyKind = Kind[Any]
