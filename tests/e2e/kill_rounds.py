"""A broker that is killed or stopped and started again on the same files, with clients at work all the while; alone, or
as one of a pair.
"""

from __future__ import annotations

import signal
import statistics
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.e2e.kill_actors import (
    Actor,
    Live,
    Seen,
    Unfinished,
    come_and_go,
    commit,
    consume,
    key_of,
    move,
    produce,
    replay,
    schedule,
    scrape,
)
from tests.e2e.kill_ledger import Ledger, Session
from tests.kit.client import connected, frame, is_greeted
from tests.kit.process import BOTH, STOP_S, SWEPT, BrokerProcess, configuration, retained

WORK_S = (0.02, 0.7)
START_S = (0.0, 0.4)
KILLED_WHILE_STARTING = 0.15
PAGING = 0.5
"""How often a broker starts with room for a few messages in memory; what it pages, the next one finds."""
DRAWS = "plain", "single", "left", "right", "in", "out", "again", "fan::fan.one", "fan::fan.two"
"""Every queue, as a destination to read it by."""
ROUTED = "artemis_routed_message_count"
STOPS = [signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM], [signal.SIGINT]

CORE = """\
    <journal-file-size>256K</journal-file-size>
    <journal-compact-min-files>3</journal-compact-min-files>
    <journal-compact-percentage>50</journal-compact-percentage>
"""
ADDRESSES = """\
      <address name="fan"><multicast><queue name="fan.one"/><queue name="fan.two"/></multicast></address>
      <address name="single"><anycast><queue name="single" queue-type="standard"/></anycast></address>
      <address name="out"><anycast>
        <queue name="out" queue-type="standard" overflow-policy="FLOW_TO_DISK" max-depth-messages="9"/></anycast>
      </address>
"""
POLICY = """
    <ha-policy><shared-store><{0}>{1}</{0}></shared-store></ha-policy>
"""
ROLES = POLICY.format("primary", ""), POLICY.format("backup", "<allow-failback>false</allow-failback>")
BACKLOG_BATCH = 500
BACKLOG_BODY = bytes(1000)
PAGES = """
        <max-size-messages>{messages}</max-size-messages>
        <max-size-bytes>{size}</max-size-bytes>
        <page-size-bytes>{page_size}</page-size-bytes>
        <max-read-page-bytes>1M</max-read-page-bytes>
"""


@dataclass
class Tally:
    """What a run amounted to."""

    kills: int = 0
    kills_while_starting: int = 0
    restarts_that_recovered: int = 0
    segments: int = 0
    segments_left: int = 0
    rounds_with_pages: int = 0


@dataclass
class KillRun:
    """Rounds of work and sudden death on one data directory. ``seed`` decides the moments and the clients' choices; how
    bytes and threads interleave it does not decide. With ``retention`` the log is kept and replayed meanwhile. With
    ``stops`` each round ends in good order, which must lose nothing and say nothing.
    """

    folder: Path
    seed: int
    retention: bool = False
    stops: bool = False
    policies: tuple[str, ...] = ("",)
    """XML: what the processes may be told of each other; the first is of the first one."""
    ledger: Ledger = field(default_factory=Ledger)
    tally: Tally = field(default_factory=Tally)
    unfinished: Unfinished = field(default_factory=Unfinished)
    paging: str = ""
    """XML for the addresses' settings, of this round."""
    brokers: list[BrokerProcess] = field(default_factory=list)
    """All processes so far."""
    actors: list[Actor] = field(default_factory=list)
    """Those of the last round."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.replays = [Seen("plain"), Seen("left", {"rate": "2MB"})] if self.retention else []

    def run(self, kills: int) -> None:
        """Kills the broker so many times, then reads everything that is left, and judges."""
        try:
            while self.tally.kills < kills:
                self._round()
                self.ledger.round += 1
            self._read_all()
        finally:
            for broker in self.brokers:
                broker.kill()
        self.ledger.judge()

    # ---- one round -------------------------------------------------------------------------------

    def _round(self) -> None:
        self.paging = ""
        if self.random.random() < PAGING:  # little room, and pages of a few messages or of a few hundred
            pick = self.random.choice
            pages = {"messages": pick((0, 3, 30)), "size": pick(("4K", "1M")), "page_size": pick(("4K", "64K", "1M"))}
            self.paging = PAGES.format(**pages)
        broker = self._start()
        actors: list[Actor] = []
        if self.random.random() < KILLED_WHILE_STARTING and not self.stops:
            time.sleep(self.random.uniform(*START_S))  # any moment of the start
            self.tally.kills_while_starting += 1
        else:
            actors = self._work(broker)
        code = broker.process.poll()
        if code not in (None, 0 if self.stops else -9):
            self.ledger.note(f"the broker ended by itself with {code}: {broker.said}")
        broker.kill()
        for actor in actors:
            actor.join()
        self.actors = actors
        self.tally.kills += 1
        self._look_at_what_it_said(broker)

    def _start(self) -> BrokerProcess:
        number = len(self.brokers)
        settings = (
            '<address-setting match="#"><max-delivery-attempts>-1</max-delivery-attempts>'
            f"{self.paging}</address-setting>"
            '<address-setting match="ring"><default-ring-size>1</default-ring-size></address-setting>'
        )
        core = CORE + (SWEPT if self.stops else "") + (retained(self.folder) if self.retention else "")
        core += self.random.choice(self.policies) if self.brokers else self.policies[0]
        file = self.folder / f"broker-{number}.xml"
        file.write_text(configuration(BOTH, folder=self.folder, core=core, addresses=ADDRESSES, settings=settings))
        self.brokers.append(BrokerProcess(["run", str(file)], self.folder / f"broker-{number}.log"))
        return self.brokers[-1]

    def _work(self, broker: BrokerProcess) -> list[Actor]:
        """Clients at work, up to the moment of the kill."""
        broker.await_state("ready")
        actors = self._send_in(broker)
        if self.stops:
            broker.eventually("schedules", lambda: broker.metric(ROUTED, address="ring"), lambda n: n > 100)
        time.sleep(self.random.uniform(*WORK_S))  # any moment of the work
        if self.stops:
            for one in self.random.choice(STOPS):
                broker.process.send_signal(one)
            code = broker.process.wait(STOP_S)
            if code or "warning" in broker.said.partition("is ready")[2]:
                self.ledger.note(f"the broker ended with {code}: {broker.said}")
        return actors

    def _send_in(self, broker: BrokerProcess) -> list[Actor]:
        """Everybody connects, consumers first, then all begin to work."""
        seed, number, port = self.random.getrandbits(32), self.ledger.round, broker.port
        lives: dict[str, Live] = {
            "c-plain": partial(consume, destination="/queue/plain", cumulative=True),
            "c-single-1": partial(consume, destination="/queue/single", keeps=True),
            "c-single-2": partial(consume, destination="/queue/single", keeps=True),
            "c-left": partial(consume, destination="/queue/left"),
            "c-right": partial(consume, destination="/queue/right", cumulative=True),
            "c-one": partial(consume, destination="fan::fan.one", cumulative=True),
            "c-two": partial(consume, destination="fan::fan.two"),
            "c-out": partial(consume, destination="/queue/out"),
            "c-again": partial(consume, destination="/queue/again"),
            **{f"replay-{place}": partial(replay, seen=seen) for place, seen in enumerate(self.replays)},
            "mover": partial(move, source="in", target="out"),
            f"plain-{number}a": partial(produce, destination="/queue/plain", queues=["plain"]),
            f"plain-{number}b": partial(produce, destination="/queue/plain", queues=["plain"]),
            f"single-{number}": partial(produce, destination="/queue/single", queues=["single"]),
            f"in-{number}": partial(produce, destination="/queue/in", queues=["in"]),
            f"fan-{number}": partial(produce, destination="/topic/fan", queues=["fan.one", "fan.two"]),
            f"pair-{number}": partial(commit, queues=["left", "right"]),
            "again": partial(commit, queues=["again"], again=self.unfinished),
        }
        if self.stops:
            lives |= {
                "guest-1": partial(come_and_go, port=port),
                "guest-2": partial(come_and_go, port=port),
                "scheduler": schedule,
                "scraper": partial(scrape, url=f"{broker.url}/metrics"),
            }
        actors: list[Actor] = []
        for name, live in lives.items():
            try:
                actors.append(Actor(name, self.ledger, seed, live, port))
            except (OSError, AssertionError) as error:
                self.ledger.note(f"{name} cannot connect: {error!r}")
        for actor in actors:
            actor.start()
        return actors

    # ---- the end ---------------------------------------------------------------------------------

    def _read_all(self) -> None:
        """By a new broker: one that waits may have too little room for everything at once."""
        self.brokers[-1].kill()
        self.paging = ""
        broker = KillRun._start(self)
        broker.await_state("ready")
        for seen in self.replays:
            seen.headers["completed"] = "true"
            with connected(broker.port) as client:
                replay(None, client, seen=seen)
        self.ledger.is_end = True
        for destination in DRAWS:  # acknowledging nothing; a last message of our own says that it was all
            session, queue = Session(), destination.rpartition("::")[2]
            with connected(broker.port) as client:
                client.subscribe(destination)
                client.ask("SEND", {"destination": destination}, b"the end")
                while (message := client.message()).body != b"the end":
                    self.ledger.delivered(session, key_of(queue, message.body))
        if (code := broker.stop()) != 0:
            self.ledger.note(f"the broker ended with {code}: {broker.said}")
        self._look_at_what_it_said(broker)

    def _look_at_what_it_said(self, broker: BrokerProcess) -> None:
        if "recovered" in broker.said:
            self.tally.restarts_that_recovered += 1
        for line in broker.said.splitlines():
            if "DAMAGED" in line or "Traceback" in line:
                self.ledger.note(line)
        self.tally.rounds_with_pages += any((self.folder / "paging").glob("*.page"))
        files = (self.folder / "journal").glob("artemis-journal-*.log")
        numbers = [int(path.stem.rpartition("-")[2]) for path in files]
        self.tally.segments = max([self.tally.segments, *numbers])
        self.tally.segments_left = len(numbers)

    def summary(self) -> str:
        """One line about the run."""
        fates = self.ledger.fates.values()
        promised = sum(fate.promised for fate in fates)
        settled = sum(fate.settled_round > 0 for fate in fates)
        tally = self.tally
        return (
            f"seed {self.seed}: {tally.kills} kills ({tally.kills_while_starting} while starting),"
            f" {promised} receipted messages, {settled} receipted acknowledgements,"
            f" {sum(group.promised for group in self.ledger.groups.values())} receipted transactions,"
            f" {self.unfinished.repeated_count} repeated ({self.unfinished.duplicate_count} had happened),"
            f" {self.ledger.delivered_count} deliveries, {tally.segments} journal files written,"
            f" {tally.segments_left} left, pages in {tally.rounds_with_pages} rounds,"
            f" {len(self.ledger.problems)} problems"
        )


class Gap(NamedTuple):
    """A takeover: how long no broker answered, and how much the new one had to read."""

    gap_ms: float
    journal_bytes: int


@dataclass
class PairKillRun(KillRun):
    """Like a KillRun, with a second process that waits: the next round's broker. ``backlog`` messages that nobody
    wants make the journal larger. What is measured is the gap: from the last thing that a client heard of the broker
    that was killed to the first CONNECTED of the other one.
    """

    policies: tuple[str, ...] = ROLES
    backlog: int = 0
    gaps: list[Gap] = field(default_factory=list)
    _waiting: BrokerProcess | None = None

    def run(self, kills: int) -> None:
        """Kills the working broker so many times, then reads everything that is left, and judges."""
        try:
            first = super()._start()
            first.await_state("ready")
            send = frame("SEND", {"destination": "/queue/backlog", "persistent": "true"}, BACKLOG_BODY)
            with connected(first.port) as client:
                for _ in range(0, self.backlog, BACKLOG_BATCH):
                    client.raw(send * (BACKLOG_BATCH - 1))
                    client.ask("SEND", {"destination": "/queue/backlog", "persistent": "true"}, BACKLOG_BODY)
            self._waiting = super()._start()
            self._waiting.await_state("the lock of ")
            first.kill()
            super().run(kills)
        finally:
            for broker in self.brokers:
                broker.kill()

    def _start(self) -> BrokerProcess:
        """The broker that has waited, and works from now on; it may still be taking over."""
        working, self._waiting = self._waiting, None
        return working or super()._start()

    def _work(self, broker: BrokerProcess) -> list[Actor]:
        """The takeover is as a client sees it: it tries until somebody answers CONNECTED."""
        journal_bytes = sum(path.stat().st_size for path in (self.folder / "journal").glob("artemis-journal-*.log"))
        broker.eventually(
            "somebody takes over", lambda: (broker.note_ports(), is_greeted(broker.port)), lambda seen: seen[1]
        )
        if self.actors:
            heard = max(actor.client.heard for actor in self.actors)
            self.gaps.append(Gap((time.monotonic() - heard) * 1000, journal_bytes))
        broker.await_state("ready")
        self._waiting = super()._start()  # not before: the two would compete for the lock
        actors = super()._work(broker)
        self._waiting.await_state("the lock of ")  # otherwise the gap would be the start of a process
        return actors

    def summary(self) -> str:
        """The line about the run, and one about the gaps."""
        if not self.gaps:
            return f"{super().summary()}\nno takeover was measured"
        gaps = sorted(gap.gap_ms for gap in self.gaps)
        sizes = [gap.journal_bytes / 1e6 for gap in self.gaps]
        nine = gaps[min(len(gaps) - 1, int(len(gaps) * 0.95))]
        return (
            f"{super().summary()}\n"
            f"{len(gaps)} takeovers: nobody answered for {statistics.median(gaps):.0f} ms (median),"
            f" {nine:.0f} ms (95 %), {gaps[-1]:.0f} ms at most; live journal {statistics.median(sizes):.1f} MB"
            f" (median), {max(sizes):.1f} MB at most"
        )
