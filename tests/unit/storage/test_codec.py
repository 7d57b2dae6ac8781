"""Every record comes back from its bytes as it was, and bytes that are no record are refused."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order import entry
from artemis_py.message import COPIED, COPIED_QUEUE, COPIED_REASON, UNKNOWN, Account, Head, Message, encode_headers
from artemis_py.record_log import Depth
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.records import CodecError, FileHeader

U16 = st.integers(0, 2**16 - 1)
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
PAYLOADS = st.binary(max_size=300)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
IDS = st.lists(U64, max_size=20)


@st.composite
def kept_messages(draw: st.DrawFn) -> Kept:
    """Messages with every kind of state in their queues."""
    headers = draw(st.lists(st.tuples(TEXTS.filter(bool), TEXTS), max_size=4))
    head = Head(
        encode_headers([("destination", "a"), *headers]),
        draw(TEXTS),
        draw(st.integers(0, 9)),
        True,
        draw(st.booleans()),
        draw(st.sampled_from([None, "ANYCAST", "MULTICAST"])),
    )
    head.provenance = draw(st.integers(UNKNOWN, COPIED + COPIED_QUEUE + COPIED_REASON))
    message = Message(head, draw(PAYLOADS), draw(U64), draw(U64), draw(U64), Account(), 0)
    queue_ids = draw(st.lists(U32, max_size=5, unique=True))
    kept = Kept(message, draw(U64), queue_ids)
    for queue_id in draw(st.lists(st.sampled_from(queue_ids), unique=True)) if queue_ids else []:
        detail = kept.detail(queue_id)
        detail.attempts, detail.due_ms = draw(U16), draw(U64)
        detail.order = draw(st.integers(-(2**63), 2**63 - 1))
    return kept


@given(kept_messages())
def test_a_message_comes_back(kept: Kept) -> None:
    back = codec.decode_message(codec.encode_message(kept))
    one, other = kept.message, back.message
    for name in ("id", "body", "timestamp_ms", "expires_ms"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("block", "address", "priority", "persistent", "sized", "routing_type", "size_bytes", "provenance"):
        assert getattr(one.head, name) == getattr(other.head, name), name
    assert (back.lsn, back.queue_ids) == (kept.lsn, kept.queue_ids)
    assert [back.detail(number) for number in back.queue_ids] == [kept.detail(number) for number in kept.queue_ids]


@given(kept_messages(), st.data())
def test_a_message_that_is_cut_within_its_fields_is_refused(kept: Kept, data: st.DataObject) -> None:
    payload = codec.encode_message(kept)
    fixed = 44 + 22 * len(kept.queue_ids)
    with pytest.raises(CodecError):
        codec.decode_message(payload[: data.draw(st.integers(0, fixed - 1))])


@given(st.lists(kept_messages(), min_size=1, max_size=4), st.lists(st.integers(0, 3), min_size=1, max_size=8), U32, U64)
def test_a_run_is_the_same_bytes_as_its_messages_alone(
    kept: list[Kept], order: list[int], queue_id: int, first_lsn: int
) -> None:
    """Also when the same head follows itself, or comes again after another."""
    messages = [kept[number % len(kept)].message for number in order]
    lsn_max = 2**64 - 1 - len(messages)
    run = [Kept(message, min(first_lsn, lsn_max) + place, [queue_id]) for place, message in enumerate(messages)]
    alone = [records.encode_record(records.MESSAGE, one.lsn, codec.encode_message(one)) for one in run]
    assert b"".join(codec.encode_published(run)) == b"".join(alone)


@given(U32, st.sampled_from(records.REASONS), IDS, U64)
def test_settled_comes_back(queue_id: int, reason: str, message_ids: list[int], consumer: int) -> None:
    payload = codec.encode_settled(queue_id, reason, message_ids, consumer)
    assert codec.decode_settled(payload) == (queue_id, reason, tuple(message_ids), consumer)


@given(U32, U64, st.integers(0, 100_000), U64, st.integers(1, 2**64 - 1), st.sampled_from(records.CAUSES))
def test_attempted_comes_back_with_at_most_65535_attempts(
    queue_id: int, message_id: int, attempts: int, due_ms: int, consumer: int, cause: str
) -> None:
    payload = codec.encode_attempted(queue_id, message_id, attempts, due_ms, consumer, cause)
    assert codec.decode_attempted(payload) == (queue_id, message_id, min(attempts, 65535), due_ms, consumer, cause)


@given(U32, IDS, U64)
def test_ids_come_back_in_order(queue_id: int, message_ids: list[int], consumer: int) -> None:
    payload = codec.encode_ids(queue_id, message_ids, consumer)
    assert codec.decode_ids(payload) == (queue_id, tuple(message_ids), consumer)


def test_records_from_before_consumers_were_told() -> None:
    """Their payloads end where the consumer would be."""
    ids = bytes.fromhex("0c00000000000000 0d00000000000000")
    settled = bytes.fromhex("03000000 03 02000000") + ids
    delivered = bytes.fromhex("03000000 02000000") + ids
    attempted = bytes.fromhex("03000000 0c00000000000000 0200 0000000000000000")
    assert codec.decode_settled(settled) == (3, "killed", (12, 13), 0)
    assert codec.encode_settled(3, "killed", [12, 13]) == settled
    assert codec.decode_ids(delivered) == (3, (12, 13), 0)
    assert codec.encode_ids(3, [12, 13]) == delivered
    assert codec.decode_attempted(attempted) == (3, 12, 2, 0, 0, "")
    assert codec.encode_attempted(3, 12, 2, 0) == attempted


def test_the_core_speaks_of_reasons_and_causes_that_the_format_knows() -> None:
    known = {*records.REASONS, *records.CAUSES}
    assert {value for name, value in vars(entry).items() if name.isupper()} <= known


@given(U64)
def test_an_origin_comes_back(session: int) -> None:
    assert codec.decode_origin(codec.encode_origin(session)) == session


def test_records_of_messages_for_many_queues_do_not_depend_on_the_one_before() -> None:
    """What stands in the last one of its queues is remembered: for the same queues and place only."""
    message = Message(Head(b"\n", "a", persistent=True), b"body", 1, 0, 0, Account(), 0)
    many = list(range(1, 40))
    told = [(many, 0), (many, 0), (many, 7), (many[1:], 7), (many, 0), ([*many, 99], 0), (many, 0)]
    for queue_ids, place in told:
        kept = codec.Kept(message, 5, list(queue_ids))
        again = codec.Kept(message, 5, list(queue_ids))
        again.details = {}
        payload = codec.encode_message(kept, place)
        assert payload == codec.encode_message(again, place)
        kept.queue_ids.clear()


@given(st.lists(st.builds(Depth, U32, U64, U64, U32, U32), max_size=20))
def test_depths_come_back(depths: list[Depth]) -> None:
    assert codec.decode_depths(codec.encode_depths(depths)) == depths


@given(kept_messages(), st.integers(1, 2**63 - 1))
def test_a_message_in_a_page_says_where(kept: Kept, place: int) -> None:
    kept.details = None
    back = codec.decode_message(codec.encode_message(kept, place))
    assert {number: back.detail(number).order for number in kept.queue_ids} == dict.fromkeys(kept.queue_ids, place)


@given(U64, U64, U64, U64)
def test_a_batch_comes_back(number: int, now_ms: int, message_id: int, queue_id: int) -> None:
    batch = codec.BatchHeader(number, now_ms, message_id, queue_id)
    assert codec.decode_batch(codec.encode_batch(batch)) == batch


@given(st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS), max_size=5))
def test_fields_come_back(fields: dict[str, object]) -> None:
    assert codec.decode_fields(codec.encode_fields(fields)) == fields


@given(st.builds(FileHeader, U16, U64, U64, U64), st.integers(0, 63), st.integers(1, 255))
def test_a_file_header_comes_back_and_every_changed_byte_is_noticed(header: FileHeader, at: int, bits: int) -> None:
    data = records.encode_file_header(header)
    assert records.decode_file_header(data) == header
    changed = bytearray(data)
    changed[at] ^= bits
    with pytest.raises(CodecError):
        records.decode_file_header(bytes(changed))


@given(st.integers(1, 255), U64, PAYLOADS, st.data())
def test_a_record_comes_back_and_every_changed_byte_is_noticed(
    type_code: int, lsn: int, payload: bytes, data: st.DataObject
) -> None:
    record = records.encode_record(type_code, lsn, payload)
    before = data.draw(st.binary(max_size=10))
    back = records.decode_record(before + record + bytes(30), len(before))
    assert back is not None
    assert (back.type_code, back.lsn, back.payload) == (type_code, lsn, payload)
    assert back.end == len(before) + len(record)
    changed = bytearray(record)
    changed[data.draw(st.integers(0, len(record) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CodecError):
        records.decode_record(bytes(changed), 0)


@pytest.mark.parametrize("tail", [b"", bytes(5), bytes(100)], ids=["nothing", "a few zeros", "zeros"])
def test_zeros_and_nothing_are_the_end(tail: bytes) -> None:
    record = records.encode_record(records.BATCH, 1, b"x")
    assert records.decode_record(record + tail, len(record)) is None


def test_a_header_of_another_version_says_so() -> None:
    data = bytearray(records.encode_file_header(FileHeader(1, 1, 1, 1)))
    data[8] = records.FORMAT_VERSION + 1
    data[60:64] = crc32(bytes(data[:60])).to_bytes(4, "little")
    with pytest.raises(CodecError, match=f"version {records.FORMAT_VERSION + 1}"):
        records.decode_file_header(bytes(data))
