"""The byte layout of what concerns pages: messages in page files, and records about pages in the journal.

A page file begins with the header of ``codec`` (kind 2; its number is the page's, its lsn the first place), followed by
a record that names the address, and one record for each message: a PAGED record has the message's place where others
have an lsn, and the payload of a MESSAGE record behind the number of the connection that sent it.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import Final

from artemis_py.message import Account
from artemis_py.paged import Page, PagedMessage, Settled, Share
from artemis_py.storage import codec

KIND_PAGE: Final = 2
_ORIGIN: Final = Struct("<Q")
_GREW: Final = Struct("<IIIQQBH")
_SHARE: Final = Struct("<IIQ")
_SETTLED: Final = Struct("<IIIBIQ")
_PURGED: Final = Struct("<IIIIQ")
_ATTEMPTED: Final = Struct("<IIIQQHQ")
_DROPPED: Final = Struct("<II")
_PLACES: Final = Struct("<IIIQIQ")
_NAME: Final = re.compile(r"(?P<stream>\d{9})-(?P<page>\d{9})\.page", re.ASCII)


def page_name(stream: int, page: int) -> str:
    """The file name of a page."""
    return f"{stream:09}-{page:09}.page"


def page_numbers(name: str) -> tuple[int, int] | None:
    """Stream and page in a file's name; None for other files."""
    match = _NAME.fullmatch(name)
    return None if match is None else (int(match["stream"]), int(match["page"]))


# ---- page files ----------------------------------------------------------------------------------


def encode_opening(page: Page, address: str, now_ms: int) -> bytes:
    """What stands before the first message of a page."""
    header = codec.FileHeader(KIND_PAGE, page.number, page.first_place, now_ms)
    name = codec.encode_fields({"name": address, "stream": page.stream})
    return codec.encode_file_header(header) + codec.encode_record(codec.ADDRESS, 0, name)


def encode_paged(kept: codec.Kept, place: int, origin: int) -> bytes:
    """A message as it stands in a page."""
    return codec.encode_record(codec.PAGED, place, _ORIGIN.pack(origin) + codec.encode_message(kept))


def decode_paged(payload: bytes) -> tuple[int, codec.Kept]:
    """The connection that sent the message, and the message. Raises CodecError."""
    if len(payload) < _ORIGIN.size:
        raise codec.CodecError("a message of a page that is too short")
    return _ORIGIN.unpack_from(payload)[0], codec.decode_message(payload[_ORIGIN.size :])


def as_paged(kept: codec.Kept, origin: int, account: Account, page: Page, place: int) -> PagedMessage:
    """The message as queues know it."""
    one = kept.message
    held = page.large.get(place)
    body = one.body if held is None else held.body
    message = PagedMessage(one.head, body, one.id, one.timestamp_ms, one.expires_ms, account, page, place)
    message.origin = 0 if page.restored else origin
    return message


# ---- journal -------------------------------------------------------------------------------------


def encode_grew(page: Page) -> bytes:
    """Payload of a PAGE_GREW record: how far a page counts, and what durable queues have in it."""
    shares = page.durable.items()
    fields = _GREW.pack(
        page.stream, page.number, page.kept_count, page.kept_bytes, page.expires_ms, page.has_large, len(shares)
    )
    return fields + b"".join([_SHARE.pack(queue_id, share.count, share.size_bytes) for queue_id, share in shares])


def decode_grew(payload: bytes) -> Page:
    """A page with what the record says; its first place is not in it."""
    stream, number, count, size_bytes, expires_ms, has_large, shares = _GREW.unpack_from(payload)
    page = Page(stream, number, 0)
    page.kept_count, page.kept_bytes, page.expires_ms, page.has_large = count, size_bytes, expires_ms, bool(has_large)
    for place in range(shares):
        queue_id, of_queue, bytes_of_queue = _SHARE.unpack_from(payload, _GREW.size + place * _SHARE.size)
        page.durable[queue_id] = Share(of_queue, bytes_of_queue)
    return page


def encode_page_settled(queue_id: int, messages: list[PagedMessage], reason: str) -> bytes:
    """Payload of a PAGE_SETTLED record: a queue is done with messages of one page."""
    page = messages[0].page
    count = len(messages)
    size_bytes = sum([message.size_bytes for message in messages])
    fields = _SETTLED.pack(queue_id, page.stream, page.number, codec.REASONS.index(reason), count, size_bytes)
    numbers = [message.place for message in messages] + [message.id for message in messages]
    return fields + Struct(f"<{2 * count}Q").pack(*numbers)


def decode_page_settled(payload: bytes) -> tuple[int, int, int, str, int, tuple[int, ...], tuple[int, ...]]:
    """Queue, stream, page, reason, encoded size of all, places, message ids."""
    queue_id, stream, page, reason, count, size_bytes = _SETTLED.unpack_from(payload)
    numbers = Struct(f"<{2 * count}Q").unpack_from(payload, _SETTLED.size)
    return queue_id, stream, page, codec.REASONS[reason], size_bytes, numbers[:count], numbers[count:]


def encode_page_purged(queue_id: int, page: Page, kept: list[PagedMessage]) -> bytes:
    """Payload of a PAGE_PURGED record: a queue is done with all that a page has now, but for some."""
    size_bytes = sum(message.size_bytes for message in kept)
    fields = _PURGED.pack(queue_id, page.stream, page.number, len(kept), size_bytes)
    return fields + Struct(f"<{len(kept)}Q").pack(*[message.place for message in kept])


def decode_page_purged(payload: bytes) -> tuple[int, int, int, int, tuple[int, ...]]:
    """Queue, stream, page, encoded size of what is kept, places kept."""
    queue_id, stream, page, count, size_bytes = _PURGED.unpack_from(payload)
    return queue_id, stream, page, size_bytes, Struct(f"<{count}Q").unpack_from(payload, _PURGED.size)


def encode_page_attempted(
    queue_id: int, stream: int, page: int, place: int, message_id: int, attempts: int, due_ms: int
) -> bytes:
    """Payload of a PAGE_ATTEMPTED record: as ATTEMPTED, of a message in a page."""
    return _ATTEMPTED.pack(queue_id, stream, page, place, message_id, min(attempts, 65535), due_ms)


def decode_page_attempted(payload: bytes) -> tuple[int, int, int, int, int, int, int]:
    """Queue, stream, page, place, message id, attempts, due time."""
    queue_id, stream, page, place, message_id, attempts, due_ms = _ATTEMPTED.unpack(payload)
    return queue_id, stream, page, place, message_id, attempts, due_ms


def encode_page_dropped(stream: int, page: int) -> bytes:
    """Payload of a PAGE_DROPPED record."""
    return _DROPPED.pack(stream, page)


def decode_page_dropped(payload: bytes) -> tuple[int, int]:
    """Stream and page."""
    stream, page = _DROPPED.unpack(payload)
    return stream, page


def encode_places(queue_id: int, stream: int, page: int, settled: Settled) -> bytes:
    """Payload of a PAGE_PLACES record: all that a queue is done with of a page, when a journal file goes."""
    places = settled.places
    fields = _PLACES.pack(queue_id, stream, page, places.first_place, settled.count, settled.size_bytes)
    return fields + places.encode()


def decode_places(payload: bytes) -> tuple[int, int, int, int, int, int, bytes]:
    """Queue, stream, page, first place, count and encoded size of durable messages settled, a bit for each place."""
    queue_id, stream, page, first_place, count, size_bytes = _PLACES.unpack_from(payload)
    return queue_id, stream, page, first_place, count, size_bytes, payload[_PLACES.size :]
