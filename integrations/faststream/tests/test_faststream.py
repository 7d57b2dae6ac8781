"""FastStream with faststream-stomp and stompman, as their users have them, and a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import faststream
import faststream_stomp
import pytest
import stompman
from faststream import Context
from faststream.exceptions import AckMessage, NackMessage, RejectMessage
from kit import NO_NEW_QUEUES, WAIT_S, in_a_loop

from artemis_py.testing import ArtemisBroker

Frame = Annotated[stompman.MessageFrame, Context("message.raw_message")]


def broker_of(artemis: ArtemisBroker, **options: Any) -> faststream_stomp.StompBroker:
    server = stompman.ConnectionParameters(host=artemis.host, port=artemis.port, login="", passcode="")
    client = stompman.Client([server], keep_alive_on_connection_failure=True)
    return faststream_stomp.StompBroker(client, receipt_timeout=WAIT_S, **options)


@asynccontextmanager
async def running(broker: faststream_stomp.StompBroker) -> AsyncIterator[None]:
    """An application, from its start to its end."""
    app = faststream.FastStream(broker)
    started = asyncio.Event()
    app.after_startup(started.set)
    running = asyncio.create_task(app.run())
    await started.wait()
    try:
        yield
    finally:
        app.exit()
        await running


async def settled(artemis: ArtemisBroker, queue: str, count: int) -> None:
    await asyncio.to_thread(artemis.queue(queue).assert_acknowledged, count)


def test_what_a_handler_returns_is_published(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        broker = broker_of(artemis)
        done: list[dict[str, int]] = []

        @broker.subscriber("first")
        @broker.publisher("second")
        async def first(message: dict[str, int]) -> dict[str, int]:
            return {name: number + 1 for name, number in message.items()}

        @broker.subscriber("second")
        async def second(message: dict[str, int]) -> None:
            done.append(message)

        async with running(broker):
            for number in range(10):
                await broker.publish({"n": number}, "first")
            await settled(artemis, "second", 10)
        assert sorted(one["n"] for one in done) == list(range(1, 11))
        assert artemis.queue("first").empty

    in_a_loop(work)


@pytest.mark.parametrize(
    ("error", "attempts"), [(ValueError, None), (NackMessage, None), (AckMessage, 1), (RejectMessage, None)]
)
def test_how_a_handler_fails(artemis: ArtemisBroker, error: type[Exception], attempts: int | None) -> None:
    """NACK is a failed delivery, after some of which a message is dead. STOMP has no other way to reject one."""

    async def work() -> None:
        broker = broker_of(artemis)
        seen: list[str] = []

        @broker.subscriber("orders")
        async def handle(body: str, frame: Frame) -> None:
            headers: Any = frame.headers
            seen.append(headers["JMSXDeliveryCount"])
            raise error

        async with running(broker):
            await broker.publish("soup", "orders")
            if attempts:
                await settled(artemis, "orders", attempts)
            else:
                await asyncio.to_thread(artemis.queue("DLQ").wait, count=1)
        assert seen == [str(number + 1) for number in range(attempts or len(seen))]
        assert len(seen) > 1 or attempts
        assert artemis.queue("orders").count == 0

    in_a_loop(work)


def test_headers_of_the_broker(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        broker = broker_of(artemis)
        seen: list[str] = []

        @broker.subscriber("orders", headers={"prefetch-count": "1", "selector": "kind = 'food'"})
        async def handle(body: str) -> None:
            seen.append(body)

        async with broker_of(artemis) as sender:
            for body, headers in [
                ("low", {"priority": "1"}),
                ("high", {"priority": "9"}),
                ("later", {"AMQ_SCHEDULED_DELAY": "3600000"}),
                ("tea", {"kind": "drink"}),
            ]:
                await sender.publish(body, "orders", headers={"kind": "food", "persistent": "true", **headers})
        async with running(broker):
            await settled(artemis, "orders", 2)
            assert seen == ["high", "low"]
            await asyncio.to_thread(artemis.clock.advance, hours=2)
            await settled(artemis, "orders", 3)
        assert seen == ["high", "low", "later"]
        assert [message.text for message in artemis.queue("orders").messages] == ["tea"]

    in_a_loop(work)


def test_a_batch_is_a_transaction(artemis: ArtemisBroker) -> None:
    """The third message of the first batch cannot be sent, when the broker has the other two."""

    async def work() -> None:
        broker = broker_of(artemis)
        where: dict[str, Any] = {"destination": "orders", "headers": {"persistent": "true"}}
        async with broker:
            with pytest.raises(ValueError, match="Unable to serialize"):
                await broker.publish_batch("one", "two", object(), **where)
            await broker.publish("after", **where)  # over the same connection, and confirmed
            assert [message.text for message in artemis.queue("orders").messages] == ["after"]
            await broker.publish_batch("three", "four", **where)
            await asyncio.to_thread(artemis.queue("orders").wait, count=3)
        assert [message.text for message in artemis.queue("orders").messages] == ["after", "three", "four"]

    in_a_loop(work)


@pytest.mark.artemis(persistence=True)
def test_a_subscriber_outlives_the_broker(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        broker = broker_of(artemis)
        seen: list[str] = []

        @broker.subscriber("orders")
        async def handle(body: str) -> None:
            seen.append(body)

        async with running(broker):
            await broker.publish("before", "orders", headers={"persistent": "true"})
            await settled(artemis, "orders", 1)
            await asyncio.to_thread(artemis.crash)
            await asyncio.sleep(0)
            await asyncio.to_thread(artemis.restart)
            await asyncio.to_thread(artemis.send, "orders", "after", persistent=True)
            while "after" not in seen:
                await asyncio.sleep(0.01)
        assert seen[0] == "before"

    in_a_loop(work)


@pytest.mark.artemis(config=NO_NEW_QUEUES)
def test_what_the_broker_refuses_is_raised(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        broker = broker_of(artemis)
        async with broker:
            with pytest.raises(stompman.SendReceiptError) as failure:
                await broker.publish("soup", "orders")
            assert failure.value.reason == "rejected"
            assert failure.value.frame is not None
            assert "orders" in failure.value.frame.headers.get("message", "")

    in_a_loop(work)
