"""One life of a broker, from recovery to the next crash: real turns, sessions, core and journal on a simulated disk."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.recovery_points import Backfills
from artemis_py.errors import ArtemisError
from artemis_py.server.connection import StompAcceptor
from artemis_py.server.replays import ReplayTurns
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService
from tests.kit.crash.deliveries import Deliveries, Medium
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.fake_loop import FakeLoop
from tests.kit.in_process import Client, counted_names


class Incarnation:
    """A running broker. ``base`` is the durable state it began with, which is that of ``store``.

    Each client of ``tests.kit.in_process`` runs on it as on an ``InProcessBroker``.
    """

    def __init__(self, config: BrokerConfig, store: SimStore, base: Projection, now_ms: int) -> None:
        self.base = base
        self.disk, self.journal, self.large = store.disk, store.files.journal, store.files.large
        self.records = store.records
        self.committer, self.log_files, self._threads = store.committer, store.log_files, store.threads
        self.loop = FakeLoop(now_ms)
        self.clients: list[Client] = []
        self.together = False
        """Gather what clients send for one turn instead of running turns after each."""
        self.deliveries = Deliveries(self.records, Medium(store.disk), base.history.message_ids)
        self.listeners: list[Callable[[], None]] = []
        """Called before the disk does anything: what clients got until then was durable before, or it was too early."""
        self.stats = ServerStats()
        self.broker = Broker(config, self.records, now_ms, store.files.recovered_state(), store.files.pages)
        self.turns = Turns(self.loop.as_loop(), self.broker, self.journal, self.stats, self.loop.clock_ms, self.large)
        self.replays: Replays | None = None
        if store.replay_log is not None:
            self.replays = Replays(store.replay_log, self.broker.holdings, self.broker.clock, config.wildcards)
            fills = Backfills(self.broker.host, self.broker.bindings, self.broker.registry, self.replays)
            fills.begin()
            self.turns.replays = ReplayTurns(self.replays, fills, self.journal, self.turns.output, self.turns.isolation)
        acceptor = config.acceptors[0]
        service = StompService(
            self.broker, acceptor, self.stats.traffic, counted_names(), self.large, replays=self.replays
        )
        self.acceptance = StompAcceptor(self.turns, service, 1000, acceptor.int_param("handshakeTimeout"))
        self.failure: ArtemisError | None = None
        self.turns.on_failure = partial(setattr, self, "failure")
        for thread in store.threads:
            thread.wake = self.turns.disk_has_news
        self.turns.schedule()

    def connect(self) -> Client:
        """A new connection."""
        client = Client(self)  # type: ignore[arg-type]
        self.clients.append(client)
        return client

    def settle(self) -> None:
        """Run turns until the broker rests; the disk does nothing. Not while events are held together."""
        if self.together:
            return
        self.loop.run()
        while any(client.pump() for client in self.clients):
            self.loop.run()

    def step(self, rng: random.Random | None = None) -> bool:
        """Let the disk do one thing, for the journal or for large bodies; False when there is nothing to do."""
        busy = [one for one in self._threads if not one.idle]
        if not busy:
            return False
        for listen in self.listeners:
            listen()
        return (busy[0] if rng is None or len(busy) == 1 else rng.choice(busy)).step()

    def drain(self) -> None:
        """Run turns and the disk until there is nothing to do."""
        self.settle()
        while self.step() or self.journal.has_pending or self.large.has_pending:
            if self.journal.failure is not None or self.large.failure is not None:
                return
            self.turns.schedule()
            self.settle()

    def advance(self, duration_ms: int) -> None:
        """Let time pass."""
        self.loop.advance(duration_ms)
        self.settle()

    def projection(self, lsn: int | None = None) -> Projection:
        """The state after all operations up to ``lsn`` (None: all there are)."""
        projection = self.base.restarted()
        for number, operation in self.records.operations:
            if lsn is None or number <= lsn:
                projection.apply(operation)
        return projection
