"""Senders that wait for room, by what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from time import monotonic_ns
from typing import final

from artemis_py.core.tasks import Awaited
from artemis_py.server.turn_client import Client


@final
class BlockedSenders:
    """A turn checks each awaited thing twice, however many senders wait for it: ``ready`` after its input, in which an
    ACK may have made room, and ``has_ready`` at its end, because dispatch makes room, too, and no other turn may
    follow. The longest-waiting sender continues first.
    """

    __slots__ = ("_senders", "_spent_ns", "_until_ns", "_waiting", "awaited")

    def __init__(self) -> None:
        self._senders: set[Client] = set()
        """Those that have logged in: others wait for their login."""
        self._spent_ns = 0
        self._until_ns = 0
        self.awaited: dict[Client, Awaited] = {}
        """What each of them waits for."""
        self._waiting: dict[Awaited, dict[Client, None]] = {}

    def __len__(self) -> int:
        return len(self.awaited)

    def __iter__(self) -> Iterator[Client]:
        return iter(self.awaited)

    def counts(self) -> list[tuple[Awaited, int]]:
        """What is waited for, and how many connections wait for each."""
        return [(awaited, len(connections)) for awaited, connections in self._waiting.items()]

    def spent_ns(self) -> int:
        """How long senders have waited, all together. It only grows."""
        now_ns = monotonic_ns()
        self._spent_ns += len(self._senders) * (now_ns - self._until_ns)
        self._until_ns = now_ns
        return self._spent_ns

    def add(self, connection: Client, awaited: Awaited) -> None:
        """A connection waits, after those already waiting."""
        self.discard(connection)
        if connection.session.is_open:
            self.spent_ns()
            self._senders.add(connection)
        self.awaited[connection] = awaited
        self._waiting.setdefault(awaited, {})[connection] = None

    def discard(self, connection: Client) -> None:
        """A connection no longer waits, if it did."""
        awaited = self.awaited.pop(connection, None)
        if awaited is None:
            return
        if connection in self._senders:
            self.spent_ns()
            self._senders.discard(connection)
        waiting = self._waiting[awaited]
        del waiting[connection]
        if not waiting:
            del self._waiting[awaited]

    @property
    def has_ready(self) -> bool:
        """Is an awaited thing ready?"""
        return any(awaited.may_go_on for awaited in self._waiting)

    def ready(self) -> list[Awaited]:
        """The awaited things that are ready, the least recently served first."""
        return [awaited for awaited in self._waiting if awaited.may_go_on]

    def waiting_for(self, awaited: Awaited) -> Iterator[Client]:
        """The connections that wait for it now, one by one, while it has room. Each stops waiting. The next turn serves
        this thing last.
        """
        waiting = self._waiting.pop(awaited, None)
        if waiting is None:
            return
        self._waiting[awaited] = waiting
        for _ in range(len(waiting)):
            if not waiting or not awaited.may_go_on:
                return
            connection = next(iter(waiting))
            self.discard(connection)
            yield connection

    def next_of(self, count: int) -> list[Client]:
        """Some of all waiting connections; each call returns others until all had their turn."""
        chosen = list(islice(self.awaited, count))
        for connection in chosen:
            self.awaited[connection] = self.awaited.pop(connection)
        return chosen
