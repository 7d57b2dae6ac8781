"""Numbers, byte sizes, periods and times as people write them: ``10``, ``10MiB``, ``1s``, ``20260131T235959Z``."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1
DATE_MAX_MS: Final = 253_402_214_400_000
"""The last date that there is, in epoch ms: 9999-12-31T00:00:00Z. A later one, from a client or from delays that add
up, counts as this one, which every record, and every calendar in every time zone, can hold.
"""
DELAY_MAX_MS: Final = 100 * 365 * 86_400_000
"""The longest delay that is added to a date, in ms: a hundred years."""

_FACTORS: Final = {"k": 1024, "m": 1024**2, "g": 1024**3}
_BYTES: Final = re.compile(r"\s*([0-9]+)\s*(?:([kmg])i?)?b?\s*", re.IGNORECASE | re.ASCII)
_MS_EACH: Final = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PERIOD: Final = re.compile(r"\s*([0-9]+)\s*(ms|[smhd])?\s*", re.ASCII)
_MOMENT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z?", re.ASCII)
_PLAIN_LONG: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def parse_long(text: str) -> int:
    """Read a plain signed 64-bit number. Unlike Python's ``int`` it takes ASCII digits only, behind a sign or none: no
    blanks, no ``1_0``, no digits of other scripts. Raises ValueError.
    """
    if not _PLAIN_LONG.fullmatch(text):
        raise ValueError(f"not a whole number: {text!r}")
    value = int(text)
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError(f"number exceeds 64 bits: {text!r}")
    return value


def parse_decimal(text: str) -> float:
    """Read a finite number with or without a fraction or exponent, as strictly as ``parse_long``. Raises ValueError."""
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    if not math.isfinite(value):
        raise ValueError(f"not a number: {text!r}")
    return value


def date_after(now_ms: int, delay_ms: int) -> int:
    """The date after a delay, both in ms. No delay makes it earlier than now, or later than ``DATE_MAX_MS``."""
    return min(now_ms + min(max(delay_ms, 0), DELAY_MAX_MS), DATE_MAX_MS)


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
        raise ValueError(f"not a byte size: {text!r}")
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError(f"byte size exceeds 64 bits: {text!r}")
    return value


def parse_moment(text: str) -> int:
    """Read a time in UTC such as ``20260131T235959``, with or without a ``Z``; return epoch milliseconds, 0 for times
    before the epoch. Raises ValueError.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"not a time: {text!r}")
    year, month, day, hour, minute, second = [int(part) for part in found.groups()]
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    return max(int(moment.timestamp()) * 1000, 0)


def parse_ms(text: str) -> int:
    """Read a period as AMPS has them; return milliseconds.

    Digits, then nothing (milliseconds) or one of ms, s, m, h, d; blanks are allowed around both: ``700ms``, ``1s``,
    ``5m``. Anything else must be a plain signed number (``-1``). Raises ValueError for other text, and beyond 64 bits.
    """
    found = _PERIOD.fullmatch(text)
    if found is not None:
        value = int(found[1]) * _MS_EACH[found[2] or ""]
    elif _PLAIN_LONG.fullmatch(text):
        value = int(text)
    else:
        raise ValueError(f"not a period: {text!r}")
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError(f"period exceeds 64 bits: {text!r}")
    return value
