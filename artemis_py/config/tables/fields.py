"""Describes each field of the settings: default, unit, meaning, limits, and how far it is honoured; and how a text
becomes its value.

A dataclass of settings is a table: :func:`boolean`, :func:`number` and similar functions make its fields, and
:func:`settings_of` returns the table of a class. The reader, the reference documentation, ``artemis-py check`` and
``artemis-py explain`` all use it, so nothing is said twice.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from artemis_py.units import LONG_MAX, LONG_MIN, parse_bytes, parse_decimal, parse_long, parse_ms

INT_MAX: Final = 2**31 - 1

HONOURED: Final = "honoured"
IGNORED: Final = "ignored"
REFUSED: Final = "refused"

# Why an element of Artemis has no effect here. Each is the end of a sentence "… is ignored: …".
SINGLE_NODE: Final = "this broker is a single node"
JAVA: Final = "it is about the Java virtual machine or Java classes"
NOT_SPOKEN: Final = "it is about a protocol that this broker does not support"
NO_EFFECT: Final = "it has no effect in Artemis either"
NO_COUNTERS: Final = "queues count always; message counters with a history are not kept"

BOOLEAN: Final = "boolean"
INT: Final = "int"
LONG: Final = "long"
DOUBLE: Final = "double"
BYTES: Final = "bytes"
PERIOD: Final = "period"
TEXT: Final = "text"
CHOICE: Final = "choice"
LIST: Final = "list"


class Check(NamedTuple):
    """A limit on a number: the text says what is allowed, the function checks a value."""

    allowed: str
    accepts: Callable[[float], bool]


POSITIVE: Final = Check("a number greater than 0", lambda value: value > 0)
NOT_NEGATIVE: Final = Check("0 or more", lambda value: value >= 0)
OFF_OR_POSITIVE: Final = Check("-1 or a number greater than 0", lambda value: value == -1 or value > 0)
OFF_OR_NOT_NEGATIVE: Final = Check("-1, 0 or more", lambda value: value >= -1)
PERCENT: Final = Check("0 to 100", lambda value: 0 <= value <= 100)
OFF_OR_PERCENT: Final = Check("-1 or 0 to 100", lambda value: value == -1 or 0 <= value <= 100)
OFF_OR_YEAR: Final = Check("-1 or 1 ms to 365 d", lambda value: value == -1 or 0 < value <= 365 * 86_400_000)
INT_SIZE: Final = Check("1 to 2147483647", lambda value: 1 <= value <= INT_MAX)
OFF_OR_INT_SIZE: Final = Check("-1 or 1 to 2147483647", lambda value: value == -1 or 1 <= value <= INT_MAX)
SHARE: Final = Check("0 to 1", lambda value: 0 <= value <= 1)
RING: Final = Check("-1 (no ring), 0 (keeps nothing) or more", lambda value: value >= -1)
POWER_OF_TWO: Final = Check("a power of two", lambda value: value > 0 and int(value) & (int(value) - 1) == 0)
NOT_EMPTY: Final = Check("a non-blank text", lambda length: length > 0)
LEVELS: Final = Check("1 to 10", lambda value: 1 <= value <= 10)


class Options(TypedDict, total=False):
    """Further properties of a setting, besides kind, default and meaning.

    ``name`` is the element or attribute, if it is not the field's name with dashes. ``unit`` is ms, s, bytes, ….
    ``check`` limits a number, or the length of a text without the blanks around it. ``shown`` replaces the default in
    texts for people. ``ignored``, ``tuning`` and ``refused`` hold the reason (``tuning`` for what only concerns the
    internals of Artemis). ``silent`` keeps an ignored setting out of the notices because another notice says the same.
    ``aliases`` are old names of the element.
    """

    name: str
    unit: str
    check: Check
    shown: str
    ignored: str
    tuning: str
    refused: str
    silent: bool
    aliases: tuple[str, ...]
    choices: tuple[str, ...]


class Setting(NamedTuple):
    """One row of a table of settings."""

    name: str
    attribute: str
    kind: str
    default: Any
    meaning: str
    unit: str = ""
    check: Check | None = None
    shown: str | None = None
    treatment: str = HONOURED
    reason: str = ""
    silent: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    is_tuning: bool = False
    """Ignored, and no user of the broker would notice."""

    @property
    def default_text(self) -> str:
        """The default as one would write it in the file."""
        if self.shown is not None:
            return self.shown
        return show(self.default)


def show(value: object) -> str:
    """Return a value as written in the file; None as ``none``."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def make_setting(kind: str, attribute: str, default: object, meaning: str, **options: Unpack[Options]) -> Setting:
    """Build a row for a table whose settings are not fields of a dataclass."""
    tuning, refused = options.get("tuning", ""), options.get("refused", "")
    ignored = tuning or options.get("ignored", "")
    return Setting(
        name=options.get("name", attribute.replace("_", "-")),
        attribute=attribute,
        kind=kind,
        default=default,
        meaning=meaning,
        unit=options.get("unit", ""),
        check=options.get("check"),
        shown=options.get("shown"),
        treatment=IGNORED if ignored else REFUSED if refused else HONOURED,
        reason=ignored or refused,
        silent=options.get("silent", False),
        aliases=options.get("aliases", ()),
        choices=options.get("choices", ()),
        is_tuning=bool(tuning),
    )


def _field(kind: str, default: object, meaning: str, options: object) -> Any:
    return dataclasses.field(default=default, metadata={"setting": (kind, default, meaning, options)})


def boolean(default: bool | None, meaning: str, **options: Unpack[Options]) -> Any:
    """A field that is true or false."""
    return _field(BOOLEAN, default, meaning, options)


def int32(default: int | None, meaning: str, **options: Unpack[Options]) -> Any:
    """A field that is a whole number of 32 bits."""
    return _field(INT, default, meaning, options)


def int64(default: int | None, meaning: str, **options: Unpack[Options]) -> Any:
    """A field that is a whole number of 64 bits."""
    return _field(LONG, default, meaning, options)


def double(default: float | None, meaning: str, **options: Unpack[Options]) -> Any:
    """A field that is a floating-point number."""
    return _field(DOUBLE, default, meaning, options)


def size(default: int | None, meaning: str, **options: Unpack[Options]) -> Any:
    """A field in bytes, which may be written with a unit (:func:`artemis_py.units.parse_bytes`)."""
    options.setdefault("unit", "bytes")
    return _field(BYTES, default, meaning, options)


def period(default: int | None, meaning: str, **options: Unpack[Options]) -> Any:
    """A field in ms, which may be written with a unit (:func:`artemis_py.units.parse_ms`)."""
    options.setdefault("unit", "ms")
    return _field(PERIOD, default, meaning, options)


def text(default: str | None, meaning: str, **options: Unpack[Options]) -> Any:
    """A field that is a text."""
    return _field(TEXT, default, meaning, options)


def texts(default: tuple[str, ...], meaning: str, **options: Unpack[Options]) -> Any:
    """A field that is a comma-separated list of texts."""
    return _field(LIST, default, meaning, options)


def choice(default: str | None, words: tuple[str, ...], meaning: str, **options: Unpack[Options]) -> Any:
    """A field that is one of a few words."""
    options["choices"] = words
    return _field(CHOICE, default, meaning, options)


def inherited(row: Setting) -> Any:
    """A field that takes the value of another setting when absent. That setting's row says everything else."""
    options = Options(unit=row.unit, shown=row.name, choices=row.choices)
    if row.check is not None:
        options["check"] = row.check
    if row.is_tuning:
        options["tuning"] = row.reason
    elif row.treatment == IGNORED:
        options["ignored"] = row.reason
    elif row.treatment == REFUSED:
        options["refused"] = row.reason
    return _field(row.kind, None, row.meaning, options)


@functools.cache
def settings_of(table: type) -> Mapping[str, Setting]:
    """Return the rows of a dataclass of settings by element name, in the order of its fields.

    Fields that are not settings (a name, an origin) have no row.
    """
    rows: dict[str, Setting] = {}
    for each in dataclasses.fields(table):
        if "setting" in each.metadata:
            kind, default, meaning, options = each.metadata["setting"]
            row = make_setting(kind, each.name, default, meaning, **options)
            rows[row.name] = row
    return rows


@functools.cache
def names_of(table: type) -> Mapping[str, Setting]:
    """Like :func:`settings_of`, including old names."""
    rows = dict(settings_of(table))
    for row in settings_of(table).values():
        rows.update(dict.fromkeys(row.aliases, row))
    return rows


# ---- from text to value, by Artemis' lexical rules -----------------------------------------------

_ALLOWED: Final = {
    INT: "a whole number from -2147483648 to 2147483647, without a unit",
    LONG: "a whole number of 64 bits, without a unit",
    DOUBLE: "a number such as 1.5",
    BYTES: "a number of bytes, alone or with K, M or G (powers of 1024)",
    PERIOD: "a number of milliseconds, or a number with ms, s, m, h or d",
}


class ValueTextError(Exception):
    """A text is not a valid value of its setting; ``allowed`` says what is."""

    def __init__(self, allowed: str) -> None:
        super().__init__(allowed)
        self.allowed = allowed


def parse_value(row: Setting, text: str, *, is_attribute: bool = False) -> Any:
    """Return the value that ``text`` means for the setting ``row``.

    Texts of elements are trimmed; those of attributes and words of a choice are not. As in Artemis, a boolean is true
    if it reads ``true`` in any letter case and false otherwise: ``1`` and an empty element are false. Raises
    ValueTextError.
    """
    if row.kind == BOOLEAN:
        return text.strip().lower() == "true"
    if row.kind == CHOICE:
        if text not in row.choices:
            raise ValueTextError(", ".join(row.choices))
        return text
    if row.kind in (TEXT, LIST):
        value = text if is_attribute else text.strip()
        if row.check is not None and not row.check.accepts(len(value.strip())):
            raise ValueTextError(row.check.allowed)
        return value
    number = _parse_number(row.kind, text.strip())
    if row.check is not None and not row.check.accepts(number):
        raise ValueTextError(row.check.allowed)
    return number


def _parse_number(kind: str, text: str) -> int | float:
    try:
        if kind == BYTES:
            return parse_bytes(text)
        if kind == PERIOD:
            return parse_ms(text)
        if kind == DOUBLE:
            return parse_decimal(text)
        value = parse_long(text)
    except ValueError:
        raise ValueTextError(_ALLOWED[kind]) from None
    low, high = (-INT_MAX - 1, INT_MAX) if kind == INT else (LONG_MIN, LONG_MAX)
    if not low <= value <= high:
        raise ValueTextError(_ALLOWED[kind])
    return value


def doubtful_boolean(text: str) -> bool:
    """Return whether a boolean passes the XSD but may not mean what its author thinks: ``1`` or empty."""
    return text.strip() in ("1", "")
