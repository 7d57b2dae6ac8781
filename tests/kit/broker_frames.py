"""What the unit tests of the STOMP layer share: acceptors, parsers, and frames in a form that compares."""

from __future__ import annotations

from typing import Any

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.order.entry import Entry
from artemis_py.message import Account, Head, Message
from artemis_py.stomp.wire.dialect import Dialect
from artemis_py.stomp.wire.frames import AckRun, AnyFrame, Frame, Refused, Send
from artemis_py.stomp.wire.parser import Parser

PREFIXES = {"anycastPrefix": "/queue/", "multicastPrefix": "/topic/"}


def acceptor(**params: object) -> AcceptorConfig:
    """An acceptor with these parameters."""
    texts = PREFIXES | {name: str(value) for name, value in params.items()}
    return AcceptorConfig(name="test", host="127.0.0.1", port=0, params=texts)


def parser(version: str = "1.2", /, **params: object) -> Parser:
    """A parser with a dialect of its own."""
    return Parser(Dialect(version, acceptor(**params)))


def comparable(frame: AnyFrame, body: bytes) -> tuple[object, ...]:
    """A frame as plain values."""
    if isinstance(frame, AckRun):
        return ("ACK", *frame.acks)
    if isinstance(frame, Frame):
        return (frame.command, tuple(frame.headers.items()), frame.content_length, body)
    if isinstance(frame, Refused):
        return ("refused", frame.reason, frame.receipt, frame.incomplete, body)
    shape = frame.shape
    deciding = (shape.address, shape.queue, shape.routing_type, shape.priority, shape.persistent, shape.expires_ms)
    rest = (shape.due_ms, shape.due_delay_ms, shape.duplicate_id, frame.receipt, frame.transaction, frame.quick)
    return ("SEND", frame.head.block, frame.head.sized, deciding, rest, body)


def acks_of(run: AckRun) -> list[tuple[object, ...]]:
    """The ACKs of a run, each as ``comparable`` gives it when it is read by itself."""
    found: list[tuple[object, ...]] = []
    for early, consumer, message, late in run.acks:
        lines = [("receipt", early), ("id", b"%b-%b" % (consumer, message)), ("receipt", late)]
        headers: dict[str, str] = {}
        for name, value in lines:
            if value:
                headers.setdefault(name, value.decode())
        found.append(("ACK", tuple(headers.items()), -1, b""))
    return found


def feed_all(one: Any, chunks: list[bytes]) -> list[tuple[object, ...]]:
    """The frames that the chunks make, as plain values. ``one`` takes bytes and gives frames, as a parser does."""
    found: list[tuple[object, ...]] = []
    for frame, body in (pair for chunk in chunks for pair in one.feed(chunk)):
        if isinstance(frame, AckRun):
            found.extend(acks_of(frame))
        else:
            found.append(comparable(frame, body))
    return found


def only_send(version: str, lines: bytes, /, **params: object) -> Send:
    """The SEND frame with these header lines."""
    one = parser(version, **params)
    frames = one.feed(b"SEND\n" + lines + b"\n\0")
    assert one.error is None, one.error
    assert len(frames) == 1
    frame = frames[0][0]
    assert isinstance(frame, Send)
    return frame


def entry(
    headers: bytes = b"destination:/queue/x\n",
    body: bytes = b"hello",
    *,
    id: int = 7,
    timestamp_ms: int = 1_700_000_000_000,
    expires_ms: int = 0,
    sized: bool = False,
    redelivered: bool = False,
) -> Entry:
    """One message on a queue."""
    head = Head(headers + b"\n", "x", sized=sized)
    made = Entry(Message(head, body, id, timestamp_ms, expires_ms, Account(), 1))
    made.returned = int(redelivered)
    return made
