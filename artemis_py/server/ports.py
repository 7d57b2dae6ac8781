"""The open ports of a broker: binds sockets, and gives each client the protocol of its acceptor."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.errors import ArtemisError
from artemis_py.log_codes import LISTENING
from artemis_py.server.connection import StompAcceptor
from artemis_py.server.descriptors import Descriptors, lowest_free
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.http.ports import BACKLOG_MIN, HttpPorts
from artemis_py.server.listener import Listener
from artemis_py.server.logins.networks import ConnectionsBeforeLogin
from artemis_py.server.proxy_protocol import headers_of
from artemis_py.server.security import Security
from artemis_py.server.tls.acceptors import TlsAcceptors
from artemis_py.server.turns import Turns
from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.stomp.management_requests import RequestReceiver
from artemis_py.stomp.service import StompService
from artemis_py.stomp.temporaries import Temporaries

_BEFORE_LOGIN_MAX: Final = 256
"""How many connections of one address may be without a login where clients must log in."""
_KEEP_ALIVE_IDLE_S: Final = 60
_KEEP_ALIVE_INTERVAL_S: Final = 15
_KEEP_ALIVE_PROBES: Final = 4
"""After a minute of silence the system probes four times, 15 seconds apart."""

_ANYWHERE: Final = frozenset({"0.0.0.0", "::"})
"""Hosts that stand for all addresses of the machine; a browser on it needs a name."""

Bound = tuple[AcceptorConfig, str, int]
"""An open acceptor, with the host and the port that it listens on."""
Held = tuple[AcceptorConfig, socket.socket]
"""An acceptor and its socket."""


class ListenError(ArtemisError):
    """A port cannot be opened."""


@final
@dataclass(frozen=True, slots=True)
class Exchange:
    """Acceptors to close, and those to open: each with its socket, or with the name of the closed one whose socket it
    takes over.
    """

    closing: tuple[AcceptorConfig, ...] = ()
    opening: tuple[tuple[AcceptorConfig, socket.socket | str], ...] = ()

    def give_up(self) -> None:
        """The reload is aborted: close the sockets that it has opened."""
        for _, bound in self.opening:
            if not isinstance(bound, str):
                bound.close()


@final
class Ports:
    """Opens the acceptors of a configuration, and closes them. ``http`` must know its routes before.

    ``stored`` counts the files that storage has open. ``is_busy`` says whether the broker has no time for transfers to
    its own machine. Without ``security`` nobody logs in. ``held`` are sockets that are bound already.
    """

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        turns: Turns,
        limited_log: RateLimitedLog,
        descriptors: Descriptors,
        stored: Callable[[], int],
        security: Security | None,
        is_busy: Callable[[], bool],
        held: Sequence[Held] = (),
    ) -> None:
        self.bound: list[Bound] = []
        """The open acceptors."""
        self.http = HttpPorts(
            config, loop, turns.stats, turns.broker.holdings, limited_log, descriptors, security, stored, is_busy
        )
        self.receiver: RequestReceiver | None = None
        """Answers management messages; to be set before clients come."""
        self.temporaries = Temporaries(partial(secrets.token_hex, 16))
        self._acceptors = config.acceptors
        self._loop = loop
        self._turns = turns
        self._limited_log = limited_log
        self._descriptors = descriptors
        self._stored = stored
        self._security = security
        self._held = held
        self.stomp_services: list[StompService] = []
        self._stomp_acceptors: dict[str, StompAcceptor] = {}
        """By the name of the acceptor."""
        self._stomp_listeners: dict[str, Listener] = {}
        self._services: dict[str, StompService] = {}
        self._tls = TlsAcceptors(config, loop, limited_log, turns.broker.holdings)
        turns.stats.tls_opened = self._tls.opened

    def serves(self, protocol: str) -> bool:
        """Is an acceptor open that speaks this protocol?"""
        return any(protocol in acceptor.protocols for acceptor, _, _ in self.bound)

    def warnings(self) -> list[str]:
        """What an operator must fix, although the broker is ready."""
        return self._tls.warnings()

    def connection_counts(self) -> dict[str, int]:
        """How many clients each open acceptor serves, by its name."""
        counts = {name: stomp_acceptor.open_count for name, stomp_acceptor in self._stomp_acceptors.items()}
        return {**counts, **self.http.connection_counts()}

    def room_for_clients(self) -> int:
        """For how many more STOMP clients the open files of this process are enough."""
        try:
            used = lowest_free() - self._stored()
        except OSError:  # there is none at all
            return 0
        return max(self._descriptors.stomp_max - used, 0)

    # ---- open ------------------------------------------------------------------------------------

    def bind(self) -> list[Held]:
        """A socket for every acceptor that may be opened. Raises ListenError for a port and StoreError for a key; then
        none is bound.
        """
        sockets: list[Held] = []
        try:
            for acceptor in self._acceptors:
                if acceptor.is_opened:
                    self._tls.load(acceptor)
                    held = next((bound for owner, bound in self._held if owner is acceptor), None)
                    sockets.append((acceptor, held or bind(acceptor)))
        except ArtemisError:
            for _, bound in (*self._held, *sockets):
                bound.close()
            raise
        return sockets

    def open(self, sockets: list[Held]) -> None:
        """Accept clients."""
        for acceptor, bound in sockets:
            self._serve(acceptor, bound)
        self.http.tick()
        self._tls.watch()

    def _serve(self, acceptor: AcceptorConfig, bound: socket.socket) -> None:
        if "STOMP" in acceptor.protocols:
            self._serve_stomp(acceptor, bound)
        else:
            self.http.serve(acceptor, bound, self._tls)
        self.bound.append((acceptor, *place_of(bound)))

    def _serve_stomp(self, acceptor: AcceptorConfig, bound: socket.socket) -> None:
        security, turns = self._security, self._turns
        service = StompService(
            turns.broker,
            acceptor,
            turns.stats.traffic,
            self.temporaries,
            turns.large,
            logins=None if security is None else security.logins,
            authorizer=None if security is None else security.authorizer,
            wake=turns.schedule,
            replays=None if turns.replays is None else turns.replays.manager,
        )
        service.receiver = self.receiver
        self.stomp_services.append(service)
        before_login_max = _BEFORE_LOGIN_MAX if security is not None else -1
        stomp_acceptor = StompAcceptor(
            turns,
            service,
            acceptor.int_param("connectionsAllowed"),
            acceptor.int_param("handshakeTimeout"),
            ConnectionsBeforeLogin(acceptor.int_param("maxConnectionsBeforeLogin", before_login_max)),
            WebSocketRules.of(acceptor),
        )
        self._stomp_acceptors[acceptor.name] = stomp_acceptor
        protocols = self._tls.around(acceptor, stomp_acceptor.connect)
        most = self._descriptors.stomp_max
        proxies = headers_of(acceptor)
        listener = Listener(
            self._loop, acceptor.name, bound, protocols, most, self._limited_log, self._stored, proxies=proxies
        )
        self._stomp_listeners[acceptor.name] = listener
        self._services[acceptor.name] = service
        turns.stats.listeners.append(listener)
        listener.open(max(acceptor.int_param("backlog"), BACKLOG_MIN))

    # ---- exchange --------------------------------------------------------------------------------

    def prepare(self, wanted: Sequence[AcceptorConfig]) -> Exchange:
        """What must be closed and opened so that these acceptors are open. Reads keys and binds sockets, so it is for a
        thread. Raises ArtemisError, and nothing has changed then.
        """
        opened = {acceptor.name: acceptor for acceptor, _, _ in self.bound}
        after = {acceptor.name: acceptor for acceptor in wanted if acceptor.is_opened}
        closing = [each for name, each in opened.items() if name not in after or not _is_same(each, after[name])]
        names = {each.name for each in closing}
        opening: list[tuple[AcceptorConfig, socket.socket | str]] = []
        try:
            for name, acceptor in after.items():
                if name in opened and name not in names:
                    continue
                self._tls.load(acceptor)
                heir = next((each.name for each in closing if _takes_over(each, acceptor)), None)
                opening.append((acceptor, bind(acceptor) if heir is None else heir))
        except ArtemisError:
            Exchange(tuple(closing), tuple(opening)).give_up()
            raise
        return Exchange(tuple(closing), tuple(opening))

    def exchange(self, prepared: Exchange) -> tuple[list[StompService], list[str]]:
        """Close and open acceptors. Returns the STOMP of those that are closed, whose connections are to end, and what
        could not be done.
        """
        sockets: dict[str, socket.socket] = {}
        ended: list[StompService] = []
        failures: list[str] = []
        for acceptor in prepared.closing:
            bound = self._leave(acceptor, ended)
            if bound is not None:
                sockets[acceptor.name] = bound
        for acceptor, bound_or_name in prepared.opening:
            inherited = sockets.pop(bound_or_name, None) if isinstance(bound_or_name, str) else bound_or_name
            try:
                self._serve(acceptor, inherited or bind(acceptor))
                self._limited_log.write(shown_port(self.bound[-1]), code=LISTENING, acceptor=acceptor.name)
            except ArtemisError as error:
                failures.append(str(error))
        for left in sockets.values():
            left.close()
        self._tls.watch()
        return ended, failures

    def _leave(self, acceptor: AcceptorConfig, ended: list[StompService]) -> socket.socket | None:
        self.bound = [each for each in self.bound if each[0].name != acceptor.name]
        self._tls.drop(acceptor)
        listener = self._stomp_listeners.pop(acceptor.name, None)
        if listener is None:
            return self.http.leave(acceptor.name)
        self._turns.stats.listeners.remove(listener)
        service = self._services.pop(acceptor.name)
        del self._stomp_acceptors[acceptor.name]
        self.stomp_services.remove(service)
        ended.append(service)
        return listener.give_up()

    # ---- close -----------------------------------------------------------------------------------

    def stop_accepting(self) -> None:
        """Accept no more STOMP clients; those who are here go on."""
        for listener in self._stomp_listeners.values():
            listener.close()

    def close_to_stomp(self) -> None:
        """Accept no more clients, and look after HTTP no longer."""
        self.http.rest()
        self.stop_accepting()
        self._tls.stop()

    def close_to_http(self) -> None:
        """End the HTTP connections and accept no more."""
        self.http.close()

    def abandon(self) -> None:
        """Accept nobody from now on; connections get no ERROR."""
        self.close_to_stomp()
        self.http.abandon()


def shown_port(bound: Bound) -> str:
    """Where an acceptor listens and for what, for people. The line of the log names it in a field."""
    acceptor, host, port = bound
    shown = f"[{host}]" if ":" in host else host
    tls = " over TLS" if acceptor.is_tls else ""
    return f"listening on {shown}:{port} for {', '.join(acceptor.protocols)}{tls}"


def console_url(bound: Bound) -> str:
    """What a browser on this machine opens to see the console of an acceptor for HTTP."""
    acceptor, host, port = bound
    shown = "localhost" if host in _ANYWHERE else f"[{host}]" if ":" in host else host
    return f"{'https' if acceptor.is_tls else 'http'}://{shown}:{port}/ui/"


def _is_same(one: AcceptorConfig, other: AcceptorConfig) -> bool:
    """Do two acceptors differ in nothing but their place in the file?"""
    return replace(one, origin=other.origin) == other


def _takes_over(one: AcceptorConfig, other: AcceptorConfig) -> bool:
    """May an acceptor go on with the socket of one that is closed? Clients then notice no gap."""
    keeps = one.bool_param("tcpKeepAlive") == other.bool_param("tcpKeepAlive")
    return (one.host, one.port) == (other.host, other.port) and one.port != 0 and keeps


def place_of(bound: socket.socket) -> tuple[str, int]:
    """The host and the port of a socket."""
    host, port = bound.getsockname()[:2]
    return str(host), int(port)


def bind(acceptor: AcceptorConfig) -> socket.socket:
    """A bound socket. Raises ListenError with the acceptor and its line."""
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
