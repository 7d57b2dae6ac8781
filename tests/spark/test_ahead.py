"""A batch comes when there is a row for the query, by directory and by url; how much it takes, and for how much it
waits. No JVM: the readers that Spark calls are called here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.stream.reader import LAG, bytes_behind
from artemis_py.storage.format.segment_index import BLOCK_BYTES
from tests.kit.files import flip
from tests.kit.set_clock import SettableClock
from tests.spark.live import live_broker
from tests.spark.made_log import HOUR_MS, START_MS, MadeLog
from tests.spark.readers import Query, rows_read

Send = Callable[[str, int], None]


@pytest.fixture(params=["journal", "url"])
def traffic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict[str, str], Send]]:
    """Where the log is, and what publishes to it."""
    if request.param == "journal":
        log = MadeLog(tmp_path / "log")
        log.segment(START_MS)
        yield (
            {"journal": str(log.folder), "broker": "e2e"},
            lambda address, count: log.publish(START_MS, count, address),
        )
        return
    sent: list[str] = []
    with live_broker(tmp_path / "broker") as broker:
        yield {"url": broker.url}, lambda address, count: sent.extend(broker.send(len(sent) + 1, count, address))


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last batch of a file counts at once."""
    monkeypatch.setattr("artemis_py.spark.log.directory._REST_S", 0.0)


@pytest.mark.parametrize("table", ["messages", "events"])
@pytest.mark.parametrize("choice", [{"subscribe": "mine.one"}, {"subscribePattern": "mine.#"}])
def test_messages_to_others_are_no_batch(
    traffic: tuple[dict[str, str], Send], table: str, choice: dict[str, str]
) -> None:
    source, send = traffic
    query = Query(**source, **choice, table=table, columns="offset" if table == "events" else "value,offset")
    send("mine.one", 3)
    assert query.trigger()
    for _ in range(20):
        send("bills", 5)
        assert query.trigger() is None
    assert "#away" not in query.reader.reportLatestOffset()
    assert query.reader.reportLatestOffset()[LAG]["e2e"] == {"offsets": 0, "bytes": 0}
    send("mine.one", 2)
    assert query.trigger()
    assert query.trigger() is None


def test_what_happens_to_messages_is_no_batch_of_messages(tmp_path: Path) -> None:
    with live_broker(tmp_path / "broker") as broker, broker.client() as client:
        query = Query(url=broker.url)
        client.publish("/queue/orders", range(3))
        assert query.trigger() == [0, 1, 2]
        client.subscribe("/queue/orders", ack="client-individual")
        for _ in range(3):
            client.ask("ACK", {"id": client.expect("MESSAGE").header("ack")})
            assert query.trigger() is None


@pytest.mark.parametrize("first_bytes", [1000, 256 << 10])
def test_each_byte_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_bytes: int) -> None:
    """A query that waits behind a growing segment reads what is new of it, not the segment. ``first_bytes``: a batch
    began because of a row in a part of what was new, or all of it was looked at.
    """
    monkeypatch.setattr("artemis_py.spark.stream.look_ahead._FIRST_BYTES", first_bytes)
    log = MadeLog(tmp_path)
    log.segment(START_MS, 50)
    query = Query(journal=str(tmp_path), broker="b", subscribe="orders")
    assert query.trigger() == list(range(1, 51))
    read = create_autospec(DirectoryLog.read, side_effect=DirectoryLog.read)
    monkeypatch.setattr(DirectoryLog, "read", read)
    [batch] = query.reader.partitions({"b": 0}, query.at)
    end_of_batch = batch.ranges[-1].end  # type: ignore[attr-defined]
    for _ in range(10):
        log.publish(START_MS, 5, "bills")
        assert query.trigger() is None
    asked = [call.args[2:4] for call in read.call_args_list]
    whole = [(begin, end) for begin, end in asked if end - begin != first_bytes]
    assert whole[0][0] == end_of_batch
    assert all(end == begin for (_, end), (begin, _) in pairwise(whole))
    assert len(whole) == 10


def test_segments_without_the_address_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MadeLog(tmp_path)
    for _ in range(5):
        log.segment(START_MS)
        log.publish(START_MS, 5, "bills")
    log.close()
    monkeypatch.setattr(DirectoryLog, "read", None)
    query = Query(journal=str(tmp_path), broker="b", subscribe="orders", startingOffsets='{"b": 20}')
    assert query.trigger() is None


def test_a_query_moves_on_before_retention_takes_what_it_stands_in(tmp_path: Path) -> None:
    """With one empty batch for a segment: else it would be told, when it starts again, that something was lost."""
    log = MadeLog(tmp_path)
    log.segment(START_MS, 2)
    query = Query(journal=str(tmp_path), broker="b", subscribe="orders")
    assert query.trigger() == [1, 2]
    seen = []
    for number in range(2, 6):
        log.segment(START_MS)
        for _ in range(10):
            log.publish(START_MS, 1, "bills")
            seen.append(query.trigger())
        (tmp_path / f"artemis-journal-{number - 1:012}.log").unlink()
    assert [rows for rows in seen if rows is not None] == [[], [], []]  # it had all of the first
    again = Query(journal=str(tmp_path), broker="b", subscribe="orders")
    again.at = query.at
    log.publish(START_MS, 1)
    assert again.trigger() == [43]


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Also where all that can be read is of others."""
    log = MadeLog(tmp_path)
    path = log.segment(START_MS, 3)
    seen = log.lsn - 1
    for _ in range(3):
        log.publish(START_MS, 3, "bills")
    log.close()
    query = Query(journal=str(tmp_path), broker="b", subscribe="orders", startingOffsets=f'{{"b": {seen}}}')
    assert query.trigger() is None
    flip(path, b"bills", 255)
    with pytest.raises(PipelineError, match="DAMAGED"):
        Query(journal=str(tmp_path), broker="b", subscribe="orders", startingOffsets=f'{{"b": {seen}}}').trigger()


# ---- limits --------------------------------------------------------------------------------------


def test_a_limit_in_messages(traffic: tuple[dict[str, str], Send]) -> None:
    source, send = traffic
    query = Query(**source, subscribe="orders", maxMessagesPerTrigger="4")
    for _ in range(5):
        send("orders", 2)
        send("bills", 7)
    assert [query.trigger() for _ in range(4)] == [[1, 2, 10, 11], [19, 20, 28, 29], [37, 38], None]


def test_a_limit_in_offsets_counts_from_the_first_row(tmp_path: Path) -> None:
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    log.publish(START_MS, 100, "bills")
    log.publish(START_MS, 10)
    log.close()
    query = Query(journal=str(tmp_path), broker="b", subscribe="orders", maxOffsetsPerTrigger="4")
    assert [query.trigger() for _ in range(4)] == [[101, 102, 103, 104], [105, 106, 107, 108], [109, 110], None]


@pytest.mark.parametrize(("option", "least"), [("minMessagesPerTrigger", 5), ("minOffsetsPerTrigger", 12)])
def test_a_batch_waits_for_enough_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, least: int
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("artemis_py.spark.stream.reader.time.monotonic", lambda: now_s)
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    given = {"journal": str(tmp_path), "broker": "b", "subscribe": "orders", "columns": "value"}
    query = Query(**given, startingOffsets='{"b": 2}', maxTriggerDelay="10 minutes", **{option: str(least)})
    log.publish(START_MS, 3)
    assert query.trigger() is None
    if option == "minMessagesPerTrigger":
        log.publish(START_MS, 50, "bills")
        assert query.trigger() is None
    log.publish(START_MS, 9)
    assert query.trigger() is not None
    log.publish(START_MS, 1)
    assert query.trigger() is None
    now_s += 599
    assert query.trigger() is None
    now_s += 1
    assert query.trigger() is not None


def test_nobody_waits_where_spark_wants_all_there_is(tmp_path: Path) -> None:
    log = MadeLog(tmp_path)
    log.segment(START_MS, 3)
    given = {"journal": str(tmp_path), "broker": "b", "columns": "value", "minMessagesPerTrigger": "5"}
    query = Query(**given)
    assert query.trigger() is None
    assert query.reader.latestOffset(query.at, ReadAllAvailable()) != query.at
    query.reader.prepareForTriggerAvailableNow()
    assert query.trigger() == [1, 2, 3]
    assert query.trigger() is None


# ---- where to begin ------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
def test_a_time_in_a_log_whose_clock_was_set_back(tmp_path: Path, streaming: bool) -> None:
    """Within a block and over several: the time of a block says nothing of what is in it."""
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    times_ms = [START_MS, START_MS + HOUR_MS, START_MS + 1_000, START_MS + 2_000, START_MS + 2 * HOUR_MS, START_MS + 1]
    for time_ms in times_ms:
        log.publish(time_ms, 1, body=b"x" * (BLOCK_BYTES // 2 + 1))
    log.segment(START_MS + 2, 1)
    log.close()
    assert len(json.loads(min(tmp_path.glob("*.index")).read_bytes())["blocks"]) > 2

    def read(option: str, at_ms: int) -> list[int]:
        given = {"journal": str(tmp_path), "broker": "x", "columns": "publishedAt", option: str(at_ms)}
        return [round(row["publishedAt"].timestamp() * 1000) for row in rows_read(given, streaming=streaming)]

    every = [*times_ms, START_MS + 2]
    for at_ms in (*times_ms, START_MS + 2_001, START_MS + HOUR_MS + 1, START_MS + 3 * HOUR_MS):
        assert read("startingTimestamp", at_ms) == [time_ms for time_ms in every if time_ms >= at_ms]
        if not streaming:
            assert read("endingTimestamp", at_ms) == [time_ms for time_ms in every if time_ms <= at_ms]


def test_a_time_in_the_log_of_a_broker_whose_clock_is_set_back(tmp_path: Path) -> None:
    """By url, where the broker tells the times of blocks of a log that grows."""
    clock = SettableClock(tmp_path / "clock")
    clock.set(3600)
    with live_broker(tmp_path / "broker", environment=clock.environment) as broker:
        broker.send(0, 3, "orders", 30_000)
        for ahead_s, first in ((0, 3), (1800, 6), (-3600, 9)):
            clock.set(ahead_s)
            broker.send(first, 3, "orders", 30_000)
        given = {"url": broker.url, "columns": "publishedAt,value"}
        rows = [(round(row["publishedAt"].timestamp() * 1000), int(row["value"])) for row in rows_read(given)]
        assert [number for _, number in rows] == list(range(12))
        assert rows != sorted(rows)
        for since_ms, streaming in product(sorted(time_ms for time_ms, _ in rows)[::3], (False, True)):
            found = rows_read({**given, "startingTimestamp": str(since_ms)}, streaming=streaming)
            wanted = [number for time_ms, number in rows if time_ms >= since_ms]
            assert [int(row["value"]) for row in found] == wanted, (since_ms, streaming)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_time_for_each_address(tmp_path: Path, streaming: bool) -> None:
    log = MadeLog(tmp_path)
    for number in range(4):
        log.segment(START_MS + number)
        for address in ("a", "b", "c"):
            log.publish(START_MS + number, 1, address)
    log.close()

    def read(**options: str) -> list[int]:
        given = {"journal": str(tmp_path), "broker": "x", "columns": "value", **options}
        return [int(row["value"]) for row in rows_read(given, streaming=streaming)]

    since = json.dumps({"a": START_MS + 3, "b": START_MS + 2})
    assert read(subscribe="a,b", startingTimestamp=since) == [8, 10, 11]
    assert read(subscribe="a,b,c", startingTimestamp=since) == [3, 6, 8, 9, 10, 11, 12]
    assert read(startingTimestamp=since) == [3, 6, 8, 9, 10, 11, 12]
    assert read(subscribe="a", startingTimestamp=str(START_MS + 2)) == [7, 10]
    if not streaming:
        until = json.dumps({"a": START_MS, "b": START_MS + 1})
        assert read(subscribe="a,b", endingTimestamp=until) == [1, 2, 5]
        assert read(subscribe="a,b,c", endingTimestamp=until) == [1, 2, 3, 5, 6, 9, 12]
        assert read(endingTimestamp=until) == [1, 2, 3, 5, 6, 9, 12]
        between = {"startingTimestamp": json.dumps({"b": START_MS + 1, "a": 0}), "endingTimestamp": str(START_MS + 2)}
        assert read(subscribe="a,b", **between) == [1, 4, 5, 7, 8]
        assert read(
            subscribe="b", startingTimestamp=str(START_MS + 1), endingTimestamp=json.dumps({"b": START_MS + 2})
        ) == [5, 8]


@pytest.mark.parametrize("streaming", [False, True])
def test_offsets_that_retention_has_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture, streaming: bool) -> None:
    log = MadeLog(tmp_path)
    for _ in range(3):
        log.segment(START_MS, 10)
    log.close()
    (tmp_path / "artemis-journal-000000000001.log").unlink()
    begin = 13

    def start(lsn: int, **options: str) -> None:
        given = {"journal": str(tmp_path), "broker": "x", "startingOffsets": json.dumps({"x": lsn}), **options}
        rows_read(given, streaming=streaming)

    start(begin)
    said = rf"startingOffsets names offset 5 of broker x, but retention has removed the offsets 6 to {begin}"
    with pytest.raises(PipelineError, match=f"{said}.*failOnDataLoss=false"):
        start(5)
    start(5, failOnDataLoss="false")
    assert "retention has removed the offsets 6 to 13; they are skipped" in caplog.text


def test_a_segment_that_has_just_begun_is_no_bytes(tmp_path: Path) -> None:
    """The journal begins the next one before the first record is in it."""
    log = MadeLog(tmp_path)
    log.segment(START_MS, 5)
    log.close()
    listing = DirectoryLog("e2e", [tmp_path]).listing()
    last = listing.segments[-1]
    begun = replace(last, number=last.number + 1, first_lsn=last.last_lsn + 1, blocks=[], size_bytes=100)
    with_it = replace(listing, segments=[*listing.segments, begun])
    assert bytes_behind(with_it, 1) == bytes_behind(listing, 1) > 0
