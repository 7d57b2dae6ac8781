"""Sizes and drain times: beside a plain replay of the ledger, and the advice beside ``artemis-py check``."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from artemis_py.cli.main import main
from artemis_py.config.reader import load
from artemis_py.message import MESSAGE_OVERHEAD_BYTES
from artemis_py.spark.jobs.result import SECONDS, Result
from artemis_py.spark.jobs.sizing import MIB, Need, advise, as_xml
from artemis_py.spark.report.terminal import as_text
from tests.spark.traffic import Life, Sent, SimulatedTraffic
from tests.spark.traffic_tables import Frames, lives, percentile, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTAGE_S = 30


@pytest.fixture(scope="module")
def world() -> SimulatedTraffic:
    """One world for all tests of this file."""
    return SimulatedTraffic(seed=11, length_ms=60_000)


@pytest.fixture(scope="module")
def result(spark: SparkSession, world: SimulatedTraffic) -> Result:
    """What the job says of it."""
    from artemis_py.spark.jobs.capacity import capacity

    return capacity(spark, Frames({"events": world.events(spark)}), outage_s=OUTAGE_S)


Moment = tuple[int, bool, int]
"""Time, whether it is no displacement, lsn: a ring gives up a message before it takes in the next one."""


def peak(steps: list[tuple[Moment, int]]) -> int:
    """The highest that a sum of steps comes to."""
    now = most = 0
    for _, step in sorted(steps, key=lambda each: (each[0], -each[1])):
        now += step
        most = max(most, now)
    return most


def end_of(life: Life) -> Moment:
    """When a queue was done with a message."""
    assert life.end is not None
    return life.end[0], life.end[2] != "replaced", life.end[1]


def queue_steps(world: SimulatedTraffic, queue: str) -> list[tuple[Moment, int]]:
    """A message more, a message less."""
    steps = []
    for _, life in lives(world, queue):
        steps.append(((life.came_ms, True, life.came_lsn), 1))
        if life.end is not None:
            steps.append((end_of(life), -1))
    return steps


def busy_seconds(world: SimulatedTraffic, queue: str) -> tuple[list[int], Counter[int]]:
    """What was acknowledged in seconds at whose end there was more, and in every second."""
    acked: Counter[int] = Counter()
    balance: Counter[int] = Counter()
    for _, life in lives(world, queue):
        balance[life.came_ms // 1000] += 1
        if life.end is not None:
            balance[life.end[0] // 1000] -= 1
            acked[life.end[0] // 1000] += life.end[2] == "acked"
    depth = 0
    busy = []
    for second in sorted(balance):
        depth += balance[second]
        if depth > 0 and acked[second]:
            busy.append(acked[second])
    return busy, acked


def service_of(world: SimulatedTraffic, queue: str) -> int:
    """The median of busy seconds, or else the most."""
    busy, acked = busy_seconds(world, queue)
    return percentile(busy, 0.5) or max(acked.values(), default=0)


def ring_of(world: SimulatedTraffic, queue: str, service: int) -> int:
    """The most that would wait if so many were served in each second and nothing was lost: second by second."""
    arrivals = Counter(life.came_ms // 1000 for _, life in lives(world, queue))
    waiting = most = 0
    for second in range(min(arrivals), max(arrivals) + 1):
        waiting += arrivals[second]
        most = max(most, waiting)
        waiting = max(0, waiting - service)
    return most


def test_queues(result: Result, world: SimulatedTraffic) -> None:
    rows = {str(row["queue"]): row for row in rows_of(result.table("queues"))}
    assert set(rows) == {queue for message in world.sent for queue in message.lives}
    for queue, row in rows.items():
        came = [life.came_ms // 1000 for _, life in lives(world, queue)]
        rate = len(came) / (max(came) - min(came) + 1)
        service = service_of(world, queue)
        in_outage = max(sum(1 for other in came if second - OUTAGE_S < other <= second) for second in set(came))
        backlog = max(in_outage, ceil(rate * OUTAGE_S))
        assert row["arrivals"] == len(came)
        assert row["arrivalRate"] == pytest.approx(rate)
        assert row["peakDepth"] == peak(queue_steps(world, queue)), queue
        assert row["serviceRate"] == service
        assert row["ring"] == ring_of(world, queue, service), queue
        assert row["outageBacklog"] == backlog
        assert row["drainS"] == (ceil(backlog / (service - rate)) if service > rate else None)
    assert rows["ticks"]["replaced"] == sum(
        1 for _, life in lives(world, "ticks") if life.end is not None and life.end[2] == "replaced"
    )
    assert [note for note in result.notes if "no consumer acknowledged" in note] == [
        "no consumer acknowledged anything in "
        + ", ".join(queue for queue, row in rows.items() if not row["serviceRate"])
        + "; messages stay there"
    ]
    losing = [
        queue for queue, row in rows.items() if 0 < float(str(row["serviceRate"])) <= float(str(row["arrivalRate"]))
    ]
    measured = [queue for queue in losing if busy_seconds(world, queue)[0]]
    assert [note.partition(":")[0] for note in result.notes if "never drains" in note] == measured
    assert [note for note in result.notes if "kept up" in note] == [
        f"consumers of {queue} kept up with all arrivals; how fast they would drain a backlog is not known"
        for queue in losing
        if queue not in measured
    ]


def test_times_have_their_units(result: Result) -> None:
    text = as_text(result, 1000, lambda _colour, text: text)
    assert "outage: 30.0 s" in text
    assert [column.kind for column in result.table("queues").columns if column.name == "drainS"] == [SECONDS]


def memory_bytes(message: Sent) -> int:
    """What the broker counts."""
    return MESSAGE_OVERHEAD_BYTES + message.size_bytes


def test_addresses_count_a_message_once(result: Result, world: SimulatedTraffic) -> None:
    for row in rows_of(result.table("addresses")):
        messages = [message for message in world.sent if message.address == row["address"]]
        ones: list[tuple[Moment, int]] = []
        sizes: list[tuple[Moment, int]] = []
        for message in messages:
            came = message.at_ms, True, message.lsn
            ones.append((came, 1))
            sizes.append((came, memory_bytes(message)))
            ends = [end_of(life) for life in message.lives.values() if life.end is not None]
            if len(ends) == len(message.lives):
                went = max(ends, key=lambda end: end[2])
                ones.append((went, -1))
                sizes.append((went, -memory_bytes(message)))
        assert row["messages"] == len(messages)
        assert row["peakMessages"] == peak(ones)
        assert row["peakBytes"] == peak(sizes)
        assert row["largestBytes"] == max(map(memory_bytes, messages))
        assert row["meanBytes"] == pytest.approx(sum(map(memory_bytes, messages)) / len(messages))


def test_the_advice_is_accepted(
    result: Result, world: SimulatedTraffic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.xml"
    [text] = result.texts
    file.write_text(text.body, "utf-8")
    assert main(["check", str(file), "--silence", "no-port"]) == 0  # it is a part of a configuration
    said = capsys.readouterr().out
    assert "(0 errors, 1 warning, 0 notes)" in said
    assert "NOBODY CAN LOG IN" in said
    for row in rows_of(result.table("advice")):
        merged = load(file).settings_for(str(row["address"]))
        assert merged.max_size_bytes == row["maxSizeBytes"]
        if row["address"] == "ticks":
            assert (
                merged.default_ring_size
                == row["ringSize"]
                == ceil(ring_of(world, "ticks", service_of(world, "ticks")) * 1.25)
            )
            assert merged.address_full_policy == "BLOCK"
        else:
            assert merged.default_ring_size == -1
            assert merged.page_size_bytes == row["pageSizeBytes"]
            assert merged.address_full_policy == "PAGE"


@pytest.mark.parametrize(
    ("need", "fits"),
    [
        (Need("small", 10, 1000, 300, 5000), True),
        (Need("a.<b>&'\"", 10, 40 * MIB, MIB, 20 * MIB), True),
        (Need("huge", 10**7, 3 * 1024 * MIB, 9 * MIB, 80 * 1024 * MIB), False),
        (Need("large messages", 3, 900 * MIB, 300 * MIB, 900 * MIB), False),
        (Need("some rings", 10, 1000, 300, 5000, {"a--b": 7, "c": 9}), True),
        (Need("all rings", 10, 1000, 300, 5000, {"a": 7, "c": 9}, is_ring=True), True),
    ],
)
def test_advice_holds_what_was_needed(
    need: Need, fits: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    advice = advise(need, 64 * MIB)
    wanted = max(need.peak_bytes, need.outage_bytes)
    assert (advice.disk_bytes == 0) is fits
    assert max(advice.max_size_bytes if fits else 0, advice.disk_bytes) >= wanted
    if need.is_ring:
        assert (advice.ring_size, advice.page_size_bytes) == (12, None)
    else:
        assert advice.ring_size is None
        assert advice.page_size_bytes is not None
        assert 2 * need.largest_bytes <= advice.page_size_bytes <= advice.max_size_bytes
    assert all(advice.rings[queue] >= size for queue, size in need.rings.items())
    file = tmp_path / "broker.xml"
    file.write_text(as_xml([advice]), "utf-8")
    code = main(["check", str(file)])
    assert code == 0, capsys.readouterr().out


_EVENTS = (
    "broker string, address string, queue string, messageId long, offset long, event string, "
    "timestamp timestamp, count long, bytes long"
)


@pytest.mark.parametrize("reason", ["replaced", "superseded"])
@pytest.mark.takes_turns("the full rings")
def test_a_full_ring_is_as_deep_as_it_may_be(spark: SparkSession, reason: str) -> None:
    """What gives way is told behind what comes, and never stood beside it."""
    from artemis_py.spark.jobs.capacity import capacity

    begin = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[tuple[object, ...]] = []
    for number in range(10):
        at = begin + timedelta(milliseconds=number)
        rows += [
            ("b", "r", None, number, 10 * number, "published", at, 1, 100),
            ("b", "r", "r", number, 10 * number, "routed", at, 1, 100),
        ]
        if number >= 3:
            rows.append(("b", "r", "r", number - 3, 10 * number + 1, reason, at, 1, None))
    result = capacity(spark, Frames({"events": spark.createDataFrame(rows, _EVENTS)}))
    assert [row["peakDepth"] for row in rows_of(result.table("queues"))] == [3]
    assert [row["peakMessages"] for row in rows_of(result.table("addresses"))] == [3]


def test_queues_with_equal_arrivals_get_equal_advice(spark: SparkSession) -> None:
    """One is drained at once, the other for a long time after the last message came."""
    from artemis_py.spark.jobs.capacity import capacity

    rows: list[tuple[object, ...]] = []
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for base, name, delay_s in ((0, "quick", 0), (100_000, "slow", 300)):
        for number in range(60):
            offset = base + 10 * number
            came, went = begin + timedelta(seconds=number), begin + timedelta(seconds=number + delay_s)
            rows += [
                ("b", name, None, base + number, offset, "published", came, 1, 100),
                ("b", name, name, base + number, offset, "routed", came, 1, 100),
                ("b", name, name, base + number, offset + 10_000, "acked", went, 1, None),
            ]
    events = spark.createDataFrame(rows, _EVENTS)
    found = {str(row["queue"]): row for row in rows_of(capacity(spark, Frames({"events": events})).table("queues"))}
    assert found["quick"]["arrivalRate"] == found["slow"]["arrivalRate"] == 1.0
    assert found["quick"]["outageBacklog"] == found["slow"]["outageBacklog"] == 600
