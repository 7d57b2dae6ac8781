"""Frames that the broker writes, byte for byte, and how long it says they are."""

from __future__ import annotations

import pytest

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.pending_output import Part
from artemis_py.stomp.wire import writer
from artemis_py.stomp.wire.writer import MessageWriter
from tests.kit.broker_frames import entry

ALL = ("1.0", "1.1", "1.2")


def written(one: MessageWriter, entries: list[Entry]) -> bytes:
    parts: list[Part] = []
    one.write(entries, parts)
    return b"".join(part for part in parts if isinstance(part, bytes))


def test_message_1_2() -> None:
    one = MessageWriter("sub:1", 3, "1.2", settles=False)
    assert written(one, [entry(b"destination:/queue/x\nfoo:a\\cb\n")]) == (
        b"MESSAGE\nsubscription:sub\\c1\nmessage-id:3-7\nack:3-7\nredelivered:false\nJMSXDeliveryCount:1\nexpires:0\n"
        b"timestamp:1700000000000\ncontent-length:5\ndestination:/queue/x\nfoo:a\\cb\n\nhello\0\n"
    )


def test_message_without_ack() -> None:
    text = written(MessageWriter("1", 3, "1.2", settles=True), [entry()])
    assert b"ack:" not in text
    assert b"message-id:3-7\n" in text


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_ack_is_of_1_2(version: str) -> None:
    assert b"ack:" not in written(MessageWriter("1", 3, version, settles=False), [entry()])


def test_message_without_subscription() -> None:
    assert written(MessageWriter(None, 3, "1.0", settles=False), [entry()]).startswith(b"MESSAGE\nmessage-id:3-7\n")


@pytest.mark.parametrize(("version", "line"), [("1.0", b"k:a:b \\\n"), ("1.1", b"k:a\\cb\\n\\\\\n")])
def test_escapes_of_the_version(version: str, line: bytes) -> None:
    """The head keeps 1.2 escapes; 1.0 has none (a line feed becomes a blank)."""
    text = written(MessageWriter("1", 3, version, settles=True), [entry(b"destination:x\nk:a\\cb\\n\\\\\n")])
    assert line in text


def test_redelivered_and_expires() -> None:
    text = written(
        MessageWriter("1", 3, "1.2", settles=True),
        [entry(id=1, redelivered=True), entry(id=2), entry(id=3, expires_ms=1_800_000_000_000), entry(id=4)],
    )
    frames = text.split(b"\0")
    assert [b"redelivered:true\n" in frame for frame in frames[:4]] == [True, False, False, False]
    assert [b"redelivered:false\n" in frame for frame in frames[:4]] == [False, True, True, True]
    assert [b"expires:1800000000000\n" in frame for frame in frames[:4]] == [False, False, True, False]


def test_times_of_each_message() -> None:
    text = written(
        MessageWriter("1", 3, "1.2", settles=True),
        [entry(timestamp_ms=1), entry(timestamp_ms=2), entry(timestamp_ms=1)],
    )
    assert [frame.split(b"timestamp:")[1].split(b"\n")[0] for frame in text.split(b"\0")[:3]] == [b"1", b"2", b"1"]


@pytest.mark.parametrize("version", ALL)
def test_content_length(version: str) -> None:
    """1.0: of messages that were sent with one. Later: of every body; an empty one has it where the sender gave it."""
    bodies = [(b"text", False), (b"data", True), (b"", True), (b"", False), (b"longer", False), (b"a\0b", True)]
    one = MessageWriter("1", 3, version, settles=True)
    lengths = []
    for body, sized in bodies:
        frame = written(one, [entry(body=body, sized=sized)])
        lengths.append(frame.split(b"content-length:")[1].split(b"\n")[0] if b"content-length:" in frame else None)
    if version == "1.0":
        assert lengths == [None, b"4", b"0", None, None, b"3"]
    else:
        assert lengths == [b"4", b"4", b"0", None, b"6", b"3"]


def test_content_length_in_one_batch() -> None:
    """Each frame has its own length, whatever stood before it."""
    bodies = [b"ab", b"ab", b"", b"ab", b"abc", b"", b"abc"]
    text = written(MessageWriter("1", 3, "1.2", settles=True), [entry(body=body) for body in bodies])
    expected = [b"2", b"2", None, b"2", b"3", None, b"3"]
    found = [
        frame.split(b"content-length:")[1].split(b"\n")[0] if b"content-length:" in frame else None
        for frame in text.split(b"\0")[:-1]
    ]
    assert found == expected


def test_extras() -> None:
    one = MessageWriter("1", 3, "1.2", settles=True)
    one.amq_message_id = True
    one.ingress_timestamp = True
    text = written(one, [entry(id=9, timestamp_ms=5)])
    assert b"\namqMessageId:STOMP9\n" in text
    assert b"\ningress-timestamp:5\n" in text


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize("extras", [True, False])
@pytest.mark.parametrize(
    "one",
    [entry(), entry(id=123456), entry(body=b"x" * 12345), entry(expires_ms=1_800_000_000_000), entry(body=b"")],
    ids=["plain", "long id", "long body", "expires", "no body"],
)
def test_windows_count_what_is_written(version: str, settles: bool, extras: bool, one: Entry) -> None:
    """A consumer is charged for exactly the bytes of the frame."""
    message_writer = MessageWriter("sub", 12, version, settles=settles)
    message_writer.amq_message_id = message_writer.ingress_timestamp = extras
    consumer = Consumer(
        12,
        None,
        settles=settles,
        destructive=True,
        window_bytes=10_000,
        weigh=message_writer.frame_bytes,
    )
    assert consumer.weigh(one.message) == len(written(message_writer, [one]))


def test_a_message_like_the_last_one_weighs_what_its_own_frame_has() -> None:
    """The size of the last frame is remembered; each of these differs in one thing from the one before."""
    message_writer = MessageWriter("sub", 12, "1.2", settles=False)
    head = entry().message.head
    ones = [
        entry(), entry(id=123456), entry(id=123456, body=b"longer than before"), entry(expires_ms=1_800_000_000_000),
        entry(), entry(body=b""),
    ]  # fmt: skip
    for one in ones:
        one.message.head = head
    ones.append(entry(body=b""))
    for one in ones + ones:
        assert message_writer.frame_bytes(one.message) == len(written(message_writer, [one]))


@pytest.mark.parametrize(
    ("version", "expected"), [("1.0", "a:b\\c d e"), ("1.1", "a\\cb\\\\c\\nd\re"), ("1.2", "a\\cb\\\\c\\nd\\re")]
)
def test_escape(version: str, expected: str) -> None:
    assert writer.escape("a:b\\c\nd\re", version) == expected


@pytest.mark.parametrize("version", ALL)
def test_receipt(version: str) -> None:
    assert writer.receipt("r-1", version) == b"RECEIPT\nreceipt-id:r-1\n\n\0\n"


@pytest.mark.parametrize("version", ALL)
def test_error(version: str) -> None:
    text = writer.error("It is wrong: really", version, "r", [("version", "1.0,1.1,1.2")])
    message = b"It is wrong: really" if version == "1.0" else b"It is wrong\\c really"
    assert text == (
        b"ERROR\nmessage:" + message + b"\ncontent-type:text/plain\nreceipt-id:r\nversion:1.0,1.1,1.2\n"
        b"content-length:19\n\nIt is wrong: really\0\n"
    )


def test_error_with_strange_text() -> None:
    """Whatever a client sent to provoke it, an ERROR is one well-formed frame."""
    text = writer.error("a\0b\nc\r€", "1.0", "x\ny")
    head, _, body = text.partition(b"\n\n")
    assert b"\0" not in head
    assert b"\r" not in head
    assert head.count(b"\n") == 4
    assert f"content-length:{len(body) - 2}".encode() in head


def test_connected_is_not_escaped() -> None:
    assert writer.connected([("session", "a:b\\c\nd")]) == b"CONNECTED\nsession:a:b\\c d\n\n\0\n"
