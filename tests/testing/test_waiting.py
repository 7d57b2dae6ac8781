"""Waits end with the state that they wait for, and say why it is not reached."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from artemis_py.testing import ArtemisBroker, NotReachedError, WouldBlockError
from tests.kit.client import StompSocket, connected
from tests.kit.process import eventually

SOON = 0.05
ONE_AT_A_TIME = {"destination": "orders", "id": "1", "ack": "client-individual", "consumer-window-size": "0"}


def why(broker: ArtemisBroker, queue: str = "orders") -> str:
    with pytest.raises(NotReachedError) as failed:
        broker.queue(queue).wait(acknowledged=99, timeout=SOON)
    return str(failed.value)


def test_a_wait_ends_when_the_state_is_reached(broker: ArtemisBroker) -> None:
    sender = threading.Timer(0.05, lambda: [broker.send("orders", str(number)) for number in range(3)])
    sender.start()
    reached = broker.queue("orders").wait(count=3, timeout=10)
    sender.join()
    assert (reached.count, reached.ready, reached.added) == (3, 3, 3)


def test_an_unknown_name_is_refused(broker: ArtemisBroker) -> None:
    with pytest.raises(TypeError, match="a queue has no counts; it has exists, count, ready"):
        broker.queue("orders").wait(counts=3)


def test_a_queue_that_does_not_exist(broker: ArtemisBroker) -> None:
    broker.send("order", "x")
    said = why(broker)
    assert said.splitlines()[0] == "queue orders: acknowledged is 0, not 99 after 0.05 s"
    assert "there is no queue orders; did you mean order?" in said
    assert "the queues are DLQ, ExpiryQueue, order" in said


def test_an_address_without_a_queue(broker: ArtemisBroker) -> None:
    broker.send("/topic/news", "x")
    assert "the address news exists and has no queue: 1 message sent there reached nobody" in why(broker, "news")


def test_messages_that_went_elsewhere() -> None:
    with ArtemisBroker(queues=["orders"]) as broker:
        assert "nothing was sent to any address" in why(broker)
        broker.send("order", "x")
        assert "nothing came\n  messages were sent to order (1)" in why(broker)


def test_a_filter_that_nothing_passes() -> None:
    with ArtemisBroker(queues={"orders": {"filter": "table = '7'"}}) as broker:
        broker.send("orders", "x", table=8)
        assert "none of 1 message for orders entered the queue, and its filter is table = '7'" in why(broker)


def test_no_consumer(broker: ArtemisBroker, client: StompSocket) -> None:
    broker.send("orders", "x")
    assert "it has 1 message (1 ready)\n  no consumer is attached" in why(broker)
    client.subscribe("orders", browser="true")
    assert "no consumer is attached, only 1 browsing" in why(broker)


def test_a_selector(broker: ArtemisBroker) -> None:
    for table in (1, 2, 3):
        broker.send("orders", "x", table=table)
    with connected(broker.port, client_id="shop") as client:
        client.subscribe("orders", selector="table = '7'")
        said = why(broker)
    assert re.search(r"consumer 1 \(client-id shop, from 127\.0\.0\.1:\d+\): it wants none of the 3 ready: its ", said)
    assert "its selector is table = '7'" in said


def test_a_window_that_is_used_up(broker: ArtemisBroker, client: StompSocket) -> None:
    for _ in range(2):
        broker.send("orders", "x")
    client.ask("SUBSCRIBE", ONE_AT_A_TIME)
    client.expect("MESSAGE")
    said = why(broker)
    assert "its window is used up: it holds 1 message without an acknowledgement (consumer-window-size 0 bytes)" in said
    assert "has 1 message and did not acknowledge" in said


def test_a_backlog_that_is_used_up() -> None:
    queues = {"orders": {"lease-period": 60_000, "max-per-subscription-backlog": 2}}
    with ArtemisBroker(queues=queues) as broker, StompSocket(broker.port) as client:
        client.connect(client_id="shop")
        headers = {"destination": "orders", "id": "1", "ack": "client-individual", "max-backlog": "2"}
        client.ask("SUBSCRIBE", headers)
        for _ in range(3):
            broker.send("orders", "x")
        client.expect("MESSAGE")
        client.expect("MESSAGE")
        broker.clock.advance(seconds=20)
        said = why(broker)
        who = r"consumer 1 \(client-id shop, from 127\.0\.0\.1:\d+\)"
        full = r"its backlog is used up: 2 of 2 messages held without an acknowledgement, the oldest for 20\.?\d* s"
        limit = r"the queue allows a consumer no more \(max-per-subscription-backlog\)"
        assert re.search(rf"{who}: {full}; {limit}", said)
        assert re.search(rf"{who} has 2 messages and did not acknowledge, the oldest for 20\.?\d* s", said)
        assert re.search(r"2 messages are leased; the first lease ends in (40|39\.\d+) s, of consumer 1", said)


def test_the_backlog_of_a_queue_that_is_used_up() -> None:
    queues = {"orders": {"max-backlog": 1, "max-per-subscription-backlog": 5}}
    with ArtemisBroker(queues=queues) as broker, StompSocket(broker.port) as client:
        client.connect()
        headers = {"destination": "orders", "id": "1", "ack": "client-individual", "max-backlog": "5"}
        client.ask("SUBSCRIBE", headers)
        for _ in range(2):
            broker.send("orders", "x")
        client.expect("MESSAGE")
        said = why(broker)
        assert "its backlog is used up: 1 message in delivery, of max-backlog 1" in said
        assert "1 message is leased without an end (no lease-period)" in said


def test_what_was_sent_at_most_once_and_not_acknowledged() -> None:
    queues = {"orders": {"delivery-semantics": "at-most-once"}}
    with ArtemisBroker(queues=queues) as broker, StompSocket(broker.port) as client:
        client.connect()
        client.ask("SUBSCRIBE", {"destination": "orders", "id": "1", "ack": "client-individual"})
        for _ in range(2):
            broker.send("orders", "x")
        client.expect("MESSAGE")
        said = why(broker)
        assert "its backlog is used up: 1 of 1 message sent at most once and not acknowledged" in said
        assert "was sent 1 message at most once and did not acknowledge" in said


def test_a_paused_queue(broker: ArtemisBroker, client: StompSocket) -> None:
    client.subscribe("orders", ack="auto")
    broker.queue("orders").pause()
    broker.send("orders", "x")
    assert "the queue is paused" in why(broker)
    broker.queue("orders").resume()
    assert client.expect("MESSAGE").body == b"x"
    broker.queue("orders").assert_empty()


def test_a_gate_that_waits_for_consumers() -> None:
    queues = {"orders": {"consumers-before-dispatch": 2, "delay-before-dispatch": 60_000}}
    with ArtemisBroker(queues=queues) as broker, StompSocket(broker.port) as client:
        broker.send("orders", "x")
        client.connect()
        client.subscribe("orders")
        said = why(broker)
        assert "its gate is closed: 1 of 2 consumers (consumers-before-dispatch)" in said
        assert "delay-before-dispatch opens it in" in said
        broker.clock.advance(minutes=1)
        assert client.expect("MESSAGE").body == b"x"


def test_a_group_of_another_consumer(broker: ArtemisBroker) -> None:
    with StompSocket(broker.port) as first, StompSocket(broker.port) as second:
        for client in (first, second):
            client.connect()
            client.ask("SUBSCRIBE", ONE_AT_A_TIME)
        for _ in range(2):
            broker.send("orders", "x", JMSXGroupID="a")
        broker.queue("orders").wait(delivering=1, ready=1)
        assert "1 of the 1 ready belongs to groups of other consumers" in why(broker)


def test_an_exclusive_queue() -> None:
    with (
        ArtemisBroker(queues={"orders": {"exclusive": True}}) as broker,
        StompSocket(broker.port) as first,
        StompSocket(broker.port) as second,
    ):
        for client in (first, second):
            client.connect()
            client.ask("SUBSCRIBE", ONE_AT_A_TIME)
        for _ in range(2):
            broker.send("orders", "x")
        broker.queue("orders").wait(delivering=1, ready=1)
        assert "it is in reserve: 1 of 2 consumers are served at once" in why(broker)


def test_a_client_that_does_not_read(broker: ArtemisBroker) -> None:
    with StompSocket(broker.port, receive_buffer_bytes=4096) as client:
        client.connect()
        client.subscribe("orders", ack="auto")
        for _ in range(80):
            broker.send("orders", "x" * 90_000)
        broker.queue("orders").wait(lambda state: state.ready > 0)
        assert "its client does not read from its socket" in why(broker)


def test_scheduled_dead_and_expired_messages(broker: ArtemisBroker, client: StompSocket) -> None:
    broker.send("orders", "later", AMQ_SCHEDULED_DELAY=60_000)
    assert re.search(r"1 message must wait for their time: the first is due in (60|59\.\d+) s", why(broker))
    broker.send("orders", "soon over", expires=int(time.time() * 1000) + 30_000)
    broker.clock.advance(seconds=60)
    broker.queue("ExpiryQueue").wait(count=1)
    assert "1 message expired; see the address ExpiryQueue" in why(broker)


def test_too_many_acknowledgements_are_found(broker: ArtemisBroker, client: StompSocket) -> None:
    client.subscribe("orders", ack="auto")
    for _ in range(2):
        broker.send("orders", "x")
    broker.queue("orders").assert_acknowledged(2)
    with pytest.raises(NotReachedError, match="acknowledged is 2, not 1"):
        broker.queue("orders").assert_acknowledged(1)


def test_empty_is_an_answer_with_a_reason(broker: ArtemisBroker) -> None:
    broker._engine.timeout_s = SOON
    assert broker.queue("orders").empty
    broker.send("orders", "x")
    answer = broker.queue("orders").empty
    assert not answer
    assert repr(answer) == "<orders is not empty: 1 message (1 ready); no consumer is attached>"
    assert repr(broker.queue("orders")) == "<queue orders: 1 message (1 ready)>"


def test_idle_is_waited_for(broker: ArtemisBroker, client: StompSocket) -> None:
    broker.wait_until_idle()
    client.subscribe("orders")
    broker.send("orders", "x")
    message = client.expect("MESSAGE")
    with pytest.raises(NotReachedError, match="queue orders: 1 message in delivery"):
        broker.wait_until_idle(timeout=SOON)
    threading.Timer(0.05, client.send, ("ACK", {"id": message.header("ack")})).start()
    broker.wait_until_idle()
    assert broker.queue("orders").acknowledged == 1


@pytest.mark.asyncio
async def test_a_wait_does_not_block_the_loop_of_its_caller(broker: ArtemisBroker) -> None:
    orders = broker.queue("orders")
    orders.wait(count=0)
    with pytest.raises(WouldBlockError, match=r"await asyncio\.to_thread\(queue\('orders'\)\.wait, …\)"):
        orders.wait(count=1)
    waiting = asyncio.create_task(asyncio.to_thread(orders.wait, count=1))
    await asyncio.to_thread(broker.send, "orders", "x")
    await waiting


def test_a_wait_ends_with_the_broker(broker: ArtemisBroker) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(broker.queue("orders").wait, count=1, timeout=60)
        eventually("it waits", lambda: broker._engine.look(lambda _: broker._engine.waits.count), bool)
        broker.stop()
        assert "was stopped while this waited" in str(waiting.exception(120))
