"""The input of a turn: which connection is next, which wait for room, and which are checked at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Final, final

from artemis_py.core.budget import TURN_UNITS, Budget
from artemis_py.core.clock import Clock
from artemis_py.security.rights import UNKNOWN_PEER, Peer
from artemis_py.server.blocked_senders import BlockedSenders
from artemis_py.server.failures import Fail, Isolation
from artemis_py.server.turn_client import Client, Recipient

# ---- watches ---------------------------------------------------------------------------------------------------------
#
# When to check which connection again: heart-beats, handshakes, lingering.


@final
class ConnectionWatches:
    """Connections, and takers of messages, that are checked at a time: each has one at most, the latest that was
    set.
    """

    __slots__ = ("_connections", "alarms")

    def __init__(self, clock: Clock) -> None:
        self._connections: dict[int, Recipient] = {}
        self.alarms = clock.alarms()
        """The steady times, by the numbers of connections."""

    def add(self, connection: Recipient, due_ms: int) -> None:
        """Check a connection at ``due_ms``, and not at another time."""
        origin = connection.origin
        self._connections[origin] = connection
        self.alarms.set(origin, due_ms)

    def forget(self, connection: Recipient) -> None:
        """Check a connection no more."""
        origin = connection.origin
        if self._connections.pop(origin, None) is not None:
            self.alarms.clear(origin)

    def check(self, now_ms: int, fail: Fail) -> None:
        """Check the connections that are due. ``fail`` ends one whose check raises."""
        while self.alarms.due:
            connection = self._connections.pop(self.alarms.take(), None)
            if connection is None:
                continue  # it is to be checked at another time by now
            try:
                connection.check(now_ms)
            except Exception as error:
                fail(connection, "beat", error)


# ---- input scheduler -------------------------------------------------------------------------------------------------
#
# Whose input a turn processes, and how much of it: shares by cost, not by count.


INPUT_SHARE: Final = 4
"""Input gets one part in this many of a turn. The rest is for what the input causes, and keeps turns short for new
arrivals.
"""
QUANTUM_MIN: Final = 32
"""What a connection may spend in one round if many wait."""


class InputScheduler:
    """The connections that wait with input, in deficit round robin (Shreedhar and Varghese, "Efficient Fair Queuing
    using Deficit Round-Robin").

    In each round every connection may spend the same number of budget units; one that spent more waits until that is
    balanced. A connection that had nothing waiting goes first, once: a client that sends little is served in the turn
    after its input arrives, however much others have sent. When no connection waits, all debts are cleared.
    """

    def __init__(self) -> None:
        self._new: list[Client] = []
        self._waiting: deque[Client] = deque()
        self.count = 0
        """How many connections wait."""
        self.reading: Client | None = None
        """The connection whose input is being processed."""
        self._period = 0
        """Counts the times when no connection was waiting. Debts from an earlier period no longer count."""

    def __iter__(self) -> Iterator[Client]:
        return chain(self._new, self._waiting)

    def add(self, connection: Client) -> None:
        """A connection has input; it is not yet in line."""
        connection.in_line = True
        if connection.period != self._period:
            connection.period = self._period
            connection.credit = 0
        self._new.append(connection)
        self.count += 1

    def serve(self, budget: Budget, now_ms: int, fail: Fail) -> None:
        """One turn. ``Client.read`` processes input until the budget is down to ``stop_at``, but at
        least a little, and returns whether there is more. If it raises, ``fail`` ends that connection.
        """
        if not self.count:
            return
        units = max(min(budget.left, TURN_UNITS) // INPUT_SHARE, 1)
        end = budget.left - units
        quantum = max(units // self.count, min(units, QUANTUM_MIN))
        new, self._new = self._new, []
        waited = len(self._waiting)
        least = end + units // 2 if waited else end - QUANTUM_MIN  # a few that arrive together are served together
        for connection in new:
            if budget.left > least:
                self._serve_one(connection, budget, quantum, now_ms, fail)
            else:
                self._waiting.append(connection)
        passed_over = 0
        while self._waiting and (waited > 0 or budget.left > end):
            if self._serve_one(self._waiting.popleft(), budget, quantum, now_ms, fail):
                passed_over = waited = 0
            else:
                passed_over += 1
                if passed_over >= len(self._waiting):
                    self._lift()
        self.reading = None
        if not self.count:
            self._period += 1

    def _serve_one(
        self,
        connection: Client,
        budget: Budget,
        quantum: int,
        now_ms: int,
        fail: Fail,
    ) -> bool:
        """Give a connection its share; False if it must wait because of what it spent before."""
        connection.credit += quantum
        if connection.credit <= 0:
            self._waiting.append(connection)
            return False
        before = budget.left
        self.reading = connection
        try:
            has_more = connection.read(now_ms, before - connection.credit)
        except Exception as error:
            fail(connection, "read", error)
            has_more = False
        connection.credit -= before - budget.left
        if has_more:
            self._waiting.append(connection)
        else:
            self.count -= 1
            connection.in_line = False
            connection.credit = min(connection.credit, 0)
        return True

    def _lift(self) -> None:
        """All must wait because of what they spent before: the one that spent least continues."""
        most = max([connection.credit for connection in self._waiting])
        for connection in self._waiting:
            connection.credit -= most


# ---- turn input ------------------------------------------------------------------------------------------------------
#
# The input side of a turn: input of clients, lost connections, and senders that have room again.


UNBLOCK_UNITS: Final = 256
"""What a sender that waited for room may spend when it continues; the rest of its input waits in line."""
_ASKED_MAX: Final = 256
"""How many blocked connections are checked at once for being alive."""


@final
class TurnInput:
    """The connections with input, the lost ones, and the blocked ones."""

    __slots__ = ("_budget", "_isolation", "blocked", "lost", "scheduler")

    def __init__(self, budget: Budget, isolation: Isolation) -> None:
        self.scheduler = InputScheduler()
        """Connections with input."""
        self.lost: list[Client] = []
        """Connections whose socket is gone."""
        self.blocked = BlockedSenders()
        """Senders that wait for room."""
        self._budget = budget
        self._isolation = isolation

    def peer_of(self, user: str) -> Peer:
        """The client whose input is being processed, if it is one of this user."""
        reading = self.scheduler.reading
        if reading is None or reading.session.state.user != user:
            return UNKNOWN_PEER
        return Peer(reading.peer, reading.session.service.acceptor.name)

    def take_lost_and_unblocked(self, now_ms: int) -> None:
        """Handle lost connections, and unblock senders whose wait is over."""
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
                    self._isolation.fail(connection, "unblock", error)
                if budget.is_spent:
                    return

    def check_blocked(self) -> None:
        """Find blocked senders that are gone, some at a time; to be called regularly."""
        for connection in self.blocked.next_of(_ASKED_MAX):
            try:
                connection.socket.ask_whether_gone()
            except Exception as error:
                self._isolation.fail(connection, "unblock", error)

    def forget(self, connection: Client) -> None:
        """A connection is gone: remove it everywhere."""
        self.blocked.discard(connection)
