"""The archive through Spark: partitions, types, the cursor, and jobs that read what was archived."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow import dataset

from artemis_py.errors import PipelineError
from artemis_py.spark import views
from artemis_py.spark.jobs.archive import LogFeed, Upkeep, archive
from artemis_py.spark.jobs.archive_reader import ArchiveReader
from artemis_py.spark.jobs.archived import ArchiveTables
from artemis_py.spark.jobs.delta import DeltaPlace
from artemis_py.spark.jobs.source import JobError, Span
from artemis_py.spark.read.options import read_options
from artemis_py.spark.tables.schema import TABLES
from artemis_py.storage.format import codec, records
from tests.spark import readers
from tests.spark.logs import feed
from tests.spark.made_log import MadeLog
from tests.spark.readers import Row
from tests.spark.traffic_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROKER = "world"
MIDNIGHT_MS = 1_767_225_600_000 + 86_400_000  # 2026-01-02T00:00:00Z
EARLIER_MS = MIDNIGHT_MS - 20_000
FAR_MS = 999_999_999_999_999_999  # behind the year 9999, the last of Python's dates


def moment_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def log_rows(log: MadeLog, table: str = "messages", **options: str) -> list[Row]:
    """The rows of the log as its readers find them."""
    return readers.rows_read({"journal": f"{BROKER}={log.folder}", "table": table, **options})


def more(log: MadeLog, begin_ms: int) -> None:
    """A segment of 40 s: each message is taken after a second, and acknowledged after two."""
    log.segment(begin_ms)
    for now_ms in range(begin_ms, begin_ms + 40_000, 2000):
        first = log.messages + 1
        for address in ("orders", "later", "news", "orders.eu"):
            log.publish(now_ms, 2, address)
        for after_ms, kind, payload in (
            (1000, records.DELIVERED, codec.encode_ids(3, [first, first + 1], 0)),
            (2000, records.SETTLED, codec.encode_settled(3, "acked", [first])),
        ):
            log.batch(now_ms + after_ms, partial(log.record, kind, payload))
    log.close()


@pytest.fixture(scope="module", params=["parquet", "delta"])
def archived(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, MadeLog]:
    """An archive made by three runs: one that fails on its way, one that goes on, one of what came later."""
    directory, log = tmp_path_factory.mktemp("archive"), MadeLog(tmp_path_factory.mktemp("log"))
    for begin_ms in (MIDNIGHT_MS - 80_000, MIDNIGHT_MS - 40_000):
        more(log, begin_ms)
    source = {"journal": f"{BROKER}={log.folder}"}
    step, _ = feed(source).step_ends(0)
    true_frame = LogFeed.frame

    def fail_later(*given: Any) -> Any:
        if given[-1] > step:
            raise JobError("the broker is gone")
        return true_frame(*given)

    with patch.object(LogFeed, "confirm", autospec=True) as confirm:
        with patch.object(LogFeed, "frame", fail_later), pytest.raises(JobError, match="the broker is gone"):
            archive(spark, [feed(source)], directory, layout=request.param)
        assert [call.args[1] for call in confirm.call_args_list] == [0, step]
        archive(spark, [feed(source)], directory)
        more(log, MIDNIGHT_MS)
        result = archive(spark, [feed(source)], directory, upkeep=Upkeep(lambda: MIDNIGHT_MS))
        confirmed = [call.args[1] for call in confirm.call_args_list]
    assert confirmed == sorted(confirmed)
    assert confirmed[-1] == log.lsn - 1 == rows_of(result.table("brokers"))[0]["to"]
    return directory, log


def test_every_row_once(spark: SparkSession, archived: tuple[Path, MadeLog]) -> None:
    from artemis_py.spark.jobs.archive import TABLES

    directory, log = archived
    source = ArchiveTables(directory)
    columns = {
        "messages": ("messageId", "address", "value", "offset"),
        "events": ("offset", "event", "queue", "messageId"),
    }
    for table in TABLES:
        found = Counter(tuple(row) for row in source.table(spark, table, columns[table]).collect())
        assert found == Counter(tuple(row[name] for name in columns[table]) for row in log_rows(log, table)), table


def test_laid_out_as_documented(archived: tuple[Path, MadeLog]) -> None:
    """By date and address, or by address and hour; what is before midnight is compacted."""
    directory, log = archived
    sent = log_rows(log)
    before = {row["address"] for row in sent if moment_ms(row["publishedAt"]) < MIDNIGHT_MS}
    after = {row["address"] for row in sent if moment_ms(row["publishedAt"]) >= MIDNIGHT_MS}
    if (directory / "messages" / "_delta_log").exists():
        files = DeltaPlace(str(directory / "messages")).files()
        found = Counter((one.partition["address"], one.partition["hour"]) for one in files)
        hours = ("2026-01-01T23", "2026-01-02T00")
        assert found.keys() == {(name, hours[0]) for name in before} | {(name, hours[1]) for name in after}
        assert {count for (_, hour), count in found.items() if hour == hours[0]} == {1}
        assert sum(one.rows for one in files) == len(sent)
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


def test_dates_are_those_of_utc_in_every_session(spark: SparkSession, tmp_path: Path) -> None:
    log = MadeLog(tmp_path / "log")
    more(log, MIDNIGHT_MS - 80_000)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        archive(spark, [feed({"journal": f"{BROKER}={log.folder}"})], tmp_path, tables=["events"])
        assert spark.conf.get("spark.sql.session.timeZone") == "Pacific/Auckland"
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert {path.name for path in tmp_path.glob("events/date=*")} == {"date=2026-01-01"}


def test_other_tools_read_it(archived: tuple[Path, MadeLog]) -> None:
    directory, log = archived
    where = directory / "messages"
    if (where / "_delta_log").exists():
        table = pa.table(QueryBuilder().register("m", DeltaTable(where)).execute("SELECT * FROM m").read_all())
    else:
        table = dataset.dataset(where, format="parquet", partitioning="hive").to_table()
    assert table.num_rows == log.messages
    assert table.schema.field("publishedAt").type == pa.timestamp("us", tz="UTC")


def test_nothing_new_changes_nothing(spark: SparkSession, archived: tuple[Path, MadeLog]) -> None:
    directory, log = archived
    files = sorted(directory.rglob("*.parquet"))
    result = archive(spark, [feed({"journal": f"{BROKER}={log.folder}"})], directory)  # in the format that is there
    assert rows_of(result.table("brokers"))[0]["steps"] == 0
    assert sorted(directory.rglob("*.parquet")) == files


def test_jobs_read_the_archive(spark: SparkSession, archived: tuple[Path, MadeLog]) -> None:
    directory, log = archived
    sent = log_rows(log)
    source = ArchiveTables(directory, Span(from_ms=MIDNIGHT_MS))
    source.table(spark, "events", ("address", "event")).createOrReplaceTempView("archived_events")
    published = spark.sql("SELECT address FROM archived_events WHERE event = 'published'").collect()
    assert Counter(row.address for row in published) == Counter(
        row["address"] for row in sent if moment_ms(row["publishedAt"]) >= MIDNIGHT_MS
    )
    source = ArchiveTables(directory, Span(to_ms=MIDNIGHT_MS), ("orders", "later"))
    rows = source.frame(spark, "messages").select("messageId", "address", "value", "headers").collect()
    wanted = [
        row for row in sent if moment_ms(row["publishedAt"]) < MIDNIGHT_MS and row["address"] in ("orders", "later")
    ]
    assert Counter(row.messageId for row in rows) == Counter(row["messageId"] for row in wanted)


def test_only_files_of_the_addresses_and_hours_are_read(archived: tuple[Path, MadeLog]) -> None:
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
def test_the_archive_by_the_options_of_the_log(spark: SparkSession, archived: tuple[Path, MadeLog], table: str) -> None:
    """The same rows in the same columns as those of the log."""
    directory, log = archived
    frame = spark.read.format("artemis").options(archive=str(directory), table=table).load()
    assert frame.columns == [name for name in TABLES[table] if name != "headers"]
    offsets = sorted({row["offset"] for row in log_rows(log, table)})
    cases: list[dict[str, str]] = [
        {},
        {"subscribe": "orders"},
        {"subscribePattern": "orders.#", "subscribe": "later"},
        {"startingTimestamp": str(EARLIER_MS)},
        {"endingTimestamp": str(EARLIER_MS)},
        {"subscribe": "orders", "startingTimestamp": f'{{"orders": {MIDNIGHT_MS}}}'},
        {
            "startingOffsets": f'{{"{BROKER}": {offsets[50]}}}',
            "endingOffsets": f'{{"{BROKER}": {offsets[150]}}}',
        },
    ]
    counts = []
    for options in cases:
        wanted = log_rows(log, table, **options)
        found = readers.rows_read({"archive": str(directory), "table": table, **options})
        assert Counter(map(repr, found)) == Counter(map(repr, wanted)), options
        counts.append(len(wanted))
    assert counts[0] > max(counts[1:]) > min(counts) > 0


@pytest.mark.parametrize("table", ["messages", "events", "addresses"])
def test_times_behind_the_year_9999(archived: tuple[Path, MadeLog], table: str) -> None:
    """Such an end leaves nothing out, and such a start everything."""
    given = {"archive": str(archived[0]), "table": table}
    rows = readers.rows_read({**given, "endingTimestamp": str(FAR_MS)})
    assert len(rows) == len(readers.rows_read(given)) > 0
    if table != "addresses":  # the log's cannot have a start
        assert readers.rows_read({**given, "startingTimestamp": str(FAR_MS)}) == []


@pytest.mark.parametrize(("option", "column"), [("endingTimestamp", "publishedAt"), ("endingOffsets", "offset")])
def test_addresses_before_an_end_within_a_file(archived: tuple[Path, MadeLog], option: str, column: str) -> None:
    """The file of the address that came last has rows of the same hour, and is opened."""
    directory, log = archived
    firsts: dict[str, int] = {}
    for row in log_rows(log):
        firsts.setdefault(row["address"], moment_ms(row[column]) if column == "publishedAt" else row[column])
    last, first = max(firsts.items(), key=itemgetter(1))
    end = str(first - 1) if option == "endingTimestamp" else f'{{"{BROKER}": {first - 1}}}'
    reader = ArchiveReader(read_options({"archive": str(directory), "table": "addresses", option: end}))
    [share] = reader.partitions()
    assert last in {one.partition["address"] for one in share.files}  # type: ignore[attr-defined]
    found = readers.rows_of(reader, [share])
    assert found == [{"broker": BROKER, "address": address} for address in sorted(firsts) if firsts[address] < first]


def test_the_archive_in_sql(spark: SparkSession, archived: tuple[Path, MadeLog]) -> None:
    names = views(spark, {"archive": str(archived[0])}, "archived")
    try:
        sent = log_rows(archived[1])
        assert set(names) == {row["address"] for row in sent}
        orders = sum(row["address"] == "orders" for row in sent)
        assert spark.sql("SELECT count(DISTINCT messageId) FROM archived.orders").first() == (orders,)
        assert spark.sql("SELECT count(*) FROM archived.latency WHERE waitMs >= 0").first() != (0,)
    finally:
        spark.sql("DROP DATABASE archived CASCADE")


def test_what_an_archive_does_not_have(spark: SparkSession, archived: tuple[Path, MadeLog]) -> None:
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
