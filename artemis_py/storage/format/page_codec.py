"""The byte layout of pages: messages in page files, and records about pages in the journal.

A page file begins with the header of ``codec`` (kind 2; its number is the page's, its lsn the first place), followed by
a record that names the address, and one record for each message: a PAGED record has the message's place where others
have an lsn. Its payload is the number of the sending connection and the payload of a MESSAGE record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from artemis_py.message import Account
from artemis_py.paged import Page, PagedMessage, Settled, Share
from artemis_py.storage.format import codec

KIND_PAGE: Final = 2
_ORIGIN: Final = Struct("<Q")
_GREW: Final = Struct("<IIIQQBH")
_SHARE: Final = Struct("<IIQ")
_WHERE: Final = Struct("<QH")
_SETTLED: Final = Struct("<IIIBIQ")
_PURGED: Final = Struct("<IIIIQ")
_GONE: Final = Struct("<BIQ")
_ATTEMPTED: Final = Struct("<IIIQQHQ")
_DROPPED: Final = Struct("<II")
_PLACES: Final = Struct("<IIIQIQ")
_KILLED: Final = codec.REASONS.index("killed")
_NAME: Final = re.compile(r"(?P<stream>\d{9})-(?P<page>\d{9})\.page", re.ASCII)


def page_name(stream: int, page: int) -> str:
    """The file name of a page."""
    return f"{stream:09}-{page:09}.page"


def page_numbers(name: str) -> tuple[int, int] | None:
    """Stream and page number in a file's name; None for other files."""
    match = _NAME.fullmatch(name)
    return None if match is None else (int(match["stream"]), int(match["page"]))


# ---- page files ----------------------------------------------------------------------------------


def encode_opening(page: Page, address: str, now_ms: int) -> bytes:
    """The bytes before the first message of a page."""
    header = codec.FileHeader(KIND_PAGE, page.number, page.first_place, now_ms)
    name = codec.encode_fields({"name": address, "stream": page.stream})
    return codec.encode_file_header(header) + codec.encode_record(codec.ADDRESS, 0, name)


def encode_paged(kept: codec.Kept, place: int, origin: int) -> bytes:
    """A message as stored in a page. Its order keys are the lsn of its publication, 0 for one that the log does not
    have.
    """
    return codec.encode_record(codec.PAGED, place, _ORIGIN.pack(origin) + codec.encode_message(kept, kept.message.lsn))


def decode_paged(payload: bytes) -> tuple[int, codec.Kept]:
    """The connection that sent the message, and the message. Raises CodecError."""
    if len(payload) < _ORIGIN.size:
        raise codec.CodecError("a truncated message in a page")
    return _ORIGIN.unpack_from(payload)[0], codec.decode_message(payload[_ORIGIN.size :], in_page=True)


def as_paged(kept: codec.Kept, origin: int, account: Account, page: Page, place: int) -> PagedMessage:
    """The message in the form of queues."""
    one = kept.message
    held = page.large.get(place)
    body = one.body if held is None else held.body
    message = PagedMessage(one.head, body, one.id, one.timestamp_ms, one.expires_ms, account, page, place)
    message.origin = 0 if page.restored else origin
    message.lsn = one.lsn
    return message


# ---- journal -------------------------------------------------------------------------------------


def opened_fields(page: Page, address: str) -> dict[str, Any]:
    """The fields of a PAGE_OPENED record."""
    return {"stream": page.stream, "page": page.number, "first_place": page.first_place, "address": address}


def encode_grew(page: Page, address: str = "") -> bytes:
    """Payload of a PAGE_GREW record: the valid length of a page, what durable queues have in it, and (with an
    ``address``) the fields of PAGE_OPENED, so that nothing depends on that one record.
    """
    shares = page.durable.items()
    fields = _GREW.pack(
        page.stream, page.number, page.kept_count, page.kept_bytes, page.expires_ms, page.has_large, len(shares)
    )
    name = address.encode()
    where = _WHERE.pack(page.first_place, len(name)) + name if name else b""
    return fields + b"".join([_SHARE.pack(queue_id, one.count, one.size_bytes) for queue_id, one in shares]) + where


def decode_grew(payload: bytes) -> Page:
    """A page with the record's fields; its first place is 0 in older logs."""
    stream, number, count, size_bytes, expires_ms, has_large, shares = _GREW.unpack_from(payload)
    end = _GREW.size + shares * _SHARE.size
    page = Page(stream, number, _WHERE.unpack_from(payload, end)[0] if len(payload) > end else 0)
    page.kept_count, page.kept_bytes, page.expires_ms, page.has_large = count, size_bytes, expires_ms, bool(has_large)
    for place in range(shares):
        queue_id, of_queue, bytes_of_queue = _SHARE.unpack_from(payload, _GREW.size + place * _SHARE.size)
        page.durable[queue_id] = Share(of_queue, bytes_of_queue)
    return page


def grew_address(payload: bytes) -> str:
    """The address in a PAGE_GREW record; empty in older logs."""
    end = _GREW.size + _GREW.unpack_from(payload)[-1] * _SHARE.size
    if len(payload) <= end:
        return ""
    start = end + _WHERE.size
    size: int = _WHERE.unpack_from(payload, end)[1]
    return payload[start : start + size].decode()


def encode_page_settled(queue_id: int, messages: list[PagedMessage], reason: str, consumer: int = 0) -> bytes:
    """Payload of a PAGE_SETTLED record: a queue is done with messages of one page; see SETTLED."""
    page = messages[0].page
    count = len(messages)
    size_bytes = sum([message.size_bytes for message in messages])
    fields = _SETTLED.pack(queue_id, page.stream, page.number, codec.REASONS.index(reason), count, size_bytes)
    numbers = [message.place for message in messages] + [message.id for message in messages]
    return fields + Struct(f"<{2 * count}Q").pack(*numbers) + codec.encode_behind(consumer)


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
    queue_id, stream, page, reason, count, size_bytes = _SETTLED.unpack_from(payload)
    numbers = Struct(f"<{2 * count}Q").unpack_from(payload, _SETTLED.size)
    consumer = codec.decode_behind(payload, _SETTLED.size + 16 * count)
    name = codec.REASONS[reason]
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
    fields = _PURGED.pack(purged.queue_id, purged.stream, purged.page, len(places), purged.kept_bytes)
    gone = _GONE.pack(codec.REASONS.index(purged.reason), purged.count, purged.size_bytes)
    return fields + Struct(f"<{len(places)}Q").pack(*places) + gone


def decode_page_purged(payload: bytes) -> PagePurged:
    """The fields of a PAGE_PURGED record."""
    queue_id, stream, page, count, size_bytes = _PURGED.unpack_from(payload)
    places = Struct(f"<{count}Q").unpack_from(payload, _PURGED.size)
    end = _PURGED.size + 8 * count
    reason, gone_count, gone_bytes = _GONE.unpack_from(payload, end) if len(payload) > end else (_KILLED, 0, 0)
    return PagePurged(queue_id, stream, page, places, size_bytes, codec.REASONS[reason], gone_count, gone_bytes)


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
    attempts = min(one.attempts, codec.ATTEMPTS_MAX)
    fields = _ATTEMPTED.pack(one.queue_id, one.stream, one.page, one.place, one.message_id, attempts, one.due_ms)
    return fields + codec.encode_cause(one.consumer, one.cause)


def decode_page_attempted(payload: bytes) -> PageAttempted:
    """The fields of a PAGE_ATTEMPTED record."""
    queue_id, stream, page, place, message_id, attempts, due_ms = _ATTEMPTED.unpack_from(payload)
    behind = codec.decode_cause(payload, _ATTEMPTED.size)
    return PageAttempted(queue_id, stream, page, place, message_id, attempts, due_ms, *behind)


def encode_page_dropped(stream: int, page: int) -> bytes:
    """Payload of a PAGE_DROPPED record."""
    return _DROPPED.pack(stream, page)


def decode_page_dropped(payload: bytes) -> tuple[int, int]:
    """Stream and page."""
    stream, page = _DROPPED.unpack(payload)
    return stream, page


def encode_places(queue_id: int, stream: int, page: int, settled: Settled) -> bytes:
    """Payload of a PAGE_PLACES record: everything in a page that a queue is done with, rewritten when a journal file is
    removed.
    """
    places = settled.places
    fields = _PLACES.pack(queue_id, stream, page, places.first_place, settled.count, settled.size_bytes)
    return fields + places.encode()


def decode_places(payload: bytes) -> tuple[int, int, int, int, int, int, bytes]:
    """Queue, stream, page, first place, count and encoded size of durable messages settled, a bit for each place."""
    queue_id, stream, page, first_place, count, size_bytes = _PLACES.unpack_from(payload)
    return queue_id, stream, page, first_place, count, size_bytes, payload[_PLACES.size :]
