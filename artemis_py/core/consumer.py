"""A consumer: what it may get, what it holds, and what it has settled."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from sys import maxsize
from typing import Final, Protocol, final

from mypy_extensions import mypyc_attr

from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import Cursor
from artemis_py.message import Account, Head, Message
from artemis_py.record_log import Actor
from artemis_py.selector import Selector

# ---- statistics ------------------------------------------------------------------------------------------------------
#
# What a consumer was given and has settled since it attached, as an operator is told.


@final
class ConsumerStatistics:
    """Counts of messages, and dates in epoch ms (0: never). They move once for messages that go together."""

    __slots__ = (
        "acknowledged_count",
        "acknowledged_ms",
        "begun_ms",
        "delivered_count",
        "delivered_ms",
        "settled_before",
    )

    def __init__(self) -> None:
        self.begun_ms = 0
        """When the consumer attached."""
        self.delivered_count = 0
        self.delivered_ms = 0
        self.acknowledged_count = 0
        self.acknowledged_ms = 0
        self.settled_before = -1
        """How many it had settled when somebody last looked whether it is slow; -1: nobody has."""

    def note_delivered(self, count: int, now_ms: int, *, settles: bool) -> None:
        """So many messages were written for it; ``settles``: nobody acknowledges them, so that settles them."""
        self.delivered_count += count
        self.delivered_ms = now_ms
        if settles:
            self.note_acknowledged(count, now_ms)

    def note_acknowledged(self, count: int, now_ms: int) -> None:
        """It has settled so many messages."""
        self.acknowledged_count += count
        self.acknowledged_ms = now_ms


# ---- consumer --------------------------------------------------------------------------------------------------------
#
# A consumer: one reader of one queue, with its credit and the messages that it has not settled.


UNLIMITED: Final = -1
UNCONFIRMED_MAX: Final = 10_000
"""The largest backlog on an at-most-once queue: its messages are gone, so no limit of an address counts them."""
_NOTHING: Final = Message(Head(b"\n", ""), b"", 0, 0, 0, Account(), 0)
_GONE: Final = Entry(_NOTHING)
"""Stands for a message that was sent at most once, so that what a client does not acknowledge keeps no body."""
_PER_MESSAGE_IDENTIFIERS: Final = frozenset({"AMQTimestamp", "AMQExpiration", "AMQSize"})


def _gone(bookmark: int) -> Entry:
    """Stands for a message that was sent at most once and has a bookmark, which stands in its ``sequence``."""
    entry = Entry(_NOTHING)
    entry.sequence = bookmark
    return entry


def encoded_size(message: Message) -> int:
    """The weight of a message for a consumer that gets no frames: header block plus body, in bytes."""
    return message.size_bytes


@final
@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: the number of the connection, the client id and user that it named, its address as host:port, and the
    acceptor that it came by.
    """

    connection: int = 0
    client_id: str | None = None
    user: str | None = None
    address: str = ""
    acceptor: str = ""

    @property
    def who(self) -> dict[str, str | int]:
        """The client, for a line of the log, as far as it is known."""
        return client_fields(self.connection, self.user, self.client_id, self.address, self.acceptor)


class Sender(Protocol):
    """Who sends, for lines of the log."""

    @property
    def who(self) -> dict[str, str | int]:
        """The client, as far as it is known."""


_WHO_MAX: Final = 200


def client_fields(
    connection: int, user: str | None, client_id: str | None, address: str, acceptor: str
) -> dict[str, str | int]:
    """The fields by which a line of the log names a client; only those that are known."""
    fields: dict[str, str | int] = {"session": f"s{connection}"}
    if user:
        fields["user"] = user[:_WHO_MAX]
    if client_id:
        fields["client_id"] = client_id[:_WHO_MAX]
    if address:
        fields["from"] = address
    if acceptor:
        fields["acceptor"] = acceptor
    return fields


NOBODY: Final = Reader()


@final
@dataclass(frozen=True, slots=True)
class ConsumerDefaults:
    """Defaults for consumers that set nothing themselves (``consumer-selector``; ``consumer-replay-period`` in s; what
    backlog a consumer has that asks for none), and the largest backlog that one may ask for. ``at_most_once``: sending
    settles, and an acknowledgement only frees the backlog (AMPS' at-most-once).
    """

    selector: Selector | None = None
    replay_period_s: int | None = None
    backlog: int = maxsize
    backlog_max: int = maxsize
    at_most_once: bool = False

    def backlog_for(self, asked: int | None) -> int:
        """The backlog of a consumer that asks for so many messages."""
        return self.backlog if asked is None else min(asked, self.backlog_max)

    def replay(self, period_s: int | None, now_ms: int, last_message_id: int) -> tuple[int, int]:
        """``since_ms`` and ``after_id`` for a consumer that attaches now. ``period_s`` is the replay period that it
        asks for; None: the queue's default counts.
        """
        if period_s is None:
            period_s = self.replay_period_s
        if period_s is None:
            return 0, 0
        return max(now_ms - 1000 * period_s, 0) if period_s else now_ms + 1, last_message_id


_LOOK_UNITS_MAX: Final = 4
"""A selector that costs no more units than this is part of the cost of looking at a message."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Consumer:
    """State of one reader. The queue moves entries; the session that owns the consumer turns its outbox into frames.

    ``room_bytes`` is what the connection takes in this turn, ``credit_bytes`` what the window leaves. An entry goes out
    while both are above 0, so one message may overdraw each (Artemis' consumer windows). A window of 0 means exactly
    one unsettled message. A backlog of N means at most N of them, whatever their size (AMPS).
    """

    # fmt: off
    __slots__ = (
        "_head_only", "_last_head", "_last_match", "_units", "_units_per_kb", "acks", "actor", "after_id",
        "asked_units", "backlog_max", "barrier", "browses", "closed", "credit_bytes", "cursor", "statistics",
        "destructive", "eased", "exclusive", "firsts", "handed", "held", "id", "listed", "no_local", "outbox", "owner",
        "parked", "passed_over", "priority", "reader", "room_bytes", "selector", "settles", "since_ms", "weigh",
        "weights", "window_bytes",
    )
    # fmt: on

    def __init__(  # noqa: PLR0913 - all but the first two are named where they are given
        self,
        id: int,
        owner: object,
        *,
        settles: bool,
        destructive: bool,
        acks: bool | None = None,
        browses: bool = False,
        selector: Selector | None = None,
        window_bytes: int = UNLIMITED,
        priority: int = 0,
        no_local: int = 0,
        weigh: Callable[[Message], int] = encoded_size,
        since_ms: int = 0,
        after_id: int = 0,
        exclusive: bool = False,
        reader: Reader = NOBODY,
        backlog_max: int = maxsize,
    ) -> None:
        self.id = id
        self.actor: Actor | None = None
        """Its name in a retained log; None without one."""
        self.owner = owner
        self.settles = settles
        """True when sending a message settles it (ack:auto, and every consumer of an at-most-once queue)."""
        self.acks = not settles if acks is None else acks
        """True when its client acknowledges; if sending settles, that only frees backlog and window."""
        self.destructive = destructive
        self.browses = browses
        """True for a browser: it looks at messages that others take."""
        self.selector = selector
        self.window_bytes = window_bytes
        self.priority = priority
        self.no_local = no_local
        """The connection whose messages this consumer does not want; 0 for none."""
        self.weigh = weigh
        """The size of the MESSAGE frame that carries a message, for room and window."""
        self.since_ms = since_ms
        """Messages sent before this date (epoch ms) are not wanted; 0: age does not matter."""
        self.after_id = after_id
        """Messages with a higher id arrived after it, perhaps with a COMMIT, and are wanted whenever they were sent."""
        self.exclusive = exclusive
        """It wants to be the only consumer of its queue."""
        self.reader = reader
        self.backlog_max = backlog_max
        """How many messages it may hold."""
        self.eased: list[Consumer] | None = None
        """Where it is noted that it has let something go, for a distribution that ranks consumers; None once it is."""
        self.firsts: set[int] = set()
        """Ids of messages in the outbox that brought their group along, where ``group-first-key`` marks them."""
        self.asked_units = 0
        """What its selector has cost beyond the looks, in units. Whoever pays for it sets it to 0."""
        self.credit_bytes = max(window_bytes, 1)
        self.room_bytes = 0
        self.held: dict[int, Entry] = {}
        self.weights: dict[int, int] = {}
        """What each held entry took from the window, in bytes. It gives this back when it leaves."""
        self.outbox: list[Entry] = []
        """Entries picked for this consumer and not written yet."""
        self.handed: list[Entry] = []
        """Entries that never stood on the queue. They go out before the outbox."""
        self.barrier: Entry | None = None
        """The barrier in its outbox, which has nothing else then."""
        self.cursor: Cursor | None = None
        self.listed = False
        """Is it on the broker's list of consumers with output?"""
        self.parked = True
        """True while the distribution does not offer it entries: it has no room or credit, or nothing matched."""
        self.passed_over = 0
        """Set when it is its turn and nothing matches: a number that rises with each such turn of the queue. 0 when it
        has lost none.
        """
        self.closed = False
        self.statistics = ConsumerStatistics()
        self._units = self._units_per_kb = 0
        self._head_only = self._last_match = False
        self._last_head: Head | None = None
        self._prepare(selector)

    def _prepare(self, selector: Selector | None) -> None:
        self._units = 0 if selector is None else selector.program.units
        self._units_per_kb = 0 if selector is None else selector.program.units_per_kb
        self._head_only = selector is not None and not (selector.identifiers & _PER_MESSAGE_IDENTIFIERS)
        self._last_head = None

    def choose(self, selector: Selector | None, no_local: int) -> None:
        """Choose other messages from now on. The queue must give it another cursor."""
        self.selector = selector
        self.no_local = no_local
        self._prepare(selector)

    @property
    def chooses(self) -> bool:
        """Does it choose among messages?"""
        return self.selector is not None or self.no_local > 0 or self.since_ms > 0

    @property
    def has_room(self) -> bool:
        """May the next entry go out to this consumer?"""
        return self.room_bytes > 0 and self.credit_bytes > 0 and len(self.held) < self.backlog_max

    def wants(self, message: Message) -> bool:
        """Does the message pass the consumer's selector, no-local and replay period?

        What the selector says of a head is kept for the next message with the same head.
        """
        if self.no_local and message.origin == self.no_local:
            return False
        if message.timestamp_ms < self.since_ms and message.id <= self.after_id:
            return False
        selector = self.selector
        if selector is None:
            return True
        if self._head_only:
            if message.head is not self._last_head:
                self._last_head = message.head
                self._last_match = self._evaluate(selector, message)
            return self._last_match
        return self._evaluate(selector, message)

    def _evaluate(self, selector: Selector, message: Message) -> bool:
        units = self._units + (self._units_per_kb * message.head.size_bytes >> 10)
        if units > _LOOK_UNITS_MAX:
            self.asked_units += units
        return selector.matches(message.lookup)

    def take_asked(self) -> int:
        """The units that its selector has cost since the last call."""
        units, self.asked_units = self.asked_units, 0
        return units

    def take(self, entry: Entry) -> None:
        """Put an entry into the outbox and charge room and window for it."""
        message = entry.message
        size = self.weigh(message)
        self.room_bytes -= size
        if not self.settles:
            self.held[message.id] = entry
            if self.window_bytes >= 0:
                self.weights[message.id] = size
                self.credit_bytes -= size
        elif self.acks:
            self._take_gone(message, size)
        self.outbox.append(entry)

    def _take_gone(self, message: Message, size_bytes: int) -> None:
        """The message is gone when it is sent, and yet takes room in backlog and window."""
        self.held[message.id] = _gone(message.lsn) if message.lsn else _GONE
        if self.window_bytes >= 0:
            self.weights[message.id] = size_bytes
            self.credit_bytes -= size_bytes

    def take_barrier(self, entry: Entry) -> None:
        """Put a barrier into the outbox. It needs no acknowledgement, so it takes room and nothing of the window."""
        self.room_bytes -= self.weigh(entry.message)
        self.barrier = entry
        self.outbox.append(entry)

    def let_go(self, message_id: int) -> Entry:
        """Remove a held entry and give its window back. Raises KeyError when it is not held."""
        entry = self.held.pop(message_id)
        if self.window_bytes >= 0:
            self.credit_bytes += self.weights.pop(message_id)
        if self.eased is not None:
            self._note_eased(self.eased)
        return entry

    def _note_eased(self, eased: list[Consumer]) -> None:
        eased.append(self)
        self.eased = None

    def let_go_gone(self, bookmarks: Container[int]) -> list[Entry]:
        """Remove those with these bookmarks of the messages that were sent at most once."""
        wanted = [message_id for message_id, entry in self.held.items() if entry.sequence in bookmarks]
        return [self.let_go(message_id) for message_id in wanted]

    def count_up_to(self, message_id: int, count_max: int) -> int:
        """How many held entries were delivered up to and including this one, which is held; at most ``count_max``."""
        count = 0
        for held_id in self.held:
            count += 1
            if held_id == message_id or count == count_max:
                break
        return count

    def let_go_up_to(self, message_id: int, count_max: int = maxsize) -> list[Entry]:
        """Remove a held entry and all that were delivered before it, or only the first ``count_max`` of them.

        Raises KeyError when it is not held.
        """
        held = self.held
        if message_id not in held:
            raise KeyError(message_id)
        covered: list[int] = []
        for held_id in held:
            covered.append(held_id)
            if held_id == message_id or len(covered) == count_max:
                break
        if self.window_bytes >= 0:
            self.credit_bytes += sum(map(self.weights.pop, covered))
        if self.eased is not None:
            self._note_eased(self.eased)
        return list(map(held.pop, covered))

    def let_go_all(self) -> list[Entry]:
        """Remove every held entry, in order of delivery. Entries that were not sent yet leave the outbox too."""
        entries = list(self.held.values())
        self.held.clear()
        self.weights.clear()
        self.outbox.clear()
        self.credit_bytes = max(self.window_bytes, 1)
        if self.eased is not None:
            self._note_eased(self.eased)
        return entries
