"""Scenario ``scaling``: one, two and four brokers that take messages in and are read by one query, on one machine."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from artemis_py.errors import PerfError
from artemis_py.perf.pump import body_of
from bench.own import Own, Retaining, fill, started
from bench.part import Extent, Part, Say, Table
from bench.pipeline import absent, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROKERS: Final = (1, 2, 4)
MESSAGES: Final = 200_000
"""Of all brokers together, so that only their number differs."""
_QUEUE: Final = "bench.scaling"
_BODY: Final = body_of(100)
_WARM_UPS: Final = 2
_WHOLE: Final = {"partitionBytes": str(1 << 40)}
_READS: Final[dict[str, dict[str, str]]] = {
    "rows/s": _WHOLE,
    **{f"rows/s with minPartitions={count}": {**_WHOLE, "minPartitions": str(count)} for count in (2, 4)},
}
"""How a query reads, by the head of its column: with a task for each broker, and with more."""


@dataclass
class Scaled:
    """What so many brokers gave: each rate of each round."""

    brokers: int
    taken: list[float] = field(default_factory=list)
    read: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _READS})
    tasks: dict[str, int] = field(default_factory=dict)

    def row(self) -> list[str]:
        """Of the table."""
        found = [str(self.brokers), f"{statistics.median(self.taken):,.0f}"]
        for name in _READS:
            found += [f"{statistics.median(self.read[name]):,.0f}", str(self.tasks[name])]
        return found


@dataclass
class Scaling(Part):
    """One row for each number of brokers."""

    found: list[Scaled] = field(default_factory=list)

    def tables(self) -> list[Table]:
        """One."""
        head = ["brokers", "messages/s in", *(text for name in _READS for text in (name, "tasks"))]
        return [Table([head, *(one.row() for one in self.found)], left=0)]

    def as_json(self) -> object:
        """Every round."""
        return [
            {"brokers": one.brokers, "taken": one.taken, "read": one.read, "tasks": one.tasks} for one in self.found
        ]


def measure_scaling(extent: Extent, say: Say) -> Scaling:
    """So many rounds, each with new brokers. Raises PerfError."""
    lacking = absent()
    if lacking is not None:
        raise PerfError(lacking)
    messages = extent.messages or (MESSAGES // 10 if extent.quick else MESSAGES)
    scaling = Scaling([Scaled(count) for count in BROKERS])
    with spark_session() as spark:
        for number in range(1, extent.rounds + 1):
            for one in scaling.found:
                say(f"scaling: round {number} of {extent.rounds}, {one.brokers} brokers")
                measure_brokers(spark, one, messages)
    return scaling


def measure_brokers(spark: SparkSession, one: Scaled, messages: int) -> None:
    """One round. Raises PerfError when rows are missing."""
    with ExitStack() as stack:
        brokers = [stack.enter_context(started(Retaining())) for _ in range(one.brokers)]
        began = time.perf_counter()
        with ThreadPoolExecutor(one.brokers) as pool:
            list(pool.map(partial(_fill, count=messages // one.brokers), brokers))
        one.taken.append(messages / (time.perf_counter() - began))
        urls = ",".join(broker.url for broker in brokers)
        for name, options in _READS.items():
            frame = spark.read.format("artemis").options(url=urls, subscribe=_QUEUE, **options).load()
            one.tasks[name] = frame.rdd.getNumPartitions()
            rows = frame.count()
            if rows != messages:
                raise PerfError(f"{one.brokers} brokers: {rows:,} rows of {messages:,} messages")
            for _ in range(_WARM_UPS):
                _consume(frame)
            began = time.perf_counter()
            _consume(frame)
            one.read[name].append(messages / (time.perf_counter() - began))


def _fill(broker: Own, count: int) -> None:
    fill(broker.target, _QUEUE, count, _BODY, persistent=True)


def _consume(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()
