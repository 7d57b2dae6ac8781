"""A query that consumes a queue, of which something is killed with SIGKILL in the middle of a batch, or at its end: its
JVM, the Python process that plans it, a worker, the broker. Every message is a row, once, and is removed after that.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.kit.process import eventually
from tests.spark.drivers import numbered_query, query
from tests.spark.kills import JAVA, below, driver
from tests.spark.live import LiveBroker
from tests.spark.proxies import HoldingProxy, numbers
from tests.spark.queue_jobs import attempts, held, queue_broker, source, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

WAIT_S = 120.0
BATCH = 20
MANY = 50
IN_THE_SECOND = "25"
PLANNER = "python_streaming_source_runner"
NOTED = "checkpoint/commits/0"
"""It is there when Spark has noted that the first batch is done."""


@dataclass
class Running:
    """A query on a queue of its own broker, and what it wrote."""

    spark: SparkSession
    broker: LiveBroker
    folder: Path
    options: dict[str, Any]
    sent: list[int] = field(default_factory=list)
    started: list[StreamingQuery] = field(default_factory=list)

    def send(self, many: int) -> None:
        """As many messages, which are numbers."""
        self.sent += map(int, self.broker.send(len(self.sent), many, self.options["queue"]))

    def hold(self, body: str) -> None:
        """Have the batch with this message stop in the middle."""
        (self.folder / "held").unlink(missing_ok=True)
        (self.folder / "hold").write_text(body)

    def await_held(self) -> int:
        """Wait until it does; returns the process of its task."""
        eventually("a batch stops", (self.folder / "held").exists, bool, WAIT_S)
        return int((self.folder / "held").read_text())

    def start(self) -> StreamingQuery:
        """In the Spark of all tests."""
        self.started.append(query(self.spark, self.folder, self.options).start())
        return self.started[-1]

    def take_the_rest(self, write: Callable[..., DataStreamWriter] = query) -> None:
        """Everything that is there now, and end."""
        writer = write(self.spark, self.folder, self.options).trigger(availableNow=True)
        self.started.append(writer.start())
        assert self.started[-1].awaitTermination(int(WAIT_S))

    def await_rows(self) -> None:
        """Wait until every message is a row and gone; each is there once."""
        eventually(
            "nothing is left", lambda: self.broker.process.count(self.options["queue"]), lambda left: left == 0, WAIT_S
        )
        rows = self.spark.read.parquet(str(self.folder / "out")).collect()
        assert sorted(int(row.value) for row in rows) == self.sent


@pytest.fixture
def running(spark: SparkSession, tmp_path: Path) -> Iterator[Running]:
    with queue_broker(tmp_path / "broker", file_bytes="1M") as broker:
        found = Running(spark, broker, tmp_path, source(broker, "jobs", maxMessagesPerTrigger=BATCH))
        yield found
        (tmp_path / "hold").unlink(missing_ok=True)
        for one in found.started:
            one.stop()


@pytest.mark.takes_turns("what is killed under a queue")
def test_a_jvm_that_is_killed_in_a_batch(running: Running) -> None:
    running.send(MANY)
    running.hold(IN_THE_SECOND)
    with driver("queue", running.folder, running.options) as process:
        running.await_held()
        broker = running.broker
        assert (broker.process.count("jobs"), held(broker, "jobs")) == (MANY - BATCH, BATCH), "the first batch is done"
        os.kill(below(process.pid, JAVA)[0], signal.SIGKILL)
        eventually("what it held is back", lambda: held(broker, "jobs"), lambda seen: seen == 0, WAIT_S)
        assert broker.process.count("jobs") == MANY - BATCH
        assert not attempts(broker, "jobs"), "what plans the query has left in good order"
    (running.folder / "hold").unlink()
    running.send(MANY)
    running.take_the_rest()
    running.await_rows()


@pytest.mark.takes_turns("what is killed under a queue")
def test_a_planner_that_is_killed_in_a_batch(running: Running) -> None:
    running.send(MANY)
    running.hold(IN_THE_SECOND)
    before = below(os.getpid(), PLANNER)
    first = running.start()
    running.await_held()
    [planner] = {*below(os.getpid(), PLANNER)} - {*before}
    assert first.exception() is None, "nothing else has ended it, in good order"
    assert held(running.broker, "jobs") == BATCH
    os.kill(planner, signal.SIGKILL)
    eventually("what it held is back", lambda: held(running.broker, "jobs"), lambda seen: seen == 0, WAIT_S)
    told = eventually("the log tells it", lambda: attempts(running.broker, "jobs"), bool, WAIT_S)
    assert told == {"lost": BATCH}
    (running.folder / "hold").unlink()
    eventually("the query ends", lambda: first.isActive, lambda active: not active, WAIT_S)
    assert first.exception() is not None
    assert running.broker.process.count("jobs") == MANY - BATCH
    running.take_the_rest()
    running.await_rows()


@pytest.mark.takes_turns("what is killed under a queue")
def test_a_worker_and_then_the_broker_are_killed_in_a_batch(running: Running) -> None:
    running.send(MANY)
    running.hold(IN_THE_SECOND)
    first = running.start()
    worker = running.await_held()
    (running.folder / "hold").unlink()
    os.kill(worker, signal.SIGKILL)
    running.await_rows()
    running.hold(str(MANY + BATCH))
    running.send(MANY)
    running.await_held()
    running.broker.start_again()
    eventually("they are held again", lambda: held(running.broker, "jobs"), bool, WAIT_S)
    (running.folder / "hold").unlink()
    running.await_rows()
    assert first.isActive


@pytest.mark.slow
def test_a_client_of_spark_connect(running: Running) -> None:
    running.send(MANY)
    with driver("connect", running.folder, running.options) as process:
        assert process.wait(WAIT_S) == 0, (running.folder / "driver.log").read_text()[-3000:]
    running.await_rows()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_again_and_again(running: Running, rng: random.Random) -> None:
    """Its application, its JVM, its planner and the broker, while messages come."""
    running.options["maxMessagesPerTrigger"] = "150"
    for _ in range(12):
        running.send(1000)
        with driver("queue", running.folder, running.options) as process:
            eventually("it plans", partial(below, process.pid, PLANNER), bool, WAIT_S)
            for _ in range(rng.randrange(4)):
                time.sleep(rng.uniform(0.05, 2))  # any moment of its work, whatever it does then
                running.broker.start_again()
            time.sleep(rng.uniform(0, 4))  # any moment, as above
            those = rng.choice([below(process.pid, JAVA)[:1], below(process.pid, PLANNER), [process.pid]])
            for one in those:
                os.kill(one, signal.SIGKILL)
            time.sleep(rng.uniform(0, 2))  # how long nobody reads
    running.take_the_rest()
    running.await_rows()


# ---- between the output of a batch and its acknowledgement ---------------------------------------


def runs(folder: Path) -> list[tuple[int, list[int]]]:
    """Each run of a batch in the numbered sink: its number, and its rows in order."""
    path = folder / "runs"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [(number, sorted(rows)) for number, rows in map(json.loads, lines)]


@pytest.mark.takes_turns("what is killed under a queue")
@pytest.mark.parametrize("noted", [False, True], ids=["written", "noted"])
def test_a_jvm_that_is_killed_when_a_batch_is_written(running: Running, *, noted: bool) -> None:
    """Before Spark notes that, or when it has, and the ACK is on its way. The broker hears nothing of it, also not that
    the connection ends. A batch that Spark has noted does not run
    again. The other one does, under its number, so the sink has each row once.
    """
    broker, folder, sent = running.broker, running.folder, running.sent
    running.options["queue"] = "leased"
    running.send(BATCH)
    with closing(HoldingProxy(broker.process.port)) as proxy:
        running.options |= {"stompUrl": f"tcp://127.0.0.1:{proxy.port}", "brokerTimeoutSeconds": "600"}
        running.hold("nothing" if noted else "batch 0")
        with driver("numbered", folder, running.options) as process:
            eventually("the end of a batch", lambda: proxy.acks or (folder / "held").exists(), bool, WAIT_S)
            assert runs(folder) == [(0, sent[:BATCH])], "its output is there"
            assert (bool(proxy.acks), (folder / NOTED).exists()) == (noted, noted)
            proxy.hold()
            planners = below(process.pid, PLANNER)
            os.kill(below(process.pid, JAVA)[0], signal.SIGKILL)
            eventually("nobody waits", lambda: {*below(1, PLANNER)} & {*planners}, lambda seen: not seen, WAIT_S)
        (running.folder / "hold").unlink()
        assert proxy.acks == ([sorted(proxy.deliveries)] if noted else [])
        assert broker.process.count("leased") == BATCH
        # When the leases end another consumer gets the messages of the batch, and gives them back.
        with broker.client() as client:
            messages = taken(client, "leased", len(sent), acks=False, **{"consumer-priority": "9"})
            told = eventually("the log tells it", lambda: attempts(broker, "leased"), bool, WAIT_S)
            assert set(told) == {"lapsed"}
            proxy.drop()
            client.ask("UNSUBSCRIBE", {"id": "1"})
        eventually("they are back", lambda: held(broker, "leased"), lambda seen: seen == 0, WAIT_S)
        assert [int(one.body) for one in sorted(messages, key=numbers)] == sent
        for bookmark, delivery in map(numbers, messages):
            assert [one for one in proxy.deliveries[bookmark] if one <= delivery] == [*range(1, delivery)]
    running.send(MANY)
    running.options["stompUrl"] = f"tcp://127.0.0.1:{broker.process.port}"
    running.take_the_rest(numbered_query)
    assert broker.process.count("leased") == 0
    batches = [(number, sent[begin : begin + BATCH]) for number, begin in enumerate(range(0, len(sent), BATCH))]
    assert runs(folder) == ([] if noted else batches[:1]) + batches
    out = {int(path.name): sorted(json.loads(path.read_text("utf-8"))) for path in (folder / "out").glob("[0-9]*")}
    assert out == dict(batches)
