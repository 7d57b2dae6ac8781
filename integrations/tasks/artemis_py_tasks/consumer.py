"""Tasks from the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, cast, final

from stompman import AckableMessageFrame, Client, Error, ManualAckSubscription, SubscriptionError

from artemis_py_tasks.connection import Connection, LostError, Options
from artemis_py_tasks.errors import RefusedError, reason_of
from artemis_py_tasks.sender import SENT_ID, TASK_ID

_DONE_MAX: Final = 1000


@final
class Delivery:
    """A task, which is the broker's until it is acknowledged."""

    def __init__(self, frame: AckableMessageFrame, queue: str, connection: int) -> None:
        self._frame = frame
        self.queue = queue
        """From where it came."""
        self.connection = connection
        """The number of the connection over which it came."""
        self.key = self.headers.get(SENT_ID) or self.headers["message-id"]
        """What names this message; also when it comes again, if it is a Sender's."""

    @property
    def body(self) -> bytes:
        """What was sent."""
        return self._frame.body

    @property
    def headers(self) -> Mapping[str, str]:
        """All headers, the broker's own included."""
        return cast("Mapping[str, str]", self._frame.headers)

    @property
    def attempts(self) -> int:
        """How often it was given to a consumer, this time included."""
        return int(self.headers.get("JMSXDeliveryCount", "1"))

    @property
    def task_id(self) -> str:
        """What its sender calls it; ``""``: nothing."""
        return self.headers.get(TASK_ID, "")

    async def settle(self, *, is_done: bool) -> None:
        """Tell the broker. Over a connection that was lost this says nothing."""
        await (self._frame.ack() if is_done else self._frame.nack())


@final
class Consumer(Connection):
    """Takes tasks from queues. ``prefetch`` is how many of each queue it may have that are not acknowledged; with 1 it
    has one in all: while it has that, it leaves the other queues, whose tasks others may run.
    """

    def __init__(self, options: Options, queues: Sequence[str], *, prefetch: int) -> None:
        super().__init__(options)
        self._queues = queues
        self._prefetch = prefetch
        self._waiting: asyncio.Queue[Delivery | None] = asyncio.Queue()
        self._held: dict[str, Delivery] = {}
        """What waits here or runs, each as it came last: one that runs may come again over the next connection."""
        self._connection = 1
        """The number of the connection that there is, or will be."""
        self._done: dict[str, None] = {}
        """What was done after its connection was lost: it need not be run when it comes again."""
        self._subscriptions: dict[str, ManualAckSubscription] = {}
        self._subscribing = asyncio.Lock()
        self._runs: Delivery | None = None
        """With a prefetch of 1: the one that it has."""

    async def get(self) -> Delivery | None:
        """The next task; None: ``stop`` was called. Raises RefusedError if the broker does not let it consume."""
        delivery = await self._waiting.get()
        if delivery is None:
            self.stop()  # whoever else waits
            if self._refusal is not None:
                raise self._refusal
        elif self._prefetch == 1:
            self._runs = delivery
            await self._choose_queues()
        return delivery

    def stop(self) -> None:
        """Let whoever waits in ``get`` go. What was got can still be acknowledged, until ``close``."""
        self._waiting.put_nowait(None)

    async def close(self) -> None:
        """As for each connection; whoever waits in ``get`` gets None."""
        self.stop()
        await super().close()

    async def acknowledge(self, delivery: Delivery) -> None:
        """The task is done. If the connection is known to be lost, this is said when the task comes again. If it comes
        to another consumer, or the loss is noticed later, the task is run twice.
        """
        await self._settle(delivery, is_done=True)

    async def refuse(self, delivery: Delivery) -> None:
        """The task has failed: a failed delivery. The broker gives it again, or to the dead letters."""
        await self._settle(delivery, is_done=False)

    async def _settle(self, delivery: Delivery, *, is_done: bool) -> None:
        if (as_it_came_last := self._held.pop(delivery.key, None)) is None:
            return
        if as_it_came_last.connection == self._connection:
            await as_it_came_last.settle(is_done=is_done)
        elif is_done:
            self._done[delivery.key] = None
            if len(self._done) > _DONE_MAX:
                del self._done[next(iter(self._done))]
        if self._runs is not None:
            self._runs = None
            await self._choose_queues()

    async def _take(self, queue: str, frame: AckableMessageFrame) -> None:
        delivery = Delivery(frame, queue, self._connection)
        if delivery.key in self._done:
            del self._done[delivery.key]
            if delivery.attempts > 1:  # else it is a copy that somebody has sent, and was never run
                await delivery.settle(is_done=True)
                return
        known = self._held.get(delivery.key)
        if known is not None and known.connection == delivery.connection:
            known, delivery.key = None, delivery.headers["message-id"]  # an operator's copy of that message
        self._held[delivery.key] = delivery
        if known is None:
            self._waiting.put_nowait(delivery)

    async def _begin(self, client: Client) -> None:
        async with self._subscribing:
            self._subscriptions.clear()
            await self._subscribe(client)

    async def _choose_queues(self) -> None:
        """Leave those that should wait, return to the others. Without a connection the next one does so."""
        async with self._subscribing:
            if len(self._queues) > 1 and (client := self._client) is not None:
                try:
                    with suppress(Error):  # the broker ends the connection, or it is lost
                        await self._subscribe(client)
                except LostError as fault:  # else it would wait for a queue that it does not consume
                    self._leave(client, fault)

    async def _subscribe(self, client: Client) -> None:
        queues = self._queues if self._runs is None else [self._runs.queue]
        for queue in [queue for queue in self._subscriptions if queue not in queues]:
            await self._subscriptions.pop(queue).unsubscribe()
            await asyncio.sleep(0)  # what came before that is taken now
            self._forget_waiting(queue)
        for queue in queues:
            if queue not in self._subscriptions:
                self._subscriptions[queue] = await self._subscribed(client, queue)

    async def _subscribed(self, client: Client, queue: str) -> ManualAckSubscription:
        headers = {"prefetch-count": str(self._prefetch), "subscription-type": "ANYCAST"}
        try:
            return await client.subscribe_with_manual_ack(
                queue, partial(self._take, queue), headers=headers, receipt_timeout=self.options.answer_s
            )
        except SubscriptionError as error:
            if error.reason == "rejected":
                self._refusal = RefusedError(f"{self.options.names}: {queue}: {reason_of(error.frame)}")
            if error.reason == "timeout":
                raise LostError(
                    f"{queue}: the broker has not confirmed the consumer within {self.options.answer_s:g} s"
                ) from None
            raise

    def _forget_waiting(self, queue: str | None = None) -> None:
        """What waits here goes back; of one queue, or of all."""
        waiting = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        for delivery in waiting:
            if delivery is None or queue not in {None, delivery.queue}:
                self._waiting.put_nowait(delivery)
            else:
                self._held.pop(delivery.key, None)

    def _let_go(self) -> None:
        self._connection += 1
        self._forget_waiting()

    async def _finish(self) -> None:
        async with self._subscribing:
            for subscription in self._subscriptions.values():
                await subscription.unsubscribe()

    def _refused(self) -> None:
        self.stop()
