"""Clients, a broker and a Spark application, of which one after the other is killed with SIGKILL at random moments."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pyarrow.dataset as arrow_dataset

from tests.kit.client import connected
from tests.kit.process import eventually, kill_group, start_module
from tests.oracle.client import unescape
from tests.spark.live import LiveBroker
from tests.spark.pipeline_clients import Acknowledger, Receipted, Served, Transacted
from tests.spark.pipeline_driver import ADDRESSES, COPIED, COPIES, QUERIES
from tests.spark.pipeline_ledger import Delivered, delivered
from tests.spark.readers import rows_read

WORK_S: Final = (0.05, 1.0)
KILLED_WHILE_STARTING: Final = 0.2
DEPTHS_EVERY: Final = 4
"""After so many of a broker's deaths its depths are compared; it takes as long as the log is."""
START_S: Final = 180.0
WAIT_S: Final = 180.0
END_S: Final = 600.0


def children(pid: int) -> dict[int, str]:
    """Every process below this one, with its command line."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parents[int(path.name)] = int((path / "stat").read_text("utf-8").rpartition(")")[2].split()[1])
            lines[int(path.name)] = line
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        above = waiting.pop()
        below = [one for one, parent in parents.items() if parent == above]
        waiting += below
        found |= {one: lines[one] for one in below}
    return found


@contextmanager
def started(module: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An application in a process of its own; it and all that it starts are gone in the end."""
    process = start_module(module, *arguments, log=log)
    try:
        yield process
    finally:
        kill_group(process)


def java_below(pid: int) -> int:
    """The JVM of an application. What it forks has the same command line for a moment, and comes behind it."""
    return next(one for one, line in children(pid).items() if "org.apache.spark.deploy.SparkSubmit" in line)


class Driver:
    """The Spark application, and its later lives."""

    UNIT = "batches"
    """Of ``commits``."""

    def __init__(self, folder: Path, urls: tuple[str, str], queries: Sequence[str]) -> None:
        self.folder = folder
        self.urls = urls
        self.queries = queries
        self.lives = 0
        self.process = self._start()

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        self.lives += 1
        self._begun = self._seen = self.commits()
        log = self.folder / f"driver{self.lives}.log"
        names = [f"--query={name}" for name in self.queries]
        return start_module("tests.spark.pipeline_driver", str(self.folder), *self.urls, *names, *more, log=log)

    def commits(self) -> dict[str, int]:
        """How many batches of each query are done: Spark forgets the files of the oldest."""
        places = {name: self.folder / "checkpoints" / name / "commits" for name in self.queries}
        return {
            name: 1 + max((int(path.name) for path in place.glob("[0-9]*")), default=-1)
            for name, place in places.items()
        }

    def has_moved(self) -> bool:
        """Each query has done a batch in this life, and one of them since the last time this was noted."""
        now = self.commits()
        each_in_this_life = all(now[name] > self._begun[name] for name in self.queries)
        return each_in_this_life and any(now[name] > self._seen[name] for name in self.queries)

    def note(self) -> None:
        """From here on."""
        self._seen = self.commits()

    def end(self) -> None:
        """SIGKILL to the JVM, its Python and all workers."""
        kill_group(self.process)

    def start_again(self, *more: str) -> None:
        """From its checkpoints; what is left of the life before is gone first."""
        self.end()
        self.process = self._start(*more)

    def kill_one(self, kind: str, random: Random) -> bool:
        """SIGKILL to the ``jvm`` alone, or to a ``worker``: one Python that plans or reads."""
        java = {pid for pid, line in children(self.process.pid).items() if "/java " in line or line.startswith("java ")}
        pythons = {pid for pid, line in children(self.process.pid).items() if "pyspark" in line} - java
        found = sorted(java)[:1] if kind == "jvm" else sorted(pythons)
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(found), signal.SIGKILL)
        return bool(found)


class ApplicationRun(ABC):
    """An application that is disturbed while it works, and clients beside it. ``seed`` decides when."""

    def __init__(self, folder: Path, driver: Driver, seed: int) -> None:
        self.folder = folder
        self.random = Random(seed)
        self.seed = seed
        self.kills: Counter[str] = Counter()
        self.ended_by_itself = 0
        self.problems: list[str] = []
        self.driver = driver

    @abstractmethod
    def disturb(self, kind: str) -> None:
        """Kill something, or what else there is of this name."""

    def loop(self, brokers: Sequence[Served], kinds: Iterable[str], rests: Callable[[], object] = lambda: None) -> None:
        """One disturbance after the other while clients work; then all that is there is delivered. ``rests`` is called
        when nobody works, before that and behind it.
        """
        clients = [client for broker in brokers for client in broker.clients]
        for broker in brokers:
            broker.up.set()
        for client in clients:
            client.start()
        try:
            for kind in kinds:
                self.progress()
                self.disturb(kind)
            self.progress()
        finally:
            for broker in brokers:
                broker.done.set()
            for client in clients:
                client.join()
        try:
            self.driver.end()
            rests()
            self.to_the_end()
            rests()
        finally:
            self.driver.end()
        self.problems += [text for broker in brokers for text in broker.trouble]

    def progress(self) -> None:
        """The queries do batches; now and then the next kill does not wait for that."""
        if self.driver.lives > 1 and self.random.random() < KILLED_WHILE_STARTING:
            time.sleep(self.random.uniform(*WORK_S) * 4)  # any moment of the start
            return
        eventually("batches of the queries", self._moved, bool, WAIT_S)
        self.driver.note()
        time.sleep(self.random.uniform(*WORK_S))  # any moment of the work

    def _moved(self) -> bool:
        if self.driver.process.poll() is not None:
            self.ended_by_itself += 1
            self.driver.start_again()
        return self.driver.has_moved()

    def kill_in_application(self, kind: str) -> None:
        """Kill the application, its jvm or a worker of it; the whole if there is none."""
        if kind == "application" or not self.driver.kill_one(kind, self.random):
            kind = "application"
            self.driver.start_again()
        elif kind == "jvm":
            self.driver.start_again()
        self.kills[kind] += 1

    def to_the_end(self) -> None:
        """All that is there is delivered."""
        self.driver.end()
        for _ in range(3):
            self.driver.start_again("--to-the-end")
            if self.driver.process.wait(END_S) == 0:
                return
        said = (self.folder / f"driver{self.driver.lives}.log").read_text("utf-8")[-2000:]
        self.problems.append(f"the application does not come to its end: {said}")


class PipelineRun(ApplicationRun):
    """So many kills, then the end, then the judgement."""

    def __init__(self, folder: Path, broker: LiveBroker, seed: int, driver: Driver | None = None) -> None:
        urls = (broker.url, f"tcp://127.0.0.1:{broker.process.port}")
        super().__init__(folder, driver or Driver(folder, urls, QUERIES), seed)
        self.broker = broker
        self.served = Served(broker.process.port, seed)
        self.ledger = self.served.ledger
        self.rows: dict[str, list[Delivered]] = {}
        self.acked: Counter[int] = Counter()
        self.depths_compared = 0
        self.served.clients += [
            Receipted("plain.a", self.served, addresses=["orders"]),
            Receipted("plain.b", self.served, addresses=["orders"]),
            Transacted("pair", self.served, addresses=["left", "right"], repeats=False),
            Transacted("again", self.served, addresses=["again"], repeats=True),
            Acknowledger("reader.a", self.served, address="orders"),
            Acknowledger("reader.b", self.served, address="left"),
        ]

    def run(self, kinds: Iterator[str], kills: int) -> None:
        """Kills so many times, each time one of the next kind, then delivers the rest and judges."""
        self.loop([self.served], itertools.islice(kinds, kills), self._compare_depths)
        self._judge()

    def disturb(self, kind: str) -> None:
        """Kill the broker, or a part of the application."""
        if kind != "broker":
            self.kill_in_application(kind)
            return
        self.broker.kill()
        self.served.up.clear()
        self.broker.start_again()
        if self.kills[kind] % DEPTHS_EVERY == 0:
            self._compare_depths()
        self.served.up.set()
        self.kills[kind] += 1

    # ---- what came of it -------------------------------------------------------------------------

    def _sources(self) -> dict[str, dict[str, str]]:
        return {
            "the log by url": {"url": self.broker.url},
            "the log by directory": {"journal": str(self.broker.folder), "broker": "e2e"},
        }

    def _compare_depths(self) -> None:
        process = self.broker.process
        depths = {
            "the broker": {
                name: int(process.metric("artemis_durable_message_count", queue=name)) for name in ADDRESSES
            },
            **{
                name: {row["queue"]: row["messageCount"] for row in rows_read({**source, "table": "queues"})}
                for name, source in self._sources().items()
            },
        }
        self.depths_compared += 1
        self.problems += self.ledger.depth_problems(depths)

    def _judge(self) -> None:
        for name in ("url", "directory"):
            rows = self.rows[name] = delivered_rows(self.folder / "out" / name)
            for ask in (self.ledger.problems, self.ledger.transaction_problems, self.ledger.order_problems):
                self.problems += [f"by {name}: {text}" for text in ask(rows)]
        for name, source in self._sources().items():
            self.acked = acknowledged(source)
            asked = self.ledger.acknowledgement_problems(self.rows["url"], self.acked)
            self.problems += [f"{name}: {text}" for text in asked]

    def summary(self) -> str:
        """One line about the run."""
        kills = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kills.items()))
        promised = sum(one.promised for one in self.ledger.sent.values())
        groups = len({one.group for one in self.ledger.sent.values() if one.group and one.promised})
        done = f"{sum(self.driver.commits().values()):,} {self.driver.UNIT}"
        repeated = sum(one.repeated_count for one in self.served.clients if isinstance(one, Transacted))
        return (
            f"seed {self.seed}: {self.kills.total()} kills ({kills}), {self.driver.lives} lives of the application"
            f" ({self.ended_by_itself} ended by themselves), {done},"
            f" {promised:,} receipted messages, {groups:,} receipted transactions ({repeated} repeated),"
            f" {len(self.ledger.aborted):,} messages of aborted ones,"
            f" {len(self.ledger.acks_confirmed):,} receipted acknowledgements,"
            f" rows: {', '.join(f'{len(rows):,} by {name}' for name, rows in self.rows.items())},"
            f" depths compared {self.depths_compared} times,"
            f" {len(self.problems)} problems"
        )


def acknowledged(source: dict[str, str]) -> Counter[int]:
    """How often the log tells of the acknowledgement of each message that clients took."""
    options = {"table": "events", "columns": "event,messageId", "subscribe": ",".join(ADDRESSES)}
    return Counter(row["messageId"] for row in rows_read({**source, **options}) if row["event"] == "acked")


def delivered_rows(folder: Path, *brokers: str) -> list[Delivered]:
    """What the batches of one query left there; of these brokers alone, if any is named."""
    columns = ["address", "value", "headers", "offset", "messageId", "transaction"]
    chosen = arrow_dataset.field("broker").isin(brokers) if brokers else None
    batches = arrow_dataset.dataset(folder, format="parquet").to_batches(columns=columns, filter=chosen)
    return delivered(row for batch in batches for row in batch.to_pylist())


def copies_in(broker: LiveBroker, promised: int) -> list[Delivered]:
    """What was published again, taken from its queue."""
    count = int(broker.process.metric("artemis_message_count", queue=COPIES))
    assert count >= promised
    found = []
    with connected(broker.process.port) as client:
        client.subscribe(f"/queue/{COPIES}", ack="auto")
        for number in range(count):
            message = client.message()
            names = ("x-id", "x-note", "x-group")
            headers = {name: unescape(str(message.header(name)), "1.2") for name in names}
            found.append(Delivered(COPIED, message.body, headers, number, number, None))
        client.nothing_waits()
    return found
