"""The segments of a retained log as a reader finds them: those of the journal, those on their way out of it, and those
that retention keeps.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import final

from mypy_extensions import mypyc_attr

from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import FILE_HEADER_BYTES
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.segments import Segments
from artemis_py.storage.retention.retention import Kept, Retention


@mypyc_attr(allow_interpreted_subclasses=True)
class SegmentFiles(ABC):
    """The files of segments, wherever they are now. ``kept`` is for the thread of the turns, the rest for another."""

    @abstractmethod
    def kept(self) -> Sequence[Kept]:
        """Those that retention keeps, oldest first."""

    @abstractmethod
    def read(self, number: int, offset: int, size_bytes: int) -> bytes:
        """A part of a segment; less at the end of its file. Raises FileNotFoundError if it was removed, OSError."""

    @abstractmethod
    def size_of(self, number: int) -> int:
        """The size of a segment's file. Raises the same."""

    @abstractmethod
    def beside(self, number: int, named: Callable[[str], str]) -> bytes:
        """The file next to a segment whose name ``named`` makes from the segment's; empty if there is none."""


@final
class RetainedFiles(SegmentFiles):
    """Segments in ``directory``, from where they move to that of ``retention``."""

    def __init__(self, directory: Path, retention: Retention) -> None:
        self._directory = directory
        self._retention = retention

    def kept(self) -> Sequence[Kept]:
        return self._retention.kept

    def read(self, number: int, offset: int, size_bytes: int) -> bytes:
        descriptor = self._open(number)
        try:
            return os.pread(descriptor, size_bytes, offset)
        finally:
            os.close(descriptor)

    def size_of(self, number: int) -> int:
        descriptor = self._open(number)
        try:
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def beside(self, number: int, named: Callable[[str], str]) -> bytes:
        for path in self._paths(number):
            try:
                return path.with_name(named(path.name)).read_bytes()
            except OSError:
                continue
        return b""

    def _paths(self, number: int) -> list[Path]:
        """Where a segment may be: in the journal, or retained. It may move in between, but only in this direction."""
        moved = self._retention.path_of(number)
        here = self._directory / segment_name(number)
        return [here] if moved is None else [here, moved]

    def _open(self, number: int) -> int:
        for path in (self._directory / segment_name(number), None):
            found = path or self._retention.path_of(number)
            if found is None:
                break
            try:
                return os.open(found, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
        raise FileNotFoundError(f"segment {number} was removed")


@final
class LogSegments:
    """Finds segments by what they contain, without a look at any file. For the thread of the turns."""

    __slots__ = ("_files", "_journal")

    def __init__(self, journal: Segments, files: SegmentFiles) -> None:
        self._journal = journal
        self._files = files

    @property
    def end(self) -> tuple[int, int]:
        """The segment that is written to, and how many of its bytes are durable, at least those of its header."""
        segment, durable_bytes = self._journal.durable_end
        return segment.number, max(durable_bytes, FILE_HEADER_BYTES)

    @property
    def first(self) -> int:
        """The number of the oldest segment."""
        kept = self._files.kept()
        return kept[0].file.number if kept else self._of_journal()[0].number

    def first_lsn(self, number: int = 0) -> int:
        """The lowest lsn in the segments from this number on."""
        for kept in self._files.kept():
            if kept.file.number >= number and kept.first_lsn:
                return kept.first_lsn
        return next(segment.first_lsn for segment in self._of_journal() if segment.number >= number)

    def _of_journal(self) -> list[Segment]:
        """Those that retention does not have yet, oldest first."""
        return [*self._journal.leaving.values(), *self._journal.all]

    def content_bytes(self, number: int) -> int:
        """How many bytes of a segment have records, if the journal knows; -1: it does not, or the segment is gone."""
        segment = self._journal.leaving.get(number)
        if segment is None:
            segments = self._journal.all
            place = number - segments[0].number
            segment = segments[place] if 0 <= place < len(segments) else None
        return -1 if segment is None or segment.number != number else segment.written_bytes

    def with_lsn(self, lsn: int) -> tuple[int, int] | None:
        """A segment and an offset before an lsn; None if it was removed."""
        for segments in (self._journal.all, list(self._journal.leaving.values())):
            place = bisect_right(segments, lsn, key=attrgetter("first_lsn")) - 1
            if place >= 0:
                return segments[place].number, _block_with(segments[place], lsn)
        kept = self._files.kept()
        for place in range(len(kept) - 1, -1, -1):
            if 0 < kept[place].first_lsn <= lsn:
                return kept[place].file.number, FILE_HEADER_BYTES
        if kept and not kept[0].first_lsn:  # a damaged header: who knows where it begins
            return kept[0].file.number, FILE_HEADER_BYTES
        return None

    def with_time(self, time_ms: int) -> int:
        """The number of a segment that begins before what was published at a date; if there is none, the oldest."""
        for segments in (self._journal.all, list(self._journal.leaving.values())):
            place = bisect_left(segments, time_ms, key=_begun_ms) - 1
            if place >= 0:
                return segments[place].number
        kept = self._files.kept()
        place = bisect_left(kept, time_ms, key=attrgetter("begun_ms")) - 1
        return kept[place].file.number if place >= 0 else self.first


def _begun_ms(segment: Segment) -> int:
    """A segment that has no file yet comes last."""
    return segment.begun_ms or 1 << 62


def _block_with(segment: Segment, lsn: int) -> int:
    """The offset of a batch that begins before an lsn."""
    index = segment.index
    if index is None:
        return FILE_HEADER_BYTES
    offset = FILE_HEADER_BYTES
    for block_offset, first_lsn, _ in index.blocks:
        if first_lsn > lsn:
            break
        offset = block_offset
    return offset
