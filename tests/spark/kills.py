"""Brokers with their clients and a Spark application, of which one after the other is killed with SIGKILL at random
moments, or disturbed in another way.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from pyarrow import dataset

from tests.kit.client import connected
from tests.kit.http import ask
from tests.kit.process import eventually, kill_group, start_module
from tests.kit.set_clock import SettableClock
from tests.spark.live import SETTINGS, LiveBroker, live_broker
from tests.spark.pipeline_clients import Acknowledger, PipelineClient, Receipted, Served, Transacted
from tests.spark.pipeline_driver import ADDRESSES, COPIED, COPIES
from tests.spark.pipeline_ledger import COLUMNS, Delivered, PipelineLedger, delivered
from tests.spark.readers import rows_read

JAVA: Final = "org.apache.spark.deploy.SparkSubmit"
WORK_S: Final = (0.05, 1.0)
KILLED_WHILE_STARTING: Final = 0.2
DEPTHS_EVERY: Final = 4
"""After so many of the brokers' deaths depths are compared; it takes as long as the log is."""
START_S: Final = 180.0
WAIT_S: Final = 180.0
END_S: Final = 600.0
ROLLED: Final = 400
"""So many messages of a kB fill some segments; they are of a ring, and of no address that a query reads."""
SET_S: Final = (-7200.0, -600.0, -2.0, 0.0, 2.0, 600.0, 7200.0)
EVENTS: Final = {"table": "events", "columns": "event,messageId", "subscribe": ",".join(ADDRESSES)}
"""Of a log: those of the messages of the ledger."""


def below(pid: int, word: str) -> list[int]:
    """The processes below this one with a word in their command line. What a JVM forks has the same for a moment, and
    comes behind it.
    """
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parents[int(path.name)] = int((path / "stat").read_text("utf-8").rpartition(")")[2].split()[1])
            lines[int(path.name)] = line
    found: list[int] = []
    waiting = [pid]
    while waiting:
        above = waiting.pop()
        own = [one for one, parent in parents.items() if parent == above]
        waiting += own
        found += own
    return [one for one in found if word in lines[one]]


@contextmanager
def driver(name: str, folder: Path, options: Mapping[str, object]) -> Iterator[subprocess.Popen[bytes]]:
    """A query of ``tests.spark.drivers`` in a Spark of its own; it and all that it starts are gone in the end."""
    texts = json.dumps({option: str(value) for option, value in options.items()})
    process = start_module("tests.spark.drivers", name, str(folder), texts, log=folder / "driver.log")
    try:
        yield process
    finally:
        kill_group(process)


@dataclass
class Application:
    """A module with Spark in it, and its later lives: ``goes_on`` are the arguments of one that has no end, ``ends``
    those of one that comes to the end of the log. ``commits`` says of each query how far it is.
    """

    folder: Path
    command: Sequence[str]
    goes_on: Sequence[str]
    ends: Sequence[str]
    commits: Callable[[], dict[str, int]]
    lives: int = 0
    ended_by_itself: int = 0
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, *, to_the_end: bool = False) -> None:
        """From its checkpoints; what is left of the life before is gone first."""
        if self.lives:
            kill_group(self.process)
        self.lives += 1
        self.begun = self.seen = self.commits()
        self.log = self.folder / f"application{self.lives}.log"
        self.process = start_module(*self.command, *(self.ends if to_the_end else self.goes_on), log=self.log)

    def has_moved(self) -> bool:
        """Each query has gone on in this life, and one of them since this was true before. A life that ended by itself
        is followed by another one.
        """
        if self.process.poll() is not None:
            self.ended_by_itself += 1
            self.start()
        now = self.commits()
        if all(now[name] > self.begun[name] for name in now) and any(now[name] > self.seen[name] for name in now):
            self.seen = now
            return True
        return False

    def kill(self, kind: str, random: Random) -> None:
        """SIGKILL to the ``jvm`` alone, or to a ``worker``: one Python that plans or reads. To all of it, if there is
        none. A worker is missed by nobody but the JVM.
        """
        pythons, jvms = below(self.process.pid, "pyspark"), below(self.process.pid, JAVA)
        found = {"jvm": jvms[:1], "worker": [one for one in pythons if one not in jvms]}.get(kind)
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(found), signal.SIGKILL)
        if not found or kind == "jvm":
            self.start()


@dataclass
class Side:
    """A broker, its clock, its clients, and what these were promised. Its first name is ``key``, under which queries go
    on.
    """

    key: str
    live: LiveBroker
    served: Served
    clients: Sequence[PipelineClient]
    clock: SettableClock | None


@contextmanager
def killed_broker(
    folder: Path, seed: int, *, large_bytes: int = 0, clock: SettableClock | None = None, **options: Any
) -> Iterator[Side]:
    """One that is gone in the end."""
    settings = SETTINGS.replace("<max-delivery-attempts>2<", "<max-delivery-attempts>-1<")
    environment = None if clock is None else clock.environment
    given = {"name": folder.name, "settings": settings, "environment": environment, "start_s": START_S, **options}
    with live_broker(folder, **given) as live:
        served, key = Served(live.process.port, seed), folder.name
        clients = [
            Receipted(f"{key}.plain.a", served, ["orders"], large_bytes),
            Receipted(f"{key}.plain.b", served, ["orders"]),
            Transacted(f"{key}.pair", served, ["left", "right"]),
            Transacted(f"{key}.again", served, ["again"], large_bytes, repeats=True),
            *(Acknowledger(f"{key}.{address}", served, [address]) for address in ADDRESSES),
        ]
        yield Side(key, live, served, clients, clock)


@dataclass
class KillRun:
    """Disturbances while clients work, then the end, then the judgement. ``seed`` decides when, and to which broker."""

    sides: Sequence[Side]
    application: Application
    seed: int
    disturbed: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    rows: dict[str, list[Delivered]] = field(default_factory=dict)
    """What queries delivered, as far as it was judged."""
    depths_compared: int = 0

    def run(self, kinds: Iterable[str]) -> None:
        """One disturbance after the other; then all that is there is delivered."""
        self.random = Random(self.seed)
        self.application.start()
        try:
            with ExitStack() as stack:
                for side in self.sides:  # what comes before there is a cursor, retention may take
                    told = partial(ask, side.live.process.ports["http"], "GET", "/log/cursors")
                    eventually("a cursor", told, lambda reply: bool(reply.json["cursors"]), START_S)
                    stack.enter_context(side.served.by(*side.clients))
                for kind in kinds:
                    self._progress()
                    self._disturb(kind)
                self._progress()
            kill_group(self.application.process)
            self._compare_depths(*self.sides)
            self._to_the_end()
            self._compare_depths(*self.sides)
        finally:
            kill_group(self.application.process)
        self.problems += [text for side in self.sides for text in side.served.trouble]

    def _progress(self) -> None:
        """The queries do batches; now and then the next kill does not wait for that."""
        if self.application.lives > 1 and self.random.random() < KILLED_WHILE_STARTING:
            time.sleep(self.random.uniform(*WORK_S) * 4)  # any moment of the start
            return
        eventually("batches of the queries", self.application.has_moved, bool, WAIT_S)
        time.sleep(self.random.uniform(*WORK_S))  # any moment of the work

    def _disturb(self, kind: str) -> None:
        side = self.random.choice(self.sides)
        self.disturbed[kind] += 1
        if kind in ("application", "jvm", "worker"):
            self.application.kill(kind, self.random)
        elif kind == "clock":
            assert side.clock is not None
            side.clock.set(self.random.choice(SET_S))
        elif kind == "log":
            side.live.send(0, ROLLED, "ring", 1000)
        else:
            side.served.up.clear()
            if kind == "stand-by":
                side.live.fail_over()
            else:
                side.live.start_again(f"{side.key}-{self.disturbed[kind]}" if kind == "renamed" else None)
            if self.disturbed[kind] % DEPTHS_EVERY == 1:
                self._compare_depths(side)
            side.served.up.set()

    def _to_the_end(self) -> None:
        """All that is there is delivered."""
        for _ in range(3):
            self.application.start(to_the_end=True)
            if self.application.process.wait(END_S) == 0:
                return
        said = self.application.log.read_text("utf-8")[-2000:]
        self.problems.append(f"the application does not come to its end: {said}")

    # ---- what came of it -------------------------------------------------------------------------

    def _compare_depths(self, *sides: Side) -> None:
        """How many messages each queue holds, as the broker itself says it, and its log (``sources_of``)."""
        for side in sides:
            metric = side.live.process.metric
            told = {"the broker": {one: int(metric("artemis_durable_message_count", queue=one)) for one in ADDRESSES}}
            for name, source in sources_of(side).items():
                rows = rows_read({**source, "table": "queues"})
                told[name] = {row["queue"]: row["messageCount"] for row in rows}
            self.depths_compared += 1
            self.problems += [f"{side.key}: {text}" for text in side.served.ledger.depth_problems(told)]

    def judge(self, name: str, rows: list[Delivered]) -> None:
        """What is wrong with what a query delivered."""
        self.rows[name] = rows
        for side in self.sides:
            own = [row for row in rows if row.broker == side.key]
            ledger = side.served.ledger
            for ask_for in (ledger.problems, ledger.transaction_problems, ledger.order_problems):
                self.problems += [f"{name}, {side.key}: {text}" for text in ask_for(own)]
        others = Counter(row.broker for row in rows) - Counter({side.key: len(rows) for side in self.sides})
        if others:
            self.problems.append(f"{name}: rows are of brokers of other names: {others}")

    def judge_copies(self) -> int:
        """Of what the first broker got that was published again: it is taken from its queue. Returns how much it is."""
        both = PipelineLedger()
        for side in self.sides:
            both.sent |= side.served.ledger.sent
            both.aborted |= side.served.ledger.aborted
        process = self.sides[0].live.process
        count = process.count(COPIES)
        rows = []
        with connected(process.port) as client:
            client.subscribe(f"/queue/{COPIES}", ack="auto")
            for number in range(count):
                message = client.message()
                texts = {name: message.headers[name] for name in ("x-id", "x-note", "x-group")}
                headers = [{"key": name, "value": text.encode()} for name, text in texts.items()]
                numbers = {"offset": number, "messageId": number, "transaction": None, "broker": ""}
                rows.append({"address": COPIED, "value": message.body, "headers": headers, **numbers})
            client.nothing_waits()
        self.problems += [f"copied: {text}" for text in both.problems(delivered(rows), addresses=[COPIED])]
        return count

    def judge_acknowledgements(self, name: str, events: Iterable[Mapping[str, Any]]) -> Counter[int]:
        """As a log of the one broker, or an archive, tells them. Returns how often it does, by messages' numbers."""
        acked = Counter(row["messageId"] for row in events if row["event"] == "acked")
        [side], rows = self.sides, next(iter(self.rows.values()))
        asked = side.served.ledger.acknowledgement_problems(rows, acked)
        self.problems += [f"{name}: {text}" for text in asked]
        return acked

    @property
    def promised(self) -> Counter[str]:
        """How many messages got their receipt, by address."""
        sent = [one for side in self.sides for one in side.served.ledger.sent.values()]
        return Counter(one.address for one in sent if one.promised)

    def summary(self) -> str:
        """One line about the run."""
        application, ledgers = self.application, [side.served.ledger for side in self.sides]
        groups = {one.group for ledger in ledgers for one in ledger.sent.values() if one.promised and one.group}
        clients = [client for side in self.sides for client in side.clients]
        repeated = sum(client.repeated_count for client in clients if isinstance(client, Transacted))
        return (
            f"seed {self.seed}: {', '.join(f'{count} x {kind}' for kind, count in sorted(self.disturbed.items()))};"
            f" {application.lives} lives of the application ({application.ended_by_itself} ended by themselves),"
            f" up to {application.commits()}, {self.promised.total():,} receipted messages,"
            f" {len(groups):,} receipted transactions ({repeated} repeated),"
            f" {sum(len(ledger.aborted) for ledger in ledgers):,} messages of aborted ones,"
            f" {sum(len(ledger.acks_confirmed) for ledger in ledgers):,} receipted acknowledgements,"
            f" rows: {', '.join(f'{len(rows):,} by {name}' for name, rows in self.rows.items())},"
            f" depths compared {self.depths_compared} times, {len(self.problems)} problems"
        )


def sources_of(side: Side) -> dict[str, dict[str, str]]:
    """Where the log of a broker is to be read; nowhere if retention may take meanwhile what is read."""
    if "storage-limit" in (side.live.limits or ""):
        return {}
    return {
        "the log by url": {"url": side.live.url},
        "the log by directory": {"journal": str(side.live.folder), "broker": side.live.name},
    }


def batches_done(folder: Path, queries: Sequence[str]) -> dict[str, int]:
    """How many batches of each query are done: Spark forgets the files of the oldest."""
    places = {name: (folder / "checkpoints" / name / "commits").glob("[0-9]*") for name in queries}
    return {name: 1 + max((int(path.name) for path in place), default=-1) for name, place in places.items()}


def rows_in_batches(folder: Path) -> list[Delivered]:
    """What the batches of one query left there."""
    batches = dataset.dataset(folder, format="parquet").to_batches(columns=COLUMNS)
    return delivered(row for batch in batches for row in batch.to_pylist())
