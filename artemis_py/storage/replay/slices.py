"""A slice of a segment: finds the messages in its records, a few at a time, and decodes those that are asked for.

A group is read as if its records stood alone, so that it need not be in memory as a whole; below the durable end of the
log it is complete. Records that a reader of messages does not need are checked like all others, and passed over.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.replay_log import AddressChoice, Logged, Slice, Spot
from artemis_py.storage.format import codec
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
