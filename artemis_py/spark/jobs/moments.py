"""Parses points in time on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN: Final = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>ms|s|min|m|h|d)", re.ASCII)
_EPOCH_MS: Final = re.compile(r"\d{12,14}", re.ASCII)
FORMS: Final = "2026-01-31T10:00, 2026-01-31, 10:00 (today), 2h (before now) or epoch milliseconds; UTC unless it says"


def moment_ms(text: str, now_ms: int) -> int:
    """The epoch milliseconds of a text in one of these forms. Raises ValueError for others."""
    text = text.strip()
    ago = _SPAN.fullmatch(text)
    if ago is not None:
        return now_ms - _span_ms(ago)
    if text == "now":
        return now_ms
    if _EPOCH_MS.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
            moment = datetime.combine(today, time.fromisoformat(text))
        except ValueError:
            raise ValueError(f"{text!r} is not a time; write {FORMS}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _span_ms(found: re.Match[str]) -> int:
    return round(float(found["count"]) * _UNITS_MS[found["unit"]])
