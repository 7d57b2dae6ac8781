"""The open HTTP ports of a process: while its broker works, and while it waits for another one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Final, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.config.tables.acceptor import CONSOLE_BROKERS
from artemis_py.core.memory import Holdings
from artemis_py.server.descriptors import Descriptors, is_free_below
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.http.acceptor import HttpAcceptor
from artemis_py.server.http.authentication import Authentication
from artemis_py.server.http.console import console_routes
from artemis_py.server.http.disconnects import DisconnectWatch
from artemis_py.server.http.origins import Cors, Hosts
from artemis_py.server.http.requests import HttpLimits
from artemis_py.server.http.routing import Route
from artemis_py.server.listener import Listener
from artemis_py.server.proxy_protocol import Proxied, headers_of
from artemis_py.server.security import Security
from artemis_py.server.stats import ServerStats
from artemis_py.server.tls.acceptors import TlsAcceptors
from artemis_py.server.wall_clock import steady_clock_ms

BACKLOG_MIN: Final = 1024
_TICK_S: Final = 5.0
_LEAVE_S: Final = 1.0
"""How long the connections of an acceptor last that is closed while the broker runs."""


def connect(acceptor: HttpAcceptor, proxied: Proxied | None = None) -> asyncio.Protocol:
    """Return the protocol of a new socket. The first call imports h11, so that the broker's start does not wait for
    it.
    """
    from artemis_py.server.http.connection import HttpConnection

    return HttpConnection(acceptor, proxied)


@final
class HttpPorts:
    """Serves ``routes``, which must be set before, and the console on each acceptor that is given to ``serve``.

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
        self.acceptors: list[HttpAcceptor] = []
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
        self._by_name: dict[str, HttpAcceptor] = {}
        self._is_closed = False

    def serve(self, acceptor: AcceptorConfig, bound: socket.socket, tls: TlsAcceptors) -> None:
        """Accept the clients of one acceptor."""
        cors = Cors(acceptor.list_param("allowedOrigins"))
        http = HttpAcceptor(
            [*self.routes, *console_routes(self._config.name, acceptor.list_param(CONSOLE_BROKERS))],
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
                cors=cors,
            ),
            cors=cors,
            authentication=self._authentication(acceptor),
            is_busy=self._is_busy,
            faults=self._stats.faults,
            holdings=self._holdings,
            disconnects=self._disconnects,
            name=acceptor.name,
            is_short=lambda: not is_free_below(self._descriptors.http_max, self._stored),
        )
        self.acceptors.append(http)
        self._by_name[acceptor.name] = http
        protocols = tls.around(acceptor, partial(connect, http))
        most = self._descriptors.http_max
        make_room = partial(self._make_room, tls)
        proxies = headers_of(acceptor)
        listener = Listener(
            self._loop, acceptor.name, bound, protocols, most, self._limited_log, self._stored, make_room, proxies
        )
        self._listeners.append((acceptor, listener))
        self._stats.listeners.append(listener)
        listener.open(max(acceptor.int_param("backlog"), BACKLOG_MIN))

    def _make_room(self, tls: TlsAcceptors, descriptor: int) -> bool:
        """Descriptors are short: end who needs one least, of those who are most, for a client that was accepted with
        this number.
        """
        limits = [http.connection_limit for http in self.acceptors]
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
        http = self._by_name.pop(name)
        self._loop.call_later(_LEAVE_S, self._stop, http)
        return found[1].give_up()

    def _stop(self, http: HttpAcceptor) -> None:
        http.stop()
        self.acceptors.remove(http)

    def _authentication(self, acceptor: AcceptorConfig) -> Authentication | None:
        security = self._security
        if security is None:
            return None
        return Authentication.of(acceptor, self._config.management_rbac_prefix, security)

    def connection_counts(self) -> dict[str, int]:
        """How many clients each acceptor serves, by its name."""
        return {name: http.connections_open for name, http in self._by_name.items()}

    def recheck_rights(self, users: Container[str] = ()) -> None:
        """Rights have changed, or what is known of these users: see ``HttpAcceptor.recheck_rights``."""
        for http in self.acceptors:
            http.recheck_rights(users)

    def tick(self) -> None:
        """Look after idle and slow connections from now on."""
        if not self._is_closed:
            self._loop.call_later(_TICK_S, self.tick)
        for http in self.acceptors:
            http.tick(steady_clock_ms())

    def rest(self) -> None:
        """Look after connections no longer; they go on."""
        self._is_closed = True

    def close(self) -> None:
        """End the connections and accept no more."""
        self._stop_all()
        self.abandon()

    def _stop_all(self) -> None:
        self.rest()
        for http in self.acceptors:
            http.stop()
        self._disconnects.close()

    def abandon(self) -> None:
        """Accept nobody from now on, and send nothing to those that are connected."""
        self.rest()
        for _, listener in self._listeners:
            listener.close()

    def give_up(self) -> list[tuple[AcceptorConfig, socket.socket]]:
        """End the connections; the sockets stay open: clients wait in them."""
        self._stop_all()
        return [(acceptor, listener.give_up()) for acceptor, listener in self._listeners]
