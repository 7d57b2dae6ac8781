"""Replay: what is selected, what is published, in which order and at which rate; into a real broker."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from artemis_py.spark.jobs.replay import Target, replay
from artemis_py.spark.jobs.source import JobError, LogTables
from tests.spark.brokers import drained, journalled_broker, url_of
from tests.spark.live import live_broker
from tests.spark.traffic import BROKER, SimulatedTraffic
from tests.spark.traffic_tables import Frames, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


WORLD = {"seed": 5, "length_ms": 20_000}


def test_a_dry_run_tells_what_would_be_published(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    wanted = [m for m in world.sent if m.address == "orders" and ("region", "eu") in m.headers and b"total" in m.body]
    target = Target("fix", {})
    result = replay(
        spark, source, target, where="address = 'orders' and header['region'] = 'eu' and text like '%total%'", rate=2
    )
    assert 5 < len(wanted) == result.fact("messages")
    assert result.fact("bytes") == sum(len(message.body) for message in wanted)
    assert result.fact("seconds") == round(len(wanted) / 2)
    [row] = rows_of(result.table("selection"))
    assert (row["address"], row["to"], row["messages"]) == ("orders", "fix", len(wanted))
    examples = rows_of(result.table("examples"))
    assert [row["messageId"] for row in examples] == [str(message.id) for message in wanted[:5]]
    assert any("dry run" in note for note in result.notes)


def test_a_condition_that_spark_refuses(spark: SparkSession, source: Frames) -> None:
    for where in ("adress = 'x'", "address = "):
        with pytest.raises(JobError, match=r"is not valid: .* The columns are those of the table messages"):
            replay(spark, source, Target("fix", {}), where=where)


@pytest.mark.takes_turns("the long jobs")
def test_published_again_in_order_at_a_rate_and_once(
    spark: SparkSession, source: Frames, world: SimulatedTraffic, tmp_path: Path
) -> None:
    wanted = [message for message in world.sent if message.reason == "max_deliveries"]
    rate = len(wanted) / 5 + 0.1
    moments: list[float] = []
    with journalled_broker(tmp_path) as broker:
        target = Target(None, {"url": url_of(broker)})
        for _ in range(2):  # the second finds that all of it was published
            result = replay(
                spark,
                source,
                target,
                where="reason = 'max_deliveries'",
                rate=rate,
                run_id="run",
                sleep_until=moments.append,
            )
        assert result.fact("messages") == len(wanted) > 10
        chunks = int(result.fact("chunks"))
        assert chunks == -(-len(wanted) // int(rate * 2)) > 2
        messages = drained(broker, "orders", len(wanted))
    assert [message.body for message in messages] == [each.body for each in wanted]
    assert [message.header("x-replay-of") for message in messages] == [f"{BROKER}/{each.id}" for each in wanted]
    for message, each in zip(messages, wanted, strict=True):
        assert message.header("n") == dict(each.headers)["n"]
        assert message.header("reason") is None
        assert message.header("_AMQ_ORIG_QUEUE") is None
    steps = [later - earlier for earlier, later in pairwise(moments[:chunks])]
    assert steps == pytest.approx([int(rate * 2) / rate] * (chunks - 1))


@pytest.mark.takes_turns("the long jobs")
def test_a_run_that_goes_on_publishes_nothing_twice(spark: SparkSession, tmp_path: Path) -> None:
    """What is another chunk by now, or has another ``x-replay-of``, is refused."""
    with live_broker(tmp_path, name="old") as broker:
        broker.send(0, 5)

        def run(source: dict[str, str]) -> None:
            target = Target("again", {"url": url_of(broker.process)})
            replay(spark, LogTables(source), target, where="address = 'orders'", run_id="run")

        run({"url": broker.url})
        broker.start_again("new")
        with pytest.raises(JobError, match=r"run run has published other messages from offset \d+ of broker new on"):
            run({"url": broker.url})
        run({"journal": f"old={tmp_path}"})
        broker.send(5, 1)
        with pytest.raises(JobError, match=r"of broker old on: .*--to leaves them out"):
            run({"journal": f"old={tmp_path}"})
        messages = drained(broker.process, "again", 5)
    assert [message.body for message in messages] == [b"0", b"1", b"2", b"3", b"4"]
