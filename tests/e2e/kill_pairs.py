"""A pair of brokers on one directory, of which the one that works is killed, again and again, with clients at work.

What is measured is the gap: from the last thing that a client heard of the broker that was killed to the first
CONNECTED of the other one.
"""

from __future__ import annotations

import itertools
import statistics
import time
from pathlib import Path
from typing import NamedTuple

from tests.e2e.kill_rounds import KILLED_WHILE_STARTING, PAGING, START_S, WORK_S, KillRun
from tests.e2e.pair import Member
from tests.kit.client import connected, frame, is_greeted
from tests.kit.process import BrokerProcess

POLICY = """
    <ha-policy><shared-store><{role}>{settings}</{role}></shared-store></ha-policy>
"""
ROLES = (("primary", ""), ("backup", "<allow-failback>false</allow-failback>"))
BACKLOG_BATCH = 500
BACKLOG_BODY = bytes(1000)


class Gap(NamedTuple):
    """A takeover: how long no broker answered, and how much the new one had to read."""

    gap_ms: float
    journal_bytes: int


class PairKillRun(KillRun):
    """Like a KillRun, with a second process that waits: the next round's broker. ``backlog`` messages that nobody
    wants make the journal larger.
    """

    def __init__(self, folder: Path, seed: int, *, backlog: int = 0) -> None:
        super().__init__(folder, seed)
        self.gaps: list[Gap] = []
        self._backlog = backlog
        self._numbers = itertools.count()
        self._waiting: Member | None = None
        self._heard = 0.0

    def run(self, kills: int) -> None:
        """Kills the working broker so many times, then reads everything that is left, and judges."""
        try:
            if self._backlog:
                broker = self._start("")
                broker.await_ready()
                send = frame("SEND", {"destination": "/queue/backlog", "persistent": "true"}, BACKLOG_BODY)
                with connected(broker.port) as client:
                    for _ in range(0, self._backlog, BACKLOG_BATCH):
                        client.raw(send * (BACKLOG_BATCH - 1))
                        client.ask("SEND", {"destination": "/queue/backlog", "persistent": "true"}, BACKLOG_BODY)
                self._waiting = self._member("")
                self._waiting.await_state("the lock of ")
                broker.kill()
            super().run(kills)
        finally:
            if self._waiting is not None:
                self._waiting.kill()

    # ---- one round -------------------------------------------------------------------------------

    def _start(self, paging: str) -> BrokerProcess:
        """The broker that has waited, and works from now on; it may still be taking over. At first it is a new one."""
        working = self._waiting or self._member(paging)
        self._broker, self._waiting = working, None
        return working

    def _member(self, paging: str) -> Member:
        number = next(self._numbers)
        role, settings = ROLES[0] if number == 0 else self.random.choice(ROLES)
        file = self.folder / f"broker-{number}.xml"
        file.write_text(self.configuration(paging, POLICY.format(role=role, settings=settings)), "utf-8")
        return Member(["run", str(file)], self.folder / f"pair-{number}.log")

    def _round(self) -> None:
        paging = self._paging() if self.random.random() < PAGING else ""
        broker = self._start(paging)
        if self.random.random() < KILLED_WHILE_STARTING and self._heard:
            time.sleep(self.random.uniform(*START_S))  # any moment of the start
            self.tally.kills_while_starting += 1
            self._heard = 0.0
        else:
            self._await_takeover(broker)
            self._waiting = self._member(paging)  # not before: the two would compete for the lock
            actors = self._send_in(broker)
            time.sleep(self.random.uniform(*WORK_S))  # any moment of the work
            self._waiting.await_state("the lock of ")  # otherwise the gap would be the start of a process
            self._kill(broker)
            self._heard = max((actor.client.heard for actor in actors), default=0.0)
            self._join(actors)
        self._kill(broker)
        self.tally.kills += 1
        self._look_at_what_it_said(broker)

    def _await_takeover(self, broker: BrokerProcess) -> None:
        """As a client sees it: it tries until somebody answers CONNECTED."""
        assert isinstance(broker, Member)
        journal_bytes = sum(path.stat().st_size for path in (self.folder / "journal").glob("artemis-journal-*.log"))

        broker.eventually(
            "somebody takes over",
            lambda: (broker.await_ports(), is_greeted(broker.ports.get("stomp", 0))),
            lambda seen: seen[1],
        )
        if self._heard:
            self.gaps.append(Gap((time.monotonic() - self._heard) * 1000, journal_bytes))
        broker.await_ready()

    # ---- before and after ------------------------------------------------------------------------

    def _read_all(self) -> None:
        """By a new broker: one that waits may have too little room for everything at once."""
        if self._waiting is not None:
            self._waiting.kill()
            self._waiting = None
        super()._read_all()

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
