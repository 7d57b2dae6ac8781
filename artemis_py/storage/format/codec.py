"""The payloads of records, encoded and decoded. ``records`` has their layouts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from struct import Struct, error
from typing import Any, Final
from zlib import crc32

from artemis_py.message import Account, Head, LargeBody, Message
from artemis_py.paged_messages import Page, PagedMessage, PageShare, SettledPlaces
from artemis_py.record_log import Depth
from artemis_py.storage.format import records
from artemis_py.storage.format.records import (
    ADDRESS,
    ATTEMPTS_MAX,
    CAUSES,
    CHECKED_HEADER,
    FLAG_LARGE,
    FLAG_TRANSIENT,
    KIND_PAGE,
    MESSAGE,
    MESSAGE_FIELDS,
    PAGED,
    PROVENANCE_MASK,
    PROVENANCE_SHIFT,
    REASONS,
    CodecError,
    FileHeader,
    encode_file_header,
    encode_record,
)

_U32: Final = records.CHECKSUM.struct
_MESSAGE: Final = MESSAGE_FIELDS.struct
_PUBLISHED: Final = CHECKED_HEADER.then(MESSAGE_FIELDS).struct
"""A record's header after the checksum, and the fixed part of a MESSAGE payload, in one."""
_STATE: Final = records.QUEUE_STATE.struct
_LARGE: Final = records.LARGE_BODY.struct
_SETTLED: Final = records.SETTLED_FIELDS.struct
_ATTEMPTED: Final = records.ATTEMPTED_FIELDS.struct
_IDS: Final = records.IDS_FIELDS.struct
_CONSUMER: Final = records.CONSUMER_ID.struct
_ORIGIN: Final = records.ORIGIN_FIELDS.struct
_CAUSE: Final = records.CAUSE.struct
_DEPTH: Final = records.DEPTH.struct
_BATCH: Final = records.BATCH_FIELDS.struct
_PAGED: Final = records.PAGED_FIELDS.struct
_GREW: Final = records.PAGE_GREW_FIELDS.struct
_SHARE: Final = records.SHARE.struct
_PAGE_BEGIN: Final = records.PAGE_BEGIN.struct
_PAGE_SETTLED: Final = records.PAGE_SETTLED_FIELDS.struct
_PAGE_PURGED: Final = records.PAGE_PURGED_FIELDS.struct
_PURGED: Final = records.PURGED.struct
_PAGE_ATTEMPTED: Final = records.PAGE_ATTEMPTED_FIELDS.struct
_PAGE_DROPPED: Final = records.PAGE_DROPPED_FIELDS.struct
_PAGE_PLACES: Final = records.PAGE_PLACES_FIELDS.struct
NUMBER_BYTES: Final = records.MESSAGE_ID.size_bytes
"""The size of a message id or a place in a list of them."""
_KILLED: Final = REASONS.index("killed")
_NOWHERE: Final = Account()
"""A placeholder for the address' account until the broker recovers the message."""
_ROUTING_CODES: Final = {None: 0, "ANYCAST": 1, "MULTICAST": 2}
_ROUTING_TYPES: Final = (None, "ANYCAST", "MULTICAST")

# ---- messages ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class DeliveryState:
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
        self.details: dict[int, DeliveryState] | None = None

    def detail(self, queue_id: int) -> DeliveryState:
        """The state in one queue, to be changed."""
        if self.details is None:
            self.details = {}
        return self.details.setdefault(queue_id, DeliveryState())


_PLAIN: Final = DeliveryState()
_pack_state: Final = _STATE.pack
_pack_published: Final = _PUBLISHED.pack
_pack_checksum: Final = _U32.pack
"""Bound once: to find a method of a ``Struct`` costs as much as to pack two numbers."""


def encode_published(published: list[Kept]) -> list[bytes]:
    """The records of messages just published, all to the same single queue and without special state.

    The same bytes as from ``encode_record`` and ``encode_message``, in two parts each (checksum and rest), but encoded
    together: most messages of a run share a head.
    """
    place = _pack_state(published[0].queue_ids[0], 0, 0, 0)
    parts: list[bytes] = []
    last_head: Head | None = None
    middle = b""
    middle_size = priority = sized = routing = flags = address_size = head_size = 0
    for kept in published:
        message = kept.message
        head, body, lsn = message.head, message.body, kept.lsn
        if head is not last_head:
            last_head = head
            address = head.address.encode()
            middle = b"%b%b%b" % (place, address, head.block)
            middle_size = _MESSAGE.size + len(middle)
            priority, sized, routing = head.priority, head.sized, _ROUTING_CODES[head.routing_type]
            flags, address_size, head_size = head.provenance << PROVENANCE_SHIFT, len(address), head.size_bytes
        assert isinstance(body, bytes)  # a large body never comes in a run
        fields = _pack_published(
            middle_size + len(body), lsn, MESSAGE, message.id, message.timestamp_ms, message.expires_ms, lsn,
            priority, sized, routing, flags, 1, address_size, head_size,
        )  # fmt: skip
        record = b"%b%b%b" % (fields, middle, body)
        parts.append(_pack_checksum(crc32(record)))
        parts.append(record)
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
    flags = kept.flags | head.provenance << PROVENANCE_SHIFT
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
_OF_HEAD: Final = FLAG_TRANSIENT | PROVENANCE_MASK
_COUNTS_TRIED_MAX: Final = 100


def _head_of(key: tuple[bytes, int, int, int, int, int]) -> Head:
    """The head of a decoded message; messages with equal headers share one, as when they were sent. The key: address
    and block as in the record, the size of the address, priority, sized, code of the routing type, and those of the
    flags that are about the head.
    """
    text, address_size, priority, sized, routing, flags = key
    address, block = text[:address_size].decode(), text[address_size:]
    if len(_heads) >= _HEADS_MAX:
        _heads.clear()
    is_persistent = not flags & FLAG_TRANSIENT
    head = _heads[key] = Head(block, address, priority, is_persistent, bool(sized), _ROUTING_TYPES[routing])
    head.provenance = flags >> PROVENANCE_SHIFT
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
    key = (payload[start:end], address_size, priority, sized, routing, flags & _OF_HEAD)
    head = _heads.get(key) or _head_of(key)
    body: bytes | LargeBody = payload[end:]
    if flags & FLAG_LARGE:
        body = _large_body(payload, end)
    message = Message(head, body, message_id, timestamp_ms, expires_ms, _NOWHERE, 0)
    kept = Kept(message, lsn, [state[0] for state in states], flags & ~PROVENANCE_MASK)
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
    return reference if body.checksum < 0 else reference + _U32.pack(body.checksum)


def _large_body(payload: bytes, position: int) -> LargeBody:
    try:
        number, size_bytes = _LARGE.unpack_from(payload, position)
        has_checksum = len(payload) > position + _LARGE.size  # records of older brokers end here
        checksum = _U32.unpack_from(payload, position + _LARGE.size)[0] if has_checksum else -1
    except error as problem:
        raise CodecError(f"a reference to a large body that is too short: {problem}") from None
    return LargeBody(number, size_bytes, None, checksum)


# ---- events ------------------------------------------------------------------------------------------------------


def encode_settled(queue_id: int, reason: str, message_ids: list[int], consumer: int = 0) -> bytes:
    """Payload of a SETTLED record: a queue is done with these messages, because of a consumer (0: none)."""
    count = len(message_ids)
    fields = _SETTLED.pack(queue_id, REASONS.index(reason), count)
    return fields + _encode_numbers(message_ids, consumer)


def decode_settled(payload: bytes) -> tuple[int, str, tuple[int, ...], int]:
    """Queue id, reason, message ids, consumer (0: none or not recorded)."""
    queue_id, reason, count = _SETTLED.unpack_from(payload)
    end = _SETTLED.size + NUMBER_BYTES * count
    return queue_id, REASONS[reason], decode_numbers(payload, _SETTLED.size, count), _decode_consumer(payload, end)


def _decode_consumer(payload: bytes, end: int) -> int:
    """The optional number of a consumer at the end of a payload; 0 if it is missing."""
    number: int = _CONSUMER.unpack_from(payload, end)[0] if len(payload) > end else 0
    return number


def _encode_numbers(numbers: list[int] | tuple[int, ...], consumer: int = 0) -> bytes:
    """Numbers, and behind them that of a consumer unless it is 0."""
    data = Struct(f"<{len(numbers)}Q").pack(*numbers)
    return data + _CONSUMER.pack(consumer) if consumer else data


def decode_numbers(payload: bytes | memoryview, offset: int, count: int) -> tuple[int, ...]:
    """Message ids or places, one after the other."""
    return Struct(f"<{count}Q").unpack_from(payload, offset)


def encode_attempted(
    queue_id: int, message_id: int, attempts: int, due_ms: int, consumer: int = 0, cause: str = ""
) -> bytes:
    """Payload of an ATTEMPTED record: failed deliveries so far, when the next may follow (0: at once), and whose
    delivery failed and why (0: not recorded).
    """
    return _ATTEMPTED.pack(queue_id, message_id, min(attempts, ATTEMPTS_MAX), due_ms) + _encode_cause(consumer, cause)


def decode_attempted(payload: bytes) -> tuple[int, int, int, int, int, str]:
    """Queue id, message id, attempts, due time, consumer, cause."""
    queue_id, message_id, attempts, due_ms = _ATTEMPTED.unpack_from(payload)
    return queue_id, message_id, attempts, due_ms, *_decode_cause(payload, _ATTEMPTED.size)


def _encode_cause(consumer: int, cause: str) -> bytes:
    """The optional end of a record of a failed delivery: consumer and cause; nothing for consumer 0."""
    return _CAUSE.pack(consumer, CAUSES.index(cause)) if consumer else b""


def _decode_cause(payload: bytes, end: int) -> tuple[int, str]:
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
    return _IDS.pack(queue_id, count) + _encode_numbers(message_ids, consumer)


def decode_ids(payload: bytes) -> tuple[int, tuple[int, ...], int]:
    """Queue id, message ids, consumer."""
    queue_id, count = _IDS.unpack_from(payload)
    end = _IDS.size + NUMBER_BYTES * count
    return queue_id, decode_numbers(payload, _IDS.size, count), _decode_consumer(payload, end)


def encode_origin(session: int) -> bytes:
    """Payload of an ORIGIN record: the sender of the following messages (0: the broker)."""
    return _ORIGIN.pack(session)


def decode_origin(payload: bytes) -> int:
    """The session."""
    session: int = _ORIGIN.unpack_from(payload)[0]
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
class BatchHeader:
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


def encode_batch(batch: BatchHeader) -> bytes:
    """Payload of a BATCH record."""
    return _BATCH.pack(batch.number, batch.now_ms, batch.message_id, batch.queue_id)


def decode_batch(payload: bytes) -> BatchHeader:
    """The fields of a BATCH record."""
    return BatchHeader(*_BATCH.unpack(payload))


def encode_fields(fields: dict[str, Any]) -> bytes:
    """Payload of a record that is JSON: ADDRESS, QUEUE, SESSION and others."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_fields(payload: bytes) -> dict[str, Any]:
    """The fields of a JSON payload."""
    fields: dict[str, Any] = json.loads(payload)
    return fields


# ---- pages -------------------------------------------------------------------------------------------------------


def encode_page_opening(page: Page, address: str, now_ms: int) -> bytes:
    """The bytes before the first message of a page."""
    header = FileHeader(KIND_PAGE, page.number, page.first_place, now_ms)
    name = encode_fields({"name": address, "stream": page.stream})
    return encode_file_header(header) + encode_record(ADDRESS, 0, name)


def encode_paged(kept: Kept, place: int, origin: int) -> bytes:
    """A message as stored in a page. Its order keys are the lsn of its publication, 0 for one that the log does not
    have.
    """
    return encode_record(PAGED, place, _PAGED.pack(origin) + encode_message(kept, kept.message.lsn))


def decode_paged(payload: bytes) -> tuple[int, Kept]:
    """The connection that sent the message, and the message. Raises CodecError."""
    if len(payload) < _PAGED.size:
        raise CodecError("a truncated message in a page")
    return _PAGED.unpack_from(payload)[0], decode_message(payload[_PAGED.size :], in_page=True)


def as_paged(kept: Kept, origin: int, account: Account, page: Page, place: int) -> PagedMessage:
    """The message in the form of queues."""
    one = kept.message
    held = page.large.get(place)
    body = one.body if held is None else held.body
    message = PagedMessage(one.head, body, one.id, one.timestamp_ms, one.expires_ms, account, page, place)
    message.origin = 0 if page.restored else origin
    message.lsn = one.lsn
    return message


def page_opened_fields(page: Page, address: str) -> dict[str, Any]:
    """The fields of a PAGE_OPENED record."""
    return {"stream": page.stream, "page": page.number, "first_place": page.first_place, "address": address}


def encode_page_grew(page: Page, address: str = "") -> bytes:
    """Payload of a PAGE_GREW record: the valid length of a page, what durable queues have in it, and (with an
    ``address``) the fields of PAGE_OPENED, so that nothing depends on that one record.
    """
    shares = page.durable.items()
    fields = _GREW.pack(
        page.stream, page.number, page.kept_count, page.kept_bytes, page.expires_ms, page.has_large, len(shares)
    )
    name = address.encode()
    where = _PAGE_BEGIN.pack(page.first_place, len(name)) + name if name else b""
    return fields + b"".join([_SHARE.pack(queue_id, one.count, one.size_bytes) for queue_id, one in shares]) + where


def decode_page_grew(payload: bytes) -> Page:
    """A page with the record's fields; its first place is 0 in older logs."""
    stream, number, count, size_bytes, expires_ms, has_large, shares = _GREW.unpack_from(payload)
    end = _GREW.size + shares * _SHARE.size
    page = Page(stream, number, _PAGE_BEGIN.unpack_from(payload, end)[0] if len(payload) > end else 0)
    page.kept_count, page.kept_bytes, page.expires_ms, page.has_large = count, size_bytes, expires_ms, bool(has_large)
    for place in range(shares):
        queue_id, of_queue, bytes_of_queue = _SHARE.unpack_from(payload, _GREW.size + place * _SHARE.size)
        page.durable[queue_id] = PageShare(of_queue, bytes_of_queue)
    return page


def page_grew_address(payload: bytes) -> str:
    """The address in a PAGE_GREW record; empty in older logs."""
    end = _GREW.size + _GREW.unpack_from(payload)[-1] * _SHARE.size
    if len(payload) <= end:
        return ""
    start = end + _PAGE_BEGIN.size
    size: int = _PAGE_BEGIN.unpack_from(payload, end)[1]
    return payload[start : start + size].decode()


def encode_page_settled(queue_id: int, messages: list[PagedMessage], reason: str, consumer: int = 0) -> bytes:
    """Payload of a PAGE_SETTLED record: a queue is done with messages of one page; see SETTLED."""
    page = messages[0].page
    count = len(messages)
    size_bytes = sum([message.size_bytes for message in messages])
    fields = _PAGE_SETTLED.pack(queue_id, page.stream, page.number, REASONS.index(reason), count, size_bytes)
    numbers = [message.place for message in messages] + [message.id for message in messages]
    return fields + _encode_numbers(numbers, consumer)


@dataclass(frozen=True, slots=True)
class PageSettled:
    """The fields of a PAGE_SETTLED record as a class."""

    queue_id: int
    stream: int
    page: int
    reason: str
    size_bytes: int
    """Encoded size of all of them."""
    places: tuple[int, ...]
    message_ids: tuple[int, ...]
    consumer: int


def decode_page_settled(payload: bytes) -> PageSettled:
    """The fields of a PAGE_SETTLED record."""
    queue_id, stream, page, reason, count, size_bytes = _PAGE_SETTLED.unpack_from(payload)
    numbers = decode_numbers(payload, _PAGE_SETTLED.size, 2 * count)
    consumer = _decode_consumer(payload, _PAGE_SETTLED.size + 2 * NUMBER_BYTES * count)
    name = REASONS[reason]
    return PageSettled(queue_id, stream, page, name, size_bytes, numbers[:count], numbers[count:], consumer)


@dataclass(frozen=True, slots=True)
class PagePurged:
    """A PAGE_PURGED record: a queue is done with everything that a page has now, except some kept messages with an
    encoded size of ``kept_bytes``. ``count`` and ``size_bytes`` are those of the removed persistent messages; in older
    logs 0, with the reason killed.
    """

    queue_id: int
    stream: int
    page: int
    kept_places: tuple[int, ...]
    kept_bytes: int
    reason: str
    count: int
    size_bytes: int


def encode_page_purged(purged: PagePurged) -> bytes:
    """Payload of a PAGE_PURGED record."""
    places = purged.kept_places
    fields = _PAGE_PURGED.pack(purged.queue_id, purged.stream, purged.page, len(places), purged.kept_bytes)
    gone = _PURGED.pack(REASONS.index(purged.reason), purged.count, purged.size_bytes)
    return fields + _encode_numbers(places) + gone


def decode_page_purged(payload: bytes) -> PagePurged:
    """The fields of a PAGE_PURGED record."""
    queue_id, stream, page, count, size_bytes = _PAGE_PURGED.unpack_from(payload)
    places = decode_numbers(payload, _PAGE_PURGED.size, count)
    end = _PAGE_PURGED.size + NUMBER_BYTES * count
    reason, gone_count, gone_bytes = _PURGED.unpack_from(payload, end) if len(payload) > end else (_KILLED, 0, 0)
    return PagePurged(queue_id, stream, page, places, size_bytes, REASONS[reason], gone_count, gone_bytes)


@dataclass(frozen=True, slots=True)
class PageAttempted:
    """A PAGE_ATTEMPTED record: like ATTEMPTED, for a message in a page. Message 0: only a repetition."""

    queue_id: int
    stream: int
    page: int
    place: int
    message_id: int
    attempts: int
    due_ms: int
    consumer: int = 0
    cause: str = ""


def encode_page_attempted(attempted: PageAttempted) -> bytes:
    """Payload of a PAGE_ATTEMPTED record."""
    one = attempted
    attempts = min(one.attempts, ATTEMPTS_MAX)
    fields = _PAGE_ATTEMPTED.pack(one.queue_id, one.stream, one.page, one.place, one.message_id, attempts, one.due_ms)
    return fields + _encode_cause(one.consumer, one.cause)


def decode_page_attempted(payload: bytes) -> PageAttempted:
    """The fields of a PAGE_ATTEMPTED record."""
    queue_id, stream, page, place, message_id, attempts, due_ms = _PAGE_ATTEMPTED.unpack_from(payload)
    behind = _decode_cause(payload, _PAGE_ATTEMPTED.size)
    return PageAttempted(queue_id, stream, page, place, message_id, attempts, due_ms, *behind)


def encode_page_dropped(stream: int, page: int) -> bytes:
    """Payload of a PAGE_DROPPED record."""
    return _PAGE_DROPPED.pack(stream, page)


def decode_page_dropped(payload: bytes) -> tuple[int, int]:
    """Stream and page."""
    stream, page = _PAGE_DROPPED.unpack(payload)
    return stream, page


def encode_page_places(queue_id: int, stream: int, page: int, settled: SettledPlaces) -> bytes:
    """Payload of a PAGE_PLACES record: everything in a page that a queue is done with, rewritten when a journal file is
    removed.
    """
    places = settled.places
    fields = _PAGE_PLACES.pack(queue_id, stream, page, places.first_place, settled.count, settled.size_bytes)
    return fields + places.encode()


def decode_page_places(payload: bytes) -> tuple[int, int, int, int, int, int, bytes]:
    """Queue, stream, page, first place, count and encoded size of durable messages settled, a bit for each place."""
    queue_id, stream, page, first_place, count, size_bytes = _PAGE_PLACES.unpack_from(payload)
    return queue_id, stream, page, first_place, count, size_bytes, payload[_PAGE_PLACES.size :]
