"""The journal's files in order: the last one is written to, spare files are made ahead, and the oldest are retired."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from artemis_py.storage.disk.disk import Disk, NoSpaceError
from artemis_py.storage.disk.group_commit import Committer
from artemis_py.storage.format import records
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import FileHeader
from artemis_py.storage.format.segment_index import Gathered, SegmentIndex
from artemis_py.storage.journal.extent import ExtentFiles
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.settings import JournalSettings, JournalStart, SegmentCare

# ---- retirement ------------------------------------------------------------------------------------------------------
#
# Segments leaving the journal's directory.


class SegmentRetirement:
    """Passes segments to ``retire``, in order. A segment without room elsewhere stays in the journal's directory, and
    so do all after it, until ``retry`` finds room. Segments that are gone are removed from ``leaving``.

    Everything here runs in the committer's thread.
    """

    def __init__(self, extent: ExtentFiles, retire: Callable[[str], None], leaving: dict[int, Segment]) -> None:
        self._extent = extent
        self._retire = retire
        self._leaving = leaving
        self._waiting: deque[Segment] = deque()
        self._is_going = False

    @property
    def waits(self) -> bool:
        """Does a segment wait for room elsewhere?"""
        return bool(self._waiting) and not self._is_going

    def let_go(self, segment: Segment) -> None:
        """Retire a segment that is no longer needed. Raises DiskError."""
        self._waiting.append(segment)
        self.retry()

    def retry(self) -> None:
        """Retire the waiting segments. Raises DiskError."""
        with suppress(NoSpaceError):
            while self._waiting:
                self._go(self._retire)

    def abandon(self, remove: Callable[[str], None]) -> str | None:
        """Delete the oldest waiting segment with ``remove``. Returns its name, or None if even that cannot be recorded.
        Raises DiskError.
        """
        with suppress(NoSpaceError):
            return self._go(remove)
        return None

    def _go(self, let_go: Callable[[str], None]) -> str:
        segment = self._waiting[0]
        self._is_going = True  # this write may find no room, and then asks which segments wait
        try:
            self._extent.begin_at(segment.number + 1)  # before the file is removed: otherwise it would count as missing
            let_go(segment.name)
            self._extent.note_deleted()
        finally:
            self._is_going = False
        self._waiting.popleft()
        self._leaving.pop(segment.number, None)
        return segment.name


# ---- spares ----------------------------------------------------------------------------------------------------------
#
# Journal files created ahead (``journal-min-files``): filled with zeros and synced, so that a batch never waits for
# that.


_CHUNK_BYTES: Final = 1 << 20
_NAME: Final = re.compile(r"spare-(?P<number>\d{9})\.log", re.ASCII)


class Spares:
    """Keeps one file more than is in use, and at least ``files_min`` in total. The committer's thread creates them
    between batches, while the disk has room; one after the other, so that no batch waits for more than one of them.
    """

    def __init__(self, disk: Disk, committer: Committer, file_bytes: int, files_min: int) -> None:
        self._disk = disk
        self._committer = committer
        self._file_bytes = file_bytes
        self._files_min = files_min
        self._ready: deque[str] = deque()
        self._ready_min = 1
        """So many are to be ready."""
        self._is_making = False
        self._number = 0
        for name in disk.names():
            match = _NAME.fullmatch(name)
            if match is not None:
                self._take_over(name, int(match["number"]))

    def _take_over(self, name: str, number: int) -> None:
        """Reuse a spare from before the start if it is finished, empty and of the right size."""
        self._number = max(self._number, number)
        size_bytes = 0
        while data := self._disk.read(name, size_bytes, _CHUNK_BYTES):
            if data.strip(b"\0"):
                break
            size_bytes += len(data)
        if not data and size_bytes == self._file_bytes:
            self._ready.append(name)
        else:
            self._disk.delete(name)

    def take(self) -> str | None:
        """A file to rename and use, or None if none is ready."""
        try:  # a single step, because another thread may give one up
            return self._ready.popleft()
        except IndexError:
            return None

    def give_up(self) -> bool:
        """Remove a spare to free its room; False if none is ready. For any thread. Raises DiskError."""
        name = self.take()
        if name is None:
            return False
        self._disk.delete(name)
        return True

    def provide(self, files_in_use: int) -> None:
        """Start to create missing spares."""
        self._ready_min = max(1, self._files_min - files_in_use)
        if not self._is_making:
            self._make_next()

    def _make_next(self) -> None:
        self._is_making = self._disk.has_room and len(self._ready) < self._ready_min
        if self._is_making:
            self._committer.later(self._make)

    def _make(self) -> None:
        self._number += 1
        name = f"spare-{self._number:09}.log"
        try:
            self._disk.create(name, self._file_bytes)
        except NoSpaceError:  # the disk knows; the next journal file grows as it is written
            self._is_making = False
        else:
            self._ready.append(name)
            self._make_next()


# ---- segments --------------------------------------------------------------------------------------------------------
#
# The journal's files in order: the last one is written to, earlier ones contain something that lives, the oldest are
# removed. Batches aside, every operation on a file runs in the committer's thread.


class NewFile:
    """How the first batch of a segment makes its file: its size in bytes (``create_bytes``, -1: the file exists), its
    header, and the file created ahead that it uses (``spare``, None: a new file).
    """

    __slots__ = ("create_bytes", "header", "spare")

    def __init__(self, create_bytes: int, header: bytes, spare: str | None) -> None:
        self.create_bytes = create_bytes
        self.header = header
        self.spare = spare


NO_NEW_FILE: Final = NewFile(-1, b"", None)


class Segments:
    """The segments of one journal. ``all`` are the valid ones, in order; the last may be empty."""

    def __init__(
        self, disk: Disk, committer: Committer, settings: JournalSettings, start: JournalStart, care: SegmentCare
    ) -> None:
        self.all = start.segments
        self._disk = disk
        self.leaving: dict[int, Segment] = {}
        """Segments that are leaving, by number. Their files exist until ``SegmentCare.retire`` has finished."""
        self._committer = committer
        self._closed = care.closed
        self._file_bytes = settings.file_bytes
        self._extent = ExtentFiles(disk)
        self.retirement = SegmentRetirement(self._extent, care.retire, self.leaving)
        self.spares = Spares(disk, committer, settings.file_bytes, settings.files_min)
        self._reached = self.all[-1].number if self.all else 0
        """The number of the last segment recorded in the extent."""
        self.retiring: list[tuple[int, Segment]] = []
        """Segments to retire when the journal is durable up to an lsn."""
        self._under_way: Segment | None = None
        """The segment of the batch being written; ``_gathered`` is what that batch adds to its index."""
        self._gathered = Gathered()
        self.is_unmade = False
        """Has the current segment no file yet?"""
        self._is_unsynced = False
        """Was something written to the last file since its last sync?"""
        self._begin(self.all[-1].number + 1 if self.all else start.segment_number, start.next_lsn)

    @property
    def written_bytes(self) -> int:
        """The bytes written to all segments."""
        return sum([segment.written_bytes for segment in self.all])

    @property
    def live_bytes(self) -> int:
        """How many of them belong to living messages."""
        return sum([segment.live_bytes for segment in self.all])

    def _begin(self, number: int, first_lsn: int) -> None:
        segment = Segment(number, segment_name(number), first_lsn)
        segment.last_lsn = self.all[-1].last_lsn if self.all else 0
        segment.index = SegmentIndex(number, first_lsn)
        self.all.append(segment)
        self.is_unmade = True

    # ---- a batch ---------------------------------------------------------------------------------

    def new_file(self, now_ms: int) -> NewFile:
        """How the next batch makes the current segment's file, which ``is_unmade``. ``now_ms`` goes into its header."""
        self.is_unmade = False
        segment = self.all[-1]
        spare = self.spares.take()
        before_lsn = self.all[-2].last_lsn if len(self.all) > 1 else 0
        # A new file may find no room for its full size; then it grows as it is written.
        made_bytes = 0 if spare is None else self._file_bytes
        told = segment.number, segment.first_lsn, now_ms, before_lsn, made_bytes
        return NewFile(self._file_bytes, records.encode_file_header(FileHeader(records.KIND_JOURNAL, *told)), spare)

    def fills(self, size_bytes: int) -> bool:
        """Would this many more bytes fill the current segment?"""
        return self.all[-1].written_bytes + size_bytes >= self._file_bytes

    def wrote(self, gathered: Gathered, size_bytes: int, last_lsn: int, now_ms: int, *, begins_file: bool) -> None:
        """A batch was handed over for the current segment, with the file header before it if it ``begins_file``.
        ``last_lsn`` is the lsn of its BATCH record, the highest in it.
        """
        segment = self.all[-1]
        self._under_way, self._gathered = segment, gathered
        gathered.offset = segment.written_bytes + records.FILE_HEADER_BYTES if begins_file else segment.written_bytes
        segment.written_bytes += size_bytes
        gathered.end = segment.written_bytes
        gathered.last_lsn = last_lsn
        gathered.time_ms = now_ms
        segment.last_lsn = last_lsn - 1
        if now_ms > segment.last_ms:
            segment.last_ms = now_ms
        if segment.written_bytes >= self._file_bytes:
            self._begin(segment.number + 1, last_lsn + 1)

    @property
    def durable_end(self) -> tuple[Segment, int]:
        """Behind the last durable batch: its segment, and how many bytes of that are durable (0: none yet). Segments
        before it are durable as a whole.
        """
        segment = self._under_way or self.all[-1]
        assert segment.index is not None
        return segment, segment.index.size_bytes

    @property
    def is_under_way(self) -> bool:
        """Is a batch being written?"""
        return self._under_way is not None

    def became_durable(self, *, synced: bool) -> None:
        """The batch being written is durable: readers may see it. The last batch of a segment closes it."""
        segment, gathered = self._under_way, self._gathered
        if segment is None:
            return
        self._under_way = None
        assert segment.index is not None
        gathered.records += gathered.last_lsn - segment.index.last_lsn
        segment.index.add(gathered)
        self._is_unsynced = not synced
        if synced and segment.number != self._reached:
            self._reached = segment.number
            self._committer.later(partial(self._extent.reach, segment.number, self.all[0].number))
        if segment is not self.all[-1]:
            self._close(segment)

    def provide_spares(self) -> None:
        """Have files created ahead, unless the next batch needs one first."""
        if not self.is_unmade:
            self.spares.provide(len(self.all))

    def finish(self, *, is_all_written: bool) -> None:
        """Close the current segment; if ``is_all_written``, note the end of the journal."""
        segment = self.all[-1]
        if not self.is_unmade:
            self._close(segment)
        if not (is_all_written and segment.last_lsn):
            return
        if self._is_unsynced:
            self._committer.later(partial(self._sync_end, segment.name, segment.number))
        self._committer.later(partial(self._extent.end_at, segment.last_lsn))

    def _sync_end(self, name: str, number: int) -> None:
        """The last file has what no setting asked to sync. The note about the end may only be of what a power cut
        leaves, and of the file that it stands in. Raises DiskError.
        """
        self._disk.sync(name)
        self._extent.reach(number, self.all[0].number)

    def _close(self, segment: Segment) -> None:
        if self._closed is not None:
            self._committer.later(partial(self._closed, segment))

    # ---- segments that go ------------------------------------------------------------------------

    def oldest_empty(self) -> Segment | None:
        """The oldest segment if nothing in it lives, or None. One written file always stays, because it has the highest
        numbers.
        """
        oldest = self.all[0]
        return None if oldest.live or len(self.all) - self.is_unmade < 2 else oldest

    def let_oldest_go(self, lsn: int) -> None:
        """Retire the oldest segment when the journal is durable up to ``lsn``."""
        segment = self.all[0]
        self.retiring.append((lsn, segment))
        self.leaving[segment.number] = segment
        del self.all[0]

    def retire(self, durable_lsn: int) -> None:
        """Retire the segments that waited for an lsn up to ``durable_lsn``."""
        while self.retiring and self.retiring[0][0] <= durable_lsn:
            self._committer.later(partial(self.retirement.let_go, self.retiring.pop(0)[1]))
