"""The tables against a running broker: what was published, what happened to it, and what the broker itself counts."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import IsNotNull

from artemis_py.errors import PipelineError
from artemis_py.spark.read.aggregated_tables import AggregateReader
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import Range, Share
from tests.kit.client import StompSocket
from tests.spark.live import LiveBroker, live_broker
from tests.spark.readers import Row, rows_of, rows_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = b"l" * 300_000


@dataclass
class Traffic:
    """What was sent, in order: the rows that have to come back."""

    broker: LiveBroker
    client: StompSocket
    sent: list[dict[str, Any]] = field(default_factory=list)

    def send(self, address: str, body: bytes, *, transaction: str | None = None, **headers: object) -> None:
        named = {name.replace("__", "-"): value for name, value in headers.items()}
        sent = {"destination": f"/queue/{address}", "persistent": "true", **named}
        if transaction is None:
            self.client.ask("SEND", sent, body)
        else:
            self.client.send("SEND", {**sent, "transaction": transaction}, body)
        self.sent.append({"address": address, "value": body, **named})


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traffic]:
    with live_broker(tmp_path_factory.mktemp("live")) as broker, broker.client() as client:
        traffic = Traffic(broker, client)
        for number in range(300):
            traffic.send("orders", b"body %d" % number, n=number)
        traffic.send("orders", b"", priority=9)
        traffic.send("orders", "ä\0€".encode(), JMSXGroupID="g1", note="two wörds")
        traffic.send("later", b"later", AMQ_SCHEDULED_DELAY=3_600_000)
        traffic.send("orders", b"expires", expires=int(time.time() * 1000) + 3_600_000)
        traffic.send("large", LARGE)
        for number in range(2):  # with their duplicate ids they are groups in the log, and no transactions
            traffic.send("once", b"%d" % number, _AMQ_DUPL_ID=f"id {number}")
        client.send("BEGIN", {"transaction": "t"})
        for number in range(3):
            traffic.send("tx", b"%d" % number, transaction="t")
        client.ask("COMMIT", {"transaction": "t"})
        for number in range(5):
            traffic.send("ring", b"%d" % number)
        client.subscribe("/queue/orders", id="c1", ack="client-individual")  # and holds what is not acknowledged here
        *acknowledged, refused = [client.expect("MESSAGE") for _ in range(101)]
        for message in acknowledged:
            client.send("ACK", {"id": message.header("ack")})
        client.ask("NACK", {"id": refused.header("ack")})
        again = client.expect("MESSAGE")
        while again.header("message-id") != refused.header("message-id"):
            again = client.expect("MESSAGE")
        client.ask("NACK", {"id": again.header("ack")})
        bodies = [(b"%d" % number).ljust(500) for number in range(200)]
        client.publish("/queue/paged", bodies)
        traffic.sent += [{"address": "paged", "value": body} for body in bodies]
        for number in range(3):  # the third is dropped: it is in the log as refused, not as a message
            client.ask("SEND", {"destination": "/queue/full", "persistent": "true"}, b"%d" % number)
        traffic.sent += [{"address": "full", "value": b"%d" % number} for number in range(2)]
        yield traffic


@pytest.fixture(scope="module", params=["url", "journal"])
def source(request: pytest.FixtureRequest, traffic: Traffic) -> dict[str, str]:
    return {"url": traffic.broker.url} if request.param == "url" else {"journal": str(traffic.broker.folder)}


def test_what_was_published_row_for_row(spark: SparkSession, traffic: Traffic, source: dict[str, str]) -> None:
    frame = spark.read.format("artemis").options(**source, includeHeaders="true").load()
    rows = frame.orderBy("offset").collect()
    origin = "{}:{}".format(*traffic.client.socket.getsockname())
    own = [row for row in rows if row.originalAddress is None]
    assert [(row.address, row.value) for row in own] == [(sent["address"], sent["value"]) for sent in traffic.sent]
    assert {(row.origin, row.user, row.broker, row.topic == row.address) for row in own} == {
        (origin, "ann", "e2e", True)
    }
    assert len({row.messageId for row in own}) == len({row.offset for row in own}) == len(own)
    for row, sent in zip(own, traffic.sent, strict=True):
        assert row.queues == [sent["address"]]
        assert row.bodyBytes == len(sent["value"])
        assert row.priority == sent.get("priority", 4)
        assert row.key == (sent["JMSXGroupID"].encode() if "JMSXGroupID" in sent else None)
        assert row.transaction is not None or sent["address"] != "tx"
        assert (row.deliverAt is None) == (sent["address"] != "later")
        assert (row.expiration is None) == ("expires" not in sent)
        headers = {one.key: bytes(one.value).decode() for one in row.headers}
        assert headers["destination"] == f"/queue/{sent['address']}"
        for name in ("n", "note"):
            assert headers.get(name) == (str(sent[name]) if name in sent else None)
    assert len({row.transaction for row in own if row.address == "tx"}) == 1
    assert {row.transaction for row in own if row.address != "tx"} == {None}
    dead = [row for row in rows if row.originalAddress is not None]
    assert [(row.address, row.originalAddress, row.originalQueue, row.origin) for row in dead] == [
        ("DLQ", "orders", "orders", None)
    ]
    assert dead[0].originalMessageId in {str(row.messageId) for row in own}
    assert dead[0].reason is not None
    assert dead[0].transaction is None


def test_what_happened(traffic: Traffic, source: dict[str, str]) -> None:
    rows = rows_read({**source, "table": "events"})
    origin = "{}:{}".format(*traffic.client.socket.getsockname())
    counted = Counter((row["event"], row["queue"]) for row in rows)
    assert counted["published", None] == len(traffic.sent) + 1
    assert counted["routed", "orders"] == 303
    assert counted["scheduled", "later"] == 1
    assert counted["acked", "orders"] == 100
    assert counted["attempted", "orders"] == 2
    assert counted["dead", "orders"] == 1
    assert counted["replaced", "ring"] == 2
    [refused] = (row for row in rows if row["event"] == "refused")
    columns = ("address", "reason", "count", "origin")
    assert [refused[name] for name in columns] == ["full", "drop", 1, origin]
    acked = [row for row in rows if row["event"] == "acked"]
    assert {(row["consumer"], row["address"]) for row in acked} == {(f"{origin}/c1", "orders")}
    delivered = {row["messageId"] for row in rows if row["event"] == "delivered"}
    assert {row["messageId"] for row in acked} <= delivered
    failed = [row for row in rows if row["event"] == "attempted"]
    assert [(row["attempts"], row["reason"]) for row in failed] == [(1, "nacked"), (2, "nacked")]


def test_queues_are_as_the_broker_counts_them(traffic: Traffic, source: dict[str, str]) -> None:
    rows = {row["queue"]: row for row in rows_read({**source, "table": "queues"})}
    assert set(rows) == {"orders", "later", "large", "once", "tx", "ring", "paged", "full", "DLQ"}
    process = traffic.broker.process
    for name, row in rows.items():
        for column, metric in (
            ("messageCount", "artemis_durable_message_count"),
            ("persistentBytes", "artemis_durable_persistent_size"),
            ("scheduledCount", "artemis_scheduled_durable_message_count"),
            ("deliveringCount", "artemis_delivering_durable_message_count"),
            ("added", "artemis_messages_added"),
            ("acked", "artemis_messages_acknowledged"),
            ("killed", "artemis_messages_killed"),
        ):
            assert row[column] == process.metric(metric, queue=name), (name, column)
    assert rows["ring"]["replaced"] == 2


def test_pages(source: dict[str, str]) -> None:
    rows = sorted(rows_read({**source, "table": "pages"}), key=lambda row: int(row["page"]))
    assert len(rows) > 5
    assert {(row["address"], row["droppedAt"]) for row in rows} == {("paged", None)}
    assert [row["state"] for row in rows] == ["full"] * (len(rows) - 1) + ["open"]
    places = [(row["firstPlace"], row["messages"]) for row in rows]
    assert all(first + count == following for (first, count), (following, _) in pairwise(places))
    assert sum(row["messages"] for row in rows) < 200


def test_metrics_add_up_to_the_state(source: dict[str, str]) -> None:
    rows = rows_read({**source, "table": "metrics", "interval": "1 second"})
    for state in rows_read({**source, "table": "queues"}):
        own = sorted((row for row in rows if row["queue"] == state["queue"]), key=lambda row: row["bucket"])
        assert own[-1]["depthEnd"] == state["messageCount"]
        sums = {name: sum(row[name] for row in own) for name in ("published", "acked", "replaced")}
        assert sums == {"published": state["added"], "acked": state["acked"], "replaced": state["replaced"]}
        assert max(row["depthMax"] for row in own) >= state["messageCount"]
    assert sum(row["dead"] for row in rows) == 1
    assert max(row["depthMax"] for row in rows if row["queue"] == "ring") == 3


def test_metrics_of_a_late_time_are_the_same_and_need_not_all_of_the_log(source: dict[str, str]) -> None:
    def ranges(**options: str) -> list[Range]:
        reader = AggregateReader(read_options({**source, "table": "metrics", "interval": "1 ms", **options}))
        return [one for share in reader.partitions() if isinstance(share, Share) for one in share.ranges]

    def rows(**options: str) -> list[Row]:
        found = rows_read({**source, "table": "metrics", "interval": "1 ms", **options})
        return sorted(found, key=lambda row: (row["queue"], row["bucket"]))

    events = sorted(rows_read({**source, "table": "events"}), key=lambda row: int(row["offset"]))
    late_ms, early_ms = (
        round(next(row["timestamp"] for row in events if row["event"] == event).timestamp() * 1000)
        for event in ("refused", "acked")
    )
    for begin_ms in (late_ms, early_ms):
        wanted = [row for row in rows() if round(row["bucket"].timestamp() * 1000) >= begin_ms]
        assert rows(startingTimestamp=str(begin_ms)) == wanted
    assert 0 < len(ranges(startingTimestamp=str(late_ms))) < len(ranges())


def test_a_time_for_each_address(traffic: Traffic, source: dict[str, str]) -> None:
    """As if each address was filtered by itself; a stream begins so, too."""

    def read(*, streaming: bool = False, **options: str) -> list[tuple[str, int, int]]:
        given = {**source, "columns": "address,offset,publishedAt", **options}
        rows = rows_read(given, streaming=streaming)
        return [(row["address"], row["offset"], round(row["publishedAt"].timestamp() * 1000)) for row in rows]

    everything = read()
    times = {name: sorted(row[2] for row in everything if row[0] == name) for name in ("orders", "tx")}
    since = {name: found[len(found) // 2] for name, found in times.items()}
    until = {"orders": times["orders"][-1] - 1, "tx": times["tx"][-1]}
    begun = [row for row in everything if row[2] >= since.get(row[0], 0)]
    assert len(begun) < len(everything)
    for streaming in (False, True):
        assert read(streaming=streaming, startingTimestamp=json.dumps(since)) == begun
        chosen = read(streaming=streaming, startingTimestamp=json.dumps(since), subscribe="orders,tx")
        assert chosen == [row for row in begun if row[0] in since]
    ended = [row for row in everything if row[2] <= until.get(row[0], row[2])]
    assert read(endingTimestamp=json.dumps(until)) == ended != everything
    both = read(
        startingTimestamp=json.dumps(since), endingTimestamp=json.dumps({"tx": until["tx"]}), subscribe="orders,tx"
    )
    assert both == [row for row in begun if row[0] in since]
    rows = rows_read({**source, "table": "events", "endingTimestamp": json.dumps({"orders": 5})})
    assert {row["address"] for row in rows} >= {"tx"}
    assert "orders" not in {row["address"] for row in rows}


def test_the_state_at_an_earlier_time(source: dict[str, str]) -> None:
    acked = min(row["timestamp"] for row in rows_read({**source, "table": "events"}) if row["event"] == "acked")
    before = int(acked.timestamp() * 1000) - 1
    rows = {row["queue"]: row for row in rows_read({**source, "table": "queues", "asOf": str(before)})}
    assert (rows["orders"]["messageCount"], rows["orders"]["acked"]) == (303, 0)
    assert "paged" not in rows


def test_sums_of_some_addresses_alone(source: dict[str, str]) -> None:
    def addresses(table: str, **options: str) -> set[str]:
        return {row["address"] for row in rows_read({**source, "table": table, **options})}

    assert addresses("queues", subscribe="orders,tx") == {"orders", "tx"}
    assert addresses("metrics", subscribePattern="#") >= {"orders", "ring"}
    assert addresses("metrics", subscribe="ring") == {"ring"}
    assert addresses("pages", subscribe="orders") == set()


def test_bodies_of_copies_are_read_alone_where_these_are_asked_for(traffic: Traffic, source: dict[str, str]) -> None:
    reader = RowReader(read_options({**source, "columns": "address,value,reason"}))
    assert list(reader.pushFilters([IsNotNull(("reason",))]))
    assert [row["address"] for row in rows_of(reader, reader.partitions())] == ["DLQ"]


def test_a_large_body_that_is_not_whole(traffic: Traffic, tmp_path: Path) -> None:
    """Nor is one taken for it that stands beside the log under the same number, and has another size."""
    copy = tmp_path / "copy"
    shutil.copytree(traffic.broker.folder, copy, ignore=shutil.ignore_patterns("paging"))
    [body] = copy.glob("large/*.body")
    body.write_bytes(LARGE[:-1])
    shutil.copy(body, copy / "journal" / body.name)

    given = {"journal": str(copy), "subscribe": "large", "columns": "value"}
    with pytest.raises(PipelineError, match=f"of {len(LARGE)} bytes is not in .*includeBody=false"):
        rows_read(given)
    assert rows_read({**given, "failOnDataLoss": "false"}) == [{"value": None}]
    body.write_bytes(LARGE)
    assert rows_read(given) == [{"value": LARGE}]


def test_a_broker_that_is_not_there_says_what_to_do(spark: SparkSession) -> None:
    nowhere = spark.read.format("artemis").options(url="http://127.0.0.1:9", brokerTimeoutSeconds="1")
    with pytest.raises(Exception, match=r"did not answer for 1 s .* acceptor with protocols=HTTP"):
        nowhere.load().count()
