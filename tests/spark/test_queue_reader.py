"""A stream that consumes a queue, driven as Spark does it, without a JVM: what is in a batch, what is removed when, and
what becomes of it when connections, processes and the broker are gone.
"""

from __future__ import annotations

import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark import lag
from artemis_py.spark.consume.batch import unpacked
from tests.kit.process import eventually, for_each_test, for_the_module
from tests.spark.live import LiveBroker
from tests.spark.proxies import HoldingProxy, cutting
from tests.spark.queue_jobs import attempts, held, query, queue_broker, taken

FIRST = {"consumer-priority": "9"}
"""Of an ordinary consumer that gets what comes back before the stream does."""


shared = for_the_module(queue_broker)


own = for_each_test(partial(queue_broker, file_bytes="1M"))
"""A broker that may be killed."""


# ---- what is in a batch --------------------------------------------------------------------------


@pytest.mark.parametrize("queue", ["jobs", "lent"])
def test_every_message_once_and_gone_when_its_batch_is_done(broker: LiveBroker, queue: str) -> None:
    """On a queue declared with nothing but its name, and on one with leases."""
    sent = broker.send(0, 25, queue)
    with query(broker, queue, maxMessagesPerTrigger=10) as stream:
        for begin, left in ((0, 25), (10, 15), (20, 5)):
            assert stream.plan()
            assert stream.run() == sent[begin : begin + 10]
            assert broker.process.count(queue) == left
            stream.finish()
        assert not stream.plan()
        assert broker.process.count(queue) == 0


def test_a_row_is_that_of_the_log(broker: LiveBroker) -> None:
    with broker.client() as client:
        headers = {"destination": "/queue/jobs", "persistent": "true", "JMSXGroupID": "g", "priority": "7", "n": "1"}
        client.ask("SEND", headers, b"body")
    with query(broker, includeHeaders="true") as stream:
        assert stream.plan()
        (row,) = stream.rows()
        end = stream.checkpoint.offsets[0]
        assert [row["offset"]] == unpacked(end["#queue"]["bookmarks"])
        assert (row["value"], row["key"], row["priority"], row["address"]) == (b"body", b"g", 7, "jobs")
        assert (row["queues"], row["user"], row["broker"]) == (["jobs"], "ann", "e2e")
        assert {one["key"]: one["value"] for one in row["headers"]}["n"] == b"1"
        assert row["publishedAt"] is not None
        stream.finish()
        stream.drain()


def test_the_queue_chooses_and_so_may_a_selector(broker: LiveBroker) -> None:
    with broker.client() as client:
        for number in range(6):
            lasting = "true" if number < 4 else "false"
            shape = "round" if number % 2 else "flat"
            client.ask("SEND", {"destination": "/queue/jobs", "persistent": lasting, "shape": shape}, b"%d" % number)
    with query(broker, selector="shape = 'round' OR shape = 'bent'") as stream:
        assert stream.drain() == ["1", "3"]
    with query(broker) as stream:
        assert stream.drain() == ["0", "2"]
    assert broker.process.count("jobs") == 2, "what is not persistent is for others"


def test_messages_of_a_subscription_of_an_address(broker: LiveBroker) -> None:
    with broker.client() as client:
        client.ask("SEND", {"destination": "/topic/news", "persistent": "true"}, b"flood")
    with query(broker, "news::reports") as stream:
        assert stream.drain() == ["flood"]


def test_large_bodies_do_not_come_to_the_planner(broker: LiveBroker) -> None:
    body = b"x" * 3_000_000
    with broker.client() as client:
        for _ in range(3):
            client.ask("SEND", {"destination": "/queue/jobs", "persistent": "true"}, body)
    sent_before = broker.process.metric("artemis_py_bytes_out", acceptor="stomp") or 0
    with query(broker) as stream:
        assert stream.plan()
        assert [len(row["value"]) for row in stream.rows()] == [len(body)] * 3
        stream.finish()
        stream.drain()
    assert broker.process.metric("artemis_py_bytes_out", acceptor="stomp") - sent_before < len(body)


def test_bytes_limit_a_batch(broker: LiveBroker) -> None:
    broker.send(0, 400, "jobs", 1000)
    with query(broker, maxBytesPerTrigger=25_500) as stream:
        assert [len(stream.trigger()) for _ in range(3)] == [25, 25, 25]
    with query(broker, maxBytesPerTrigger=300_000) as stream:
        assert [len(stream.trigger()) for _ in range(2)] == [300, 50]
        stream.drain()
    with query(broker, maxBytesPerTrigger=1) as stream:
        broker.send(400, 2, "jobs")
        assert [len(stream.trigger()) for _ in range(3)] == [1, 1, 0]


def test_the_order_of_the_queue_decides_what_comes_first(broker: LiveBroker) -> None:
    with broker.client() as client:
        for number in range(6):
            headers = {"destination": "/queue/urgent", "persistent": "true", "priority": str(number)}
            client.ask("SEND", headers, b"%d" % number)
    with query(broker, "urgent", maxMessagesPerTrigger=2) as stream:
        assert [stream.trigger() for _ in range(4)] == [["4", "5"], ["2", "3"], ["0", "1"], []]


def test_messages_from_pages(broker: LiveBroker) -> None:
    sent = broker.send(0, 60, "paged")
    assert broker.process.metric("artemis_paged_messages", queue="paged") > 0
    with query(broker, "paged", maxMessagesPerTrigger=25) as stream:
        assert stream.drain() == sent
    assert broker.process.count("paged") == 0


def test_a_queue_that_gives_few_at_a_time(broker: LiveBroker, caplog: pytest.LogCaptureFixture) -> None:
    sent = broker.send(0, 10, "narrow")
    with query(broker, "narrow") as stream:
        assert [len(stream.trigger()) for _ in range(5)] == [3, 3, 3, 1, 0]
    said = [record.getMessage() for record in caplog.records if "although" in record.getMessage()]
    assert len(said) == 1
    assert "queue narrow gives 3 messages for a batch although 4 more wait on it: max-per-subscription-" in said[0]
    assert len(sent) == 10
    assert broker.process.count("narrow") == 0


def test_messages_that_are_not_persistent_are_told_of(broker: LiveBroker, caplog: pytest.LogCaptureFixture) -> None:
    with broker.client() as client:
        for _ in range(2):
            client.ask("SEND", {"destination": "/queue/jobs"}, b"fleeting")
    with query(broker) as stream:
        for _ in range(3):
            assert not stream.plan()
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "queue jobs has 2 messages, and gives this query none. It takes persistent messages only" in said


def test_a_new_message_wakes_an_idle_query(broker: LiveBroker) -> None:
    with query(broker) as stream:
        assert not stream.plan()
        for number in range(3):
            broker.send(number, 1, "jobs")
            eventually("a batch", stream.plan, bool)
            assert stream.run() == [str(number)]
            stream.finish()


# ---- others on the queue -------------------------------------------------------------------------


def test_while_a_batch_runs_others_get_what_arrives(broker: LiveBroker) -> None:
    broker.send(0, 4, "jobs")
    with query(broker, maxMessagesPerTrigger=2) as stream, broker.client() as client:
        assert stream.plan()
        assert stream.run() == ["0", "1"]
        assert held(broker, "jobs") == 2
        bodies = [message.body.strip() for message in taken(client, "jobs", 2)]
        assert bodies == [b"2", b"3"]
        stream.finish()
        assert not stream.plan()
    assert broker.process.count("jobs") == 0


def test_while_a_small_batch_runs_others_get_what_arrives(broker: LiveBroker) -> None:
    broker.send(0, 1, "jobs")
    with query(broker, maxMessagesPerTrigger=10) as stream, broker.client() as client:
        assert stream.plan()
        broker.send(1, 2, "jobs")
        assert [message.body.strip() for message in taken(client, "jobs", 2)] == [b"1", b"2"]
        assert stream.trigger() == ["0"]


def test_queries_and_consumers_share_a_queue(broker: LiveBroker) -> None:
    sent = broker.send(0, 300, "jobs")
    with query(broker, maxMessagesPerTrigger=7) as one, query(broker, maxMessagesPerTrigger=5) as two:
        got: list[str] = []
        while len(got) < 300:
            got += one.trigger()
            got += two.trigger()
            if len(got) < 200:
                with broker.client() as client:
                    got += [message.body.decode().strip() for message in taken(client, "jobs", 3)]
        one.trigger()
        two.trigger()
    assert sorted(got) == sorted(sent)
    assert broker.process.count("jobs") == 0


def test_a_query_that_asks_seldom_holds_nothing_in_between(broker: LiveBroker) -> None:
    with query(broker) as stream:
        assert not stream.plan()
        consumers = lambda: broker.process.metric("artemis_consumer_count", queue="jobs")  # noqa: E731
        eventually("the subscription ends", consumers, lambda seen: seen == 0)
        broker.send(0, 1, "jobs")
        eventually("the message is there", lambda: broker.process.count("jobs"), lambda seen: seen == 1)
        assert held(broker, "jobs") == 0
        assert stream.trigger() == ["0"]
        link = stream.called_before(1.1)
        assert not stream.plan()
        assert link.talk.backlog == 0, "at once, because the next call may be far away"


def test_the_lag_is_what_waits_on_the_queue(broker: LiveBroker) -> None:
    broker.send(0, 30, "jobs")
    with query(broker, maxMessagesPerTrigger=10) as stream:
        assert stream.plan()
        told = stream.reader.reportLatestOffset()
        assert told["#lag"] == {"e2e": {"messages": 20}}
        assert told["e2e"] >= stream.checkpoint.offsets[0]["e2e"]


# ---- ends ----------------------------------------------------------------------------------------


def test_available_now_takes_what_is_there_and_ends(broker: LiveBroker) -> None:
    sent = broker.send(0, 25, "jobs")
    with query(broker, maxMessagesPerTrigger=10) as stream:
        stream.reader.prepareForTriggerAvailableNow()
        late = broker.send(100, 5, "jobs")
        assert stream.drain() == sent
        assert broker.process.count("jobs") == 5
        eventually("it has left", lambda: held(broker, "jobs"), lambda seen: seen == 0)
    with broker.client() as client:
        messages = taken(client, "jobs", 5)
        assert [message.body.decode().strip() for message in messages] == late
        assert {message.header("JMSXDeliveryCount") for message in messages} <= {"1", "2"}


def test_available_now_on_an_empty_queue(broker: LiveBroker) -> None:
    with query(broker) as stream:
        stream.reader.prepareForTriggerAvailableNow()
        assert stream.drain() == []


def test_available_now_leaves_what_others_hold(broker: LiveBroker) -> None:
    broker.send(0, 5, "jobs")
    with broker.client() as client, query(broker) as stream:
        taken(client, "jobs", 2, acks=False)
        stream.reader.prepareForTriggerAvailableNow()
        assert stream.drain() == ["2", "3", "4"]
    assert broker.process.count("jobs") == 2


def test_once_takes_all_in_one_batch(broker: LiveBroker) -> None:
    sent = broker.send(0, 30, "jobs")
    with query(broker, maxMessagesPerTrigger=10) as stream:
        assert stream.plan(ReadAllAvailable())
        assert stream.run() == sent
        stream.finish()
        checkpoint = stream.checkpoint
    assert broker.process.count("jobs") == 30
    with query(broker, checkpoint=checkpoint) as again:
        assert not again.plan()
    assert broker.process.count("jobs") == 0


def test_leaving_counts_as_no_failure(broker: LiveBroker) -> None:
    broker.send(0, 3, "jobs")
    before = attempts(broker, "jobs")
    with query(broker) as stream:
        assert stream.plan()
        assert stream.run() == ["0", "1", "2"]
    with broker.client() as client:
        messages = taken(client, "jobs", 3)
    assert [message.header("redelivered") for message in messages] == ["true"] * 3
    assert attempts(broker, "jobs") == before


# ---- processes that are gone ---------------------------------------------------------------------


def test_a_batch_that_was_not_done_runs_again_with_the_same_rows(
    broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = broker.send(0, 10, "jobs")
    with query(broker, maxMessagesPerTrigger=4, proxied=True) as stream:
        assert stream.trigger() == sent[:4]
        assert stream.plan()
        first = stream.run()
        stream.proxy.close()
        checkpoint = stream.checkpoint
        broker.send(10, 3, "jobs")
        with query(broker, checkpoint=checkpoint, maxMessagesPerTrigger=100) as again:
            assert again.run() == first == sent[4:8]
            eventually("they are held again", lambda: held(broker, "jobs"), lambda seen: seen == 4)
            link = again.called_before(1.5)
            looked: list[object] = []
            look_after = link._look_after
            monkeypatch.setattr(link, "_look_after", lambda connection: looked.append(look_after(connection)))
            eventually("the link looks after what it holds", lambda: len(looked), lambda times: times >= 2)
            assert held(broker, "jobs") == 4, "although nobody calls while a batch runs"
            again.finish()
            assert again.drain() == [*sent[8:], "10", "11", "12"]
    assert broker.process.count("jobs") == 0


def test_a_batch_that_others_took_meanwhile_runs_again_all_the_same(broker: LiveBroker) -> None:
    sent = broker.send(0, 6, "jobs")
    with query(broker, maxMessagesPerTrigger=4, proxied=True) as stream:
        assert stream.plan()
        stream.proxy.close()
        with broker.client() as client:
            taken(client, "jobs", 2)
            taken_by_others = broker.process.count("jobs")
        with query(broker, checkpoint=stream.checkpoint) as again:
            assert again.run() == sent[:4]
            again.finish()
            assert again.drain() == sent[4:]
    assert (taken_by_others, broker.process.count("jobs")) == (4, 0)


def test_killed_between_the_end_of_a_batch_and_its_acknowledgement(broker: LiveBroker) -> None:
    sent = broker.send(0, 10, "jobs")
    with query(broker, maxMessagesPerTrigger=4, proxied=True) as stream:
        stream.trigger()
        stream.proxy.close()
        assert broker.process.count("jobs") == 10
        with query(broker, checkpoint=stream.checkpoint) as again:
            assert again.drain() == sent[4:]
    assert broker.process.count("jobs") == 0


def test_killed_after_planning_what_spark_did_not_note(broker: LiveBroker) -> None:
    sent = broker.send(0, 10, "jobs")
    with query(broker, maxMessagesPerTrigger=4, proxied=True) as stream:
        stream.trigger()
        assert stream.plan()
        stream.proxy.close()
        stream.checkpoint.offsets.pop()
        with query(broker, checkpoint=stream.checkpoint) as again:
            assert again.drain() == sent[4:]


def test_an_offset_that_spark_does_not_use(broker: LiveBroker) -> None:
    """With several sources it may ask twice."""
    sent = broker.send(0, 10, "jobs")
    with query(broker, maxMessagesPerTrigger=4) as stream:
        assert stream.plan()
        stream.checkpoint.offsets.pop()
        assert stream.drain() == sent
    assert broker.process.count("jobs") == 0


def test_nothing_new_at_a_restart_is_no_row(broker: LiveBroker) -> None:
    """Batches without rows begin and end at the same offset; that of the last batch must not give its rows again."""
    broker.send(0, 3, "jobs")
    with query(broker) as stream:
        stream.trigger()
        checkpoint = stream.checkpoint
    with query(broker, checkpoint=checkpoint) as again:
        end = checkpoint.offsets[0]
        assert again.reader.partitions(end, end) == []


# ---- connections and brokers that are gone -------------------------------------------------------


@pytest.mark.parametrize("queue", ["jobs", "lent"])
def test_a_connection_that_breaks_in_a_batch(broker: LiveBroker, queue: str) -> None:
    sent = broker.send(0, 10, queue)
    with query(broker, queue, maxMessagesPerTrigger=4, proxied=True) as stream:
        assert stream.plan()
        stream.proxy.drop()
        eventually("they are held again", lambda: held(broker, queue), lambda seen: seen == 4)
        assert stream.run() == sent[:4]
        stream.finish()
        assert stream.drain() == sent[4:]
    assert broker.process.count(queue) == 0


def test_a_batch_that_another_consumer_holds_when_it_is_done(broker: LiveBroker) -> None:
    """That consumer keeps its messages, and they are in no later batch when it gives them back."""
    broker.send(0, 4, "jobs")
    with query(broker, proxied=True) as stream, broker.client() as client:
        assert stream.plan()
        assert stream.run() == ["0", "1", "2", "3"]
        link = stream.called_before(0)
        with link.changed:  # so that it does not connect before the other one has them
            stream.proxy.drop()
            others = taken(client, "jobs", 2, acks=False, **FIRST)
        stream.finish()
        assert not stream.plan()
        assert broker.process.count("jobs") == 2
        client.ask("ACK", {"id": others[0].header("ack")})
        client.ask("NACK", {"id": others[1].header("ack")})
        client.ask("UNSUBSCRIBE", {"id": "1"})
        eventually(
            "it is settled", lambda: (stream.plan(), broker.process.count("jobs")), lambda seen: seen == (False, 0)
        )


@pytest.mark.parametrize(
    ("word", "nth"),
    [
        *[(b"ACK\n", nth) for nth in (1, 2, 3, 4, 6, 9)],
        *[(b"RECEIPT", nth) for nth in (1, 2, 3, 4, 6, 9)],
        *[(b"MESSAGE", nth) for nth in (1, 2, 4, 5, 9)],
        (b"SUBSCRIBE", 1),
        (b"replace:true", 1),
    ],
)
def test_a_connection_that_breaks_anywhere(broker: LiveBroker, word: bytes, nth: int) -> None:
    sent = broker.send(0, 10, "jobs")
    is_answer = word in (b"RECEIPT", b"MESSAGE")
    with (
        cutting(broker.process.port, word, from_broker=is_answer, nth=nth) as proxy,
        query(broker, maxMessagesPerTrigger=4, stompUrl=f"tcp://127.0.0.1:{proxy.port}") as stream,
    ):
        got: list[str] = []
        while len(got) < 10:
            got += stream.trigger()
        assert not stream.plan()
    assert got == sent
    assert broker.process.count("jobs") == 0


def test_a_broker_that_is_killed_in_a_batch(own: LiveBroker) -> None:
    sent = own.send(0, 10, "jobs")
    with query(own, maxMessagesPerTrigger=4) as stream:
        assert stream.trigger() == sent[:4]
        assert stream.plan()
        assert stream.run() == sent[4:8]
        own.start_again()
        eventually("they are held again", lambda: held(own, "jobs"), lambda seen: seen == 4)
        stream.finish()
        assert stream.drain() == sent[8:]
        assert own.process.count("jobs") == 0


def test_a_broker_that_is_killed_before_the_acknowledgement(own: LiveBroker) -> None:
    """Also of messages that are in pages after that."""
    sent = own.send(0, 60, "paged")
    with query(own, "paged", maxMessagesPerTrigger=40) as stream:
        first = stream.trigger()
        assert len(first) > 20
        own.start_again()
        eventually("a batch", stream.plan, bool)
        kept = unpacked(stream.checkpoint.offsets[1]["#queue"]["kept"])
        assert kept, "they are in pages, and the broker has only noted what is to become of them"
        own.start_again()  # and forgets that
        got = first
        while len(got) < 60:
            got += stream.trigger()
        assert got == sent
        assert stream.drain() == []
        assert own.process.count("paged") == 0


def test_a_broker_that_is_killed_before_it_hears_that_a_batch_is_done(own: LiveBroker) -> None:
    """The query acknowledges the batch again."""
    sent = own.send(0, 10, "jobs")
    with (
        ThreadPoolExecutor(1) as pool,
        closing(HoldingProxy(own.process.port)) as proxy,
        query(own, maxMessagesPerTrigger=4, stompUrl=f"tcp://127.0.0.1:{proxy.port}") as stream,
    ):
        assert stream.trigger() == sent[:4]
        next_one = pool.submit(stream.plan)
        eventually("an ACK is on its way", lambda: proxy.acks, bool)
        own.start_again()
        eventually("another one is", lambda: proxy.acks[1:], bool)
        assert proxy.acks == 2 * [sorted(proxy.deliveries)]
        assert own.process.count("jobs") == 10
        proxy.lets_pass = True
        proxy.drop()
        assert next_one.result()
        assert stream.drain() == sent[4:]
        assert own.process.count("jobs") == 0


def test_a_broker_with_another_log(own: LiveBroker) -> None:
    """Its bookmarks mean other messages, so nothing is acknowledged there."""
    sent = own.send(0, 10, "jobs")
    with query(own) as stream:
        assert stream.plan()
        assert stream.run() == sent
        own.process.kill()
        for name in ("journal", "bindings", "kept", "paging", "large"):
            shutil.rmtree(own.folder / name, ignore_errors=True)
        own.start_again()
        own.send(100, 12, "jobs")
        stream.finish()
        with pytest.raises(PipelineError, match=r"in which offsets mean something else\. Start the query again"):
            stream.plan()
        assert own.process.count("jobs") == 12


def test_a_broker_with_another_name(own: LiveBroker, caplog: pytest.LogCaptureFixture) -> None:
    """A batch that is not done runs again with its rows, and the query goes on."""
    sent = own.send(0, 10, "jobs")
    with query(own, maxMessagesPerTrigger=4) as stream:
        assert stream.plan()
        assert stream.run() == sent[:4]
        checkpoint = stream.checkpoint
        own.start_again("new")
        with caplog.at_level(logging.WARNING):
            stream.finish()
            assert stream.plan()
    assert caplog.text.count("broker e2e is now called new") == 1
    with query(own, checkpoint=checkpoint, maxMessagesPerTrigger=4) as again, caplog.at_level(logging.WARNING):
        assert again.drain() == sent[4:]
        assert {name for name in checkpoint.offsets[-1] if not name.startswith("#")} == {"e2e"}
        assert own.process.count("jobs") == 0
    assert caplog.text.count("broker e2e is now called new") == 2


def test_a_broker_that_stays_away_is_an_error(own: LiveBroker) -> None:
    own.send(0, 3, "jobs")
    with query(own, brokerTimeoutSeconds=1) as stream:
        stream.trigger()
        own.process.kill()
        with pytest.raises(PipelineError, match="did not answer for 1 s"):
            stream.plan()


# ---- leases --------------------------------------------------------------------------------------


def test_a_lease_that_ends_in_a_batch(broker: LiveBroker, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody else wants the messages: they come again, and are in no other batch."""
    sent = broker.send(0, 6, "leased")
    with query(broker, "leased", maxMessagesPerTrigger=4) as stream, caplog.at_level(logging.WARNING):
        ended = partial(broker.process.metric, "artemis_leases_ended", queue="leased")
        before = ended()
        assert stream.plan()
        assert stream.run() == sent[:4]
        eventually("the leases end", ended, lambda seen: seen >= before + 4)
        stream.finish()
        assert stream.drain() == sent[4:]
        told = {"endOffset": stream.checkpoint.offsets[-1], "latestOffset": stream.reader.reportLatestOffset()}
        assert lag({"sources": [told]})["e2e"].lapsed >= 4
    assert broker.process.count("leased") == 0
    assert "leases ended before the batch" in caplog.text


def test_a_lease_that_ends_and_another_consumer(broker: LiveBroker) -> None:
    """Under sublet the acknowledgement that comes late counts, even if somebody else has the message by then."""
    broker.send(0, 4, "leased")
    with query(broker, "leased") as stream, broker.client() as client:
        assert stream.plan()
        again = taken(client, "leased", 4, acks=False, **FIRST)
        assert [message.header("delivery-count") for message in again] == ["2"] * 4
        stream.finish()
        assert not stream.plan()
        assert broker.process.count("leased") == 0


def test_a_lease_that_ends_and_another_consumer_that_is_strict(broker: LiveBroker) -> None:
    """It is acknowledged when the other one gives it back, and in no batch again; a restart does not change that."""
    sent = broker.send(0, 4, "strict")
    with query(broker, "strict", maxMessagesPerTrigger=3) as stream, broker.client() as client:
        assert stream.plan()
        first = stream.run()
        others = taken(client, "strict", 4, acks=False, **FIRST)
        stream.finish()
        assert not stream.plan()
        assert broker.process.count("strict") == 4
        broker.send(4, 1, "strict")
        eventually("a batch", stream.plan, bool)
        assert stream.run() == ["4"]
        marks = sorted(int(message.header("bookmark") or 0) for message in others)
        assert unpacked(stream.checkpoint.offsets[1]["#queue"]["kept"]) == marks[:3]
        stream.finish()
        checkpoint = stream.checkpoint
    with query(broker, "strict", checkpoint) as again, broker.client() as client:
        eventually("the leases end", lambda: held(broker, "strict"), lambda seen: seen == 0)
        assert first == sent[:3]
        assert again.drain() == sent[3:4]
        assert broker.process.count("strict") == 0


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("nothing", "queue nothing: the broker refuses: There is no queue .*; declare it in broker.xml"),
        ("news", "queue news: .* declare it in broker.xml, or give option queue as address::queue"),
        ("shown", "queue shown: .* is non-destructive: its messages stay"),
        ("brief", "queue brief: .* is not durable: its messages have no bookmarks"),
        ("flow", "queue flow: .* An at-most-once queue cannot be consumed"),
    ],
)
def test_a_queue_that_cannot_be_consumed(broker: LiveBroker, queue: str, said: str) -> None:
    with query(broker, queue) as stream, pytest.raises(PipelineError, match=said):
        stream.plan()


def test_a_queue_that_has_its_consumers(broker: LiveBroker) -> None:
    with broker.client() as client:
        client.subscribe("::mine", ack="client-individual")
        with query(broker, "mine") as stream, pytest.raises(PipelineError, match="maximum of 1 consumer"):
            stream.plan()


def test_a_checkpoint_of_something_else(broker: LiveBroker) -> None:
    broker.send(0, 1, "jobs")
    with query(broker) as stream:
        stream.trigger()
        checkpoint = stream.checkpoint
    with query(broker, "leased", checkpoint) as other, pytest.raises(PipelineError, match="is of queue jobs"):
        other.plan()
    checkpoint.offsets[0] = {"e2e": 5, "#log": {}}
    with query(broker, "jobs", checkpoint) as other, pytest.raises(PipelineError, match="that reads the log"):
        other.plan()


def test_ports_of_two_brokers(tmp_path: Path) -> None:
    """The messages of the queue are other ones than those of the log, even if they have the same numbers."""
    with queue_broker(tmp_path / "one") as one, queue_broker(tmp_path / "two") as two:
        one.send(0, 3, "jobs")
        two.send(0, 9, "leased")  # what arrives in one turn needs fewer numbers; the log is long enough in any case
        with query(one, url=two.url) as stream, pytest.raises(PipelineError, match="url and stompUrl must lead to the"):
            stream.trigger()
        assert one.process.count("jobs") == 3


def test_a_log_that_is_not_retained(tmp_path: Path) -> None:
    with queue_broker(tmp_path, limits=None) as broker:
        broker.send(0, 1, "jobs")
        with query(broker) as stream, pytest.raises(PipelineError, match="set a journal-retention-directory"):
            stream.plan()
        assert broker.process.count("jobs") == 1
