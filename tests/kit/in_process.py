"""A broker with its real sessions, connections and turns, on a fake loop: everything but sockets and time."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Self

from artemis_py.config.reader import loads
from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.core.replay.manager import Replays
from artemis_py.record_log import Durability, MemoryLog
from artemis_py.security.login import Logins
from artemis_py.server.connection import Connection, StompAcceptor
from artemis_py.server.logins.networks import ConnectionsBeforeLogin
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import READ_BYTES_MAX, Turns
from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.stomp.service import StompService
from artemis_py.stomp.temporaries import Temporaries
from artemis_py.storage.bodies import LargeStore
from tests.kit.committer import SteppedCommitter
from tests.kit.disk import SimDisk
from tests.kit.fake_loop import FakeLoop, FakeTransport
from tests.kit.frames import ServerFrame, ServerStream, frame

START_MS = 1_700_000_000_000
PREFIXES = "anycastPrefix=/queue/;multicastPrefix=/topic/"


@functools.cache
def configuration(core: str = "", acceptor: str = "") -> BrokerConfig:
    """A configuration with one STOMP acceptor: ``core`` is XML below the core element, ``acceptor`` more parameters.
    No broker changes it.
    """
    params = f"protocols=STOMP;{PREFIXES}" + (f";{acceptor}" if acceptor else "")
    return loads(
        f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
        <acceptors><acceptor name="stomp">tcp://127.0.0.1:61613?{params}</acceptor></acceptors>
        {core}
        </core></configuration>"""
    )


def counted_names() -> Temporaries:
    """Temporary destinations with the secrets t1, t2, ... in place of random ones, so that a run can be repeated."""
    numbers = count(1)
    return Temporaries(lambda: f"t{next(numbers)}")


class Client:
    """One connection as its client sees it."""

    def __init__(
        self, world: SteppedBroker, socket: Callable[[FakeLoop, Connection], FakeTransport] = FakeTransport
    ) -> None:
        self._world = world
        connection = world.acceptance.connect()
        self.connection: Connection = connection
        self.transport = socket(world.loop, connection)
        self.stream = ServerStream()
        self.unread = bytearray()
        """What the broker has not taken from this client."""
        connection.connection_made(self.transport)
        world.loop.run()

    def send(self, data: bytes) -> None:
        """Write bytes; the broker reads them when it wants to."""
        self.unread += data
        self.pump()
        self._world.settle()

    def frame(self, command: str, *headers: str, body: str = "") -> None:
        """Write one frame."""
        self.send(frame(command, *headers, body=body.encode()))

    def greet(self, *headers: str, version: str = "1.2") -> Self:
        """Say CONNECT, and do not look at what answers it."""
        self.frame("CONNECT", f"accept-version:{version}", "host:x", *headers)
        self.collect().clear()
        return self

    def pump(self) -> bool:
        """Hand over what the broker wants to read; True when there was something."""
        transport = self.transport
        delivered = False
        while self.unread and transport.reading and not (transport.closed or transport.lost):
            buffer = self.connection.get_buffer(-1)
            size = min(len(self.unread), READ_BYTES_MAX)
            buffer[:size] = self.unread[:size]
            del self.unread[:size]
            self.connection.buffer_updated(size)
            delivered = True
            if self.unread and not self._world.together:
                self._world.loop.run()
        return delivered

    def half_close(self) -> None:
        """Send nothing more, go on reading."""
        assert self.connection.eof_received() is True
        self._world.settle()

    def drop(self) -> None:
        """The connection breaks."""
        self.transport.lose()
        self._world.settle()

    def stall(self) -> None:
        """Stop reading."""
        self.transport.client_reads = False

    def read_again(self) -> None:
        """Read what waits, and go on."""
        self.transport.read_again()
        self._world.settle()

    @property
    def is_closed(self) -> bool:
        """Did the broker end the connection?"""
        return self.transport.ended or self.transport.closed or self.transport.lost

    def collect(self) -> list[ServerFrame]:
        """Frames that arrived and were not looked at; the caller removes what it has seen."""
        taken = self.transport.taken
        self.stream.take(bytes(taken))
        taken.clear()
        return self.stream.frames

    def heard(self) -> list[ServerFrame]:
        """The frames that arrived since the last look."""
        frames = self.collect()
        found = list(frames)
        frames.clear()
        return found

    def says(self, data: bytes | str = b"") -> list[ServerFrame]:
        """Write, and return what came back."""
        self.send(data if isinstance(data, bytes) else data.encode())
        return self.heard()


class SteppedBroker:
    """A broker whose turns run on a fake loop, its acceptor, and its clients by name, which ``connect`` makes. The
    ``threads`` of its disk work when they are told to.
    """

    disk_works = False
    """Does the disk work when the broker rests?"""
    together = False
    """Gather events for one turn instead of running turns after each."""

    def __init__(
        self,
        config: BrokerConfig,
        broker: Broker,
        log: Durability,
        large: LargeStore,
        threads: Sequence[SteppedCommitter],
        now_ms: int,
        *,
        replays: Replays | None = None,
        logins: Logins | None = None,
        before_login_max: int = -1,
        connect: Callable[[Any], Client] = Client,
    ) -> None:
        self.loop = FakeLoop(now_ms)
        self.stats = ServerStats()
        self.broker = broker
        self.large = large
        self.threads = threads
        self.replays = replays
        self.turns = Turns(self.loop.as_loop(), broker, log, self.stats, self.loop.clock_ms, large)
        for thread in threads:
            thread.wake = self.turns.disk_has_news
        acceptor = config.acceptors[0]
        service = StompService(
            broker,
            acceptor,
            self.stats.traffic,
            counted_names(),
            large,
            replays=replays,
            logins=logins,
            wake=self.turns.schedule,
        )
        self.acceptance = StompAcceptor(
            self.turns,
            service,
            acceptor.int_param("connectionsAllowed"),
            acceptor.int_param("handshakeTimeout"),
            ConnectionsBeforeLogin(acceptor.int_param("maxConnectionsBeforeLogin", before_login_max)),
            WebSocketRules.of(acceptor),
        )
        self._connect = connect
        self.clients: dict[str, Client] = {}

    def client(self, name: str = "") -> Client:
        """The client of that name, connected at its first use; without a name a new one."""
        name = name or f"client {len(self.clients)}"
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = self._connect(self)
        return client

    @property
    def now_ms(self) -> int:
        """The wall clock."""
        return self.loop.clock_ms()

    def queue(self, name: str) -> Queue:
        """A queue that must exist."""
        assert name in self.broker.queues, f"no queue {name}; there are {sorted(self.broker.queues)}"
        return self.broker.queues[name]

    def settle(self) -> None:
        """Run turns until the broker rests and has read what it wants to read, and each thread of a disk that works has
        done its work, a step at a time; not while events are held together.
        """
        if self.together:
            return
        self.loop.run()
        while any(client.pump() for client in list(self.clients.values()) if client.unread) or (
            self.disk_works and sum(map(SteppedCommitter.step, self.threads))
        ):
            self.loop.run()

    def advance(self, duration_ms: int) -> None:
        """Let time pass."""
        self.loop.advance(duration_ms)
        self.settle()

    def set_clock(self, by_ms: int) -> None:
        """Somebody sets the wall clock; the server notices."""
        self.loop.ahead_ms += by_ms
        self.broker.clock.set_ahead(self.broker.clock.shift_ms + by_ms)
        self.turns.schedule()
        self.settle()


class DiskLog(MemoryLog):
    """Numbers its records of messages. ``seal`` makes them durable at once if ``is_fast``; otherwise ``poll`` finds
    durable what the test put into ``synced_lsn``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_fast = False
        self.synced_lsn = 0
        self.inlines: list[bool] = []
        """For each turn, whether it might have waited for the disk."""

    def number(self, *_: Any, **__: Any) -> int:
        """Of the next record."""
        self.last_lsn += 1
        return self.last_lsn

    published = number

    def poll(self) -> None:
        self.durable_lsn = max(self.durable_lsn, self.synced_lsn)

    def seal(self) -> None:
        self.inlines.append(self.inline)
        if self.is_fast:
            self.durable_lsn = self.last_lsn


class InProcessBroker(SteppedBroker):
    """One broker without a journal. Large bodies are on a disk in memory, which works when the broker rests, unless
    ``disk_works`` is false.
    """

    def __init__(
        self,
        config: BrokerConfig,
        now_ms: int = START_MS,
        *,
        log: MemoryLog | None = None,
        logins: Logins | None = None,
        before_login_max: int = -1,
        connect: Callable[[Any], Client] = Client,
    ) -> None:
        self.log = log or MemoryLog()
        self.disk = SimDisk(random.Random(0))
        self.disk_works = True
        threads = [SteppedCommitter() for _ in range(2)]
        super().__init__(
            config, Broker(config, self.log, now_ms), self.log, LargeStore(self.disk, *threads), threads, now_ms,
            logins=logins, before_login_max=before_login_max, connect=connect,
        )  # fmt: skip
        self.turns.schedule()
        self.settle()
