"""The archive through Spark: partitions, types, the cursor, and jobs that read what was archived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow import dataset
from pyspark.sql import functions

from artemis_py.errors import PipelineError
from artemis_py.spark import views
from artemis_py.spark.jobs.archive import Feed, Upkeep, archive
from artemis_py.spark.jobs.archive_reader import ArchiveReader
from artemis_py.spark.jobs.archived import ArchiveTables
from artemis_py.spark.jobs.delta import DeltaPlace
from artemis_py.spark.jobs.source import JobError, Span
from artemis_py.spark.log.log import Mark
from artemis_py.spark.read.options import read_options
from artemis_py.spark.tables.schema import TABLES
from tests.spark import readers
from tests.spark.readers import Row
from tests.spark.traffic import BROKER, START_MS, SimulatedTraffic
from tests.spark.traffic_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MIDNIGHT_MS = START_MS + 60_000
EARLIER_MS = MIDNIGHT_MS - 20_000
FAR_MS = 999_999_999_999_999_999  # behind the year 9999, the last of Python's dates


def moment_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def archive_rows(directory: Path, **options: str) -> list[Row]:
    """As tasks read them."""
    source = ArchiveReader(read_options({"archive": str(directory), **options}))
    return readers.rows_of(source, source.partitions())


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


@pytest.fixture(scope="module", params=["parquet", "delta"])
def archived(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    world: SimulatedTraffic,
    tables: dict[str, DataFrame],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, WorldFeed]:
    """An archive made by three runs: one that fails on its way, one that goes on, one of what came later."""
    directory = tmp_path_factory.mktemp("archive")
    last = max(row["offset"] for row in world.event_rows())
    feed = WorldFeed(tables, durable=last - 3000)
    feed.fails_at = 8000
    with pytest.raises(JobError, match="the broker is gone"):
        archive(spark, [feed], directory, layout=request.param)
    assert feed.confirmed == [0, 7000]
    feed.fails_at = None
    archive(spark, [feed], directory)
    feed.durable = last
    result = archive(spark, [feed], directory, upkeep=Upkeep(lambda: MIDNIGHT_MS))
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


def test_laid_out_as_documented(world: SimulatedTraffic, archived: tuple[Path, WorldFeed]) -> None:
    """By date and address, or by address and hour; what is before midnight is compacted."""
    directory, _ = archived
    before = {message.address for message in world.sent if message.at_ms < MIDNIGHT_MS}
    after = {message.address for message in world.sent if message.at_ms >= MIDNIGHT_MS}
    if (directory / "messages" / "_delta_log").exists():
        files = DeltaPlace(str(directory / "messages")).files()
        found = Counter((one.partition["address"], one.partition["hour"]) for one in files)
        hours = ("2026-01-01T23", "2026-01-02T00")
        assert found.keys() == {(name, hours[0]) for name in before} | {(name, hours[1]) for name in after}
        assert {count for (_, hour), count in found.items() if hour == hours[0]} == {1}
        assert sum(one.rows for one in files) == len(world.sent)
        return
    found_names = {(path.parent.name, path.name) for path in directory.glob("messages/date=*/address=*")}
    assert found_names == {("date=2026-01-01", f"address={name}") for name in before} | {
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
    directory, _ = archived
    where = directory / "messages"
    if (where / "_delta_log").exists():
        table = pa.table(QueryBuilder().register("m", DeltaTable(where)).execute("SELECT * FROM m").read_all())
    else:
        table = dataset.dataset(where, format="parquet", partitioning="hive").to_table()
    assert table.num_rows == len(world.sent)
    assert table.schema.field("publishedAt").type == pa.timestamp("us", tz="UTC")


def test_nothing_new_changes_nothing(spark: SparkSession, archived: tuple[Path, WorldFeed]) -> None:
    directory, feed = archived
    files = sorted(directory.rglob("*.parquet"))
    result = archive(spark, [feed], directory)  # in the format that is there
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
    source = ArchiveTables(directory, Span(to_ms=MIDNIGHT_MS), ("orders", "later"))
    rows = source.frame(spark, "messages").select("messageId", "address", "value", "headers").collect()
    wanted = [one for one in world.sent if one.at_ms < MIDNIGHT_MS and one.address in ("orders", "later")]
    assert Counter(row.messageId for row in rows) == Counter(one.id for one in wanted)


def test_only_files_of_the_addresses_and_hours_are_read(archived: tuple[Path, WorldFeed]) -> None:
    directory, _ = archived
    options = {"archive": str(directory), "subscribe": "orders", "startingTimestamp": str(MIDNIGHT_MS)}
    planned = ArchiveReader(read_options(options)).partitions()
    read = [one.partition for share in planned for one in share.files]  # type: ignore[attr-defined]
    assert {(one["address"], one.get("hour") or one["date"]) for one in read} in (
        {("orders", "2026-01-02T00")}, {("orders", "2026-01-02")},
    )  # fmt: skip


def test_no_archive_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="has no table events; artemis-py pipeline archive writes it"):
        ArchiveTables(tmp_path).table(spark, "events", ("offset",))
    with pytest.raises(JobError, match="is not an archive; artemis-py pipeline archive makes one"):
        ArchiveReader(read_options({"archive": str(tmp_path)})).partitions()


@pytest.mark.parametrize("table", ["messages", "events"])
def test_the_archive_by_the_options_of_the_log(
    spark: SparkSession, archived: tuple[Path, WorldFeed], world: SimulatedTraffic, table: str
) -> None:
    """The same rows in the same columns as those of the log that meet the condition."""
    every = world.message_rows() if table == "messages" else world.event_rows()
    offsets = sorted({row["offset"] for row in every})
    first, last = offsets[50], offsets[150]
    at = {row["offset"]: moment_ms(row["publishedAt" if table == "messages" else "timestamp"]) for row in every}
    cases: list[tuple[dict[str, str], Callable[[Row], bool]]] = [
        ({}, lambda _row: True),
        ({"subscribe": "orders"}, lambda row: row["address"] == "orders"),
        (
            {"subscribePattern": "orders.#", "subscribe": "later"},
            lambda row: row["address"] in ("orders", "later"),
        ),
        ({"startingTimestamp": str(EARLIER_MS)}, lambda row: at[row["offset"]] >= EARLIER_MS),
        ({"endingTimestamp": str(EARLIER_MS)}, lambda row: at[row["offset"]] <= EARLIER_MS),
        (
            {"subscribe": "orders", "startingTimestamp": f'{{"orders": {MIDNIGHT_MS}}}'},
            lambda row: row["address"] == "orders" and at[row["offset"]] >= MIDNIGHT_MS,
        ),
        (
            {"startingOffsets": f'{{"{BROKER}": {first}}}', "endingOffsets": f'{{"{BROKER}": {last}}}'},
            lambda row: first < row["offset"] <= last,
        ),
    ]

    def shown(row: Row) -> str:
        return repr([moment_ms(row[name]) if isinstance(row[name], datetime) else row[name] for name in columns])

    frame = spark.read.format("artemis").options(archive=str(archived[0]), table=table).load()
    columns = [name for name in TABLES[table] if name != "headers"]
    assert frame.columns == columns
    for options, is_wanted in cases:
        rows = archive_rows(archived[0], table=table, **options)
        found = Counter(map(shown, rows))
        assert found == Counter(shown(row) for row in every if is_wanted(row)), options
        assert found


@pytest.mark.parametrize("table", ["messages", "events", "addresses"])
def test_times_behind_the_year_9999(archived: tuple[Path, WorldFeed], table: str) -> None:
    """Such an end leaves nothing out, and such a start everything."""

    rows = partial(archive_rows, archived[0], table=table)
    assert len(rows(endingTimestamp=str(FAR_MS))) == len(rows()) > 0
    if table != "addresses":  # the log's cannot have a start
        assert rows(startingTimestamp=str(FAR_MS)) == []


@pytest.mark.parametrize(
    ("option", "column"), [("endingTimestamp", "unix_millis(publishedAt)"), ("endingOffsets", "offset")]
)
def test_addresses_before_an_end_within_a_file(
    archived: tuple[Path, WorldFeed], tables: dict[str, DataFrame], option: str, column: str
) -> None:
    """The file of the address that came last has rows of the same hour, and is opened."""
    frame = tables["messages"].groupBy("address").agg(functions.expr(f"min({column})"))
    firsts: dict[str, int] = dict(frame.collect())
    last, first = max(firsts.items(), key=itemgetter(1))
    end = str(first - 1) if option == "endingTimestamp" else f'{{"{BROKER}": {first - 1}}}'
    source = ArchiveReader(read_options({"archive": str(archived[0]), "table": "addresses", option: end}))
    [share] = source.partitions()
    assert last in {one.partition["address"] for one in share.files}  # type: ignore[attr-defined]
    found = readers.rows_of(source, [share])
    assert found == [{"broker": BROKER, "address": address} for address in sorted(firsts) if firsts[address] < first]


def test_the_archive_in_sql(spark: SparkSession, archived: tuple[Path, WorldFeed], world: SimulatedTraffic) -> None:
    names = views(spark, {"archive": str(archived[0])}, "archived")
    try:
        assert set(names) == {message.address for message in world.sent}
        orders = [message.id for message in world.sent if message.address == "orders"]
        assert spark.sql("SELECT count(DISTINCT messageId) FROM archived.orders").first() == (len(orders),)
        assert spark.sql("SELECT count(*) FROM archived.latency WHERE waitMs >= 0").first() != (0,)
    finally:
        spark.sql("DROP DATABASE archived CASCADE")


def test_what_an_archive_does_not_have(spark: SparkSession, archived: tuple[Path, WorldFeed]) -> None:
    archive_of = {"archive": str(archived[0])}
    with pytest.raises(PipelineError, match="go on with a stream of the log"):
        read_options(archive_of, streaming=True)
    with pytest.raises(PipelineError, match="queues needs a log: url or journal"):
        read_options({**archive_of, "table": "queues"})
    with pytest.raises(PipelineError, match="option url is for a log"):
        read_options({**archive_of, "url": "http://localhost:8161"})
    with pytest.raises(PipelineError, match=f"names broker other, which is not read; the brokers are {BROKER}"):
        ArchiveReader(read_options({**archive_of, "startingOffsets": '{"other": 1}'})).partitions()
    with pytest.raises(PipelineError, match="they cannot have storage"):
        views(spark, {**archive_of, "storage.aws_secret_access_key": "x"})
