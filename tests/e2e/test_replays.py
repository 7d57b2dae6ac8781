"""Replays of a real process: under load, across segments, pages and files of large bodies, and through SIGKILL."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from artemis_py.perf.scenario import Options, Run
from artemis_py.perf.target import Target
from bench.replays import measure_round
from tests.e2e.replay_actors import DESTINATION, Consumer, Publisher, Replayer, Seen, logged
from tests.kit.client import connected
from tests.kit.process import BrokerProcess, configuration, retained, started

pytestmark = pytest.mark.e2e

SETTINGS = """<address-setting match="#"><max-size-bytes>30000</max-size-bytes>
<page-size-bytes>20000</page-size-bytes></address-setting>"""
PUBLISHERS = 3


def replayed(folder: Path) -> AbstractContextManager[BrokerProcess]:
    """A broker with everything in ``folder``."""
    core = f"<journal-file-size>64K</journal-file-size><max-disk-usage>-1</max-disk-usage>{retained(folder)}"
    file = folder / "broker.xml"
    file.write_text(configuration(folder=folder, core=core, settings=SETTINGS), "utf-8")
    return started(file)


def await_seen(broker: BrokerProcess, seen: Seen, count: int) -> None:
    """Wait until so many messages were seen."""
    broker.eventually("replayed", lambda: len(seen.bookmarks), lambda now: now >= count, 60)


def catch_up(broker: BrokerProcess, seen: Seen) -> None:
    """See everything that is in the log now."""
    replayer = Replayer(broker, seen, completed="true")
    broker.eventually("complete", replayer.is_complete.is_set, lambda is_complete: is_complete, 60)
    replayer.stop()


def agree(folder: Path, publishers: list[Publisher], *views: Seen) -> None:
    """Every view has every message of the log once, in its order, and the log has all that was confirmed."""
    offsets, marks = logged(folder)
    assert offsets == sorted(set(offsets))
    for view in views:
        assert view.problems == []
        assert view.bookmarks == offsets
        assert view.marks == marks
    assert {mark for one in publishers for mark in one.confirmed} <= set(marks)


def test_everything_once_while_it_is_published(tmp_path: Path) -> None:
    """Replays begin before, while and after messages are published; the log is in many segments, retained and not, and
    the address pages when its consumer comes late.
    """
    with replayed(tmp_path) as broker:
        early, during, slow, late, spark = Seen(), Seen(), Seen(), Seen(), Seen()
        replayers = [Replayer(broker, early)]
        publishers = [Publisher(broker, f"p{number}").start() for number in range(PUBLISHERS)]
        await_seen(broker, early, 300)
        assert broker.metric("artemis_number_of_pages", address="orders") > 0
        replayers += [Replayer(broker, during), Replayer(broker, slow, rate="2MB")]
        consumer = Consumer(broker)
        await_seen(broker, early, 900)
        replayers.append(Replayer(broker, late))
        for publisher in publishers:
            publisher.stop()
        count = sum(len(publisher.confirmed) for publisher in publishers)
        for view in (early, during, slow, late):
            await_seen(broker, view, count)
        for replayer in replayers:
            replayer.stop()
        consumer.stop()
        catch_up(broker, spark)
        assert any((tmp_path / "kept").glob("*.log")), "nothing was retained"
        assert broker.stop() == 0
    agree(tmp_path, publishers, early, during, slow, late, spark)


def test_a_killed_broker_is_replayed_from_the_last_bookmark(tmp_path: Path) -> None:
    """SIGKILL in the middle of publishing and replaying. What a replay has shown is in the log for ever, and after the
    last bookmark comes what it has not shown.
    """
    views = [Seen(), Seen()]
    publishers: list[Publisher] = []
    for life in range(4):
        with replayed(tmp_path) as broker, ExitStack() as ended:
            for view in views:
                ended.callback(Replayer(broker, view).stop)
            working = [Publisher(broker, f"p{life}{number}").start() for number in range(PUBLISHERS)]
            publishers += working
            consumer = Consumer(broker) if life % 2 else None
            aim = len(views[0].bookmarks) + 150
            await_seen(broker, views[0], aim)
            await_seen(broker, views[1], aim)
            broker.process.send_signal(signal.SIGKILL)
            broker.process.wait()
            for publisher in working:
                publisher.stop()
            if consumer is not None:
                consumer.stop()
    with replayed(tmp_path) as broker:
        anew = Seen()
        for view in (*views, anew):
            catch_up(broker, view)
        assert broker.stop() == 0
    agree(tmp_path, publishers, *views, anew)


def test_spark_shows_the_same_numbers(tmp_path: Path) -> None:
    """The column ``offset``, of a running broker over HTTP and of its directories."""
    readers = pytest.importorskip("tests.spark.readers", reason="pyspark is not installed")
    with replayed(tmp_path) as broker:
        publisher = Publisher(broker, "p").start()
        seen = Seen()
        replayer = Replayer(broker, seen)
        await_seen(broker, seen, 100)
        publisher.stop()
        await_seen(broker, seen, len(publisher.confirmed))
        replayer.stop()
        rows = readers.rows_read({"url": f"http://127.0.0.1:{broker.ports['http']}"})
        assert broker.stop() == 0
    rows_of_files = readers.rows_read({"path": f"{tmp_path}/kept,{tmp_path}/journal"})
    for found in (rows, rows_of_files):
        assert sorted(row["offset"] for row in found) == seen.bookmarks


def test_a_hundred_replays_at_once_and_a_bookmark_after_a_restart(tmp_path: Path) -> None:
    """Each shows everything, and ends with the connection."""
    with replayed(tmp_path) as broker:
        publisher = Publisher(broker, "p").start()
        first = Seen()
        replayer = Replayer(broker, first)
        await_seen(broker, first, 100)
        publisher.stop()
        replayer.stop()
        assert broker.stop() == 0
    with replayed(tmp_path) as broker, ExitStack() as ended:
        views = [Seen() for _ in range(100)]
        publisher = Publisher(broker, "q").start()
        for view in views:
            ended.callback(Replayer(broker, view).stop)
        await_seen(broker, views[0], 150)
        publisher.stop()
        offsets, marks = logged(tmp_path)
        for view in views:
            await_seen(broker, view, len(offsets))
        for view in views:
            assert (view.bookmarks, view.marks, view.problems) == (offsets, marks, [])
        assert first.bookmarks[:100] == offsets[:100]
        with connected(broker.port) as client:
            client.send("SUBSCRIBE", {"id": "r", "destination": DESTINATION, "bookmark": offsets[-2]})
            assert client.message().header("bookmark") == str(offsets[-1])
            client.nothing_waits()


def test_the_benchmark_measures_with_and_without_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.replays.ENOUGH_BYTES", 0)
    monkeypatch.setattr("bench.replays.PHASES", 1)
    with replayed(tmp_path) as broker:
        run = Run(Target("127.0.0.1", broker.port), Options(messages=1000, seconds=0.2, rate=500.0))
        metrics = measure_round(run)
        assert broker.stop() == 0
    assert metrics["messages"] == 100
    assert metrics["p99_ratio"] == pytest.approx(metrics["p99_us"] / metrics["p99_alone_us"])
    assert metrics["replayed_mb_per_second"] > 0
