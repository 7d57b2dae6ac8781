"""The records of journal and page files: one table of their layouts, and how they stand in a file.

Everything that reads or writes records takes numbers, sizes and positions from here: ``codec`` for payloads, ``scan``
for walks over files, and the columns of Spark. docs/journal-format.md shows the same table to other readers; a test
compares them.

All numbers are little-endian. A file begins with ``FILE_HEADER``. Records follow without gaps, each a ``HEADER`` and a
payload; the rest of the file is zeros. A length of 0 with a checksum of 0 is the end: no record has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct, calcsize
from typing import Final, final
from zlib import crc32

from artemis_py.errors import ArtemisError

# ---- layouts -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, its type as a letter of ``struct``, and its meaning as on the page."""

    name: str
    code: str
    meaning: str

    @property
    def size_bytes(self) -> int:
        """How many bytes it takes."""
        return calcsize(f"<{self.code}")


@final
class Layout:
    """Fields one after the other."""

    __slots__ = ("fields", "size_bytes", "struct")

    def __init__(self, *fields: tuple[str, str, str]) -> None:
        self.fields = tuple([Field(name, code, meaning) for name, code, meaning in fields])
        self.struct = Struct("<" + "".join([code for _, code, _ in fields]))
        self.size_bytes = self.struct.size

    def at(self, name: str) -> int:
        """The position of a field. Raises ValueError if there is no such field."""
        names = [field.name for field in self.fields]
        return sum([field.size_bytes for field in self.fields[: names.index(name)]])

    def only(self, *names: str) -> Struct:
        """Reads some of the fields, in the order of the layout, and needs no bytes behind the last of them."""
        places = [place for place, field in enumerate(self.fields) if field.name in names]
        fields = self.fields[: places[-1] + 1]
        return Struct("<" + "".join([one.code if one.name in names else f"{one.size_bytes}x" for one in fields]))

    def then(self, other: Layout) -> Layout:
        """These fields, and those of the layout that follows."""
        return Layout(*[(one.name, one.code, one.meaning) for one in (*self.fields, *other.fields)])


@dataclass(frozen=True, slots=True)
class Part:
    """Fields in a payload: as many of ``layout`` as the field ``times`` says (empty: one; ``*``: up to the end)."""

    layout: Layout
    times: str = ""
    is_optional: bool = False
    """Older records, or those without retention, end before it."""


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes in a payload, as many as the field ``size`` says (empty: all that are left)."""

    name: str
    size: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of record: its number, its name, its meaning, and the parts of its payload. With ``is_json`` that is one
    JSON object; that of a GROUP is other records.
    """

    number: int
    name: str
    meaning: str
    parts: tuple[Part | Text, ...] = ()
    is_json: bool = False


# ---- numbers -----------------------------------------------------------------------------------------------------


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
SESSION: Final = 21
CONSUMER: Final = 22
ORIGIN: Final = 23
REFUSED: Final = 24
CURSOR: Final = 25
DEPTHS: Final = 26
BROKER: Final = 27
TRANSACTION: Final = 28
CONFIGURED: Final = 29
EXTENT: Final = 200
"""The one record of an extent file (``journal/extent.py``); no log has it. Its lsn counts how often it was written."""
GIVEN_UP: Final = 201
"""The one record of the list of files that a start did without (``recovery/missing_files.py``); no log has it."""
BINDINGS: Final = frozenset({ADDRESS, QUEUE, QUEUE_DELETED, DUPLICATE, DUPLICATES_CLEARED, CURSOR, CONFIGURED})
"""Records of addresses and queues, and of what operators and readers set: JSON objects."""

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
PROVENANCE_SHIFT: Final = 4
PROVENANCE_MASK: Final = 7 << PROVENANCE_SHIFT
"""The flags that are a number: ``Head.provenance``."""
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
ATTEMPTS_MAX: Final = 65535
"""Failed deliveries are recorded up to this number. The broker goes on counting until it is restarted."""


# ---- the table ---------------------------------------------------------------------------------------------------


_CHECKED: Final[tuple[tuple[str, str, str], ...]] = (
    ("length", "I", "length of the payload in bytes"),
    ("lsn", "Q", "lsn, the log sequence number: every record has its own"),
    ("type", "B", "type"),
)
CHECKED_HEADER: Final = Layout(*_CHECKED)
"""The part of a header that is under its checksum, as is the payload."""
HEADER: Final = Layout(("checksum", "I", "CRC-32 of everything after it, to the end of the payload"), *_CHECKED)
"""Before each payload."""
RECORD_HEADER_BYTES: Final = HEADER.size_bytes
CHECKED_AT: Final = HEADER.at("length")
LSN_AT: Final = HEADER.at("lsn")
TYPE_AT: Final = HEADER.at("type")

BATCH_FIELDS: Final = Layout(
    ("number", "Q", "number of the batch, counting up"),
    ("now_ms", "Q", "time of the broker's turn: of everything in the batch"),
    ("message_id", "Q", "the highest message id given so far"),
    ("queue_id", "Q", "the highest queue number given so far"),
)
BATCH_PAYLOAD_BYTES: Final = BATCH_FIELDS.size_bytes
MESSAGE_FIELDS: Final = Layout(
    ("id", "Q", "message id"),
    ("timestamp_ms", "Q", "when the broker accepted it"),
    ("expires_ms", "Q", "when it expires; 0: never"),
    ("lsn", "Q", "lsn of its publication; less than the record's own: the record is a copy, see below"),
    ("priority", "B", "0 to 9"),
    ("sized", "B", "1: the sender set `content-length` (Artemis: a bytes message); 0: it did not"),
    ("routing", "B", "routing type: 0 none, 1 anycast, 2 multicast"),
    ("flags", "B", "see below"),
    ("queues", "H", "number of queues"),
    ("address_bytes", "H", "length of the address"),
    ("head_bytes", "I", "length of the header block"),
)
QUEUE_STATE: Final = Layout(
    ("queue", "I", "number of the queue"),
    ("attempts", "H", "failed deliveries"),
    ("due_ms", "Q", "when it is due; 0: now"),
    ("order", "q", "order key"),
)
LARGE_BODY: Final = Layout(("number", "Q", "number of the body's file"), ("size_bytes", "Q", "its size in bytes"))
"""What stands for a body in its own file (``FLAG_LARGE``)."""
CHECKSUM: Final = Layout(("checksum", "I", "its CRC-32"))
"""After ``LARGE_BODY``; older records end before it."""
MESSAGE_ID: Final = Layout(("message_id", "Q", "message id"))
PLACE: Final = Layout(("place", "Q", "place"))
CONSUMER_ID: Final = Layout(("consumer", "Q", "their consumer"))
CAUSE: Final = Layout(
    ("consumer", "Q", "its consumer"),
    (
        "cause",
        "B",
        "0 unknown, 1 nacked, 2 aborted (its transaction), 3 lost (connection or session), 4 lapsed (the lease)",
    ),
)
SETTLED_FIELDS: Final = Layout(
    ("queue", "I", "queue"), ("reason", "B", "reason, see below"), ("count", "I", "number of messages")
)
ATTEMPTED_FIELDS: Final = Layout(
    ("queue", "I", "queue"),
    ("message_id", "Q", "message id"),
    ("attempts", "H", "failed deliveries so far"),
    ("due_ms", "Q", "time of the next attempt; 0: at once"),
)
IDS_FIELDS: Final = Layout(("queue", "I", "queue"), ("count", "I", "number of messages"))
ORIGIN_FIELDS: Final = Layout(("session", "Q", "number of the session that sent what follows; 0: the broker"))
DEPTH: Final = Layout(
    ("queue", "I", "queue"),
    ("count", "Q", "its persistent messages"),
    ("size_bytes", "Q", "their encoded size"),
    ("delivering", "I", "how many of them are in delivery"),
    ("scheduled", "I", "how many are scheduled"),
)
PAGE_GREW_FIELDS: Final = Layout(
    ("stream", "I", "stream"),
    ("page", "I", "page"),
    ("count", "I", "messages in it that count: those at places `first_place` to `first_place` + count − 1"),
    ("size_bytes", "Q", "the valid size of the file, in bytes from its beginning"),
    ("expires_ms", "Q", "the earliest expiry of its messages; 0: never"),
    ("has_large", "B", "1: a body is in a file of its own"),
    ("shares", "H", "number of durable queues"),
)
SHARE: Final = Layout(
    ("queue", "I", "queue"),
    ("count", "I", "persistent messages sent to it"),
    ("size_bytes", "Q", "their encoded size"),
)
PAGE_BEGIN: Final = Layout(
    ("first_place", "Q", "first place of the page"), ("address_bytes", "H", "length of the address")
)
PAGE_SETTLED_FIELDS: Final = Layout(
    ("queue", "I", "queue"),
    ("stream", "I", "stream"),
    ("page", "I", "page"),
    ("reason", "B", "reason, as in SETTLED"),
    ("count", "I", "number of messages"),
    ("size_bytes", "Q", "their encoded size"),
)
PAGE_PURGED_FIELDS: Final = Layout(
    ("queue", "I", "queue"),
    ("stream", "I", "stream"),
    ("page", "I", "page"),
    ("kept", "I", "number of messages kept"),
    ("kept_bytes", "Q", "their encoded size"),
)
PURGED: Final = Layout(
    ("reason", "B", "reason, as in SETTLED"),
    ("count", "I", "number of persistent messages removed"),
    ("size_bytes", "Q", "their encoded size"),
)
PAGE_ATTEMPTED_FIELDS: Final = Layout(
    ("queue", "I", "queue"),
    ("stream", "I", "stream"),
    ("page", "I", "page"),
    ("place", "Q", "place"),
    ("message_id", "Q", "message id; 0 in a record that only repeats"),
    ("attempts", "H", "failed deliveries so far"),
    ("due_ms", "Q", "time of the next attempt; 0: at once"),
)
PAGE_DROPPED_FIELDS: Final = Layout(("stream", "I", "stream"), ("page", "I", "page"))
PAGE_PLACES_FIELDS: Final = Layout(
    ("queue", "I", "queue"),
    ("stream", "I", "stream"),
    ("page", "I", "page"),
    ("first_place", "Q", "first place"),
    ("count", "I", "persistent messages settled"),
    ("size_bytes", "Q", "their encoded size"),
)
PAGED_FIELDS: Final = Layout(("origin", "Q", "number of the connection that sent it"))

_CONSUMER: Final = Part(CONSUMER_ID, is_optional=True)
_CAUSE: Final = Part(CAUSE, is_optional=True)
_IDS: Final[tuple[Part, ...]] = (Part(MESSAGE_ID, times="count"), _CONSUMER)
_MESSAGE: Final[tuple[Part | Text, ...]] = (
    Part(MESSAGE_FIELDS),
    Part(QUEUE_STATE, times="queues"),
    Text("address", "address_bytes", "address"),
    Text("head", "head_bytes", "header block: the lines of a STOMP 1.2 MESSAGE, ended by an empty line"),
    Text("body", "", "body, to the end of the payload; with flag 4 what stands for it"),
)
_GREW: Final[tuple[Part | Text, ...]] = (
    Part(PAGE_GREW_FIELDS),
    Part(SHARE, times="shares"),
    Part(PAGE_BEGIN, is_optional=True),
    Text("address", "address_bytes", "address"),
)
_PURGED: Final[tuple[Part, ...]] = (Part(PAGE_PURGED_FIELDS), Part(PLACE, times="kept"), Part(PURGED, is_optional=True))
_PLACES: Final[tuple[Part | Text, ...]] = (
    Part(PAGE_PLACES_FIELDS),
    Text("places", "", "a bit for each place, the lowest first"),
)
_PAGED: Final[tuple[Part | Text, ...]] = (Part(PAGED_FIELDS), Text("message", "", "the payload of a MESSAGE record"))
KINDS: Final[tuple[Kind, ...]] = (
    Kind(BATCH, "batch", "the beginning of a batch", (Part(BATCH_FIELDS),)),
    Kind(MESSAGE, "message", "a message and the queues that it reached", _MESSAGE),
    Kind(SETTLED, "settled", "a queue is done with messages", (Part(SETTLED_FIELDS), *_IDS)),
    Kind(ATTEMPTED, "attempted", "a delivery failed", (Part(ATTEMPTED_FIELDS), _CAUSE)),
    Kind(DUE, "due", "scheduled messages took their places", (Part(IDS_FIELDS), *_IDS)),
    Kind(ADDRESS, "address", "an address was created, changed or deleted", is_json=True),
    Kind(QUEUE, "queue", "a queue was created or changed", is_json=True),
    Kind(QUEUE_DELETED, "queue-deleted", "a queue was deleted", is_json=True),
    Kind(DUPLICATE, "duplicate-id", "an address saw a duplicate id, or a transaction was committed under it",
         is_json=True),
    Kind(GROUP, "group", "records that count together or not at all"),
    Kind(DELIVERED, "delivered", "consumers were sent messages (only with retention)", (Part(IDS_FIELDS), *_IDS)),
    Kind(DUPLICATES_CLEARED, "duplicate-ids-cleared", "an address forgets its duplicate ids", is_json=True),
    Kind(PAGE_OPENED, "page-opened", "an address got a new page", is_json=True),
    Kind(PAGE_GREW, "page-grew", "the valid size of a page, and its messages for durable queues", _GREW),
    Kind(PAGE_SETTLED, "page-settled", "a queue is done with messages of one page",
         (Part(PAGE_SETTLED_FIELDS), Part(PLACE, times="count"), *_IDS)),
    Kind(PAGE_PURGED, "page-purged", "a queue is done with a whole page, except for some messages", _PURGED),
    Kind(PAGE_ATTEMPTED, "page-attempted", "a delivery of a message in a page failed",
         (Part(PAGE_ATTEMPTED_FIELDS), _CAUSE)),
    Kind(PAGE_DROPPED, "page-dropped", "every queue is done with a page", (Part(PAGE_DROPPED_FIELDS),)),
    Kind(PAGE_PLACES, "page-places", "all places of a page that a queue is done with", _PLACES),
    Kind(PAGED, "paged", "a message; only in page files", _PAGED),
    Kind(SESSION, "session", "who a client is (only with retention)", is_json=True),
    Kind(CONSUMER, "consumer", "a consumer joined, or left (only with retention)", is_json=True),
    Kind(ORIGIN, "origin", "the sender of the messages that follow (only with retention)", (Part(ORIGIN_FIELDS),)),
    Kind(REFUSED, "refused", "messages that an address refused (only with retention)", is_json=True),
    Kind(CURSOR, "cursor", "how far a reader has read the log", is_json=True),
    Kind(DEPTHS, "depths", "the number of messages on each queue (only with retention)", (Part(DEPTH, times="*"),)),
    Kind(BROKER, "broker", "which broker writes this, and since when (only with retention)", is_json=True),
    Kind(TRANSACTION, "transaction", "the GROUP that contains this is a client's transaction (only with retention)"),
    Kind(CONFIGURED, "configured", "an operator configured something besides addresses and queues, or undid it",
         is_json=True),
)  # fmt: skip
"""Every kind of record in a log or page, by number."""
RECORD_NAMES: Final = {kind.number: kind.name for kind in KINDS}


class CodecError(ArtemisError):
    """Bytes do not follow the format."""


class VersionError(CodecError):
    """A file has another format version: nothing after its header can be read."""


# ---- files -------------------------------------------------------------------------------------------------------


MAGIC: Final = b"ARTEMISJ"
FORMAT_VERSION: Final = 1
KIND_JOURNAL: Final = 1
KIND_PAGE: Final = 2
KIND_BINDINGS: Final = 3
FILE_HEADER: Final = Layout(
    ("magic", "8s", "`41 52 54 45 4d 49 53 4a`, \"ARTEMISJ\""),
    ("version", "H", "format version: 1. A reader refuses others"),
    ("kind", "H", "kind of file: 1, a journal segment; 2, a page; 3, a copy of bindings"),
    ("reserved", "I", "0"),
    ("number", "Q", "segment number, as in the name"),
    ("first_lsn", "Q", "the lowest lsn in the file"),
    ("created_ms", "Q", "time of creation"),
    ("before_lsn", "Q", "lsn of the last valid record before this file, without BATCH records; 0: unknown"),
    ("made_bytes", "Q", "the initial size of the file in bytes: it is never shorter; 0: unknown"),
    ("reserved_2", "I", "0"),
    ("checksum", "I", "CRC-32 of all bytes before it"),
)  # fmt: skip
FILE_HEADER_BYTES: Final = FILE_HEADER.size_bytes
_FILE_HEADER: Final = FILE_HEADER.struct
_U32: Final = CHECKSUM.struct


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
    """The bytes at the beginning of a file."""
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
        0,
        0,
    )[: -_U32.size]
    return fields + _U32.pack(crc32(fields))


def decode_file_header(data: bytes) -> FileHeader:
    """Decode a header. Raises CodecError unless it is of this format version."""
    if len(data) < FILE_HEADER_BYTES:
        raise CodecError(f"the header has {len(data)} bytes instead of {FILE_HEADER_BYTES}")
    magic, version, kind, _, number, first_lsn, created_ms, before_lsn, made_bytes, _, checksum = (
        _FILE_HEADER.unpack_from(data)
    )
    if magic != MAGIC:
        raise CodecError("not a journal file: the first eight bytes are not ARTEMISJ")
    if checksum != crc32(data[: FILE_HEADER_BYTES - _U32.size]):
        raise CodecError("the file header is damaged: its checksum does not match")
    if version != FORMAT_VERSION:
        raise VersionError(f"format version {version}; this program reads version {FORMAT_VERSION}")
    return FileHeader(kind, number, first_lsn, created_ms, before_lsn, made_bytes)


def is_blank(data: bytes) -> bool:
    """Is a file empty after its header?"""
    return not any(data[FILE_HEADER_BYTES:])


# ---- records in a file -------------------------------------------------------------------------------------------


_HEADER: Final = HEADER.struct
_CHECKED_HEADER: Final = CHECKED_HEADER.struct


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


def encode_record(type_code: int, lsn: int, payload: bytes) -> bytes:
    """A record with its checksum."""
    body = _CHECKED_HEADER.pack(len(payload), lsn, type_code) + payload
    return _U32.pack(crc32(body)) + body


def read_header(data: bytes | memoryview, offset: int) -> tuple[int, int, int, int]:
    """The header at ``offset``, which may be anything: checksum, length of the payload, lsn, type."""
    checksum, length, lsn, type_code = _HEADER.unpack_from(data, offset)
    return checksum, length, lsn, type_code


def is_intact(data: bytes | memoryview, offset: int, end: int, checksum: int) -> bool:
    """Is this the checksum of a record from ``offset`` to ``end``?"""
    return crc32(data[offset + CHECKED_AT : end]) == checksum


def end_said(data: bytes | memoryview, offset: int) -> int:
    """Where the record at ``offset`` ends according to its header."""
    return offset + RECORD_HEADER_BYTES + read_header(data, offset)[1]


def decode_record(data: bytes | memoryview, offset: int) -> Record | None:
    """The record at ``offset``; None at the end (zeros or nothing). Raises CodecError for anything else."""
    if len(data) - offset < RECORD_HEADER_BYTES:
        if any(data[offset:]):
            raise CodecError("a truncated record header")
        return None
    checksum, length, lsn, type_code = _HEADER.unpack_from(data, offset)
    end = offset + RECORD_HEADER_BYTES + length
    if not checksum and not length and not lsn and not type_code:
        return None
    if end > len(data):
        raise CodecError(
            f"a record of {length} bytes where the file has only {len(data) - offset - RECORD_HEADER_BYTES}"
        )
    if crc32(data[offset + CHECKED_AT : end]) != checksum:
        raise CodecError("a record with a wrong checksum")
    return Record(type_code, lsn, bytes(data[offset + RECORD_HEADER_BYTES : end]), offset)


def is_whole(data: bytes, offset: int) -> bool:
    """Does a valid record begin here?"""
    try:
        return decode_record(data, offset) is not None
    except CodecError:
        return False


def read_records(data: bytes, offset: int, behind: Callable[[int, str], int]) -> Iterator[Record]:
    """The valid records from ``offset`` on. Where none is, ``behind`` gets the place and the reason (empty: zeros), and
    returns where to go on; -1: nowhere.
    """
    end = len(data)
    while 0 <= offset < end:
        reason = ""
        record: Record | None = None
        try:
            record = decode_record(data, offset)
        except CodecError as problem:
            reason = str(problem)
        if record is None:
            offset = behind(offset, reason)
        else:
            yield record
            offset = record.end


def inner_records(payload: bytes) -> Iterator[Record]:
    """The records inside a GROUP record. Raises CodecError if one is invalid although the group's checksum is right,
    which no broker writes.
    """
    return read_records(payload, 0, _no_record)


def _no_record(_offset: int, reason: str) -> int:
    if reason:
        raise CodecError(reason)
    return -1


def whole_places(data: bytes, offset: int, places: list[int], groups: list[tuple[int, int, int]]) -> int:
    """Note the ``places`` of the valid records from ``offset`` on, and return where the first other thing is. Records
    inside a GROUP follow it; ``groups`` has for each the index of its first one, the index after its last one, and its
    lsn. It finds what ``decode_record`` finds, without an object for each. Raises CodecError for a GROUP with
    inconsistent inner records, which no broker writes.
    """
    unpack, note, size = _HEADER.unpack_from, places.append, len(data)
    last = size - RECORD_HEADER_BYTES
    while offset <= last:
        checksum, length, lsn, type_code = unpack(data, offset)
        end = offset + RECORD_HEADER_BYTES + length
        if end > size or crc32(data[offset + CHECKED_AT : end]) != checksum:
            return offset
        note(offset)
        if type_code == GROUP:
            first = len(places)
            _group_places(data, offset + RECORD_HEADER_BYTES, end, places)
            groups.append((first, len(places), lsn))
        offset = end
    return offset


def _group_places(data: bytes, offset: int, end: int, places: list[int]) -> None:
    """Note the records inside a GROUP, which its checksum covers."""
    while offset + RECORD_HEADER_BYTES <= end:
        places.append(offset)
        offset = end_said(data, offset)
    if offset != end:
        raise CodecError("a group with a truncated record")
