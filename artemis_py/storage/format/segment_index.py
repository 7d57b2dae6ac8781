"""The index of a segment: what is in it, for readers that need not read all of it."""

from __future__ import annotations

import json
from json import JSONDecoder
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from artemis_py.storage.format import codec, records
from artemis_py.storage.format.records import FILE_HEADER_BYTES, CodecError, inner_records
from artemis_py.storage.format.scan import Damage, whole_records

# ---- long json -------------------------------------------------------------------------------------------------------
#
# Decodes long JSON a little at a time, so that other threads of the interpreter have their turn in between. ``json``
# lets nobody else run until it is done, which takes many ms for the index of a segment that describes 10,000 queues.


AT_ONCE_BYTES: Final = 64 << 10
_DEPTH: Final = 2
"""So deep it goes by itself; what is inside of that is short."""
_decode: Final = JSONDecoder().raw_decode


def loads(text: bytes) -> Any:
    """The same as ``json.loads`` for what was written without spaces. Raises ValueError."""
    if len(text) <= AT_ONCE_BYTES:
        return json.loads(text)
    shown = text.decode()
    try:
        value, end = _value(shown, 0, _DEPTH)
    except IndexError:
        raise ValueError("the text is incomplete") from None
    if shown[end:].strip():
        raise ValueError("more follows the end")
    return value


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """A value and where it ends. Raises ValueError and IndexError."""
    begin = text[at]
    if depth == 0 or begin not in "[{":
        return _decode(text, at)
    found_list: list[Any] = []
    found: dict[str, Any] = {}
    close = "]" if begin == "[" else "}"
    at += 1
    while text[at] != close:
        if begin == "[":
            value, at = _value(text, at, depth - 1)
            found_list.append(value)
        else:
            name, at = _decode(text, at)
            if text[at] != ":":
                raise ValueError("a colon is missing")
            found[name], at = _value(text, at + 1, depth - 1)
        if text[at] == ",":
            at += 1
        elif text[at] != close:
            raise ValueError("a comma is missing")
    return (found_list if begin == "[" else found), at + 1


# ---- segment index ---------------------------------------------------------------------------------------------------
#
# The index of a segment: its content and positions, for readers that skip what they do not need. The journal
# maintains one while it writes (``Gathered`` for the next batch, ``SegmentIndex.add`` when that is durable); others
# get the same from the file's bytes (``index_of``). When a segment is closed, its index is written next to it as
# JSON, in a file of the same name that ends with ``.index``. After a crash the file may be missing or torn, and is
# then recreated. docs/log.md describes the fields. It needs only the codec.


FORMAT: Final = 1
INDEX_SUFFIX: Final = ".index"
BLOCK_BYTES: Final = 4 << 20
"""The minimum length of a block. A reader takes whole blocks, and several readers share one segment."""
ADDRESSES_MAX: Final = 1000
"""With more addresses than this an index names none: it would be long and exclude little."""
_LISTS: Final = {
    records.QUEUE: "queues",
    records.QUEUE_DELETED: "queues",
    records.SESSION: "sessions",
    records.CONSUMER: "consumers",
}
"""Records that an index repeats, and the list for each."""
_MESSAGE: Final = records.MESSAGE_FIELDS.only("timestamp_ms", "lsn", "queues", "address_bytes")
_MESSAGE_BYTES: Final = records.MESSAGE_FIELDS.size_bytes
_QUEUE_BYTES: Final = records.QUEUE_STATE.size_bytes
_CHECKSUM: Final = b',"crc32":'


class Gathered:
    """What was written for one batch. Only publications count as messages, not copies made by compaction."""

    __slots__ = (
        "addresses", "end", "is_non_transactional", "is_transactional", "last_lsn", "messages", "newest_ms", "offset",
        "oldest_ms", "records", "repeated", "time_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.records = 0
        """All records with an lsn, including BATCH, GROUP and the records inside it."""
        self.messages = 0
        self.addresses: set[str] = set()
        self.oldest_ms: int | None = None
        self.newest_ms: int | None = None
        """The newest timestamp of a message; timestamps can be earlier than the batch, because a transaction takes
        time.
        """
        self.repeated: list[tuple[str, dict[str, Any]]] = []
        """Records to repeat: the list, and their fields with their lsn."""
        self.is_transactional = False
        """Does it contain a client's transaction?"""
        self.is_non_transactional = False
        """Does it contain anything else?"""
        self.offset = 0
        self.end = 0
        self.last_lsn = 0
        self.time_ms: int | None = None

    def published(self, address: str, oldest_ms: int, newest_ms: int, count: int = 1) -> None:
        """Messages with timestamps in this range were published to an address."""
        self.messages += count
        self.addresses.add(address)
        if self.oldest_ms is None or oldest_ms < self.oldest_ms:
            self.oldest_ms = oldest_ms
        if self.newest_ms is None or newest_ms > self.newest_ms:
            self.newest_ms = newest_ms

    def told(self, type_code: int, lsn: int, fields: dict[str, Any]) -> None:
        """A record with JSON was written."""
        name = _LISTS.get(type_code)
        if name is not None:
            deleted = {"deleted": True} if type_code == records.QUEUE_DELETED else {}
            self.repeated.append((name, {"lsn": lsn, **fields, **deleted}))


class SegmentIndex:
    """What is in one segment. ``add`` its batches in order.

    ``last_lsn`` is ``first_lsn`` - 1 while the segment is empty. ``first_ms`` and ``last_ms`` are the earliest and
    latest times of a batch, ``oldest_ms`` and ``newest_ms`` the lowest and highest timestamps of a published message,
    or None. ``size_bytes`` is the end of the last record. ``blocks`` has (offset, lowest lsn, time of the first batch)
    for parts of at least ``BLOCK_BYTES`` that begin with a BATCH.
    """

    __slots__ = (
        "_addresses", "blocks", "first_lsn", "first_ms", "last_lsn", "last_ms", "lists", "messages", "newest_ms",
        "number", "oldest_ms", "records", "size_bytes",
    )  # fmt: skip

    def __init__(self, number: int, first_lsn: int) -> None:
        self.number = number
        self.first_lsn = first_lsn
        self.last_lsn = first_lsn - 1
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.oldest_ms: int | None = None
        self.newest_ms: int | None = None
        self.size_bytes = FILE_HEADER_BYTES
        self.records = 0
        self.messages = 0
        self.lists: dict[str, list[dict[str, Any]]] = {"queues": [], "sessions": [], "consumers": []}
        self.blocks: list[tuple[int, int, int]] = []
        self._addresses: set[str] | None = set()

    def add(self, batch: Gathered) -> None:
        """Add the next batch of the file."""
        if batch.time_ms is not None:
            if not self.blocks or batch.offset - self.blocks[-1][0] >= BLOCK_BYTES:
                self.blocks.append((batch.offset, self.last_lsn + 1, batch.time_ms))
            if self.first_ms is None or batch.time_ms < self.first_ms:
                self.first_ms = batch.time_ms
            if self.last_ms is None or batch.time_ms > self.last_ms:
                self.last_ms = batch.time_ms
        if batch.oldest_ms is not None and (self.oldest_ms is None or batch.oldest_ms < self.oldest_ms):
            self.oldest_ms = batch.oldest_ms
        if batch.newest_ms is not None and (self.newest_ms is None or batch.newest_ms > self.newest_ms):
            self.newest_ms = batch.newest_ms
        self.last_lsn = max(self.last_lsn, batch.last_lsn)
        self.size_bytes = batch.end
        self.records += batch.records
        self.messages += batch.messages
        for name, fields in batch.repeated:
            self.lists[name].append(fields)
        if self._addresses is not None:
            self._addresses |= batch.addresses
            if len(self._addresses) > ADDRESSES_MAX:
                self._addresses = None

    @property
    def addresses(self) -> list[str] | None:
        """The addresses of published messages, sorted; None if there are more than ``ADDRESSES_MAX``."""
        return None if self._addresses is None else sorted(self._addresses)

    def fields(self) -> dict[str, Any]:
        """The index as written. Its lists are copies: later batches do not change them."""
        return {
            "format": FORMAT,
            "segment": self.number,
            "first_lsn": self.first_lsn,
            "last_lsn": self.last_lsn,
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "oldest_ms": self.oldest_ms,
            "newest_ms": self.newest_ms,
            "bytes": self.size_bytes,
            "records": self.records,
            "messages": self.messages,
            "addresses": self.addresses,
            **{name: list(found) for name, found in self.lists.items()},
            "blocks": [list(block) for block in self.blocks],
        }


def json_line(fields: dict[str, Any]) -> bytes:
    """A JSON object as one line, as sent to readers of the log."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def encode_index(fields: dict[str, Any]) -> bytes:
    """The text of an index file: a JSON object whose last field is the CRC-32 of everything before it."""
    text = json_line(fields)[: -len(b"}\n")]
    return b"%b%b%d}\n" % (text, _CHECKSUM, crc32(text))


def decode_index(text: bytes) -> dict[str, Any]:
    """The fields of an index file. Raises CodecError if it is incomplete or has another format. Older files have no
    checksum.
    """
    try:
        fields: object = loads(checked_text(text))
    except ValueError:
        raise CodecError("the index is incomplete") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise CodecError("the index has another format")
    return fields


def checked_text(text: bytes) -> bytes:
    """The JSON object in an index file. Raises CodecError if its checksum does not match; older files have none."""
    if _CHECKSUM not in text:
        return text
    sealed = sealed_text(text)
    if sealed is None:
        raise CodecError("the index is damaged")
    return sealed


def sealed_text(text: bytes) -> bytes | None:
    """The JSON object in an index file; None if no checksum proves that it is complete."""
    checked, comma, checksum = text.rpartition(_CHECKSUM)
    return checked + b"}" if comma and checksum == b"%d}\n" % crc32(checked) else None


def index_name(segment_file: str) -> str:
    """The file name of the index of a segment's file, in use or retained."""
    return segment_file.removesuffix(".log") + INDEX_SUFFIX


def index_fields(path: Path) -> dict[str, Any]:
    """The index of a segment's file, from the file next to it or, without a valid one, from its bytes. Raises OSError
    if the segment cannot be read, CodecError if it has no valid header.
    """
    try:
        return decode_index(path.with_name(index_name(path.name)).read_bytes())
    except (FileNotFoundError, CodecError):
        return index_of(path.read_bytes(), path.name).fields()


def index_of(
    data: bytes, name: str = "", damages: list[Damage] | None = None, *, is_last: bool = False
) -> SegmentIndex:
    """The index of a segment with these bytes. Damage is skipped and goes to ``damages``; ``is_last`` is as in
    ``whole_records``. Raises CodecError if there is no valid file header.
    """
    header = records.decode_file_header(data)
    index = SegmentIndex(header.number, header.first_lsn)
    batch = Gathered()
    addresses: dict[bytes, str] = {}
    for record in whole_records(name, data, [] if damages is None else damages, is_last=is_last):
        if record.type_code == records.BATCH:
            if batch.records:
                index.add(batch)
            batch = Gathered()
            batch.offset = record.offset
            batch.time_ms = codec.decode_batch(record.payload).now_ms
        batch.end = record.end
        _take(batch, record, addresses)
        if record.type_code == records.GROUP:
            for inner in inner_records(record.payload):
                _take(batch, inner, addresses)
    if batch.records:
        index.add(batch)
    return index


def _take(batch: Gathered, record: records.Record, addresses: dict[bytes, str]) -> None:
    """Add one record to a batch. ``addresses`` caches decoded addresses."""
    batch.records += 1
    batch.last_lsn = max(batch.last_lsn, record.lsn)
    if record.type_code == records.MESSAGE:
        timestamp_ms, lsn, queue_count, address_size = _MESSAGE.unpack_from(record.payload)
        if lsn == record.lsn:
            start = _MESSAGE_BYTES + _QUEUE_BYTES * queue_count
            raw = record.payload[start : start + address_size]
            batch.published(addresses.get(raw) or addresses.setdefault(raw, raw.decode()), timestamp_ms, timestamp_ms)
    elif record.type_code in _LISTS:
        batch.told(record.type_code, record.lsn, codec.decode_fields(record.payload))
