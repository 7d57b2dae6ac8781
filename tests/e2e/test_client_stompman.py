"""stompman, the asyncio client, against the real broker: STOMP 1.2, without carriage returns in headers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
import stompman

from tests.kit.client import connected
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio]

WINDOW = {"consumer-window-size": "-1"}
Messages = asyncio.Queue[stompman.AckableMessageFrame]


def client_of(broker: BrokerProcess, **options: Any) -> stompman.Client:
    """A client that does not connect a second time."""
    server = stompman.ConnectionParameters(host=LOOPBACK, port=broker.port, login="", passcode="")
    return stompman.Client(servers=[server], connect_retry_attempts=1, **options)


async def listen(
    client: stompman.Client, destination: str, **options: Any
) -> tuple[Messages, stompman.ManualAckSubscription]:
    """A subscription whose messages wait in a queue."""
    messages: Messages = asyncio.Queue()
    options = {"headers": WINDOW, "receipt_timeout": WAIT_S, **options}
    return messages, await client.subscribe_with_manual_ack(destination, messages.put, **options)


async def test_messages_arrive_in_order(shared_broker: BrokerProcess, place: str) -> None:
    async with client_of(shared_broker) as client:
        messages, subscription = await listen(client, f"/queue/{place}", ack="auto")
        for n in range(50):
            body = b"\0" + str(n).encode()
            headers = {"awkward": f"Ж:東京🎈\n\\ {n}"}
            await client.send(body, f"/queue/{place}", headers=headers, receipt_timeout=WAIT_S)
        for n in range(50):
            message = await messages.get()
            assert message.body == b"\0" + str(n).encode()
            assert message.headers["awkward"] == f"Ж:東京🎈\n\\ {n}"  # type: ignore[typeddict-item]
        await subscription.unsubscribe()


async def test_acknowledged_and_refused(shared_broker: BrokerProcess, place: str) -> None:
    async with client_of(shared_broker) as client:
        for letter in (b"a", b"b", b"c"):
            await client.send(letter, f"/queue/{place}", receipt_timeout=WAIT_S)
        messages, subscription = await listen(client, f"/queue/{place}")
        first, second, third = [await messages.get() for _ in range(3)]
        await first.ack()
        await second.nack()
        again = await messages.get()
        assert (again.body, again.headers["redelivered"]) == (b"b", "true")  # type: ignore[typeddict-item]
        await again.ack()
        assert third.body == b"c"
        await subscription.unsubscribe()
    with connected(shared_broker.port) as heir:
        heir.subscribe(f"/queue/{place}", ack="auto")
        assert heir.message().body == b"c"
        heir.nothing_waits()


async def test_transactions(shared_broker: BrokerProcess, place: str) -> None:
    async with client_of(shared_broker) as client:
        with suppress(ZeroDivisionError):
            async with client.begin() as undone:
                await undone.send(b"never", f"/queue/{place}")
                raise ZeroDivisionError
        async with client.begin() as done:
            await done.send(b"first", f"/queue/{place}")
            await done.send(b"second", f"/queue/{place}")
    with connected(shared_broker.port) as heir:
        heir.subscribe(f"/queue/{place}", ack="auto")
        assert [heir.message().body for _ in range(2)] == [b"first", b"second"]
        heir.nothing_waits()


async def test_heart_beats_keep_an_idle_connection(shared_broker: BrokerProcess, place: str) -> None:
    """It takes a server for dead that is silent for three intervals here, and is asked over more than that."""

    beats = stompman.Heartbeat(will_send_interval_ms=1500, want_to_receive_interval_ms=1500)
    async with client_of(shared_broker, heartbeat=beats, check_server_alive_interval_factor=3) as client:
        messages, subscription = await listen(client, f"/queue/{place}", ack="auto")
        for _ in range(100):
            await asyncio.sleep(0.05)  # the client measures silence by its own clock
            assert client.is_alive()
        await client.send(b"still here", f"/queue/{place}", receipt_timeout=WAIT_S)
        assert (await messages.get()).body == b"still here"
        await subscription.unsubscribe()


async def test_a_refused_send_is_told(shared_broker: BrokerProcess, place: str) -> None:
    errors: list[stompman.ErrorFrame] = []

    async with client_of(shared_broker, on_error_frame=errors.append) as client:
        with pytest.raises(stompman.SendReceiptError) as raised:
            await client.send(b"x", f"/queue/{place}", headers={"priority": "high"}, receipt_timeout=WAIT_S)
        assert raised.value.reason == "rejected"
    assert "priority" in errors[0].headers["message"]
