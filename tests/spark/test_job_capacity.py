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
from artemis_py.spark.jobs.sizing import MIB, Need, advise, as_xml
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
def source(spark: SparkSession, world: World) -> Frames:
    """Its tables."""
    return Frames({"messages": world.messages(spark).cache(), "events": world.events(spark).cache()})


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


def service_of(world: World, queue: str) -> int:
    """The median of what was acknowledged in seconds at whose end there was more."""
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


def test_queues(spark: SparkSession, source: Frames, world: World) -> None:
    from artemis_py.spark.jobs.capacity import capacity

    result = capacity(spark, source, outage_s=OUTAGE_S)
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
    assert any(note.startswith("DLQ: more comes") for note in result.notes)


def memory_bytes(message: Sent) -> int:
    """What the broker counts."""
    block = sum(len(name) + len(value) + 2 for name, value in message.headers) + 1
    return MESSAGE_OVERHEAD_BYTES + block + len(message.body)


def test_addresses_count_a_message_once(spark: SparkSession, source: Frames, world: World) -> None:
    from artemis_py.spark.jobs.capacity import capacity

    result = capacity(spark, source, outage_s=OUTAGE_S)
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
    spark: SparkSession, source: Frames, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from artemis_py.spark.jobs.capacity import capacity

    result = capacity(spark, source, outage_s=OUTAGE_S)
    file = tmp_path / "broker.xml"
    [text] = result.texts
    file.write_text(text.body, "utf-8")
    assert main(["check", str(file)]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out
    for row in rows_of(result.table("advice")):
        merged = load(file).settings_for(str(row["address"]))
        assert merged.max_size_bytes == row["maxSizeBytes"]
        assert merged.page_size_bytes == row["pageSizeBytes"]
        assert merged.address_full_policy == "PAGE"
        assert merged.default_ring_size == (-1 if row["ringSize"] is None else row["ringSize"])


@pytest.mark.parametrize(
    ("need", "fits"),
    [
        (Need("small", 10, 1000, 300, 5000), True),
        (Need("a.<b>&'\"", 10, 40 * MIB, MIB, 20 * MIB), True),
        (Need("huge", 10**7, 3 * 1024 * MIB, 9 * MIB, 80 * 1024 * MIB), False),
        (Need("large messages", 3, 900 * MIB, 300 * MIB, 900 * MIB, ring=7), False),
    ],
)
def test_advice_holds_what_was_needed(
    need: Need, fits: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    advice = advise(need, 64 * MIB)
    wanted = max(need.peak_bytes, need.outage_bytes)
    assert (advice.disk_bytes == 0) is fits
    assert max(advice.max_size_bytes if fits else 0, advice.disk_bytes) >= wanted
    assert advice.page_size_bytes >= 2 * need.largest_bytes
    assert advice.page_size_bytes <= advice.max_size_bytes
    assert advice.ring_size is None or advice.ring_size >= (need.ring or 0)
    file = tmp_path / "broker.xml"
    file.write_text(as_xml([advice]), "utf-8")
    code = main(["check", str(file)])
    assert code == 0, capsys.readouterr().out
