"""Cursors in the log, which say how far each reader is: sets, drops and lists them. For the event loop's thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from artemis_py.errors import ArtemisError
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.retention.cursors import CURSORS_MAX, Cursor, Cursors, Lag, wanted_cursor
from artemis_py.storage.retention.retention import RetainedFile, Retention


class CursorRefusedError(ArtemisError):
    """A valid cursor cannot be set here and now."""


@dataclass(frozen=True, slots=True)
class CursorView:
    """A cursor and its current state. ``is_overtaken``: records that it had not read are gone."""

    cursor: Cursor
    holds: bool
    lag_bytes: int
    is_overtaken: bool
    idle_ms: int

    def fields(self) -> dict[str, Any]:
        """The fields for JSON."""
        return {
            **self.cursor.fields(),
            "holds": self.holds,
            "lag_bytes": self.lag_bytes,
            "is_overtaken": self.is_overtaken,
        }


class LogCursors:
    """The cursors of a running broker. ``retention`` and ``cursors`` are None if nothing is retained: then no cursor
    can be set.
    """

    def __init__(
        self,
        journal: Journal,
        retention: Retention | None,
        cursors: Cursors | None,
        clock_ms: Callable[[], int],
    ) -> None:
        self._journal = journal
        self._retention = retention
        self._cursors = cursors
        self._clock_ms = clock_ms

    def all(self) -> list[CursorView]:
        """Every cursor, by name."""
        return self.viewing()()

    def viewing(self) -> Callable[[], list[CursorView]]:
        """A function for another thread that returns every cursor as it is now, by name."""
        return self._viewing([] if self._cursors is None else self._cursors.all())

    def get(self, name: str) -> CursorView | None:
        """A cursor by name, or None."""
        cursor = None if self._cursors is None else self._cursors.get(name)
        return None if cursor is None else self._viewing([cursor])()[0]

    def is_set(self, name: str) -> bool:
        """Is there a cursor of that name?"""
        return name in self._journal.index.cursors

    def put(self, name: str, given: object) -> int:
        """Set or move a cursor as JSON describes it; returns the lsn of its record. Raises CursorError if it is
        invalid, CursorRefusedError if it cannot be set now.
        """
        if self._cursors is None:
            raise CursorRefusedError("this broker retains no log for a cursor to hold; set journal-retention-directory")
        cursor = wanted_cursor(name, given, self._cursors.ttl_s, self._clock_ms())
        if cursor.lsn > self._journal.durable_lsn:
            raise CursorRefusedError(
                f"lsn {cursor.lsn} is past the end of the log, which is {self._journal.durable_lsn}"
            )
        if self._cursors.get(name) is None and len(self._journal.index.cursors) >= CURSORS_MAX:
            raise CursorRefusedError(f"there are already {CURSORS_MAX} cursors, the most allowed; drop one first")
        return self._journal.records.cursor_changed(cursor.fields())

    def drop(self, name: str) -> int | None:
        """Drop a cursor; returns the lsn of the record, or None if there is no such cursor."""
        if name not in self._journal.index.cursors:
            return None
        return self._journal.records.cursor_changed({"name": name, "deleted": True})

    def counts(self) -> dict[str, int]:
        """Figures for the metrics."""
        kept = () if self._retention is None else self._retention.files
        cursors = self._cursors
        return {
            "retained_files": len(kept),
            "retained_bytes": 0 if self._retention is None else self._retention.size_bytes,
            "overrun_files": 0 if cursors is None else cursors.overrun_files,
            "overrun_bytes": 0 if cursors is None else cursors.overrun_bytes,
        }

    def _viewing(self, cursors: list[Cursor]) -> Callable[[], list[CursorView]]:
        """Segments leaving the journal are noted before the retained ones, so that a moving one is in one of them."""
        if not cursors:
            return list
        journal, now_ms = self._journal, self._clock_ms()
        own = [
            (one.number, one.first_lsn, one.written_bytes)
            for one in [*journal.files.leaving.values(), *journal.segments]
        ]
        kept = () if self._retention is None else self._retention.since(min(cursor.lsn for cursor in cursors))
        end_lsn = journal.records.last_lsn
        return lambda: _viewed(cursors, _spans(own, kept, end_lsn), now_ms)


def _viewed(cursors: list[Cursor], spans: list[tuple[int, int, int]], now_ms: int) -> list[CursorView]:
    lag = Lag(spans)
    first_lsn = spans[0][0]  # where the log begins, or the segment that the slowest reader is in
    return [
        CursorView(
            cursor,
            holds=cursor.holds(now_ms),
            lag_bytes=lag.bytes_behind(cursor.lsn),
            is_overtaken=cursor.lsn + 1 < first_lsn,
            idle_ms=max(now_ms - cursor.moved_ms, 0),
        )
        for cursor in cursors
    ]


def _spans(own: list[tuple[int, int, int]], kept: tuple[RetainedFile, ...], end_lsn: int) -> list[tuple[int, int, int]]:
    """First lsn, last lsn and bytes of every segment: those of the journal by number, and retained ones."""
    found = {number: (first_lsn, size_bytes) for number, first_lsn, size_bytes in own}
    found |= {one.file.number: (one.first_lsn, one.size_bytes) for one in kept}
    begun: list[tuple[int, int]] = []
    for number in sorted(found):
        first_lsn, size_bytes = found[number]
        if begun and not first_lsn:  # a damaged header: who knows where it begins
            first_lsn, before_bytes = begun.pop()
            size_bytes += before_bytes
        begun.append((first_lsn, size_bytes))
    ends = [first_lsn - 1 for first_lsn, _ in begun[1:]] + [end_lsn]
    return [(first_lsn, end, size_bytes) for (first_lsn, size_bytes), end in zip(begun, ends, strict=True)]
