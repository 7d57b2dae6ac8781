"""What others may read of the broker's log: its segments, their durable bytes, and large bodies.

The event loop's thread captures the journal's state and returns a function for another thread, which reads the files. A
segment that meanwhile moves to the retention directory is found there.
"""

from __future__ import annotations

import errno
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from artemis_py.errors import ArtemisError
from artemis_py.storage.format.address_index import places_name
from artemis_py.storage.format.names import find_body, segment_name
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.segment_index import SegmentIndex, json_line
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.index_files import index_beside, index_text
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.retention.retention import RetainedFile, Retention

_PIECE_BYTES: Final = 65536


Segments = Iterator[tuple[dict[str, Any], Callable[[], tuple[int, int]]]]
"""The fields of each segment's index, and a function that opens it."""


class NotInLogError(ArtemisError):
    """The log does not have something; ``is_gone``: no longer."""

    def __init__(self, text: str, *, is_gone: bool) -> None:
        super().__init__(text)
        self.is_gone = is_gone


@dataclass(frozen=True, slots=True)
class _Listed:
    """A segment at one moment. ``fields`` is its index while the journal may write to it, ``closed`` when it is closed
    and the index is still in memory.
    """

    number: int
    path: Path
    first_lsn: int
    """0 if the header of its file is damaged."""
    fields: dict[str, Any] | None
    is_current: bool
    closed: SegmentIndex | None = None


class LogView:
    """The log of a broker with a journal. ``log_id`` is the id of its files. ``retention`` is None if nothing is
    retained. ``body_directories`` may contain large bodies.
    """

    def __init__(
        self,
        journal: Journal,
        journal_directory: Path,
        log_id: str,
        body_directories: list[Path],
        retention: Retention | None,
    ) -> None:
        self.log_id = log_id
        self._journal = journal
        self._directory = journal_directory
        self._body_directories = body_directories
        self._retention = retention
        self._is_stopping = False

    # ---- in the event loop's thread --------------------------------------------------------------

    def listing(self, broker_name: str, now_ms: int, after_lsn: int) -> Callable[[], list[bytes]]:
        """The current log after an lsn, as JSON in pieces; call the result in another thread."""
        journal, kept = self._in_journal(after_lsn), self._retained(after_lsn)
        head = {
            "broker": broker_name,
            "id": self.log_id,
            "durable_lsn": self._journal.durable_lsn,
            "first_lsn": self._first_lsn(),
            "now_ms": now_ms,
        }
        return lambda: self._pieces(head, _merged(journal, kept), after_lsn)

    def opening(self, number: int) -> Callable[[], tuple[int, int]]:
        """A function for another thread that opens a segment: a descriptor, and how many bytes of it may be read. It
        raises NotInLogError.
        """
        wanted = self._journal_segment(number)
        kept = None if self._retention is None else self._retention.find(number)
        if kept is not None:
            wanted = _listed(kept)
        if wanted is None:
            is_gone = number < self._first_number(number)
            raise NotInLogError(_missing(f"segment {number}", is_gone), is_gone=is_gone)
        return lambda: self._open(wanted)

    def opening_places(self, number: int) -> Callable[[], tuple[int, int]]:
        """A function for another thread that opens the address index of a segment, as ``opening`` does the segment."""
        wanted = _Listed(number, self._directory / segment_name(number), 0, None, is_current=False)
        return lambda: self._open_places(wanted)

    def segments(self) -> Callable[[], Segments]:
        """A function for another thread: the segments of now in order, each with the fields of its index, and a
        function that opens it as that of ``opening`` does. What cannot be read or is gone has no field ``bytes``.
        """
        journal, kept = self._in_journal(), self._retained(-1)
        return lambda: map(self._with_opening, _merged(journal, kept))

    def indexing(self) -> Callable[[], None]:
        """A function for another thread that makes the indexes that a crash prevented."""
        journal, kept = self._in_journal(), self._retained(-1)
        return lambda: self._make_missing(_merged(journal, kept))

    def stop(self) -> None:
        """The broker ends: the next start makes the indexes still missing."""
        self._is_stopping = True

    @property
    def is_stopping(self) -> bool:
        """Does the broker end? Then threads read no further."""
        return self._is_stopping

    def _in_journal(self, after_lsn: int = -1) -> list[_Listed]:
        """The journal's segments with durable records after an lsn, and those leaving it. Read these before the
        retained ones, so that a moving segment is in one of them.
        """
        journal = self._journal
        leaving = [*journal.files.leaving.values()]
        if after_lsn >= 0:
            leaving = [segment for segment in leaving if segment.last_lsn >= after_lsn]
        begin = max(bisect_right(journal.segments, after_lsn + 1, key=attrgetter("first_lsn")) - 1, 0)
        found = [self._of_journal(segment) for segment in [*leaving, *journal.segments[begin:]]]
        return [one for one in found if one is not None]

    def _of_journal(self, segment: Segment) -> _Listed | None:
        """None if it has nothing durable. The last two segments may grow: a batch being written can be the last of
        one.
        """
        journal, index = self._journal, segment.index
        if index is not None and not index.records:
            return None
        path = self._directory / segment.name
        is_current = segment is journal.segments[-1]
        if index is None or not (is_current or segment in journal.segments[-2:]):
            return _Listed(segment.number, path, segment.first_lsn, None, is_current, index)
        return _Listed(segment.number, path, segment.first_lsn, index.fields(), is_current)

    def _journal_segment(self, number: int) -> _Listed | None:
        """A segment of the journal, or one leaving it."""
        journal = self._journal
        place = bisect_left(journal.segments, number, key=attrgetter("number"))
        segment = journal.files.leaving.get(number)
        if place < len(journal.segments) and journal.segments[place].number == number:
            segment = journal.segments[place]
        return None if segment is None else self._of_journal(segment)

    def _first_number(self, otherwise: int) -> int:
        """The number of the oldest segment; ``otherwise`` if there is none."""
        oldest = self._oldest()
        return otherwise if oldest is None else oldest.number

    def _oldest(self) -> _Listed | None:
        journal = self._journal
        known = [_listed(one) for one in (() if self._retention is None else self._retention.files[:1])]
        candidates = [*[*journal.files.leaving.values()][:1], *journal.segments[:1]]
        known += [one for one in map(self._of_journal, candidates) if one is not None]
        return min(known, key=attrgetter("number"), default=None)

    def _retained(self, after_lsn: int) -> tuple[RetainedFile, ...]:
        return () if self._retention is None else self._retention.since(after_lsn)

    def _first_lsn(self) -> int:
        """Where the log begins."""
        oldest = self._oldest()
        return self._journal.durable_lsn + 1 if oldest is None else oldest.first_lsn

    # ---- in another thread -----------------------------------------------------------------------

    def _pieces(self, head: dict[str, Any], listed: list[_Listed], after_lsn: int) -> list[bytes]:
        pieces: list[bytes] = []
        piece = json_line(head).rstrip(b"}\n") + b',"segments":['
        separator = b"\n"
        for place, one in enumerate(listed):
            if place + 1 < len(listed) and 0 < listed[place + 1].first_lsn <= after_lsn + 1:
                continue
            line = self._line(one, after_lsn if separator == b"\n" else -1)
            if line is None:
                continue
            piece += separator + line
            separator = b",\n"
            if len(piece) >= _PIECE_BYTES:
                pieces.append(piece)
                piece = b""
        pieces.append(piece + b"\n]}\n")
        return pieces

    def _line(self, one: _Listed, after_lsn: int) -> bytes | None:
        """A segment's index as JSON with what the listing adds; None if it was removed meanwhile or has nothing after
        the lsn. Most indexes are sent without being decoded: only the first segment of a listing can be before the lsn.
        """
        if one.closed is None and one.fields is None and after_lsn < 0:
            for path in self._places(one):
                text = index_text(path)
                if text is not None:
                    name = json.dumps(path.name, ensure_ascii=False).encode()
                    is_current = b"true" if one.is_current else b"false"
                    return b'%b,"name":%b,"is_current":%b}' % (text[:-1], name, is_current)
        fields = self._described(one)
        if fields is None or fields.get("last_lsn", after_lsn + 1) <= after_lsn:
            return None
        return json_line(fields).rstrip(b"\n")

    def _with_opening(self, one: _Listed) -> tuple[dict[str, Any], Callable[[], tuple[int, int]]]:
        """Its index is decoded once, not again for each part that is read."""
        fields = self._described(one) or {}
        return fields, partial(self._open, replace(one, fields=fields) if "bytes" in fields else one)

    def _described(self, one: _Listed) -> dict[str, Any] | None:
        """A segment's index with what the listing adds; None if it was removed meanwhile."""
        for path in self._places(one):
            try:
                fields = _known_fields(one) or index_beside(path)
            except FileNotFoundError:
                continue
            except (OSError, CodecError) as error:
                _raise_if_short(error)
                return {"segment": one.number, "name": path.name, "is_current": False, "error": str(error)}
            return {**fields, "name": path.name, "is_current": one.is_current}
        return None

    def _open(self, one: _Listed) -> tuple[int, int]:
        for path in self._places(one):
            try:
                size_bytes = (_known_fields(one) or index_beside(path))["bytes"]
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            except (OSError, CodecError) as error:
                _raise_if_short(error)
                raise NotInLogError(f"segment {one.number} cannot be read: {error}", is_gone=True) from None
            return descriptor, min(size_bytes, os.fstat(descriptor).st_size)  # someone may have truncated it
        raise NotInLogError(_missing(f"segment {one.number}", is_gone=True), is_gone=True)

    def _open_places(self, one: _Listed) -> tuple[int, int]:
        for path in self._places(one):
            try:
                descriptor = os.open(path.with_name(places_name(path.name)), os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                _raise_if_short(error)
                continue
            return descriptor, os.fstat(descriptor).st_size
        raise NotInLogError(f"segment {one.number} has no file of places; read the segment itself", is_gone=False)

    def _places(self, one: _Listed) -> Iterator[Path]:
        """Where a segment's file may be: where it was, or retained since. Retention knows, so no directory is
        listed.
        """
        yield one.path
        moved = None if self._retention is None else self._retention.path_of(one.number)
        if moved is not None and moved != one.path:
            yield moved

    def _make_missing(self, listed: list[_Listed]) -> None:
        for one in listed:
            if self._is_stopping:
                return
            self._described(one)

    def open_body(self, number: int) -> tuple[int, int]:
        """Open the file of a large body: a descriptor, and its size. Raises NotInLogError. For another thread."""
        for _ in range(2):  # it may move between being found and being opened
            path = find_body(number, self._body_directories)
            if path is None:
                break
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            return descriptor, os.fstat(descriptor).st_size
        raise NotInLogError(f"there is no body {number}, or it was removed", is_gone=False)


def _raise_if_short(error: Exception) -> None:
    """The process, or the machine, has no descriptor left: that says nothing about the log. Raises OSError."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise error


def _known_fields(one: _Listed) -> dict[str, Any] | None:
    """The segment's index, if no file must be read."""
    return one.closed.fields() if one.fields is None and one.closed is not None else one.fields


def _listed(kept: RetainedFile) -> _Listed:
    return _Listed(kept.file.number, kept.file.path, kept.first_lsn, None, is_current=False)


def _merged(journal: list[_Listed], kept: tuple[RetainedFile, ...]) -> list[_Listed]:
    """All segments in order; one that moved meanwhile as it is now."""
    found = {one.number: one for one in journal} | {one.file.number: _listed(one) for one in kept}
    return [found[number] for number in sorted(found)]


def _missing(what: str, is_gone: bool) -> str:
    return f"{what} is no longer in the log: retention removed it" if is_gone else f"{what} does not exist yet"
