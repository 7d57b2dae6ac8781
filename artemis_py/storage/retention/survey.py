"""Surveys a closed segment for readers of the log: which messages it mentions, how many messages its queues gained and
lost, and where each address has messages.

It is computed from the bytes of a finished segment, a little at a time and outside the broker's turns. It is optional:
without it, a reader reads the whole segment. docs/journal-format.md describes the fields ("Indexes") and the file
(``places``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, Final

from artemis_py.message import SENT
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.address_index import Places, encode_places
from artemis_py.storage.format.records import (
    FILE_HEADER_BYTES,
    RECORD_HEADER_BYTES,
    CodecError,
    FileHeader,
    is_intact,
    read_header,
)
from artemis_py.storage.format.segment_index import ADDRESSES_MAX

IDS_MAX: Final = 32
"""The maximum number of message-id spans in an index; the closest ones are merged."""
QUEUES_MAX: Final = 1000
"""With more queues than this an index has no counts per queue."""
SEGMENT_BYTES_MAX: Final = 1 << 32
_PAIRS_MAX: Final = 4096
_SPREAD_MAX: Final = 4
"""Ids of one record that fill less than one part in this many of their span are listed singly."""
_MESSAGE_BYTES: Final = records.MESSAGE_FIELDS.size_bytes
_QUEUE_BYTES: Final = records.QUEUE_STATE.size_bytes
_READ: Final = ("id", "lsn", "flags", "queues", "address_bytes", "head_bytes", "queue")
_MESSAGE: Final = records.MESSAGE_FIELDS.only(*_READ)
_SINGLE: Final = records.MESSAGE_FIELDS.then(records.QUEUE_STATE).only(*_READ)
"""With one queue, as most messages have."""
_QUEUE: Final = records.QUEUE_STATE.only("queue")
_IDS: Final = records.IDS_FIELDS.struct
_SETTLED: Final = records.SETTLED_FIELDS.struct
_PAGE_SETTLED: Final = records.PAGE_SETTLED_FIELDS.only("queue", "reason", "count")
_PAGE_SETTLED_BYTES: Final = records.PAGE_SETTLED_FIELDS.size_bytes
_ATTEMPTED: Final = records.ATTEMPTED_FIELDS.only("message_id")
_COPY: Final = b"_AMQ_ORIG_"
"""What the header block of a copy made by the broker contains; clients may write it, too."""
_SENT: Final = SENT << records.PROVENANCE_SHIFT
_ORIGINAL: Final = b"_AMQ_ORIG_MESSAGE_ID:"
_ID_MAX: Final = (1 << 63) - 1
_ID_DIGITS_MAX: Final = 19
"""Python refuses to parse very long numbers."""
ADDED, ACKED, REPLACED, EXPIRED, KILLED = range(5)
"""The indexes of the counts per queue."""
_COUNTED: Final = tuple(
    {"acked": ACKED, "moved": ACKED, "replaced": REPLACED, "superseded": REPLACED, "expired": EXPIRED}.get(
        reason, KILLED
    )
    for reason in records.REASONS
)


class Survey:
    """Reads the first ``size_bytes`` bytes of a segment. Raises CodecError if they are damaged."""

    def __init__(self, data: bytes, size_bytes: int) -> None:
        if not FILE_HEADER_BYTES <= size_bytes <= min(len(data), SEGMENT_BYTES_MAX):
            raise CodecError(f"a segment of {len(data)} bytes, of which {size_bytes} are valid")
        self._header: FileHeader = records.decode_file_header(data)
        self._data = data
        self._view = memoryview(data)
        self._size_bytes = size_bytes
        self._offset = FILE_HEADER_BYTES
        self._last_lsn = self._header.first_lsn - 1
        self._origin = 0
        """The offset of the ORIGIN record with the next message's sender; 0: none."""
        self._batches = array("I")
        self._runs: dict[bytes, array[int]] = {}
        self._copies = array("I")
        self._copy_count = 0
        self._messages: dict[bytes, int] = {}
        self._pairs: list[tuple[int, int]] = []
        self._block = b""
        """Address and header block of the previous message: in a run they are equal and are parsed once."""
        self._block_address = b""
        self._block_runs = array("I")
        self._block_queue = -1
        self._block_flags = 0
        self._block_count = 0
        """How many messages with the same block and queue are not yet counted."""
        self._counts: dict[int, list[int]] = {}

    def step(self, records_max: int) -> bool:
        """Process this many records; returns whether there are more. Raises CodecError."""
        view, end = self._view, self._size_bytes - RECORD_HEADER_BYTES
        for _ in range(records_max):
            offset = self._offset
            if offset > end:
                if offset != self._size_bytes:
                    raise CodecError(f"a truncated record at byte {offset}")
                self._count_block()
                return False
            checksum, length, lsn, kind = read_header(view, offset)
            behind = offset + RECORD_HEADER_BYTES + length
            if behind > self._size_bytes or not is_intact(view, offset, behind, checksum):
                raise CodecError(f"an incomplete record at byte {offset}")
            self._last_lsn = max(self._last_lsn, lsn)
            if kind == records.BATCH:
                self._batches.append(offset)
                self._origin = 0
            elif kind == records.ORIGIN:
                self._origin = offset
            elif kind == records.GROUP:
                self._take_group(offset, behind)
            elif kind != records.MESSAGE or not self._goes_on(lsn, offset, behind):
                self._take(kind, lsn, offset + RECORD_HEADER_BYTES, behind, (offset, behind, self._origin))
            self._offset = behind
        return True

    def _goes_on(self, lsn: int, offset: int, behind: int) -> bool:
        """Is this message like the one directly before it? Most are, so this determines the cost of a survey."""
        runs = self._block_runs
        if not runs or runs[-2] != offset:  # another sender is named by a record between them
            return False
        place = offset + RECORD_HEADER_BYTES
        number, published_lsn, flags, queues, address_bytes, head_bytes, queue = _SINGLE.unpack_from(self._view, place)
        place += _MESSAGE_BYTES + _QUEUE_BYTES
        if (
            queues != 1
            or published_lsn != lsn
            or queue != self._block_queue
            or flags != self._block_flags
            or self._data[place : place + address_bytes + head_bytes] != self._block
            or self._pairs[-1][1] + 1 != number
        ):
            return False
        runs[-2] = behind
        self._pairs[-1] = self._pairs[-1][0], number
        self._block_count += 1
        return True

    def _take_group(self, offset: int, behind: int) -> None:
        """Process a GROUP: its records have their own places, but a reader takes it as a whole."""
        self._origin = 0
        place = offset + RECORD_HEADER_BYTES
        while place < behind:
            _, length, lsn, kind = read_header(self._view, place)
            following = place + RECORD_HEADER_BYTES + length
            if following > behind:
                raise CodecError(f"a group with a truncated record at byte {place}")
            self._last_lsn = max(self._last_lsn, lsn)
            self._take(kind, lsn, place + RECORD_HEADER_BYTES, following, (offset, behind, 0))
            place = following

    def _take(self, kind: int, lsn: int, begin: int, end: int, run: tuple[int, int, int]) -> None:
        """Process one record with the payload from ``begin`` to ``end``, and the part of the file that its reader
        needs.
        """
        if kind == records.MESSAGE:
            self._take_message(lsn, begin, end, run)
        elif kind == records.SETTLED:
            queue, reason, count = _SETTLED.unpack_from(self._view, begin)
            self._settle(queue, reason, count)
            self._mention(codec.decode_numbers(self._view, begin + _SETTLED.size, count))
        elif kind in (records.DELIVERED, records.DUE):
            _, count = _IDS.unpack_from(self._view, begin)
            self._mention(codec.decode_numbers(self._view, begin + _IDS.size, count))
        elif kind == records.ATTEMPTED:
            (message,) = _ATTEMPTED.unpack_from(self._view, begin)
            self._mention((message,))
        elif kind == records.PAGE_SETTLED:
            queue, reason, count = _PAGE_SETTLED.unpack_from(self._view, begin)
            self._settle(queue, reason, count)
            ids = begin + _PAGE_SETTLED_BYTES + codec.NUMBER_BYTES * count
            self._mention(codec.decode_numbers(self._view, ids, count))
        elif kind == records.PAGE_ATTEMPTED:
            told = codec.decode_page_attempted(self._data[begin:end])
            if told.message_id:
                self._mention((told.message_id,))
        elif kind == records.PAGE_PURGED:
            purged = codec.decode_page_purged(self._data[begin:end])
            self._settle(purged.queue_id, records.REASONS.index(purged.reason), purged.count)

    def _take_message(self, lsn: int, begin: int, end: int, run: tuple[int, int, int]) -> None:
        number, published_lsn, flags, queues, address_bytes, head_bytes = _MESSAGE.unpack_from(self._view, begin)
        place = begin + _MESSAGE_BYTES
        if published_lsn != lsn:  # a copy: made by compaction, or for queues that got the message later
            if flags & records.FLAG_RECALLED:
                self._mention((number,))
                for _ in range(queues):
                    self._of(_QUEUE.unpack_from(self._view, place)[0])[ADDED] += 1
                    place += _QUEUE_BYTES
            return
        queue = -1
        self._count_block()
        for _ in range(queues):
            (queue,) = _QUEUE.unpack_from(self._view, place)
            self._of(queue)[ADDED] += 1
            place += _QUEUE_BYTES
        head = place + address_bytes
        address = self._data[place:head]
        if head + head_bytes > end:
            raise CodecError(f"a message record that is too short at byte {begin}")
        self._mention((number,))
        self._messages[address] = self._messages.get(address, 0) + 1
        self._block_address = address
        runs = self._runs.get(address)
        if runs is None:
            runs = self._runs[address] = array("I")
        _add(runs, run)
        is_sent = flags & records.PROVENANCE_MASK == _SENT
        is_copy = not is_sent and self._data.find(_COPY, head, head + head_bytes) >= 0
        if is_copy:
            self._copy_count += 1
            self._mention_original(self._data[head : head + head_bytes])
            _add(self._copies, run)
        is_plain = queues == 1 and not is_copy and run[0] + RECORD_HEADER_BYTES == begin
        self._block = self._data[place : head + head_bytes]
        self._block_runs = runs if is_plain else array("I")
        self._block_queue, self._block_flags = queue, flags

    def _mention_original(self, block: bytes) -> None:
        """Note the original that a copy refers to. In older logs a client may have written anything there."""
        _, found, rest = block.partition(_ORIGINAL)
        text = rest.partition(b"\n")[0]
        digits = text.lstrip(b"0") or b"0"
        if found and text.isdigit() and len(digits) <= _ID_DIGITS_MAX and int(digits) <= _ID_MAX:
            self._mention((int(digits),))

    def _count_block(self) -> None:
        """Count the messages that equal the previous one."""
        count, self._block_count = self._block_count, 0
        if count:
            self._of(self._block_queue)[ADDED] += count
            self._messages[self._block_address] += count

    def _settle(self, queue: int, reason: int, count: int) -> None:
        self._of(queue)[_COUNTED[min(reason, len(_COUNTED) - 1)]] += count

    def _of(self, queue: int) -> list[int]:
        counts = self._counts.get(queue)
        if counts is None:
            counts = self._counts[queue] = [0] * 5
        return counts

    def _mention(self, ids: tuple[int, ...]) -> None:
        if not ids:
            return
        low, high = min(ids), max(ids)
        if high - low < _SPREAD_MAX * len(ids):
            pairs = self._pairs
            if pairs and pairs[-1][1] + 1 == low:
                pairs[-1] = pairs[-1][0], high
            else:
                pairs.append((low, high))
        else:
            self._pairs += [(one, one) for one in ids]
        if len(self._pairs) > _PAIRS_MAX:
            self._pairs = spans(self._pairs, _PAIRS_MAX // 2)

    # ---- what was found --------------------------------------------------------------------------

    def fields(self) -> dict[str, Any]:
        """Additional fields of the index: spans of ids, counts per queue (None if there are too many), and how many
        messages are copies made by the broker.
        """
        counts = {str(queue): counts for queue, counts in sorted(self._counts.items())}
        return {
            "ids": [list(span) for span in spans(self._pairs, IDS_MAX)],
            "counts": counts if len(counts) <= QUEUES_MAX else None,
            "copies": self._copy_count,
        }

    def places(self) -> bytes:
        """The file of places."""
        runs = {address.decode(): (self._messages[address], runs) for address, runs in self._runs.items()}
        told = runs if len(runs) <= ADDRESSES_MAX else None
        header = self._header
        of = Places(header.number, header.first_lsn, self._last_lsn, self._size_bytes)
        return encode_places(of, self._batches, told, self._copies)


def _add(runs: array[int], run: tuple[int, int, int]) -> None:
    """Add a run, merged with the last one if it continues it under the same sender; a group is one run."""
    begin, end, origin = run
    if runs and runs[-1] == origin and runs[-2] in (begin, end):
        runs[-2] = end
    else:
        runs.extend(run)


def spans(pairs: Iterable[tuple[int, int]], spans_max: int) -> list[tuple[int, int]]:
    """Ordered, disjoint spans of numbers, both ends included, that cover all of these. If there are too many, those
    with the smallest gaps are merged.
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    if len(merged) <= spans_max:
        return merged
    gaps = sorted(range(1, len(merged)), key=lambda place: merged[place - 1][1] - merged[place][0])
    cuts = sorted(gaps[: spans_max - 1])
    return [
        (merged[first][0], merged[behind - 1][1])
        for first, behind in zip([0, *cuts], [*cuts, len(merged)], strict=True)
    ]
