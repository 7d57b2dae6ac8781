"""One life of a broker, from recovery to the next crash: real turns, sessions, core and journal on a simulated disk."""

from __future__ import annotations

import random
from functools import partial

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.errors import ArtemisError
from artemis_py.server.connection import Acceptance
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService
from artemis_py.storage.body_recovery import take_over
from artemis_py.storage.index import Segment
from artemis_py.storage.journal_settings import JournalSettings
from artemis_py.storage.large import LargeStore
from artemis_py.storage.page_bodies import hold_bodies
from artemis_py.storage.pages import delete_leftovers
from artemis_py.storage.recovery import Recovered
from artemis_py.storage.sidecars import delete_orphans, delete_segment, write_index
from tests.sim.committer import SteppedCommitter
from tests.sim.disk import SimDisk
from tests.sim.paging import WitnessedPages
from tests.sim.projection import Projection
from tests.sim.retained import Archive
from tests.sim.witness import WitnessedJournal
from tests.wire.fakes import FakeLoop
from tests.wire.in_process import Client
from tests.wire.names import counted_names


class Incarnation:
    """A running broker. ``base`` is the durable state it began with, ``archive`` gets the segments that retire.

    Each client of ``tests.wire.in_process`` runs on it as on an ``InProcessBroker``.
    """

    def __init__(
        self,
        config: BrokerConfig,
        settings: JournalSettings,
        disk: SimDisk,
        recovered: Recovered,
        base: Projection,
        now_ms: int,
        archive: Archive | None = None,
    ) -> None:
        self.base = base
        self.disk = disk
        self.loop = FakeLoop(now_ms)
        self.clients: list[Client] = []
        self.together = False
        self.stats = ServerStats()
        self.committer = SteppedCommitter(self._wake)
        self.reader = SteppedCommitter(self._wake)
        self.told: list[str] = []
        delete_orphans(disk)
        delete_leftovers(disk, recovered.index.pages.pages())
        pages = WitnessedPages(disk, self.reader, self.told.append)
        pages.watch()
        self.journal = WitnessedJournal(
            disk,
            self.committer,
            settings,
            recovered.index,
            recovered.segments,
            recovered.next_lsn,
            recovered.batch_number,
            partial(delete_segment, disk) if archive is None else partial(archive.retire, disk),
            pages=pages,
            closed=self._write_index,
        )
        self.journal.watch(pages)
        self.bodies = [SteppedCommitter(self._wake), SteppedCommitter(self._wake)]
        """What writes large bodies, and what reads them."""
        self.large = LargeStore(disk, *self.bodies)
        self.given_up = hold_bodies(disk, recovered.index.pages, self.journal, self.large)
        self.given_up += take_over(recovered.index, self.journal, self.large)
        """Messages whose bodies were not whole; a crash must not make any."""
        self.broker = Broker(config, self.journal, now_ms, recovered.index.keepsake(), pages)
        self.turns = Turns(self.loop.as_loop(), self.broker, self.journal, self.stats, self.loop.clock_ms, self.large)
        acceptor = config.acceptors[0]
        service = StompService(self.broker, acceptor, self.stats.traffic, counted_names(), self.large)
        self.acceptance = Acceptance(self.turns, service, 1000, acceptor.int_param("handshakeTimeout"))
        self.turns.on_failure = self._fail
        self.failure: ArtemisError | None = None
        self.turns.schedule()

    def _fail(self, failure: ArtemisError) -> None:
        self.failure = failure

    def _wake(self) -> None:
        self.turns.schedule()

    def _write_index(self, segment: Segment) -> None:
        if segment.index is not None and write_index(self.disk, segment.index):
            segment.index = None

    def connect(self) -> Client:
        """A new connection."""
        client = Client(self)  # type: ignore[arg-type]
        self.clients.append(client)
        return client

    def settle(self) -> None:
        """Run turns until the broker rests; the disk does nothing."""
        self.loop.run()
        while any(client.pump() for client in self.clients):
            self.loop.run()

    def step(self, rng: random.Random | None = None) -> bool:
        """Let the disk do one thing, for the journal or for large bodies; False when there is nothing to do."""
        busy = [one for one in (self.committer, self.reader, *self.bodies) if not one.idle]
        if not busy:
            return False
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
        for number, operation in self.journal.operations:
            if lsn is None or number <= lsn:
                projection.apply(operation)
        return projection
