"""Formats values for people, by the unit of their column."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from artemis_py.spark.jobs.result import BYTES, COUNT, MS, RATE, SECONDS, SHARE, TEXT, TIME

NUMBERS: Final = frozenset({COUNT, BYTES, MS, SECONDS, RATE, SHARE})
"""Right-aligned kinds."""
_SIZES: Final = ("KiB", "MiB", "GiB", "TiB")


def shown(kind: str, value: Any) -> str:
    """One value; nothing for None."""
    if value is None:
        return ""
    if kind == TIME or isinstance(value, datetime):
        return time_shown(value)
    if kind == TEXT or isinstance(value, str):
        return str(value)
    return _NUMBERS_SHOWN[kind](value)


def rate_shown(kind: str, value: float) -> str:
    """One value of a plot, with "per second" where no heading says so."""
    text = shown(kind, int(value) if value == int(value) else value)
    return f"{text}/s" if kind == RATE else text


def printable(text: str, kept: str = "") -> str:
    """A text without control characters: text from messages may contain anything."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character in kept else "·" for character in text)


def escaped(text: str) -> str:
    """A text as part of a page."""
    return escape(printable(text, kept="\n\t"))


def time_shown(value: datetime) -> str:
    """UTC, to the second, or to the millisecond if that is not zero."""
    text = f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{text}.{value.microsecond // 1000:03}" if value.microsecond else text


def time_span(first_s: float, last_s: float) -> str:
    """A time range in UTC, from epoch seconds; a common day is shown once."""
    first, last = (datetime.fromtimestamp(moment, UTC) for moment in (first_s, last_s))
    end = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"From {first:%Y-%m-%d %H:%M:%S} to {end}"


def time_words(seconds: int) -> str:
    """A round duration for people: 90 s, 10 min, 2 h, 1 d."""
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


def _size(value: float) -> str:
    if abs(value) < 1024:
        return f"{value:.0f} B"
    for unit in _SIZES:
        value /= 1024
        if abs(value) < 1024 or unit == _SIZES[-1]:
            break
    return f"{value:.1f} {unit}"


def _duration(value: float) -> str:
    return f"{value:,.0f} ms" if value < 10_000 else _seconds(value / 1000)


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.1f} s"
    if value < 7200:
        return f"{value / 60:.1f} min"
    return f"{value / 3600:.1f} h"


def _rate(value: float) -> str:
    if 0 < value < 0.1:
        return f"{value:.1g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")


def _share(value: float) -> str:
    return f"{value:.3f}"


_NUMBERS_SHOWN: Final = {COUNT: _count, BYTES: _size, MS: _duration, SECONDS: _seconds, RATE: _rate, SHARE: _share}
