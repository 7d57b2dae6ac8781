"""Raw records of every type, drawn by Hypothesis, as the bytes of a journal file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from artemis_py.message import (
    COPIED,
    COPIED_QUEUE,
    COPIED_REASON,
    UNKNOWN,
    Account,
    Head,
    LargeBody,
    Message,
    encode_headers,
)
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import BatchHeader, Kept
from artemis_py.storage.format.records import (
    ATTEMPTED,
    BATCH,
    CAUSES,
    DELIVERED,
    DUE,
    FLAG_PAGED,
    GROUP,
    KIND_JOURNAL,
    MESSAGE,
    ORIGIN,
    PAGE_ATTEMPTED,
    PAGE_PURGED,
    PAGE_SETTLED,
    REFUSED,
    SETTLED,
    TRANSACTION,
    FileHeader,
    encode_file_header,
    encode_record,
)

START_MS = 1_700_000_000_000
ADDRESSES = ("orders", "orders.eu", "ä", "DLQ", "a:b\\c\nd")
TEXTS = st.sampled_from(["", "x", "two words", "colon:and\\back", "line\nend\r", "ü€😀", "g" * 40])
NAMES = st.sampled_from(["JMSXGroupID", "_AMQ_GROUP_ID", "reason", "n", "odd:name", "_AMQ_ORIG_QUEUE", "x-JMSXGroupID"])
IDS = st.integers(1, 1 << 40)
QUEUES = st.integers(1, 5)
BODIES = st.one_of(
    st.binary(max_size=40),
    st.just(b"\0" * 30),
    st.just(encode_record(MESSAGE, 3, b"looks like one")),
    st.builds(lambda: encode_record(BATCH, 5, codec.encode_batch(BatchHeader(1, 2, 3, 4)))),
)


@st.composite
def messages(draw: st.DrawFn) -> Kept:
    """A message, whose lsn is told from where its record will be."""
    address = draw(st.sampled_from(ADDRESSES))
    headers = [("destination", f"/queue/{address}"), *draw(st.lists(st.tuples(NAMES, TEXTS), max_size=4))]
    if draw(st.booleans()):
        headers.append(("_AMQ_ORIG_ADDRESS", draw(TEXTS)))
    head = Head(
        encode_headers(headers),
        address,
        draw(st.integers(0, 9)),
        True,
        draw(st.booleans()),
        draw(st.sampled_from([None, "ANYCAST", "MULTICAST"])),
    )
    head.provenance = draw(st.integers(UNKNOWN, COPIED + COPIED_QUEUE + COPIED_REASON))
    body: Any = draw(BODIES)
    if draw(st.integers(0, 9)) == 0:
        body = LargeBody(draw(st.integers(1, 1 << 33)), draw(st.integers(1, 1 << 40)))
    times = draw(st.tuples(st.integers(0, 5000), st.sampled_from([0, 7, START_MS])))
    message = Message(head, body, draw(IDS), START_MS + times[0], times[1], Account(), 0)
    queues = draw(st.lists(QUEUES, max_size=3, unique=True))
    due = draw(st.sampled_from([0, 0, START_MS + 9]))
    is_copy = draw(st.integers(0, 5)) == 0
    kept = Kept(message, -1 if is_copy else 0, queues, draw(st.sampled_from([0, 0, FLAG_PAGED])))
    for queue in queues if due else ():
        kept.detail(queue).due_ms = due
    return kept


ID_LISTS = st.lists(IDS, min_size=1, max_size=5)
CONSUMERS = st.sampled_from([0, 11, 12])
CLIENTS = st.sampled_from([0, 21, 22, 23])


def _page_settled(queue: int, reason: int, ids: list[int], consumer: int) -> bytes:
    header = records.PAGE_SETTLED_FIELDS.struct.pack(queue, 1, 2, reason, len(ids), 99)
    numbers = b"".join(number.to_bytes(8, "little") for number in [*range(len(ids)), *ids])
    return header + numbers + (records.CONSUMER_ID.struct.pack(consumer) if consumer else b"")


REASONS = st.sampled_from(records.REASONS)
RECORDS: st.SearchStrategy[tuple[int, bytes | Kept]] = st.one_of(
    st.tuples(st.just(MESSAGE), messages()),
    st.tuples(st.just(MESSAGE), messages()),
    st.tuples(st.just(SETTLED), st.builds(codec.encode_settled, QUEUES, REASONS, ID_LISTS, CONSUMERS)),
    st.tuples(st.just(DELIVERED), st.builds(codec.encode_ids, QUEUES, ID_LISTS, CONSUMERS)),
    st.tuples(st.just(DUE), st.builds(codec.encode_ids, QUEUES, ID_LISTS)),
    st.tuples(
        st.just(ATTEMPTED),
        st.builds(
            codec.encode_attempted, QUEUES, IDS, st.integers(1, 9), st.just(0), CONSUMERS, st.sampled_from(CAUSES)
        ),
    ),
    st.tuples(
        st.just(PAGE_SETTLED),
        st.builds(_page_settled, QUEUES, st.integers(0, len(records.REASONS) - 1), ID_LISTS, CONSUMERS),
    ),
    st.tuples(
        st.just(PAGE_PURGED),
        st.builds(
            codec.PagePurged, QUEUES, st.just(1), st.just(2), st.just((3, 4)), st.just(50), REASONS,
            st.integers(0, 99), st.integers(0, 9999),
        ).map(codec.encode_page_purged),
    ),
    st.tuples(
        st.just(PAGE_ATTEMPTED),
        st.builds(
            codec.PageAttempted, QUEUES, st.just(1), st.just(2), st.just(3), st.sampled_from([0, 7]),
            st.integers(1, 9), st.just(0), CONSUMERS, st.sampled_from(CAUSES),
        ).map(codec.encode_page_attempted),
    ),
    st.tuples(st.just(ORIGIN), CLIENTS.map(codec.encode_origin)),
    st.tuples(
        st.just(REFUSED),
        st.builds(
            lambda address, session, count: codec.encode_fields(
                {"address": address, "policy": "drop", "session": session, "count": count, "bytes": count * 7}
            ),
            st.sampled_from(ADDRESSES), CLIENTS, st.integers(1, 9),
        ),
    ),
    st.tuples(st.just(99), st.binary(max_size=20)),
)  # fmt: skip


@dataclass
class RawFile:
    """The bytes of a file, and the places where its records begin."""

    data: bytes
    places: list[int]


@st.composite
def files(draw: st.DrawFn) -> RawFile:
    """A whole file of a few batches, with zeros behind it or not."""
    lsn = draw(st.integers(1, 1 << 33))
    data = encode_file_header(FileHeader(KIND_JOURNAL, 7, lsn, START_MS))
    places: list[int] = []
    number = draw(st.integers(1, 100))
    for _ in range(draw(st.integers(1, 4))):
        records: list[bytes] = []
        for grouped in draw(
            st.lists(st.one_of(RECORDS.map(lambda one: [one]), st.lists(RECORDS, max_size=3)), max_size=4)
        ):
            inner: list[bytes] = []
            for kind, told in grouped:
                if isinstance(told, Kept):
                    told.lsn += lsn
                inner.append(encode_record(kind, lsn, codec.encode_message(told) if isinstance(told, Kept) else told))
                lsn += 1
            if len(grouped) != 1:
                if draw(st.booleans()):
                    inner.append(encode_record(TRANSACTION, lsn, b""))
                    lsn += 1
                inner = [encode_record(GROUP, lsn, b"".join(inner))]
                lsn += 1
            records += inner
        now_ms = START_MS + draw(st.integers(0, 9)) * 1000
        batch = encode_record(BATCH, lsn, codec.encode_batch(BatchHeader(number, now_ms, 0, 0)))
        lsn += 1
        number += 1
        for record in [batch, *records]:
            places.append(len(data))
            data += record
    return RawFile(data + bytes(draw(st.sampled_from([0, 5, 17, 100]))), places)


@st.composite
def damaged_files(draw: st.DrawFn) -> RawFile:
    """A file that was torn off, or in which bytes are not what was written."""
    whole = draw(files())
    data = bytearray(whole.data)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(64, len(data) - 1))
        kind = draw(st.sampled_from(["tear", "zeros", "flip", "header"]))
        if kind == "tear":
            data[place:] = bytes(len(data) - place)
        elif kind == "zeros":
            data[place : place + 20] = bytes(min(20, len(data) - place))
        elif kind == "flip":
            data[place] ^= draw(st.integers(1, 255))
        elif whole.places:
            at = draw(st.sampled_from(whole.places)) + draw(st.integers(0, 16))
            data[at] = draw(st.integers(0, 255))
    return RawFile(bytes(data), whole.places)
