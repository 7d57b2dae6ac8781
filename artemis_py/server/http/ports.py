"""The HTTP ports of a process: each serves the routes of its acceptor, within limits on connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import Final, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.memory import Holdings
from artemis_py.server.clocks import steady_clock_ms
from artemis_py.server.descriptors import Descriptors, is_free_below
from artemis_py.server.failures import Faults, RateLimitedLog
from artemis_py.server.http.acceptor import HttpAcceptor
from artemis_py.server.http.authentication import Authentication
from artemis_py.server.http.connection_limit import ConnectionLimit
from artemis_py.server.http.disconnects import DisconnectWatch
from artemis_py.server.http.file_sender import FileSender
from artemis_py.server.http.hosts import Hosts
from artemis_py.server.http.requests import HttpLimits
from artemis_py.server.http.routing import Route, Routes
from artemis_py.server.listener import Listener
from artemis_py.server.security import Security
from artemis_py.server.stats import ServerStats
from artemis_py.server.tls.acceptors import TlsAcceptors

# ---- service ---------------------------------------------------------------------------------------------------------
#
# One HTTP acceptor: its routes, its limits and its open connections.


@final
class HttpService:
    """Pass ``connect`` to ``loop.create_server``, call ``tick`` regularly, and ``stop`` at the end.

    ``now_ms`` is a steady clock in milliseconds. ``call_soon`` runs a function in the next round of the event loop;
    ``call_threadsafe`` does so from other threads. Other threads call ``is_busy`` to find out whether readers on this
    machine must wait. ``holdings`` counts the memory of connections. ``authentication`` says who may use which route;
    without it everybody may use all. Nothing here knows what the routes do. A failure in a connection's step ends only
    that connection and is reported to ``faults``. ``disconnects`` notices clients that leave while they wait. While it
    ``is_short`` of descriptors, clients get only what is always answered. ``name`` is the acceptor's, for the log.
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
        authentication: Authentication | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        faults: Faults | None = None,
        holdings: Holdings | None = None,
        disconnects: DisconnectWatch | None = None,
        is_short: Callable[[], bool] = lambda: False,
        name: str = "",
    ) -> None:
        limits = limits or HttpLimits()
        self.limits = limits
        self.faults = faults or Faults()
        knows_users = authentication is not None
        self.connection_limit = ConnectionLimit(limits, holdings, knows_users=knows_users, is_short=is_short)
        self._files = FileSender(call_threadsafe, limits, is_busy)
        self._acceptor = HttpAcceptor(
            Routes(routes),
            limits,
            hosts or Hosts(),
            self.connection_limit,
            self._files,
            self.faults,
            now_ms,
            call_soon,
            authentication,
            name,
            disconnects,
        )

    @property
    def connections_open(self) -> int:
        """The number of open connections."""
        return len(self.connection_limit)

    @property
    def connections_total(self) -> int:
        """The number of connections accepted since the start."""
        return self.connection_limit.accepted_count

    def connect(self) -> asyncio.Protocol:
        """Return the protocol of a new socket. The first one imports h11, so that the broker's start does not wait for
        it.
        """
        from artemis_py.server.http.connection import HttpConnection

        return HttpConnection(self._acceptor)

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
        self._acceptor.is_stopping = True
        for connection in self.connection_limit:
            connection.guard(connection.close)
        self._files.stop()


# ---- ports -----------------------------------------------------------------------------------------------------------
#
# The open HTTP ports of a process: while its broker works, and while it waits for another one.


BACKLOG_MIN: Final = 1024
_TICK_S: Final = 5.0
_LEAVE_S: Final = 1.0
"""How long the connections of an acceptor last that is closed while the broker runs."""


@final
class HttpPorts:
    """Serves ``routes``, which must be set before, on each acceptor that is given to ``serve``.

    ``stored`` counts the files that storage has open. ``is_busy`` says whether the broker has no time for transfers to
    its own machine. Without ``security`` nobody logs in.
    """

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        stats: ServerStats,
        holdings: Holdings,
        limited_log: RateLimitedLog,
        descriptors: Descriptors,
        security: Security | None,
        stored: Callable[[], int] = lambda: 0,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.routes: Sequence[Route] = ()
        self.services: list[HttpService] = []
        """By the name of the acceptor."""
        self._config = config
        self._loop = loop
        self._stats = stats
        self._holdings = holdings
        self._limited_log = limited_log
        self._descriptors = descriptors
        self._security = security
        self._stored = stored
        self._is_busy = is_busy
        self._disconnects = DisconnectWatch(loop)
        self._listeners: list[tuple[AcceptorConfig, Listener]] = []
        self._by_name: dict[str, HttpService] = {}
        self._is_closed = False

    def serve(self, acceptor: AcceptorConfig, bound: socket.socket, tls: TlsAcceptors) -> None:
        """Accept the clients of one acceptor."""
        http = HttpService(
            self.routes,
            now_ms=steady_clock_ms,
            call_soon=self._loop.call_soon,
            call_threadsafe=self._loop.call_soon_threadsafe,
            limits=HttpLimits(
                message_bytes_max=acceptor.int_param("maxBodyBytes"),
                file_bytes_per_second_max=acceptor.int_param("maxLogBytesPerSecond"),
                near_bytes_per_second_max=acceptor.int_param("busyLogBytesPerSecond"),
            ),
            hosts=Hosts(
                acceptor.list_param("allowedHosts"),
                acceptor.host,
                scheme="https" if acceptor.bool_param("sslEnabled") else "http",
            ),
            authentication=self._authentication(acceptor),
            is_busy=self._is_busy,
            faults=self._stats.faults,
            holdings=self._holdings,
            disconnects=self._disconnects,
            name=acceptor.name,
            is_short=lambda: not is_free_below(self._descriptors.http_max, self._stored),
        )
        self.services.append(http)
        self._by_name[acceptor.name] = http
        protocols = tls.around(acceptor, http.connect)
        most = self._descriptors.http_max
        make_room = partial(self._make_room, tls)
        listener = Listener(
            self._loop, acceptor.name, bound, protocols, most, self._limited_log, self._stored, make_room
        )
        self._listeners.append((acceptor, listener))
        self._stats.listeners.append(listener)
        listener.open(max(acceptor.int_param("backlog"), BACKLOG_MIN))

    def _make_room(self, tls: TlsAcceptors, descriptor: int) -> bool:
        """Descriptors are short: end who needs one least, of those who are most, for a client that was accepted with
        this number.
        """
        limits = [service.connection_limit for service in self.services]
        idlest = max(limits, key=lambda limit: limit.waiting_count)
        if tls.handshakes_under_way > idlest.waiting_count:
            return tls.end_oldest_handshake()
        if idlest.end_least_needed() or descriptor - self._stored() < self._descriptors.spare_max:
            return True
        return any(limit.end_oldest_spare() for limit in limits)

    def leave(self, name: str) -> socket.socket | None:
        """Accept no more clients of an acceptor, and end its connections soon: one of them may wait for the answer to
        what asked for this. Returns the socket, which stays open; None: there is no such acceptor.
        """
        found = next((each for each in self._listeners if each[0].name == name), None)
        if found is None:
            return None
        self._listeners.remove(found)
        self._stats.listeners.remove(found[1])
        service = self._by_name.pop(name)
        self._loop.call_later(_LEAVE_S, self._stop, service)
        return found[1].give_up()

    def _stop(self, service: HttpService) -> None:
        service.stop()
        self.services.remove(service)

    def _authentication(self, acceptor: AcceptorConfig) -> Authentication | None:
        security = self._security
        if security is None:
            return None
        return Authentication.of(acceptor, self._config.management_rbac_prefix, security)

    def connection_counts(self) -> dict[str, int]:
        """How many clients each acceptor serves, by its name."""
        return {name: service.connections_open for name, service in self._by_name.items()}

    def recheck_rights(self, users: Container[str] = ()) -> None:
        """Rights have changed, or what is known of these users: see ``HttpService.recheck_rights``."""
        for service in self.services:
            service.recheck_rights(users)

    def tick(self) -> None:
        """Look after idle and slow connections from now on."""
        if not self._is_closed:
            self._loop.call_later(_TICK_S, self.tick)
        for service in self.services:
            service.tick(steady_clock_ms())

    def rest(self) -> None:
        """Look after connections no longer; they go on."""
        self._is_closed = True

    def close(self) -> None:
        """End the connections and accept no more."""
        self._stop_all()
        self.abandon()

    def _stop_all(self) -> None:
        self.rest()
        for service in self.services:
            service.stop()
        self._disconnects.close()

    def abandon(self) -> None:
        """Accept nobody from now on, without a word to those that are connected."""
        self.rest()
        for _, listener in self._listeners:
            listener.close()

    def give_up(self) -> list[tuple[AcceptorConfig, socket.socket]]:
        """End the connections; the sockets stay open: clients wait in them."""
        self._stop_all()
        return [(acceptor, listener.give_up()) for acceptor, listener in self._listeners]
