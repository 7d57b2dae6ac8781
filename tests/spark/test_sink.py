"""``df.write`` and ``df.writeStream`` with ``format("artemis")`` against a running broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.spark import register, session
from tests.kit.client import connected
from tests.kit.process import BrokerProcess, eventually
from tests.spark.brokers import added, bodies, crashing_broker, drained, url_of
from tests.spark.drivers import lines_query, put
from tests.spark.faulty import FaultySource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write(
    frame: DataFrame, broker: BrokerProcess, address: str | None = None, /, format: str = "artemis", **options: str
) -> None:
    writer = frame.write.format(format).mode("append").option("url", url_of(broker)).options(**options)
    if address is not None:
        writer = writer.option("address", address)
    writer.save()


def rows(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    """Values ``row-0`` and so on, in order."""
    return spark.range(0, count, 1, partitions).selectExpr("concat('row-', id) as value")


# ---- batches -------------------------------------------------------------------------------------


def test_every_row_becomes_one_message(spark: SparkSession, sink_broker: BrokerProcess, place: str) -> None:
    write(rows(spark, 1000), sink_broker, place, rowsPerTransaction="100")
    numbers = [int(text.removeprefix("row-")) for text in bodies(drained(sink_broker, place, 1000))]
    for partition in (range(500), range(500, 1000)):
        assert [number for number in numbers if number in partition] == list(partition)


def test_every_column_arrives(spark: SparkSession, sink_broker: BrokerProcess, place: str) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    schema = (
        "value binary, address string, key string, headers map<string,string>, priority int, persistent boolean,"
        " expiration timestamp, delay long, routingType string"
    )
    full: tuple[Any, ...] = (b"\0body", place, "group 1", {"kind": "a:b"}, 8, False, later, None, "ANYCAST")
    bare: tuple[Any, ...] = (b"bare", place, None, None, None, None, None, None, None)
    late: tuple[Any, ...] = (b"late", place, None, None, None, None, None, 3_600_000, None)
    write(spark.createDataFrame([full, bare, late], schema).coalesce(1), sink_broker)
    eventually(
        "scheduled", lambda: sink_broker.metric("artemis_scheduled_message_count", queue=place), lambda seen: seen == 1
    )
    with connected(sink_broker.port) as client:
        client.subscribe(place, ack="auto", subscription_type="ANYCAST")
        first, second = client.message(), client.message()
        client.nothing_waits()
    names = ("JMSXGroupID", "_AMQ_GROUP_ID", "kind", "priority", "persistent", "expires", "destination-type")
    told = [{name: one.header(name) for name in names} for one in (first, second)]
    assert (first.body, second.body) == (b"\0body", b"bare")
    assert "group 1" in (told[0]["JMSXGroupID"], told[0]["_AMQ_GROUP_ID"])
    assert (told[0]["kind"], told[0]["priority"], told[0]["persistent"]) == ("a\\cb", "8", "false")
    assert told[0]["expires"] == str(int(later.timestamp() * 1000))
    assert (told[1]["kind"], told[1]["priority"], told[1]["persistent"], told[1]["expires"]) == (None, "4", "true", "0")


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (["id"], {"address": "a"}, "The sink has no column id"),
        (["id as value"], {"address": "a"}, "Column value has the type bigint"),
        (["'x' as value"], {}, "set the option address"),
        (["'x' as value"], {"address": "a", "prority": "3"}, "no option prority: did you mean priority"),
        (["'x' as value", "cast(null as string) as address"], {}, "A row has no address"),
        (["'x' as value", "cast(id + 8 as int) as priority"], {"address": "a"}, "A row has the priority"),
    ],
)
@pytest.mark.takes_turns("the rows that are bad")
def test_bad_rows_are_named_before_anything_is_sent(
    spark: SparkSession, sink_broker: BrokerProcess, columns: list[str], options: dict[str, str], said: str
) -> None:
    before = sink_broker.metric("artemis_messages_added")
    with pytest.raises(Exception, match=said):
        write(spark.range(0, 5, 1, 1).selectExpr(*columns), sink_broker, **options)
    assert sink_broker.metric("artemis_messages_added") == before


def test_a_full_address_fails_the_job_in_the_broker_s_words(spark: SparkSession, sink_broker: BrokerProcess) -> None:
    with pytest.raises(Exception, match=r"Address fails\.job is full: consume messages"):
        write(rows(spark, 100, 1), sink_broker, "fails.job")
    assert added(sink_broker, "fails.job") == 0


def test_a_job_that_is_run_again_under_its_name(spark: SparkSession, sink_broker: BrokerProcess, place: str) -> None:
    for _ in range(2):
        write(rows(spark, 100), sink_broker, place, publishId="nightly-2026-01-01")
    assert added(sink_broker, place) == 100


@pytest.mark.takes_turns("the long jobs")
def test_a_job_with_other_rows_under_a_name_that_was_used(
    spark: SparkSession, sink_broker: BrokerProcess, place: str
) -> None:
    """As foreachBatch with a fresh checkpoint does, whose batches count from 0 again."""
    name = f"query-{place}-0"
    first, other = (spark.createDataFrame(list(text), "string").coalesce(1) for text in ("abc", "def"))
    write(first, sink_broker, place, publishId=name)
    with pytest.raises(Exception, match="If this is another run, give it another publishId"):
        write(other, sink_broker, place, publishId=name)
    assert added(sink_broker, place) == 3


def test_register_sets_what_a_session_of_others_lacks(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    register(other)
    assert other.conf.get("spark.sql.session.timeZone") == "UTC"


def test_what_is_given_to_a_session_stays(spark: SparkSession) -> None:
    name = "spark.sql.session.timeZone"
    before = str(spark.conf.get(name))
    try:
        paris: dict[str, Any] = {name: "Europe/Paris"}
        assert session(**paris).conf.get(name) == "Europe/Paris"
    finally:
        spark.conf.set(name, before)


# ---- tasks that fail -----------------------------------------------------------------------------


def test_a_task_that_is_killed_is_repeated_and_publishes_once(
    spark: SparkSession, sink_broker: BrokerProcess, place: str
) -> None:
    """When it has sent a transaction. ``test_an_attempt_that_fails_and_the_next_one`` has all other moments."""
    spark.dataSource.register(FaultySource)
    options = {"publishId": f"after COMMIT.kill.{place}", "rowsPerTransaction": "60"}
    write(rows(spark, 300), sink_broker, place, "artemis_faulty", **options)
    assert sorted(bodies(drained(sink_broker, place, 300))) == sorted(f"row-{number}" for number in range(300))


def test_a_shuffle_that_hands_rows_over_in_another_order(
    spark: SparkSession, sink_broker: BrokerProcess, place: str
) -> None:
    """Partitions that are one transaction each: another attempt has the same rows, in whatever order."""
    spark.dataSource.register(FaultySource)
    frame = rows(spark, 300).repartition(3, "value")
    write(frame, sink_broker, place, "artemis_faulty", publishId=f"after RECEIPT.raise.{place}")
    assert sorted(bodies(drained(sink_broker, place, 300))) == sorted(f"row-{number}" for number in range(300))


# ---- streams -------------------------------------------------------------------------------------


@pytest.mark.takes_turns("the long streams")
def test_each_batch_of_a_stream(spark: SparkSession, sink_broker: BrokerProcess, tmp_path: Path, place: str) -> None:
    """Then a batch whose end Spark forgot: it runs again with the same id and range, and publishes nothing."""
    given = {"url": url_of(sink_broker), "address": place}
    for number in range(3):
        put(tmp_path, f"f{number}", [f"{number}-{line}" for line in range(50)])
    stream = lines_query(spark, tmp_path, given).start()
    stream.processAllAvailable()
    stream.stop()
    assert added(sink_broker, place) == 150
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink()
    stream = lines_query(spark, tmp_path, given).start()
    put(tmp_path, "f3", ["3-0"])
    stream.processAllAvailable()
    stream.stop()
    wanted = [f"{number}-{line}" for number in range(3) for line in range(50)] + ["3-0"]
    assert sorted(bodies(drained(sink_broker, place, 151))) == sorted(wanted)


@pytest.mark.takes_turns("the long streams")
def test_tasks_of_a_stream_that_fail(
    spark: SparkSession, sink_broker: BrokerProcess, tmp_path: Path, place: str
) -> None:
    spark.dataSource.register(FaultySource)
    given = {"url": url_of(sink_broker), "address": place}
    for number in range(2):
        put(tmp_path, f"f{number}", [f"{number}-{line}" for line in range(50)])
    given["publishId"] = f"after RECEIPT.kill.{place}"
    stream = lines_query(spark, tmp_path, given, "artemis_faulty").start()
    stream.processAllAvailable()
    stream.stop()
    assert added(sink_broker, place) == 100


@pytest.mark.takes_turns("the long streams")
def test_a_stream_that_ends_with_an_error_goes_on_when_it_is_started_again(
    spark: SparkSession, sink_broker: BrokerProcess, tmp_path: Path
) -> None:
    """One task of the batch has published, the other found the address full, in every attempt."""
    given = {"url": url_of(sink_broker), "address": "fails.stream"}
    put(tmp_path, "f0", [str(number) for number in range(8)])
    stream = lines_query(spark, tmp_path, given).start()
    with pytest.raises(Exception, match=r"Address fails\.stream is full: consume messages"):
        stream.processAllAvailable()
    first = bodies(drained(sink_broker, "fails.stream", 4))
    stream = lines_query(spark, tmp_path, given).start()
    stream.processAllAvailable()
    stream.stop()
    assert sorted(first + bodies(drained(sink_broker, "fails.stream", 4))) == [str(number) for number in range(8)]


@pytest.mark.takes_turns("the long streams")
def test_a_table_that_a_stream_puts_out_again_and_again(
    spark: SparkSession, sink_broker: BrokerProcess, tmp_path: Path, place: str
) -> None:
    """Mode complete: each row that a batch puts out is a message, also where it replaces an earlier one."""
    put(tmp_path, "f0", ["a"])
    words = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
    counted = words.groupBy("value").count().selectExpr("concat(value, ' ', count) as value")
    writer = (
        counted.writeStream.format("artemis").outputMode("complete").options(url=url_of(sink_broker), address=place)
    )
    stream = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    stream.processAllAvailable()
    put(tmp_path, "f1", ["a", "a", "b"])
    stream.processAllAvailable()
    stream.stop()
    assert sorted(bodies(drained(sink_broker, place, 3))) == ["a 1", "a 3", "b 1"]


@pytest.mark.takes_turns("the long streams")
def test_a_broker_that_is_killed_under_a_stream(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """The sink waits for it to come back, and repeats what was not confirmed."""
    with crashing_broker(tmp_path) as crashing:
        (tmp_path / "in").mkdir()
        given = {"url": url_of(crashing.process), "address": place}
        stream = lines_query(spark, tmp_path, given).start()
        lines: list[str] = []
        for number in range(6):
            batch = [f"{number}-{line}" for line in range(1000)]
            lines += batch
            if number % 2:
                before = added(crashing.process, place)
                put(tmp_path, f"f{number}", batch)
                crashing.process.eventually("more", lambda: added(crashing.process, place), lambda seen: seen > before)  # noqa: B023
                crashing.start_again()
            else:
                put(tmp_path, f"f{number}", batch)
            stream.processAllAvailable()
        stream.stop()
        assert sorted(bodies(drained(crashing.process, place, 6000))) == sorted(lines)
