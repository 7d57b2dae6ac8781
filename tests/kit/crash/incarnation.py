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
from artemis_py.server.replays import ReplayTurns
from tests.kit.crash.deliveries import Deliveries, Medium
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.in_process import SteppedBroker


class Incarnation(SteppedBroker):
    """A running broker. ``base`` is the durable state it began with, which is that of ``store``. Only ``step`` has
    the disk work, unless ``disk_works``.
    """

    def __init__(self, config: BrokerConfig, store: SimStore, base: Projection, now_ms: int) -> None:
        files, self.records = store.files, store.records
        broker = Broker(config, self.records, now_ms, files.recovered_state(), files.pages)
        replays = None
        if store.replay_log is not None:
            replays = Replays(store.replay_log, broker.holdings, broker.clock, config.wildcards)
        super().__init__(config, broker, files.journal, files.large, store.threads, now_ms, replays=replays)
        if replays is not None:
            fills = Backfills(broker.host, broker.bindings, broker.registry, replays)
            fills.begin()
            self.turns.replays = ReplayTurns(replays, fills, files.journal, self.turns.output, self.turns.isolation)
        self.base = base
        self.disk, self.journal = store.disk, files.journal
        self.committer, self.log_files = store.committer, store.log_files
        self.deliveries = Deliveries(self.records, Medium(store.disk), base.history.message_ids)
        self.listeners: list[Callable[[], None]] = []
        """Called before the disk does anything: what clients got until then was durable before, or it was too early."""
        self.failure: ArtemisError | None = None
        self.turns.on_failure = partial(setattr, self, "failure")
        self.turns.schedule()

    def step(self, rng: random.Random | None = None) -> bool:
        """Let the disk do one thing, for the journal or for large bodies; False when there is nothing to do."""
        busy = [one for one in self.threads if not one.idle]
        if not busy:
            return False
        for listen in self.listeners:
            listen()
        return (busy[0] if rng is None or len(busy) == 1 else rng.choice(busy)).step()

    def drain(self) -> None:
        """Run turns and the disk until there is nothing to do, or the broker or its disk has failed."""
        self.settle()
        while self.step() or self.journal.has_pending or self.large.has_pending:
            if any(failure is not None for failure in (self.failure, self.journal.failure, self.large.failure)):
                return
            self.turns.schedule()
            self.settle()

    def projection(self, lsn: int | None = None) -> Projection:
        """The state after all operations up to ``lsn`` (None: all there are)."""
        projection = self.base.restarted()
        for number, operation in self.records.operations:
            if lsn is None or number <= lsn:
                projection.apply(operation)
        return projection
