"""A seeded world: several lives of one broker on one disk, with a crash between any two of them."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from artemis_py.config.settings import BrokerConfig
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.crash.check import (
    Broken,
    files_match,
    indexes_match,
    nothing_half_done,
    promises_hold,
    records_match,
    rings_fit,
    survivors_match,
)
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.message_operations import handle
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive, Telling
from tests.kit.crash.traffic import Fact, Trader
from tests.kit.disk import Fault, PowerCut, SimDisk
from tests.kit.in_process import START_MS, configuration

DUPLICATE_IDS_KEPT = 8
FAULTS = 0.2
"""How many lives end with a disk that fails instead of a power cut."""
MIXING = 0.5
"""How many worlds have clients that send persistent and transient messages in one burst."""
HANDLING = 0.5
"""How many worlds have an operator who moves, retries and removes messages."""
BURSTS = 0.25
"""How many of the steps are bursts there."""
CORE = f"""
<id-cache-size>{DUPLICATE_IDS_KEPT}</id-cache-size>
<message-expiry-scan-period>400</message-expiry-scan-period>
<address-queue-scan-period>700</address-queue-scan-period>
<addresses>
  <address name="work"><anycast><queue name="work"/></anycast></address>
  <address name="ring"><anycast><queue name="ring" ring-size="3"/></anycast></address>
  <address name="levels"><anycast><queue name="levels" priority-levels="3"/></anycast></address>
  <address name="sorted"><anycast><queue name="sorted" sort-key="tag"/></anycast></address>
  <address name="values"><anycast><queue name="values" queue-type="lvq" last-value-key="tag"/></anycast></address>
  <address name="bounded"><anycast>
    <queue name="bounded" overflow-policy="RING" max-depth-bytes="2000" max-message-ttl="20000"/></anycast></address>
  <address name="full"><anycast>
    <queue name="full" overflow-policy="REJECT" max-depth-messages="12"/></anycast></address>
  <address name="archive"><anycast>
    <queue name="archive" queue-type="standard" overflow-policy="FLOW_TO_DISK" max-depth-messages="3"/></anycast>
  </address>
  <address name="embargo"><anycast>
    <queue name="embargo" hold-on-publish="true" group-type="SHARED_GROUPS" group-key="tag"/></anycast></address>
  <address name="leased"><anycast>
    <queue name="leased" lease-period="400" max-per-subscription-backlog="5" max-deliveries="4"/></anycast></address>
  <address name="strict"><anycast>
    <queue name="strict" leasing="strict" max-per-subscription-backlog="5" max-cancels="2"/></anycast></address>
  <address name="over"><anycast>
    <queue name="over" underlying-address="news,auto.#,ring" default-publish-target="ring"/></anycast></address>
  <address name="barriers"><anycast>
    <queue name="barriers" barrier-expression="tag = 'a'" max-per-subscription-backlog="3"/></anycast></address>
  <address name="narrow"><anycast>
    <queue name="narrow" target-queue-depth="2" expiration="30s" delivery-semantics="at-most-once"/></anycast></address>
  <address name="news"><multicast><queue name="news.a"/><queue name="news.b"/></multicast></address>
  <address name="dead"><anycast><queue name="dead"/></anycast></address>
  <address name="late"><anycast><queue name="late"/></anycast></address>
</addresses>
<diverts>
  <divert name="via"><address>via</address><forwarding-address>work</forwarding-address>
    <exclusive>true</exclusive></divert>
</diverts>
<address-settings>
  <address-setting match="#">
    <dead-letter-address>dead</dead-letter-address>
    <expiry-address>late</expiry-address>
    <max-delivery-attempts>3</max-delivery-attempts>
  </address-setting>
  <address-setting match="work"><redelivery-delay>60</redelivery-delay></address-setting>
  <address-setting match="barriers"><redelivery-delay>60</redelivery-delay></address-setting>
  <address-setting match="embargo"><redelivery-delay>60</redelivery-delay></address-setting>
</address-settings>
"""
CONFIGURATION = configuration(CORE)
LITTLE_ROOM = (
    """<address-setting match="#">""",
    """<address-setting match="#">
    <max-size-messages>3</max-size-messages><page-size-bytes>2000</page-size-bytes>""",
)
PAGING = configuration(CORE.replace(*LITTLE_ROOM))
"""The same with little room in memory and small pages."""
LARGE_BYTES_MIN = 500
_LARGE_CORE = CORE.replace(
    "</diverts>",
    """<divert name="copy"><address>ring</address><forwarding-address>auto.one</forwarding-address></divert>
    </diverts>""",
)
LARGE_CONFIGURATION = configuration(_LARGE_CORE, f"stompMinLargeMessageSize={LARGE_BYTES_MIN}")
"""With a divert that copies: two messages then have one body."""
LARGE_PAGING = configuration(_LARGE_CORE.replace(*LITTLE_ROOM), f"stompMinLargeMessageSize={LARGE_BYTES_MIN}")
"""Both."""


@dataclass
class Report:
    """What a world did."""

    lives: int = 0
    operations: int = 0
    frames: int = 0
    promises: int = 0
    errors: int = 0
    segments: int = 0
    damages: int = 0
    faults: int = 0
    large_bodies: int = 0
    handled: int = 0
    """How often an operator did something with messages."""
    bursts: int = 0
    """How often persistent and transient messages came in one read."""
    fresh_deliveries: int = 0
    """How many persistent messages of the same life clients got."""
    depths: int = 0
    """How often the log told how deep queues are, and was right."""


class CrashWorld:
    """Everything in it follows from ``seed``. ``run`` raises Broken when something that must hold does not. With
    ``large`` the longer bodies go to files of their own; with ``mixes`` clients send persistent and transient messages
    in one burst (None: the seed decides).
    """

    def __init__(
        self, seed: int, *, lives: int = 4, steps: int = 60, large: bool = False, mixes: bool | None = None
    ) -> None:
        self.report = Report()
        self.rng = random.Random(seed)
        self.disk = SimDisk(self.rng)
        self._large = large
        self._seed = seed
        self._lives = lives
        self._steps = steps
        self.settings = JournalSettings(
            # With the bodies elsewhere the bindings could fill a small file: then compaction would have no end.
            file_bytes=self.rng.choice((16384, 32768, 65536) if large else (4096, 8192, 65536)),
            compact_files_min=self.rng.choice((2, 3, 5)),
            compact_percentage=self.rng.choice((30, 60, 90)),
            duplicate_ids_kept=DUPLICATE_IDS_KEPT,
            retains=self.rng.random() < 0.3,
        )
        self._archive = Archive() if self.settings.retains else None
        self._numbers = count(1)
        self._now_ms = START_MS
        self._pages = self.rng.random() < 0.5
        self._patience = self.rng.choice((0.05, 0.3, 0.9))
        """How likely the committer is to work after a step."""
        handles = random.Random(f"handles {seed}")
        self._handles = handles if handles.random() < HANDLING else None
        self._mixes = random.Random(f"mixes {seed}").random() < MIXING if mixes is None else mixes

    def run(self) -> Report:
        """All lives. What it raises says how to repeat it."""
        try:
            store, base = self.open(), Projection(DUPLICATE_IDS_KEPT)
            for _ in range(self._lives):
                store, base = self.live(store, base)
        except Exception as error:
            options = f"--lives {self._lives} --steps {self._steps}{' --large' if self._large else ''}"
            command = f"python -m tests.sim --seed {self._seed} {options}"
            error.add_note(f"seed {self._seed}; if the test changes no module, repeat with: {command}")
            raise
        return self.report

    def open(self) -> SimStore:
        """The files as they are."""
        return SimStore(self.disk, self.settings, self._archive)

    def configuration(self) -> BrokerConfig:
        """That of the next life."""
        plain, paging = (LARGE_CONFIGURATION, LARGE_PAGING) if self._large else (CONFIGURATION, PAGING)
        return paging if self._pages else plain

    def live(self, store: SimStore, base: Projection, cut_after: int | None = None) -> tuple[SimStore, Projection]:
        """One life, its crash, and the files as they are opened after it. ``cut_after`` disk operations the power goes;
        None: at random, or the disk fails instead.
        """
        if store.files.large.given_up:
            raise Broken(f"a crash left {store.files.findings}")
        life = Incarnation(self.configuration(), store, base, self._now_ms)
        traders: list[Trader] = []
        promised: list[Fact] = []
        if cut_after is None and self.rng.random() < FAULTS:
            at = self.disk.operations + self.rng.randrange(1, self._steps)
            error = self.rng.choice(("No space left on device", "Input/output error"))
            verb = self.rng.choice(("create", "write", "sync", "begin")[: 4 if self._large else 3])
            self.disk.fault = Fault(at, error, short=verb == "write" and self.rng.random() < 0.5, verbs=(verb,))
        else:
            self.disk.cut_at = self.disk.operations + (cut_after or self.rng.randrange(1, 4 * self._steps))
        with suppress(PowerCut):
            self._act(life, traders, promised)
        for trader in traders:
            self._dismiss(trader, promised)
        return self._crash(life, promised)

    def _act(self, life: Incarnation, traders: list[Trader], promised: list[Fact]) -> None:
        life.settle()
        rings_fit(life.broker)
        for _ in range(self.rng.randrange(1, self._steps)):
            if life.failure is not None:
                self._outputs_have_stopped(life, traders)
                return
            self._step(life, traders, promised)
        if self.rng.random() < 0.3:
            life.drain()
        if life.failure is None:
            records_match(life)
            if self._large and self.rng.random() < 0.3:  # every client goes, and the disk comes to rest
                for client in life.clients.values():
                    client.drop()
                life.drain()
                if life.failure is None and life.large.failure is None and life.journal.failure is None:
                    files_match(life)

    def _outputs_have_stopped(self, life: Incarnation, traders: list[Trader]) -> None:
        """The disk failed: nobody gets anything more."""
        self.report.faults += 1
        durable_lsn = life.journal.durable_lsn
        for trader in traders:
            trader.listen()
        heard = sum(trader.frames for trader in traders)
        for trader in traders:
            if not trader.client.is_closed:
                trader.act()
        life.drain()
        life.advance(1000)
        for trader in traders:
            trader.listen()
        became_durable = life.journal.failure is not None and life.journal.durable_lsn != durable_lsn
        if became_durable or sum(trader.frames for trader in traders) != heard:
            raise Broken(f"outputs went on after the disk had failed: {life.failure}")

    def _step(self, life: Incarnation, traders: list[Trader], promised: list[Fact]) -> None:
        rng = self.rng
        for trader in [one for one in traders if one.client.is_closed]:
            self._dismiss(trader, promised)
            traders.remove(trader)
        if not traders or (len(traders) < 3 and rng.random() < 0.2):
            names = {"k0", "k1", "k2"} - {trader.name for trader in traders}
            traders.append(Trader(life, rng, rng.choice(sorted(names)), self._numbers, in_parts=self._large))
        elif rng.random() < 0.1:
            life.advance(rng.choice((1, 60, 500, 6000)))
        elif rng.random() < 0.06:
            self._manage(life)
        elif self._handles is not None and self._handles.random() < 0.15:
            handle(life, self._handles)
            self.report.handled += 1
        elif self._mixes and rng.random() < BURSTS:
            self._burst(life, traders)
        else:
            rng.choice(traders).act()
        life.settle()
        while rng.random() < self._patience and life.step(rng):
            life.settle()
        if life.journal.durable_lsn > life.records.last_lsn:
            raise Broken(f"durable up to {life.journal.durable_lsn}, written up to {life.records.last_lsn}")
        if rng.random() < 0.05 and life.failure is None:
            records_match(life)

    def _burst(self, life: Incarnation, traders: list[Trader]) -> None:
        """One client sends both kinds of messages at once, and the others send something in the same turn: then the
        turn does not wait for the disk.
        """
        sender = self.rng.choice(traders)
        life.together = True
        self.report.bursts += sender.burst()
        for trader in traders:
            if trader is not sender:
                trader.send()
        life.together = False

    def _manage(self, life: Incarnation) -> None:
        queue = self.rng.choice(("work", "ring", "news.a"))
        move = self.rng.randrange(4)
        if move == 0:
            life.broker.queue_operations.pause(queue)
        elif move == 1:
            life.broker.queue_operations.resume(queue)
        elif move == 2:
            life.broker.queue_operations.set_ring_size(queue, self.rng.choice((-1, 0, 1, 5)))
        else:  # a cursor moves: that is asked for over HTTP, and the answer waits for the record
            name = self.rng.choice(("reader.a", "reader.b"))
            fields: dict[str, object] = {"name": name, "lsn": life.journal.durable_lsn, "moved_ms": life.loop.now_ms}
            if name in life.journal.index.cursors and self.rng.random() < 0.2:
                fields = {"name": name, "deleted": True}
            life.records.cursor_changed(fields)
        life.turns.schedule()

    def _dismiss(self, trader: Trader, promised: list[Fact]) -> None:
        trader.listen()
        promised += trader.promised
        trader.promised = []
        self.report.frames += trader.frames
        self.report.errors += len(trader.errors)

    # ---- the crash -------------------------------------------------------------------------------

    def _crash(self, life: Incarnation, promised: list[Fact]) -> tuple[SimStore, Projection]:
        report = self.report
        report.lives += 1
        report.operations += len(life.records.operations)
        report.promises += len(promised)
        report.fresh_deliveries += life.deliveries.fresh
        report.large_bodies += life.large.counts()["begun"]
        report.segments = max(report.segments, life.journal.segments[-1].number)
        if life.failure is not None and self.rng.random() < 0.5:
            self.disk.restart()
        else:
            self.disk.crash()
        store = self.recover()
        recovered = store.recovered
        report.damages += len(recovered.damages)
        wrong = [str(damage) for damage in recovered.damages if not damage.torn]
        if wrong:
            raise Broken(f"a crash was taken for damage: {wrong}")
        indexes_match(self.disk)
        promises_hold(life.projection(life.journal.durable_lsn), promised)
        found = survivors_match(life, recovered, DUPLICATE_IDS_KEPT)
        nothing_half_done(found, life.broker)
        if self._archive is not None:
            self._log_is_true(self._archive, found)
        self._now_ms = life.loop.now_ms + self.rng.choice((0, 1, 1000, 3_600_000, -5000))
        return store, found.restarted()

    def _log_is_true(self, archive: Archive, found: Projection) -> None:
        """What the log of all lives adds up to is what recovery found."""
        telling = Telling().read(archive.files(self.disk))
        self.report.depths = telling.depths
        for queue_id in found.queues:
            there = {item.identity[0] for item in found.items(queue_id)}
            told = set(telling.live.get(queue_id, ()))
            if there != told:
                more, less = sorted(there - told), sorted(told - there)
                raise Broken(f"queue {queue_id} has {more} beyond what the log adds up to, and lacks {less}")

    def recover(self) -> SimStore:
        """Open the files; the power may go again meanwhile."""
        while True:
            if self.rng.random() < 0.3:
                self.disk.cut_at = self.disk.operations + self.rng.randrange(1, 8)
            try:
                store = self.open()
                self.disk.cut_at = None
                return store
            except PowerCut:
                self.disk.crash()
