"""The broker of taskiq and taskiq's own receiver, with a real broker of messages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest
import stompman
from artemis_py_taskiq import StompBroker
from artemis_py_tasks import RefusedError
from kit import NO_NEW_QUEUES, in_a_loop
from taskiq import AckableMessage, SimpleRetryMiddleware
from taskiq.api import run_receiver_task
from taskiq.exceptions import SendTaskError

from artemis_py.testing import ArtemisBroker, QueueView


class Kitchen:
    """A broker of taskiq with tasks, and what they did."""

    def __init__(self, artemis: ArtemisBroker, **options: Any) -> None:
        server = stompman.ConnectionParameters(host=artemis.host, port=artemis.port, login="", passcode="")
        self.broker = StompBroker(server, **options)
        self.seen: list[str] = []
        self.go_on = asyncio.Event()

        @self.broker.task
        async def cook(dish: str) -> str:
            self.seen.append(dish)
            return dish

        @self.broker.task
        async def wait(dish: str) -> None:
            self.seen.append(dish)
            await self.go_on.wait()

        @self.broker.task(retry_on_error=True, max_retries=3)
        async def fail(dish: str) -> None:
            self.seen.append(dish)
            raise ValueError(dish)

        self.cook, self.wait, self.fail = cook, wait, fail

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        await self.broker.startup()
        try:
            yield
        finally:
            await self.broker.shutdown()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """With a worker in this event loop."""
        self.broker.is_worker_process = True
        async with self.started():
            worker = asyncio.create_task(run_receiver_task(self.broker))
            try:
                yield
            finally:
                worker.cancel()
                with suppress(asyncio.CancelledError):
                    await worker


@contextmanager
def unsent(error: type[Exception], why: str) -> Iterator[None]:
    """What taskiq raises has the reason as its cause."""
    with pytest.raises(SendTaskError) as failure:
        yield
    assert isinstance(failure.value.__cause__, error)
    assert re.search(why, str(failure.value.__cause__))


async def acknowledged(queue: QueueView, count: int) -> None:
    await asyncio.to_thread(queue.assert_acknowledged, count)


@pytest.mark.artemis(persistence=True)
def test_a_task_is_on_the_disk_when_kiq_returns(artemis: ArtemisBroker) -> None:
    async def send() -> None:
        kitchen = Kitchen(artemis)
        async with kitchen.started():
            await kitchen.cook.kiq("soup")

    async def work() -> None:
        kitchen = Kitchen(artemis)
        async with kitchen.working():
            await acknowledged(artemis.queue("taskiq"), 1)
        assert kitchen.seen == ["soup"]

    in_a_loop(send)
    artemis.crash()
    artemis.restart()
    in_a_loop(work)


def test_labels(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        kitchen = Kitchen(artemis, prefetch=1)
        async with kitchen.started():
            for priority in (0, 9, "4"):
                await kitchen.cook.kicker().with_labels(priority=priority).kiq(f"priority {priority}")
            await kitchen.cook.kicker().with_labels(delay=3600).kiq("later")
            await kitchen.cook.kicker().with_labels(delay="0.0").kiq("now")
            await kitchen.cook.kicker().with_labels(queue_name="other").kiq("elsewhere")
            with unsent(ValueError, "the label delay is 'soon', and should be a number"):
                await kitchen.cook.kicker().with_labels(delay="soon").kiq("never")
            with unsent(RefusedError, "priority"):
                await kitchen.cook.kicker().with_labels(priority=10).kiq("never")
        assert artemis.queue("taskiq").state.scheduled == 1
        assert artemis.queue("other").count == 1
        async with kitchen.working():
            await acknowledged(artemis.queue("taskiq"), 4)
            assert kitchen.seen == ["priority 9", "priority 4", "now", "priority 0"]
            await asyncio.to_thread(artemis.clock.advance, hours=2)
            await acknowledged(artemis.queue("taskiq"), 5)
        assert kitchen.seen[-1] == "later"

    in_a_loop(work)


def test_a_task_is_acknowledged_after_it_ran(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        kitchen = Kitchen(artemis, prefetch=2)
        queue = artemis.queue("taskiq")
        async with kitchen.working():
            for dish in ("one", "two", "three"):
                await kitchen.wait.kiq(dish)
            while len(kitchen.seen) < 2:
                await asyncio.sleep(0.01)
            assert (queue.state.delivering, queue.state.ready, queue.state.acknowledged) == (2, 1, 0)
            kitchen.go_on.set()
            await acknowledged(queue, 3)
        assert kitchen.seen == ["one", "two", "three"]

    in_a_loop(work)


def test_a_task_that_is_tried_again_is_not_lost(artemis: ArtemisBroker) -> None:
    """The middleware sends it again, with the same id, before it is acknowledged."""

    async def work() -> None:
        kitchen = Kitchen(artemis)
        kitchen.broker.add_middlewares(SimpleRetryMiddleware())
        async with kitchen.working():
            await kitchen.fail.kiq("soup")
            await acknowledged(artemis.queue("taskiq"), 3)
        assert kitchen.seen == ["soup"] * 3
        assert artemis.queue("taskiq").count == 0

    in_a_loop(work)


def test_a_connection_that_breaks_while_a_task_runs(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        kitchen = Kitchen(artemis)
        queue = artemis.queue("taskiq")
        async with kitchen.working():
            await kitchen.wait.kiq("soup")
            while not kitchen.seen:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(artemis.drop_connections)
            await asyncio.to_thread(queue.wait, delivering=1)
            kitchen.go_on.set()
            await acknowledged(queue, 1)
        assert kitchen.seen == ["soup"]

    in_a_loop(work)


def test_what_is_not_acknowledged_goes_back_without_a_failed_delivery(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        kitchen = Kitchen(artemis)
        kitchen.broker.is_worker_process = True
        async with kitchen.started():
            await kitchen.cook.kiq("soup")
            messages = kitchen.broker.listen()
            assert isinstance(await anext(messages), AckableMessage)
            await messages.aclose()
        [message] = artemis.queue("taskiq").messages
        assert (message.state, message.attempts) == ("ready", 0)

    in_a_loop(work)


@pytest.mark.artemis(config=NO_NEW_QUEUES)
def test_what_the_broker_refuses_is_an_error_for_both(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        kitchen = Kitchen(artemis)
        kitchen.broker.is_worker_process = True
        async with kitchen.started():
            with unsent(RefusedError, "taskiq"):
                await kitchen.cook.kiq("soup")
            with pytest.raises(RefusedError, match="taskiq"):
                await anext(kitchen.broker.listen())

    in_a_loop(work)


def test_what_is_used_too_early_says_what_is_missing(artemis: ArtemisBroker) -> None:
    async def work() -> None:
        kitchen = Kitchen(artemis)
        with unsent(RuntimeError, r"await broker\.startup\(\) first"):
            await kitchen.cook.kiq("soup")
        async with kitchen.started():
            with pytest.raises(RuntimeError, match="is_worker_process"):
                await anext(kitchen.broker.listen())
        with pytest.raises(ValueError, match="needs a server"):
            StompBroker()

    in_a_loop(work)
