"""Tables of logs in Spark's catalog, and one for each address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark import views
from artemis_py.spark.catalog import table_names
from artemis_py.spark.read.batch import reader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.source import ArtemisDataSource
from artemis_py.storage.format.codec import encode_fields
from artemis_py.storage.format.records import QUEUE
from tests.spark.live import live_broker
from tests.spark.made_log import START_MS, MadeLog
from tests.spark.readers import rows_in, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def log(tmp_path: Path) -> MadeLog:
    log = MadeLog(tmp_path / "log")
    log.segment(START_MS)
    log.publish(START_MS + 1, 10)
    log.publish(START_MS + 2, 5, address="bills.eu")
    log.close()
    return log


@pytest.fixture
def database(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"of_{request.node.originalname}"
    yield name
    spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    yield "somebodys"
    spark.sql("DROP TABLE IF EXISTS somebodys")


def counted(spark: SparkSession, table: str, more: str = "") -> int:
    row = spark.sql(f"SELECT count(*) AS n FROM {table} {more}").first()
    assert row is not None
    return int(row.n)


@pytest.mark.parametrize(
    "clause",
    [
        "OPTIONS (journal '{log}')",
        "OPTIONS (path '{log}')",
        "LOCATION '{log}'",
        "OPTIONS (journal '{log}', 'serialization.format' '1') COMMENT 'ours' TBLPROPERTIES (team 'red')",
    ],
)
def test_a_table_of_a_log(spark: SparkSession, log: MadeLog, table: str, clause: str) -> None:
    spark.sql(f"CREATE TABLE {table} USING artemis {clause.format(log=log.folder)}")
    assert counted(spark, table, "WHERE address = 'bills.eu'") == 5
    if "LOCATION" in clause:
        assert counted(spark, table) == 15
        assert counted(spark, f"{table} WITH (subscribe 'orders')") == 10


def test_a_table_with_columns_says_what_to_write(spark: SparkSession, log: MadeLog, table: str) -> None:
    """Spark creates it without asking the source, and has no options for it later."""
    options = f"OPTIONS (journal '{log.folder}', columns 'address')"
    spark.sql(f"CREATE TABLE {table} (address STRING, offset BIGINT) USING artemis {options}")
    with pytest.raises(Exception, match=r"leave the columns out: CREATE TABLE the_table USING artemis OPTIONS \(url"):
        counted(spark, table)
    with pytest.raises(PipelineError, match="leave the columns out"):
        ArtemisDataSource({}).streamReader(spark.table(table).schema)
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} USING artemis {options}")
    assert counted(spark, table) == 15
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW narrow (offset BIGINT) USING artemis {options}")
    with pytest.raises(Exception, match="in SQL leave out the columns before USING"):
        counted(spark, "narrow")
    spark.catalog.dropTempView("narrow")


def test_options_of_a_table_hold_where_it_is_read(spark: SparkSession, log: MadeLog, table: str) -> None:
    options = f"journal '{log.folder}', subscribe 'orders', columns 'offset,address', startingOffsets 'earliest'"
    spark.sql(f"CREATE TABLE {table} USING artemis OPTIONS ({options})")
    frame = spark.table(table)
    assert frame.columns == ["offset", "address"]
    assert {row.address for row in frame.collect()} == {"orders"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("jurnal '/log'", "option jurnal is unknown: did you mean journal"),
        ("journal '/log', columns 'valeu'", "valeu, which table messages does not have: did you mean value"),
        ("url 'http://a:1', password 'secret'", r"option password would be stored in the catalog"),
    ],
)
def test_a_table_with_wrong_options_is_not_made(spark: SparkSession, table: str, options: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        spark.sql(f"CREATE TABLE {table} USING artemis OPTIONS ({options})")
    assert not spark.catalog.tableExists(table)


def test_a_table_for_each_address(spark: SparkSession, log: MadeLog, database: str) -> None:
    """Those of others stay."""
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"CREATE TABLE {database}.kept USING artemis OPTIONS (journal '{log.folder}')")
    log.segment(START_MS + 3)
    log.publish(START_MS + 3, 2, address="one, two")
    log.close()
    names = views(spark, {"journal": str(log.folder), "columns": "offset,value"}, database)
    assert {address: names[address] for address in ("orders", "bills.eu")} == {
        "orders": f"{database}.orders", "bills.eu": f"{database}.bills_eu",
    }  # fmt: skip
    assert {address: counted(spark, name) for address, name in names.items()} == {
        "orders": 10, "bills.eu": 5, "one, two": 2,
    }  # fmt: skip
    assert spark.table(names["orders"]).columns == ["offset", "value"]
    for path in log.folder.glob("artemis-journal-000000000001*"):
        path.unlink()
    assert set(views(spark, str(log.folder), database)) == {"orders", "one, two"}
    assert not spark.catalog.tableExists(f"{database}.bills_eu")
    assert spark.catalog.tableExists(f"{database}.kept")
    spark.sql(f"DROP TABLE {database}.orders")
    spark.sql(f"CREATE TABLE {database}.orders USING artemis OPTIONS (journal '{log.folder}')")
    with pytest.raises(PipelineError, match=f"{database}.orders is not one of these tables"):
        views(spark, str(log.folder), database)
    with pytest.raises(PipelineError, match="they cannot have a password"):
        views(spark, {"url": "http://a:1", "password": "secret"}, database)


def test_names_of_tables() -> None:
    names = table_names(["orders", "Orders", "a.b", "a_b", "a b", "é"])
    assert names["a_b"] == "a_b"
    assert names["Orders"] == "Orders"
    assert len({name.lower() for name in names.values()}) == 6
    assert all((name.isascii() and name.replace("_", "").isalnum()) or name == "_" for name in names.values())
    assert table_names(["a.b", "a_b"])["a.b"] == names["a.b"]


def test_addresses_come_from_the_indexes_alone(log: MadeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for segments with more of them than an index tells."""
    log.segment(START_MS + 5)
    for number in range(1001):
        log.publish(START_MS + 5, 1, address=f"many.{number}")
    log.close()
    source = reader(read_options({"journal": str(log.folder), "table": "addresses"}))
    [share] = source.partitions()
    assert share.addresses == {"orders", "bills.eu"}  # type: ignore[attr-defined]
    assert {part.segment for part in share.untold} == {2}  # type: ignore[attr-defined]
    rows = rows_of(source, [share])
    assert len(rows) == 1003
    assert {row["broker"] for row in rows} == {"log"}


@pytest.mark.parametrize("option", ["endingOffsets", "endingTimestamp"])
def test_addresses_before_an_end_within_a_segment(tmp_path: Path, option: str) -> None:
    """Of messages and of queues, which an index lists for the whole segment alone."""
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    log.publish(START_MS + 1, 1, address="before")
    end = log.lsn - 1 if option == "endingOffsets" else START_MS + 1
    log.publish(START_MS + 2, 1, address="behind")
    log.batch(START_MS + 2, lambda: log.record(QUEUE, encode_fields({"id": 4, "name": "r", "address": "made behind"})))
    log.close()

    ending = {option: f'{{"b": {end}}}' if option == "endingOffsets" else str(end)}
    found = [[row["address"] for row in rows_in(tmp_path, "addresses", **more)] for more in (ending, {})]
    assert found == [["before", "orders"], ["before", "behind", "made behind", "orders"]]


def test_rows_are_inserted_into_a_table(tmp_path: Path, spark: SparkSession, table: str) -> None:
    """They are sent as messages, and the table has them: its log is the broker's."""
    with live_broker(tmp_path / "broker") as broker:
        broker.send(0, 3)
        made = f"url '{broker.url}', subscribe 'orders', columns 'value,address'"
        spark.sql(f"CREATE TABLE {table} USING artemis OPTIONS ({made})")
        sink = f"WITH (url 'tcp://127.0.0.1:{broker.process.port}')"
        spark.sql(f"INSERT INTO {table} {sink} VALUES (cast('7' AS BINARY), 'orders')")
        spark.sql(f"INSERT INTO {table} {sink} (address, value) SELECT address, value FROM {table} WHERE value = '7'")
        spark.table(table).where("value IN ('0', '1')").writeTo(table).option(
            "url", f"tcp://127.0.0.1:{broker.process.port}"
        ).append()
        assert counted(spark, table) == 7
        assert counted(spark, table, "WHERE value = '7'") == 2
        with pytest.raises(Exception, match=r"INSERT INTO the_table WITH \(url 'tcp://host:61613'\)"):
            spark.sql(f"INSERT INTO {table} VALUES (cast('7' AS BINARY), 'orders')")
        with pytest.raises(Exception, match="cannot be overwritten"):
            spark.sql(f"INSERT OVERWRITE {table} {sink} VALUES (cast('7' AS BINARY), 'orders')")
        every = "SELECT * EXCEPT (partition) FROM"
        spark.sql(f"DROP TABLE {table}")
        spark.sql(f"CREATE TABLE {table} USING artemis OPTIONS (url '{broker.url}', subscribe 'orders')")
        with pytest.raises(Exception, match="partition"):
            spark.sql(f"INSERT INTO {table} {sink} SELECT * FROM {table}")
        assert counted(spark, f"({every} {table})") == 7
