"""The archive through Spark: partitions, types, the cursor, and jobs that read what was archived."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from artemis_py.spark.jobs.archive import Feed, archive
from artemis_py.spark.jobs.source import ArchiveTables, JobError, Span
from artemis_py.spark.log.log import Mark
from tests.spark.traffic import BROKER, START_MS, SimulatedTraffic
from tests.spark.traffic_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MIDNIGHT_MS = START_MS + 60_000


class WorldFeed(Feed):
    """The world as the log of one broker; ``durable`` is how far it can be read now."""

    def __init__(self, tables: dict[str, DataFrame], durable: int) -> None:
        self.broker = BROKER
        self.tables = tables
        self.durable = durable
        self.confirmed: list[int] = []
        self.fails_at: int | None = None

    def check(self, lsn: int, mark: Mark | None) -> None:
        assert (mark is None) == (lsn == 0)

    def mark(self, lsn: int) -> Mark:
        return {"id": "world", "at": lsn}

    def step_ends(self, after_lsn: int) -> list[int]:
        return [*range(after_lsn + 7000, self.durable, 7000), self.durable] if after_lsn < self.durable else []

    def frame(self, spark: SparkSession, table: str, after_lsn: int, up_to_lsn: int) -> DataFrame:
        if self.fails_at is not None and up_to_lsn >= self.fails_at:
            raise JobError("the broker is gone")
        return self.tables[table].where(f"offset > {after_lsn} and offset <= {up_to_lsn}")

    def confirm(self, lsn: int) -> None:
        self.confirmed.append(lsn)


@pytest.fixture(scope="module")
def world() -> SimulatedTraffic:
    """A small world around midnight."""
    return SimulatedTraffic(seed=3, length_ms=65_000)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, world: SimulatedTraffic) -> dict[str, DataFrame]:
    """Its tables."""
    return {"messages": world.messages(spark), "events": world.events(spark)}


@pytest.fixture(scope="module")
def archived(
    spark: SparkSession, world: SimulatedTraffic, tables: dict[str, DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, WorldFeed]:
    """An archive made by three runs: one that fails on its way, one that goes on, one of what came later."""
    directory = tmp_path_factory.mktemp("archive")
    last = max(row["offset"] for row in world.event_rows())
    feed = WorldFeed(tables, durable=last - 3000)
    feed.fails_at = 8000
    with pytest.raises(JobError, match="the broker is gone"):
        archive(spark, [feed], directory)
    assert feed.confirmed == [0, 7000]
    feed.fails_at = None
    archive(spark, [feed], directory)
    feed.durable = last
    result = archive(spark, [feed], directory, compact_before="2026-01-02")
    assert rows_of(result.table("brokers"))[0]["to"] == last
    return directory, feed


def test_every_row_once(spark: SparkSession, world: SimulatedTraffic, archived: tuple[Path, WorldFeed]) -> None:
    from artemis_py.spark.jobs.archive import TABLES

    directory, feed = archived
    source = ArchiveTables(directory)
    columns = {
        "messages": ("messageId", "address", "value", "offset"),
        "events": ("offset", "event", "queue", "messageId"),
    }
    wanted = {"messages": world.message_rows(), "events": world.event_rows()}
    for table in TABLES:
        found = Counter(tuple(row) for row in source.table(spark, table, columns[table]).collect())
        assert found == Counter(tuple(row[name] for name in columns[table]) for row in wanted[table]), table
    assert feed.confirmed == sorted(feed.confirmed)
    assert feed.confirmed[-1] == feed.durable


def test_laid_out_by_date_and_address(world: SimulatedTraffic, archived: tuple[Path, WorldFeed]) -> None:
    directory, _ = archived
    before = {message.address for message in world.sent if message.at_ms < MIDNIGHT_MS}
    after = {message.address for message in world.sent if message.at_ms >= MIDNIGHT_MS}
    found = {(path.parent.name, path.name) for path in directory.glob("messages/date=*/address=*")}
    assert found == {("date=2026-01-01", f"address={name}") for name in before} | {
        ("date=2026-01-02", f"address={name}") for name in after
    }
    orders = list(directory.glob("messages/date=2026-01-01/address=orders/batch=*"))
    assert [path.name.startswith("batch=compacted-") for path in orders] == [True]
    later = list(directory.glob("messages/date=2026-01-02/address=orders/batch=*"))
    assert later
    assert all(path.name.startswith(f"batch={BROKER}-") for path in later)


def test_dates_are_those_of_utc_in_every_session(
    spark: SparkSession, world: SimulatedTraffic, tables: dict[str, DataFrame], tmp_path: Path
) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        archive(spark, [WorldFeed(tables, durable=3000)], tmp_path, tables=["events"])
        assert spark.conf.get("spark.sql.session.timeZone") == "Pacific/Auckland"
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert {path.name for path in tmp_path.glob("events/date=*")} == {"date=2026-01-01"}


def test_other_tools_read_it(world: SimulatedTraffic, archived: tuple[Path, WorldFeed]) -> None:
    import pyarrow as pa
    from pyarrow import dataset

    directory, _ = archived
    table = dataset.dataset(directory / "messages", format="parquet", partitioning="hive").to_table()
    assert table.num_rows == len(world.sent)
    assert table.schema.field("publishedAt").type == pa.timestamp("us", tz="UTC")


def test_nothing_new_changes_nothing(spark: SparkSession, archived: tuple[Path, WorldFeed]) -> None:
    directory, feed = archived
    files = sorted(directory.rglob("*.parquet"))
    result = archive(spark, [feed], directory)
    assert rows_of(result.table("brokers"))[0]["steps"] == 0
    assert sorted(directory.rglob("*.parquet")) == files


def test_jobs_read_the_archive(spark: SparkSession, world: SimulatedTraffic, archived: tuple[Path, WorldFeed]) -> None:
    directory, _ = archived
    source = ArchiveTables(directory, Span(from_ms=MIDNIGHT_MS))
    source.table(spark, "events", ("address", "event")).createOrReplaceTempView("archived_events")
    published = spark.sql("SELECT address FROM archived_events WHERE event = 'published'").collect()
    assert Counter(row.address for row in published) == Counter(
        message.address for message in world.sent if message.at_ms >= MIDNIGHT_MS
    )


def test_no_archive_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="has no table events; artemis-py pipeline archive writes it"):
        ArchiveTables(tmp_path).table(spark, "events", ("offset",))
