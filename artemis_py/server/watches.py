"""When to check which connection again: heart-beats, handshakes, lingering."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, final

from artemis_py.core.timing.clock import Clock
from artemis_py.server.client import Client

_SLACK: Final = 64
"""This many void entries are not worth a clean-up."""


@final
class Watches:
    """Connections by the time of their next check. Each has one entry, its latest.

    The heap stores only the numbers of connections, so a closed one is not kept alive until a time that its client
    chose.
    """

    __slots__ = ("_clock", "_connections", "_heap", "_wishes")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int]] = []
        """Due time and number of a connection; void if the connection has another entry."""
        self._wishes: dict[int, int] = {}
        self._connections: dict[int, Client] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, connection: Client, due_ms: int) -> None:
        """Check a connection at ``due_ms``; its earlier entry becomes void."""
        origin = connection.session.state.origin
        self._connections[origin] = connection
        if self._wishes.get(origin) == due_ms:
            return
        self._wishes[origin] = due_ms
        heappush(self._heap, (due_ms, origin))
        self._clock.wait_until(due_ms)
        self._tidy()

    def forget(self, connection: Client) -> None:
        """Remove a connection's entry."""
        origin = connection.session.state.origin
        if self._wishes.pop(origin, None) is not None:
            del self._connections[origin]
            self._tidy()

    def next_due_ms(self) -> int | None:
        """When the first entry is due, or None. It may be void."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> list[Client]:
        """The connections that are due."""
        heap, wishes = self._heap, self._wishes
        due: list[Client] = []
        while heap and heap[0][0] <= now_ms:
            due_ms, origin = heappop(heap)
            if wishes.get(origin) == due_ms:
                del wishes[origin]
                due.append(self._connections.pop(origin))
        return due

    def _tidy(self) -> None:
        """Remove void entries when they are most of the heap, so that each removal is paid for by an addition."""
        heap, wishes = self._heap, self._wishes
        if len(heap) > 2 * len(wishes) + _SLACK:
            heap[:] = [(due_ms, origin) for origin, due_ms in wishes.items()]
            heapify(heap)
