from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.errors import PerfError
from artemis_py.perf.pump import MarkerCounter, body_of, marker_of
from artemis_py.stomp.client import frame

BODY = body_of(100)
MESSAGE = frame("MESSAGE", (("message-id", "17"), ("content-length", "100")), BODY)
ERROR = frame("ERROR", (("message", "no such queue"),), b"try another")


def feed(counter: MarkerCounter, stream: bytes, cuts: list[int], buffer: bytearray) -> None:
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        block = stream[start:end]
        buffer[counter.start : counter.start + len(block)] = block
        counter.feed(buffer, len(block))


def count(stream: bytes, step: int, body: bytes = BODY) -> MarkerCounter:
    counter = MarkerCounter(marker_of(body))
    feed(counter, stream, list(range(step, len(stream), step)), bytearray(len(stream) + 64))
    return counter


def test_counts_messages_wherever_the_reads_fall() -> None:
    for step in (*range(1, 40), 99, 150, 151, 152, 10_000):
        assert count(MESSAGE * 20, step).count == 20, step


@pytest.mark.parametrize("size", [1, 2, 5, 6, 7, 8, 31, 32, 33])
def test_counts_short_bodies(size: int) -> None:
    body = body_of(size)
    for step in (1, 2, 3, 7, 1000):
        assert count(frame("MESSAGE", (("a", "b"),), body) * 9, step, body).count == 9, step


def test_receipts_and_heart_beats_do_not_count() -> None:
    stream = MESSAGE + b"\n" + frame("RECEIPT", (("receipt-id", "r"),)) + b"\n\n" + MESSAGE + b"\n"
    assert count(stream, 11).count == 2


@given(st.lists(st.integers(0, 60 * len(MESSAGE)), max_size=30), st.integers(0, 60))
def test_any_cut_gives_the_same_count(cuts: list[int], messages: int) -> None:
    stream = MESSAGE * messages
    counter = MarkerCounter(marker_of(BODY))
    feed(counter, stream, sorted(min(cut, len(stream)) for cut in cuts), bytearray(len(stream) + 64))
    assert counter.count == messages


def test_many_counters_share_a_buffer() -> None:
    buffer = bytearray(1000)
    counters = [MarkerCounter(marker_of(BODY)) for _ in range(3)]
    for start in range(0, len(MESSAGE) * 2, 10):
        for counter in counters:
            block = (MESSAGE * 2)[start : start + 10]
            buffer[counter.start : counter.start + len(block)] = block
            counter.feed(buffer, len(block))
    assert [counter.count for counter in counters] == [2, 2, 2]


@pytest.mark.parametrize("before", [b"", MESSAGE, MESSAGE + b"\n", MESSAGE + b"\r\n"])
def test_an_error_frame_is_noticed(before: bytes) -> None:
    for step in (*range(1, 12), 1000):
        counter = count(before + ERROR + MESSAGE, step)
        with pytest.raises(PerfError, match=r"no such queue \| try another"):
            counter.raise_error()


def test_an_error_frame_with_carriage_returns_is_noticed() -> None:
    counter = count(MESSAGE + b"ERROR\r\nmessage:old\r\n\r\nbody\0", 4)
    with pytest.raises(PerfError, match="old"):
        counter.raise_error()


def test_the_word_inside_a_message_is_no_error() -> None:
    stream = frame("MESSAGE", (("level", "ERROR"), ("ERROR", "x")), b"an ERROR\nhere" + BODY)
    count(stream, 5).raise_error(closed=True)


def test_an_unfinished_error_counts_only_when_the_stream_has_ended() -> None:
    counter = count(MESSAGE + ERROR[:-5], 50)
    counter.raise_error()
    with pytest.raises(PerfError, match="incomplete ERROR"):
        counter.raise_error(closed=True)


def test_after_last_is_what_follows_the_last_message() -> None:
    counter = MarkerCounter(marker_of(BODY))
    stream = MESSAGE + MESSAGE + b"\nRECEIPT"
    buffer = bytearray(1000)
    buffer[counter.start : counter.start + len(stream)] = stream
    counter.feed(buffer, len(stream))
    assert counter.after_last(buffer, len(stream)) == b"\nRECEIPT"
