"""What operators reach of a running server: its clients, users, files, acceptors and health."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Step, Task
from artemis_py.core.transactions import Transaction
from artemis_py.errors import ArtemisError, BrokerError, NotFoundError, StorageError
from artemis_py.histogram import Histogram
from artemis_py.management.artemis.beans import Beans
from artemis_py.management.jolokia import Agent
from artemis_py.management.listing import Row
from artemis_py.management.managed import Awaited, BodyRoom, Connected, Life, LogCursor, Managed, Space
from artemis_py.record_log import Durability
from artemis_py.security.user_files import KnownUser, changeable_files, files_of_realm, known_users
from artemis_py.security.users.accounts import Accounts, NoUserError, check_name
from artemis_py.security.users.passwords import hashed
from artemis_py.server.bridges.bridge import Bridges
from artemis_py.server.configuration.reading import Stamps, stamps_of
from artemis_py.server.configuration.reload import OperatedConfiguration, RunningConfiguration
from artemis_py.server.disk_watch import DiskWatch
from artemis_py.server.events.notification_sender import Notifying
from artemis_py.server.events.routes import event_routes
from artemis_py.server.events.server_sent_events import Hub
from artemis_py.server.events.watched_lists import ListWatches
from artemis_py.server.http.authentication import guard_of
from artemis_py.server.http.jolokia_routes import jolokia_routes
from artemis_py.server.http.management_routes import management_routes
from artemis_py.server.http.routing import Route
from artemis_py.server.log_cursors import CursorView, LogCursors
from artemis_py.server.log_view import LogView, Segments
from artemis_py.server.management_messages import ManagementMessages
from artemis_py.server.messages.publish import ManagementSender
from artemis_py.server.messages.routes import OPENAPI_PATHS, routes_for_messages
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.server.ports import Ports
from artemis_py.server.security import Security
from artemis_py.server.stats import TURN_BUCKET_BOUNDS_S, ServerStats, in_words
from artemis_py.server.store import Store
from artemis_py.server.traces import Traces
from artemis_py.server.transports import shown_address
from artemis_py.server.turn_client import Client
from artemis_py.server.turns import Turns
from artemis_py.server.wall_clock import wall_clock_ms
from artemis_py.stomp.session.publish import Producer
from artemis_py.stomp.wire.frames import Limits
from artemis_py.storage.disk.space import DiskSpace, bytes_until_full
from artemis_py.storage.journal.journal import Journal
from artemis_py.uploads import BodyStore

# ---- connected -------------------------------------------------------------------------------------------------------
#
# The clients that are connected now, for the lists of operators.


@final
class ConnectedClient:
    """A client in a list, read when it is asked for, and what an operator does to it, inside a turn."""

    __slots__ = ("_client", "_turns")

    def __init__(self, client: Client, turns: Turns) -> None:
        self._client = client
        self._turns = turns

    @property
    def number(self) -> int:
        """The connection's number."""
        return self._client.session.state.origin

    @property
    def address(self) -> str:
        """Host and port of the client; empty if unknown."""
        return self._client.session.state.address

    @property
    def acceptor(self) -> AcceptorConfig:
        """The acceptor that it came to."""
        return self._client.session.service.acceptor

    @property
    def local_address(self) -> str:
        """Host and port of the broker that it uses; empty if unknown."""
        transport = self._client.socket.transport
        return "" if transport is None else shown_address(transport.get_extra_info("sockname"))

    @property
    def proxy(self) -> tuple[str, str] | None:
        """The address of the proxy that has handed it on, and the version of the PROXY protocol."""
        proxied = self._client.socket.proxied
        return None if proxied is None else (proxied.proxy, proxied.version)

    @property
    def begun_ms(self) -> int:
        """When it connected, in epoch ms."""
        return self._client.session.state.begun_ms

    @property
    def session(self) -> str:
        """The name of its session."""
        return self._client.session.state.name

    @property
    def is_open(self) -> bool:
        """Has it a session: is its CONNECT accepted, and is it not closing?"""
        return self._client.session.is_open

    @property
    def producers(self) -> Sequence[Producer]:
        """To which addresses it has sent lately."""
        return list(self._client.session.producers.by_address.values())

    @property
    def transactions(self) -> Sequence[tuple[str, Transaction]]:
        """Its open transactions, with their names."""
        return list(self._client.session.transactions.by_name.items())

    @property
    def client_id(self) -> str | None:
        """The header of CONNECT."""
        return self._client.session.state.client_id

    @property
    def user(self) -> str | None:
        """The login of CONNECT."""
        return self._client.session.state.user

    @property
    def version(self) -> str:
        """The version of STOMP."""
        return self._client.session.state.version

    @property
    def state(self) -> str:
        """new, open, blocked, stalled or closing."""
        return self._client.state

    @property
    def subscription_count(self) -> int:
        """How many subscriptions it has."""
        return len(self._client.session.subscriptions.by_key)

    @property
    def held_bytes(self) -> int:
        """What the broker held for it when it was last weighed, in bytes."""
        return sum(self._client.weight)

    # ---- what an operator does -------------------------------------------------------------------

    def end(self, why: str) -> None:
        """Closes the connection with an ERROR."""
        self._client.disconnect(why, self._turns.isolation.turn_ms)

    def end_consumer(self, consumer_id: int, why: str) -> bool:
        """Ends one of its consumers with an ERROR to the client. False: it has none of this number."""
        client, isolation = self._client, self._turns.isolation
        session = client.session
        subscription = session.subscriptions.by_consumer.get(consumer_id)
        if subscription is None or not session.is_open:
            return False
        try:
            session.subscriptions.lose(subscription, isolation.turn_ms)
            session.refuse(why, None, syntax=False)
            self._turns.output.mark_dirty(client)
        except Exception as error:
            isolation.fail(client, "end", error)
        return True

    def roll_back(self, name: str) -> Sequence[Task]:
        """Rolls one of its transactions back. Returns what is not finished. Raises BrokerError."""
        try:
            return self._client.session.transactions.roll_back(name, self._turns.isolation.turn_ms)
        except ArtemisError as error:
            raise _refusal(error) from None
        finally:
            self._client.weigh()

    def prepare(self, name: str) -> bool:
        """Evaluates selectors that a commit needs; False: not all yet. Raises BrokerError."""
        try:
            return self._client.session.transactions.is_asked(name)
        except ArtemisError as error:
            raise _refusal(error) from None

    def commit(self, name: str) -> Sequence[Task]:
        """Commits what one of its transactions has so far. Returns what is not finished. Raises BrokerError."""
        try:
            return self._client.session.transactions.commit_now(name, self._turns.isolation.turn_ms)
        except ArtemisError as error:
            raise _refusal(error) from None
        finally:
            self._client.weigh()


def connected(clients: Iterable[Client], turns: Turns) -> list[ConnectedClient]:
    """The rows of these clients in lists."""
    return [ConnectedClient(client, turns) for client in clients]


def client_of(clients: Iterable[Client], number: int, turns: Turns) -> ConnectedClient | None:
    """The client with this number, or None."""
    client = next((one for one in clients if one.session.state.origin == number), None)
    return None if client is None else ConnectedClient(client, turns)


def _refusal(error: ArtemisError) -> ArtemisError:
    """The error that an operator gets: what would be wrong with a client's frame is a state of the broker here."""
    return error if isinstance(error, BrokerError | StorageError) else BrokerError(str(error))


# ---- known users -----------------------------------------------------------------------------------------------------
#
# The users of a running broker, as operators reach them. Files are read and written in another thread.


Value = TypeVar("Value")
_SETTLED_NS: Final = 1_000_000_000
"""A file that changed less than this before it was read may get its next change with the same date."""


class _Read(NamedTuple):
    """Users, the users file that operations change (empty: none), and of which configuration and files they are."""

    users: Sequence[KnownUser]
    changeable: str
    config: BrokerConfig
    stamps: Stamps
    is_settled: bool


def _read_again(config: BrokerConfig, before: _Read | None) -> _Read:
    """In another thread. Raises ArtemisError."""
    stamps = stamps_of(Path(config.file), files_of_realm(config))
    if before is not None and before.is_settled and (before.config is config, before.stamps) == (True, stamps):
        return before
    changeable = changeable_files(config)
    now_ns = time.time_ns()
    is_settled = all(now_ns - stamp[0] > _SETTLED_NS for _, stamp in stamps if isinstance(stamp, tuple))
    place = "" if changeable is None else str(changeable.files.users)
    return _Read(known_users(config), place, config, stamps, is_settled)


@final
class OperatedUsers:
    """The ``Users`` of the operations. ``config`` returns the configuration that is in force; without ``security``
    nobody logs in.
    """

    __slots__ = ("_changeable", "_config", "_security", "_loop", "_read")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: Callable[[], BrokerConfig], security: Security | None
    ) -> None:
        self._loop = loop
        self._config = config
        self._security = security
        self._changeable = ""
        self._read: _Read | None = None
        """What was read last: consoles ask once a second, and files seldom change."""

    # ---- what there is ---------------------------------------------------------------------------

    def known(self) -> Generator[Step, None, Sequence[KnownUser]]:
        """All that files name. Raises BrokerError."""
        config, before = self._config(), self._read
        read = self._read = yield from self._in_thread(lambda: _read_again(config, before))
        self._changeable = read.changeable
        return read.users

    def is_changeable(self, user: KnownUser) -> bool:
        """Is it in the files that operations change, as they were named when ``known`` was last asked?"""
        return user.origin.file == self._changeable

    def last_login_ms(self, name: str) -> int:
        """When the user was last let in, in epoch ms; 0: not since the start."""
        return 0 if self._security is None else self._security.logins.latest.of(name)

    # ---- changes ---------------------------------------------------------------------------------

    def add(self, name: str, password: str, roles: Sequence[str], *, is_plain: bool) -> Generator[Step, None, Row]:
        """Adds a user. Returns where, and whether it counts without a restart. Raises BrokerError."""

        def work(accounts: Accounts) -> None:
            check_name("user", name)
            accounts.add(name, _stored(password, is_plain), roles)

        return (yield from self._change(work))

    def reset(
        self, name: str, password: str | None, roles: Sequence[str] | None, *, is_plain: bool
    ) -> Generator[Step, None, Row]:
        """Changes the password or all roles of a user; None changes nothing. Raises BrokerError."""
        return (
            yield from self._change(
                lambda accounts: accounts.reset(name, None if password is None else _stored(password, is_plain), roles)
            )
        )

    def remove(self, name: str) -> Generator[Step, None, Row]:
        """Removes a user. Raises BrokerError."""
        return (yield from self._change(lambda accounts: accounts.remove(name)))

    def _change(self, work: Callable[[Accounts], None]) -> Generator[Step, None, Row]:
        config = self._config()

        def change() -> Row:
            changeable = changeable_files(config)
            if changeable is None:
                raise BrokerError(
                    "this broker has no users file: its users come from elsewhere; users-file in broker.xml names one"
                )
            work(Accounts(changeable.files))
            return {"file": str(changeable.files.users), "needsRestart": not changeable.reloads}

        done = yield from self._in_thread(change)
        if self._security is not None:
            logins = self._security.logins
            logins.forget()
            if logins.on_change is not None:
                logins.on_change()
        return done

    def _in_thread(self, work: Callable[[], Value]) -> Generator[Step, None, Value]:
        future = self._loop.run_in_executor(None, work)
        yield future
        try:
            return future.result()
        except BrokerError:
            raise
        except NoUserError as missing:
            raise NotFoundError(str(missing)) from None
        except ArtemisError as error:
            raise BrokerError(str(error)) from None


def _stored(password: str, is_plain: bool) -> str:
    return password if is_plain else str(hashed(password))


# ---- health ----------------------------------------------------------------------------------------------------------
#
# How the server does, for those who ask why.


@final
class ServerHealth:
    """Reads the counters of a server; ``Health`` says what each is."""

    def __init__(
        self,
        stats: ServerStats,
        turns: Turns,
        durability: Durability,
        is_busy: Callable[[], bool],
        headroom_bytes: Callable[[], int | None],
    ) -> None:
        self._stats = stats
        self._turns = turns
        self._durability = durability
        self._is_busy = is_busy
        self.headroom_bytes = headroom_bytes

    @property
    def turns(self) -> int:
        """How many turns there were."""
        return self._stats.turns

    @property
    def turn_ns_max(self) -> int:
        """The longest turn."""
        return self._stats.turn_ns_max

    @property
    def turn_bounds_s(self) -> Sequence[float]:
        """The upper bounds of ``turn_buckets``."""
        return TURN_BUCKET_BOUNDS_S

    @property
    def turn_buckets(self) -> Sequence[int]:
        """Turns by duration."""
        return self._stats.turn_buckets

    @property
    def sync_times(self) -> Histogram | None:
        """How long it took to make each batch durable."""
        return self._stats.sync_times

    @property
    def durable_lsn(self) -> int:
        """Everything up to this record survives a crash."""
        return self._durability.durable_lsn

    @property
    def is_busy(self) -> bool:
        """Do turns take most of the time?"""
        return self._is_busy()

    def blocked_ns(self) -> int:
        """How long senders have waited for room, all together."""
        return self._stats.blocked_ns()

    def client_of(self, owner: object) -> Connected | None:
        """The client that owns a consumer; None if it is gone."""
        return ConnectedClient(owner, self._turns) if owner in self._stats.connections else None

    def awaited(self) -> Iterator[tuple[Awaited, int]]:
        """What clients wait for, and how many for each."""
        blocked = self._stats.blocked
        for thing, count in [] if blocked is None else blocked.counts():
            yield in_words(thing), count

    def awaited_by(self, number: int) -> Awaited | None:
        """What the client with this connection waits for; None: for nothing."""
        blocked = self._stats.blocked
        for client in () if blocked is None else blocked:
            if client.session.state.origin == number:
                thing = client.session.blocked_by
                return None if thing is None else in_words(thing)
        return None


# ---- managed parts ---------------------------------------------------------------------------------------------------
#
# What operations see of the server: its files, and its acceptors.


_REST_S: Final = 0.0003
"""After each index a thread gives the interpreter to the turns: else they could wait 5 ms for it."""


@final
class StoredFiles:
    """The files of a broker with a journal."""

    def __init__(
        self,
        config: BrokerConfig,
        journal: Journal,
        cursors: LogCursors,
        directories: Sequence[str],
        probe: Callable[[str], DiskSpace],
        traces: Traces,
        view: LogView,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._config = config
        self._journal = journal
        self._cursors = cursors
        self._directories = directories
        self._probe = probe
        self._traces = traces
        self._view = view
        self._loop = loop

    @property
    def node_id(self) -> str:
        """The id of the log, which stays with the files."""
        return self._view.log_id

    def figures(self) -> Mapping[str, int]:
        """Figures of the journal and of the retained log, by name."""
        cursors = len(self._journal.index.cursors)
        return {**self._journal.counts(), **self._cursors.counts(), "cursors": cursors}

    def spaces(self) -> Sequence[Space]:
        """The directories, with the room that they have. Raises BrokerError if the system does not say."""
        return [self._space(directory) for directory in self._directories]

    def _space(self, directory: str) -> Space:
        config = self._config
        try:
            space = self._probe(directory)
        except OSError as error:
            raise BrokerError(f"the disk usage of {directory} cannot be read: {error.strerror or error}") from None
        usage_max, free_min = config.max_disk_usage, config.min_disk_free
        if config.disk_scan_period < 0:
            usage_max = free_min = -1
        left_bytes = bytes_until_full(usage_max, free_min, space)
        return Space(directory, space.total_bytes, space.free_bytes, round(100 * space.used_fraction), left_bytes)

    def compact(self) -> None:
        """Begin to compact all journal files but the one that is written to."""
        self._journal.compact()

    @property
    def is_compacting(self) -> bool:
        """Is that not done yet?"""
        return self._journal.compaction.is_asked

    def tell_life(self, message: int, after_lsn: int, seconds: float) -> asyncio.Future[Life]:
        """Read the life of a message from the log, outside of turns. Raises BrokerError."""
        return self._traces.read_life(message, after_lsn, seconds)

    def read_segments(self) -> asyncio.Future[list[dict[str, Any]]]:
        """Look at all segments of the log, outside of turns."""
        segments = self._view.segments()
        return self._loop.run_in_executor(None, lambda: list(_indexes(segments())))

    def read_cursors(self) -> asyncio.Future[list[LogCursor]]:
        """Look at all cursors in the log, outside of turns."""
        views = self._cursors.viewing()
        return self._loop.run_in_executor(None, lambda: [_as_listed(view) for view in views()])

    def remove_cursor(self, name: str) -> bool:
        """Remove a cursor. False: there is no such cursor."""
        return self._cursors.drop(name) is not None


def _indexes(segments: Segments) -> Iterator[dict[str, Any]]:
    """Their indexes, without what is gone meanwhile. The turns have the interpreter between two of them."""
    for index, _ in segments:
        if index:
            yield index
        time.sleep(_REST_S)


def _as_listed(view: CursorView) -> LogCursor:
    cursor = view.cursor
    return LogCursor(
        cursor.name,
        cursor.lsn,
        cursor.owner,
        cursor.moved_ms,
        cursor.ttl_s,
        view.holds,
        view.lag_bytes,
        view.is_overtaken,
    )


def stored_files(
    config: BrokerConfig,
    store: Store,
    probe: Callable[[str], DiskSpace],
    loop: asyncio.AbstractEventLoop,
    queues: Mapping[int, Queue],
) -> StoredFiles | None:
    """The files of a store; None if it has no journal. ``queues`` are those of now by number."""
    journal, view, cursors = store.durability, store.log_view, store.cursors
    if view is None or cursors is None or not isinstance(journal, Journal):
        return None

    def name_of(queue_id: int) -> str:
        queue = queues.get(queue_id)
        return "" if queue is None else queue.name

    traces = Traces(loop, view, name_of)
    return StoredFiles(config, journal, cursors, store.directories(), probe, traces, view, loop)


@final
class OpenPort:
    """An acceptor of the file, and where it listens (None: nowhere)."""

    def __init__(self, config: AcceptorConfig, place: str | None, connection_count: int, room_count: int) -> None:
        self._config = config
        self._place = place
        self._connection_count = connection_count
        self._room_count = room_count

    @property
    def config(self) -> AcceptorConfig:
        """What the file says."""
        return self._config

    @property
    def place(self) -> str | None:
        """Host and port on which it listens; None: it is not open."""
        return self._place

    @property
    def connection_count(self) -> int:
        """How many clients it serves now."""
        return self._connection_count

    @property
    def connections_left(self) -> int:
        """How many more clients it takes; -1: any number, because one that is idle makes room."""
        if self._place is None:
            return 0
        if "STOMP" not in self._config.protocols:
            return -1
        allowed = self._config.int_param("connectionsAllowed")
        return self._room_count if allowed < 0 else max(min(allowed - self._connection_count, self._room_count), 0)


def open_ports(config: BrokerConfig, ports: Ports) -> list[OpenPort]:
    """The acceptors of the file as they are now."""
    places = {acceptor.name: _shown(host, port) for acceptor, host, port in ports.bound}
    counts = ports.connection_counts()
    room = ports.room_for_clients()
    return [OpenPort(one, places.get(one.name), counts.get(one.name, 0), room) for one in config.acceptors]


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# ---- set up ----------------------------------------------------------------------------------------------------------
#
# What operators reach of a broker, put together: the operations, their routes, events, and messages about them.


def _body_room(config: BrokerConfig, store: BodyStore | None) -> BodyRoom | None:
    """By the rules of the first HTTP acceptor, as for messages that are published over HTTP."""
    acceptor = next((one for one in config.acceptors if "HTTP" in one.protocols), None)
    if acceptor is None:
        return None
    limits = Limits.of(acceptor)
    return BodyRoom(store, limits.large_body_bytes_min, limits.body_bytes_max, limits.header_bytes_max)


def set_up_management(  # noqa: PLR0913 - all but the first five are named where they are given
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    turns: Turns,
    ports: Ports,
    store: Store,
    *,
    security: Security | None,
    configuration: RunningConfiguration,
    disk_watch: DiskWatch,
    date_ms: Callable[[], int],
    is_busy: Callable[[], bool],
    bridges: Bridges,
) -> tuple[Managed, list[Route]]:
    """Put the parts together. Returns what operations work on, and their routes over HTTP. Turns carry out operations
    from now on.
    """
    broker, stats = turns.broker, turns.stats
    begun_s = loop.time()
    broker.sampler.begin(date_ms())
    calls = configuration.calls = turns.calls = OperatorRequests(
        loop, broker.clock, turns.schedule, lambda call: turns.when_durable(broker.log.last_lsn, call)
    )
    managed = Managed(
        broker,
        config.name,
        clients=lambda: connected(stats.connections, turns),
        client=lambda number: client_of(stats.connections, number, turns),
        client_count=lambda: stats.connections_open,
        uptime_ms=lambda: round(1000 * (loop.time() - begun_s)),
        now_ms=lambda: turns.isolation.turn_ms,
        acceptors=lambda: open_ports(config, ports),
        stored=stored_files(config, store, disk_watch.probe, loop, broker.by_id),
        health=ServerHealth(stats, turns, store.durability, is_busy, disk_watch.headroom_bytes),
        begin=lambda work: calls.begin(work, changes=True),
        configuration=OperatedConfiguration(configuration),
        users=OperatedUsers(loop, lambda: configuration.in_force, security),
        bodies=_body_room(config, turns.large),
        bridges=lambda: bridges.by_name,
        disconnect_bridge=lambda number, reason: bridges.disconnect(number, reason, turns.isolation.turn_ms),
        send=ManagementSender(turns, ports, security),
    )
    hub = Hub(broker.notifications, loop, broker.holdings, date_ms)
    turns.notifying = notifying = Notifying(broker, hub, turns.schedule)
    if security is not None:
        security.authorizer.on_denial = notifying.note_denial
        security.authorizer.peer_of = turns.input.peer_of
        security.on_refusal = notifying.note_refusal
    beans = Beans(managed, config)
    note_fault = partial(stats.faults.note, "", "management")
    ports.receiver = turns.managing = ManagementMessages(beans, calls, turns.schedule, note_fault)
    guard = partial(guard_of, security, config.management_rbac_prefix)
    return managed, [
        *management_routes(managed, calls, store.large, OPENAPI_PATHS),
        *routes_for_messages(loop, turns, calls, ports, security),
        *event_routes(managed, hub, ListWatches(managed, calls), guard),
        *jolokia_routes(Agent(beans), calls, guard, wall_clock_ms, config.web_access),
    ]
