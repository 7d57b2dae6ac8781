"""The input side of a turn: input of clients, lost connections, and senders that have room again."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.server.blocked import Blocked
from artemis_py.server.client import Client
from artemis_py.server.isolation import Isolation
from artemis_py.server.rota import Rota

UNBLOCK_UNITS: Final = 256
"""What a sender that waited for room may spend when it continues; the rest of its input waits in line."""
_ASKED_MAX: Final = 256
"""How many blocked connections are checked at once for being alive."""


@final
class TurnInput:
    """The connections with input, the lost ones, and the blocked ones."""

    __slots__ = ("_budget", "_isolation", "blocked", "lost", "rota")

    def __init__(self, budget: Budget, isolation: Isolation) -> None:
        self.rota = Rota()
        """Connections with input."""
        self.lost: list[Client] = []
        """Connections whose socket is gone."""
        self.blocked = Blocked()
        """Senders that wait for room."""
        self._budget = budget
        self._isolation = isolation

    def peer_of(self, user: str) -> str:
        """The address of the client whose input is being processed, if it is one of this user; else empty."""
        reading = self.rota.reading
        return "" if reading is None or reading.session.state.user != user else reading.peer

    def take_in(self, now_ms: int) -> None:
        """Handle lost connections, and let senders whose wait is over continue."""
        if self.lost:
            lost, self.lost = self.lost, []
            for connection in lost:
                if connection.in_line:
                    self.lost.append(connection)  # its input is processed first
                else:
                    connection.lost(now_ms)
        if self.blocked.awaited:
            self._let_blocked_go_on(now_ms)

    def _let_blocked_go_on(self, now_ms: int) -> None:
        """Let senders whose wait is over continue, at least one of them, until the turn's budget is spent."""
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
        """Find blocked senders that are gone, some at a time; to be called regularly."""
        for connection in self.blocked.next_of(_ASKED_MAX):
            try:
                connection.socket.ask_whether_gone()
            except Exception as error:
                self._isolation.cut_off(connection, "unblock", error)

    def forget(self, connection: Client) -> None:
        """A connection is gone: remove it everywhere."""
        self.blocked.discard(connection)
