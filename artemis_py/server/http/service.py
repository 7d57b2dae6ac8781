"""One HTTP acceptor: its routes, its limits and its open connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from artemis_py.server.http.files import FileSender
from artemis_py.server.http.messages import HttpLimits
from artemis_py.server.http.routing import Route, Routes

if TYPE_CHECKING:
    from artemis_py.server.http.connection import HttpConnection


class HttpService:
    """Give ``connect`` to ``loop.create_server``; call ``tick`` now and then, and ``stop`` at the end.

    ``now_ms`` is the clock of the server. ``call_soon`` runs a function in the next round of the event loop, and
    ``call_threadsafe`` does so from other threads. ``is_busy`` is asked by other threads whether those who read on this
    machine have to wait for others. Nothing here knows what the routes do.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        now_ms: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
        call_threadsafe: Callable[[Callable[[], None]], object],
        limits: HttpLimits | None = None,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.limits = limits or HttpLimits()
        self.routes = Routes(routes)
        self.files = FileSender(call_threadsafe, self.limits, is_busy)
        self.now_ms = now_ms
        self.call_soon = call_soon
        self.is_stopping = False
        self._connections: set[HttpConnection] = set()

    @property
    def connections_open(self) -> int:
        """Connections now."""
        return len(self._connections)

    def connect(self) -> asyncio.Protocol:
        """A protocol for a new socket; the first one imports h11, which the start of the broker need not wait for."""
        from artemis_py.server.http.connection import HttpConnection

        return HttpConnection(self)

    def admit(self, connection: HttpConnection) -> bool:
        """Counts a connection; False when there are ``connections_max`` already, or the service stops."""
        if self.is_stopping or len(self._connections) >= self.limits.connections_max:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: HttpConnection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)

    def tick(self, now_ms: int) -> None:
        """Ends the connections on which nothing has happened for ``idle_ms_max``."""
        for connection in list(self._connections):
            connection.note_progress(now_ms)
            if now_ms - connection.last_activity_ms >= self.limits.idle_ms_max:
                connection.abort()

    def stop(self) -> None:
        """Closes every connection, answers that are written go out; later ones are refused."""
        self.is_stopping = True
        for connection in list(self._connections):
            connection.close()
        self.files.stop()
