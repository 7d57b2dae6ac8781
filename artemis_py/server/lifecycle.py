"""Starts and stops the broker: configuration, sockets, signals, and an orderly end."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from artemis_py.config.codes import kind_of, told
from artemis_py.config.problems import WARNING, Problems
from artemis_py.config.reader import load
from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.errors import ArtemisError, ConfigError
from artemis_py.metrics import MetricsExporter
from artemis_py.security.authenticator import Authenticator
from artemis_py.security.realms import open_realms
from artemis_py.security.rights import Authorizer
from artemis_py.security.users.first_user import PASSWORD_VARIABLE, FirstUser, make_first_user
from artemis_py.server.clocks import Clocks, steady_clock_ms, wall_clock_ms
from artemis_py.server.collector import Collector
from artemis_py.server.complaints import Complaints
from artemis_py.server.connection import Acceptance
from artemis_py.server.descriptors import raise_limit
from artemis_py.server.disk_watch import DiskWatch
from artemis_py.server.encryption import Encryption
from artemis_py.server.faults import Faults, TurnError
from artemis_py.server.http import HttpLimits, HttpService, Response
from artemis_py.server.http.cursor_routes import cursor_routes
from artemis_py.server.http.doors import Doors
from artemis_py.server.http.hosts import Hosts
from artemis_py.server.http.log_routes import log_routes
from artemis_py.server.http.memory_routes import memory_routes
from artemis_py.server.http.routes import health_routes, metrics_routes
from artemis_py.server.listener import Listener
from artemis_py.server.load import Load
from artemis_py.server.logins.desk import Desk
from artemis_py.server.logins.networks import Newcomers
from artemis_py.server.malloc import keep_freed_memory
from artemis_py.server.memory import destinations_max, global_max_bytes, held_max_bytes
from artemis_py.server.open_store import open_store
from artemis_py.server.operational import OperationalLog, write_to_stderr
from artemis_py.server.repair import accept_losses
from artemis_py.server.stats import TURN_BUCKET_BOUNDS_S, ServerStats
from artemis_py.server.turns import Turns
from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.shown import say, warn
from artemis_py.stomp.service import StompService
from artemis_py.stomp.temporaries import Temporaries
from artemis_py.storage.disk.disk import DiskError, LockedError, NoSpaceError
from artemis_py.storage.format.codec import CodecError
from artemis_py.storage.recovery.findings import loss_lines
from artemis_py.storage.recovery.recovery import LossError

EXIT_LOSS: Final = 4
"""The journal lacks files, queues or many records, and the broker was not told to start without them."""
_BACKLOG_MIN: Final = 1024
_NEWCOMERS_MAX: Final = 256
"""How many connections of one address may be without a login where clients must log in."""
_HTTP_TICK_S: Final = 5.0
_CLOCK_LOOK_S: Final = 5.0
_LOOK_AT_BLOCKED_S: Final = 1.0
_DRAIN_S: Final = 5.0
_LOOK_AFTER_S: Final = 0.5
"""How often the broker checks that its directories still exist."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""Each asks for an orderly stop."""
_KEEP_ALIVE_IDLE_S: Final = 60
_KEEP_ALIVE_INTERVAL_S: Final = 15
_KEEP_ALIVE_PROBES: Final = 4
"""After a minute of silence the system probes four times, 15 seconds apart."""
_PREPARE_METRICS_S: Final = 1.0
"""How long after the start a thread imports the metrics library: after the first clients, before a scrape."""


class ListenError(ArtemisError):
    """A port cannot be opened."""


class Server:
    """One broker with its sockets on one event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        stopping: asyncio.Event,
        authenticator: Authenticator | None = None,
    ) -> None:
        self.config = config
        self._loop = loop
        self.complaints = Complaints()
        self.stats = ServerStats(Faults(self.complaints))
        loop.set_exception_handler(self.stats.faults.caught_by_loop)
        self.failure: ArtemisError | None = None
        self._descriptors = self.stats.descriptors = raise_limit()
        self._look_is_due = False
        self.store = store = open_store(config, self._wake, self._look_soon, self._descriptors.open_files_max)
        self.stats.rooms = store.rooms
        self.stats.large = store.large
        self.stats.journal = store.durability
        self.stats.cursor_desk = store.cursor_desk
        memory_bytes = global_max_bytes(config.global_max_size)
        self.broker = Broker(config, store.log, wall_clock_ms(), store.recovered_state(), store.pages, memory_bytes)
        self.broker.holdings.bytes_max = held_max_bytes(config.global_max_held_size, memory_bytes)
        self.broker.quota.addresses_max = destinations_max(config.max_addresses)
        self.broker.quota.queues_max = destinations_max(config.max_queues)
        self._clocks = Clocks(self.broker.clock)
        self.stats.clock_steps = self._clocks.steps
        self.turns = Turns(loop, self.broker, store.durability, self.stats, self._clocks.date_ms, store.large)
        self.turns.on_failure = self._fail
        self.turns.tell = OperationalLog().tell
        self.desk = None if authenticator is None else self._desk(authenticator)
        keeps = config.persistence_enabled
        say = self.complaints.tell
        self._disk_watch = DiskWatch(config, self.broker, self.turns.schedule, store, say=say)
        self.authorizer = Authorizer(config, say) if config.security_enabled else None
        if self.authorizer is not None:
            self.stats.permission_checks = self.authorizer.checks
        self._stopping = stopping
        self._temporaries = Temporaries(partial(secrets.token_hex, 16))
        self.bound: list[tuple[AcceptorConfig, str, int]] = []
        self._stomp_listeners: list[Listener] = []
        self._http_listeners: list[Listener] = []
        self._is_stopping = False
        self._encryption = Encryption(config, loop, self.complaints, self.broker.holdings, self.stats)
        self._exporter = MetricsExporter(
            self.broker,
            self.stats,
            turn_bounds_s=TURN_BUCKET_BOUNDS_S,
            global_max_size_bytes=memory_bytes,
            store_directory=Path(config.journal_directory) if keeps else None,
        )
        self._routes = metrics_routes(self._exporter) + health_routes(
            self._not_ready_because, self._encryption.warnings
        )
        self._routes += memory_routes(self.turns.guard)
        self._routes += log_routes(store.log_view, config.name, wall_clock_ms, partial(loop.run_in_executor, None))
        if store.cursor_desk is not None:
            self._routes += cursor_routes(store.cursor_desk, self._durably)
        self._http_services: list[HttpService] = []
        self._load = Load(self.stats)
        store.give_way(self._load.is_busy)

    def _desk(self, authenticator: Authenticator) -> Desk:
        return Desk(
            authenticator,
            self.config,
            self._loop,
            steady_ms=steady_clock_ms,
            date_ms=wall_clock_ms,
            complain=self.complaints.tell,
            counts=self.stats.logins,
        )

    def _wake(self) -> None:
        """Called by the disk's threads when something is done, even while the broker is still being created, and at its
        very end.
        """
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._schedule)

    def _schedule(self) -> None:
        self.turns.schedule()

    def _look_soon(self) -> None:
        """Called by the disk's threads: files have grown or did not fit."""
        if not self._look_is_due:
            self._look_is_due = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._look_now)

    def _look_now(self) -> None:
        self._look_is_due = False
        if not self._is_stopping:
            self._disk_watch.look()

    def _durably(self, lsn: int, make: Callable[[], Response]) -> asyncio.Future[Response]:
        """A response that is sent when everything up to the lsn survives a crash."""
        future: asyncio.Future[Response] = self._loop.create_future()

        def answer() -> None:
            if future.done():  # the client may have left
                return
            try:
                future.set_result(make())
            except Exception as error:
                future.set_exception(error)

        self.turns.when_durable(lsn, answer)
        return future

    def _fail(self, failure: ArtemisError) -> None:
        """Storage or a turn failed: nothing is confirmed any more, and the process ends."""
        self.failure = failure
        self._stopping.set()

    def _not_ready_because(self) -> str | None:
        if self._is_stopping:
            return "the broker is stopping"
        return None if self._stomp_listeners else "no port is open for STOMP"

    # ---- start -----------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Open every acceptor that may be opened. Raises ListenError for a port and StoreError for a key; then none is
        open.
        """
        sockets: list[tuple[AcceptorConfig, socket.socket]] = []
        try:
            for acceptor in self.config.acceptors:
                if acceptor.is_opened:
                    self._encryption.load(acceptor)
                    sockets.append((acceptor, _bind(acceptor)))
        except ArtemisError:
            for _, bound in sockets:
                bound.close()
            raise
        self._look_at_disk()  # before any client can send
        for acceptor, bound in sockets:
            self._serve(acceptor, bound)
        self.turns.schedule()
        self._tick_http()
        self._look_at_blocked()
        self._look_after_store()
        self._look_at_clock()
        self._encryption.watch()
        if self._serves("HTTP"):
            self._loop.call_later(_PREPARE_METRICS_S, self._loop.run_in_executor, None, self._exporter.prepare)
        if self.store.log_view is not None:
            self._loop.run_in_executor(None, self.store.log_view.indexing())

    def _serves(self, protocol: str) -> bool:
        return any(protocol in acceptor.protocols for acceptor, _, _ in self.bound)

    def _serve(self, acceptor: AcceptorConfig, bound: socket.socket) -> None:
        if "STOMP" in acceptor.protocols:
            service = StompService(
                self.broker,
                acceptor,
                self.stats.traffic,
                self._temporaries,
                self.turns.large,
                logins=self.desk,
                authorizer=self.authorizer,
                wake=self.turns.schedule,
            )
            newcomers_max = _NEWCOMERS_MAX if self.desk is not None else -1
            acceptance = Acceptance(
                self.turns,
                service,
                acceptor.int_param("connectionsAllowed"),
                acceptor.int_param("handshakeTimeout"),
                Newcomers(acceptor.int_param("maxConnectionsBeforeLogin", newcomers_max)),
                WebSocketRules.of(acceptor),
            )
            self._listen(self._stomp_listeners, acceptor, bound, acceptance.connect, self._descriptors.stomp_max)
        else:
            http = HttpService(
                self._routes,
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
                is_busy=self._load.is_busy,
                faults=self.stats.faults,
                holdings=self.broker.holdings,
            )
            self._http_services.append(http)
            self._listen(self._http_listeners, acceptor, bound, http.connect, self._descriptors.http_max)
        host, port = bound.getsockname()[:2]
        self.bound.append((acceptor, host, port))

    def _doors(self, acceptor: AcceptorConfig) -> Doors | None:
        if self.desk is None or self.authorizer is None:
            return None
        return Doors.of(acceptor, self.config.management_rbac_prefix, self.desk, self.authorizer)

    def _listen(
        self,
        listeners: list[Listener],
        acceptor: AcceptorConfig,
        bound: socket.socket,
        connect: Callable[[], asyncio.BaseProtocol],
        descriptor_max: int,
    ) -> None:
        stored = self.store.open_files
        protocols = self._encryption.around(acceptor, connect)
        listener = Listener(self._loop, acceptor.name, bound, protocols, descriptor_max, self.complaints, stored)
        listeners.append(listener)
        self.stats.listeners.append(listener)
        listener.open(max(acceptor.int_param("backlog"), _BACKLOG_MIN))

    def _tick_http(self) -> None:
        if not self._is_stopping:
            self._loop.call_later(_HTTP_TICK_S, self._tick_http)
        for service in self._http_services:
            service.tick(steady_clock_ms())

    def _look_at_clock(self) -> None:
        """An idle broker also notices that the wall clock was set."""
        if self._is_stopping:
            return
        self._loop.call_later(_CLOCK_LOOK_S, self._look_at_clock)
        if self._clocks.look():
            self.turns.schedule()

    def _look_at_blocked(self) -> None:
        if not self._is_stopping:
            self._loop.call_later(_LOOK_AT_BLOCKED_S, self._look_at_blocked)
            self.turns.input.look_at_blocked()

    def _look_at_disk(self) -> None:
        if self._is_stopping:
            return
        if self._disk_watch.period_ms >= 0:
            self._loop.call_later(self._disk_watch.period_ms / 1000, self._look_at_disk)
        self._disk_watch.look()

    def _look_after_store(self) -> None:
        if not self._is_stopping:
            self._loop.call_later(_LOOK_AFTER_S, self._look_after_store)
            self.store.look_after()

    # ---- stop ------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop accepting, send written output, close everything."""
        self._is_stopping = True
        for listener in self._stomp_listeners:
            listener.close()
        self._encryption.stop()
        self.turns.stop()
        deadline = self._loop.time() + _DRAIN_S
        while self.stats.connections and self._loop.time() < deadline:
            for connection in list(self.stats.connections):  # also those accepted just before
                connection.shut(self._clocks.date_ms())
            await asyncio.sleep(0.01)
        for connection in list(self.stats.connections):
            connection.cut()
        for service in self._http_services:
            service.stop()
        for listener in self._http_listeners:
            listener.close()
        try:
            self.broker.finish(self._clocks.date_ms())
        finally:
            self.turns.end()  # a thread or a socket may still request one
            self.store.close()
            if self.desk is not None:
                self.desk.stop()
            self.failure = self.failure or self.store.durability.failure

    def abandon(self) -> None:
        """End at once: no further frame is sent."""
        for listener in self._stomp_listeners + self._http_listeners:
            listener.close()
        self._encryption.stop()
        self.turns.end()
        for connection in list(self.stats.connections):
            connection.cut()


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


def run(
    path: Path,
    properties: Sequence[str],
    *,
    silenced: Collection[str] = (),
    strict: bool = False,
    accept_loss: bool = False,
) -> int:
    """Run a broker in the foreground until SIGTERM or SIGINT; returns 0 after an orderly stop, 1 if a port cannot be
    opened, 3 if storage failed, 4 if the journal lacks too much. With ``accept_loss`` it starts anyway. Warnings and
    notes with a code in ``silenced`` are hidden; with ``strict`` the other warnings count as errors.

    Raises ConfigError for a refused configuration, before anything listens.
    """
    config = load(path, properties=properties)
    first = make_first_user(config)
    if first is not None:
        _tell_of_first_user(first)
    problems = Problems()
    authenticator = open_realms(config, problems) if config.security_enabled else None
    notices = told([*config.notices, *problems.in_order(config.file)], silenced)
    if strict and any(notice.severity == WARNING for notice in notices):
        raise ConfigError(notices)
    config = replace(config, notices=tuple(notices))
    if accept_loss and config.persistence_enabled:
        for line in accept_losses(config):
            warn(line)
    keep_freed_memory()
    write_to_stderr()
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_run(config, loop, authenticator))
    finally:
        _close(loop)


def _tell_of_first_user(first: FirstUser) -> None:
    """On standard output, which is not the log. Nothing else ever shows the password."""
    say()
    if first.password:
        say(f"  first user: {first.user}    password: {first.password}    (shown only now; {first.file} has its hash)")
        say(f"  to choose another password: artemis-py user reset {first.user}")
    else:
        say(f"  first user: {first.user}, with the password in {PASSWORD_VARIABLE}; {first.file} has its hash")
    say()
    sys.stdout.flush()


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Ignore signals. A closing loop restores their default action; a signal during the end of the process would then
    kill it, and an orderly stop would not look like one.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    loop.close()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


async def _run(config: BrokerConfig, loop: asyncio.AbstractEventLoop, authenticator: Authenticator | None) -> int:
    stopping = asyncio.Event()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopping.set)
    collector = Collector(loop)
    try:
        server = Server(config, loop, stopping, authenticator)
    except LossError as error:
        for line in loss_lines(error.examined, config.journal_directory):
            warn(line)
        return EXIT_LOSS
    except (DiskError, LockedError, CodecError) as error:
        warn(f"the journal cannot be opened: {error}")
        return 1
    try:
        await server.listen()
    except ArtemisError as error:  # a port or a key
        warn(error)
        await server.stop()
        return 1
    _report(config, server)
    collector.begin()
    await stopping.wait()
    if server.failure is None:
        warn("stopping")
        await server.stop()
    if server.failure is None:
        return 0
    failed = "a turn" if isinstance(server.failure, TurnError) else "storage"
    warn(f"{failed} failed and the broker stops; it confirmed nothing after this: {server.failure}")
    if isinstance(server.failure, NoSpaceError):
        warn(
            "free space on that file system and start the broker again; without space it also starts, but accepts "
            "only acknowledgements and no messages"
        )
    server.abandon()
    return 3


def _report(config: BrokerConfig, server: Server) -> None:
    """Print at start what is ignored or refused, and where the broker listens."""
    for notice in config.notices:
        warn(f"{kind_of(notice)}: {notice}")
    for line in server.store.report:
        warn(line)
    for acceptor, host, port in server.bound:
        shown = f"[{host}]" if ":" in host else host
        tls = " over TLS" if acceptor.is_tls else ""
        warn(f"listening on {shown}:{port} for {', '.join(acceptor.protocols)}{tls} (acceptor {acceptor.name})")
    is_open = any("STOMP" in acceptor.protocols for acceptor, _, _ in server.bound)
    state = "ready" if is_open else "up, but no port is open for STOMP, so no client can connect"
    counts = f"{len(server.broker.addresses)} addresses, {len(server.broker.queues)} queues"
    warn(f"broker {config.name} is {state}: {counts}")
