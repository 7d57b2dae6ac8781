"""Jobs on odd traffic through a real broker: they tell what its clients saw, and no more than the log knows, by url and
from directories, in batches and from streams.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from artemis_py.spark.jobs.source import TIME_COLUMNS, LogTables
from artemis_py.spark.tables.schema import TABLES
from tests.kit.client import connected
from tests.kit.process import eventually
from tests.spark.live import live_broker
from tests.spark.readers import Row, rows_read
from tests.spark.traffic_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

RING_SENT = 8


@dataclass
class Odd:
    """A broker's log, and what the clients saw."""

    places: dict[str, dict[str, str]]
    """Of its log."""
    poison: str
    """The id of the message that was refused until it was dead."""
    ring_left: int


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odd]:
    """One broker for all tests of this file, after its traffic. ``ann`` sends, and consumers hold what they have."""
    folder = tmp_path_factory.mktemp("odd") / "broker"
    one_by_one = {"consumer_window_size": "0"}
    with live_broker(folder) as broker, broker.client() as ann, connected(broker.process.port) as taker:

        def send(destination: str, body: bytes = b"x", **headers: object) -> None:
            ann.ask("SEND", {"destination": f"/queue/{destination}", "persistent": "true", **headers}, body)

        taker.subscribe("/queue/poison", id="poison", **one_by_one)
        send("poison", b"poison")
        message = taker.message()
        poison = str(message.header("message-id"))
        taker.ask("NACK", {"id": message.header("ack")})
        taker.ask("NACK", {"id": taker.message().header("ack")})
        # Sent again with all headers of the dead letter, to where that is, and through a divert.
        copied = {"ADDRESS": "poison", "QUEUE": "poison", "MESSAGE_ID": poison.rpartition("-")[2]}
        forged = {f"_AMQ_ORIG_{name}": value for name, value in copied.items()}
        for destination in ("DLQ", "door"):
            send(destination, b"poison", **forged, reason="max_deliveries")
        # Three places, of which a consumer holds one: what did not give way is acknowledged.
        taker.subscribe("/queue/ring", id="ring", **one_by_one)
        for number in range(RING_SENT):
            send("ring", b"%d" % number)
        left = broker.process.count("ring")
        for _ in range(left):
            taker.acknowledge(taker.message())
        for number in range(6):  # only the newest value of each key stays
            send("values", k=number % 2)
        for name, end in (("aborted", "ABORT"), ("sent", "COMMIT")):
            ann.send("BEGIN", {"transaction": name})
            send("tx", transaction=name)
            ann.ask(end, {"transaction": name})
        expires_ms = int(time.time() * 1000) + 1
        send("gone", expires=expires_ms)
        eventually("its time is over", lambda: time.time() * 1000 > expires_ms, bool)
        taker.subscribe("/queue/gone", id="gone")
        broker.process.await_metric(1, "artemis_messages_expired", queue="gone")
        places = {"url": {"url": broker.url}, "directories": {"journal": str(folder), "broker": "e2e"}}
        yield Odd(places, poison, left)


@pytest.fixture(scope="module")
def tables(odd: Odd) -> dict[str, list[Row]]:
    """The rows of its log, which are the same by url and from directories, in batches and from streams."""
    found = {}
    for table in TIME_COLUMNS:
        given = {"table": table, "columns": ",".join(TABLES[table])}
        ways = [rows_read({**place, **given}, streaming=way) for place in odd.places.values() for way in (False, True)]
        first, *others = (sorted(rows, key=lambda row: (row["offset"], str(row))) for rows in ways)
        assert others == [first] * 3, table
        found[table] = first
    return found


def test_what_was_lost(spark: SparkSession, tables: dict[str, list[Row]], odd: Odd) -> None:
    from artemis_py.spark.jobs.dead_letters import dead_letters
    from artemis_py.spark.jobs.losses import losses

    log = LogTables(odd.places["url"])
    rows = rows_of(losses(spark, log).table("losses"))
    assert {(row["cause"], row["queue"], row["messages"], row["kept"], row["user"]) for row in rows} == {
        ("replaced", "ring", RING_SENT - odd.ring_left, 0, "ann"), ("expired", "gone", 1, 0, "ann"),
        ("dead", "poison", 1, 1, "ann"),
    }  # fmt: skip
    events = [row["event"] for row in tables["events"] if row["queue"] == "values"]
    assert events.count("superseded") == 4, "a newer value is no loss"
    [group] = rows_of(dead_letters(spark, log).table("groups"))
    assert (group["reason"], group["originalQueue"], group["messages"]) == ("max_deliveries", "poison", 1)


def test_only_what_the_broker_wrote_says_of_what_a_message_is_a_copy(tables: dict[str, list[Row]], odd: Odd) -> None:
    """Clients may send the same headers."""
    columns = ("originalAddress", "originalQueue", "originalMessageId", "reason", "user")
    rows = sorted(tables["messages"], key=lambda row: int(row["messageId"]))
    dead, again, sent, diverted = (row for row in rows if row["address"] in ("DLQ", "door", "room"))
    told = [tuple(row[name] for name in columns) for row in (dead, again, sent, diverted)]
    assert told[0] == ("poison", "poison", odd.poison.rpartition("-")[2], "max_deliveries", None)
    assert (again["address"], sent["address"]) == ("DLQ", "door")
    assert told[1] == told[2] == (None, None, None, None, "ann")
    assert told[3] == ("door", "open", str(sent["messageId"]), None, "ann")
    assert [row["messageId"] for row in rows if row["reason"] is not None] == [dead["messageId"]]


def test_one_life(spark: SparkSession, odd: Odd) -> None:
    from artemis_py.spark.jobs.trace import trace

    log = LogTables(odd.places["directories"])
    told = [row["what"] for row in rows_of(trace(spark, log, odd.poison).table("events"))]
    assert told == ["arrived", "delivered", "failed", "delivered", "failed", "dead", "copied", "there"]
