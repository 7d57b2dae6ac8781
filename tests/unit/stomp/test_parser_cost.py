"""What bytes cost the parser: as much when they are one of many as when they are alone, whatever a client chooses."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest

from artemis_py.stomp.wire.frames import AnyFrame
from tests.kit.broker_frames import feed_all, parser
from tests.kit.core import lines_run
from tests.kit.cost import cpu_s
from tests.unit.stomp.test_parser import chunks_of

LF_FRAME = b"SEND\ndestination:/queue/x\nfoo:bar\n\nhello\0"
CRLF_FRAME = LF_FRAME.replace(b"\n", b"\r\n")
LONG = 10
"""How many times as long the longer input is."""


def _unique(count: int, frame: bytes) -> bytes:
    return b"".join(frame.replace(b"bar", b"%07d" % number) for number in range(count))


LARGE = "a body in large pieces"
INPUTS: dict[str, Callable[[int], list[bytes]]] = {
    "frames": lambda n: chunks_of(LF_FRAME * 4 * n),
    "frames with CR LF": lambda n: chunks_of(CRLF_FRAME * 4 * n),
    "frames that differ": lambda n: chunks_of(_unique(4 * n, LF_FRAME)),
    "frames with CR LF that differ": lambda n: chunks_of(_unique(4 * n, CRLF_FRAME)),
    "both line ends by turns": lambda n: chunks_of((LF_FRAME + CRLF_FRAME) * 2 * n),
    "one LF frame, then CR LF": lambda n: chunks_of(LF_FRAME + CRLF_FRAME * 4 * n),
    "CR LF, then one LF frame": lambda n: chunks_of(CRLF_FRAME * 4 * n + LF_FRAME),
    "CRs in bodies": lambda n: chunks_of(LF_FRAME.replace(b"hello", b"\r") * 4 * n),
    "empty lines in bodies": lambda n: chunks_of(CRLF_FRAME.replace(b"hello", b"\n\n\r\n\r\n") * 4 * n),
    "receipts": lambda n: chunks_of(_unique(4 * n, b"SEND\ndestination:/queue/x\nreceipt:bar\n\nhello\0")),
    "acknowledgements": lambda n: chunks_of(b"ACK\nid:1-%d\n\n\0" % n * 8 * n),
    "acknowledgements with CR LF": lambda n: chunks_of(b"ACK\r\nid:1-1\r\n\r\n\0" * 8 * n),
    "line feeds": lambda n: chunks_of(b"\n" * 200 * n),
    "CR LFs": lambda n: chunks_of(b"\r\n" * 100 * n),
    "CR LFs byte by byte": lambda n: chunks_of(b"\r\n" * 20 * n, 1),
    "frames byte by byte": lambda n: chunks_of(LF_FRAME * n, 1),
    "headers byte by byte": lambda n: chunks_of(b"SEND\n" + b"a:b\n" * 10 * n, 1),
    "headers with CR LF byte by byte": lambda n: chunks_of(b"SEND\r\n" + b"a:b\r\n" * 8 * n, 1),
    "CRs among headers byte by byte": lambda n: chunks_of(b"SEND\n" + b"\r" * 40 * n, 1),
    "a body with a length, byte by byte": lambda n: chunks_of(
        b"SEND\ndestination:x\ncontent-length:%d\n\n" % (40 * n) + b"x" * 40 * n + b"\0", 1
    ),
    "a body without a length, byte by byte": lambda n: chunks_of(b"SEND\ndestination:x\n\n" + b"x" * 40 * n + b"\0", 1),
    LARGE: lambda n: chunks_of(b"SEND\ndestination:x\n\n" + b"x" * 4000 * n + b"\0"),
    "bad frames": lambda n: chunks_of(b"NO SUCH FRAME\n\n\0" * 8 * n),
}
LIMITS = {"maxHeaderBytes": 10**7, "maxHeaderLineBytes": 10**7, "maxHeaders": 10**6, "stompMinLargeMessageSize": -1}


def _work(name: str, length: int) -> tuple[Callable[[], object], int]:
    version = "1.0" if name == "bad frames" else "1.2"
    one, chunks = parser(version, **LIMITS), INPUTS[name](length)
    return lambda: [one.feed(chunk) for chunk in chunks], sum(map(len, chunks))


@pytest.mark.parametrize("name", INPUTS)
def test_a_byte_costs_the_same_lines(name: str) -> None:
    short, short_bytes = _work(name, 20)
    long, long_bytes = _work(name, 20 * LONG)
    assert lines_run(long) / long_bytes <= 1.2 * lines_run(short) / short_bytes + 0.01


@pytest.mark.thirds
@pytest.mark.parametrize("name", [name for name in INPUTS if name != LARGE])
def test_a_byte_costs_the_same_inside_calls(name: str) -> None:
    """What calls search and copy shows in no line. Quadratic would be a hundred times, linear is ten; others use the
    machine, too, so one of some comparisons is enough, with one try of what takes long.
    """
    assert any(
        cpu_s(lambda: _work(name, 400 * LONG)[0], tries=1) <= 40 * cpu_s(lambda: _work(name, 400)[0]) + 0.002
        for _ in range(12)
    )


def test_a_large_body_costs_what_putting_its_pieces_together_costs() -> None:
    """Of 250 pieces. The first touch of so much memory costs more than all else, and more when others use it: so this
    is compared with the same amount of it. If each piece were put together with all before it, that were 125 times.
    """
    pieces = INPUTS[LARGE](4000)
    assert any(
        cpu_s(lambda: _work(LARGE, 4000)[0]) <= 20 * cpu_s(lambda: lambda: b"".join(pieces)) + 0.002 for _ in range(12)
    )


def test_cr_lf_costs_what_lf_costs() -> None:
    """In one read; it was 26 times."""
    crlf, lf = (lambda name=name: _work(name, 400)[0] for name in ("frames with CR LF", "frames"))
    assert any(cpu_s(crlf) <= 8 * cpu_s(lf) + 0.001 for _ in range(12))


@pytest.mark.parametrize("name", [name for name in INPUTS if "large" not in name])
@pytest.mark.parametrize("frames_max", [1, 3])
def test_no_more_frames_than_asked_for(name: str, frames_max: int) -> None:
    version = "1.0" if name == "bad frames" else "1.2"
    chunks = INPUTS[name](5)
    one = parser(version, **LIMITS)
    steps: list[list[tuple[AnyFrame, bytes]]] = []
    for chunk in chunks:
        steps.append(one.feed(chunk, frames_max))
        while one.unread:
            steps.append(one.more(frames_max))
    found = Mock(**{"feed.side_effect": steps})
    assert feed_all(found, [b""] * len(steps)) == feed_all(parser(version, **LIMITS), chunks)
    assert max(map(len, steps)) <= frames_max + 1  # one body may have been awaited


def test_what_waits_stands_before_what_comes() -> None:
    one = parser()
    first = one.feed(_unique(5, LF_FRAME), 10)
    rest = one.feed(_unique(1, LF_FRAME), 100)
    assert len(first) == 2
    assert len(rest) == 4
    assert not one.unread


def test_an_error_comes_behind_what_waits() -> None:
    one = parser()
    one.feed(LF_FRAME * 3 + b"\0", 6)  # the first is read, the others are remembered
    assert one.error is None
    assert len(one.more(2)) == 1
    assert one.error is not None
    assert not one.unread
    assert one.feed(LF_FRAME) == one.more() == []
