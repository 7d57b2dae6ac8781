"""The frames between a stream that consumes a queue and its broker (docs/stomp.md, docs/queues.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

from artemis_py.errors import PipelineError
from artemis_py.spark.consume.pool import Arrival
from artemis_py.spark.read.queue_options import QueueOptions
from artemis_py.stomp.client import ServerFrame, frame

_BOOKMARKS_BYTES_MAX: Final = 16_000
"""Of one ACK: an acceptor takes header lines of 16,384 bytes by default (``maxHeaderLineBytes``)."""
NAMES_NONE: Final = "0"
"""A bookmark that names no message: an ACK with it only asks."""
_SIZE: Final = "body-size"
_LASTING: Final = "AMQDurable = 'DURABLE'"
"""Other messages have no place in the log, where tasks read the rows."""


def subscribe(queue: QueueOptions, name: int, backlog: int, receipt: int, *, is_change: bool) -> bytes:
    """The frame that asks for so many messages; ``is_change``: there is a subscription of this name, which changes."""
    chosen = _LASTING if queue.selector is None else f"{_LASTING} AND ({queue.selector})"
    headers = [
        ("id", str(name)),
        ("destination", queue.destination),
        ("ack", "client-individual"),
        ("consumer-window-size", "-1"),
        ("headers-only", "true"),
        ("max-backlog", str(backlog)),
        ("selector", chosen),
        ("receipt", str(receipt)),
    ]
    return frame("SUBSCRIBE", [*headers, ("replace", "true")] if is_change else headers)


def unsubscribe(name: int) -> bytes:
    """The frame that gives everything back."""
    return frame("UNSUBSCRIBE", [("id", str(name))])


def disconnect(receipt: int) -> bytes:
    """The frame that ends the connection."""
    return frame("DISCONNECT", [("receipt", str(receipt))])


def acknowledge(destination: str, bookmarks: str, receipt: int) -> bytes:
    """An ACK of messages by bookmarks."""
    return frame("ACK", [("destination", destination), ("bookmarks", bookmarks), ("receipt", str(receipt))])


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


def arrival_of(found: ServerFrame, name: int) -> Arrival | None:
    """What a MESSAGE tells; None: it is for another subscription than that with this name. Raises PipelineError for a
    message that no batch can have.
    """
    own: dict[str, str] = {}
    for header, value in found.headers.items():
        if header == _SIZE:  # what follows was written by the sender of the message
            break
        own[header] = value
    else:
        raise PipelineError("the broker sends bodies although it was asked for headers only; use a newer broker")
    if own.get("subscription") != str(name):
        return None
    if not own.get("bookmark"):
        raise PipelineError("a message has no place in the log: the broker needs a journal-retention-directory")
    lease = own.get("lease-expires")
    return Arrival(
        int(own["bookmark"]),
        int(own["message-id"].rpartition("-")[2]),
        int(own["timestamp"]),
        int(found.headers[_SIZE]),
        _epoch_ms(lease) if lease else 0,
    )


@lru_cache(maxsize=256)
def _epoch_ms(date: str) -> int:
    """A date in ISO 8601. Many messages are sent at the same time."""
    return int(datetime.fromisoformat(date).timestamp() * 1000)
