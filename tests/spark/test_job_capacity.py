"""Sizes and drain times: beside a plain replay of the ledger, and the advice beside ``artemis-py check``."""

from __future__ import annotations

from collections import Counter
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
from tests.spark.traffic import Sent, World
from tests.spark.world import Frames, lives, percentile, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTAGE_S = 30


@pytest.fixture(scope="module")
def world() -> World:
    """One world for all tests of this file."""
    return World(seed=11, length_ms=60_000)


@pytest.fixture(scope="module")
def result(spark: SparkSession, world: World) -> Result:
    """What the job says of it."""
    from artemis_py.spark.jobs.capacity import capacity

    return capacity(spark, Frames({"events": world.events(spark)}), outage_s=OUTAGE_S)


def peak(steps: list[tuple[int, int]]) -> int:
    """The highest that a sum of (lsn, step) comes to."""
    now = most = 0
    for _, step in sorted(steps, key=lambda each: (each[0], -each[1])):
        now += step
        most = max(most, now)
    return most


def queue_steps(world: World, queue: str) -> list[tuple[int, int]]:
    """A message more, a message less."""
    steps = []
    for _, life in lives(world, queue):
        steps.append((life.came_lsn, 1))
        if life.end is not None:
            steps.append((life.end[1], -1))
    return steps


def busy_seconds(world: World, queue: str) -> tuple[list[int], Counter[int]]:
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


def service_of(world: World, queue: str) -> int:
    """The median of busy seconds, or else the most."""
    busy, acked = busy_seconds(world, queue)
    return percentile(busy, 0.5) or max(acked.values(), default=0)


def ring_of(world: World, queue: str, service: int) -> int:
    """The most that would wait if so many were served in each second and nothing was lost: second by second."""
    arrivals = Counter(life.came_ms // 1000 for _, life in lives(world, queue))
    waiting = most = 0
    for second in range(min(arrivals), max(arrivals) + 1):
        waiting += arrivals[second]
        most = max(most, waiting)
        waiting = max(0, waiting - service)
    return most


def test_queues(result: Result, world: World) -> None:
    rows = {str(row["queue"]): row for row in rows_of(result.table("queues"))}
    assert set(rows) == {queue for message in world.sent for queue in message.lives}
    for queue, row in rows.items():
        came = [life.came_ms // 1000 for _, life in lives(world, queue)]
        ends = [life.end[0] // 1000 for _, life in lives(world, queue) if life.end is not None]
        rate = len(came) / (max(came + ends) - min(came) + 1)
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
    assert [note for note in result.notes if "nobody acknowledged" in note] == [
        "nobody acknowledged anything in "
        + ", ".join(queue for queue, row in rows.items() if not row["serviceRate"])
        + ": what comes there stays"
    ]
    losing = [
        queue for queue, row in rows.items() if 0 < float(str(row["serviceRate"])) <= float(str(row["arrivalRate"]))
    ]
    measured = [queue for queue in losing if busy_seconds(world, queue)[0]]
    assert [note.partition(":")[0] for note in result.notes if "never drains" in note] == measured
    assert [note for note in result.notes if "kept up" in note] == [
        f"consumers of {queue} kept up with what came: how fast they would drain is not known"
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


def test_addresses_count_a_message_once(result: Result, world: World) -> None:
    for row in rows_of(result.table("addresses")):
        messages = [message for message in world.sent if message.address == row["address"]]
        ones, sizes = [], []
        for message in messages:
            ones.append((message.lsn, 1))
            sizes.append((message.lsn, memory_bytes(message)))
            ends = [life.end[1] for life in message.lives.values() if life.end is not None]
            if len(ends) == len(message.lives):
                ones.append((max(ends), -1))
                sizes.append((max(ends), -memory_bytes(message)))
        assert row["messages"] == len(messages)
        assert row["peakMessages"] == peak(ones)
        assert row["peakBytes"] == peak(sizes)
        assert row["largestBytes"] == max(map(memory_bytes, messages))
        assert row["meanBytes"] == pytest.approx(sum(map(memory_bytes, messages)) / len(messages))


def test_the_advice_is_accepted(
    result: Result, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.xml"
    [text] = result.texts
    file.write_text(text.body, "utf-8")
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "(0 errors, 1 warning, 0 notes)" in said
    assert "security-enabled is true" in said
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
