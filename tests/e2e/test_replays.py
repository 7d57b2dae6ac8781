"""Replays of a real process. ``test_kill`` has more: under load, with pages and large bodies, and through kills."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest

from artemis_py.perf.link import Target
from artemis_py.perf.scenario import Options, Run
from bench.replays import measure_round
from tests.kit.client import StompSocket, connected
from tests.kit.process import DAYS, storing

pytestmark = pytest.mark.e2e

SETTINGS = """<address-setting match="#"><max-size-bytes>30000</max-size-bytes>
<page-size-bytes>20000</page-size-bytes></address-setting>"""
DESTINATION = "/queue/orders"
REPLAY = {"id": "r", "destination": DESTINATION, "bookmark": "EPOCH"}
WHOLE = {**REPLAY, "completed": "true"}
"""It says when it has shown everything."""
PERSISTENT = {"destination": DESTINATION, "persistent": "true"}


CORE = "<journal-file-size>64K</journal-file-size><max-disk-usage>-1</max-disk-usage>"
replayed = partial(storing, core=CORE, settings=SETTINGS, kept=DAYS)


def bookmarks(client: StompSocket) -> list[int]:
    """Those of all that a replay shows until it has shown everything."""
    found = iter(client.message, None)
    return [int(one.header("bookmark") or -1) for one in takewhile(lambda one: one.header("completed") is None, found)]


def test_spark_shows_the_same_numbers(tmp_path: Path) -> None:
    """The column ``offset``, of a running broker over HTTP and of its directories."""
    readers = pytest.importorskip("tests.spark.readers", reason="pyspark is not installed")
    with replayed(tmp_path) as broker:
        with connected(broker.port) as client:
            client.publish(DESTINATION, [bytes(700)] * 100)
        with connected(broker.port) as client:
            client.send("SUBSCRIBE", WHOLE)
            shown = bookmarks(client)
        rows = readers.rows_read({"url": broker.url})
        assert broker.stop() == 0
    assert len(shown) == 100
    rows_of_files = readers.rows_read({"path": f"{tmp_path}/kept,{tmp_path}/journal"})
    for found in (rows, rows_of_files):
        assert sorted(row["offset"] for row in found) == shown


def test_a_hundred_replays_at_once_and_a_bookmark_after_a_restart(tmp_path: Path) -> None:
    """Each shows everything, and ends with the connection. Half of them begin while messages come."""
    with replayed(tmp_path) as broker:
        with connected(broker.port) as client:
            client.publish(DESTINATION, [bytes(700)] * 100)
        with connected(broker.port) as client:
            client.send("SUBSCRIBE", WHOLE)
            first = bookmarks(client)
        assert broker.stop() == 0
    with replayed(tmp_path) as broker, ExitStack() as stack:
        clients = [stack.enter_context(connected(broker.port)) for _ in range(100)]
        for client in clients[:50]:
            client.send("SUBSCRIBE", REPLAY)
        with connected(broker.port) as client:
            client.publish(DESTINATION, [bytes(700)] * 150)
        for client in clients[50:]:
            client.send("SUBSCRIBE", WHOLE)
        offsets = bookmarks(clients[-1])
        assert (len(offsets), offsets[:100]) == (250, first)
        for client in clients[:50]:
            assert [int(client.message().header("bookmark") or -1) for _ in offsets] == offsets
        for client in clients[50:-1]:
            assert bookmarks(client) == offsets
        with connected(broker.port) as client:
            client.send("SUBSCRIBE", {**REPLAY, "bookmark": offsets[-2]})
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
