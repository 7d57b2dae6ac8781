"""Jobs on odd traffic through a real broker: they tell what its clients saw, and no more than the log knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.spark.jobs.source import LogTables
from tests.spark.odd_traffic import HOARDED, LARGE_BYTES, Odd, odd_traffic
from tests.spark.traffic_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odd]:
    """One broker for all tests of this file."""
    with odd_traffic(tmp_path_factory.mktemp("odd") / "broker") as odd:
        yield odd


@pytest.fixture
def source(odd: Odd) -> LogTables:
    """Its log."""
    return LogTables({"url": odd.broker.url})


def test_who_got_what(spark: SparkSession, source: LogTables, odd: Odd) -> None:
    """Delivered, acknowledged, neither given back nor acknowledged: hoarders, transactions, dead letters, topics."""
    from artemis_py.spark.jobs.fairness import fairness

    result = fairness(spark, source)
    found = {str(row["consumer"]).rpartition("/")[2]: row for row in rows_of(result.table("consumers"))}
    assert {name: (row["delivered"], row["acked"], row["unacked"]) for name, row in found.items()} == {
        "hoarder": (HOARDED, 0, HOARDED), "one": (2, 0, 2), "auto": (10, 10, 0), "tx": (3, 1, 2), "large": (1, 1, 0),
        "ring": (odd.seen["ring"], odd.seen["ring"], 0), "quick": (5, 5, 0), "slow": (5, 0, 5),
    }  # fmt: skip
    assert {row["jain"] for row in rows_of(result.table("queues"))} == {1.0}
    assert result.notes == ["consumers that never got a message are not in the log and do not count"]


def test_how_long_and_how_many(spark: SparkSession, source: LogTables, odd: Odd) -> None:
    from artemis_py.spark.jobs.latency import latency
    from artemis_py.spark.jobs.throughput import throughput

    waited = latency(spark, source)
    found = {row["queue"]: row for row in rows_of(waited.table("queues"))}
    ring = odd.seen["ring"]
    assert {name: (row["messages"], row["delivered"], row["acked"]) for name, row in found.items()} == {
        "hoard": (HOARDED, HOARDED, 0), "poison": (1, 1, 0), "DLQ": (1, 0, 0), "auto": (10, 10, 10), "tx": (2, 2, 1),
        "ring": (8, ring, ring), "gone": (1, 0, 0), "quick.quick": (5, 5, 5), "slow.slow": (5, 5, 0),
        "large": (1, 1, 1),
    }  # fmt: skip
    assert {name for name, row in found.items() if row["hold50"] is None} == {
        "hoard", "poison", "DLQ", "gone", "slow.slow"
    }  # fmt: skip
    assert waited.notes == [f"{8 - ring + 2} messages were not delivered in this time span"]
    moved = throughput(spark, source)
    published: dict[Any, Any] = {row["address"]: row["published"] for row in rows_of(moved.table("addresses"))}
    temporary = [address for address in published if "answers" in address]
    assert [published.pop(address) for address in temporary] == [1]
    assert published == {
        "hoard": HOARDED, "poison": 1, "DLQ": 1, "auto": 10, "ring": 8, "tx": 2, "gone": 1, "fan": 5, "large": 1,
        "empty": 1,
    }  # fmt: skip


def test_what_was_lost(spark: SparkSession, source: LogTables, odd: Odd) -> None:
    from artemis_py.spark.jobs.dead_letters import dead_letters
    from artemis_py.spark.jobs.losses import losses

    rows = rows_of(losses(spark, source).table("losses"))
    assert {(row["cause"], row["queue"], row["messages"], row["kept"], row["user"]) for row in rows} == {
        ("replaced", "ring", 8 - odd.seen["ring"], 0, "ann"), ("expired", "gone", 1, 0, "ann"),
        ("dead", "poison", 1, 1, "ann"),
    }  # fmt: skip
    [group] = rows_of(dead_letters(spark, source).table("groups"))
    assert (group["reason"], group["originalQueue"], group["messages"]) == ("max_deliveries", "poison", 1)


def test_one_life(spark: SparkSession, source: LogTables, odd: Odd) -> None:
    from artemis_py.spark.jobs.trace import trace

    picture = trace(spark, source, odd.poison).texts[0].body
    assert picture.count("delivered to") == picture.count("returned: failed delivery") == 2
    assert "continued as message" in picture


def test_what_would_have_been_needed(spark: SparkSession, source: LogTables, odd: Odd) -> None:
    """A consumer that keeps up may be able to do more: nobody can tell how fast it would drain."""
    from artemis_py.spark.jobs.capacity import capacity

    result = capacity(spark, source, outage_s=60)
    found = {row["queue"]: row for row in rows_of(result.table("queues"))}
    assert found["hoard"]["peakDepth"] == HOARDED
    assert (found["auto"]["arrivals"], found["auto"]["peakDepth"]) == (10, 1)
    [large] = [row for row in rows_of(result.table("addresses")) if row["address"] == "large"]
    assert int(str(large["largestBytes"])) > LARGE_BYTES
    never = {note.partition(":")[0] for note in result.notes if "a backlog never drains" in note}
    assert never <= {"tx"}
    [idle] = [note for note in result.notes if note.startswith("no consumer acknowledged anything in ")]
    assert set(idle.removeprefix("no consumer acknowledged anything in ").partition(";")[0].split(", ")) == {
        "hoard", "slow.slow", "DLQ", "gone", "poison"
    }  # fmt: skip
