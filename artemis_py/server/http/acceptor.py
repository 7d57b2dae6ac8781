"""One HTTP acceptor: its routes, its limits and its open connections."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import final

from artemis_py.core.memory import Holdings
from artemis_py.server.failures import Faults
from artemis_py.server.http.authentication import Authentication
from artemis_py.server.http.connection_limit import ConnectionLimit
from artemis_py.server.http.disconnects import DisconnectWatch
from artemis_py.server.http.file_sender import FileSender
from artemis_py.server.http.origins import Cors, Hosts
from artemis_py.server.http.requests import HttpLimits
from artemis_py.server.http.routing import Route, Routes


@final
class HttpAcceptor:
    """What the connections of an acceptor share. Call ``tick`` regularly, and ``stop`` at the end.

    ``now_ms`` is a steady clock in milliseconds. ``call_soon`` runs a function in the next round of the event loop;
    ``call_threadsafe`` does so from other threads. Other threads call ``is_busy`` to find out whether readers on this
    machine must wait. ``holdings`` counts the memory of connections. ``authentication`` says who may use which route;
    without it everybody may use all. Nothing here knows what the routes do. A failure in a connection's step ends only
    that connection and is reported to ``faults``. ``disconnects`` notices clients that leave while they wait; without
    it that is noticed when they are answered. While it ``is_short`` of descriptors, clients get only what is always
    answered. ``name`` is the acceptor's, for the log.
    """

    def __init__(  # noqa: PLR0913 - all but the routes are named where they are given
        self,
        routes: Iterable[Route],
        *,
        now_ms: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
        call_threadsafe: Callable[[Callable[[], None]], object],
        limits: HttpLimits | None = None,
        hosts: Hosts | None = None,
        cors: Cors | None = None,
        authentication: Authentication | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        faults: Faults | None = None,
        holdings: Holdings | None = None,
        disconnects: DisconnectWatch | None = None,
        is_short: Callable[[], bool] = lambda: False,
        name: str = "",
    ) -> None:
        self.routes = Routes(routes)
        self.limits = limits = limits or HttpLimits()
        self.hosts = hosts or Hosts()
        self.cors = cors or Cors()
        knows_users = authentication is not None
        self.connection_limit = ConnectionLimit(limits, holdings, knows_users=knows_users, is_short=is_short)
        self.files = FileSender(call_threadsafe, limits, is_busy)
        self.faults = faults or Faults()
        self.now_ms = now_ms
        self.call_soon = call_soon
        self.authentication = authentication
        self.name = name
        self.disconnects = disconnects
        self.is_stopping = False

    @property
    def connections_open(self) -> int:
        """The number of open connections."""
        return len(self.connection_limit)

    @property
    def connections_total(self) -> int:
        """The number of connections accepted since the start."""
        return self.connection_limit.accepted_count

    def tick(self, now_ms: int) -> None:
        """Close connections that were idle for ``idle_ms_max``, and those whose request takes too long to arrive."""
        for connection in self.connection_limit:
            connection.check_timeouts(now_ms)

    def recheck_rights(self, users: Container[str] = ()) -> None:
        """Rights have changed, or what is known of these users: end answers under way that their users may not have any
        more.
        """
        for connection in self.connection_limit:
            connection.guard(connection.recheck_rights, users)

    def stop(self) -> None:
        """Close every connection after sending written responses; later connections are refused."""
        self.is_stopping = True
        for connection in self.connection_limit:
            connection.guard(connection.close)
        self.files.stop()
