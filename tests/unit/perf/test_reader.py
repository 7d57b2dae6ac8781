from __future__ import annotations

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.reader import FrameReader, ServerFrame

STREAM = (
    b"CONNECTED\nversion:1.2\n\n\0\n\n"
    b"MESSAGE\ncontent-length:3\nid:1\nid:2\n\na\0b\0\r\n"
    b"ERROR\r\nmessage:it broke\r\n\r\nlong\nstory\0"
    b"RECEIPT\nreceipt-id:a:b\n\n\0"
)
EXPECTED = [
    ServerFrame("CONNECTED", {"version": "1.2"}, b""),
    ServerFrame("MESSAGE", {"content-length": "3", "id": "1"}, b"a\0b"),
    ServerFrame("ERROR", {"message": "it broke"}, b"long\nstory"),
    ServerFrame("RECEIPT", {"receipt-id": "a:b"}, b""),
]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 8, 13, 1000])
def test_frames_come_whole_wherever_the_reads_fall(step: int) -> None:
    reader = FrameReader()
    found: list[ServerFrame] = []
    for start in range(0, len(STREAM), step):
        reader.feed(STREAM[start : start + step])
        found += reader.frames()
    assert found == EXPECTED


def test_the_text_of_an_error_is_one_line() -> None:
    assert EXPECTED[2].text == "it broke | long story"
    assert ServerFrame("ERROR", {}, b"").text == "(no text)"
    assert ServerFrame("ERROR", {"message": "same"}, b"same").text == "same"


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"MESSAGE\ncontent-length:x\n\n\0", "not a number"),
        (b"MESSAGE\ncontent-length:1\n\nabc\0", "no NUL"),
        (b"HTTP/1.1 400 Bad Request\nnothing here\n\n\0", "without a colon"),
    ],
)
def test_what_is_not_stomp_is_refused(stream: bytes, text: str) -> None:
    reader = FrameReader()
    reader.feed(stream)
    with pytest.raises(PerfError, match=text):
        reader.pop()
