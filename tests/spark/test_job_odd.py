"""Jobs on odd traffic through a real broker: they tell what its clients saw, and no more than the log knows, by url and
from directories, in batches and from streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import pytest

from artemis_py.spark.jobs.source import TIME_COLUMNS, LogTables, Source
from tests.spark.odd_traffic import Odd, odd_traffic
from tests.spark.traffic_tables import Frames, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odd]:
    """One broker for all tests of this file."""
    with odd_traffic(tmp_path_factory.mktemp("odd") / "broker") as odd:
        yield odd


@pytest.fixture(scope="module", params=product(("url", "directories"), ("batch", "stream")), ids="-".join)
def source(request: pytest.FixtureRequest, spark: SparkSession, odd: Odd) -> Source:
    """Its log; of a stream what that has read."""
    place, mode = request.param
    where = {"url": odd.broker.url} if place == "url" else {"journal": str(odd.broker.folder), "broker": "e2e"}
    if mode == "batch":
        return LogTables(where)
    return Frames({table: streamed(spark, table, where) for table in TIME_COLUMNS})


def streamed(spark: SparkSession, table: str, where: dict[str, str]) -> DataFrame:
    """All that there is of a table by now."""
    options = {**where, "table": table, "includeHeaders": "true", "startingOffsets": "earliest"}
    writer = spark.readStream.format("artemis").options(**options).load().writeStream.format("memory")
    writer.queryName("odd").trigger(availableNow=True).start().awaitTermination()
    found = spark.table("odd")
    return spark.createDataFrame(found.collect(), found.schema)  # jobs join it with itself, which Spark's cannot


def test_what_was_lost(spark: SparkSession, source: Source, odd: Odd) -> None:
    from artemis_py.spark.jobs.dead_letters import dead_letters
    from artemis_py.spark.jobs.losses import losses

    rows = rows_of(losses(spark, source).table("losses"))
    assert {(row["cause"], row["queue"], row["messages"], row["kept"], row["user"]) for row in rows} == {
        ("replaced", "ring", 8 - odd.seen["ring"], 0, "ann"), ("expired", "gone", 1, 0, "ann"),
        ("dead", "poison", 1, 1, "ann"),
    }  # fmt: skip
    events = source.table(spark, "events", ["event", "queue"]).where("queue = 'values'").collect()
    assert [row.event for row in events].count("superseded") == 4, "a newer value is no loss"
    [group] = rows_of(dead_letters(spark, source).table("groups"))
    assert (group["reason"], group["originalQueue"], group["messages"]) == ("max_deliveries", "poison", 1)


def test_only_what_the_broker_wrote_says_of_what_a_message_is_a_copy(
    spark: SparkSession, source: Source, odd: Odd
) -> None:
    """Clients may send the same headers."""
    columns = ["address", "messageId", "originalAddress", "originalQueue", "originalMessageId", "reason", "user"]
    rows = source.table(spark, "messages", columns).where("address in ('DLQ', 'door', 'room')").orderBy("messageId")
    dead, again, sent, diverted = rows.collect()
    assert dead[2:] == ("poison", "poison", odd.poison.rpartition("-")[2], "max_deliveries", None)
    assert (again.address, sent.address) == ("DLQ", "door")
    assert again[2:] == sent[2:] == (None, None, None, None, "ann")
    assert diverted[2:] == ("door", "open", str(sent.messageId), None, "ann")
    found = source.table(spark, "messages", columns).where("reason is not null").collect()
    assert [row.messageId for row in found] == [dead.messageId]


def test_one_life(spark: SparkSession, odd: Odd) -> None:
    from artemis_py.spark.jobs.trace import trace

    log = LogTables({"url": odd.broker.url})
    told = [row["what"] for row in rows_of(trace(spark, log, odd.poison).table("events"))]
    assert told == ["arrived", "delivered", "failed", "delivered", "failed", "dead", "copied", "there"]
