"""The model of a message and of a reader: plain lists, written from the specification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from sys import maxsize
from typing import Final


@dataclass(slots=True, eq=False)
class Letter:
    """A message as it was sent. ``expires_ms`` is 0 for never, ``origin`` the connection that sent it, ``key`` what
    sorted and last-value queues look at, ``group`` the message group that it names, which it may close. It is held back
    while ``held_until_ms`` is not past, on queues that do that.
    """

    id: int
    priority: int
    color: str
    persistent: bool
    size_bytes: int
    memory_bytes: int
    expires_ms: int
    origin: int
    key: str | None
    group: str | None = None
    closes: bool = False
    held_until_ms: int = 0
    arrived_ms: int = 0
    place: int = 0
    """The how-manieth it was to come in; of a transaction, when that was committed."""


@dataclass(slots=True, eq=False)
class Item:
    """A letter in one queue. ``number`` is its place among those that are worth the same.

    On a last-value queue ``is_value`` says that it counts (a scheduled one does not until it is due), ``outdated`` that
    a newer value came while a consumer had it. ``is_held_back`` says that it has its place, and waits for its time.
    ``is_active`` matters where messages become active in order; one that waits for its time may be, but for that.
    """

    letter: Letter
    number: int
    attempts: int = 0
    deliveries: int = 0
    cancels: int = 0
    redelivered: bool = False
    is_value: bool = False
    outdated: bool = False
    is_held_back: bool = False
    is_active: bool = False


SELECTORS: Final[dict[str, Callable[[Letter], bool]]] = {
    "color = 'red'": lambda letter: letter.color == "red",
    "color <> 'red' AND AMQPriority < 5": lambda letter: letter.color != "red" and letter.priority < 5,
    "AMQPriority >= 5": lambda letter: letter.priority >= 5,
    "AMQSize > 100": lambda letter: letter.size_bytes > 100,
    "AMQExpiration > 0": lambda letter: letter.expires_ms > 0,
    "missing = 'x'": lambda letter: False,
}
"""Selector texts beside what they mean."""


@dataclass(slots=True, eq=False, kw_only=True)
class Reader:
    """The model of one consumer.

    With a replay period (``replay_s``) it wants what arrived in this time before it came, at ``came_ms``, and what
    comes in behind ``came_after``.

    ``reads``: it takes nothing away (a browser, or any consumer of a non-destructive queue). ``window`` is -1, 0 or
    bytes, ``backlog`` how many it may hold; ``overhead`` is what a message weighs beside its own size. ``alone``: it
    admits nobody beside it. ``may_miss`` holds what came back behind a browser: it may be shown, once, or not at all.
    ``picked`` and ``handed`` wait to be written to a reader that settles on send: picked from the queue, or handed over
    without ever having stood there; ``unsent`` are the ids of all that was picked, ``firsts`` of those of them with
    which a group came. ``leases`` says when those of the held ones end that were sent (ms and a number, by letter),
    ``written`` in which order all of them were sent, ``lapsed`` is what it held for too long. Of readers that are equal
    else the one with the lowest ``turn`` is next.
    ``acks``: its client acknowledges. If it settles on send as well, ``out`` is what was sent to it (at most once) and
    not acknowledged. ``has_barrier``: a barrier waits to be written to it.
    """

    number: int
    connection: int
    selector: str | None
    no_local: bool
    replay_s: int | None = None
    came_ms: int = 0
    came_after: int = 0
    settles: bool
    acks: bool = True
    browses: bool
    reads: bool
    window: int
    priority: int
    overhead: int
    alone: bool = False
    backlog: int = maxsize
    room: int = 0
    held: list[Item] = field(default_factory=list)
    out: list[Item] = field(default_factory=list)
    unsent: list[int] = field(default_factory=list)
    picked: list[Item] = field(default_factory=list)
    handed: list[Letter] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    may_miss: set[int] = field(default_factory=set)
    firsts: set[int] = field(default_factory=set)
    leases: dict[int, tuple[int, int]] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    lapsed: list[Item] = field(default_factory=list)
    has_barrier: bool = False
    turn: int = 0

    def wants(self, letter: Letter) -> bool:
        """Does the letter pass selector, no-local and replay period?"""
        if self.no_local and letter.origin == self.connection:
            return False
        if self.replay_s is not None and letter.place <= self.came_after:
            is_recent = self.replay_s > 0 and letter.arrived_ms >= self.came_ms - 1000 * self.replay_s
            if not is_recent:
                return False
        return self.selector is None or SELECTORS[self.selector](letter)

    @property
    def wants_all(self) -> bool:
        """Does it take whatever comes?"""
        return self.selector is None and not self.no_local and self.replay_s is None

    @property
    def has_room(self) -> bool:
        """May one more message go out? Room and window may each be overdrawn by one message."""
        unsettled = self.held + self.out
        if self.room <= 0 or len(unsettled) >= self.backlog:
            return False
        if self.window < 0:
            return True
        if self.window == 0:
            return not unsettled
        return self.window > sum(self.weight(item.letter) for item in unsettled)

    def weight(self, letter: Letter) -> int:
        """What a letter takes of room and window."""
        return letter.size_bytes + self.overhead

    @property
    def sent(self) -> list[Item]:
        """What the client has seen and not settled, in the order of delivery."""
        unsent = set(self.unsent)
        return [item for item in self.held + self.out if item.letter.id not in unsent]
