"""Senders that wait for room, by what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import final

from artemis_py.server.client import Client
from artemis_py.stomp.service import Awaited


@final
class Blocked:
    """A turn asks each thing that is waited for once, however many wait for it. Who waits longest goes on first."""

    __slots__ = ("_awaited", "_waiting")

    def __init__(self) -> None:
        self._awaited: dict[Client, Awaited] = {}
        self._waiting: dict[Awaited, dict[Client, None]] = {}

    def __len__(self) -> int:
        return len(self._awaited)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._awaited)

    def add(self, connection: Client, awaited: Awaited) -> None:
        """A connection waits, behind those that do already."""
        self.discard(connection)
        self._awaited[connection] = awaited
        self._waiting.setdefault(awaited, {})[connection] = None

    def discard(self, connection: Client) -> None:
        """A connection waits no more, if it did."""
        awaited = self._awaited.pop(connection, None)
        if awaited is None:
            return
        waiting = self._waiting[awaited]
        del waiting[connection]
        if not waiting:
            del self._waiting[awaited]

    @property
    def has_ready(self) -> bool:
        """Is there something that is waited for and has come?"""
        return any(awaited.may_go_on for awaited in self._waiting)

    def ready(self) -> list[Awaited]:
        """What is waited for and has come, what was served longest ago first."""
        return [awaited for awaited in self._waiting if awaited.may_go_on]

    def waiting_for(self, awaited: Awaited) -> Iterator[Client]:
        """Those that wait for it now, one by one, as long as it lets them go on. Each waits no more; this is the last
        that is served in the next turn.
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
        """Some of all that wait, others with each call until it was everybody's turn."""
        chosen = list(islice(self._awaited, count))
        for connection in chosen:
            self._awaited[connection] = self._awaited.pop(connection)
        return chosen
