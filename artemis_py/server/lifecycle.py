"""Start and stop: configuration, broker, sockets, signals, and the end in good order."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from artemis_py.config.reader import load
from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.errors import ArtemisError
from artemis_py.metrics import MetricsExporter
from artemis_py.server.connection import Acceptance
from artemis_py.server.disk_watch import DiskWatch
from artemis_py.server.http import HttpLimits, HttpService, Response
from artemis_py.server.http.cursor_routes import cursor_routes
from artemis_py.server.http.log_routes import log_routes
from artemis_py.server.http.routes import health_routes, metrics_routes
from artemis_py.server.load import Load
from artemis_py.server.malloc import keep_freed_memory
from artemis_py.server.memory import global_max_bytes
from artemis_py.server.operational import OperationalLog, write_to_stderr
from artemis_py.server.stats import TURN_BUCKET_BOUNDS_S, ServerStats
from artemis_py.server.store import open_store
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService
from artemis_py.storage.codec import CodecError
from artemis_py.storage.disk import DiskError, LockedError

_BACKLOG_MIN: Final = 1024
_HTTP_TICK_S: Final = 5.0
_DRAIN_S: Final = 5.0
_PREPARE_METRICS_S: Final = 1.0
"""How long after the start the metrics library is imported, in a thread: after the first clients, before a scrape."""


class ListenError(ArtemisError):
    """A port that cannot be opened."""


def clock_ms() -> int:
    """The time of day in epoch milliseconds."""
    return int(time.time() * 1000)


class Server:
    """One broker with its sockets on one event loop."""

    def __init__(self, config: BrokerConfig, loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
        self.config = config
        self._loop = loop
        self.stats = ServerStats()
        self.failure: ArtemisError | None = None
        self.store = store = open_store(config, self._wake)
        self.stats.large = store.large
        self.stats.cursor_desk = store.cursor_desk
        memory_bytes = global_max_bytes(config.global_max_size)
        self.broker = Broker(config, store.log, clock_ms(), store.keepsake(), store.pages, memory_bytes)
        self.turns = Turns(loop, self.broker, store.log, self.stats, clock_ms, store.large)
        self.turns.on_failure = self._fail
        self.turns.tell = OperationalLog().tell
        keeps = config.persistence_enabled
        self._disk_watch = DiskWatch(config, self.broker, self.turns.schedule) if keeps else None
        self._stopping = stopping
        self.bound: list[tuple[AcceptorConfig, str, int]] = []
        self._stomp_servers: list[asyncio.Server] = []
        self._http_servers: list[asyncio.Server] = []
        self._is_stopping = False
        self._exporter = MetricsExporter(
            self.broker,
            self.stats,
            turn_bounds_s=TURN_BUCKET_BOUNDS_S,
            global_max_size_bytes=memory_bytes,
            store_directory=Path(config.journal_directory) if keeps else None,
        )
        self._routes = metrics_routes(self._exporter) + health_routes(self._not_ready_because)
        self._routes += log_routes(store.log_view, config.name, clock_ms, partial(loop.run_in_executor, None))
        if store.cursor_desk is not None:
            self._routes += cursor_routes(store.cursor_desk, self._durably)
        self._http_services: list[HttpService] = []
        self._load = Load(self.stats)

    def _wake(self) -> None:
        """Called by the disk's threads when something is done, also while the broker is still being made."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._schedule)

    def _schedule(self) -> None:
        self.turns.schedule()

    def _durably(self, lsn: int, make: Callable[[], Response]) -> asyncio.Future[Response]:
        """An answer that is given when everything up to the lsn survives a crash."""
        future: asyncio.Future[Response] = self._loop.create_future()

        def answer() -> None:
            if not future.done():  # the client may have left
                future.set_result(make())

        self.turns.when_durable(lsn, answer)
        return future

    def _fail(self, failure: ArtemisError) -> None:
        """Storage failed: nothing is promised any more, and the process ends."""
        self.failure = failure
        self._stopping.set()

    def _not_ready_because(self) -> str | None:
        if self._is_stopping:
            return "the broker is stopping"
        return None if self.broker.started else "the broker is starting"

    # ---- start -----------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Open every acceptor that may be opened. Raises ListenError, and then none is open."""
        sockets: list[tuple[AcceptorConfig, socket.socket]] = []
        try:
            for acceptor in self.config.acceptors:
                if acceptor.refused is None and acceptor.protocols and acceptor.bool_param("autoStart"):
                    sockets.append((acceptor, _bind(acceptor)))
        except ListenError:
            for _, bound in sockets:
                bound.close()
            raise
        for acceptor, bound in sockets:
            await self._serve(acceptor, bound)
        self.turns.schedule()
        self._tick_http()
        self._look_at_disk()
        if self._serves("HTTP"):
            self._loop.call_later(_PREPARE_METRICS_S, self._loop.run_in_executor, None, self._exporter.prepare)
        if self.store.log_view is not None:
            self._loop.run_in_executor(None, self.store.log_view.indexing())

    def _serves(self, protocol: str) -> bool:
        return any(protocol in acceptor.protocols for acceptor, _, _ in self.bound)

    async def _serve(self, acceptor: AcceptorConfig, bound: socket.socket) -> None:
        backlog = max(acceptor.int_param("backlog"), _BACKLOG_MIN)
        if "STOMP" in acceptor.protocols:
            service = StompService(self.broker, acceptor, self.stats.traffic, self.turns.large)
            acceptance = Acceptance(
                self.turns,
                service,
                acceptor.int_param("connectionsAllowed"),
                acceptor.int_param("handshakeTimeout"),
            )
            server = await self._loop.create_server(acceptance.connect, sock=bound, backlog=backlog)
            self._stomp_servers.append(server)
        else:
            http = HttpService(
                self._routes,
                now_ms=clock_ms,
                call_soon=self._loop.call_soon,
                call_threadsafe=self._loop.call_soon_threadsafe,
                limits=HttpLimits(
                    file_bytes_per_second_max=acceptor.int_param("maxLogBytesPerSecond"),
                    near_bytes_per_second_max=acceptor.int_param("busyLogBytesPerSecond"),
                ),
                is_busy=self._load.is_busy,
            )
            self._http_services.append(http)
            server = await self._loop.create_server(http.connect, sock=bound, backlog=backlog)
            self._http_servers.append(server)
        host, port = bound.getsockname()[:2]
        self.bound.append((acceptor, host, port))

    def _tick_http(self) -> None:
        for service in self._http_services:
            service.tick(clock_ms())
        if not self._is_stopping:
            self._loop.call_later(_HTTP_TICK_S, self._tick_http)

    def _look_at_disk(self) -> None:
        if self._disk_watch is None or self._disk_watch.period_ms < 0 or self._is_stopping:
            return
        self._disk_watch.look()
        self._loop.call_later(self._disk_watch.period_ms / 1000, self._look_at_disk)

    # ---- stop ------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Accept nobody any more, let written answers leave, close everything."""
        self._is_stopping = True
        for server in self._stomp_servers:
            server.close()
        self.turns.stop()
        now_ms = clock_ms()
        for connection in list(self.stats.connections):
            connection.shut(now_ms)
        deadline = self._loop.time() + _DRAIN_S
        while self.stats.connections and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self.stats.connections):
            connection.cut()
        for service in self._http_services:
            service.stop()
        for server in self._http_servers:
            server.close()
        self.store.close()

    def abandon(self) -> None:
        """End at once: no frame leaves any more."""
        for server in self._stomp_servers + self._http_servers:
            server.close()
        self.turns.stop()
        for connection in list(self.stats.connections):
            connection.cut()


def _bind(acceptor: AcceptorConfig) -> socket.socket:
    """A listening address. Raises ListenError, saying which acceptor of which line wanted it."""
    try:
        found = socket.getaddrinfo(
            acceptor.host or None, acceptor.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        wanted = f"{acceptor.origin}: acceptor {acceptor.name} cannot listen on {acceptor.host}:{acceptor.port}"
        raise ListenError(f"{wanted}: {error.strerror or error}") from None
    return bound


def run(path: Path, properties: Sequence[Path]) -> int:
    """Run a broker in the foreground until SIGTERM or SIGINT; 0 after an orderly stop, 1 when a port cannot be opened.

    Raises ConfigError for a configuration that is refused; nothing ever listens then.
    """
    config = load(path, properties=properties)
    keep_freed_memory()
    write_to_stderr()
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_run(config, loop))
    finally:
        loop.close()


async def _run(config: BrokerConfig, loop: asyncio.AbstractEventLoop) -> int:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    gc.disable()  # a recovery only makes objects that stay; walking them again and again costs half of its time
    try:
        server = Server(config, loop, stopping)
    except (DiskError, LockedError, CodecError) as error:
        print(f"the journal cannot be opened: {error}", file=sys.stderr)
        return 1
    try:
        await server.listen()
    except ListenError as error:
        print(error, file=sys.stderr)
        await server.stop()
        return 1
    _report(config, server)
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    await stopping.wait()
    if server.failure is not None:
        print(f"storage failed, the broker stops; nothing after this was confirmed: {server.failure}", file=sys.stderr)
        server.abandon()
        return 3
    print("stopping", file=sys.stderr)
    await server.stop()
    return 0


def _report(config: BrokerConfig, server: Server) -> None:
    """Say at start what is ignored or refused, and where the broker listens."""
    for notice in config.notices:
        print(f"{notice.severity}: {notice}", file=sys.stderr)
    for line in server.store.report:
        print(line, file=sys.stderr)
    for acceptor, host, port in server.bound:
        shown = f"[{host}]" if ":" in host else host
        print(
            f"listening on {shown}:{port} for {', '.join(acceptor.protocols)} (acceptor {acceptor.name})",
            file=sys.stderr,
        )
    if not server.bound:
        print("warning: no acceptor is open; nobody can connect", file=sys.stderr)
    print(
        f"broker {config.name} is ready: {len(server.broker.addresses)} addresses, {len(server.broker.queues)} queues",
        file=sys.stderr,
        flush=True,
    )
