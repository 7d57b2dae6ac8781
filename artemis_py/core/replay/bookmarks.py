"""The header ``bookmark`` of a SUBSCRIBE: where a replay begins, and where it ends (AMPS, "Bookmark Subscriptions").

A bookmark is the lsn of a message. There are also ``EPOCH`` or ``0`` (the beginning of the log), ``NOW`` or ``0|1|``
(what is published from now on), and times (``20260131T235959``, UTC, with or without a ``Z``). Of a list with commas,
the earliest counts. ``[a:b]`` is a range; a round bracket leaves out what is at its bound, and an empty ``b`` is no
end.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.errors import BrokerError
from artemis_py.units import parse_moment

EPOCH: Final = "EPOCH"
NOW: Final = "NOW"
_OTHER_NAMES: Final = {"0": EPOCH, "0|1|": NOW}
_MOST_RECENT: Final = "MOST_RECENT"
_DIGITS_MAX: Final = 19
_MARKS_MAX: Final = 1000
_SHOWN_MAX: Final = 40
_HOW: Final = (
    "use EPOCH, NOW, the bookmark of a message, several of them separated by commas, a time as 20260131T235959Z, or a "
    "range of two such as [a:b]"
)


@final
class BookmarkList:
    """One bound of a replay: the lsns and the dates (epoch milliseconds) that were named. ``from_epoch``, ``from_now``:
    the beginning of the log, or its end, is among them.
    """

    __slots__ = ("dates_ms", "from_epoch", "from_now", "lsns")

    def __init__(self, text: str) -> None:
        self.lsns: list[int] = []
        self.dates_ms: list[int] = []
        self.from_epoch = False
        self.from_now = False
        for mark in text.split(",", _MARKS_MAX):
            self._add(mark.strip())

    def _add(self, mark: str) -> None:
        name = _OTHER_NAMES.get(mark, mark)
        if name == EPOCH:
            self.from_epoch = True
        elif name == NOW:
            self.from_now = True
        elif name == _MOST_RECENT:
            raise BrokerError(
                "bookmark:MOST_RECENT is not known here: the broker keeps no place for a client. Send the last "
                "bookmark that you have processed, or EPOCH"
            )
        elif mark.isascii() and mark.isdigit() and len(mark) <= _DIGITS_MAX:
            self.lsns.append(int(mark))
        else:
            self.dates_ms.append(_date_ms(mark))


@final
class Bounds:
    """Which messages of the log a replay shows: those after ``after_lsn`` or from the date ``from_ms`` on, whichever
    comes first, up to ``until_lsn`` or ``until_ms``, whichever comes first. -1: not named. Dates are those of a
    message's batch, in epoch milliseconds.
    """

    __slots__ = ("after_lsn", "from_ms", "until_lsn", "until_ms")

    def __init__(self, after_lsn: int, from_ms: int, until_lsn: int = -1, until_ms: int = -1) -> None:
        self.after_lsn = after_lsn
        self.from_ms = from_ms
        self.until_lsn = until_lsn
        self.until_ms = until_ms

    @property
    def is_range(self) -> bool:
        """Is there an end?"""
        return self.until_lsn >= 0 or self.until_ms >= 0

    def has_begun(self, lsn: int, time_ms: int) -> bool:
        """Is a message not before the beginning?"""
        return (0 <= self.after_lsn < lsn) or (0 <= self.from_ms <= time_ms)

    def has_ended(self, lsn: int, time_ms: int) -> bool:
        """Is a message behind the end?"""
        return (0 <= self.until_lsn < lsn) or (0 <= self.until_ms < time_ms)

    def end_by(self, lsn: int) -> None:
        """Show nothing after this lsn, either."""
        self.until_lsn = lsn if self.until_lsn < 0 else min(self.until_lsn, lsn)
        self.until_ms = -1


def bounds_of(text: str, last_lsn: int) -> Bounds:
    """Read the header. ``last_lsn`` is the last lsn of the log, behind which NOW is. Raises BrokerError."""
    text = text.strip()
    opening, closing = text[:1], text[-1:]
    if opening not in ("[", "("):
        return Bounds(*_begin(BookmarkList(text), last_lsn, includes=False))
    begin_text, colon, end_text = text[1:-1].partition(":")
    if closing not in ("]", ")") or not colon:
        raise BrokerError(f"bookmark is not a range: {text[:_SHOWN_MAX]!r}; a range is [a:b], and b may be empty")
    is_open = opening == "("
    after_lsn, from_ms = _begin(BookmarkList(begin_text), last_lsn, includes=not is_open)
    if is_open and from_ms >= 0:
        from_ms += 1
    if not end_text.strip():
        return Bounds(after_lsn, from_ms)
    until_lsn, until_ms = _end(BookmarkList(end_text), last_lsn, includes=closing == "]")
    return Bounds(after_lsn, from_ms, until_lsn, until_ms)


def _begin(marks: BookmarkList, last_lsn: int, *, includes: bool) -> tuple[int, int]:
    """The lsn after which a replay begins, and the date from which on; -1: none. A bookmark beyond the end of the log
    is as NOW.
    """
    if marks.from_epoch:
        return 0, -1
    after = [min(max(lsn - 1, 0) if includes else lsn, last_lsn) for lsn in marks.lsns]
    if marks.from_now:
        after.append(last_lsn)
    return min(after, default=-1), min(marks.dates_ms, default=-1)


def _end(marks: BookmarkList, last_lsn: int, *, includes: bool) -> tuple[int, int]:
    """The last lsn, and the last date, of a range; -1: none."""
    if marks.from_epoch:
        return 0, -1
    until = [lsn if includes else max(lsn - 1, 0) for lsn in marks.lsns]
    if marks.from_now:
        until.append(last_lsn)
    until_ms = min(marks.dates_ms, default=-1)
    return min(until, default=-1), until_ms if includes or until_ms < 0 else max(until_ms - 1, 0)


def _date_ms(text: str) -> int:
    """Epoch milliseconds. Raises BrokerError."""
    try:
        return parse_moment(text)
    except ValueError:
        raise BrokerError(f"bookmark is not one: {text[:_SHOWN_MAX]!r}; {_HOW}") from None
