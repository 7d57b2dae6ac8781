"""The views over events, on traffic whose ledger is known: they count what plain loops over the ledger count."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from artemis_py.spark.catalog import VIEWS
from tests.spark.traffic import Life, SimulatedTraffic
from tests.spark.traffic_tables import Frames

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


def test_latency(spark: SparkSession, world: SimulatedTraffic, source: Frames) -> None:
    def truth(life: Life) -> tuple[int | None, int | None, int | None, str | None]:
        began = life.due[0] if life.due is not None else life.came_ms
        wait = life.deliveries[0][0] - began if life.deliveries else None
        if life.end is None or life.end[2] != "acked":
            return wait, None, None, None
        return wait, life.end[0] - life.deliveries[-1][0], life.end[0] - began, life.end[3]

    found = {
        (row.queue, row.messageId): (row.waitMs, row.holdMs, row.totalMs, row.consumer)
        for row in spark.sql(VIEWS["latency"], events=source.tables["events"]).collect()
    }
    assert found == {(queue, message.id): truth(life) for message, queue, life in world.lives()}


def test_a_message_from_before_the_log(spark: SparkSession, world: SimulatedTraffic, source: Frames) -> None:
    """It has no beginning, and the queue did not get deeper or less deep by it."""
    message, life = next(
        (message, life) for message, queue, life in world.lives() if queue == "orders" and life.end is not None
    )
    later = source.tables["events"].where(f"messageId = {message.id} and offset > {life.came_lsn}")
    [row] = spark.sql(VIEWS["latency"], events=later).collect()
    assert (row.beganAt, row.waitMs, row.totalMs) == (None, None, None)
    assert spark.sql(VIEWS["depth"], events=later).collect() == []


def test_throughput(spark: SparkSession, world: SimulatedTraffic, source: Frames) -> None:
    rows = spark.sql(VIEWS["throughput"], events=source.tables["events"]).collect()
    published: Counter[tuple[str, int]] = Counter()
    sizes: Counter[str] = Counter()
    for message in world.sent:
        published[message.address, message.at_ms // 1000] += 1
        sizes[message.address] += message.size_bytes
    assert sums(rows, "published", lambda row: (row.address, int(row.second.timestamp()))) == published
    assert sums(rows, "bytes", lambda row: row.address) == sizes
    delivered: Counter[tuple[str, str]] = Counter()
    acked: Counter[tuple[str, str]] = Counter()
    for _, queue, life in world.lives():
        delivered.update((queue, consumer) for _, _, consumer in life.deliveries)
        if life.end is not None and life.end[2] == "acked":
            acked[queue, str(life.end[3])] += 1
    assert sums(rows, "delivered", lambda row: (row.queue, row.consumer)) == delivered
    assert sums(rows, "acked", lambda row: (row.queue, row.consumer)) == acked


def sums(rows: list[Row], column: str, key: object) -> Counter[object]:
    """The values of a column, added up by a key; no zeros."""
    found: Counter[object] = Counter()
    for row in rows:
        found[key(row)] += row[column]  # type: ignore[operator]
    return +found


def test_depth(spark: SparkSession, world: SimulatedTraffic, source: Frames) -> None:
    found: dict[str, list[Row]] = {}
    for row in spark.sql(VIEWS["depth"], events=source.tables["events"]).orderBy("second").collect():
        found.setdefault(row.queue, []).append(row)
    assert set(found) == {queue for _, queue, _ in world.lives()}
    for queue, rows in found.items():
        steps = []
        for life in (life for _, name, life in world.lives() if name == queue):
            steps.append((life.came_ms, True, life.came_lsn, 1))
            if life.end is not None:
                steps.append((life.end[0], life.end[2] != "replaced", life.end[1], -1))
        depth = 0
        ends: dict[int, int] = {}
        tops: dict[int, int] = {}
        for at_ms, _, _, step in sorted(steps):
            second = at_ms // 1000
            tops[second] = max(tops.get(second, depth), depth + step)
            depth += step
            ends[second] = depth
        assert {int(row.second.timestamp()): (row.depth, row.depthMax) for row in rows} == {
            second: (ends[second], tops[second]) for second in ends
        }, queue


@pytest.mark.parametrize("reason", ["replaced", "superseded"])
def test_a_full_ring_is_as_deep_as_it_may_be(spark: SparkSession, reason: str) -> None:
    """What gives way is told behind what comes, and never stood beside it."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[tuple[object, ...]] = []
    for number in range(10):
        at = begin + timedelta(milliseconds=number)
        rows.append(("b", "r", "r", number, 10 * number, "routed", at, 1))
        if number >= 3:
            rows.append(("b", "r", "r", number - 3, 10 * number + 1, reason, at, 1))
    columns = "broker string, address string, queue string, messageId long, offset long, event string, "
    events = spark.createDataFrame(rows, columns + "timestamp timestamp, count long")
    [row] = spark.sql(VIEWS["depth"], events=events).collect()
    assert (row.arrived, row.gone, row.depth, row.depthMax) == (10, 7, 3, 3)
