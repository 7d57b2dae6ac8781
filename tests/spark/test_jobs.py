"""Each job on traffic whose ledger is known: what Spark counts must be what plain loops over the ledger count."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import lit

from artemis_py.spark.jobs.source import JobError, Span
from tests.spark.traffic import START_MS, SimulatedTraffic, moment
from tests.spark.traffic_tables import Counted, Frames, all_lives, lives, percentile, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOSSES = ("replaced", "expired", "dead")


@pytest.fixture(scope="module")
def world() -> SimulatedTraffic:
    """One world for all tests of this file."""
    return SimulatedTraffic()


@pytest.fixture(scope="module")
def source(spark: SparkSession, world: SimulatedTraffic) -> Frames:
    """Its tables."""
    return Frames({"messages": world.messages(spark), "events": world.events(spark)})


# ---- latency -------------------------------------------------------------------------------------


def truths_of_latency(world: SimulatedTraffic, queue: str, minute: int | None = None) -> dict[str, object]:
    """Counts, and percentiles of waiting, holding and both."""
    wait, hold, total = [], [], []
    messages = 0
    for _, life in lives(world, queue):
        began = life.due[0] if life.due is not None else life.came_ms
        if minute is not None and began // 60_000 != minute:
            continue
        messages += 1
        if life.deliveries:
            wait.append(life.deliveries[0][0] - began)
        if life.end is not None and life.end[2] == "acked":
            hold.append(life.end[0] - life.deliveries[-1][0])
            total.append(life.end[0] - began)
    truths: dict[str, object] = {"messages": messages, "delivered": len(wait), "acked": len(total)}
    for name, values in (("wait", wait), ("hold", hold), ("total", total)):
        for suffix, share in (("50", 0.5), ("95", 0.95), ("99", 0.99), ("Max", 1.0)):
            truths[f"{name}{suffix}"] = percentile(values, share)
    return truths


def test_latency_per_queue_and_minute(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    from artemis_py.spark.jobs.latency import latency

    result = latency(spark, source)
    found = {row["queue"]: row for row in rows_of(result.table("queues"))}
    assert set(found) == {queue for _, queue, _ in all_lives(world)}
    for queue, row in found.items():
        truths = truths_of_latency(world, str(queue))
        assert {name: row[name] for name in truths} == truths, queue
    intervals = [row.asDict() for row in result.frames["latency_intervals"].where("queue = 'orders'").collect()]
    assert len(intervals) == 3
    for interval in intervals:
        truths = truths_of_latency(world, "orders", int(interval["bucket"].timestamp()) // 60)
        assert {name: interval[name] for name in truths} == truths
    assert {plot.title: len(plot.series) for plot in result.plots}["deliver → acknowledge, 99 of 100 messages"] == 5
    never = sum(1 for _, _, life in all_lives(world) if not life.deliveries)
    assert f"{never:,} messages were not delivered in this time span" in result.notes


def test_latency_leaves_out_what_began_before_the_span(
    spark: SparkSession, source: Frames, world: SimulatedTraffic
) -> None:
    from artemis_py.spark.jobs.latency import latency

    from_ms = START_MS + 45_000
    result = latency(spark, Frames(source.tables, Span(from_ms=from_ms)))
    found = {row["queue"]: row for row in rows_of(result.table("queues"))}
    assert found["orders"]["messages"] == sum(1 for _, life in lives(world, "orders") if life.came_ms >= from_ms)
    assert any("reached their queues before this time span" in note for note in result.notes)


# ---- throughput ----------------------------------------------------------------------------------


def test_throughput_counts_and_peaks(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    from artemis_py.spark.jobs.throughput import throughput

    result = throughput(spark, source)
    for row in rows_of(result.table("addresses")):
        sent = [message for message in world.sent if message.address == row["address"]]
        per_second = Counter(message.at_ms // 1000 for message in sent)
        most = max(per_second.values())
        first = min(second for second, count in per_second.items() if count == most)
        assert row["published"] == len(sent)
        assert row["bytes"] == sum(message.size_bytes for message in sent)
        assert row["peak"] == most
        assert row["peakAt"] == moment(first * 1000)
        assert row["rate"] == pytest.approx(len(sent) / (sent[-1].at_ms // 1000 - sent[0].at_ms // 1000 + 1))
        assert float(str(row["rate"])) <= most
    for row in rows_of(result.table("queues")):
        mine = list(lives(world, str(row["queue"])))
        assert row["delivered"] == sum(len(life.deliveries) for _, life in mine)
        assert row["acked"] == sum(1 for _, life in mine if life.end is not None and life.end[2] == "acked")
    found = Counter[tuple[object, ...]]()
    for interval in result.frames["throughput_intervals"].collect():
        found[interval["address"], int(interval["bucket"].timestamp()) // 60] += interval["published"]
    assert +found == Counter((message.address, message.at_ms // 60_000) for message in world.sent)


# ---- fairness ------------------------------------------------------------------------------------


def test_fairness_of_consumers(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    from artemis_py.spark.jobs.fairness import fairness

    interval_s = 10
    result = fairness(spark, source, interval_s=interval_s)
    delivered: Counter[str] = Counter()
    acked: Counter[str] = Counter()
    served: dict[str, set[int]] = defaultdict(set)
    for _, life in lives(world, "orders"):
        for place, (at_ms, _, consumer) in enumerate(life.deliveries):
            delivered[consumer] += 1
            if consumer not in [name for _, _, name in life.deliveries[:place]]:
                served[consumer].add(at_ms // 1000 // interval_s)
        if life.end is not None and life.end[2] == "acked":
            acked[str(life.end[3])] += 1
    busy = set.union(*served.values())
    starved = {
        name: sum(1 for bucket in busy if min(mine) < bucket < max(mine) and bucket not in mine)
        for name, mine in served.items()
    }
    assert starved["3/starved"] >= 5
    found = {row["consumer"]: row for row in rows_of(result.table("consumers")) if row["queue"] == "orders"}
    assert {name: (row["delivered"], row["acked"], row["unacked"], row["starved"]) for name, row in found.items()} == {
        name: (delivered[name], acked[name], delivered[name] - acked[name], starved[name]) for name in delivered
    }
    [queue] = [row for row in rows_of(result.table("queues")) if row["queue"] == "orders"]
    counts = list(delivered.values())
    assert queue["jain"] == pytest.approx(sum(counts) ** 2 / (len(counts) * sum(count**2 for count in counts)))
    assert queue["shareMax"] == pytest.approx(max(counts) / sum(counts))
    alone = [row for row in rows_of(result.table("queues")) if row["queue"] == "later"]
    assert [row["jain"] for row in alone] == [1.0]


def test_fairness_where_the_span_has_acknowledgements_alone(
    spark: SparkSession, source: Frames, world: SimulatedTraffic
) -> None:
    from artemis_py.spark.jobs.fairness import fairness

    message, life = next(
        (message, life)
        for message, life in lives(world, "orders")
        if life.end is not None and life.end[2] == "acked" and len(life.deliveries) == 1
    )
    assert life.end is not None
    events = source.tables["events"].where(f"messageId = {message.id} and event = 'acked'")
    result = fairness(spark, Frames({"events": events}))
    [consumer] = rows_of(result.table("consumers"))
    assert (consumer["consumer"], consumer["delivered"], consumer["acked"], consumer["unacked"]) == (
        life.end[3], 0, 1, 0
    )  # fmt: skip
    assert [row["jain"] for row in rows_of(result.table("queues"))] == [None]


# ---- losses --------------------------------------------------------------------------------------


def test_losses_by_cause_and_sender(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    from artemis_py.spark.jobs.losses import losses

    kept = {(message.original[2], message.original[1]) for message in world.sent if message.original is not None}
    truths: Counter[tuple[object, ...]] = Counter()
    copied: Counter[tuple[object, ...]] = Counter()
    ages: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for message, queue, life in all_lives(world):
        if life.end is not None and life.end[2] in LOSSES:
            key: tuple[object, ...] = (life.end[2], queue, message.origin, (message.id, queue) in kept)
            truths[key] += 1
            copied[key] += (message.id, queue) in kept
            ages[key].append(life.end[0] - message.at_ms)
    for refusal in world.refused:
        truths["refused", None, refusal.origin, False] += refusal.count
    result = losses(spark, source)
    found = rows_of(result.table("losses"))
    by_key: Counter[tuple[object, ...]] = Counter()
    for row in found:
        key = (row["cause"], row["queue"], row["origin"], bool(row["keptIn"]))
        by_key[key] += int(str(row["messages"]))
        assert row["lost"] == int(str(row["messages"])) - int(str(row["kept"]))
        if row["cause"] != "refused":
            assert row["age50"] == percentile(ages[key], 0.5)
    assert by_key == truths
    assert {row["reason"] for row in found if row["keptIn"] == "DLQ"} == {"max_deliveries"}
    assert result.fact("messages") == sum(truths.values())
    assert result.fact("kept") == sum(copied.values()) == result.fact("messages") - result.fact("lost")
    assert {row["reason"] for row in found if row["cause"] == "refused"} == {"drop", "fail"}
    assert sum(row["bytes"] for row in found if row["cause"] == "refused") == sum(r.size_bytes for r in world.refused)  # type: ignore[misc]


def test_each_table_is_read_once(spark: SparkSession, source: Frames) -> None:
    """Losses, copies and all, from one pass over the log for each table."""
    from artemis_py.spark.jobs.losses import losses

    counted = Counted(spark, source.tables)
    result = losses(spark, counted)
    assert counted.passes() == {"messages": 1, "events": 1}
    assert result.frames["losses"].count() == len(result.table("losses").rows)


def test_what_a_client_wrote_into_the_broker_s_headers(spark: SparkSession, source: Frames) -> None:
    """A number that is none is nobody's copy."""
    from artemis_py.spark.jobs.losses import losses
    from artemis_py.spark.jobs.trace import trace

    messages = source.tables["messages"]
    forged = messages.limit(1).withColumns(
        {"messageId": lit(7_000_000).cast("long"), "originalMessageId": lit("x"), "reason": lit("none")}
    )
    tables = Frames({**source.tables, "messages": messages.unionByName(forged)})
    assert losses(spark, tables).fact("messages") == losses(spark, source).fact("messages")
    assert trace(spark, tables, "7000000").texts[0].body.startswith("message 7000000 to ")


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
    largest = tuple(rows_of(result.table("groups"))[0][name] for name in names)
    assert rows_of(result.table("examples"))[0]["messageId"] == str(first[largest])


# ---- trace ---------------------------------------------------------------------------------------


def test_the_biography_of_a_dead_message(spark: SparkSession, source: Frames, world: SimulatedTraffic) -> None:
    from artemis_py.spark.jobs.trace import trace

    copy = next(message for message in world.sent if message.reason == "max_deliveries")
    assert copy.original is not None
    message = next(each for each in world.sent if each.id == copy.original[2])
    life = message.lives["orders"]
    for asked in (f"12-{message.id}", str(copy.id)):
        picture = trace(spark, source, asked).texts[0].body
        lines = picture.splitlines()
        assert lines[0].startswith(f"message {message.id} to orders: {len(message.body)} bytes")
        assert f"by {message.origin}, user shop at lsn {message.lsn}" in picture
        assert picture.count("delivered to") == len(life.deliveries) == 3
        assert f"+{life.deliveries[0][0] - message.at_ms} ms  delivered to {life.deliveries[0][2]}" in picture
        assert "failed delivery 3" in picture
        assert "dead: it reached the limit of delivery attempts" in picture
        assert f"└─ continued as message {copy.id} to DLQ" in picture
        assert "still in the queue at the end of this log" in picture
    events = rows_of(trace(spark, source, str(message.id)).table("events"))
    assert len(events) == 1 + 1 + 3 + 3 + 1 + 2


def test_a_message_that_is_not_there(spark: SparkSession, source: Frames) -> None:
    from artemis_py.spark.jobs.trace import trace

    with pytest.raises(JobError, match="message 5 is not in the log"):
        trace(spark, source, "5")
    with pytest.raises(JobError, match="is not a message id"):
        trace(spark, source, "queue-x")
