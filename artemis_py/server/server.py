"""A server: the broker with its files, turns, ports and regular checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.recovery_points import Backfills
from artemis_py.errors import ArtemisError
from artemis_py.log_codes import DISK, LOGIN, STOPPING
from artemis_py.metrics import MetricsExporter
from artemis_py.security.identity import Authenticator
from artemis_py.server.bridges.bridge import Bridges
from artemis_py.server.configuration.reading import Source
from artemis_py.server.configuration.reload import RunningConfiguration
from artemis_py.server.descriptors import Descriptors, is_free_below, raise_limit
from artemis_py.server.disk_watch import DiskWatch
from artemis_py.server.failures import Faults, RateLimitedLog
from artemis_py.server.http.log_routes import cursor_routes, log_routes, no_log_routes
from artemis_py.server.http.monitoring_routes import health_routes, memory_routes, metrics_routes
from artemis_py.server.http.requests import Response
from artemis_py.server.http.routing import Route
from artemis_py.server.management import set_up_management
from artemis_py.server.memory import destinations_max, global_max_bytes, held_max_bytes
from artemis_py.server.operational_log import OperationalLog
from artemis_py.server.ports import Held, Ports
from artemis_py.server.replays import ReplayTurns
from artemis_py.server.security import security_of
from artemis_py.server.stats import TURN_BUCKET_BOUNDS_S, ServerStats
from artemis_py.server.store import Store, TransientStore
from artemis_py.server.turn_client import Client
from artemis_py.server.turns import Turns
from artemis_py.server.wall_clock import NS_PER_MS, WallClock, wall_clock_ms
from artemis_py.server.websocket import protocol_detection
from artemis_py.stomp.service import StompService
from artemis_py.storage.disk.disk import OPEN_FILES_MAX, FileDisk
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.disk.space import DiskSpace, space_of
from artemis_py.terminal_output import many, warn

if TYPE_CHECKING:
    from artemis_py.server.standby import FailbackWatch
    from artemis_py.server.user_files import UserFilesWatch


# ---- environment -----------------------------------------------------------------------------------------------------
#
# What a server takes from its machine: the clocks, the disk, and a limit of the process.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A broker for tests puts clocks that can be moved and a disk that can lose power in their place.

    ``wall_ns`` is the date in nanoseconds since 1970, ``steady_ns`` never goes back. ``open_disk`` opens a directory of
    the journal, pages or large bodies, with the arguments of ``FileDisk``. ``space_of`` says how full the file system
    of a directory is. ``descriptors`` says how many files the process may open.
    """

    wall_ns: Callable[[], int] = time.time_ns
    steady_ns: Callable[[], int] = time.monotonic_ns
    open_disk: Callable[..., FileDisk] = FileDisk
    space_of: Callable[[str], DiskSpace] = space_of
    descriptors: Callable[[], Descriptors] = raise_limit


THIS_MACHINE: Final = Environment()


# ---- load ------------------------------------------------------------------------------------------------------------
#
# Says whether the broker is busy, so that deferrable work on the same processors can wait.


BUSY_SHARE: Final = 0.7
"""The broker is busy when its turns take this share of the time, which leaves little for others."""
WINDOW_NS: Final = 100_000_000
"""The minimum time to measure over; longer if the last question was longer ago."""


class Load:
    """Measures the share of time that turns take. For any thread; two at once may measure a shorter window, which is
    harmless.
    """

    def __init__(self, stats: ServerStats, clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._stats = stats
        self._clock_ns = clock_ns
        self._seen_ns = clock_ns()
        self._turns_ns = stats.turn_ns_sum
        self._is_busy = False

    def is_busy(self) -> bool:
        """Did turns take most of the recent time?"""
        took_ns = self._clock_ns() - self._seen_ns
        if took_ns >= WINDOW_NS:
            turns_ns = self._stats.turn_ns_sum
            self._is_busy = turns_ns - self._turns_ns >= BUSY_SHARE * took_ns
            self._seen_ns += took_ns
            self._turns_ns = turns_ns
        return self._is_busy


# ---- drain -----------------------------------------------------------------------------------------------------------
#
# ``graceful-shutdown-enabled``: clients settle what they have got, and get nothing more; and what is left then.


_CHECK_EVERY_S: Final = 0.02


@final
class Drain:
    """Messages in delivery, on their way to being settled. Acknowledgements, sends and commits are carried out."""

    def __init__(self, connections: Collection[Client], services: Sequence[StompService]) -> None:
        self._queues: list[Queue] = []
        seen: set[int] = set()
        for service in services:
            service.drains = True
        for connection in connections:
            for subscription in connection.session.subscriptions.by_consumer.values():
                subscription.consumer.room_bytes = 0
                queue = subscription.queue
                if queue.id not in seen:
                    seen.add(queue.id)
                    self._queues.append(queue)

    @property
    def left(self) -> int:
        """How many messages are in delivery, those in transactions included. Nothing is added, so only queues that had
        some are asked again.
        """
        self._queues = [queue for queue in self._queues if queue.contents.counters.held_count]
        return sum(queue.contents.counters.held_count for queue in self._queues)

    async def wait(self, timeout_ms: int, hurry: asyncio.Event, has_failed: Callable[[], bool]) -> None:
        """Wait until nothing is in delivery, for at most ``timeout_ms`` (-1: for ever), and no longer than until
        ``hurry`` is set or the broker has failed.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        while self.left and not hurry.is_set() and not has_failed() and (timeout_ms < 0 or loop.time() < until):
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), _CHECK_EVERY_S)


def summary_of_stop(broker: Broker) -> str:
    """What a broker that stops leaves behind, in a few words."""
    count = queue_count = in_delivery = durable = 0
    for queue in broker.queues.values():
        if queue.message_count:
            queue_count += 1
            count += queue.message_count
            in_delivery += queue.contents.counters.held_count
            durable += queue.contents.counters.durable_count if queue.durable else 0
    if not broker.config.persistence_enabled:
        durable = 0
    among = f"{queue_count:,} of " if queue_count else ""
    parts = [f"{many(count, 'message')} in {among}{many(len(broker.queues), 'queue')}"]
    if in_delivery:
        parts.append(f"{in_delivery} of them in delivery, to be delivered again")
    if count > durable:
        parts.append(f"{count - durable} not durable and lost with this stop")
    return "; ".join(parts)


# ---- open store ------------------------------------------------------------------------------------------------------
#
# The store that a configuration asks for.


def open_store(
    config: BrokerConfig,
    wake: Callable[[], None],
    check_disk: Callable[[], None] = lambda: None,
    open_files_max: int = OPEN_FILES_MAX,
    open_disk: Callable[..., FileDisk] = FileDisk,
    lock: DirectoryLock | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Store:
    """Open it. The disk's threads call ``wake`` when something is done, and ``check_disk`` when the disk usage should
    be checked. ``open_files_max`` limits the open files of each directory, and ``open_disk`` opens those that outlive
    the process. ``lock`` is that of a pair. ``progress`` is called after each journal file, with how many were read and
    how many there are. Raises DiskError, LockedError, or LossError.
    """
    if config.persistence_enabled:
        from artemis_py.server.journal_store import JournalStore

        return JournalStore(config, wake, check_disk, open_files_max, open_disk, lock, progress)
    return TransientStore(config, wake, check_disk)


# ---- server ----------------------------------------------------------------------------------------------------------
#
# The running broker: its store, its turns, its ports, from the first socket to the last.


_CHECK_CLOCK_S: Final = 5.0
_CHECK_BLOCKED_S: Final = 1.0
_DRAIN_S: Final = 5.0
_FOREVER_MS: Final = 1 << 40
_CHECK_STORE_S: Final = 0.5
"""How often the broker checks that its directories still exist."""
_PREPARE_S: Final = 1.0
"""How long after the start threads import the libraries of metrics and WebSocket: after the first clients, before a
scrape.
"""


@dataclass(frozen=True, slots=True)
class Takeover:
    """What a broker has when its turn comes; one of a pair has the lock of the journal directory, and open HTTP
    sockets.
    """

    lock: DirectoryLock | None = None
    sockets: Sequence[Held] = ()
    progress: Callable[[int, int], None] = lambda _done, _total: None
    """Hears how many journal files were read, and how many there are."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Server:
    """One broker with its sockets on one event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        stopping: asyncio.Event,
        authenticator: Authenticator | None = None,
        around: Environment = THIS_MACHINE,
        takeover: Takeover | None = None,
        source: Source | None = None,
    ) -> None:
        takeover = takeover or Takeover()
        self.config = config
        self._loop = loop
        self.limited_log = RateLimitedLog()
        self.stats = ServerStats(Faults(self.limited_log))
        loop.set_exception_handler(self.stats.faults.caught_by_loop)
        self.failure: ArtemisError | None = None
        self._descriptors = self.stats.descriptors = around.descriptors()
        self._disk_check_is_due = False
        files_max, open_disk = self._descriptors.open_files_max, around.open_disk
        self.store = store = open_store(
            config, self._wake, self._check_disk_soon, files_max, open_disk, takeover.lock, takeover.progress
        )
        self.stats.reserves = store.reserves
        self.stats.large = store.large
        self.stats.journal = store.durability
        self.stats.cursors = store.cursors
        memory_bytes = global_max_bytes(config.global_max_size)
        now_ms = around.wall_ns() // NS_PER_MS
        self.broker = Broker(config, store.log, now_ms, store.recovered_state(), store.pages, memory_bytes)
        self.broker.holdings.bytes_max = held_max_bytes(config.global_max_held_size, memory_bytes)
        self.broker.quota.addresses_max = destinations_max(config.max_addresses)
        self.broker.quota.queues_max = destinations_max(config.max_queues)
        self._clocks = WallClock(self.broker.clock, wall_ns=around.wall_ns, steady_ns=around.steady_ns)
        self.stats.clock_steps = self._clocks.steps
        self.turns = Turns(loop, self.broker, store.durability, self.stats, self._clocks.date_ms, store.large)
        self.turns.on_failure = self._fail
        if store.replay_log is not None:
            manager = Replays(store.replay_log, self.broker.holdings, self.broker.clock, config.wildcards)
            fills = Backfills(self.broker.host, self.broker.bindings, self.broker.registry, manager)
            fills.begin()
            self.turns.replays = ReplayTurns(manager, fills, store.durability, self.turns.output, self.turns.isolation)
        self.stats.blocked = self.turns.input.blocked
        self._log = OperationalLog()
        self.turns.tell = self._log.write
        self._security = security_of(config, authenticator, loop, self.stats, self.limited_log)
        keeps = config.persistence_enabled
        say, probe = partial(self.limited_log.write, code=DISK), around.space_of
        self.disk_watch = DiskWatch(config, self.broker, self.turns.schedule, store, probe=probe, say=say)
        self._stopping = stopping
        self._is_stopping = self._is_draining = False
        self._exporter = MetricsExporter(
            self.broker,
            self.stats,
            turn_bounds_s=TURN_BUCKET_BOUNDS_S,
            global_max_size_bytes=memory_bytes,
            store_directory=Path(config.journal_directory) if keeps else None,
            disk_headroom=self.disk_watch.headroom_bytes,
            clock_ms=lambda: around.wall_ns() // NS_PER_MS,
        )
        self._load = load = Load(self.stats)
        store.give_way(load.is_busy)
        self.ports = Ports(
            config,
            loop,
            self.turns,
            self.limited_log,
            self._descriptors,
            store.open_files,
            self._security,
            load.is_busy,
            takeover.sockets,
        )
        log_id = None if store.log_view is None else store.log_view.log_id
        self.bridges = Bridges(loop, self.turns, self.limited_log, log_id)
        self.stats.bridge_counts = self.bridges.counts
        self.configuration = RunningConfiguration(
            source, config, loop, self.turns, self.ports, self._security, self.bridges
        )
        self.ports.http.routes = self._routes(store) + self._web_login_routes()
        self._user_files_watch = self._watch_user_files()
        self.gives_back = False
        """Does the broker end because a primary waits for its directory?"""
        self._failback = self._failback_watch()

    def _watch_user_files(self) -> UserFilesWatch | None:
        if self._security is None:
            return None
        from artemis_py.server.user_files import UserFilesWatch

        ended, say = self.configuration.rights_check.begin, partial(warn, code=LOGIN)
        watch = UserFilesWatch(self._loop, Path(self.config.file), self._security, ended, say)
        self._security.logins.on_change = watch.check_soon
        return watch

    def _failback_watch(self) -> FailbackWatch | None:
        part = self.config.shared_store
        if part is None or not part.is_backup or not part.allow_failback:
            return None
        from artemis_py.server.standby import FailbackWatch

        return FailbackWatch(self.config, self._loop, self._give_back)

    def _routes(self, store: Store) -> list[Route]:
        routes = metrics_routes(self._exporter) + health_routes(self._not_ready_because, self.configuration.warnings)
        return routes + memory_routes(self.turns.guard) + self._log_routes(store) + self._management_routes(store)

    def _management_routes(self, store: Store) -> list[Route]:
        self.managed, routes = set_up_management(
            self.config,
            self._loop,
            self.turns,
            self.ports,
            store,
            security=self._security,
            configuration=self.configuration,
            disk_watch=self.disk_watch,
            date_ms=self._clocks.date_ms,
            is_busy=self._load.is_busy,
            bridges=self.bridges,
        )
        return routes

    def _log_routes(self, store: Store) -> list[Route]:
        if store.log_view is None or store.cursors is None:
            return no_log_routes()
        in_thread = partial(self._loop.run_in_executor, None)
        may_open = partial(is_free_below, self._descriptors.files_max, store.open_files)
        routes = log_routes(store.log_view, self.config.name, wall_clock_ms, in_thread, may_open)
        return routes + cursor_routes(store.cursors, self._durably)

    def _web_login_routes(self) -> list[Route]:
        if self._security is None:
            return []
        from artemis_py.server.http.web_login_routes import WebLoginRoutes

        return WebLoginRoutes(self._loop, self._security.web_logins, self.limited_log).routes()

    def _wake(self) -> None:
        """Called by the disk's threads when something is done, even while the broker is still being created, and at its
        very end.
        """
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._take_news)

    def _take_news(self) -> None:
        if hasattr(self, "turns"):  # not yet, while the files are being opened
            self.turns.disk_has_news()

    def _check_disk_soon(self) -> None:
        """Called by the disk's threads: files have grown or did not fit."""
        if not self._disk_check_is_due:
            self._disk_check_is_due = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._check_disk_now)

    def _check_disk_now(self) -> None:
        self._disk_check_is_due = False
        if not self._is_stopping:
            self.disk_watch.check()

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

    def _give_back(self) -> None:
        self.gives_back = True
        self._stopping.set()

    def _not_ready_because(self) -> str | None:
        if self._is_stopping or self._is_draining:
            return "the broker is stopping"
        return None if self.ports.serves("STOMP") else "no port is open for STOMP"

    # ---- start -----------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Open every acceptor that may be opened. Raises ListenError, and then none is open."""
        sockets = self.ports.bind()
        self._check_disk()  # before any client can send
        if self._user_files_watch is not None:
            await self._user_files_watch.begin()  # before anybody can log in
        self.ports.open(sockets)
        self.turns.schedule()
        self.bridges.use(self.config)
        self.configuration.begin()
        self._check_blocked()
        self._check_store()
        self._check_clock()
        if self.ports.serves("HTTP"):
            self._loop.call_later(_PREPARE_S, self._loop.run_in_executor, None, self._exporter.prepare)
        self._loop.call_later(_PREPARE_S, self._loop.run_in_executor, None, protocol_detection.prepare)
        if self.store.log_view is not None:
            self._loop.run_in_executor(None, self.store.log_view.indexing())

    def _check_clock(self) -> None:
        """An idle broker also notices that the wall clock was set."""
        if self._is_stopping:
            return
        self._loop.call_later(_CHECK_CLOCK_S, self._check_clock)
        self.limited_log.write_held()
        if self._clocks.check():
            self.turns.schedule()

    def _check_blocked(self) -> None:
        if not self._is_stopping:
            self._loop.call_later(_CHECK_BLOCKED_S, self._check_blocked)
            self.turns.input.check_blocked()

    def _check_disk(self) -> None:
        if self._is_stopping:
            return
        if self.disk_watch.period_ms >= 0:
            self._loop.call_later(self.disk_watch.period_ms / 1000, self._check_disk)
        self.disk_watch.check()

    def _check_store(self) -> None:
        if not self._is_stopping:
            self._loop.call_later(_CHECK_STORE_S, self._check_store)
            self.store.check_directories()
            if self._failback is not None:
                self._failback.check()

    # ---- stop ------------------------------------------------------------------------------------

    async def drain(self, hurry: asyncio.Event) -> None:
        """Accept nobody, deliver nothing more, and wait for what is in delivery, if the configuration says so."""
        if not self.config.graceful_shutdown_enabled:
            return
        self._is_draining = True
        self.ports.stop_accepting()
        limit_ms = self.config.graceful_shutdown_timeout
        self.bridges.end(self._clocks.date_ms(), _FOREVER_MS if limit_ms < 0 else limit_ms)
        drain = Drain(self.stats.connections, self.ports.stomp_services)
        if drain.left:
            how_long = "" if limit_ms < 0 else f" for at most {limit_ms} ms"
            left = many(drain.left, "message")
            warn(f"waiting{how_long} until clients settle {left}; a second signal ends it", STOPPING)
            await drain.wait(limit_ms, hurry, lambda: self.failure is not None)

    async def stop(self, hurry: asyncio.Event | None = None) -> str:
        """Stop accepting, send written output, close everything; returns what is left. When ``hurry`` is set, it does
        not wait for clients that do not read.
        """
        self._is_stopping = True
        self._end_watches()
        left = summary_of_stop(self.broker)
        if self.gives_back:
            self.store.hand_over()
        self.ports.close_to_stomp()
        await self._end_bridges(hurry)
        self.turns.stop()
        deadline = self._loop.time() + _DRAIN_S
        while self.stats.connections and self._loop.time() < deadline:
            for connection in list(self.stats.connections):  # also those accepted just before
                connection.shut(self._clocks.date_ms())
            if hurry is not None and hurry.is_set():
                break
            await asyncio.sleep(0.01)
        for connection in list(self.stats.connections):
            connection.cut()
        self.ports.close_to_http()
        try:
            self.broker.finish(self._clocks.date_ms())
        finally:
            self.turns.end()  # a thread or a socket may still request one
            self.release()
            self.failure = self.failure or self.store.durability.failure
        return left

    async def _end_bridges(self, hurry: asyncio.Event | None) -> None:
        """Let bridges have confirmed what is on the way, but do not wait for long."""
        deadline = self._loop.time() + _DRAIN_S
        self.bridges.end(self._clocks.date_ms(), round(_DRAIN_S * 1000))
        while not self.bridges.have_ended and self._loop.time() < deadline and self.failure is None:
            if hurry is not None and hurry.is_set():
                break
            await asyncio.sleep(0.01)
        self.bridges.end_now(self._clocks.date_ms())

    def abandon(self) -> None:
        """End at once: no further frame is sent. The files stay open until ``release`` or the end of the process."""
        self._is_stopping = True
        self._end_watches()
        self._end_log()
        self.ports.abandon()
        self.bridges.cut()
        self.turns.end()
        for connection in list(self.stats.connections):
            connection.cut()

    def _end_log(self) -> None:
        """Write the lines that were held back."""
        self._log.end()
        self.limited_log.end()

    def _end_watches(self) -> None:
        self.configuration.end()
        if self._user_files_watch is not None:
            self._user_files_watch.end()

    def release(self) -> None:
        """Close the files and end the threads; only after ``stop`` or ``abandon``. Raises DiskError."""
        self._end_log()
        try:
            self.store.close()
        finally:
            if self._security is not None:
                self._security.logins.stop()
