"""How persistent messages are written down: what a crash must not undo, or, for readers of the log, all of them."""

from __future__ import annotations

from collections.abc import Callable

from artemis_py.core.batch import Batch
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Message
from artemis_py.records import RecordLog

Share = tuple[Queue, list[Message]]
"""What one queue takes of a batch."""
Durable = list[tuple[int, list[Message]]]
"""What durable queues take, by their number."""


def recording_of(log: RecordLog) -> Recording:
    """The recording that a log wants."""
    return FullRecording(log) if log.story.is_told else Recording(log)


class Recording:
    """Writes down what durable queues take: each message once, with all of them."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log

    def record(self, batch: Batch, shares: list[Share]) -> None:
        """Messages are about to come to these queues."""
        durable = _durable(shares)
        if len(durable) == 1:
            queue_id, taken = durable[0]
            self._log.published_run([one for one in taken if one.head.persistent], queue_id, batch.due_ms)
        elif durable:
            _write(batch, durable, self._log.published, with_others=False)

    def record_unrouted(self, batch: Batch) -> None:
        """No queue takes the messages."""
        return

    def begin_paged(self, batch: Batch, shares: list[Share]) -> None:
        """Messages are about to come into pages, which have them then."""
        return

    def end_paged(self) -> None:
        """They are in pages."""
        return

    def record_unpaged(self, batch: Batch, shares: list[Share]) -> None:
        """These queues take no message that goes to a page."""
        self.record(batch, shares)


class FullRecording(Recording):
    """Writes down what no durable queue takes, too, and what stands in pages."""

    def record(self, batch: Batch, shares: list[Share]) -> None:
        _write(batch, _durable(shares), self._log.published, with_others=True)

    def record_unrouted(self, batch: Batch) -> None:
        _write(batch, [], self._log.published, with_others=True)

    def begin_paged(self, batch: Batch, shares: list[Share]) -> None:
        """Each with the place that it will have. No crash leaves a message in the log and not in its page."""
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
        """``begin_paged`` has told of all."""
        return


def _durable(shares: list[Share]) -> Durable:
    return [(queue.id, taken) for queue, taken in shares if queue.durable]


def _write(
    batch: Batch, durable: Durable, write: Callable[[Message, list[int], int], int], *, with_others: bool
) -> None:
    """Write the persistent ones of a batch; ``with_others``: those that no durable queue takes, too."""
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
    for message in messages:  # in this order a restart finds them, in each of the queues
        some_ids = targets.get(message.id)
        if some_ids or (some_ids is not None and with_others):
            message.lsn = write(message, some_ids, due_ms)
