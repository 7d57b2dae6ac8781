"""STOMP frames: streams that are cut anywhere give the same frames, and rubbish is refused and not kept."""

from __future__ import annotations

import random

from artemis_py.core.memory import FRAME_BYTES, HEADER_BYTES
from artemis_py.stomp.wire.frames import COMMANDS, AckRun, AnyFrame, FrameError
from artemis_py.stomp.wire.parser import Parser
from tests.fuzz.fuzzing import Fuzzer, Input, outcome_of
from tests.kit.broker_frames import acks_of, comparable, feed_all, parser

VERSIONS = ("1.0", "1.1", "1.2")
LIMITS = {"maxHeaderBytes": 600, "maxHeaderLineBytes": 200, "maxHeaders": 20, "maxBodyBytes": 400}
UNFINISHED_BYTES_MAX = 2 * (LIMITS["maxHeaderBytes"] + LIMITS["maxBodyBytes"]) + FRAME_BYTES + 20 * HEADER_BYTES
PIECES_MAX = 50
STEPS = (1, 2, 3, 5, 16, 61)

NAMES = (
    b"destination", b"id", b"receipt", b"transaction", b"content-type", b"content-length", b"priority", b"expires",
    b"ack", b"persistent", b"selector", b"message-id", b"subscription", b"accept-version", b"heart-beat", b"foo",
    "é".encode(), b"a b", b"a\\cb",
)  # fmt: skip
VALUES = (
    b"/queue/x", b"/topic/a.#", b"1", b"0", b"-1", b"9" * 19, b"client-individual", b"true", b"\\n", b"\\c", b"\\\\",
    b"\\r", b"\\t", b"\\", b":", b" ", "ü€😀".encode(), b"\xff", b"x" * 190, b"",
)  # fmt: skip
ENDS = (b"\n", b"\n", b"\n", b"\r\n")
TOKENS = (
    *NAMES, *VALUES, *(command.encode() for command in sorted(COMMANDS)), b"\0", b"\n\n", b"\r\n\r\n", b"\r", b"\n\0",
    b"\0\n", b"content-length:3\n", b"content-length:99999999999\n", b"receipt:1\n", b"ACK\nid:1-2\n\n\0", bytes(30),
    b"SEND\ndestination:a\n\nx\0", b"SEND\ndestination:a\nreceipt:7\n\nx\0", b"STOMP\n\n\0",
)  # fmt: skip


def frame(rng: random.Random) -> bytes:
    """One frame, mostly well formed, with the line ends before it."""
    end = rng.choice(ENDS)
    command = rng.choice((*sorted(COMMANDS), "SEND", "SEND", "SEND")).encode()
    lines = [command]
    for _ in range(rng.randrange(6)):
        value = b"".join(rng.choice(VALUES) for _ in range(rng.randrange(3)))
        lines.append(rng.choice(NAMES) + b":" + value)
    if rng.random() < 0.5:
        lines.append(b"destination:/queue/x")
    body = rng.randbytes(rng.choice((0, 0, 5, 40, 500)))
    if rng.random() < 0.5:
        lines.append(b"content-length:%d" % (len(body) + rng.choice((0, 0, 0, 0, 0, 0, 1, -1))))
    else:
        body = body.replace(b"\0", b"")
    before = b"".join(rng.choice(ENDS) for _ in range(rng.choice((0, 0, 1, 3))))
    return before + b"".join(line + end for line in lines) + end + body + b"\0"


def stream(rng: random.Random) -> bytes:
    """A few frames, or acknowledgements, which have a way of their own."""
    if rng.random() < 0.1:
        receipts = (*[b""] * 6, b"receipt:1\n", b"receipt:a-b c\n", b"receipt:\\c\n", b"receipt:%b\n" % (b"r" * 64))
        return b"".join(
            b"ACK\n%bid:%d-%d\n%b\n\0" % (rng.choice(receipts), rng.randrange(9), number, rng.choice(receipts))
            for number in range(rng.randrange(300))
        )
    return b"".join(frame(rng) for _ in range(rng.choice((1, 1, 2, 3, 5))))


def judge(one: Input) -> str:
    """The same frames however they come; a FrameError is recorded, never raised; nothing grows past the limits."""
    version = VERSIONS[one.choice % 3]
    step = max(STEPS[one.choice // 3 % len(STEPS)], len(one.data) // PIECES_MAX)
    chunks = [one.data[start : start + step] for start in range(0, len(one.data), step)]
    whole, parts, singly = (parser(version, **LIMITS) for _ in range(3))
    frames = feed_all(whole, [one.data])
    in_pieces: list[tuple[object, ...]] = []
    for chunk in chunks:
        in_pieces += feed_all(parts, [chunk])
        assert parts.waiting_bytes <= UNFINISHED_BYTES_MAX + len(chunk), "an unfinished frame larger than any may be"
    if str(parts.error).startswith("No command"):  # before the end of a line in which no command can be
        assert frames[: len(in_pieces)] == in_pieces
        assert [each[0] for each in frames[len(in_pieces) :]][:1] in ([], ["refused"])
    else:
        assert in_pieces == frames, "other frames when the stream is cut"
        assert (parts.error is None) == (whole.error is None), f"{parts.error} or {whole.error} when it is cut"
    assert _one_at_a_time(singly, one.data) == frames, "other frames when they are asked for one at a time"
    assert (singly.error is None) == (whole.error is None)
    _judge_first(version, one.data, chunks)
    error = whole.error
    if error is None:
        return f"{version} {'part of' if whole.waiting_bytes else 'whole'} {frames[-1][0] if frames else 'nothing'}"
    assert isinstance(error, FrameError)
    assert str(error).isprintable(), "an error that is not a line of text"
    assert not str(error).isspace()
    assert whole.feed(b"SEND\ndestination:x\n\n\0") == [], "frames after an error"
    assert whole.waiting_bytes == 0, "bytes are kept after an error"
    return f"{version} {outcome_of(error)}"


def _one_at_a_time(one: Parser, data: bytes) -> list[tuple[object, ...]]:
    found = one.feed(data, 1)
    while one.unread:
        more = one.more(1)
        if one.unread:
            assert more or one.read_units, "more is there, and nothing comes"
        one.read_units = 0
        found += more
    frames: list[tuple[object, ...]] = []
    for each, body in found:
        if isinstance(each, AckRun):
            frames += acks_of(each)
        else:
            frames.append(comparable(each, body))
    return frames


def _judge_first(version: str, data: bytes, chunks: list[bytes]) -> None:
    """``feed_one``, which reads CONNECT, keeps to the same rules."""
    whole, parts = parser(version, **LIMITS), parser(version, **LIMITS)
    first, rest = whole.feed_one(data)
    seen: list[tuple[AnyFrame, bytes]] = []
    behind = b""
    for chunk in chunks:
        if seen:
            behind += chunk
        elif parts.error is None:
            came, behind = parts.feed_one(chunk)
            seen += came
    if str(parts.error).startswith("No command"):
        assert [comparable(*one)[0] for one in first] in ([], ["refused"]), "a first frame only if it comes at once"
        return
    assert len(seen) == len(first), "a first frame, by how the stream is cut"
    assert not seen or behind == rest, "the bytes behind the first frame, by how the stream is cut"


FRAMES = Fuzzer("frames", stream, lambda _: judge, TOKENS)
