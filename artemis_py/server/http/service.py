"""One HTTP acceptor: its routes, its limits and its open connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from artemis_py.core.holdings import HTTP, HTTP_CONNECTION_BYTES, Holdings
from artemis_py.server.faults import Faults
from artemis_py.server.http.files import FileSender
from artemis_py.server.http.hosts import Hosts
from artemis_py.server.http.messages import HttpLimits
from artemis_py.server.http.routing import Route, Routes

if TYPE_CHECKING:
    from artemis_py.server.http.connection import HttpConnection


class HttpService:
    """Pass ``connect`` to ``loop.create_server``, call ``tick`` regularly, and ``stop`` at the end.

    ``now_ms`` is a steady clock in milliseconds. ``call_soon`` runs a function in the next round of the event loop;
    ``call_threadsafe`` does so from other threads. Other threads call ``is_busy`` to find out whether readers on this
    machine must wait. ``holdings`` counts the memory of connections. Nothing here knows what the routes do. A failure
    in a connection's step ends only that connection and is reported to ``faults``.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        now_ms: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
        call_threadsafe: Callable[[Callable[[], None]], object],
        limits: HttpLimits | None = None,
        hosts: Hosts | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        faults: Faults | None = None,
        holdings: Holdings | None = None,
    ) -> None:
        self._holdings = holdings
        self.limits = limits or HttpLimits()
        self.faults = faults or Faults()
        self.hosts = hosts or Hosts()
        self.routes = Routes(routes)
        self.files = FileSender(call_threadsafe, self.limits, is_busy)
        self.now_ms = now_ms
        self.call_soon = call_soon
        self.is_stopping = False
        self._count = 0
        self._connections: set[HttpConnection] = set()

    @property
    def connections_open(self) -> int:
        """Open connections."""
        return len(self._connections)

    def connect(self) -> asyncio.Protocol:
        """Return the protocol of a new socket. The first one imports h11, so that the broker's start does not wait for
        it.
        """
        from artemis_py.server.http.connection import HttpConnection

        return HttpConnection(self)

    def admit(self, connection: HttpConnection) -> bool:
        """Counts a connection; False when the service stops.

        With ``connections_max`` connections, the one that has gone longest without a complete request is closed. If all
        of them are being answered, the new one is a spare, for the open routes; if there are too many spares, the
        oldest is closed. So a client that opens connections and does nothing, or reads nothing, cannot block health
        checks.
        """
        if self.is_stopping:
            return False
        limits = self.limits
        if self._regular_count >= limits.connections_max:
            waiting = [one for one in self._connections if one.is_waiting and not one.is_spare]
            if waiting:
                self._end(min(waiting, key=attrgetter("waiting_since_ms")))
        connection.is_spare = self._regular_count >= limits.connections_max
        spare = [one for one in self._connections if one.is_spare]
        if connection.is_spare and len(spare) >= limits.spare_connections:
            self._end(min(spare, key=attrgetter("number")))
        self._count += 1
        connection.number = self._count
        self._connections.add(connection)
        if self._holdings is not None:
            self._holdings.move(HTTP, HTTP_CONNECTION_BYTES)
        return True

    @property
    def _regular_count(self) -> int:
        return sum(not one.is_spare for one in self._connections)

    def _end(self, connection: HttpConnection) -> None:
        self.forget(connection)
        connection.guard(connection.abort)

    def may_have(self, route: Route, connection: HttpConnection) -> bool:
        """Is there room for a request on this connection? If so, a spare becomes a regular one."""
        if connection.is_spare and self._regular_count < self.limits.connections_max:
            connection.is_spare = False
        return route.is_open or not connection.is_spare

    def forget(self, connection: HttpConnection) -> None:
        """Remove a connection that is gone."""
        if connection in self._connections:
            self._connections.discard(connection)
            if self._holdings is not None:
                self._holdings.move(HTTP, -HTTP_CONNECTION_BYTES)

    def tick(self, now_ms: int) -> None:
        """Closes connections that were idle for ``idle_ms_max``, and those whose request takes too long to arrive."""
        for connection in list(self._connections):
            connection.note_progress(now_ms)
            if connection.takes_too_long(now_ms):
                connection.guard(connection.refuse_late)
            elif now_ms - connection.last_activity_ms >= self.limits.idle_ms_max:
                connection.guard(connection.abort)

    def stop(self) -> None:
        """Closes every connection after sending written responses; later connections are refused."""
        self.is_stopping = True
        for connection in list(self._connections):
            connection.guard(connection.close)
        self.files.stop()
