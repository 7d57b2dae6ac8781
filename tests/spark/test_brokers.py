"""Several brokers of one query: one that is down, one that comes, one that is taken out and comes back. No JVM: the
readers that Spark calls are called here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark import lag
from artemis_py.spark.stream.reader import AWAY, HELD_BYTES_MAX
from artemis_py.storage.log_id import log_id
from tests.kit.process import eventually
from tests.spark.live import LiveBroker, live_broker
from tests.spark.made_log import START_MS, MadeLog
from tests.spark.proxies import cutting
from tests.spark.readers import Query, numbers_of, rows_read

WAIT_S = 120.0
GOES_ON: dict[str, Any] = {"skipUnavailableBrokers": "true", "brokerTimeoutSeconds": "1", "startingOffsets": "earliest"}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[LiveBroker, LiveBroker]]:
    with ExitStack() as stack:
        found = [stack.enter_context(live_broker(tmp_path / name, name=name)) for name in ("east", "west")]
        yield found[0], found[1]


def url_of(*brokers: LiveBroker) -> str:
    return ",".join(broker.url for broker in brokers)


def test_a_broker_that_is_down_ends_a_query_unless_it_is_asked_to_go_on(
    two: tuple[LiveBroker, LiveBroker], caplog: pytest.LogCaptureFixture
) -> None:
    """One that runs, one that starts again, one that starts anew, and a batch."""
    east, west = two
    url = url_of(east, west)
    east.send(0, 2)
    west.send(100, 2)
    strict = Query(url=url, brokerTimeoutSeconds="1")
    query = Query(url=url, **GOES_ON)
    assert strict.trigger() == query.trigger() == [0, 1, 100, 101]
    old = query.at
    west.process.kill()
    east.send(2, 2)
    with pytest.raises(PipelineError, match="did not answer for 1 s"):
        strict.trigger()
    with pytest.raises(PipelineError, match="did not answer"):
        Query(old, url=url, brokerTimeoutSeconds="1").trigger()
    with caplog.at_level(logging.WARNING):
        assert query.trigger() == [2, 3]
    assert "broker west: the broker at" in caplog.text
    assert query.at["west"] == old["west"]
    assert query.reader.reportLatestOffset()[AWAY] == ["west"]
    told = lag(query.progress())
    assert (told["west"].is_away, told["east"].is_away, told["east"].offsets) == (True, False, 0)
    again, new = (Query(at, url=url, **GOES_ON) for at in (old, None))
    assert (again.trigger(), new.trigger()) == ([2, 3], [0, 1, 2, 3])
    assert again.at["west"] == old["west"]
    assert new.reader.reportLatestOffset()[AWAY] == [west.url]
    with caplog.at_level(logging.WARNING):
        assert numbers_of(rows_read({"url": url, "columns": "value", **GOES_ON})) == [0, 1, 2, 3]
    assert f"the broker at {west.url} did not answer" in caplog.text
    west.start_again()
    west.send(102, 3)
    for one, wanted in ((query, [102, 103, 104]), (again, [102, 103, 104]), (new, [*range(100, 105)])):
        assert eventually("rows of west", one.trigger, bool, WAIT_S) == wanted
        assert AWAY not in one.reader.reportLatestOffset()
    for broker in two:
        broker.process.kill()
    with pytest.raises(PipelineError, match="did not answer"):
        rows_read({"url": url, **GOES_ON})


def test_a_planned_batch_has_the_rows_of_a_broker_that_dies(two: tuple[LiveBroker, LiveBroker]) -> None:
    """Whoever goes on without a broker has fetched the rows by then, and no others for this batch."""
    east, west = two
    query = Query(url=url_of(east, west), cursor="c", **GOES_ON)
    for broker, first in ((east, 0), (west, 100)):
        broker.send(first, 2)
    end, shares = query.plan()
    west.process.kill()
    for again in (shares, query.reader.partitions(query.at, end)):
        assert query.read(again) == [0, 1, 100, 101]
    query.at = end
    query.reader.commit(end)
    east.send(2, 2)
    assert query.trigger() == [2, 3]
    assert query.reader.reportLatestOffset()[AWAY] == ["west"]
    west.start_again()
    west.send(102, 2)
    assert eventually("rows of west", query.trigger, bool, WAIT_S) == [102, 103]


def test_a_broker_that_dies_before_its_rows_are_fetched_is_left_out(two: tuple[LiveBroker, LiveBroker]) -> None:
    east, west = two
    with cutting(west.process.ports["http"], b"Range: bytes", nth=2, at_cut=west.process.kill) as proxy:
        query = Query(url=f"{east.url},http://127.0.0.1:{proxy.port}", **GOES_ON)
        for broker, first in ((east, 0), (west, 100)):
            broker.send(first, 2)
        before = query.at["west"]
        assert query.trigger() == [0, 1]
        assert query.at["west"] == before
        assert query.reader.reportLatestOffset()[AWAY] == ["west"]
        assert lag(query.progress())["west"].is_away
        west.start_again()
        assert eventually("rows of west", query.trigger, bool, WAIT_S) == [100, 101]


def test_a_batch_that_was_not_fetched_waits_for_its_broker(two: tuple[LiveBroker, LiveBroker]) -> None:
    """One that is too large, or that a query repeats which has started again: nothing of it may be left out."""
    east, west = two
    query = Query(url=url_of(east, west), **GOES_ON)
    strict = Query(url=url_of(east, west), brokerTimeoutSeconds="1")
    west.send(100, 1, size_bytes=HELD_BYTES_MAX)
    end, shares = query.plan()
    west.process.kill()
    again = "Spark repeats a planned batch as it was: start the broker again"
    named = rf"{west.url} did not answer for 1 s .* has the offsets \d+ to {end['west']} of broker west. {again}"
    for reader in (query.reader, strict.reader):
        with pytest.raises(PipelineError, match=named):
            reader.partitions(query.at, end)
    with pytest.raises(PipelineError, match=rf"{west.url} did not answer for 1 s .*{again}"):
        query.read(shares)
    with pytest.raises(
        PipelineError, match=r"an unfinished batch has the offsets .* of broker west, which is not avail"
    ):
        Query(query.at, url=url_of(east, west), **GOES_ON).reader.partitions(query.at, end)
    west.start_again()
    assert query.read(query.reader.partitions(query.at, end)) == [100]


def test_a_large_batch_becomes_small_ones_whose_rows_are_there(two: tuple[LiveBroker, LiveBroker]) -> None:
    """Whatever was planned of a broker that dies is not waited for; the rest comes when it is back."""
    east, west = two
    query = Query(url=url_of(east, west), **GOES_ON)
    for broker, first in ((east, 0), (west, 100)):
        broker.send(first, 20, size_bytes=HELD_BYTES_MAX // 10)
    end, shares = query.plan()
    west.process.kill()
    found = query.read(shares)
    assert found == query.read(query.reader.partitions(query.at, end))
    assert 0 < len(found) < 10
    query.at = end
    while not {*range(20)} <= {*found}:
        found += query.trigger() or []
    west.start_again()
    while len(found) < 40:
        found += eventually("rows of west", lambda: query.trigger() or [], bool, WAIT_S)
    assert sorted(found) == [*range(20), *range(100, 120)]


def test_whole_blocks_of_four_brokers_make_no_batch_smaller(tmp_path: Path) -> None:
    """A task reads whole blocks. Those of four brokers are more than is fetched for a batch, few as its rows may be."""
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(live_broker(tmp_path / name, name=name, file_bytes="8M"))
            for name in ("east", "west", "north", "south")
        ]
        for number, broker in enumerate(brokers):
            broker.send(1000 * number, 120, size_bytes=HELD_BYTES_MAX // 400)
        given = {**GOES_ON, "url": url_of(*brokers), "brokerTimeoutSeconds": "60"}
        tasks = Query(url=url_of(*brokers), maxMessagesPerTrigger="80").plan()[1]
        blocks = [one for share in tasks for one in share.ranges]  # type: ignore[attr-defined]
        assert sum(one.end - one.begin for one in blocks) > HELD_BYTES_MAX
        query = Query(**given, maxMessagesPerTrigger="80")
        batches = [query.trigger() or [] for _ in range(3)]
        assert [len(rows) for rows in batches] == [80] * 3
        assert all({row // 1000 for row in rows} == {0, 1, 2, 3} for rows in batches)
        assert len(Query(**given).trigger() or []) > 80, "without a limit of one's own"


def test_a_broker_is_taken_out_and_comes_back(tmp_path: Path) -> None:
    logs = {name: MadeLog(tmp_path / name) for name in ("east", "west")}
    for number, log in enumerate(logs.values()):
        log.messages = 100 * number
        log.segment(START_MS)
        log_id([log.folder])
        log.publish(START_MS, 2)
        log.close()
    both = ",".join(f"{name}={log.folder}" for name, log in logs.items())
    query = Query(journal=both)
    assert query.trigger() == [1, 2, 101, 102]
    east = f"east={logs['east'].folder}"
    said = r"checkpoint is of broker west .*, but the logs are of east.*keepRemovedBrokers=true"
    with pytest.raises(PipelineError, match=said):
        Query(query.at, journal=east).trigger()
    for log in logs.values():
        log.segment(START_MS, 1)
        log.close()
    alone = Query(query.at, journal=east, keepRemovedBrokers="true")
    assert alone.trigger() == [3]
    assert alone.at["west"] == query.at["west"]
    assert alone.at["#log"]["west"] == query.at["#log"]["west"]
    assert lag(alone.progress())["west"].is_away
    assert Query(alone.at, journal=both).trigger() == [103]


def test_a_batch_of_a_broker_that_was_taken_out(tmp_path: Path) -> None:
    for name in ("east", "west"):
        log = MadeLog(tmp_path / name)
        log.segment(START_MS, 2)
        log.close()
    query = Query(journal=f"east={tmp_path / 'east'},west={tmp_path / 'west'}")
    end, _ = query.plan()
    alone = Query(query.at, journal=f"east={tmp_path / 'east'}", keepRemovedBrokers="true")
    with pytest.raises(PipelineError, match=r"has the offsets 1 to \d+ of broker west, which is not available"):
        alone.reader.partitions(query.at, end)


def test_how_far_behind_a_query_is(tmp_path: Path) -> None:
    log = MadeLog(tmp_path)
    log.segment(START_MS, 10)
    log.publish(START_MS, 100, "bills")
    log.close()
    query = Query(journal=str(tmp_path), broker="b", subscribe="orders", maxMessagesPerTrigger="4")
    seen = []
    for _ in range(3):
        query.trigger()
        told = lag(query.progress())["b"]
        seen.append((told.offsets, bool(told.size_bytes), told.latest))
    assert seen[-1] == (0, False, log.lsn - 1)
    assert [is_behind for _, is_behind, _ in seen] == [True, True, False]
    assert lag({"sources": [{"endOffset": "7", "latestOffset": None}]}) == {}


# ---- how much of a batch each of them gets -----------------------------------------------------------------------


def lagging(folder: Path, *counts: int, others: int = 0) -> str:
    """The option ``journal`` of logs in which so many messages wait, in the first one among those of ``others``. Their
    numbers say which log it is.
    """
    for number, count in enumerate(counts):
        log = MadeLog(folder / f"b{number}")
        for place in range(10):
            log.segment(START_MS)
            log.messages = 10_000 * number + 1_000 * place
            log.publish(START_MS, count // 10 + (place < count % 10))
            if number == 0:
                log.publish(START_MS, others, "bills")
        log.close()
    return ",".join(f"b{number}={folder / f'b{number}'}" for number in range(len(counts)))


def taken(query: Query, logs: int) -> list[list[int]]:
    """How many rows of each log are in each batch, until there are no more. Each comes once."""
    rows: list[int] = []
    found = []
    while batch := query.trigger():
        rows += batch
        found.append([sum(row // 10_000 == number for row in batch) for number in range(logs)])
    assert len(rows) == len(set(rows))
    return found


def test_each_gets_of_a_batch_in_proportion_to_what_waits_there(tmp_path: Path) -> None:
    journal = lagging(tmp_path, 20, 200, others=100)
    found = taken(Query(journal=journal, subscribe="orders", maxMessagesPerTrigger="22"), 2)
    assert found[0] == [2, 20]
    assert len(found) == 10
    assert all(sum(batch) == 22 and batch[0] in (2, 3) for batch in found[:-1]), found
    assert [sum(log) for log in zip(*found, strict=True)] == [20, 200]


@pytest.mark.parametrize(("option", "limit"), [("maxOffsetsPerTrigger", "60"), ("maxBytesPerTrigger", "12000")])
def test_so_it_is_with_records_and_bytes(tmp_path: Path, option: str, limit: str) -> None:
    limited: dict[str, Any] = {option: limit}
    found = taken(Query(journal=lagging(tmp_path, 40, 400), subscribe="orders", **limited), 2)
    assert len(found) > 2
    assert all(7 * batch[0] <= batch[1] <= 14 * batch[0] for batch in found[:-1]), found
    assert [sum(log) for log in zip(*found, strict=True)] == [40, 400]


@pytest.mark.parametrize(
    ("counts", "limit", "first"),
    [
        ((1, 100), "10", [1, 9]),
        ((3, 2, 1), "2", [1, 1, 1]),
        ((3, 4), "7", [3, 4]),
        ((5, 0, 5), "4", [2, 0, 2]),
        ((1, 1, 100), "3", [1, 1, 1]),
    ],
    ids=str,
)
def test_none_that_has_something_gets_nothing(
    tmp_path: Path, counts: tuple[int, ...], limit: str, first: list[int]
) -> None:
    query = Query(journal=lagging(tmp_path, *counts), subscribe="orders", maxMessagesPerTrigger=limit)
    assert taken(query, len(counts))[0] == first
