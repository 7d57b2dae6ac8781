"""``recovery-point`` of a queue: from where in the log a new queue begins (AMPS, "RecoveryPoint")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.units import parse_moment

EPOCH: Final = "epoch"
NOW: Final = "now"
CREATION: Final = "creation"
HOW: Final = "epoch, now, creation, the bookmark of a message, or a time in UTC as 20260131T235959Z"
_DIGITS_MAX: Final = 19


@final
@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """A place in the log. ``word`` is one of the three, or empty; then the queue begins behind the message ``lsn``, or
    with what was published at ``from_ms`` (epoch milliseconds) or later. -1: not meant.
    """

    word: str = ""
    lsn: int = -1
    from_ms: int = -1

    @property
    def is_past(self) -> bool:
        """May messages of the past be meant?"""
        return self.word not in (NOW, CREATION)


def recovery_point_of(text: str) -> RecoveryPoint:
    """Read the attribute. Raises ValueError."""
    mark = text.strip()
    if mark.lower() in (EPOCH, NOW, CREATION):
        return RecoveryPoint(mark.lower())
    if mark.isascii() and mark.isdigit() and len(mark) <= _DIGITS_MAX:
        return RecoveryPoint(lsn=int(mark))
    return RecoveryPoint(from_ms=parse_moment(mark))


def default_point(*, is_view: bool, has_past: bool) -> str:
    """Where a new queue begins that says nothing: with the whole log if it is a view and the log is retained, as in
    AMPS; otherwise with what comes, as in Artemis.
    """
    return EPOCH if is_view and has_past else NOW
