"""Reading WebSocket frames, without a connection: the Autobahn cases that apply, and how streams are cut."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.server.websocket.websocket import FRAME_UNITS, SLICE_BYTES, WHOLE_UNITS, Handshake, Inbound
from tests.kit.web_frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    RSV1,
    RSV2,
    RSV3,
    TEXT,
    frame,
    request,
)  # fmt: skip

FRAME_MAX = 65536
UTF8 = "κόσμε 東京 🎈".encode()


def opened(rules: WebSocketRules | None = None, *headers: str) -> Inbound:
    """The reading side behind a handshake."""
    handshake = Handshake(rules or WebSocketRules())
    assert handshake.take(request(*headers)) == b""
    assert handshake.protocol is not None, handshake.response
    return Inbound(handshake.protocol, FRAME_MAX)


def read(inbound: Inbound, *parts: bytes) -> bytes:
    """The payload of a stream that arrives in these parts."""
    payload = b""
    for part in parts:
        inbound.add(part)
        while inbound.has_more:
            payload += inbound.read()
    return payload


GOOD = {
    "1.1.1 empty text": ([frame(TEXT)], b""),
    "1.1.2 text of 125": ([frame(TEXT, b"*" * 125)], b"*" * 125),
    "1.1.3 text of 126": ([frame(TEXT, b"*" * 126)], b"*" * 126),
    "1.1.4 text of 127": ([frame(TEXT, b"*" * 127)], b"*" * 127),
    "1.1.5 text of 128": ([frame(TEXT, b"*" * 128)], b"*" * 128),
    "1.1.6 text of 65535": ([frame(TEXT, b"*" * 65535)], b"*" * 65535),
    "1.1.7 text of 65536": ([frame(TEXT, b"*" * 65536)], b"*" * 65536),
    "1.2.1 empty binary": ([frame(BINARY)], b""),
    "1.2.7 binary of 65536": ([frame(BINARY, b"\xfe" * 65536)], b"\xfe" * 65536),
    "2.1 ping": ([frame(PING)], b""),
    "2.4 ping of 125": ([frame(PING, b"\xfe" * 125)], b""),
    "2.7 pong nobody asked for": ([frame(PONG, b"x")], b""),
    "2.10 ten pings": ([frame(PING, b"%d" % n) for n in range(10)], b""),
    "5.3 fragments": ([frame(TEXT, b"a", fin=False), frame(CONTINUATION, b"b")], b"ab"),
    "5.6 ping between fragments": (
        [frame(TEXT, b"a", fin=False), frame(PING, b"p"), frame(CONTINUATION, b"b"), frame(TEXT, b"c")],
        b"abc",
    ),
    "6.1.2 empty fragments": (
        [frame(TEXT, fin=False), frame(CONTINUATION, fin=False), frame(CONTINUATION)],
        b"",
    ),
    "6.2.1 UTF-8": ([frame(TEXT, UTF8)], UTF8),
    "6.2.3 UTF-8 a byte in each fragment": (
        [
            frame(TEXT, fin=False),
            *(frame(CONTINUATION, UTF8[at : at + 1], fin=False) for at in range(len(UTF8))),
            frame(CONTINUATION),
        ],
        UTF8,
    ),
    "no UTF-8 in a binary": ([frame(BINARY, b"\xff", fin=False), frame(CONTINUATION, b"\xc3")], b"\xff\xc3"),
    "a binary after a text": ([frame(TEXT, b"a"), frame(BINARY, b"\xff"), frame(TEXT, b"b")], b"a\xffb"),
    "9.1.1 4 MiB in fragments": (
        [
            frame(BINARY, b"*" * 65536, fin=False),
            *[frame(CONTINUATION, b"*" * 65536, fin=False)] * 62,
            frame(CONTINUATION, b"*" * 65536),
        ],
        b"*" * 4194304,
    ),
}

BAD = {
    "2.5 ping of 126": ([frame(PING, b"\xfe" * 126)], 1002),
    "3.1 RSV3": ([frame(TEXT, b"x", bits=RSV3)], 1002),
    "3.2 RSV2": ([frame(TEXT, b"x", bits=RSV2)], 1002),
    "3.4 RSV1 without compression": ([frame(TEXT, b"x", bits=RSV1)], 1002),
    "3.5 RSV of a ping": ([frame(PING, b"x", bits=RSV1)], 1002),
    "3.7 RSV of CLOSE": ([frame(CLOSE, b"\x03\xe8", bits=RSV1 | RSV2 | RSV3)], 1002),
    **{f"4.1 opcode {opcode}": ([frame(opcode, b"x")], 1002) for opcode in range(3, 8)},
    **{f"4.2 opcode {opcode}": ([frame(opcode, b"x")], 1002) for opcode in range(11, 16)},
    "5.1 ping in fragments": ([frame(PING, b"a", fin=False), frame(CONTINUATION, b"b")], 1002),
    "5.2 pong in fragments": ([frame(PONG, b"a", fin=False), frame(CONTINUATION, b"b")], 1002),
    "5.9 continuation of nothing": ([frame(CONTINUATION, b"a")], 1002),
    "5.12 continuation of nothing, not the last": ([frame(CONTINUATION, b"a", fin=False)], 1002),
    "5.15 continuation after the end": (
        [frame(TEXT, b"a", fin=False), frame(CONTINUATION, b"b"), frame(CONTINUATION, b"c", fin=False)],
        1002,
    ),
    "5.18 a text in the middle of a text": ([frame(TEXT, b"a", fin=False), frame(TEXT, b"b")], 1002),
    "no mask": ([frame(TEXT, b"x", mask=None)], 1002),
    "6.3.1 no UTF-8": ([frame(TEXT, b"\xce\xba\xed\xa0\x80edited")], 1007),
    "6.4.1 no UTF-8 in a fragment": ([frame(TEXT, b"a", fin=False), frame(CONTINUATION, b"\xf4\x90")], 1007),
    "6.8 half a character at the end": ([frame(TEXT, b"a\xce")], 1007),
    "6.20 a lonely continuation byte": ([frame(TEXT, b"\x80")], 1007),
    "7.3.2 CLOSE of one byte": ([frame(CLOSE, b"\x03")], 1002),
    "7.5.1 reason without UTF-8": ([frame(CLOSE, b"\x03\xe8\xce\xba\xed\xa0\x80")], 1007),
    "7.3.6 CLOSE of 126 bytes": ([frame(CLOSE, b"\x03\xe8" + b"*" * 124)], 1002),
    **{
        f"7.9 close code {code}": ([frame(CLOSE, code.to_bytes(2, "big"))], 1002)
        for code in (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535)
    },
    "too long": ([frame(BINARY, b"x" * (FRAME_MAX + 1))], 1009),
    "very long, only announced": ([bytes((0x82, 0xFF)) + (1 << 62).to_bytes(8, "big")], 1009),
}


@pytest.mark.parametrize("case", GOOD)
def test_good(case: str) -> None:
    frames, payload = GOOD[case]
    inbound = opened()
    assert read(inbound, b"".join(frames)) == payload
    assert (inbound.code, inbound.close) == (0, None)


@pytest.mark.parametrize("case", GOOD)
def test_good_byte_by_byte(case: str) -> None:
    frames, payload = GOOD[case]
    stream = b"".join(frames)
    if len(stream) > 1000:
        stream, payload = b"".join(frames[:1])[:900], b""
    inbound = opened()
    assert read(inbound, *(stream[at : at + 1] for at in range(len(stream)))) == payload
    assert (inbound.code, inbound.close) == (0, None)


@pytest.mark.parametrize("case", BAD)
def test_bad(case: str) -> None:
    """The close code; what came before is there; nothing is read afterwards, and nothing kept."""
    frames, code = BAD[case]
    inbound = opened()
    assert read(inbound, frame(BINARY, b"before"), b"".join(frames), frame(BINARY, b"after")).startswith(b"before")
    assert inbound.code == code
    assert inbound.reason
    assert inbound.held_bytes == 0
    assert read(inbound, frame(BINARY, b"after")) == b""


@pytest.mark.parametrize("case", BAD)
def test_bad_byte_by_byte(case: str) -> None:
    frames, code = BAD[case]
    stream = b"".join(frames)[:400] if "too long" in case else b"".join(frames)
    inbound = opened()
    read(inbound, *(stream[at : at + 1] for at in range(len(stream))))
    assert inbound.code == code


@pytest.mark.parametrize("payload", [b"", b"\x03\xe8", b"\x0f\xa0my reason", b"\x0b\xb8", b"\x03\xf3"])
def test_close(payload: bytes) -> None:
    """Kept as it came; what follows is dropped."""
    inbound = opened()
    assert read(inbound, frame(TEXT, b"a"), frame(CLOSE, payload) + frame(TEXT, b"b")) == b"a"
    assert (inbound.close, inbound.code) == (payload, 0)


def test_close_in_the_middle_of_a_message() -> None:
    inbound = opened()
    assert read(inbound, frame(TEXT, b"a", fin=False) + frame(CLOSE, b"\x03\xe8")) == b"a"
    assert inbound.close is not None
    assert inbound.code == 0


def test_only_the_last_ping_of_a_slice_is_answered() -> None:
    inbound = opened()
    read(inbound, b"".join(frame(PING, b"%d" % n) for n in range(50)))
    assert inbound.pong == b"49"


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_the_first_message_says_what_the_client_speaks(opcode: int) -> None:
    inbound = opened()
    assert inbound.is_text is None
    read(inbound, frame(opcode, b"a") + frame(TEXT + BINARY - opcode, b"b"))
    assert inbound.is_text is (opcode == TEXT)


@pytest.mark.parametrize("flood", [frame(PING), frame(PONG, b"x"), frame(BINARY), frame(CONTINUATION, fin=False)])
def test_a_flood_is_read_in_small_slices_and_charged(flood: bytes) -> None:
    """A turn can stop after every slice, and each frame costs something."""
    inbound = opened()
    read(inbound, frame(BINARY, fin=False))
    if flood[0] == 0x82:
        read(inbound, frame(CONTINUATION))
    inbound.units = 0
    inbound.add(flood * 5000)
    slices = 0
    while inbound.has_more:
        before = inbound.units
        inbound.read()
        slices += 1
        assert inbound.units - before <= FRAME_UNITS * (SLICE_BYTES // len(flood) + 2)
    each = WHOLE_UNITS if flood[0] == 0x82 else FRAME_UNITS
    assert each * 5000 <= inbound.units <= each * 5000 + FRAME_UNITS * slices
    assert slices >= 5000 * len(flood) // SLICE_BYTES


def test_what_is_held_is_the_unfinished_frame() -> None:
    """A message without an end holds nothing: its fragments have gone on."""
    inbound = opened()
    for _ in range(200):
        read(inbound, frame(BINARY if inbound.is_text is None else CONTINUATION, b"x" * 5000, fin=False))
        assert inbound.held_bytes == 0
    read(inbound, frame(CONTINUATION, b"x" * 60000)[:50000])
    assert 49000 < inbound.held_bytes <= 50000


DEFLATE = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"


def test_a_bomb_is_refused() -> None:
    import zlib

    squeezer = zlib.compressobj(9, zlib.DEFLATED, -12)
    bomb = squeezer.compress(bytes(50_000_000)) + squeezer.flush(zlib.Z_SYNC_FLUSH)
    inbound = opened(WebSocketRules(compresses=True), DEFLATE)
    assert len(bomb) < FRAME_MAX
    assert read(inbound, frame(BINARY, bomb[:-4], bits=RSV1)) == b""
    assert inbound.code == 1009


def test_compressed_messages() -> None:
    import zlib

    squeezer = zlib.compressobj(9, zlib.DEFLATED, -12)
    inbound = opened(WebSocketRules(compresses=True), DEFLATE)
    for text in (UTF8 * 100, UTF8 * 50):
        data = squeezer.compress(text) + squeezer.flush(zlib.Z_SYNC_FLUSH)
        assert read(inbound, frame(TEXT, data[:-4], bits=RSV1)) == text
    assert inbound.held_bytes > 0, "the windows count"
    assert read(inbound, frame(TEXT, b"\xff\xff\xff", bits=RSV1)) == b""
    assert inbound.code == 1002


Frames = st.lists(
    st.tuples(
        st.sampled_from([CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG, 3, 11]),
        st.one_of(st.binary(max_size=300), st.text(max_size=60).map(str.encode)),
        st.booleans(),
        st.sampled_from([0, 0, 0, RSV1, RSV2]),
    ),
    max_size=12,
)


@given(frames=Frames, seed=st.integers(0, 2**32))
def test_any_frames_mean_the_same_however_they_arrive(frames: list[tuple[int, bytes, bool, int]], seed: int) -> None:
    stream = b"".join(frame(opcode, data, fin=fin, bits=bits) for opcode, data, fin, bits in frames)
    whole, cut, rng = opened(), opened(), random.Random(seed)
    expected = read(whole, stream)
    places = sorted(rng.randrange(len(stream) + 1) for _ in range(5))
    parts = [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]
    assert read(cut, *parts) == expected
    assert (cut.code, cut.close, cut.is_text) == (whole.code, whole.close, whole.is_text)


@given(st.binary(max_size=3000))
def test_any_bytes_end_in_an_answer(data: bytes) -> None:
    inbound = opened()
    read(inbound, data)
    assert inbound.held_bytes <= len(data)
    assert inbound.code in (0, 1002, 1007, 1009)
