"""A log that is replaced, restored from an older copy or has a hole while a query is stopped: never silent, by
directory and by url, batch and stream. No JVM: the readers that Spark calls are called here.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark import lag
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.stream.reader import FROM, LOG, LOST
from tests.kit.process import eventually
from tests.spark.live import LiveBroker, live_broker
from tests.spark.logs import KINDS, Logs
from tests.spark.readers import Query, numbers_of, rows_of, rows_read, stream

BODY_BYTES = 4000
STEADY = 20
"""So many equal answers say that retention has done its work."""


def test_a_query_goes_on_where_it_stopped(logs: Logs) -> None:
    logs.send(0, 5)
    with logs.source() as source:
        offset, seen = stream(source, None)
        tasks = RowReader(read_options(source))
        planned = tasks.partitions()
    assert seen == [*range(5)]
    assert set(offset[LOG]["e2e"]) == {"id", "segment", "begunMs"}
    logs.send(5, 5)
    with logs.source() as source:
        assert numbers_of(rows_of(tasks, planned)) == seen
        offset, seen = stream(source, offset)
        assert seen == [*range(5, 10)]
        assert stream(source, offset)[1] == []


@pytest.mark.parametrize("more", [0, 5, 50])
def test_a_log_that_was_replaced(logs: Logs, more: int) -> None:
    """By another one, which is shorter or longer than what was read: for a query that goes on, for a batch that its
    checkpoint has planned and that runs again, and for tasks that start late.
    """
    logs.send(0, 20)
    with logs.source() as source:
        offset, _ = stream(source, None)
        tasks = RowReader(read_options(source))
        planned = tasks.partitions()
    logs.exchange()
    logs.send(1000, more)
    with logs.source() as source:
        for loses in ("true", "false"):
            with pytest.raises(PipelineError, match="not the one that this query has read"):
                stream(source, offset, failOnDataLoss=loses)
        with pytest.raises(PipelineError, match="not the one that this query has read"):
            Query(**source).reader.partitions({"e2e": 0}, offset)
        with pytest.raises(PipelineError, match="is not the one that was planned"):
            rows_of(tasks, planned)


@pytest.mark.parametrize("more", [0, 2, 50])
def test_a_log_that_was_restored_from_an_older_copy(logs: Logs, tmp_path: Path, more: int) -> None:
    """With all files, the id among them, and then written on."""
    logs.send(0, 10)
    shutil.copytree(logs.folder / "e2e", tmp_path / "backup")
    with logs.source() as source:
        early, _ = stream(source, None)
    logs.send(10, 10)
    with logs.source() as source:
        offset, seen = stream(source, None)
        tasks = RowReader(read_options(source))
        planned = tasks.partitions()
    assert seen == [*range(20)]
    logs.exchange(tmp_path / "backup")
    if more:
        logs.send(1000, more)
    with logs.source() as source:
        with pytest.raises(PipelineError, match="not the one that this query has read"):
            stream(source, offset)
        with pytest.raises(PipelineError, match=r"is not the one that was planned|retention has removed it"):
            rows_of(tasks, planned)
        assert stream(source, early)[1] == [*range(1000, 1000 + more)], "a query that had read what is in the copy"


def test_offsets_behind_the_end_of_the_log(logs: Logs) -> None:
    logs.send(0, 5)
    with logs.source() as source:
        beyond = json.dumps({"e2e": 10_000})
        for options in ({"startingOffsets": beyond}, {"endingOffsets": beyond}):
            with pytest.raises(PipelineError, match="names offset 10000 of broker e2e, whose log ends at"):
                rows_read({**source, **options})
        with pytest.raises(PipelineError, match="names offset 10000"):
            stream(source, None, startingOffsets=beyond)


# ---- holes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built_log(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """Several segments, all retained: six lives of a broker, which tests only copy."""
    logs = Logs(tmp_path_factory.mktemp("built"), "journal", BODY_BYTES)
    for first in range(0, 120, 20):
        logs.send(first, 20)
    assert len(logs.segments()) >= 5
    return logs


@pytest.fixture
def long_log(logs: Logs, built_log: Logs) -> Logs:
    """Several segments, for one test to damage."""
    shutil.copytree(built_log.folder, logs.folder)
    return logs


def without(path: Path) -> None:
    path.unlink()
    path.with_suffix(".index").unlink(missing_ok=True)


def test_a_segment_that_is_missing_in_the_middle(long_log: Logs) -> None:
    with long_log.source() as source:
        end = stream(source, None)[0]["e2e"]
        without(long_log.segments()[2])
        for table in ("messages", "queues"):
            with pytest.raises(
                PipelineError, match=r"no longer has the offsets \d+ to \d+: .* between segments 2 and 4"
            ):
                rows_read({**source, "table": table})
        with pytest.raises(PipelineError, match="segments 2 and 4 is missing"):
            stream(source, None)
        seen = numbers_of(rows_read({**source, "failOnDataLoss": "false"}))
        assert seen == stream(source, None, failOnDataLoss="false")[1]
        assert len(seen) == 100
        # Beside what is wanted it does not matter.
        assert numbers_of(rows_read({**source, "endingOffsets": json.dumps({"e2e": 20})}))
        assert numbers_of(rows_read({**source, "startingOffsets": json.dumps({"e2e": end - 10})}))[-1] == 119


@pytest.mark.parametrize(
    ("size_bytes", "said"), [(40_000, "segment 3 at byte .*: DAMAGED"), (64, "segment 3 ends at byte 64, before")]
)
def test_a_segment_whose_end_is_cut_off(long_log: Logs, size_bytes: int, said: str) -> None:
    with long_log.source() as source:
        os.truncate(long_log.segments()[2], size_bytes)
        for streaming in (False, True):
            with pytest.raises(PipelineError, match=said):
                rows_read(source, streaming=streaming)
        seen = numbers_of(rows_read({**source, "failOnDataLoss": "false"}))
        whole = [number for number in seen if 40 <= number < 60]
        assert (0 < len(whole) < 20) is (size_bytes > 64)
        assert seen == [*range(40), *range(40, 40 + len(whole)), *range(60, 120)]


# ---- retention between the plan and the tasks ----------------------------------------------------


def overtake(broker: LiveBroker, first: int) -> None:
    """More passes than the broker keeps."""
    with broker.client() as client:
        client.subscribe("/queue/orders", id="all", ack="auto")
        for begin in range(first, first + 300, 100):
            broker.send(begin, 100, size_bytes=BODY_BYTES)
            for _ in range(100):
                client.expect("MESSAGE")


@pytest.mark.parametrize("place", KINDS)
@pytest.mark.parametrize("when", ["before the tasks are planned", "before they read", "when a restart plans them"])
def test_what_retention_takes_of_a_planned_batch_is_counted(tmp_path: Path, place: str, when: str) -> None:
    with live_broker(tmp_path, limits='storage-limit="200K"') as broker:
        overtake(broker, 0)
        source = {"url": broker.url} if place == "url" else {"journal": str(tmp_path)}
        query = Query(**source, failOnDataLoss="false")
        reader, start = query.reader, query.at
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
            reader = Query(**source, failOnDataLoss="false").reader
        assert rows_of(reader, shares or reader.partitions(start, end)) == []
        for _ in range(2):  # Spark may ask again
            counted = reader.latestOffset(end, ReadAllAvailable())
            assert counted[LOST] == {"e2e": log.listing().first_lsn - 1 - start["e2e"]}
        reader.partitions(end, counted)
        assert reader.latestOffset(counted, ReadAllAvailable()).get(LOST) == counted[LOST]
        told = lag({"sources": [{"endOffset": counted, "latestOffset": reader.reportLatestOffset()}]})
        assert told["e2e"].lost == counted[LOST]["e2e"]


def test_a_loss_is_told_without_another_row(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "journal", BODY_BYTES)
    logs.send(0, 20)
    logs.send(20, 20)
    with logs.source() as source:
        query = Query(**source, failOnDataLoss="false")
        end, shares = query.plan(ReadAllAvailable())
        last = query.reader._opened()["e2e"][1].listing().segments[0].last_lsn
        without(logs.segments()[0])
        assert query.read(shares) == [*range(20, 40)]
        told = query.reader.latestOffset(end, ReadAllAvailable())
        assert told == {**end, FROM: {"e2e": end["e2e"]}, LOST: {"e2e": last}}
        assert query.reader.partitions(end, told) == []
        assert query.reader.latestOffset(told, ReadAllAvailable()) == told


def test_what_retention_takes_of_a_batch_that_is_done_is_not_lost(long_log: Logs) -> None:
    with long_log.source() as source:
        query = Query(**source, failOnDataLoss="false")
        assert query.trigger(ReadAllAvailable()) == [*range(120)]
        assert query.trigger(ReadAllAvailable()) is None
        without(long_log.segments()[0])
        assert query.trigger(ReadAllAvailable()) is None
        again = Query(query.at, **source, failOnDataLoss="false")
        assert again.trigger(ReadAllAvailable()) is None
