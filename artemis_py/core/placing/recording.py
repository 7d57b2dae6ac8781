"""How persistent messages are logged: those that a crash must not lose, or all of them for readers of a retained
log.
"""

from __future__ import annotations

from collections.abc import Callable

from artemis_py.core.placing.batch import Batch
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Message
from artemis_py.records import RecordLog

Share = tuple[Queue, list[Message]]
"""One queue, and the messages of a batch that it takes."""
Durable = list[tuple[int, list[Message]]]
"""The messages that durable queues take, by queue number."""


def recording_of(log: RecordLog) -> Recording:
    """The recording that this log needs."""
    return FullRecording(log) if log.story.is_told else Recording(log)


class Recording:
    """Logs the messages that durable queues take: each message once, with all of its queues."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log

    def record(self, batch: Batch, shares: list[Share]) -> None:
        """Log messages that are about to come to these queues."""
        durable = _durable(shares)
        if len(durable) == 1:
            queue_id, taken = durable[0]
            self._log.published_run([one for one in taken if one.head.persistent], queue_id, batch.due_ms)
        elif durable:
            _write(batch, durable, self._log.published, with_others=False)

    def record_unrouted(self, batch: Batch) -> None:
        """Log messages that no queue takes."""
        return

    def begin_paged(self, batch: Batch, shares: list[Share]) -> None:
        """Log messages that are about to go to pages. Without a retained log nothing is written: the pages have
        them.
        """
        return

    def end_paged(self) -> None:
        """The messages are in pages: end what ``begin_paged`` began."""
        return

    def record_unpaged(self, batch: Batch, shares: list[Share]) -> None:
        """Log messages for queues that take none of those that go to pages."""
        self.record(batch, shares)


class FullRecording(Recording):
    """Logs messages that no durable queue takes, too, and those that go to pages."""

    def record(self, batch: Batch, shares: list[Share]) -> None:
        _write(batch, _durable(shares), self._log.published, with_others=True)

    def record_unrouted(self, batch: Batch) -> None:
        _write(batch, [], self._log.published, with_others=True)

    def begin_paged(self, batch: Batch, shares: list[Share]) -> None:
        """Log each message with the place that it will have. They form one group with their pages, so no crash leaves a
        message in the log and not in its page.
        """
        self._log.begin_group()
        stream = batch.route.address.stream
        place = 1 if stream is None else stream.next_place
        kept = {message.id for queue, taken in shares if not queue.flow.overflow.keeps_none for message in taken}
        staying = [message.id for message in batch.messages if message.id in kept]
        places = dict(zip(staying, range(place, place + len(staying)), strict=True))
        story = self._log.story
        _write(
            batch,
            _durable(shares),
            lambda message, queue_ids, due_ms: story.published_in_page(
                message, queue_ids, due_ms, places.get(message.id, 0)
            ),
            with_others=True,
        )

    def end_paged(self) -> None:
        self._log.end_group()

    def record_unpaged(self, batch: Batch, shares: list[Share]) -> None:
        """Nothing to do: ``begin_paged`` has logged all of them."""
        return


def _durable(shares: list[Share]) -> Durable:
    return [(queue.id, taken) for queue, taken in shares if queue.durable]


def _write(
    batch: Batch, durable: Durable, write: Callable[[Message, list[int], int], int], *, with_others: bool
) -> None:
    """Log the persistent messages of a batch. ``with_others``: those that no durable queue takes, too."""
    messages, due_ms = batch.messages, batch.due_ms
    if all(taken is messages for _, taken in durable):
        queue_ids = [queue_id for queue_id, _ in durable]
        for message in messages:
            if message.head.persistent:
                message.lsn = write(message, queue_ids.copy(), due_ms)
        return
    targets: dict[int, list[int]] = {message.id: [] for message in messages if message.head.persistent}
    for queue_id, taken in durable:
        for message in taken:
            if message.head.persistent:
                targets[message.id].append(queue_id)
    for message in messages:  # a restart finds them in this order, in every queue
        some_ids = targets.get(message.id)
        if some_ids or (some_ids is not None and with_others):
            message.lsn = write(message, some_ids, due_ms)
