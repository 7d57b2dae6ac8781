"""Byte sizes and durations as people write them: ``10MiB``, ``700ms``."""

from __future__ import annotations

import re
from typing import Final

LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1

_FACTORS: Final = {"k": 1024, "m": 1024**2, "g": 1024**3}
_BYTES: Final = re.compile(r"\s*([0-9]+)\s*(?:([kmg])i?)?b?\s*", re.IGNORECASE | re.ASCII)
_PLAIN_LONG: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)?", re.ASCII)
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_bytes(text: str) -> int:
    """Read Artemis' byte notation; return bytes.

    Digits, then nothing or one of K, Ki, M, Mi, G, Gi in any case, then an optional ``b``; blanks are allowed before
    the digits, before the unit and at the end. All units are powers of 1024: ``10K``, ``10kb`` and ``10 KiB`` are
    10240. Anything else must be a plain signed 64-bit number (``-1``). Raises ValueError for other text, and, unlike
    Artemis, which lets such a number wrap round, for a size past 64 bits.
    """
    found = _BYTES.fullmatch(text)
    if found is not None:
        value = int(found[1]) * (_FACTORS[found[2].lower()] if found[2] else 1)
    elif _PLAIN_LONG.fullmatch(text):
        value = int(text)
    else:
        raise ValueError(f"no byte size: {text!r}")
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError(f"byte size past 64 bits: {text!r}")
    return value


def parse_duration_ms(text: str) -> int:
    """Read a duration: a bare number of milliseconds, or a number with ``ms``, ``s``, ``m``, ``h`` or ``d``.

    ``1s`` is 1000, ``0.5s`` is 500, ``700ms`` and ``700`` are 700; ``-1`` (meaning "none" where it is allowed) is
    returned as it is. A fraction of a millisecond is refused. Raises ValueError for anything else.
    """
    stripped = text.strip()
    if stripped == "-1":
        return -1
    found = _DURATION.fullmatch(stripped)
    if found is None:
        raise ValueError(f"no duration: {text!r}")
    number, unit = found[1], found[2] or "ms"
    whole, _, fraction = number.partition(".")
    scale = _MILLISECONDS[unit]
    denominator: int = 10 ** len(fraction)
    value, rest = divmod(int(whole + fraction) * scale, denominator)
    if rest or value > LONG_MAX:
        raise ValueError(f"no whole number of milliseconds: {text!r}")
    return value


def format_bytes(size: int) -> str:
    """Write a size with the largest unit that divides it: 10485760 becomes ``10MiB``, 1000 stays ``1000``."""
    for factor, unit in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)
