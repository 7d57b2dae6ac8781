"""A sender and consumers of tasks, with a real broker that does not always stay."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import pytest
from artemis_py_tasks import Consumer, Delivery, Options, RefusedError, Sender, UnconfirmedError
from artemis_py_tasks.connection import Connection
from kit import NO_NEW_QUEUES, in_a_loop
from stompman import ConnectionParameters

from artemis_py.testing import ArtemisBroker, QueueView

C = TypeVar("C", bound=Connection)
persistent = pytest.mark.artemis(persistence=True)


@asynccontextmanager
async def opened(connection: C) -> AsyncIterator[C]:
    connection.open()
    try:
        yield connection
    finally:
        await connection.close()


def at(port: int) -> ConnectionParameters:
    return ConnectionParameters(host="127.0.0.1", port=port, login="", passcode="")


async def send(sender: Sender, *names: str, **more: Any) -> None:
    for name in names:
        await sender.send("tasks", name.encode(), task_id=name, headers={}, **more)


async def got(consumer: Consumer, count: int = 1) -> list[Delivery]:
    """The next tasks."""
    found = []
    for _ in range(count):
        delivery = await consumer.get()
        assert delivery is not None
        found.append(delivery)
    return found


async def name_of(consumer: Consumer) -> str:
    return (await got(consumer))[0].body.decode()


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


class Wire:
    """Between clients and the broker. It loses RECEIPTs when a test says so, and then ``breaks``, or goes on."""

    def __init__(self, artemis: ArtemisBroker, *, breaks: bool) -> None:
        self._artemis = artemis
        self._breaks = breaks
        self.receipts_to_lose = 0
        self.connections = 0

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[int]:
        """The port of its end for clients."""
        async with await asyncio.start_server(self._pipe, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]

    async def _pipe(self, come: asyncio.StreamReader, go: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._artemis.host, self._artemis.port)
        self.connections += 1

        async def forth() -> None:
            while data := await come.read(4096):
                back.write(data)
            back.close()

        sending = asyncio.create_task(forth())
        while data := await there.read(4096):
            if b"RECEIPT\n" not in data or not self.receipts_to_lose:
                go.write(data)
                continue
            self.receipts_to_lose -= 1
            if self._breaks:
                break
        sending.cancel()
        back.close()
        go.close()


@persistent
def test_a_task_is_on_the_disk_when_it_is_sent_and_until_it_is_acknowledged(
    artemis: ArtemisBroker, options: Options
) -> None:
    async def work() -> None:
        async with opened(Sender(options)) as sender:
            await send(sender, "soup")
        await asyncio.to_thread(artemis.crash)
        await asyncio.to_thread(artemis.restart)
        async with opened(Consumer(options, ["tasks"], prefetch=2)) as consumer:
            [delivery] = await got(consumer)
            assert (delivery.task_id, delivery.body, delivery.queue) == ("soup", b"soup", "tasks")
            await consumer.acknowledge(delivery)
            await asyncio.to_thread(artemis.queue("tasks").assert_acknowledged, 1)
            assert artemis.queue("tasks").state.count == 0

    in_a_loop(work)


@persistent
def test_a_sender_outlives_the_broker(artemis: ArtemisBroker, options: Options) -> None:
    """It waits while there is none, and what was under way arrives once."""

    async def work() -> None:
        async with opened(Sender(options)) as sender:
            await send(sender, "first")
            sending = asyncio.create_task(send(sender, *(str(number) for number in range(50))))
            await until(lambda: artemis.queue("tasks").count > 10)
            await asyncio.to_thread(artemis.crash)
            await asyncio.sleep(0)
            assert not sending.done()
            await asyncio.to_thread(artemis.restart)
            await sending
        bodies = [message.text for message in artemis.queue("tasks").messages]
        assert bodies == ["first", *(str(number) for number in range(50))]

    in_a_loop(work)


@persistent
def test_a_task_whose_confirmation_is_lost_arrives_once(artemis: ArtemisBroker, options: Options) -> None:
    """The connection breaks after a SEND has passed, before its RECEIPT has."""

    async def work() -> None:
        wire = Wire(artemis, breaks=True)
        async with wire.laid() as port:
            wire.receipts_to_lose = 1
            through = dataclasses.replace(options, servers=[at(port)])
            async with opened(Sender(through)) as sender:
                await send(sender, "soup")
        assert (wire.receipts_to_lose, wire.connections) == (0, 2)
        assert [message.text for message in artemis.queue("tasks").messages] == ["soup"]

    in_a_loop(work)


@persistent
def test_without_a_broker_an_error_says_that_nothing_was_sent(artemis: ArtemisBroker, options: Options) -> None:
    async def work() -> None:
        await asyncio.to_thread(artemis.crash)
        async with opened(Sender(dataclasses.replace(options, answer_s=0.5))) as sender:
            with pytest.raises(
                UnconfirmedError, match=r"nothing was sent to tasks within 0\.5 s: no broker answers there"
            ):
                await send(sender, "soup")

    in_a_loop(work)


@persistent
def test_an_address_that_is_full_is_an_error_that_says_so(artemis: ArtemisBroker, options: Options) -> None:
    async def work() -> None:
        async with opened(Sender(dataclasses.replace(options, answer_s=1.0))) as sender:
            await send(sender, "first")
            with (
                artemis.disk_full(),
                pytest.raises(UnconfirmedError, match=r"not confirmed task soup .* address is full"),
            ):
                await send(sender, "soup")

    in_a_loop(work)


LOGINS = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
   <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
</core></configuration>
"""


@pytest.mark.artemis(config=LOGINS)
def test_a_login_that_is_not_accepted_is_an_error_that_says_so(options: Options) -> None:
    async def work() -> None:
        async with opened(Sender(dataclasses.replace(options, answer_s=1.0))) as sender:
            with pytest.raises(UnconfirmedError, match="does not accept the login"):
                await send(sender, "soup")

    in_a_loop(work)


def test_what_tls_says_is_told(options: Options) -> None:
    async def work() -> None:
        async with opened(Sender(dataclasses.replace(options, answer_s=1.0, ssl=True))) as sender:
            with pytest.raises(UnconfirmedError, match="SSL"):
                await send(sender, "soup")

    in_a_loop(work)


@pytest.mark.artemis(config=NO_NEW_QUEUES)
def test_what_the_broker_refuses_is_an_error_with_its_reason(options: Options) -> None:
    async def work() -> None:
        async with opened(Sender(options)) as sender, opened(Consumer(options, ["tasks"], prefetch=1)) as consumer:
            for _ in range(2):
                with pytest.raises(RefusedError, match=r"127\.0\.0\.1:\d+: tasks: .*exist"):
                    await send(sender, "soup")
                with pytest.raises(RefusedError, match=r"127\.0\.0\.1:\d+: tasks: .*exist"):
                    await consumer.get()

    in_a_loop(work)


def test_priority_and_dates(artemis: ArtemisBroker, options: Options) -> None:
    async def work() -> None:
        async with opened(Sender(options)) as sender:
            await send(sender, "low", priority=0)
            await send(sender, "usual")
            await send(sender, "high", priority=9)
            await send(sender, "past", due=datetime.now(UTC) - timedelta(hours=1))
            await send(sender, "later", due=datetime.now(UTC) + timedelta(hours=1))
            assert artemis.queue("tasks").state.scheduled == 1
            async with opened(Consumer(options, ["tasks"], prefetch=1)) as consumer:
                for name in ("high", "usual", "past", "low"):
                    [delivery] = await got(consumer)
                    assert delivery.body.decode() == name
                    await consumer.acknowledge(delivery)
                await asyncio.to_thread(artemis.clock.advance, hours=2)
                assert await name_of(consumer) == "later"

    in_a_loop(work)


def test_a_consumer_has_no_more_than_it_may_and_gives_them_back(artemis: ArtemisBroker, options: Options) -> None:
    async def work() -> None:
        async with opened(Sender(options)) as sender, opened(Consumer(options, ["tasks"], prefetch=2)) as first:
            await send(sender, "a", "b", "c")
            [one] = await got(first)
            async with opened(Consumer(options, ["tasks"], prefetch=2)) as second:
                assert await name_of(second) == "c"
            first.stop()
            await first.acknowledge(one)
        state = artemis.queue("tasks").state
        assert (state.ready, state.acknowledged) == (2, 1)
        assert [message.attempts for message in artemis.queue("tasks").messages] == [0, 0]

    in_a_loop(work)


def is_consumed(queue: QueueView) -> bool:
    return queue.state.consumers == 1


def is_left(queue: QueueView) -> bool:
    return queue.state.delivering == queue.state.consumers == 0


def test_of_several_queues_it_has_one_task_at_a_time(artemis: ArtemisBroker, options: Options) -> None:
    async def work() -> None:
        queues = ["tasks", "others"]
        async with opened(Sender(options)) as sender, opened(Consumer(options, queues, prefetch=1)) as consumer:
            await until(partial(is_consumed, artemis.queue("others")))
            for round_ in range(3):
                for queue in queues:
                    await sender.send(queue, b"", task_id=f"{queue} {round_}", headers={})
            for count in range(1, 7):
                [delivery] = await got(consumer)
                other = artemis.queue(queues[delivery.queue == "tasks"])
                await until(partial(is_left, other))
                async with opened(Consumer(options, [other.name], prefetch=1)) as idle:
                    if other.state.count:
                        await got(idle)
                if count == 3:
                    await asyncio.to_thread(artemis.drop_connections)
                    await until(lambda: consumer.trouble)
                    await until(lambda: not consumer.trouble)
                    assert other.state.consumers == 0
                await consumer.acknowledge(delivery)
            for queue in queues:
                await asyncio.to_thread(artemis.queue(queue).assert_acknowledged, 3)
                await until(partial(is_consumed, artemis.queue(queue)))

    in_a_loop(work)


def test_a_queue_whose_subscription_is_not_confirmed_is_not_forgotten(
    artemis: ArtemisBroker, options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    """It left that queue while it had a task of another one, and returns; the RECEIPT is lost."""

    async def work() -> None:
        wire = Wire(artemis, breaks=False)
        async with wire.laid() as port:
            through = dataclasses.replace(options, servers=[at(port)], answer_s=2.0)
            consumer = Consumer(through, ["tasks", "others"], prefetch=1)
            async with opened(Sender(options)) as sender, opened(consumer):
                await send(sender, "soup")
                [delivery] = await got(consumer)
                await until(partial(is_left, artemis.queue("others")))
                wire.receipts_to_lose = 1
                await consumer.acknowledge(delivery)
                assert (wire.receipts_to_lose, wire.connections) == (0, 1)
                await sender.send("others", b"tea", task_id="tea", headers={})
                assert await name_of(consumer) == "tea"
                assert wire.connections == 2
        assert f"127.0.0.1:{port}: others: the broker has not confirmed the consumer within 2 s" in caplog.text

    in_a_loop(work)
    assert artemis.queue("tasks").acknowledged == 1


def test_a_task_that_fails_comes_again_and_then_is_dead(artemis: ArtemisBroker, options: Options) -> None:
    async def work() -> None:
        async with opened(Sender(options)) as sender, opened(Consumer(options, ["tasks"], prefetch=1)) as consumer:
            await send(sender, "soup")
            attempts = []
            while artemis.queue("DLQ").count == 0:
                [delivery] = await got(consumer)
                attempts.append(delivery.attempts)
                await consumer.refuse(delivery)
                await until(lambda: artemis.queue("DLQ").count or artemis.queue("tasks").state.delivering)
            assert attempts == list(range(1, len(attempts) + 1))
            assert len(attempts) > 1

    in_a_loop(work)


def test_a_task_that_runs_while_the_connection_breaks_is_not_run_twice_here(
    artemis: ArtemisBroker, options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with opened(Sender(options)) as sender, opened(Consumer(options, ["tasks"], prefetch=3)) as consumer:
            await send(sender, "runs", "waits", "waits too")
            [runs] = await got(consumer)
            await until(lambda: artemis.queue("tasks").state.delivering == 3)
            await asyncio.to_thread(artemis.drop_connections)
            await until(lambda: consumer.trouble)
            await until(lambda: not consumer.trouble)
            await until(lambda: artemis.queue("tasks").state.delivering == 3)
            others = await got(consumer, 2)
            assert [delivery.task_id for delivery in others] == ["waits", "waits too"]
            assert [delivery.attempts for delivery in others] == [2, 2]
            for delivery in (runs, *others):
                await consumer.acknowledge(delivery)
            await asyncio.to_thread(artemis.queue("tasks").assert_acknowledged, 3)
            consumer.stop()
            assert await consumer.get() is None

    with caplog.at_level(logging.INFO):
        in_a_loop(work)
    said = [record.getMessage() for record in caplog.records]
    lost = said.index(f"{options.names}: the connection was lost; trying until it works")
    assert said[:lost].count(f"{options.names}: connected") == 2  # the sender's and the consumer's
    assert f"{options.names}: connected" in said[lost:]


def test_a_task_that_is_done_while_there_is_no_connection_is_not_run_again(
    artemis: ArtemisBroker, options: Options
) -> None:
    async def work() -> None:
        async with opened(Sender(options)) as sender, opened(Consumer(options, ["tasks"], prefetch=3)) as consumer:
            await send(sender, "done", "failed")
            done, failed = await got(consumer, 2)
            await asyncio.to_thread(artemis.drop_connections)
            await until(lambda: consumer.trouble)
            await consumer.acknowledge(done)
            await consumer.refuse(failed)
            await asyncio.to_thread(artemis.queue("tasks").assert_acknowledged, 1)
            [again] = await got(consumer)
            assert (again.task_id, again.attempts) == ("failed", 2)

    in_a_loop(work)


def test_two_messages_of_one_task_are_two(artemis: ArtemisBroker, options: Options) -> None:
    """As when a task that failed is sent again before it is acknowledged, or an operator copies a message."""

    async def work() -> None:
        async with (
            opened(Sender(options)) as sender,
            opened(Consumer(options, ["tasks", "copies"], prefetch=5)) as consumer,
        ):
            await send(sender, "soup")
            [first] = await got(consumer)
            await send(sender, "soup")
            copied = {name: first.headers[name] for name in ("task-id", "_AMQ_DUPL_ID")}
            await asyncio.to_thread(artemis.send, "copies", "soup", copied)
            for delivery in (*await got(consumer, 2), first, first):  # twice is no harm
                await consumer.acknowledge(delivery)
            await asyncio.to_thread(artemis.queue("tasks").assert_acknowledged, 2)
            await asyncio.to_thread(artemis.queue("copies").assert_acknowledged, 1)

    in_a_loop(work)


ONE_ATTEMPT = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
   <security-enabled>false</security-enabled>
   <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
   <address-settings>
      <address-setting match="#">
         <max-delivery-attempts>1</max-delivery-attempts>
         <dead-letter-address>DLQ</dead-letter-address>
      </address-setting>
   </address-settings>
</core></configuration>
"""


@pytest.mark.artemis(config=ONE_ATTEMPT)
def test_a_task_that_is_sent_again_is_no_task_that_comes_again(artemis: ArtemisBroker, options: Options) -> None:
    """The first message is dead, because the connection broke, but its task still runs when the second one comes."""

    async def work() -> None:
        async with opened(Sender(options)) as sender, opened(Consumer(options, ["tasks"], prefetch=5)) as consumer:
            await send(sender, "soup")
            [first] = await got(consumer)
            await asyncio.to_thread(artemis.drop_connections)
            await asyncio.to_thread(artemis.queue("tasks").wait, killed=1)
            await send(sender, "soup")
            [second] = await got(consumer)
            await consumer.acknowledge(first)
            await consumer.acknowledge(second)
            await asyncio.to_thread(artemis.queue("tasks").assert_acknowledged, 1)

    in_a_loop(work)


def test_a_broker_that_has_gone_silent_is_left(options: Options, caplog: pytest.LogCaptureFixture) -> None:
    """It accepts, answers CONNECT, and then nothing."""

    async def work() -> None:
        connections = 0

        async def answer(come: asyncio.StreamReader, go: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await come.readuntil(b"\0")
            go.write(b"CONNECTED\nversion:1.2\nheart-beat:100,100\n\n\0")
            await come.read()
            go.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as silent:
            port = silent.sockets[0].getsockname()[1]
            where = dataclasses.replace(options, servers=[at(port)], heartbeat_s=0.1)
            async with opened(Sender(where)):
                await until(lambda: connections == 2)
        assert f"127.0.0.1:{port}: the broker has gone silent; trying until it works" in caplog.text

    in_a_loop(work)


def test_closing_does_not_wait_for_a_broker(options: Options) -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            where = dataclasses.replace(options, servers=[at(deaf.getsockname()[1])])
            async with asyncio.timeout(2), opened(Consumer(where, ["tasks"], prefetch=1)):
                await asyncio.sleep(0.05)

    in_a_loop(work)


def test_who_waits_for_a_task_is_let_go_by_a_close(artemis: ArtemisBroker, options: Options) -> None:
    async def work() -> None:
        consumer = Consumer(options, ["tasks"], prefetch=1)
        consumer.open()
        waiting = asyncio.create_task(consumer.get())
        await asyncio.to_thread(artemis.queue("tasks").wait, consumers=1)
        await consumer.close()
        assert await waiting is None

    in_a_loop(work)
