"""The byte layout of journal files. docs/journal-format.md describes it for other readers.

All numbers are little-endian. A file begins with a header of 64 bytes::

    0   8  magic "ARTEMISJ"
    8   2  format version (1)
    10  2  kind (1: journal segment)
    12  4  reserved, 0
    16  8  segment number
    24  8  lsn of the first record
    32  8  time of creation, epoch ms
    40  8  lsn of the last record in the previous file, ignoring BATCH records (0: not recorded)
    48  8  size in bytes at creation (0: not recorded)
    56  4  reserved, 0
    60  4  CRC-32 of bytes 0 to 60

Records follow without gaps; the rest of the file is zeros. A record::

    0   4  CRC-32 of everything after these four bytes
    4   4  length of the payload in bytes
    8   8  lsn
    16  1  type
    17     payload

A length of 0 with a CRC of 0 is the end: no record has both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from struct import Struct, error
from typing import Any, Final
from zlib import crc32

from artemis_py.errors import ArtemisError
from artemis_py.message import Account, Head, LargeBody, Message
from artemis_py.records import Depth

MAGIC: Final = b"ARTEMISJ"
FORMAT_VERSION: Final = 1
KIND_JOURNAL: Final = 1
FILE_HEADER_BYTES: Final = 64
RECORD_HEADER_BYTES: Final = 17

BATCH: Final = 1
MESSAGE: Final = 2
SETTLED: Final = 3
ATTEMPTED: Final = 4
DUE: Final = 5
ADDRESS: Final = 6
QUEUE: Final = 7
QUEUE_DELETED: Final = 8
DUPLICATE: Final = 9
GROUP: Final = 10
DELIVERED: Final = 11
DUPLICATES_CLEARED: Final = 12
PAGE_OPENED: Final = 13
PAGE_GREW: Final = 14
PAGE_SETTLED: Final = 15
PAGE_PURGED: Final = 16
PAGE_ATTEMPTED: Final = 17
PAGE_DROPPED: Final = 18
PAGE_PLACES: Final = 19
PAGED: Final = 20
"""Only in page files."""
SESSION: Final = 21
CONSUMER: Final = 22
ORIGIN: Final = 23
REFUSED: Final = 24
CURSOR: Final = 25
DEPTHS: Final = 26
BROKER: Final = 27
TRANSACTION: Final = 28
"""Has no payload: it marks its GROUP as a client's transaction."""
CONFIGURED: Final = 29

RECORD_NAMES: Final = {
    BATCH: "batch", MESSAGE: "message", SETTLED: "settled", ATTEMPTED: "attempted", DUE: "due", ADDRESS: "address",
    QUEUE: "queue", QUEUE_DELETED: "queue-deleted", DUPLICATE: "duplicate-id", GROUP: "group", DELIVERED: "delivered",
    DUPLICATES_CLEARED: "duplicate-ids-cleared", PAGE_OPENED: "page-opened", PAGE_GREW: "page-grew",
    PAGE_SETTLED: "page-settled", PAGE_PURGED: "page-purged", PAGE_ATTEMPTED: "page-attempted",
    PAGE_DROPPED: "page-dropped", PAGE_PLACES: "page-places", PAGED: "paged",
    SESSION: "session", CONSUMER: "consumer", ORIGIN: "origin", REFUSED: "refused", DEPTHS: "depths",
    BROKER: "broker", CURSOR: "cursor", TRANSACTION: "transaction",
    CONFIGURED: "configured",
}  # fmt: skip
FLAG_TRANSIENT: Final = 1
"""For a message in a page: not persistent, so lost in a restart."""
FLAG_PAGED: Final = 2
"""For a message in the journal: it lives in a page and is here only for readers of the retained log."""
FLAG_LARGE: Final = 4
"""The body is in its own file."""
FLAG_RECALLED: Final = 8
"""The message was put on these queues long after its publication: they are added to those that have it. Any other copy
names all queues.
"""
REASONS: Final[tuple[str, ...]] = (
    "acked", "replaced", "expired", "killed", "superseded", "dead", "cancelled", "purged", "deleted", "abandoned",
    "damaged", "moved",
)  # fmt: skip
"""Why a queue is done with a message; the log stores the index in this table. replaced: a ring was full; superseded: a
newer value arrived; dead: no delivery attempts left; cancelled: an operator sent it to the dead letters (in older logs,
a consumer or an operator discarded it); purged: an operator emptied the queue; deleted: the queue was deleted;
abandoned: the last consumer left a queue with purge-on-no-consumers; damaged: its record cannot be read; moved: an
operator moved it, and a copy stands elsewhere. Older logs use killed for all from dead on.
"""
CAUSES: Final[tuple[str, ...]] = ("", "nacked", "aborted", "lost", "lapsed")
"""Why a delivery failed, stored in the same way: unknown (older logs); NACK; its transaction was aborted; its
connection or session ended.
"""

_FILE_HEADER: Final = Struct("<8sHHIQQQQQ4x")
_U32: Final = Struct("<I")
_RECORD: Final = Struct("<IQB")
_CHECKED_RECORD: Final = Struct("<IIQB")
_MESSAGE: Final = Struct("<QQQQBBBBHHI")
_PUBLISHED: Final = Struct("<IQBQQQQBBBBHHI")
"""A record's header after the checksum, and the fixed part of a MESSAGE payload, in one."""
_STATE: Final = Struct("<IHQq")
ATTEMPTS_MAX: Final = 65535
"""Failed deliveries are recorded up to this number. The broker goes on counting until it is restarted."""
_LARGE: Final = Struct("<QQ")
_CHECKSUM: Final = Struct("<L")
_SETTLED: Final = Struct("<IBI")
_ATTEMPTED: Final = Struct("<IQHQ")
_IDS: Final = Struct("<II")
_NUMBER: Final = Struct("<Q")
_CAUSE: Final = Struct("<QB")
_DEPTH: Final = Struct("<IQQII")
_BATCH: Final = Struct("<QQQQ")
BATCH_PAYLOAD_BYTES: Final = _BATCH.size
_NOWHERE: Final = Account()
"""A placeholder for the address' account until the broker recovers the message."""
_ROUTING_CODES: Final = {None: 0, "ANYCAST": 1, "MULTICAST": 2}
_ROUTING_TYPES: Final = (None, "ANYCAST", "MULTICAST")


class CodecError(ArtemisError):
    """Bytes do not follow the format."""


class VersionError(CodecError):
    """A file has another format version: nothing after its header can be read."""


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The header at the beginning of a file."""

    kind: int
    number: int
    first_lsn: int
    created_ms: int
    before_lsn: int = 0
    """The last lsn of the previous file, ignoring BATCH records; 0: not recorded."""
    made_bytes: int = 0
    """The size at creation, below which the file never shrinks; 0: not recorded."""


def encode_file_header(header: FileHeader) -> bytes:
    """The 64 bytes at the beginning of a file."""
    fields = _FILE_HEADER.pack(
        MAGIC,
        FORMAT_VERSION,
        header.kind,
        0,
        header.number,
        header.first_lsn,
        header.created_ms,
        header.before_lsn,
        header.made_bytes,
    )
    return fields + _U32.pack(crc32(fields))


def decode_file_header(data: bytes) -> FileHeader:
    """Decode a header. Raises CodecError unless it is of this format version."""
    if len(data) < FILE_HEADER_BYTES:
        raise CodecError(f"the header has {len(data)} bytes instead of {FILE_HEADER_BYTES}")
    fields = data[: FILE_HEADER_BYTES - 4]
    magic, version, kind, _, number, first_lsn, created_ms, before_lsn, made_bytes = _FILE_HEADER.unpack(fields)
    if magic != MAGIC:
        raise CodecError("not a journal file: the first eight bytes are not ARTEMISJ")
    if _U32.unpack_from(data, FILE_HEADER_BYTES - 4)[0] != crc32(fields):
        raise CodecError("the file header is damaged: its checksum does not match")
    if version != FORMAT_VERSION:
        raise VersionError(f"format version {version}; this program reads version {FORMAT_VERSION}")
    return FileHeader(kind, number, first_lsn, created_ms, before_lsn, made_bytes)


def is_blank(data: bytes) -> bool:
    """Is a file empty after its header?"""
    return not any(data[FILE_HEADER_BYTES:])


def encode_record(type_code: int, lsn: int, payload: bytes) -> bytes:
    """A record with its checksum."""
    body = _RECORD.pack(len(payload), lsn, type_code) + payload
    return _U32.pack(crc32(body)) + body


@dataclass(slots=True)
class Record:
    """A record as read: its position and its content."""

    type_code: int
    lsn: int
    payload: bytes
    offset: int

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.offset + RECORD_HEADER_BYTES + len(self.payload)


def decode_record(data: bytes | memoryview, offset: int) -> Record | None:
    """The record at ``offset``; None at the end (zeros or nothing). Raises CodecError for anything else."""
    if len(data) - offset < RECORD_HEADER_BYTES:
        if any(data[offset:]):
            raise CodecError("a truncated record header")
        return None
    checksum, length, lsn, type_code = _CHECKED_RECORD.unpack_from(data, offset)
    end = offset + RECORD_HEADER_BYTES + length
    if not checksum and not length and not lsn and not type_code:
        return None
    if end > len(data):
        raise CodecError(
            f"a record of {length} bytes where the file has only {len(data) - offset - RECORD_HEADER_BYTES}"
        )
    if crc32(data[offset + 4 : end]) != checksum:
        raise CodecError("a record with a wrong checksum")
    return Record(type_code, lsn, bytes(data[offset + RECORD_HEADER_BYTES : end]), offset)


def peek_record(data: bytes, offset: int) -> tuple[int, int, int]:
    """The unchecked header of a record: the length of its payload, its lsn, its type."""
    length, lsn, type_code = _RECORD.unpack_from(data, offset + 4)
    return length, lsn, type_code


# ---- payloads ------------------------------------------------------------------------------------


@dataclass(slots=True)
class QueueState:
    """The special state of a message in one queue: its order key (0: publication order; below 0: it became due and is
    at the head), failed deliveries, and when it is due (0: now).
    """

    order: int = 0
    attempts: int = 0
    due_ms: int = 0


class Kept:
    """A message that a durable queue still needs, as the journal knows it."""

    __slots__ = ("details", "flags", "lsn", "message", "queue_ids")

    def __init__(self, message: Message, lsn: int, queue_ids: list[int], flags: int = 0) -> None:
        self.message = message
        self.lsn = lsn
        """The lsn of its publication; copies made by compaction keep it."""
        self.queue_ids = queue_ids
        """The messages of a run may share a list with a single queue: only longer lists are ever changed."""
        self.flags = flags
        self.details: dict[int, QueueState] | None = None

    def detail(self, queue_id: int) -> QueueState:
        """The state in one queue, to be changed."""
        if self.details is None:
            self.details = {}
        return self.details.setdefault(queue_id, QueueState())


_PLAIN: Final = QueueState()


def encode_published(published: list[Kept]) -> list[bytes]:
    """The records of messages just published, all to the same single queue and without special state.

    The same bytes as from ``encode_record`` and ``encode_message``, in two parts each (checksum and rest), but encoded
    together: most messages of a run share a head.
    """
    place = _STATE.pack(published[0].queue_ids[0], 0, 0, 0)
    pack, checksum = _PUBLISHED.pack, _U32.pack
    parts: list[bytes] = []
    last_head: Head | None = None
    middle = b""
    middle_size = priority = sized = routing = address_size = head_size = 0
    for kept in published:
        message = kept.message
        head, body, lsn = message.head, message.body, kept.lsn
        if head is not last_head:
            last_head = head
            address = head.address.encode()
            middle = b"%b%b%b" % (place, address, head.block)
            middle_size = _MESSAGE.size + len(middle)
            priority, sized, routing = head.priority, head.sized, _ROUTING_CODES[head.routing_type]
            address_size, head_size = len(address), head.size_bytes
        fields = pack(
            middle_size + len(body), lsn, MESSAGE, message.id, message.timestamp_ms, message.expires_ms, lsn,
            priority, sized, routing, 0, 1, address_size, head_size,
        )  # fmt: skip
        record = b"%b%b%b" % (fields, middle, body)  # type: ignore[str-format]  # a large body never comes in a run
        parts += (checksum(crc32(record)), record)
    return parts


def encode_message(kept: Kept, place: int = 0) -> bytes:
    """Payload of a MESSAGE record; ``place``: its place in its address' pages, if it lives there."""
    message = kept.message
    head = message.head
    address = head.address.encode()
    if kept.details is None:
        states = _new_states(kept.queue_ids, place)
    else:
        details = [(queue_id, kept.details.get(queue_id, _PLAIN)) for queue_id in kept.queue_ids]
        states = b"".join(
            [
                _STATE.pack(queue, min(one.attempts, ATTEMPTS_MAX), one.due_ms, one.order or place)
                for queue, one in details
            ]
        )
    flags = kept.flags
    body = message.body
    if isinstance(body, LargeBody):
        flags |= FLAG_LARGE
        body = _encode_large(body)
    fields = _MESSAGE.pack(
        message.id,
        message.timestamp_ms,
        message.expires_ms,
        kept.lsn,
        head.priority,
        head.sized,
        _ROUTING_CODES[head.routing_type],
        flags,
        len(kept.queue_ids),
        len(address),
        head.size_bytes,
    )
    return b"%b%b%b%b%b" % (fields, states, address, head.block, body)


_SEVERAL: Final = 16
_last_states: list[tuple[list[int], int, bytes]] = []
"""Queue numbers, place and encoded states of the last message to many queues: the next one of a batch goes to the
same.
"""


def _new_states(queue_ids: list[int], place: int) -> bytes:
    """The states of a message with no special state in its queues."""
    if len(queue_ids) < _SEVERAL:
        return b"".join([_STATE.pack(queue_id, 0, 0, place) for queue_id in queue_ids])
    if _last_states:
        last_ids, last_place, last_states = _last_states[0]
        if last_place == place and last_ids == queue_ids:
            return last_states
    states = b"".join([_STATE.pack(queue_id, 0, 0, place) for queue_id in queue_ids])
    _last_states[:] = [(queue_ids.copy(), place, states)]
    return states


_heads: dict[tuple[bytes, int, int, int, int, int], Head] = {}
_HEADS_MAX: Final = 4096
_COUNTS_TRIED_MAX: Final = 100


def _head_of(key: tuple[bytes, int, int, int, int, int]) -> Head:
    """The head of a decoded message; messages with equal headers share one, as when they were sent. The key: address
    and block as in the record, the size of the address, priority, sized, code of the routing type, and whether the
    message is transient.
    """
    text, address_size, priority, sized, routing, transient = key
    address, block = text[:address_size].decode(), text[address_size:]
    if len(_heads) >= _HEADS_MAX:
        _heads.clear()
    head = _heads[key] = Head(block, address, priority, not transient, bool(sized), _ROUTING_TYPES[routing])
    return head


def decode_message(payload: bytes, *, in_page: bool = False) -> Kept:
    """Decode a message. Raises CodecError if the payload is truncated. ``in_page``: the order key of its first queue is
    the lsn of its publication.
    """
    try:
        fields = _MESSAGE.unpack_from(payload)
        message_id, timestamp_ms, expires_ms, lsn, priority, sized, routing, flags, count, address_size, head_size = (
            fields
        )
        states = [_STATE.unpack_from(payload, _MESSAGE.size + place * _STATE.size) for place in range(count)]
    except error as problem:
        raise CodecError(f"a message record that is too short: {problem}") from None
    start = _MESSAGE.size + count * _STATE.size
    end = start + address_size + head_size
    key = (payload[start:end], address_size, priority, sized, routing, flags & FLAG_TRANSIENT)
    head = _heads.get(key) or _head_of(key)
    body: bytes | LargeBody = payload[end:]
    if flags & FLAG_LARGE:
        body = _large_body(payload, end)
    message = Message(head, body, message_id, timestamp_ms, expires_ms, _NOWHERE, 0)
    kept = Kept(message, lsn, [state[0] for state in states], flags)
    if in_page and states:
        message.lsn = states[0][3]
    for queue_id, attempts, due_ms, order in states:
        if attempts or due_ms or (order and not in_page):
            detail = kept.detail(queue_id)
            detail.attempts, detail.due_ms, detail.order = attempts, due_ms, order
    return kept


def readings_of_message(payload: bytes) -> list[tuple[bytes, list[int]]]:
    """The addresses and queue ids that a damaged message record may have: first as it reads, then with other counts of
    queues. Raises CodecError if it is too short for any.
    """
    try:
        fields = _MESSAGE.unpack_from(payload)
    except error as problem:
        raise CodecError(f"a message record that is too short: {problem}") from None
    said, address_size = fields[8], fields[9]
    readings: list[tuple[bytes, list[int]]] = []
    for count in [said, *range(min((len(payload) - _MESSAGE.size) // _STATE.size, _COUNTS_TRIED_MAX) + 1)]:
        start = _MESSAGE.size + count * _STATE.size
        if start <= len(payload):
            queue_ids = [_STATE.unpack_from(payload, _MESSAGE.size + at * _STATE.size)[0] for at in range(count)]
            readings.append((payload[start : start + address_size], queue_ids))
    return readings


def _encode_large(body: LargeBody) -> bytes:
    """The reference to a body in its own file: the file's number, its length, and its checksum if known."""
    reference = _LARGE.pack(body.number, body.size_bytes)
    return reference if body.checksum < 0 else reference + _CHECKSUM.pack(body.checksum)


def _large_body(payload: bytes, position: int) -> LargeBody:
    try:
        number, size_bytes = _LARGE.unpack_from(payload, position)
        has_checksum = len(payload) > position + _LARGE.size  # records of older brokers end here
        checksum = _CHECKSUM.unpack_from(payload, position + _LARGE.size)[0] if has_checksum else -1
    except error as problem:
        raise CodecError(f"a reference to a large body that is too short: {problem}") from None
    return LargeBody(number, size_bytes, None, checksum)


def encode_settled(queue_id: int, reason: str, message_ids: list[int], consumer: int = 0) -> bytes:
    """Payload of a SETTLED record: a queue is done with these messages, because of a consumer (0: none)."""
    count = len(message_ids)
    fields = _SETTLED.pack(queue_id, REASONS.index(reason), count)
    return fields + Struct(f"<{count}Q").pack(*message_ids) + encode_behind(consumer)


def decode_settled(payload: bytes) -> tuple[int, str, tuple[int, ...], int]:
    """Queue id, reason, message ids, consumer (0: none or not recorded)."""
    queue_id, reason, count = _SETTLED.unpack_from(payload)
    end = _SETTLED.size + 8 * count
    return queue_id, REASONS[reason], _numbers(payload, _SETTLED.size, count), decode_behind(payload, end)


def encode_behind(number: int) -> bytes:
    """The optional end of a payload: a consumer's number, or nothing for 0."""
    return _NUMBER.pack(number) if number else b""


def decode_behind(payload: bytes, end: int) -> int:
    """The optional number at the end of a payload; 0 if it is missing."""
    number: int = _NUMBER.unpack_from(payload, end)[0] if len(payload) > end else 0
    return number


def _numbers(payload: bytes, offset: int, count: int) -> tuple[int, ...]:
    return Struct(f"<{count}Q").unpack_from(payload, offset)


def encode_attempted(
    queue_id: int, message_id: int, attempts: int, due_ms: int, consumer: int = 0, cause: str = ""
) -> bytes:
    """Payload of an ATTEMPTED record: failed deliveries so far, when the next may follow (0: at once), and whose
    delivery failed and why (0: not recorded).
    """
    return _ATTEMPTED.pack(queue_id, message_id, min(attempts, ATTEMPTS_MAX), due_ms) + encode_cause(consumer, cause)


def decode_attempted(payload: bytes) -> tuple[int, int, int, int, int, str]:
    """Queue id, message id, attempts, due time, consumer, cause."""
    queue_id, message_id, attempts, due_ms = _ATTEMPTED.unpack_from(payload)
    return queue_id, message_id, attempts, due_ms, *decode_cause(payload, _ATTEMPTED.size)


def encode_cause(consumer: int, cause: str) -> bytes:
    """The optional end of a record of a failed delivery: consumer and cause; nothing for consumer 0."""
    return _CAUSE.pack(consumer, CAUSES.index(cause)) if consumer else b""


def decode_cause(payload: bytes, end: int) -> tuple[int, str]:
    """The optional consumer and cause at the end of a payload; 0 and unknown if missing."""
    if len(payload) <= end:
        return 0, CAUSES[0]
    consumer, cause = _CAUSE.unpack_from(payload, end)
    return consumer, CAUSES[cause]


def encode_ids(queue_id: int, message_ids: list[int], consumer: int = 0) -> bytes:
    """Payload of a DUE or DELIVERED record: message ids of one queue, in order, and their consumer (0: not
    recorded).
    """
    count = len(message_ids)
    return _IDS.pack(queue_id, count) + Struct(f"<{count}Q").pack(*message_ids) + encode_behind(consumer)


def decode_ids(payload: bytes) -> tuple[int, tuple[int, ...], int]:
    """Queue id, message ids, consumer."""
    queue_id, count = _IDS.unpack_from(payload)
    return queue_id, _numbers(payload, _IDS.size, count), decode_behind(payload, _IDS.size + 8 * count)


def encode_origin(session: int) -> bytes:
    """Payload of an ORIGIN record: the sender of the following messages (0: the broker)."""
    return _NUMBER.pack(session)


def decode_origin(payload: bytes) -> int:
    """The session."""
    session: int = _NUMBER.unpack_from(payload)[0]
    return session


def encode_depths(depths: list[Depth]) -> bytes:
    """Payload of a DEPTHS record."""
    return b"".join(
        [
            _DEPTH.pack(one.queue_id, one.count, one.size_bytes, one.delivering_count, one.scheduled_count)
            for one in depths
        ]
    )


def decode_depths(payload: bytes) -> list[Depth]:
    """The content of each queue that was not empty."""
    return [Depth(*fields) for fields in _DEPTH.iter_unpack(payload)]


@dataclass(slots=True, init=False)
class Batch:
    """The first record of a batch, which becomes durable as a whole.

    ``message_id`` and ``queue_id`` are the highest numbers assigned so far, so that none is reused.
    """

    number: int
    now_ms: int
    message_id: int
    queue_id: int

    def __init__(self, number: int, now_ms: int, message_id: int, queue_id: int) -> None:
        self.number = number
        self.now_ms = now_ms
        self.message_id = message_id
        self.queue_id = queue_id


def encode_batch(batch: Batch) -> bytes:
    """Payload of a BATCH record."""
    return _BATCH.pack(batch.number, batch.now_ms, batch.message_id, batch.queue_id)


def decode_batch(payload: bytes) -> Batch:
    """The fields of a BATCH record."""
    return Batch(*_BATCH.unpack(payload))


def encode_fields(fields: dict[str, Any]) -> bytes:
    """Payload of a record that is JSON: ADDRESS, QUEUE, SESSION and others."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_fields(payload: bytes) -> dict[str, Any]:
    """The fields of a JSON payload."""
    fields: dict[str, Any] = json.loads(payload)
    return fields
