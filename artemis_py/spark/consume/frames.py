"""The frames between a stream that consumes a queue and its broker (docs/stomp.md, docs/queues.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from artemis_py.errors import PipelineError
from artemis_py.spark.acceptors import escaped
from artemis_py.spark.consume.pool import Arrival
from artemis_py.spark.read.queue_options import QueueOptions

_BOOKMARKS_BYTES_MAX: Final = 16_000
"""Of one ACK: an acceptor takes header lines of 16,384 bytes, unless it is told otherwise (``maxHeaderLineBytes``)."""
NAMES_NONE: Final = "0"
"""A bookmark that names no message: an ACK with it only asks."""
_LASTING: Final = "AMQDurable = 'DURABLE'"
"""Other messages have no place in the log, where tasks read the rows."""
_SIZE: Final = b"\nbody-size:"
_BOOKMARK: Final = b"\nbookmark:"
_NAME: Final = b"\nsubscription:"
_ID: Final = b"\nmessage-id:"
_TIMESTAMP: Final = b"\ntimestamp:"
_LEASE: Final = b"\nlease-expires:"


@dataclass(frozen=True, slots=True)
class Answer:
    """A frame that is no MESSAGE."""

    command: str
    headers: dict[str, str]


def subscribe(queue: QueueOptions, name: int, backlog: int, receipt: int, *, is_change: bool) -> bytes:
    """The frame that asks for so many messages; ``is_change``: there is a subscription of this name, which changes."""
    chosen = _LASTING if queue.selector is None else f"{_LASTING} AND ({queue.selector})"
    more = "replace:true\n" if is_change else ""
    return (
        f"SUBSCRIBE\nid:{name}\ndestination:{escaped(queue.destination)}\nack:client-individual\n"
        f"consumer-window-size:-1\nheaders-only:true\nmax-backlog:{backlog}\nselector:{escaped(chosen)}\n"
        f"{more}receipt:{receipt}\n\n\0"
    ).encode()


def unsubscribe(name: int) -> bytes:
    """The frame that gives everything back."""
    return f"UNSUBSCRIBE\nid:{name}\n\n\0".encode()


def disconnect(receipt: int) -> bytes:
    """The frame that ends the connection."""
    return f"DISCONNECT\nreceipt:{receipt}\n\n\0".encode()


def acknowledge(destination: str, bookmarks: str, receipt: int) -> bytes:
    """An ACK of messages by bookmarks."""
    text = f"ACK\ndestination:{escaped(destination)}\nbookmarks:{bookmarks}\nreceipt:{receipt}\n\n\0"
    return text.encode()


def in_portions(bookmarks: Sequence[int]) -> Iterator[str]:
    """The bookmarks for as many ACKs as they need; at least one, which names none where there are none."""
    if not bookmarks:
        yield NAMES_NONE
        return
    parts: list[str] = []
    filled = 0
    for bookmark in bookmarks:
        part = str(bookmark)
        if filled + len(part) + 1 > _BOOKMARKS_BYTES_MAX:
            yield ",".join(parts)
            parts, filled = [], 0
        parts.append(part)
        filled += len(part) + 1
    yield ",".join(parts)


def read_frame(frame: bytes, name: int) -> Arrival | Answer | None:
    """A frame from the broker, without its NUL; None: only line ends, or a message for another subscription than that
    with this name. Raises PipelineError for a message that no batch can have.
    """
    frame = frame.lstrip(b"\r\n")
    if not frame:
        return None
    if frame.startswith(b"MESSAGE\n"):
        return _arrival(frame, name)
    command, *lines = frame.partition(b"\n\n")[0].decode("utf-8", "replace").split("\n")
    headers: dict[str, str] = {}
    for line in lines:
        header, _, value = line.partition(":")
        headers.setdefault(header, value)
    return Answer(command, headers)


def _arrival(frame: bytes, name: int) -> Arrival | None:
    end = frame.find(_SIZE)
    if end < 0:
        raise PipelineError("the broker sends bodies although it was asked for headers only; use a newer broker")
    own = frame[: end + 1]  # what follows was written by the sender of the message
    if _value(own, _NAME) != b"%d" % name:
        return None
    bookmark, message_id, lease = _value(own, _BOOKMARK), _value(own, _ID), _value(own, _LEASE)
    if not bookmark:
        raise PipelineError("a message has no place in the log: the broker needs a journal-retention-directory")
    return Arrival(
        int(bookmark),
        int(message_id.rpartition(b"-")[2]),
        int(_value(own, _TIMESTAMP)),
        int(_value(frame[end:], _SIZE)),
        _epoch_ms(lease) if lease else 0,
    )


@lru_cache(maxsize=256)
def _epoch_ms(date: bytes) -> int:
    """A date in ISO 8601. Many messages are sent at the same time."""
    return int(datetime.fromisoformat(date.decode()).timestamp() * 1000)


def _value(frame: bytes, name: bytes) -> bytes:
    """The value of a header; empty if it is missing."""
    begin = frame.find(name)
    if begin < 0:
        return b""
    begin += len(name)
    return frame[begin : frame.index(b"\n", begin)]
