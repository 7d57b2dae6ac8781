"""All walks over records find the same: as objects, as places, in a survey and in slices, whole and damaged."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.replay.replay import Addresses
from artemis_py.replay_log import Spot
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import BatchHeader, Kept
from artemis_py.storage.format.records import (
    BATCH,
    DELIVERED,
    FILE_HEADER_BYTES,
    GROUP,
    KIND_JOURNAL,
    MESSAGE,
    ORIGIN,
    RECORD_HEADER_BYTES,
    RECORD_NAMES,
    SETTLED,
    TYPE_AT,
    CodecError,
    FileHeader,
    encode_file_header,
    encode_record,
    inner_records,
    read_header,
    read_records,
    whole_places,
)
from artemis_py.storage.replay import LogSlice, SegmentContent
from artemis_py.storage.retention.survey import Survey
from tests.kit.crash.prepared import message

PLAIN = st.sampled_from([number for number in RECORD_NAMES if number != GROUP])
ANY = st.tuples(PLAIN, st.binary(max_size=40))
DAMAGE = st.tuples(st.integers(0, 4000), st.integers(1, 255))


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Records of any kind with any payload, alone and in groups, with zeros or nothing behind them."""
    lsn = 0
    parts: list[bytes] = []
    for together in draw(st.lists(st.lists(ANY, min_size=1, max_size=4), max_size=8)):
        inner: list[bytes] = []
        for kind, payload in together:
            lsn += 1
            inner.append(encode_record(kind, lsn, payload))
        lsn += 1
        parts += inner if len(inner) == 1 else [encode_record(GROUP, lsn, b"".join(inner))]
    return b"".join(parts) + bytes(draw(st.sampled_from([0, 5, 17, 100])))


@given(records(), st.lists(DAMAGE, max_size=3))
def test_places_are_those_of_records(data: bytes, damages: list[tuple[int, int]]) -> None:
    damaged = bytearray(data)
    for place, bits in damages:
        if place < len(damaged):
            damaged[place] ^= bits
    data = bytes(damaged)
    stopped: list[int] = []
    found = list(read_records(data, 0, lambda offset, _: stopped.append(offset) or -1))
    expected: list[int] = []
    groups: list[tuple[int, int, int]] = []
    for record in found:
        expected.append(record.offset)
        if record.type_code == GROUP:
            first = len(expected)
            start = record.offset + RECORD_HEADER_BYTES
            expected += [start + inner.offset for inner in inner_records(record.payload)]
            groups.append((first, len(expected), record.lsn))
    places: list[int] = []
    of_groups: list[tuple[int, int, int]] = []
    assert whole_places(data, 0, places, of_groups) == [*stopped, len(data)][0]
    assert places == expected
    assert of_groups == groups


@st.composite
def segments(draw: st.DrawFn) -> bytes:
    """A segment of messages and their ends, alone and in groups."""
    parts = [encode_file_header(FileHeader(KIND_JOURNAL, 1, 1, 500))]
    lsn = 0
    for number, together in enumerate(draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=8))):
        inner: list[bytes] = []
        for choice in together:
            lsn += 1
            if choice < 2:
                kept = Kept(message(lsn, b"x" * (lsn % 7), "orders"), lsn, list(range(choice + 1)))
                inner.append(encode_record(MESSAGE, lsn, codec.encode_message(kept)))
            elif choice == 2:
                inner.append(encode_record(SETTLED, lsn, codec.encode_settled(1, "acked", [lsn])))
            else:
                inner.append(encode_record(DELIVERED, lsn, codec.encode_ids(1, [lsn, lsn + 1], 9)))
        if len(inner) > 1:
            lsn += 1
            inner = [encode_record(ORIGIN, lsn, codec.encode_origin(4)), encode_record(GROUP, lsn + 1, b"".join(inner))]
            lsn += 1
        lsn += 1
        parts += [encode_record(BATCH, lsn, codec.encode_batch(BatchHeader(number, 700, 0, 0))), *inner]
    return b"".join(parts)


@given(segments(), st.lists(DAMAGE, max_size=1))
def test_a_survey_and_slices_check_the_same_records(data: bytes, damages: list[tuple[int, int]]) -> None:
    content = bytearray(data[FILE_HEADER_BYTES:])
    for place, bits in damages:
        if place < len(content):
            content[place] ^= bits
    places: list[int] = []
    groups: list[tuple[int, int, int]] = []
    stopped = whole_places(bytes(content), 0, places, groups)
    whole = data[:FILE_HEADER_BYTES] + bytes(content)
    survey = Survey(whole, len(whole))
    with pytest.raises(CodecError) if stopped < len(content) else nullcontext():
        while survey.step(3):
            pass
    piece = LogSlice("key", Spot(1, FILE_HEADER_BYTES), bytes(content), extent=SegmentContent(len(whole), len(whole)))
    while piece.scan(2):
        pass
    lsns = [read_header(bytes(content), place)[2] for place in places if content[place + TYPE_AT] == MESSAGE]
    places_of_orders = piece.select(Addresses(("orders",), WildcardSyntax()))
    seen = [found.message.lsn for index in places_of_orders if (found := piece.get(index)) is not None]
    assert seen == lsns
