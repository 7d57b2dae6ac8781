"""The broker, as taskiq asks for one: ``kick`` sends a task, ``listen`` takes those that a worker runs."""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Literal

from artemis_py_tasks import Consumer, Options, Sender
from stompman import ConnectionParameters
from taskiq import AckableMessage, AsyncBroker, BrokerMessage

_QUEUE: Final = "taskiq"


class StompBroker(AsyncBroker):
    """Tasks wait in queues of a STOMP broker. What a worker has not acknowledged is the broker's.

    Labels of a task: ``delay`` (seconds; the broker keeps it so long), ``priority`` (0 to 9, the highest first; usually
    4), ``queue_name`` (another queue than this broker's; its workers have a StompBroker with that name).
    """

    def __init__(
        self,
        *servers: ConnectionParameters,
        queue_name: str = _QUEUE,
        prefetch: int = 10,
        ssl: Literal[True] | ssl.SSLContext | None = None,
        answer_s: float = 30.0,
        heartbeat_s: float = 30.0,
    ) -> None:
        """``servers``: a broker, or a broker and its stand-by. ``prefetch``: so many tasks a worker process has at a
        time that are not acknowledged, so it runs no more than that at once. ``answer_s``: so long the broker may take
        to confirm a task. ``heartbeat_s``: a coroutine that blocks its event loop for twice as long loses the
        connection.
        """
        super().__init__()
        if not servers:
            raise ValueError(
                "StompBroker needs a server: StompBroker(stompman.ConnectionParameters(host=…, port=…, …))"
            )
        self.queue_name = queue_name
        self._prefetch = prefetch
        self._options = Options(servers=servers, ssl=ssl, answer_s=answer_s, heartbeat_s=heartbeat_s)
        self._sender: Sender | None = None
        self._consumer: Consumer | None = None

    async def startup(self) -> None:
        """Begin to connect."""
        await super().startup()
        self._sender = Sender(self._options)
        self._sender.open()
        if self.is_worker_process:
            self._consumer = Consumer(self._options, [self.queue_name], prefetch=self._prefetch)
            self._consumer.open()

    async def shutdown(self) -> None:
        """Leave the broker. Tasks that were not acknowledged go back, without counting as a failed delivery."""
        for connection in (self._consumer, self._sender):
            if connection is not None:
                await connection.close()
        self._consumer = self._sender = None
        await super().shutdown()

    async def kick(self, message: BrokerMessage) -> None:
        """Send a task; it is on the broker's disk when this returns. Raises SendError."""
        if self._sender is None:
            raise RuntimeError("the broker is not connected: await broker.startup() first")
        labels = message.labels
        delay_s = _number(labels, "delay")
        priority = _number(labels, "priority")
        await self._sender.send(
            str(labels.get("queue_name", self.queue_name)),
            message.message,
            task_id=message.task_id,
            headers={"task": message.task_name},
            priority=None if priority is None else int(priority),
            due=None if delay_s is None else datetime.now(UTC) + timedelta(seconds=delay_s),
        )

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """The tasks for this worker, until its connection is closed. Raises RefusedError."""
        if (consumer := self._consumer) is None:
            raise RuntimeError("the broker is not connected as a worker: set is_worker_process before startup()")
        while (delivery := await consumer.get()) is not None:
            yield AckableMessage(data=delivery.body, ack=partial(consumer.acknowledge, delivery))


def _number(labels: dict[str, Any], name: str) -> float | None:
    """A label that is a number, or the text of one."""
    if (value := labels.get(name)) is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"the label {name} is {value!r}, and should be a number")
    return number
