"""How replays read the log: which parts of its files, by which thread, as slices."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Final, final

from mypy_extensions import mypyc_attr

from artemis_py.message import LargeBody, Message
from artemis_py.replay_log import SLICE_BYTES, AddressChoice, Logged, Place, ReplayLog, Slice, Spot
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.group_commit import Committer
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.address_index import NUMBERS, Part, Table, decode_table, part_bytes, places_name
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import (
    BATCH,
    FILE_HEADER_BYTES,
    GROUP,
    MESSAGE,
    MESSAGE_FIELDS,
    ORIGIN,
    QUEUE_STATE,
    RECORD_HEADER_BYTES,
    CodecError,
    is_intact,
    read_header,
)
from artemis_py.storage.format.scan import Damage, behind_damage, next_batch
from artemis_py.storage.format.segment_index import index_name, sealed_text
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.segments import Segments
from artemis_py.storage.retention.retention import RetainedFile, Retention

# ---- segments --------------------------------------------------------------------------------------------------------
#
# The segments of a retained log as a reader finds them: those of the journal, those on their way out of it, and those
# that retention keeps.


@mypyc_attr(allow_interpreted_subclasses=True)
class SegmentFiles(ABC):
    """The files of segments, wherever they are now. ``kept`` is for the thread of the turns, the rest for another."""

    @abstractmethod
    def kept(self) -> Sequence[RetainedFile]:
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

    def kept(self) -> Sequence[RetainedFile]:
        return self._retention.files

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
        """The number of the first segment that may have something published at a date or later; if there is none, of
        the one that is written to. Clocks are set back, so what follows may be older.
        """
        journal = self._of_journal()  # first, so that a moving segment is here or there
        for kept in self._files.kept():
            if kept.last_ms is None or kept.last_ms >= time_ms:
                return kept.file.number
        for segment in journal:
            if segment.last_ms >= time_ms:
                return segment.number
        return self.end[0]


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


# ---- plan ------------------------------------------------------------------------------------------------------------
#
# Which parts of a closed segment a replay must read: whole batches that have a message of an address that it wants.
# The address index beside the segment says so (``format/address_index.py``). It is optional.


_RUNS_MAX: Final = 1000
"""If an address has messages in more places than this, all of the segment is read."""
_GAP_BYTES: Final = 65536
"""Parts that are no farther from each other are read as one."""
Ranges = list[tuple[int, int]]


def ranges_in(places: bytes, choice: AddressChoice, content_bytes: int) -> Ranges | None:
    """Begin and end of each part, in order; None: the whole segment must be read. ``places`` is the file of places of a
    segment with so many bytes of records.
    """
    try:
        table = decode_table(places)
        if table.addresses is None or table.of.size_bytes != content_bytes:
            return None
        parts = _parts_of(table, choice)
        if sum(part.count for part in parts) > NUMBERS * _RUNS_MAX:
            return None
        runs = sorted(run for part in parts for run in _runs(_numbers(places, part)))
        return _whole_batches(runs, list(accumulate(_numbers(places, table.batches))), content_bytes)
    except (CodecError, ValueError, KeyError, TypeError):  # written by another version, perhaps
        return None


def _parts_of(table: Table, choice: AddressChoice) -> list[Part]:
    addresses = table.addresses or {}
    if choice.exact:
        return [addresses[choice.exact]] if choice.exact in addresses else []
    return [part for address, part in addresses.items() if choice.wants(address)]


def _numbers(places: bytes, part: Part) -> array[int]:
    numbers = array("I")
    numbers.frombytes(part_bytes(places, part))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _runs(packed: array[int]) -> Ranges:
    """The runs of an address. The numbers are, first for all runs, how far each begins behind the end of the one
    before, then their lengths.
    """
    count = len(packed) // NUMBERS
    runs: Ranges = []
    end = 0
    for gap, length in zip(packed[:count], packed[count : 2 * count], strict=True):
        begin = end + gap
        end = begin + length
        runs.append((begin, end))
    return runs


def _whole_batches(runs: Ranges, batches: list[int], content_bytes: int) -> Ranges:
    """The batches that have these runs, as few parts."""
    found: Ranges = []
    for begin, end in runs:
        place = max(bisect_right(batches, begin) - 1, 0)
        behind = bisect_left(batches, end)
        whole_begin = batches[place]
        whole_end = batches[behind] if behind < len(batches) else content_bytes
        if found and whole_begin <= found[-1][1] + _GAP_BYTES:
            found[-1] = found[-1][0], max(found[-1][1], whole_end)
        else:
            found.append((whole_begin, whole_end))
    return found


# ---- slices ----------------------------------------------------------------------------------------------------------
#
# A slice of a segment: finds the messages in its records, a few at a time, and decodes those that are asked for. A
# group is read as if its records stood alone, so that it need not be in memory as a whole; below the durable end of the
# log it is complete. Records that a reader of messages does not need are checked like all others, and passed over.


_MESSAGE: Final = MESSAGE_FIELDS.only("lsn", "queues", "address_bytes")
_MESSAGE_BYTES: Final = MESSAGE_FIELDS.size_bytes
_QUEUE_BYTES: Final = QUEUE_STATE.size_bytes
_RECORDS_PER_UNIT: Final = 2
_NOTHING: Final[list[int]] = []


@final
class SegmentContent:
    """What is known of a segment: its content ends at ``content_end`` with only zeros behind it, and certainly before
    ``size_bytes``.
    """

    __slots__ = ("content_end", "size_bytes")

    def __init__(self, size_bytes: int, content_end: int) -> None:
        self.size_bytes = size_bytes
        self.content_end = content_end


@final
class LogSlice(Slice):
    """``data`` are the bytes of a segment from ``offset`` on. ``behind`` is where the next slice begins if all of them
    are whole records, None if the last record may be cut off. ``durable_lsn`` is the last lsn of the log where
    ``behind`` is its end, else 0.
    """

    __slots__ = (
        "_at", "_base", "_behind", "_begins", "_by_address", "_checked_bytes", "_data", "_decoded", "_durable_lsn",
        "_ends", "_extent", "_group_end", "_is_scanned", "_lsns", "_selections", "_session", "_sessions", "_time_ms",
        "_times_ms",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        begin: Spot,
        data: bytes = b"",
        offset: int = FILE_HEADER_BYTES,
        extent: SegmentContent | None = None,
        behind: Spot | None = None,
        durable_lsn: int = 0,
    ) -> None:
        self.key = key
        self.begin = begin
        self.end = begin
        self.size_bytes = len(data)
        self.last_lsn = 0
        self.reaches_end = False
        self.is_gone = False
        self.failure = ""
        self.bytes_needed = 0
        self._data = data
        self._base = offset
        self._at = 0
        """How far the records have been looked at."""
        self._extent = extent or SegmentContent(0, 0)
        self._behind = behind
        self._durable_lsn = durable_lsn
        self._is_scanned = False
        self._checked_bytes = 0
        """Up to here, records have been checked already."""
        goes_on = offset == begin.offset
        self._time_ms = begin.time_ms
        self._session = begin.session if goes_on else 0
        self._group_end = begin.group_end if goes_on else 0
        self._by_address: dict[bytes, list[int]] = {}
        self._selections: dict[str, list[int]] = {}
        self._lsns: list[int] = []
        self._begins: list[int] = []
        """Where the payload of each message begins, and where it ends."""
        self._ends: list[int] = []
        self._times_ms: list[int] = []
        self._sessions: list[int] = []
        self._decoded: list[Logged | None] = []

    def stay_unread(self, *, is_gone: bool = False, failure: str = "", bytes_needed: int = 0) -> None:
        """It was not read, for one of these reasons."""
        self.is_gone = is_gone
        self.failure = failure
        self.bytes_needed = bytes_needed
        self._is_scanned = True

    def check_first(self, size_bytes: int) -> None:
        """Check the first record, which is large, so that a turn need not. For the thread that has read it."""
        if is_intact(self._data, 0, size_bytes, read_header(self._data, 0)[0]):
            self._checked_bytes = size_bytes

    # ---- finding messages ------------------------------------------------------------------------

    def scan(self, units: int) -> int:
        if self._is_scanned:
            return 0
        left = records = max(units, 1) * _RECORDS_PER_UNIT
        while left > 0 and not self._is_scanned:
            self._look()
            left -= 1
        return max((records - left) // _RECORDS_PER_UNIT, 1)

    def _look(self) -> None:
        """Look at the next record."""
        data, at = self._data, self._at
        offset = self._base + at
        if offset == self._group_end:
            self._group_end = self._session = 0
        if len(data) - at < RECORD_HEADER_BYTES:
            self._finish(offset, is_cut=len(data) > at)
            return
        checksum, length, lsn, kind = read_header(data, at)
        if not (checksum or length or lsn or kind) and offset >= self._extent.content_end:
            self._end_segment()
            return
        behind = at + RECORD_HEADER_BYTES + length
        if self._base + behind > self._extent.size_bytes:
            self._break(offset)
        elif kind == GROUP and behind > len(data):
            self._enter(at, behind)
        elif behind > len(data):
            self._finish(offset, is_cut=True)
        elif behind > self._checked_bytes and not is_intact(data, at, behind, checksum):
            self._break(offset)
        elif kind == GROUP:
            self._enter(at, behind)
        else:
            self._take(kind, lsn, at + RECORD_HEADER_BYTES, behind)
            self._at = behind

    def _enter(self, at: int, behind: int) -> None:
        """Go into a group. Its own lsn follows those of its records."""
        self._session = 0
        self._group_end = self._base + behind
        self._at = at + RECORD_HEADER_BYTES

    def _take(self, kind: int, lsn: int, begin: int, end: int) -> None:
        if kind == BATCH:  # its lsn is above those of its records
            self._time_ms = codec.decode_batch(self._data[begin:end]).now_ms
            self._session = 0
            return
        if lsn > self.last_lsn:
            self.last_lsn = lsn
        if kind == ORIGIN:
            self._session = codec.decode_origin(self._data[begin:end])
        elif kind == MESSAGE and end - begin >= _MESSAGE_BYTES:
            published_lsn, queue_count, address_bytes = _MESSAGE.unpack_from(self._data, begin)
            if published_lsn == lsn:  # otherwise it is a copy made by compaction
                start = begin + _MESSAGE_BYTES + _QUEUE_BYTES * queue_count
                self._find(self._data[start : start + address_bytes], lsn, begin, end)

    def _find(self, address: bytes, lsn: int, begin: int, end: int) -> None:
        found = self._by_address.get(address)
        if found is None:
            found = self._by_address[address] = []
        found.append(len(self._lsns))
        self._lsns.append(lsn)
        self._begins.append(begin)
        self._ends.append(end)
        self._times_ms.append(self._time_ms)
        self._sessions.append(self._session)
        self._decoded.append(None)

    # ---- the end ---------------------------------------------------------------------------------

    def _finish(self, offset: int, *, is_cut: bool) -> None:
        """No further record is whole. ``is_cut``: there is the beginning of one."""
        behind = self._behind
        if behind is None:
            self._is_scanned = True
            self.end = Spot(self.begin.segment, offset, self._time_ms, self._session, self._group_end)
        elif is_cut:
            self._break(offset)
        else:
            self._is_scanned = True
            self.end = Spot(behind.segment, behind.offset, self._time_ms)
            if self._durable_lsn:
                self.reaches_end = True
                self.last_lsn = max(self.last_lsn, self._durable_lsn)

    def _end_segment(self) -> None:
        """Only zeros follow."""
        self._is_scanned = True
        self.end = Spot(self.begin.segment + 1, FILE_HEADER_BYTES, self._time_ms)

    def _break(self, offset: int) -> None:
        """No valid record begins here. Behind a group the next one does; otherwise it must be looked for."""
        self._is_scanned = True
        segment, group_end = self.begin.segment, self._group_end
        if offset < group_end < self._extent.size_bytes:
            self.end = Spot(segment, group_end, self._time_ms)
        else:
            self.end = Spot(segment, offset + 1, self._time_ms, 0, 0, self.last_lsn)

    # ---- messages --------------------------------------------------------------------------------

    def addresses(self) -> list[str]:
        return [address.decode() for address in self._by_address]

    def select(self, choice: AddressChoice) -> list[int]:
        if choice.exact:
            return self._by_address.get(choice.exact.encode(), _NOTHING)
        known = self._selections.get(choice.key)
        if known is None:
            known = []
            for address, found in self._by_address.items():
                if choice.wants(address.decode()):
                    known += found
            known.sort()
            self._selections[choice.key] = known
        return known

    def first_after(self, selected: list[int], lsn: int) -> int:
        lsns = self._lsns
        low, high = 0, len(selected)
        while low < high:
            middle = (low + high) // 2
            if lsns[selected[middle]] <= lsn:
                low = middle + 1
            else:
                high = middle
        return low

    def get(self, index: int) -> Logged | None:
        logged = self._decoded[index]
        if logged is None:
            try:
                kept = codec.decode_message(self._data[self._begins[index] : self._ends[index]])
            except CodecError:
                return None
            message = kept.message
            message.lsn = kept.lsn
            message.origin = self._sessions[index]
            logged = self._decoded[index] = Logged(message, self._times_ms[index])
        return logged


# ---- fetcher ---------------------------------------------------------------------------------------------------------
#
# Reads slices of segments, in a thread of its own. It knows the files and nothing of replays.


_SIZE: Final = b'"bytes":'
"""The first of this in an index is its own field: the only texts before it are its names."""
_KNOWN_MAX: Final = 256
_WINDOW_BYTES: Final = 1 << 20
"""How much is searched at once for a valid record."""
_OVERLAP_BYTES: Final = 64
"""More than a BATCH record has."""
_ZEROS_BYTES: Final = 1 << 20


@final
class Wish:
    """What to read: at most ``size_bytes`` from ``spot`` on. ``choice``: what is published to other addresses may be
    left out (None: nothing may). ``durable_bytes`` are those of the segment that is written to, ``content_bytes`` those
    of a closed one; -1: it is not that, or they are unknown. ``durable_lsn`` belongs to ``durable_bytes``.
    """

    __slots__ = ("choice", "content_bytes", "durable_bytes", "durable_lsn", "size_bytes", "spot")

    def __init__(
        self,
        spot: Spot,
        choice: AddressChoice | None,
        size_bytes: int,
        durable_bytes: int,
        durable_lsn: int,
        content_bytes: int,
    ) -> None:
        self.spot = spot
        self.choice = choice
        self.size_bytes = size_bytes
        self.durable_bytes = durable_bytes
        self.durable_lsn = durable_lsn
        self.content_bytes = content_bytes


class Fetcher:
    """``say`` gets a line for each damaged place."""

    def __init__(self, files: SegmentFiles, say: Callable[[str], None]) -> None:
        self._files = files
        self._say = say
        self._extents: OrderedDict[int, SegmentContent] = OrderedDict()
        self._plans: OrderedDict[tuple[int, str], Ranges | None] = OrderedDict()
        self._told: set[tuple[int, int]] = set()

    def fetch(self, wish: Wish) -> LogSlice:
        """Read a slice. Its failure stands in it."""
        spot = wish.spot
        key = "" if wish.choice is None else wish.choice.key
        try:
            return self._fetch(wish, key)
        except FileNotFoundError:
            gone = LogSlice(key, spot)
            gone.stay_unread(is_gone=True)
            return gone
        except OSError as error:
            failed = LogSlice(key, spot)
            failed.stay_unread(failure=f"{segment_name(spot.segment)}: {error.strerror or error}")
            return failed

    def _fetch(self, wish: Wish, key: str) -> LogSlice:
        spot = wish.spot
        extent = self._extent_of(wish)
        is_open = wish.durable_bytes >= 0
        last = Spot(spot.segment, extent.size_bytes) if is_open else Spot(spot.segment + 1, FILE_HEADER_BYTES)
        offset = spot.offset
        if spot.damaged_after >= 0:
            offset = self._behind_damage(spot, extent)
        begin, end = self._part_from(wish, offset, extent)
        if begin >= end:
            return LogSlice(key, spot, b"", begin, extent, last)
        asked_bytes = min(wish.size_bytes, end - begin)
        data = self._files.read(spot.segment, begin, asked_bytes)
        needed_bytes = _first_needs(data)
        if len(data) == asked_bytes < needed_bytes <= extent.size_bytes - begin:
            unread = LogSlice(key, spot)
            unread.stay_unread(bytes_needed=needed_bytes)
            return unread
        behind: Spot | None = None
        if len(data) < asked_bytes or begin + asked_bytes == extent.size_bytes:
            behind = last
        elif begin + asked_bytes == end:
            behind = Spot(spot.segment, end)
        durable_lsn = wish.durable_lsn if is_open and behind is last else 0
        part = LogSlice(key, spot, data, begin, extent, behind, durable_lsn)
        if needed_bytes > SLICE_BYTES:
            part.check_first(needed_bytes)
        return part

    # ---- segments --------------------------------------------------------------------------------

    def _extent_of(self, wish: Wish) -> SegmentContent:
        """Raises OSError."""
        if wish.durable_bytes >= 0:
            return SegmentContent(wish.durable_bytes, wish.durable_bytes)
        number = wish.spot.segment
        known = self._extents.get(number)
        if known is None:
            if len(self._extents) >= _KNOWN_MAX:
                self._extents.popitem(last=False)
            known = self._extents[number] = self._find_extent(number, wish.content_bytes)
        return known

    def _find_extent(self, number: int, content_bytes: int) -> SegmentContent:
        """From the journal, else from the index beside the segment, else from where its zeros begin."""
        if content_bytes < 0:
            text = sealed_text(self._files.beside(number, index_name))
            content_bytes = -1 if text is None else _size_in(text)
        size_bytes = self._files.size_of(number)
        if 0 <= content_bytes <= size_bytes:
            return SegmentContent(content_bytes, content_bytes)
        end = size_bytes
        while end > FILE_HEADER_BYTES:
            begin = max(end - _ZEROS_BYTES, FILE_HEADER_BYTES)
            data = self._files.read(number, begin, end - begin).rstrip(b"\0")
            if data:
                return SegmentContent(size_bytes, begin + len(data))
            end = begin
        return SegmentContent(size_bytes, FILE_HEADER_BYTES)

    def _part_from(self, wish: Wish, offset: int, extent: SegmentContent) -> tuple[int, int]:
        """The part to read next, at ``offset`` or behind it: begin and end, which are the same if nothing is left."""
        ranges = self._ranges(wish, extent)
        if ranges is None:
            return offset, extent.size_bytes
        place = bisect_right(ranges, offset, key=_end_of)
        if place == len(ranges):
            return extent.size_bytes, extent.size_bytes
        begin, end = ranges[place]
        return max(begin, offset), end

    def _ranges(self, wish: Wish, extent: SegmentContent) -> Ranges | None:
        choice, number = wish.choice, wish.spot.segment
        if choice is None or wish.durable_bytes >= 0:
            return None
        key = (number, choice.key)
        if key not in self._plans:
            if len(self._plans) >= _KNOWN_MAX:
                self._plans.popitem(last=False)
            places = self._files.beside(number, places_name)
            if not places:
                return None  # it may still be written
            self._plans[key] = ranges_in(places, choice, extent.content_end)
        return self._plans[key]

    # ---- damage ----------------------------------------------------------------------------------

    def _behind_damage(self, spot: Spot, extent: SegmentContent) -> int:
        """Where the next valid record begins; the end of the segment if there is none. Logs each damaged place once."""
        number, at = spot.segment, spot.offset - 1
        end = extent.content_end
        window = self._files.read(number, at, min(_WINDOW_BYTES, end - at))
        damage = Damage(segment_name(number), 0, "an invalid record", torn=False)
        found = behind_damage(damage, window, len(window), [], spot.damaged_after, 0, is_last=False, base=at)
        begin = at
        while found is None and begin + _WINDOW_BYTES < end:
            begin += _WINDOW_BYTES - _OVERLAP_BYTES
            found = next_batch(self._files.read(number, begin, min(_WINDOW_BYTES, end - begin)), 0)
        offset = extent.size_bytes if found is None else begin + found
        if (number, at) not in self._told and len(self._told) < _KNOWN_MAX:
            self._told.add((number, at))
            where = "behind the segment" if found is None else f"at byte {offset}"
            self._say(f"warning: {segment_name(number)} at byte {at}: DAMAGED: replays go on {where}")
        return offset


def _end_of(part: tuple[int, int]) -> int:
    return part[1]


def _size_in(index: bytes) -> int:
    """The size in the text of an index; -1 if it has none."""
    _, found, rest = index.partition(_SIZE)
    digits = rest.partition(b",")[0]
    return int(digits) if found and digits.isdigit() else -1


def _first_needs(data: bytes) -> int:
    """How many bytes the first record says it has; 0 if that need not be in memory as a whole."""
    if len(data) < RECORD_HEADER_BYTES:
        return 0
    _, length, _, kind = read_header(data, 0)
    return 0 if kind == records.GROUP else RECORD_HEADER_BYTES + length


# ---- log -------------------------------------------------------------------------------------------------------------
#
# The log of a running broker, for its replays: the journal's files and the retained ones, as one.


@final
class RetainedReplayLog(ReplayLog):
    """Reads in the threads of ``reader`` and ``tail_reader``: what is published now must not wait for a disk that reads
    what is old. ``say`` gets lines about damage.
    """

    def __init__(
        self,
        journal: Journal,
        files: SegmentFiles,
        large: LargeStore,
        reader: Committer,
        tail_reader: Committer,
        say: Callable[[str], None],
    ) -> None:
        self._journal = journal
        self._segments = LogSegments(journal.files, files)
        self._large = large
        self._readers = reader, tail_reader
        self._fetchers = Fetcher(files, say), Fetcher(files, say)
        """One for each thread."""
        self._arrived: deque[Slice] = deque()

    @property
    def durable_lsn(self) -> int:
        return self._journal.durable_lsn

    @property
    def last_lsn(self) -> int:
        return self._journal.records.last_lsn

    def first_lsn(self, segment: int = 0) -> int:
        return self._segments.first_lsn(segment)

    def end(self) -> Place:
        return self._segments.end

    def beginning(self) -> Spot:
        return Spot(self._segments.first, FILE_HEADER_BYTES)

    def after(self, lsn: int) -> Spot | None:
        if lsn >= self._journal.durable_lsn:
            return Spot(*self._segments.end)
        found = self._segments.with_lsn(lsn + 1)
        return None if found is None else Spot(*found)

    def since(self, time_ms: int) -> Spot:
        return Spot(self._segments.with_time(time_ms), FILE_HEADER_BYTES)

    def request(self, spot: Spot, choice: AddressChoice | None, size_bytes: int, *, follows: bool = False) -> None:
        number, durable_bytes = self._segments.end
        if spot.segment == number:
            wish = Wish(spot, choice, size_bytes, durable_bytes, self._journal.durable_lsn, -1)
        else:
            wish = Wish(spot, choice, size_bytes, -1, 0, self._segments.content_bytes(spot.segment))
        self._readers[follows].later(partial(self._fetch, self._fetchers[follows], wish))

    def _fetch(self, fetcher: Fetcher, wish: Wish) -> None:
        """Runs in a reader's thread."""
        self._arrived.append(fetcher.fetch(wish))

    def arrivals(self) -> list[Slice]:
        arrived: list[Slice] = []
        while self._arrived:
            arrived.append(self._arrived.popleft())
        return arrived

    def body_of(self, message: Message) -> LargeBody | None:
        body = message.body
        assert isinstance(body, LargeBody)
        return self._large.lookup.held(body)

    def session_number(self, origin: int) -> int:
        return self._journal.records.audit.known_number(origin)
