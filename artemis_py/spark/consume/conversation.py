"""What a stream that consumes a queue and its broker say to each other, without a socket: frames in, bytes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, final

from artemis_py.client.stomp_connection import LostError
from artemis_py.errors import PipelineError
from artemis_py.spark.consume.batch import listed
from artemis_py.spark.consume.unsettled import Arrival, Unsettled
from artemis_py.spark.read.options import QueueOptions
from artemis_py.spark.shared_options import is_passing
from artemis_py.stomp.client import ServerFrame, frame

_UNKNOWN: Final = "There is no queue"


@dataclass(slots=True)
class Ask:
    """One ACK, until the broker has confirmed it."""

    bookmarks: str
    kept: set[int]
    """Where to note those that are still on the queue."""


@final
class Conversation:
    """What was not answered when a connection is lost is forgotten: over the next one the stream asks again."""

    def __init__(self, queue: QueueOptions, pool: Unsettled) -> None:
        self._queue = queue
        self._pool = pool
        self.out = bytearray()
        """What is to be sent."""
        self.life = 0
        """How many connections there were."""
        self.is_connected = False
        self.is_open = False
        """Has the broker said that the queue can be acknowledged by bookmarks?"""
        self.has_suited = False
        """Has it ever accepted the subscription? From then on a refusal may be a passing one."""
        self.is_dry = False
        """Has it said that it has nothing more for this stream?"""
        self.backlog = 0
        """How many messages to hold at most; 0: there is to be no subscription."""
        self._told_backlog = 0
        self._name = 0
        """Of the subscription. Each has its own: what is still on its way for an earlier one is back on the queue."""
        self._number = 0
        self._asks: dict[int, Ask] = {}
        """By receipt."""
        self._subscribing: set[int] = set()
        """Receipts of SUBSCRIBE to come."""
        self._last: tuple[int, int] | None = None
        """How many messages nobody had, and how many had come, when it was asked last over this subscription."""
        self._told: tuple[int, int] | None = None
        """The same, whenever that was."""

    # ---- connections -----------------------------------------------------------------------------

    def begin(self) -> None:
        """There is a connection. Whether the queue suits is asked before it is subscribed to."""
        self.life += 1
        self.is_connected = True
        self._send(Ask(NAMES_NONE, set()))
        if self.backlog:
            self._subscribe()

    def is_in(self, life: int) -> bool:
        """Is this connection still there?"""
        return self.is_open and self.life == life

    def lost(self) -> None:
        """The connection is lost."""
        self.is_connected = self.is_open = self.is_dry = False
        self.out.clear()
        self._told_backlog = 0
        self._asks.clear()
        self._subscribing.clear()
        self._last = None
        self._pool.lost()

    def leave(self) -> None:
        """Give everything back, without counting it as a failure."""
        self._number += 1
        self.out += disconnect(self._number)

    # ---- what the stream wants -------------------------------------------------------------------

    def want(self, backlog: int) -> None:
        """Hold at most so many messages from now on; 0: give everything back."""
        if backlog > self.backlog:
            self.is_dry = False
            self._last = None
        self.backlog = backlog
        if not self.is_connected or backlog == self._told_backlog:
            return
        if backlog:
            self._subscribe()
            return
        self.out += unsubscribe(self._name)
        self._told_backlog = 0
        self._pool.lost()

    def ask(self) -> None:
        """Ask how the queue is, unless an answer is on its way."""
        if self.is_open and not self._asks:
            self._send(Ask(NAMES_NONE, set()))

    def acknowledge(self, bookmarks: Sequence[int]) -> list[Ask]:
        """Acknowledge messages, over a connection that is open. Returns what is to be answered."""
        kept: set[int] = set()
        asks = [Ask(portion, kept) for portion in in_portions(bookmarks)]
        for ask in asks:
            self._send(ask)
        return asks

    def is_answered(self, asks: Sequence[Ask]) -> bool:
        """Has the broker answered all of these?"""
        return not any(ask is other for ask in asks for other in self._asks.values())

    def _send(self, ask: Ask) -> None:
        self._number += 1
        self._asks[self._number] = ask
        self.out += acknowledge(self._queue.destination, ask.bookmarks, self._number)

    def _subscribe(self) -> None:
        self._number += 1
        self._subscribing.add(self._number)
        is_change = self._told_backlog > 0
        self._name += not is_change
        self.out += subscribe(self._queue, self._name, self.backlog, self._number, is_change=is_change)
        self._told_backlog = self.backlog

    @property
    def left_count(self) -> int | None:
        """How many messages nobody has, as far as the broker has told; None: it was not asked."""
        if self._told is None:
            return None
        ready_count, arrival_count = self._told
        return max(0, ready_count - (self._pool.arrival_count - arrival_count))

    # ---- what the broker says --------------------------------------------------------------------

    def take(self, frame: ServerFrame) -> None:
        """A frame has come. Raises PipelineError when the broker refuses the stream, LostError when it may be asked
        again.
        """
        if frame.command != "MESSAGE":
            self._take_answer(frame)
            return
        try:
            found = arrival_of(frame, self._name)
        except PipelineError as error:
            raise PipelineError(f"queue {self._queue.name}: {error}") from None
        if found is not None and self._told_backlog:  # else it is on its way back
            self._pool.arrived(found)

    def _take_answer(self, answer: ServerFrame) -> None:
        if answer.command == "ERROR":
            raise self._refusal(answer.reason)
        if answer.command != "RECEIPT":
            return
        number = int(answer.headers["receipt-id"])
        if number in self._subscribing:
            self._subscribing.discard(number)
            self.has_suited = True
        ask = self._asks.pop(number, None)
        if ask is not None:
            self.is_open = True
            ask.kept.update(listed(answer.headers.get("kept", "")))
            self._note_ready(int(answer.headers["ready"]) if "ready" in answer.headers else None)

    def _note_ready(self, ready_count: int | None) -> None:
        """A queue is dry when nobody had nothing twice, and nothing came in between: what was on its way has come."""
        if ready_count is None:
            raise PipelineError(
                f"queue {self._queue.name}: the broker does not tell what is left on it. An at-most-once queue cannot "
                "be consumed, because its messages are gone when they are sent, so no batch could run again; of "
                "another queue a newer broker tells it"
            )
        now = ready_count, self._pool.arrival_count
        self.is_dry = ready_count == 0 and now == self._last and not self._subscribing
        self._last = self._told = now

    def _refusal(self, reason: str) -> Exception:
        text = f"queue {self._queue.name}: the broker refuses: {reason}"
        if self.has_suited or is_passing(reason):
            return LostError(text)
        advice = "; declare it in broker.xml, or give option queue as address::queue" if _UNKNOWN in reason else ""
        return PipelineError(text + advice)


# ---- frames ----------------------------------------------------------------------------------------------------------
#
# The frames between a stream that consumes a queue and its broker (docs/stomp.md, docs/queues.md).


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
        ("bookmarks", "true"),
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
