"""Random streams: however they are divided the frames are the same, and nothing but a recorded FrameError comes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from artemis_py.core.holdings import FRAME_BYTES, HEADER_BYTES
from artemis_py.stomp.wire.frames import COMMANDS, FrameError
from tests.unit.stomp.frame_tools import feed_all, parser

VERSIONS = st.sampled_from(["1.0", "1.1", "1.2"])
LIMITS = {"maxHeaderBytes": 600, "maxHeaderLineBytes": 200, "maxHeaders": 20, "maxBodyBytes": 400}
OBJECTS_BYTES_MAX = FRAME_BYTES + LIMITS["maxHeaders"] * HEADER_BYTES + 2 * LIMITS["maxHeaderBytes"]
UNFINISHED_BYTES_MAX = LIMITS["maxHeaderBytes"] + LIMITS["maxBodyBytes"] + OBJECTS_BYTES_MAX

line_ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])
plain_names = st.sampled_from(
    ["destination", "id", "receipt", "transaction", "content-type", "priority", "expires", "ack", "foo", "é", "a b"]
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n:\\"), max_size=12)
escapes = st.sampled_from(["\\n", "\\c", "\\\\", "\\r", "\\t", "\\", ":", " "])
values = st.lists(st.one_of(texts, texts, escapes), max_size=4).map("".join)
bodies = st.one_of(st.just(b""), st.binary(max_size=40), st.binary(max_size=500))


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """One frame, mostly well formed, with the line ends before it."""
    end = draw(line_ends)
    command = draw(st.sampled_from([*sorted(COMMANDS), "SEND", "SEND", "SEND"])).encode()
    lines = [command]
    lines += [
        f"{draw(plain_names)}:{draw(values)}".encode() for _ in range(draw(st.integers(min_value=0, max_value=5)))
    ]
    if draw(st.booleans()):
        lines.append(b"destination:/queue/x")
    body = draw(bodies)
    if draw(st.booleans()):
        wrong = draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, -1]))
        lines.append(b"content-length:%d" % (len(body) + wrong))
    else:
        body = body.replace(b"\0", b"")
    before = b"".join(draw(st.lists(line_ends, max_size=3)))
    return before + b"".join(line + end for line in lines) + end + body + b"\0"


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A stream of frames with a few bytes changed, put in or taken out."""
    data = bytearray(b"".join(draw(st.lists(frames(), min_size=1, max_size=5))))
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        place = draw(st.integers(min_value=0, max_value=max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["change", "insert", "remove"]))
        if kind == "insert":
            data[place:place] = draw(st.binary(min_size=1, max_size=3))
        elif kind == "remove":
            del data[place : place + 1]
        elif data:
            data[place] = draw(st.integers(min_value=0, max_value=255))
    return bytes(data)


streams = st.one_of(st.lists(frames(), max_size=6).map(b"".join), damaged())


def divided(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


@settings(max_examples=300)
@given(version=VERSIONS, data=streams, places=st.lists(st.integers(min_value=0, max_value=5000), max_size=12))
def test_division_does_not_matter(version: str, data: bytes, places: list[int]) -> None:
    """Same frames, and an error in the one case if and only if there is one in the other."""
    whole = parser(version, **LIMITS)
    parts = parser(version, **LIMITS)
    assert feed_all(parts, divided(data, places)) == feed_all(whole, [data])
    assert (parts.error is None) == (whole.error is None)


# The empty line of a CR LF frame shared its last byte with two line feeds that follow each other.
@example(version="1.0", data=b"ABORT\n\n\x00ABORT\r\n\r\n\n\x00")
@settings(max_examples=150)
@given(version=VERSIONS, data=streams)
def test_byte_by_byte(version: str, data: bytes) -> None:
    whole = parser(version, **LIMITS)
    single = parser(version, **LIMITS)
    assert feed_all(single, [data[index : index + 1] for index in range(len(data))]) == feed_all(whole, [data])
    assert (single.error is None) == (whole.error is None)


@settings(max_examples=200)
@given(version=VERSIONS, chunks=st.lists(st.one_of(st.binary(max_size=80), streams), max_size=30))
def test_rubbish_is_refused_and_not_kept(version: str, chunks: list[bytes]) -> None:
    """Whatever comes: FrameError is recorded, never raised, and an unfinished frame never grows past the limits."""
    one = parser(version, **LIMITS)
    for chunk in chunks:
        one.feed(chunk)
        if one.error is not None:
            assert isinstance(one.error, FrameError)
            assert str(one.error)
            assert one.feed(b"SEND\ndestination:x\n\n\0") == []
            return
        assert one.waiting_bytes <= UNFINISHED_BYTES_MAX + len(chunk)


@settings(max_examples=200)
@given(data=st.one_of(st.binary(max_size=700), damaged()), places=st.lists(st.integers(0, 800), max_size=6))
def test_the_first_frame_of_rubbish(data: bytes, places: list[int]) -> None:
    """``feed_one`` keeps to the same rules."""
    whole = parser(**LIMITS)
    frame_whole, rest_whole = whole.feed_one(data)
    parts = parser(**LIMITS)
    seen: list[object] = []
    rest = b""
    for chunk in divided(data, places):
        if seen or parts.error is not None:
            rest += chunk if seen else b""
            continue
        came, behind = parts.feed_one(chunk)
        seen.extend(came)
        rest += behind
    assert len(seen) == len(frame_whole)
    if seen:
        assert rest == rest_whole
