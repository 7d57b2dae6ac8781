"""A broker that is killed or stopped and started again on the same files, with clients at work all the while."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.e2e.kill_actors import (
    Actor,
    Live,
    Seen,
    Unfinished,
    come_and_go,
    commit,
    commit_again,
    consume,
    move,
    produce,
    read_to_the_end,
    replay,
    schedule,
    scrape,
)
from tests.e2e.kill_ledger import Ledger
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


class KillRun:
    """Rounds of work and sudden death on one data directory. ``seed`` decides the moments and the clients' choices; how
    bytes and threads interleave it does not decide. With ``retention`` the log is kept and replayed meanwhile. With
    ``stops`` each round ends in good order, which must lose nothing and say nothing.
    """

    def __init__(self, folder: Path, seed: int, *, retention: bool = False, stops: bool = False) -> None:
        self.folder = folder
        self.seed = seed
        self.random = Random(seed)
        self.ledger = Ledger()
        self.tally = Tally()
        self.trouble: list[str] = []
        self.unfinished = Unfinished()
        self._file = folder / "broker.xml"
        self._retention = retained(folder) if retention else ""
        self._stops = stops
        self.replays = [Seen("plain"), Seen("left", {"rate": "2MB"})] if retention else []
        self._broker: BrokerProcess | None = None

    def run(self, kills: int) -> None:
        """Kills the broker so many times, then reads everything that is left, and judges."""
        try:
            while self.tally.kills < kills:
                self._round()
                self.ledger.round += 1
            self._read_all()
        finally:
            if self._broker is not None:
                self._broker.kill()
        self.ledger.judge()

    # ---- one round -------------------------------------------------------------------------------

    def _round(self) -> None:
        broker = self._start(self._paging() if self.random.random() < PAGING else "")
        if self.random.random() < KILLED_WHILE_STARTING and not self._stops:
            time.sleep(self.random.uniform(*START_S))  # any moment of the start
            self.tally.kills_while_starting += 1
        else:
            broker.await_ready()
            actors = self._send_in(broker)
            if self._stops:
                broker.eventually("schedules", lambda: broker.metric(ROUTED, address="ring"), lambda n: n > 100)
            time.sleep(self.random.uniform(*WORK_S))  # any moment of the work
            if self._stops:
                for one in self.random.choice(STOPS):
                    broker.process.send_signal(one)
                code = broker.process.wait(STOP_S)
                if code or "warning" in broker.said.partition("is ready")[2]:
                    self.trouble.append(f"round {self.ledger.round}: the broker ended with {code}: {broker.said}")
            self._kill(broker)
            self._join(actors)
        self._kill(broker)
        self.tally.kills += 1
        self._look_at_what_it_said(broker)

    def _join(self, actors: Sequence[Actor]) -> None:
        for actor in actors:
            actor.join()
            if actor.trouble is not None:
                self.trouble.append(f"round {self.ledger.round}: {actor.trouble}")

    def _paging(self) -> str:
        """Little room, and pages of a few messages or of a few hundred."""
        pick = self.random.choice
        return PAGES.format(messages=pick((0, 3, 30)), size=pick(("4K", "1M")), page_size=pick(("4K", "64K", "1M")))

    def configuration(self, paging: str, policy: str = "") -> str:
        """The broker.xml of one process."""
        settings = (
            f'<address-setting match="#"><max-delivery-attempts>-1</max-delivery-attempts>{paging}</address-setting>'
            '<address-setting match="ring"><default-ring-size>1</default-ring-size></address-setting>'
        )
        core = CORE + (SWEPT if self._stops else "") + self._retention + policy
        return configuration(BOTH, folder=self.folder, core=core, addresses=ADDRESSES, settings=settings)

    def _start(self, paging: str) -> BrokerProcess:
        self._file.write_text(self.configuration(paging), "utf-8")
        log = self.folder / f"broker-{self.ledger.round}.log"
        self._broker = BrokerProcess(["run", str(self._file)], log)
        return self._broker

    def _kill(self, broker: BrokerProcess) -> None:
        code = broker.process.poll()
        if code not in (None, 0 if self._stops else -9):
            self.trouble.append(f"round {self.ledger.round}: the broker ended by itself with {code}: {broker.said}")
        broker.kill()

    def _look_at_what_it_said(self, broker: BrokerProcess) -> None:
        if "recovered" in broker.said:
            self.tally.restarts_that_recovered += 1
        for line in broker.said.splitlines():
            if "DAMAGED" in line or "Traceback" in line:
                self.trouble.append(f"round {self.ledger.round}: {line}")
        self.tally.rounds_with_pages += any((self.folder / "paging").glob("*.page"))
        files = (self.folder / "journal").glob("artemis-journal-*.log")
        numbers = [int(path.stem.rpartition("-")[2]) for path in files]
        self.tally.segments = max([self.tally.segments, *numbers])
        self.tally.segments_left = len(numbers)

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
            "again": partial(commit_again, queue="again", unfinished=self.unfinished),
        }
        if self._stops:
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
                self.trouble.append(f"round {number}: {name} cannot connect: {error!r}")
        for actor in actors:
            actor.start()
        return actors

    # ---- the end ---------------------------------------------------------------------------------

    def _read_all(self) -> None:
        broker = self._start("")
        broker.await_ready()
        for seen in self.replays:
            seen.headers["completed"] = "true"
            catching_up = Actor("catching up", self.ledger, 0, partial(replay, seen=seen), broker.port)
            catching_up.start()
            self._join([catching_up])
        self.ledger.is_end = True
        for destination in DRAWS:
            read_to_the_end(broker.port, self.ledger, destination)
        if (code := broker.stop()) != 0:
            self.trouble.append(f"the broker ended with {code}: {broker.said}")
        self._look_at_what_it_said(broker)

    # ---- what came of it -------------------------------------------------------------------------

    @property
    def problems(self) -> list[str]:
        """Broken promises first, then whatever else was not as it should be."""
        return self.ledger.violations + self.trouble

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
            f" {tally.segments_left} left, pages in {tally.rounds_with_pages} rounds, {len(self.problems)} problems"
        )
