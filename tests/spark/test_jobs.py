"""Each job on traffic whose ledger is known: what Spark counts must be what plain loops over the ledger count."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median_low
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import lit

from artemis_py.spark.jobs.source import JobError
from tests.spark.traffic import SimulatedTraffic, moment
from tests.spark.traffic_tables import Counted, Frames, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOSSES = ("replaced", "expired", "dead")


@pytest.fixture(scope="module")
def forged(source: Frames) -> Frames:
    """With a message in which a client wrote what the broker writes: a number that is none is nobody's copy."""
    messages = source.tables["messages"]
    columns = {"messageId": lit(7_000_000).cast("long"), "originalMessageId": lit("x"), "reason": lit("none")}
    return Frames({**source.tables, "messages": messages.unionByName(messages.limit(1).withColumns(columns))})


# ---- losses --------------------------------------------------------------------------------------


def test_what_a_client_wrote_into_the_broker_s_headers(spark: SparkSession, forged: Frames) -> None:
    """Such a message has a row, and no events; of the losses it is none."""
    from artemis_py.spark.jobs.trace import trace

    assert [row["what"] for row in rows_of(trace(spark, forged, "7000000").table("events"))] == ["there"]


def test_losses_by_cause_and_sender(spark: SparkSession, forged: Frames, world: SimulatedTraffic) -> None:
    """From one pass over the log for each table: losses, copies and all."""
    from artemis_py.spark.jobs.losses import losses

    kept = {(message.original[2], message.original[1]) for message in world.sent if message.original is not None}
    truths: Counter[tuple[object, ...]] = Counter()
    copied: Counter[tuple[object, ...]] = Counter()
    ages: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for message, queue, life in world.lives():
        if life.end is not None and life.end[2] in LOSSES:
            key: tuple[object, ...] = (life.end[2], queue, message.origin, (message.id, queue) in kept)
            truths[key] += 1
            copied[key] += (message.id, queue) in kept
            ages[key].append(life.end[0] - message.at_ms)
    refused = [row for row in world.event_rows if row["event"] == "refused"]
    for row in refused:
        truths["refused", None, row["origin"], False] += row["count"]
    counted = Counted(forged.tables, rows={name: spark.sparkContext.accumulator(0) for name in forged.tables})
    result = losses(spark, counted)
    assert {name: rows.value for name, rows in counted.rows.items()} == {
        name: frame.count() for name, frame in forged.tables.items()
    }
    found = rows_of(result.table("losses"))
    assert result.frames["losses"].count() == len(found)
    by_key: Counter[tuple[object, ...]] = Counter()
    for row in found:
        key = (row["cause"], row["queue"], row["origin"], bool(row["keptIn"]))
        by_key[key] += int(str(row["messages"]))
        assert row["lost"] == int(str(row["messages"])) - int(str(row["kept"]))
        if row["cause"] != "refused":
            assert row["age50"] == median_low(ages[key])
    assert by_key == truths
    assert {row["reason"] for row in found if row["keptIn"] == "DLQ"} == {"max_deliveries"}
    assert result.fact("messages") == sum(truths.values())
    assert result.fact("kept") == sum(copied.values()) == result.fact("messages") - result.fact("lost")
    assert {row["reason"] for row in found if row["cause"] == "refused"} == {"drop", "fail"}
    assert sum(row["bytes"] for row in found if row["cause"] == "refused") == sum(row["bytes"] for row in refused)  # type: ignore[misc]


# ---- dead letters --------------------------------------------------------------------------------


def test_dead_letters_in_groups(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    from artemis_py.spark.jobs.dead_letters import dead_letters

    shapes = {
        b'{"id": 1, "total": 2.5}': "JSON object: id, total", b'{"total": 1, "id": 7}': "JSON object: id, total",
        b"<order id='7'/>": "XML order", b"plain words": "text", b"\x1f\x8b\x08zip": "gzip", b"": "empty",
    }  # fmt: skip
    by_id = {message.id: message for message in world.sent}
    truths: Counter[tuple[object, ...]] = Counter()
    first: dict[tuple[object, ...], int] = {}
    for message in world.sent:
        if message.original is not None:
            names = sorted(name for name, _ in message.headers if name != "reason" and not name.startswith("_AMQ_ORIG"))
            origin = by_id[message.original[2]].origin
            key = (message.reason, *message.original[:2], origin, ", ".join(names), shapes[message.body])
            truths[key] += 1
            first.setdefault(key, message.id)
    result = dead_letters(spark, source)
    columns = ("reason", "originalAddress", "originalQueue", "origin", "headerNames", "shape")
    found = {tuple(row[name] for name in columns): row["messages"] for row in rows_of(result.table("groups"))}
    assert found == truths
    assert result.fact("messages") == sum(truths.values())
    largest = tuple(rows_of(result.table("groups"))[0][name] for name in columns)
    assert rows_of(result.table("examples"))[0]["messageId"] == str(first[largest])


# ---- trace ---------------------------------------------------------------------------------------


def test_the_history_of_a_dead_message(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    from artemis_py.spark.jobs.trace import trace

    copy = next(message for message in world.sent if message.reason == "max_deliveries")
    assert copy.original is not None
    message = next(each for each in world.sent if each.id == copy.original[2])
    life = message.lives["orders"]
    for asked in (f"12-{message.id}", str(copy.id)):
        result = trace(spark, source, asked)
        rows = rows_of(result.table("events"))
        mine = [row for row in rows if row["messageId"] == message.id]
        assert [row["what"] for row in mine] == ["arrived", *["delivered", "failed"] * 3, "dead"]
        assert mine[0]["text"] == f"sent to orders, on orders, {message.size_bytes} bytes, priority 4"
        assert mine[0]["who"] == f"{message.origin} (user shop)"
        deliveries = [row for row in mine if row["what"] == "delivered"]
        assert [(row["time"], row["who"]) for row in deliveries] == [
            (moment(at_ms), consumer) for at_ms, _, consumer in life.deliveries
        ]
        assert [row["text"] for row in mine if row["what"] == "failed"][2] == "delivery 3 failed: failed"
        copied, there = [row for row in rows if row["messageId"] == copy.id]
        assert str(copied["text"]).startswith(f"copy of message {message.id} from orders (max_deliveries): sent to DLQ")
        assert (there["what"], there["queue"], there["time"]) == ("there", "DLQ", None)
    assert result.frames["trace_events"].count() == 1 + 1 + 3 + 3 + 1 + 2


def test_a_message_that_is_not_there(spark: SparkSession, source: Frames) -> None:
    from artemis_py.spark.jobs.trace import trace

    with pytest.raises(JobError, match="message 5 is not in the log"):
        trace(spark, source, "5")
    with pytest.raises(JobError, match="is not a message id"):
        trace(spark, source, "queue-x")
