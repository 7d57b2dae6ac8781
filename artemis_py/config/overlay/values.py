"""A single property: its name becomes a setting, its text a value."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from artemis_py.config.draft import Draft, Values
from artemis_py.config.overlay.properties_file import Property
from artemis_py.config.read.element import note_treatment
from artemis_py.config.tables.fields import BOOLEAN, BYTES, LONG, Setting, names_of
from artemis_py.config.values import ValueTextError, parse_value
from artemis_py.units import parse_bytes

_TRUE_WORDS: Final = ("true", "yes", "y", "on", "1")


class UnknownKeyError(Exception):
    """A segment of a key is unknown; ``known`` are the valid names."""

    def __init__(self, segment: str, known: Sequence[str]) -> None:
        super().__init__(segment)
        self.segment = segment
        self.known = known


def camel(name: str) -> str:
    """Turn the name of an element into that of a property: ``max-size-bytes`` into ``maxSizeBytes``."""
    first, *others = name.split("-")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


@functools.cache
def property_names(table: type) -> Mapping[str, Setting]:
    """Return the rows of a table by the names of their properties."""
    return {camel(name): row for name, row in names_of(table).items()}


def set_value(draft: Draft, row: Setting, into: Values, given: Property, *, remove: bool) -> None:
    """Give a setting the value of a property; a wrong value is a warning. Sizes and 64-bit numbers take units."""
    if remove:
        into.remove(row.attribute)
        return
    try:
        value: Any = value_of(row, given.value)
    except ValueTextError as problem:
        left_out(draft, given, problem.allowed)
        return
    into.put(row.attribute, value, given.origin)
    note_treatment(draft, row, value, given.origin)


def left_out(draft: Draft, given: Property, allowed: str | None) -> None:
    """Warn of a property with a wrong value; ``allowed`` are the valid ones."""
    draft.problems.warning(
        "left-out", given.origin, f"{given.key} is ignored: wrong value", value=given.value, allowed=allowed
    )


def value_of(row: Setting, text: str) -> Any:
    """Return the value of a property's text. As in Artemis, and unlike in XML, numbers may have units, and ``yes``,
    ``y``, ``on`` and ``1`` are true. Raises ValueTextError.
    """
    if row.kind == BOOLEAN:
        return text.strip().lower() in _TRUE_WORDS
    if row.kind in (BYTES, LONG):
        with suppress(ValueError):
            text = str(parse_bytes(text.strip()))
    return parse_value(row, text)
