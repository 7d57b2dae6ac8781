"""The parser: frames out of bytes, in whatever pieces they come, within limits."""

from __future__ import annotations

import pytest

from artemis_py.stomp.wire.dialect import MEMO_BLOCK_BYTES_MAX, MEMO_ENTRIES_MAX, Dialect
from artemis_py.stomp.wire.frames import AckRun, Frame, Refused, Send
from artemis_py.stomp.wire.parser import Parser
from tests.kit.broker_frames import acceptor, comparable, feed_all, parser

SEND = b"SEND\ndestination:/queue/x\n\n"
STREAM = (
    b"\n\nSEND\ndestination:/queue/x\nfoo:bar\n\nhello\0\n"
    b"SEND\ndestination:/queue/y\ncontent-length:5\nreceipt:r\n\na\0b\nc\0\r\n\n"
    b"SUBSCRIBE\r\nid:1\r\ndestination:/queue/x\r\n\r\n\0"
    b"ACK\nid:1-1\n\n\0\n"
    b"SEND\ndestination:/queue/x\nfoo:bar\n\n\0"
)


def chunks_of(data: bytes, size: int = 65536) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def test_frames_in_order() -> None:
    frames = parser().feed(STREAM)
    assert [type(frame) for frame, _ in frames] == [Send, Send, Frame, AckRun, Send]
    assert [body for _, body in frames] == [b"hello", b"a\0b\nc", b"", b"", b""]
    subscribe = frames[2][0]
    assert isinstance(subscribe, Frame)
    assert subscribe.command == "SUBSCRIBE"
    assert subscribe.headers == {"id": "1", "destination": "/queue/x"}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 64])
def test_pieces_make_the_same_frames(size: int) -> None:
    assert feed_all(parser(), chunks_of(STREAM, size)) == feed_all(parser(), [STREAM])


@pytest.mark.parametrize("place", range(len(STREAM) + 1))
def test_two_pieces_make_the_same_frames(place: int) -> None:
    assert feed_all(parser(), [STREAM[:place], STREAM[place:]]) == feed_all(parser(), [STREAM])


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("place", range(len(STREAM) + 1))
def test_it_holds_memory_while_a_frame_has_begun(version: str, place: int) -> None:
    """Exactly between the first byte of a frame and its NUL; line ends between frames may be held, or not."""
    one = parser(version)
    one.feed(STREAM[:place])
    ends = [index + 1 for index in range(len(STREAM)) if STREAM[index] == 0 and STREAM[index - 1 : index] != b"a"]
    begun = STREAM[:place][max([0, *[end for end in ends if end <= place]]) :]
    if begun.lstrip(b"\r\n") or not begun:
        assert (one.waiting_bytes > 0) == bool(begun)


def test_a_repeated_header_block_is_remembered() -> None:
    """From its second appearance on: a producer that never repeats itself must not fill the memory."""
    one = parser()
    first, second, third = one.feed(b"".join(SEND + body + b"\0" for body in (b"a", b"b", b"c")))
    assert second[0] is third[0]
    assert (first[1], second[1], third[1]) == (b"a", b"b", b"c")
    assert comparable(first[0], b"") == comparable(third[0], b"")


def test_a_frame_with_a_receipt_is_not_remembered() -> None:
    one = parser()
    frames = one.feed(b"SEND\ndestination:/queue/x\nreceipt:1\n\na\0" * 3)
    assert len({id(frame) for frame, _ in frames}) == 3
    assert len({comparable(*each) for each in frames}) == 1


def test_what_is_remembered_is_bounded() -> None:
    dialect = Dialect("1.2", acceptor())
    for number in range(3 * MEMO_ENTRIES_MAX):
        Parser(dialect).feed(b"SEND\ndestination:/queue/x\nnumber:%d\n\na\0" % number * 3)
    assert 0 < len(dialect.memo) <= MEMO_ENTRIES_MAX


def test_long_headers_are_not_remembered() -> None:
    dialect = Dialect("1.2", acceptor())
    long = b"x" * MEMO_BLOCK_BYTES_MAX
    frames = Parser(dialect).feed(b"SEND\ndestination:/queue/x\nlong:%b\n\na\0" % long * 3)
    assert len(frames) == 3
    assert not dialect.memo


def test_what_came_before_an_error_is_returned() -> None:
    one = parser()
    frames = one.feed(SEND + b"one\0NONSENSE\n\n\0" + SEND + b"two\0")
    assert [body for _, body in frames] == [b"one"]
    assert "NONSENSE" in str(one.error)
    assert one.feed(SEND + b"three\0") == []


def test_content_length_must_end_at_a_nul() -> None:
    one = parser()
    assert one.feed(b"SEND\ndestination:x\nreceipt:r\ncontent-length:2\n\nabc\0") == []
    assert one.error is not None
    assert one.error.receipt == "r"


def test_content_length_must_end_at_a_nul_also_in_pieces() -> None:
    one = parser()
    assert feed_all(one, chunks_of(b"SEND\ndestination:x\nreceipt:r\ncontent-length:2\n\nabc\0", 1)) == []
    assert one.error is not None
    assert one.error.receipt == "r"


@pytest.mark.parametrize("text", [b"-1", b"+1", b"1.0", b"0x1", b"", b" 1", b"1 ", b"\xc2\xb2", b"9" * 30, b"1_0"])
def test_content_length_is_a_plain_number(text: bytes) -> None:
    one = parser()
    one.feed(b"SEND\ndestination:x\ncontent-length:" + text + b"\n\na\0")
    assert one.error is not None


def test_the_first_frame_comes_alone() -> None:
    """What follows CONNECT is read in the version that it agrees on."""
    one = parser()
    frames, rest = one.feed_one(b"\nCONNECT\nhost:a\\cb\n\n\0SEND\n")
    assert len(frames) == 1
    frame = frames[0][0]
    assert isinstance(frame, Frame)
    assert frame.headers == {"host": "a\\cb"}
    assert rest == b"SEND\n"


def test_the_first_frame_in_pieces() -> None:
    one = parser()
    data = b"\r\nCONNECT\r\nhost:x\r\n\r\n\0next"
    for index in range(len(data) - 5):
        assert one.feed_one(data[index : index + 1]) == ([], b"")
    frames, rest = one.feed_one(data[-5:])
    assert len(frames) == 1
    assert rest == b"next"


def test_one_zero_reads_on_after_a_bad_line() -> None:
    one = parser("1.0")
    frames = one.feed(b"SEND\nno colon\n\nx\0" + SEND + b"y\0")
    assert isinstance(frames[0][0], Refused)
    assert [body for _, body in frames] == [b"x", b"y"]
    assert one.error is None


# ---- limits: an endless stream of anything ends in an error, soon ------------------------------------


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(b"SEND\n", b"a:b\n", id="headers without end"),
        pytest.param(b"SEND\na:", b"x" * 50, id="a line without end"),
        pytest.param(b"", b"x" * 50, id="a command without end"),
        pytest.param(b"SEND\n", b"\r", id="carriage returns"),
        pytest.param(SEND, b"x" * 50, id="a body without end"),
        pytest.param(SEND, b"\n", id="a body of line feeds"),
    ],
)
def test_an_endless_stream_is_refused(version: str, start: bytes, more: bytes) -> None:
    one = parser(version, maxHeaderBytes=2000, maxHeaderLineBytes=500, maxHeaders=50, maxBodyBytes=2000)
    one.feed(start)
    taken = len(start)
    while one.error is None:
        assert taken <= 2200, "no error"
        one.feed(more)
        taken += len(more)
    assert taken <= 2200


def test_an_announced_body_is_refused_before_it_comes() -> None:
    one = parser(maxBodyBytes=1000)
    one.feed(b"SEND\ndestination:x\nreceipt:r\ncontent-length:1001\n\n")
    assert one.error is not None
    assert one.error.receipt == "r"


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
@pytest.mark.parametrize("length", [1000, 1001])
@pytest.mark.parametrize("announced", [True, False])
def test_the_limit_of_a_body_is_exact_however_it_comes(size: int, length: int, announced: bool) -> None:
    one = parser(maxBodyBytes=1000)
    announcement = b"content-length:%d\n" % length if announced else b""
    data = b"SEND\ndestination:x\n" + announcement + b"\n" + b"x" * length + b"\0"
    frames = feed_all(one, chunks_of(data, size))
    assert (len(frames) == 1) == (length == 1000)
    assert (one.error is None) == (length == 1000)


@pytest.mark.parametrize("size", [1, 9, 4000])
@pytest.mark.parametrize("over", [0, 1])
def test_the_limit_of_headers_is_exact_however_they_come(size: int, over: int) -> None:
    one = parser(maxHeaderBytes=200)
    block = b"SEND\ndestination:x\nfoo:"
    block += b"y" * (200 - len(block) + over)
    frames = feed_all(one, chunks_of(block + b"\n\nbody\0", size))
    assert (len(frames) == 1) == (not over)
    assert (one.error is None) == (not over)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("letter", ["x", "é", "€"])
@pytest.mark.parametrize("over", [0, 1])
def test_the_limit_of_a_line_counts_bytes(version: str, letter: str, over: int) -> None:
    one = parser(version, maxHeaderLineBytes=100)
    value = (letter * 100).encode()[:96]
    value = value.decode(errors="ignore").encode()
    value += b"x" * (96 - len(value) + over)
    one.feed(b"SEND\ndestination:x\nfoo:" + value + b"\n\n\0")
    assert (one.error is None) == (not over)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("command", [b"SEND\ndestination:x\n", b"SUBSCRIBE\ndestination:x\n"])
@pytest.mark.parametrize("over", [0, 1])
def test_the_limit_of_the_number_of_headers_is_exact(version: str, command: bytes, over: int) -> None:
    one = parser(version, maxHeaders=10)
    one.feed(command + b"".join(b"h%d:x\n" % index for index in range(9 + over)) + b"\n\0")
    assert (one.error is None) == (not over)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("rest", [b"foo:\0bar\n\n\0", b"\0SEND\n\n\0", b"\0", b"f\0o:bar\n\n\0"])
def test_a_nul_among_headers_is_refused(version: str, rest: bytes) -> None:
    """The blank line was forgotten; passed on, the NUL would end the frame early at every consumer."""
    one = parser(version)
    assert one.feed(b"SEND\ndestination:/queue/x\n" + rest) == []
    assert one.error is not None


def test_a_block_that_was_not_met_before_costs_what_it_is_long() -> None:
    """So fairness between connections is by cost: a block that is remembered costs next to nothing."""
    one = parser()
    one.feed(SEND + b"\0" + SEND + b"\0")
    first = one.read_units
    assert first > 0, "the first of them was read"
    one.feed(SEND + b"\0")
    assert one.read_units == first
    long = SEND.removesuffix(b"\n") + b"x:" + b"y" * 1000 + b"\n\n\0"
    one.feed(long)
    assert one.read_units >= 2 * first


def test_no_more_blocks_are_read_than_may_be_paid_for() -> None:
    one = parser()
    frames = one.feed(b"".join(b"SEND\ndestination:/queue/%d\n\n\0" % number for number in range(1000)), 100)
    assert 10 <= len(frames) <= 25
    assert one.unread
