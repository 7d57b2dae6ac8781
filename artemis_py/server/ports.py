"""The open ports of a broker: binds sockets, and gives each client the protocol of its acceptor."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.errors import ArtemisError
from artemis_py.server.clocks import steady_clock_ms
from artemis_py.server.complaints import Complaints
from artemis_py.server.connection import Acceptance
from artemis_py.server.descriptors import Descriptors
from artemis_py.server.encryption import Encryption
from artemis_py.server.gate import SecurityGate
from artemis_py.server.http import HttpLimits, HttpService
from artemis_py.server.http.doors import Doors
from artemis_py.server.http.hosts import Hosts
from artemis_py.server.http.routing import Route
from artemis_py.server.listener import Listener
from artemis_py.server.logins.networks import Newcomers
from artemis_py.server.turns import Turns
from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.stomp.service import StompService
from artemis_py.stomp.temporaries import Temporaries

_BACKLOG_MIN: Final = 1024
_NEWCOMERS_MAX: Final = 256
"""How many connections of one address may be without a login where clients must log in."""
_HTTP_TICK_S: Final = 5.0
_KEEP_ALIVE_IDLE_S: Final = 60
_KEEP_ALIVE_INTERVAL_S: Final = 15
_KEEP_ALIVE_PROBES: Final = 4
"""After a minute of silence the system probes four times, 15 seconds apart."""


class ListenError(ArtemisError):
    """A port cannot be opened."""


@final
class Ports:
    """Opens the acceptors of a configuration, and closes them. ``routes`` must be set before: what HTTP serves.

    ``stored`` counts the files that storage has open. ``is_busy`` says whether the broker has no time for transfers to
    its own machine. Without a ``gate`` nobody logs in.
    """

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        turns: Turns,
        complaints: Complaints,
        descriptors: Descriptors,
        stored: Callable[[], int],
        gate: SecurityGate | None,
        is_busy: Callable[[], bool],
    ) -> None:
        self.bound: list[tuple[AcceptorConfig, str, int]] = []
        """Open acceptors with the host and the port that they listen on."""
        self.routes: Sequence[Route] = ()
        self.http_services: list[HttpService] = []
        self.temporaries = Temporaries(partial(secrets.token_hex, 16))
        self._config = config
        self._loop = loop
        self._turns = turns
        self._complaints = complaints
        self._descriptors = descriptors
        self._stored = stored
        self._gate = gate
        self._is_busy = is_busy
        self._stomp_listeners: list[Listener] = []
        self._http_listeners: list[Listener] = []
        self._encryption = Encryption(config, loop, complaints, turns.broker.holdings, turns.stats)
        self._is_closed = False

    def serves(self, protocol: str) -> bool:
        """Is an acceptor open that speaks this protocol?"""
        return any(protocol in acceptor.protocols for acceptor, _, _ in self.bound)

    def warnings(self) -> list[str]:
        """What an operator must see to, although the broker is ready."""
        return self._encryption.warnings()

    # ---- open ------------------------------------------------------------------------------------

    def bind(self) -> list[tuple[AcceptorConfig, socket.socket]]:
        """A socket for every acceptor that may be opened. Raises ListenError for a port and StoreError for a key; then
        none is bound.
        """
        sockets: list[tuple[AcceptorConfig, socket.socket]] = []
        try:
            for acceptor in self._config.acceptors:
                if acceptor.is_opened:
                    self._encryption.load(acceptor)
                    sockets.append((acceptor, _bind(acceptor)))
        except ArtemisError:
            for _, bound in sockets:
                bound.close()
            raise
        return sockets

    def open(self, sockets: list[tuple[AcceptorConfig, socket.socket]]) -> None:
        """Accept clients."""
        for acceptor, bound in sockets:
            self._serve(acceptor, bound)
        self._tick_http()
        self._encryption.watch()

    def _serve(self, acceptor: AcceptorConfig, bound: socket.socket) -> None:
        if "STOMP" in acceptor.protocols:
            self._serve_stomp(acceptor, bound)
        else:
            self._serve_http(acceptor, bound)
        host, port = bound.getsockname()[:2]
        self.bound.append((acceptor, host, port))

    def _serve_stomp(self, acceptor: AcceptorConfig, bound: socket.socket) -> None:
        gate, turns = self._gate, self._turns
        service = StompService(
            turns.broker,
            acceptor,
            turns.stats.traffic,
            self.temporaries,
            turns.large,
            logins=None if gate is None else gate.desk,
            authorizer=None if gate is None else gate.authorizer,
            wake=turns.schedule,
        )
        newcomers_max = _NEWCOMERS_MAX if gate is not None else -1
        acceptance = Acceptance(
            turns,
            service,
            acceptor.int_param("connectionsAllowed"),
            acceptor.int_param("handshakeTimeout"),
            Newcomers(acceptor.int_param("maxConnectionsBeforeLogin", newcomers_max)),
            WebSocketRules.of(acceptor),
        )
        self._listen(self._stomp_listeners, acceptor, bound, acceptance.connect, self._descriptors.stomp_max)

    def _serve_http(self, acceptor: AcceptorConfig, bound: socket.socket) -> None:
        http = HttpService(
            self.routes,
            now_ms=steady_clock_ms,
            call_soon=self._loop.call_soon,
            call_threadsafe=self._loop.call_soon_threadsafe,
            limits=HttpLimits(
                file_bytes_per_second_max=acceptor.int_param("maxLogBytesPerSecond"),
                near_bytes_per_second_max=acceptor.int_param("busyLogBytesPerSecond"),
            ),
            hosts=Hosts(
                acceptor.list_param("allowedHosts"),
                acceptor.host,
                scheme="https" if acceptor.bool_param("sslEnabled") else "http",
            ),
            doors=self._doors(acceptor),
            is_busy=self._is_busy,
            faults=self._turns.stats.faults,
            holdings=self._turns.broker.holdings,
        )
        self.http_services.append(http)
        self._listen(self._http_listeners, acceptor, bound, http.connect, self._descriptors.http_max)

    def _doors(self, acceptor: AcceptorConfig) -> Doors | None:
        gate = self._gate
        if gate is None:
            return None
        return Doors.of(acceptor, self._config.management_rbac_prefix, gate.desk, gate.authorizer)

    def _listen(
        self,
        listeners: list[Listener],
        acceptor: AcceptorConfig,
        bound: socket.socket,
        connect: Callable[[], asyncio.BaseProtocol],
        descriptor_max: int,
    ) -> None:
        stored = self._stored
        protocols = self._encryption.around(acceptor, connect)
        listener = Listener(self._loop, acceptor.name, bound, protocols, descriptor_max, self._complaints, stored)
        listeners.append(listener)
        self._turns.stats.listeners.append(listener)
        listener.open(max(acceptor.int_param("backlog"), _BACKLOG_MIN))

    def _tick_http(self) -> None:
        if not self._is_closed:
            self._loop.call_later(_HTTP_TICK_S, self._tick_http)
        for service in self.http_services:
            service.tick(steady_clock_ms())

    # ---- close -----------------------------------------------------------------------------------

    def close_to_stomp(self) -> None:
        """Accept no more clients, and look after HTTP no longer."""
        self._is_closed = True
        for listener in self._stomp_listeners:
            listener.close()
        self._encryption.stop()

    def close_to_http(self) -> None:
        """End the HTTP connections and accept no more."""
        for service in self.http_services:
            service.stop()
        for listener in self._http_listeners:
            listener.close()

    def abandon(self) -> None:
        """Accept nobody from now on; no connection is told."""
        self.close_to_stomp()
        for listener in self._http_listeners:
            listener.close()


def _bind(acceptor: AcceptorConfig) -> socket.socket:
    """A listening socket. Raises ListenError with the acceptor and its line."""
    try:
        found = socket.getaddrinfo(
            acceptor.host or None, acceptor.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if acceptor.bool_param("tcpKeepAlive"):
                _keep_alive(bound)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        wanted = f"{acceptor.origin}: acceptor {acceptor.name} cannot listen on {acceptor.host}:{acceptor.port}"
        raise ListenError(f"{wanted}: {error.strerror or error}") from None
    return bound


def _keep_alive(listening: socket.socket) -> None:
    """Accepted sockets inherit this: a client whose machine is gone is detected without heart-beats."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_IDLE_S)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEP_ALIVE_INTERVAL_S)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEP_ALIVE_PROBES)
