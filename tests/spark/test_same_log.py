"""A log that is replaced, restored from an older copy or has a hole while a query is stopped: never silent, by
directory and by url, batch and stream. No JVM: the readers that Spark calls are called here.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark import lag
from artemis_py.spark.read.aggregated_tables import AggregateReader
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.stream.reader import FROM, LOG, LOST, LogStreamReader
from tests.kit.process import eventually
from tests.spark.live import LiveBroker, live_broker, send_many

BODY_BYTES = 4000
STEADY = 20
"""So many equal answers say that retention has done its work."""
Source = Callable[[], dict[str, str]]


class Stopped:
    """A broker's folders, which a test changes while nobody runs; read over url from a broker that starts on them."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind

    @contextmanager
    def running(self) -> Iterator[LiveBroker]:
        """The broker, for as long as this lasts."""
        with live_broker(self.folder) as broker:
            yield broker

    @contextmanager
    def source(self) -> Iterator[dict[str, str]]:
        """Where the log is to be read."""
        if self.kind == "journal":
            for path in self.segments():  # the last batch of a file counts when it has rested
                os.utime(path, (0, 0))
            yield {"journal": str(self.folder), "broker": "e2e"}
        else:
            with self.running() as broker:
                yield {"url": broker.url}

    def send(self, first: int, count: int) -> None:
        """Publish, and kill the broker. Without a message for the queue there is one for another: until something is
        confirmed, a broker that is killed has no log.
        """
        with self.running() as broker, broker.client() as client:
            if count:
                send_many(client, "orders", first, count, BODY_BYTES)
            else:
                send_many(client, "others", 0, 1)

    def segments(self) -> list[Path]:
        """In order."""
        return sorted(self.folder.glob("**/artemis-journal-*.log"), key=lambda path: path.name)


@pytest.fixture(params=["journal", "url"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Stopped:
    return Stopped(tmp_path / "broker", request.param)


def numbers(reader: Any, partitions: list[Any]) -> list[int]:
    """Which messages are read."""
    rows = [row for share in partitions for batch in reader.read(share) for row in batch.to_pylist()]
    return [int(row["value"].split()[0]) for row in rows]


def batch(source: dict[str, str], **options: str) -> list[int]:
    reader = RowReader(read_options({**source, **options}))
    return numbers(reader, reader.partitions())


def stream(source: dict[str, str], start: dict[str, Any] | None, **options: str) -> tuple[dict[str, Any], list[int]]:
    """One batch of a query that is new or goes on, and the offset that its checkpoint keeps."""
    reader = LogStreamReader(read_options({**source, "startingOffsets": "earliest", **options}, streaming=True))
    if start is None:
        start = reader.initialOffset()
    end = reader.latestOffset(json.loads(json.dumps(start)), ReadAllAvailable())
    return end, [] if end == start else numbers(reader, reader.partitions(start, end))


def test_a_query_goes_on_where_it_stopped(log: Stopped) -> None:
    log.send(0, 5)
    with log.source() as source:
        offset, seen = stream(source, None)
    assert seen == [*range(5)]
    assert set(offset[LOG]["e2e"]) == {"id", "segment", "begunMs"}
    log.send(5, 5)
    with log.source() as source:
        offset, seen = stream(source, offset)
        assert seen == [*range(5, 10)]
        assert stream(source, offset)[1] == []


@pytest.mark.parametrize("more", [0, 5, 50])
def test_a_log_that_was_replaced(log: Stopped, more: int) -> None:
    """By another one, which is shorter or longer than what was read."""
    log.send(0, 20)
    with log.source() as source:
        offset, _ = stream(source, None)
    shutil.rmtree(log.folder)
    log.send(1000, more)
    for loses in ("true", "false"):
        with log.source() as source, pytest.raises(PipelineError, match="not the one that this query has read"):
            stream(source, offset, failOnDataLoss=loses)


@pytest.mark.parametrize("more", [0, 2, 50])
def test_a_log_that_was_restored_from_an_older_copy(log: Stopped, tmp_path: Path, more: int) -> None:
    """With all files, the id among them, and then written on."""
    log.send(0, 10)
    shutil.copytree(log.folder, tmp_path / "backup")
    log.send(10, 10)
    with log.source() as source:
        offset, seen = stream(source, None)
    assert seen == [*range(20)]
    shutil.rmtree(log.folder)
    shutil.copytree(tmp_path / "backup", log.folder)
    if more:
        log.send(1000, more)
    with log.source() as source, pytest.raises(PipelineError, match="not the one that this query has read"):
        stream(source, offset)


def test_a_restored_log_goes_on_for_a_query_that_had_read_what_is_in_the_copy(log: Stopped, tmp_path: Path) -> None:
    log.send(0, 10)
    with log.source() as source:
        offset, _ = stream(source, None)
    shutil.copytree(log.folder, tmp_path / "backup")
    log.send(10, 10)
    shutil.rmtree(log.folder)
    shutil.copytree(tmp_path / "backup", log.folder)
    log.send(1000, 3)
    with log.source() as source:
        assert stream(source, offset)[1] == [1000, 1001, 1002]


def test_a_batch_that_was_planned_before_the_log_was_replaced(log: Stopped, tmp_path: Path) -> None:
    """A checkpoint has planned a batch, which runs again after a restart; and tasks that start late."""
    log.send(0, 10)
    with log.source() as source:
        offset, _ = stream(source, None)
    shutil.rmtree(log.folder)
    log.send(1000, 30)
    with log.source() as source:
        reader = LogStreamReader(read_options({**source, "startingOffsets": "earliest"}, streaming=True))
        with pytest.raises(PipelineError, match="not the one that this query has read"):
            reader.partitions({"e2e": 0}, offset)


def test_tasks_notice_that_another_log_came_to_the_place_of_the_planned_one(tmp_path: Path) -> None:
    log = Stopped(tmp_path / "broker", "journal")
    log.send(0, 10)
    with log.source() as source:
        reader = RowReader(read_options(source))
        planned = reader.partitions()
    shutil.rmtree(log.folder)
    log.send(1000, 30)
    with pytest.raises(PipelineError, match="is not the one that was planned"):
        numbers(reader, planned)


def test_offsets_behind_the_end_of_the_log(log: Stopped) -> None:
    log.send(0, 5)
    with log.source() as source:
        beyond = json.dumps({"e2e": 10_000})
        for options in ({"startingOffsets": beyond}, {"endingOffsets": beyond}):
            with pytest.raises(PipelineError, match="names offset 10000 of broker e2e, whose log ends at"):
                batch(source, **options)
        with pytest.raises(PipelineError, match="names offset 10000"):
            stream(source, None, startingOffsets=beyond)


# ---- holes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built_log(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    """Several segments, all retained: six lives of a broker, which tests only copy."""
    log = Stopped(tmp_path_factory.mktemp("built") / "broker", "journal")
    for first in range(0, 120, 20):
        log.send(first, 20)
    assert len(log.segments()) >= 5
    return log


@pytest.fixture
def long_log(log: Stopped, built_log: Stopped) -> Stopped:
    """Several segments, for one test to damage."""
    shutil.copytree(built_log.folder, log.folder)
    return log


def without(path: Path) -> None:
    path.unlink()
    path.with_suffix(".index").unlink(missing_ok=True)


@pytest.mark.parametrize("table", ["messages", "queues"])
def test_a_segment_that_is_missing_in_the_middle(long_log: Stopped, table: str) -> None:
    with long_log.source() as source:
        without(long_log.segments()[2])
        options = read_options({**source, "table": table})
        reader = RowReader(options) if table == "messages" else AggregateReader(options)
        with pytest.raises(PipelineError, match=r"no longer has the offsets \d+ to \d+: .* between segments 2 and 4"):
            reader.partitions()
        if table == "messages":
            with pytest.raises(PipelineError, match="segments 2 and 4 is missing"):
                stream(source, None)
            seen = batch(source, failOnDataLoss="false")
            assert seen == stream(source, None, failOnDataLoss="false")[1]
            assert len(seen) == 100


def test_a_missing_segment_beside_what_is_wanted_does_not_matter(long_log: Stopped) -> None:
    with long_log.source() as source:
        end = stream(source, None)[0]["e2e"]
        without(long_log.segments()[2])
        assert len(batch(source, endingOffsets=json.dumps({"e2e": 20}))) > 0
        assert batch(source, startingOffsets=json.dumps({"e2e": end - 10}))[-1] == 119


@pytest.mark.parametrize(
    ("size_bytes", "said"), [(40_000, "segment 3 at byte .*: DAMAGED"), (64, "segment 3 ends at byte 64, before")]
)
def test_a_segment_whose_end_is_cut_off(long_log: Stopped, size_bytes: int, said: str) -> None:
    with long_log.source() as source:
        os.truncate(long_log.segments()[2], size_bytes)
        for read in (lambda: batch(source), lambda: stream(source, None)):
            with pytest.raises(PipelineError, match=said):
                read()
        seen = batch(source, failOnDataLoss="false")
        whole = [number for number in seen if 40 <= number < 60]
        assert (0 < len(whole) < 20) is (size_bytes > 64)
        assert seen == [*range(40), *range(40, 40 + len(whole)), *range(60, 120)]


# ---- retention between the plan and the tasks ----------------------------------------------------


def overtake(broker: LiveBroker, first: int) -> None:
    """More passes than the broker keeps."""
    with broker.client() as client:
        client.subscribe("/queue/orders", id="all", ack="auto")
        for begin in range(first, first + 300, 100):
            send_many(client, "orders", begin, 100, BODY_BYTES)
            for _ in range(100):
                client.expect("MESSAGE")


@pytest.mark.parametrize("place", ["journal", "url"])
@pytest.mark.parametrize("when", ["before the tasks are planned", "before they read", "when a restart plans them"])
def test_what_retention_takes_of_a_planned_batch_is_counted(tmp_path: Path, place: str, when: str) -> None:
    with live_broker(tmp_path, limits='storage-limit="200K"') as broker:
        overtake(broker, 0)
        source = {"url": broker.url} if place == "url" else {"journal": str(tmp_path)}
        given = {**source, "startingOffsets": "earliest", "failOnDataLoss": "false"}
        options = read_options(given, streaming=True)
        reader = LogStreamReader(options)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        shares = reader.partitions(start, end) if when == "before they read" else []
        log = reader._opened()["e2e"][1]
        overtake(broker, 300)
        seen: list[int] = []

        def is_done() -> bool:
            seen.append(log.listing().first_lsn)
            return seen[-1] > end["e2e"] + 1 and seen[-STEADY:] == seen[-1:] * STEADY

        eventually("retention", is_done, bool)
        if when == "when a restart plans them":
            reader = LogStreamReader(options)
            reader.initialOffset()
        assert numbers(reader, shares or reader.partitions(start, end)) == []
        for _ in range(2):  # Spark may ask again
            counted = reader.latestOffset(end, ReadAllAvailable())
            assert counted[LOST] == {"e2e": log.listing().first_lsn - 1 - start["e2e"]}
        reader.partitions(end, counted)
        assert reader.latestOffset(counted, ReadAllAvailable()).get(LOST) == counted[LOST]
        told = lag({"sources": [{"endOffset": counted, "latestOffset": reader.reportLatestOffset()}]})
        assert told["e2e"].lost == counted[LOST]["e2e"]


def test_a_loss_is_told_without_another_row(tmp_path: Path) -> None:
    log = Stopped(tmp_path / "broker", "journal")
    log.send(0, 20)
    log.send(20, 20)
    with log.source() as source:
        options = read_options({**source, "startingOffsets": "earliest", "failOnDataLoss": "false"}, streaming=True)
        reader = LogStreamReader(options)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        last = reader._opened()["e2e"][1].listing().segments[0].last_lsn
        shares = reader.partitions(start, end)
        without(log.segments()[0])
        assert numbers(reader, shares) == [*range(20, 40)]
        told = reader.latestOffset(end, ReadAllAvailable())
        assert told == {**end, FROM: {"e2e": end["e2e"]}, LOST: {"e2e": last}}
        assert reader.partitions(end, told) == []
        assert reader.latestOffset(told, ReadAllAvailable()) == told


def test_what_retention_takes_of_a_batch_that_is_done_is_not_lost(long_log: Stopped) -> None:
    with long_log.source() as source:
        options = read_options({**source, "startingOffsets": "earliest", "failOnDataLoss": "false"}, streaming=True)
        reader = LogStreamReader(options)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert numbers(reader, reader.partitions(start, end)) == [*range(120)]
        assert reader.latestOffset(end, ReadAllAvailable()) == end
        without(long_log.segments()[0])
        assert reader.latestOffset(end, ReadAllAvailable()) == end
        assert LogStreamReader(options).latestOffset(end, ReadAllAvailable()) == end
