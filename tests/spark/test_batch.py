"""``spark.read.format("artemis")`` over directories: what is read, what need not be, and what is said of damage."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from artemis_py.errors import PipelineError
from artemis_py.spark.log.directory import Directories, find_directories
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import Share
from artemis_py.spark.source import ArtemisDataSource
from artemis_py.storage.format import codec, records
from tests.kit.files import flip
from tests.spark.made_log import HOUR_MS, START_MS, MadeLog, day_of_segments
from tests.spark.readers import pushed, rows_in, rows_of, rows_read, segments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day's log: 96 segments, 50 messages in each, three addresses in turn."""
    folder = tmp_path_factory.mktemp("day")
    day_of_segments(folder)
    return folder


def load(spark: SparkSession, folder: Path, **options: object) -> DataFrame:
    return spark.read.format("artemis").options(**{k: str(v) for k, v in options.items()}).load(str(folder))


HOURS = [f"timestamp_millis({START_MS + number * HOUR_MS})" for number in range(24)]
CONDITIONS = [
    "offset > 3000 and offset <= 3100",
    "offset = 77",
    "offset in (5, 4000, 900000)",
    "address = 'orders.1'",
    "topic in ('orders.0', 'nowhere')",
    "address = 'nowhere'",
    f"timestamp >= {HOURS[5]} and timestamp < {HOURS[6]}",
    f"publishedAt > {HOURS[23]}",
    f"publishedAt = {HOURS[2]}",
    f"timestamp <= {HOURS[1]} and address <=> 'orders.2'",
    "broker = 'one' and messageId < 9",
    "broker = 'two'",
    "address = 'orders.1' or offset < 100",
    "not address = 'orders.1'",
    "key is null and offset < 50",
    "value = cast('33' as binary)",
    "address is null",
    "offset = null",
]


@pytest.mark.takes_turns("the long jobs")
def test_a_table_that_is_asked_twice_has_all_its_rows(spark: SparkSession, day: Path) -> None:
    """Spark keeps with a loaded table what was planned under the first conditions, where they reach the reader: so they
    do not unless somebody says so.
    """
    rows = load(spark, day, broker="one")
    one, other = rows.where("address = 'orders.0'"), rows.where("address = 'orders.1'")
    assert one.count() < rows.count() == 96 * 50
    assert one.union(other).count() == one.count() + other.count() > one.count()
    rows.createOrReplaceTempView("asked_twice")
    joined = "SELECT count(*) AS n FROM asked_twice a JOIN asked_twice b USING (offset) WHERE a.address = 'orders.2'"
    assert spark.sql(joined).collect()[0].n == rows.where("address = 'orders.2'").count() > 0


@pytest.mark.usefixtures("pushing")
@pytest.mark.takes_turns("the long jobs")
def test_pushing_filters_down_changes_nothing(spark: SparkSession, day: Path) -> None:
    rows = load(spark, day, broker="one").localCheckpoint()  # nothing is pushed down behind that
    assert rows.count() == 96 * 50
    holds = [f"({condition}) as c{number}" for number, condition in enumerate(CONDITIONS)]
    answers = rows.selectExpr("offset as at", *holds).collect()
    for number, condition in enumerate(CONDITIONS):
        pushed = {row.offset for row in load(spark, day, broker="one").where(condition).select("offset").collect()}
        assert pushed == {row.at for row in answers if row[f"c{number}"]}, condition


def test_times_in_every_zone(spark: SparkSession, day: Path) -> None:
    """What a session calls a time changes what a text means, and neither the rows nor which are chosen."""
    name = "spark.sql.session.timeZone"
    before = str(spark.conf.get(name))
    try:
        for zone, text in (("America/New_York", "2023-11-14 20:13:20"), ("Asia/Kolkata", "2023-11-15 06:43:20")):
            spark.conf.set(name, zone)
            rows = load(spark, day).where(f"publishedAt = timestamp'{text}'").selectExpr("unix_millis(timestamp)")
            assert {row[0] for row in rows.collect()} == {START_MS + 3 * HOUR_MS}
    finally:
        spark.conf.set(name, before)


def test_only_segments_that_can_answer_are_read(day: Path) -> None:
    from datetime import UTC, datetime

    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan

    begin = datetime.fromtimestamp((START_MS + 5 * HOUR_MS) / 1000, UTC)
    end = datetime.fromtimestamp((START_MS + 6 * HOUR_MS - 1) / 1000, UTC)
    assert len(segments(day)) == 96
    for column in ("timestamp", "publishedAt"):
        asked = GreaterThanOrEqual((column,), begin), LessThan((column,), end)
        assert segments(day, *asked) == [21, 22, 23, 24]
    assert segments(day, EqualTo(("address",), "orders.1")) == list(range(2, 97, 3))
    assert segments(day, In(("topic",), ("orders.1", "x"))) == list(range(2, 97, 3))
    assert segments(day, EqualTo(("address",), "elsewhere")) == []
    assert segments(day, EqualTo(("offset",), 1)) == [1]
    assert segments(day, EqualTo(("broker",), "elsewhere")) == []
    assert segments(day, subscribe="orders.2") == list(range(3, 97, 3))
    assert segments(day, subscribePattern="orders.#") == list(range(1, 97))
    assert segments(day, subscribePattern="*.0", table="messages") == list(range(1, 97, 3))
    assert segments(day, startingTimestamp=str(START_MS + 23 * HOUR_MS)) == [93, 94, 95, 96]
    assert segments(day, endingTimestamp=str(START_MS)) == [1]


def test_offsets_of_options(day: Path) -> None:
    offsets = [row["offset"] for row in rows_in(day)]
    low, high = min(offsets), max(offsets)
    assert len(rows_in(day, startingOffsets=json.dumps({"b": high - 1}))) == 1
    assert len(rows_in(day, endingOffsets=json.dumps({"b": low}))) == 1
    assert rows_in(day, startingOffsets=json.dumps({"b": high})) == []
    with pytest.raises(PipelineError, match="startingOffsets names broker two, which is not read; the brokers are b"):
        rows_in(day, startingOffsets='{"two": 1}')


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"subscribe": "orders.1, elsewhere"}, {"orders.1"}),
        ({"subscribe": "orders.0", "subscribePattern": "#.2"}, {"orders.0", "orders.2"}),
        ({"subscribePattern": "*"}, set()),
        ({"table": "events", "subscribe": "orders.1"}, {"orders.1"}),
    ],
)
def test_subscriptions(day: Path, options: dict[str, str], wanted: set[str]) -> None:
    assert {row["address"] for row in rows_in(day, **options)} == wanted


def test_columns_and_bodies(day: Path) -> None:
    [row] = [row for row in rows_in(day, columns="value,headers,messageId") if row["messageId"] == 7]
    assert row == {
        "value": b"7",
        "headers": [{"key": "destination", "value": b"orders.0"}, {"key": "persistent", "value": b"true"}],
        "messageId": 7,
    }
    [bare] = [row for row in rows_in(day, includeBody="false") if row["messageId"] == 70]
    assert (bare["value"], bare["bodyBytes"]) == (None, 2)


def test_a_schema_of_the_user_is_refused(spark: SparkSession, day: Path) -> None:
    asked = spark.read.schema("offset int").format("artemis").option("columns", "offset")
    said = r"leave out schema\(…\), and choose columns with option columns"
    with pytest.raises(Exception, match=said):
        asked.load(str(day)).count()
    with pytest.raises(PipelineError, match=said):
        ArtemisDataSource({"path": str(day)}).streamReader(StructType([StructField("value", StringType())]))


def test_batches_are_as_large_as_asked(day: Path) -> None:
    reader = RowReader(read_options({"journal": str(day), "rowsPerBatch": "7", "columns": "offset"}))
    batches = [batch for share in reader.partitions() for batch in reader.read(share)]
    assert max(batch.num_rows for batch in batches) == 7
    assert sum(batch.num_rows for batch in batches) == 4800


@pytest.mark.interpreted
def test_large_segments_are_shared_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artemis_py.storage.format.segment_index.BLOCK_BYTES", 2000)
    monkeypatch.setattr("artemis_py.spark.read.plan._PIECE_BYTES", 5000)
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    for step in range(40):
        log.publish(START_MS + step, 10)
    log.close()
    found = pushed(tmp_path, partitionBytes="10000").partitions()
    assert len(found) > 3
    reader = RowReader(read_options({"journal": str(tmp_path), "columns": "messageId"}))
    assert [row["messageId"] for row in rows_of(reader, found)] == list(range(1, 401))
    middle = pushed(tmp_path, startingOffsets='{"b": 200}', endingOffsets='{"b": 220}').partitions()
    assert sum(one.end - one.begin for share in middle for one in share.ranges) < 6000  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40, 401])
def test_at_least_so_many_tasks(tmp_path: Path, count: int) -> None:
    """Each with the rows that follow those of the one before; a block that begins nearby is not read twice."""
    log = MadeLog(tmp_path)
    for messages in (95, 100, 105, 100):
        log.segment(START_MS, messages)
    log.close()
    reader = RowReader(read_options({"journal": str(tmp_path), "columns": "messageId", "minPartitions": str(count)}))
    found = [[row["messageId"] for row in rows_of(reader, [share])] for share in reader.partitions()]
    assert len(found) == count
    assert [number for rows in found for number in rows] == list(range(1, 401))
    assert max(map(len, found)) <= 412 / count * 1.25 + 1  # each segment has three more records
    if count == 2:
        assert [len(share.ranges) for share in reader.partitions()] == [2, 2]  # type: ignore[attr-defined]


def test_tasks_for_what_is_wanted_of_several_brokers(tmp_path: Path) -> None:
    """A broker gets as many as it has of the offsets, and none for hours that nobody wants."""
    for name, messages in (("one", 50), ("two", 10)):
        day_of_segments(tmp_path / name, messages=messages)
    journal = f"one={tmp_path / 'one'},two={tmp_path / 'two'}"
    begin = str(START_MS + 18 * HOUR_MS)
    reader = RowReader(read_options({"journal": journal, "minPartitions": "8", "startingTimestamp": begin}))
    found = [share for share in reader.partitions() if isinstance(share, Share)]
    assert [str(share.location) for share in found] == [f"{tmp_path}/one"] * 6 + [f"{tmp_path}/two"] * 2
    rows = [sum(batch.num_rows for batch in reader.read(share)) for share in found]
    assert sum(rows) == 24 * 60
    assert max(rows) < 24 * 60 / 8 * 1.25


@pytest.mark.parametrize("table", ["messages", "queues"])
def test_an_empty_log(tmp_path: Path, table: str) -> None:
    """A directory without a log is an error: it is more often the wrong one."""
    with pytest.raises(PipelineError, match=f"there is no log in {tmp_path}. Name the parent of journal-dir"):
        rows_in(tmp_path, table)
    (tmp_path / "artemis-journal-000000000001.log").write_bytes(bytes(1000))
    assert rows_in(tmp_path, table) == []


def test_columns_are_those_of_spark_s_kafka_source(day: Path) -> None:
    """Names, types and order as in its documentation ("Structured Streaming + Kafka Integration Guide")."""
    kafka = (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>"
    )
    options = {"journal": str(day), "includeHeaders": "true"}
    assert ArtemisDataSource(options).schema().simpleString().startswith(kafka + ",address:")


# ---- damage --------------------------------------------------------------------------------------


def two_segments(folder: Path) -> Path:
    """The first of them; each has 30 messages."""
    log = MadeLog(folder)
    for number in range(2):
        log.segment(START_MS + number)
        for step in range(3):
            log.publish(START_MS + step, 10)
    log.close()
    return folder / "artemis-journal-000000000001.log"


def test_damage_is_an_error_or_left_out(spark: SparkSession, tmp_path: Path) -> None:
    flip(two_segments(tmp_path), b"destination")
    said = r"segment 1 at byte \d+: DAMAGED: a record with a wrong checksum.*failOnDataLoss"
    with pytest.raises(Exception, match=said):  # as a task says it
        load(spark, tmp_path).count()
    assert len(rows_in(tmp_path, failOnDataLoss="false")) == 59


def test_a_segment_cut_short_is_an_error_or_left_out(tmp_path: Path) -> None:
    path = two_segments(tmp_path)
    os.truncate(path, path.read_bytes().index(b"destination") + 100)
    with pytest.raises(PipelineError, match="failOnDataLoss=false"):
        rows_in(tmp_path)
    assert len(rows_in(tmp_path, failOnDataLoss="false")) == 31


def test_a_segment_that_went_is_an_error_or_left_out(tmp_path: Path) -> None:
    path = two_segments(tmp_path)
    readers = [
        RowReader(read_options({"journal": str(tmp_path), "partitionBytes": "100", **options}))
        for options in ({}, {"failOnDataLoss": "false"})
    ]
    (strict, whole), (lenient, rest) = ((reader, reader.partitions()) for reader in readers)
    path.unlink()
    with pytest.raises(PipelineError, match="retention has removed it; skip it with failOnDataLoss=false"):
        rows_of(strict, whole)
    assert len(rows_of(lenient, rest)) == 30


def test_a_torn_end_is_no_loss(tmp_path: Path) -> None:
    log = MadeLog(tmp_path, with_index=False)
    path = log.segment(START_MS, 10)
    log.publish(START_MS, 10)
    data = path.read_bytes().rstrip(b"\0")
    path.write_bytes(data[:-100] + bytes(500))
    assert len(rows_in(tmp_path)) == 19


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    from zlib import crc32

    path = two_segments(tmp_path)
    data = bytearray(path.read_bytes())
    data[8] = 9
    data[60:64] = crc32(data[:60]).to_bytes(4, "little")
    path.write_bytes(data)
    path.with_suffix(".index").unlink()
    with pytest.raises(PipelineError, match="format version 9; this program reads version 1"):
        pushed(tmp_path).partitions()


# ---- directories ---------------------------------------------------------------------------------


def names(text: str, broker: str | None = None) -> dict[str, list[str]]:
    found: list[Directories] = find_directories(text, broker)
    return {one.broker: [path.name for path in one.paths] for one in found}


def test_directories_and_brokers(tmp_path: Path) -> None:
    for place in ("a/journal", "a/retained", "b"):
        MadeLog(tmp_path / place).segment(START_MS)
    a, b = tmp_path / "a", tmp_path / "b"
    assert names(str(a)) == {"a": ["journal", "retained"]}
    assert names(f"{a}/journal, {a}/retained") == {"journal": ["journal", "retained"]}
    assert names(str(a), "east") == {"east": ["journal", "retained"]}
    assert names(f"{tmp_path}/*") == {"a": ["journal", "retained"], "b": ["b"]}
    assert names(f"east={a},west={b}") == {"east": ["journal", "retained"], "west": ["b"]}
    assert names(f"east={a}/journal,east={a}/retained") == {"east": ["journal", "retained"]}
    with pytest.raises(PipelineError, match="matches no directory"):
        names(f"{tmp_path}/nothing*")
    with pytest.raises(PipelineError, match="not a directory on this machine"):
        names(f"{tmp_path}/nothing")


def test_the_log_tells_what_its_broker_is_called(tmp_path: Path) -> None:
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    log.batch(START_MS, lambda: log.record(records.BROKER, codec.encode_fields({"name": "east", "start": 1})))
    assert names(str(tmp_path)) == {"east": [tmp_path.name]}
    assert names(str(tmp_path), "west") == {"west": [tmp_path.name]}


def test_two_brokers_in_one_go(tmp_path: Path) -> None:
    for place, count in (("a", 10), ("b", 20)):
        log = MadeLog(tmp_path / place)
        log.segment(START_MS + count)
        log.publish(START_MS, count)
        log.close()
    assert Counter(row["broker"] for row in rows_read({"journal": f"{tmp_path}/*"})) == {"a": 10, "b": 20}
    with pytest.raises(PipelineError, match="are from different brokers; name each broker's directories"):
        rows_read({"journal": f"{tmp_path}/a,{tmp_path}/b"})
