"""The input side of a turn: what clients sent, those that were lost, and senders that have room again."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.server.blocked import Blocked
from artemis_py.server.client import Client
from artemis_py.server.isolation import Isolation
from artemis_py.server.rota import Rota

UNBLOCK_UNITS: Final = 256
"""What a sender that waited for room may spend when it goes on; the rest waits in the line."""
_ASKED_MAX: Final = 256
"""How many blocked connections are asked at once whether they are still there."""


@final
class TurnInput:
    """Who has input, or is to be taken note of otherwise."""

    __slots__ = ("_budget", "_isolation", "blocked", "lost", "rota")

    def __init__(self, budget: Budget, isolation: Isolation) -> None:
        self.rota = Rota()
        """Who has input."""
        self.lost: list[Client] = []
        """Whose socket is gone."""
        self.blocked = Blocked()
        """Senders that wait for room."""
        self._budget = budget
        self._isolation = isolation

    def read(self, now_ms: int) -> None:
        """Carry out what connections sent, to each its share."""

        def read(connection: Client, stop_at: int) -> bool:
            try:
                return connection.read(now_ms, stop_at)
            except Exception as error:
                self._isolation.cut_off(connection, "read", error)
                return False

        self.rota.serve(self._budget, read)

    def take_in(self, now_ms: int) -> None:
        """Take note of connections that were lost, and let senders go on whose wait is over."""
        if self.lost:
            lost, self.lost = self.lost, []
            for connection in lost:
                if connection.in_line:
                    self.lost.append(connection)  # what came of it is carried out before
                else:
                    connection.lost(now_ms)
        if self.blocked:
            self._let_blocked_go_on(now_ms)

    def _let_blocked_go_on(self, now_ms: int) -> None:
        """Senders whose wait is over go on, at least one of them, until the turn's budget is spent."""
        budget = self._budget
        for awaited in self.blocked.ready():
            for connection in self.blocked.waiting_for(awaited):
                try:
                    connection.unblock(now_ms, budget.left - UNBLOCK_UNITS)
                except Exception as error:
                    self._isolation.cut_off(connection, "unblock", error)
                if budget.is_spent:
                    return

    def look_at_blocked(self) -> None:
        """Find senders that wait for room and are gone, some of them at a time; to be called now and then."""
        for connection in self.blocked.next_of(_ASKED_MAX):
            try:
                connection.socket.ask_whether_gone()
            except Exception as error:
                self._isolation.cut_off(connection, "unblock", error)

    def forget(self, connection: Client) -> None:
        """A connection is gone: it waits for nothing."""
        self.blocked.discard(connection)
