"""A broker and its stand-by as one source: queries go on when the one that works is killed, and when it comes back."""

from __future__ import annotations

import operator
import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark.log.http import Broker
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import Share
from artemis_py.spark.stream.reader import AWAY
from tests.e2e.pair import Pair
from tests.kit.client import connected
from tests.kit.http import ask
from tests.kit.ports import free_port
from tests.kit.process import BOTH, LOOPBACK, BrokerProcess, eventually, for_each_test, retained
from tests.spark.live import ADDRESSES, live_broker
from tests.spark.pipeline_clients import Receipted, Served
from tests.spark.pipeline_ledger import delivered
from tests.spark.queue_jobs import SETTINGS, source
from tests.spark.readers import Query, numbers_of, rows_of, rows_read
from tests.spark.streams import WAIT_S, Sink, Streams

pair = for_each_test(lambda folder: Pair(folder, f"<journal-file-size>64K</journal-file-size>{retained(folder)}"))


def both(pair: Pair) -> tuple[BrokerProcess, BrokerProcess]:
    """One that works and one that waits, each on ports that stay the same."""
    ports = [{name: free_port() for name in BOTH} for _ in range(2)]
    works, waits = pair.start(ports=ports[0]), pair.start("backup", ports=ports[1])
    waits.ports |= ports[1]  # those on which it does not listen yet, too
    return works, waits


def url_of(*members: BrokerProcess) -> str:
    return "|".join(f"http://{LOOPBACK}:{one.ports['http']}" for one in members)


def send(member: BrokerProcess, first: int, count: int, size_bytes: int = 0) -> None:
    with connected(member.port) as client:
        client.publish("/queue/orders", [str(number).ljust(size_bytes) for number in range(first, first + count)])


# ---- the readers that Spark calls, without a JVM -----------------------------------------------------------------


def test_a_query_goes_on_with_the_one_that_works(pair: Pair) -> None:
    first, backup = both(pair)
    query = Query(url=url_of(first, backup), subscribe="orders", cursor="pair")
    send(first, 0, 3)
    assert query.trigger() == [0, 1, 2]
    first.kill()
    backup.await_state("ready")
    send(backup, 3, 3)
    assert query.trigger() == [3, 4, 5]
    second = pair.start(ports=first.ports)
    backup.await_state("the lock of process")
    send(second, 6, 3)
    assert query.trigger() == [6, 7, 8]
    second.kill()
    backup.await_state("ready")
    send(backup, 9, 3)
    assert Query(query.at, url=url_of(first, backup), subscribe="orders", cursor="pair").trigger() == [9, 10, 11]
    told = ask(backup.ports["http"], "GET", "/log/cursors/pair").json
    assert told["lsn"] > query.at["e2e"]
    assert told["holds"]


def test_a_planned_batch_is_read_from_the_other_one(pair: Pair) -> None:
    """Of a stream, and of a batch query whose tasks are under way."""
    first, backup = both(pair)
    send(first, 0, 200, 1000)
    query = Query(url=url_of(first, backup), subscribe="orders", partitionBytes="20000")
    end, shares = query.plan()
    whole = RowReader(read_options({"url": url_of(first, backup), "subscribe": "orders", "partitionBytes": "20000"}))
    planned = whole.partitions()
    assert len(shares) > 1
    assert len(planned) > 1
    before = query.read(shares[:1])
    rows = rows_of(whole, planned[:1])
    first.kill()
    backup.await_state("ready")
    send(backup, 200, 1)
    assert before + query.read(shares[1:]) == list(range(200))
    assert numbers_of(rows + rows_of(whole, planned[1:])) == list(range(200))
    assert query.read(query.reader.partitions(query.at, end)) == list(range(200))


def test_tasks_begin_with_the_one_that_answered_their_planner(pair: Pair) -> None:
    """Else each of them would wait for a machine without power."""
    first, backup = both(pair)
    send(first, 0, 1)
    query = Query(url=url_of(backup, first), subscribe="orders")
    [share] = query.plan()[1]
    assert isinstance(share, Share)
    assert isinstance(share.location, Broker)
    assert str(share.location) == url_of(first, backup)
    assert share.location.log_id is not None


def test_a_query_starts_whichever_of_the_two_is_there(pair: Pair) -> None:
    first, backup = both(pair)
    send(first, 0, 2)
    options: dict[str, Any] = {"url": url_of(first, backup), "subscribe": "orders", "brokerTimeoutSeconds": "1"}
    backup.kill()
    assert Query(**options).trigger() == [0, 1]
    first.kill()
    said = (
        rf"the broker at {url_of(first)}\|.* did not answer for 1 s \(http.*: nothing listens there.*; http.*: nothing"
    )
    with pytest.raises(PipelineError, match=said):
        rows_read(options)
    backup = pair.start("backup", state="ready", ports=backup.ports)
    assert [row["value"] for row in rows_read(options)] == [b"0", b"1"]


def test_a_pair_that_is_down_is_skipped_as_one_broker(pair: Pair, tmp_path: Path) -> None:
    first, backup = both(pair)
    with live_broker(tmp_path / "east", name="east") as east:
        send(first, 0, 2)
        url = f"{url_of(first, backup)},{east.url}"
        query = Query(url=url, subscribe="orders", skipUnavailableBrokers="true", brokerTimeoutSeconds="1")
        assert query.trigger() == [0, 1]
        for member in (backup, first):
            member.kill()
        east.send(100, 2)
        assert query.trigger() == [100, 101]
        assert query.reader.reportLatestOffset()[AWAY] == ["e2e"]
        send(pair.start("backup", state="ready", ports=backup.ports), 2, 2)
        assert eventually("rows of the pair", query.trigger, bool, WAIT_S) == [2, 3]


def test_a_stand_by_alone_is_no_broker(pair: Pair) -> None:
    pair.start()
    backup = pair.start("backup")
    url = url_of(backup)
    said = rf"did not answer for 1 s \(stand-by: waits for the lock .*\): name it behind its broker, as in .*\|{url}"
    with pytest.raises(PipelineError, match=said):
        rows_read({"url": url, "brokerTimeoutSeconds": "1"})


def test_a_machine_that_is_silent_hides_no_stand_by(pair: Pair) -> None:
    """Not even where a query waits shorter than a connection to it would."""
    first = pair.start()
    send(first, 0, 2)
    with socket.create_server((LOOPBACK, 0), backlog=0) as silent, socket.socket() as waiting:
        waiting.connect(silent.getsockname())  # nobody else gets in
        url = f"http://{LOOPBACK}:{silent.getsockname()[1]} | {url_of(first)}"
        assert [row["value"] for row in rows_read({"url": url, "brokerTimeoutSeconds": "1"})] == [b"0", b"1"]


@pytest.mark.parametrize("fails_on_loss", ["true", "false"])
def test_two_brokers_are_no_pair(tmp_path: Path, fails_on_loss: str) -> None:
    """Whoever joins them reads no row of the other one as if it was the first one's, and skips none."""
    with live_broker(tmp_path / "a", name="a") as one, live_broker(tmp_path / "b", name="b") as other:
        for broker in (one, other):
            broker.send(0, 3)
        query = Query(url=f"{one.url}|{other.url}", failOnDataLoss=fails_on_loss)
        _, shares = query.plan()
        one.process.kill()
        said = rf"{other.url} has the log .*, but {one.url} had .*: one is no stand-by of the other"
        for broken in (partial(query.read, shares), query.trigger):
            with pytest.raises(PipelineError, match=said):
                broken()


@pytest.mark.parametrize("url", ["http://a:1|", "|http://a:1", "http://a:1|b:2", "http://a:1|tcp://b:2"])
def test_what_is_no_pair_of_urls(url: str) -> None:
    with pytest.raises(PipelineError, match=r"option url is .*of one with a stand-by http://host:8161\|http://other"):
        read_options({"url": url})


def test_one_url_with_tls_is_enough_for_its_options() -> None:
    assert read_options({"url": "http://a:1|https://b:2", "verify": "false"}).tls is not None


# ---- in Spark ----------------------------------------------------------------------------------------------------

TURN = pytest.mark.takes_turns("a broker that dies under a stream")
LONG = (pytest.mark.slow, pytest.mark.timeout(1800))


@pytest.mark.parametrize(
    ("kind", "fail_overs"),
    [
        *(pytest.param(kind, 2, marks=TURN) for kind in ("log", "queue")),
        *(pytest.param(kind, 20, marks=LONG) for kind in ("log", "queue")),
    ],
)
def test_a_stream_through_fail_overs_and_fail_backs(
    tmp_path: Path, streams: Streams, seed: int, kind: str, fail_overs: int
) -> None:
    """Its working member is killed, every other time in a batch, and what takes over is killed the next time. Every
    message once, in one query and one checkpoint.
    """
    queue = '<address name="orders"><anycast><queue name="orders"/></anycast></address>'
    with live_broker(tmp_path / "broker", is_pair=True, settings=SETTINGS, addresses=ADDRESSES + queue) as live:
        log: dict[str, Any] = {"url": live.url, "subscribe": "orders", "includeHeaders": "true"}
        given = {**log, "startingOffsets": "earliest", "cursor": "pair"}
        if kind == "queue":
            given = source(live, "orders", maxMessagesPerTrigger=50, includeHeaders="true")
        served, sink = Served(live.process.port, seed), Sink()
        ledger = served.ledger
        query = streams.start(sink, **given)
        with served.by(Receipted("plain", served, ["orders"])):
            for number in range(fail_overs):
                sink.await_values(sink.count + 20)
                works = live.process.process
                if number % 2:
                    live.fail_over()
                else:
                    sink.before = live.fail_over
                    eventually("a batch", works.poll, lambda code: code is not None, WAIT_S)
                sink.await_values(sink.count + 20)
                assert query.isActive, query.exception()
        problems = lambda: ledger.problems(delivered(row for rows in sink.batches for row in rows))  # noqa: E731
        eventually("all of them", problems, operator.not_, WAIT_S)
        assert query.isActive
        assert served.trouble + ledger.problems(delivered(rows_read(log))) == []
        if kind == "queue":
            eventually("an empty queue", lambda: live.process.count("orders"), operator.not_, WAIT_S)
