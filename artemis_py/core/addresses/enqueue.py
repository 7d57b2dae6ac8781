"""Puts a batch on its queues, or into pages, and records it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.addresses.full_policy import note_full
from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.budget import SLICE_MAX, Budget
from artemis_py.core.events import PAGES
from artemis_py.core.memory import keep, release
from artemis_py.core.order.entry import ABANDONED, DAMAGED, DELETED, Entry
from artemis_py.core.pages import Streams
from artemis_py.core.publish_outcome import note_taken
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import QueueReference
from artemis_py.core.tasks import Task, TaskLine
from artemis_py.message import Message
from artemis_py.record_log import RecordLog

# ---- fan-out ---------------------------------------------------------------------------------------------------------
#
# Messages that go to more queues than a turn has units for: decided and logged at once, then put on their queues in
# slices. The record of a message names all of its queues, so a crash keeps all of its places or none. Only the moment
# differs at which each queue gets it. Publications to one address keep their order: those that arrive while one is
# being carried out wait behind it.


PLACE_UNITS: Final = 2
"""What it costs to put one message on one queue, in units."""


def put(queue: Queue, messages: list[Message], due_ms: int, now_ms: int, size_bytes: int) -> None:
    """Put new messages, of ``size_bytes`` together, on a queue. With ``due_ms`` above 0 (epoch ms) they are
    scheduled. If that raises, messages that did not reach the queue are settled in the log, too: the sender gets an
    error, so a restart must not recover them.
    """
    added = queue.contents.counters.added
    try:
        if due_ms:
            for message in messages:
                queue.arrivals.schedule(Entry(message), due_ms, now_ms)
        else:
            queue.arrivals.arrive([Entry(message) for message in messages], size_bytes, now_ms)
    except Exception:
        lost = messages[queue.contents.counters.added - added :]
        queue.arrivals.miss(lost, ABANDONED)
        for message in lost:
            if not message.refs:  # charged, and nobody needs it
                message.account.credit(1, message.memory_bytes)
        raise


@final
class FanOut(Task):
    """One batch on its way to its queues."""

    def __init__(
        self, messages: list[Message], shares: list[tuple[Queue, list[Message]]], due_ms: int, *, plain: bool
    ) -> None:
        self._messages = messages
        self._shares = shares
        self._due_ms = due_ms
        self._plain = plain
        self._place = 0
        self._start = 0
        """How many messages of the current share were put on its queue."""
        for message in messages:  # a reference until every queue has its messages
            keep(message)

    def work(self, budget: Budget, now_ms: int) -> bool:
        shares = self._shares
        while self._place < len(shares):
            queue, taken = shares[self._place]
            part = taken
            if len(taken) > SLICE_MAX:
                part = taken[self._start : self._start + SLICE_MAX]
            self._start += len(part)
            if self._start >= len(taken):  # before the attempt: what raises is not tried again
                self._place += 1
                self._start = 0
            budget.spend(PLACE_UNITS + len(part) - 1)
            self._put(queue, part, now_ms)
            if budget.is_spent:
                break
        if self._place < len(shares):
            return False
        self._shares = []
        messages, self._messages = self._messages, []
        release(messages)
        return True

    def break_off(self, now_ms: int) -> bool:
        """A queue has failed. The other queues still get their messages."""
        return True

    def _put(self, queue: Queue, messages: list[Message], now_ms: int) -> None:
        if queue.deleted:
            queue.arrivals.miss(messages, DELETED)
            return
        if queue.purge_on_no_consumers and not queue.taker_count:
            queue.arrivals.miss(messages, ABANDONED)
            return
        size_bytes = sum([message.size_bytes for message in messages])
        if self._plain and not self._due_ms:
            consumer = queue.arrivals.direct_consumer(messages)
            if consumer is not None:
                queue.arrivals.hand_over(consumer, [Entry(message) for message in messages], size_bytes)
                return
        put(queue, messages, self._due_ms, now_ms, size_bytes)

    def add_to(self, coming: dict[int, list[int]]) -> None:
        """Add up the persistent messages that durable queues have still to get: count, bytes and how many are
        scheduled, by queue number.
        """
        start = self._start
        for queue, taken in self._shares[self._place :]:
            durable = [message for message in taken[start:] if message.head.persistent] if queue.durable else []
            start = 0
            if durable and not queue.deleted:
                counts = coming.setdefault(queue.id, [0, 0, 0])
                counts[0] += len(durable)
                counts[1] += sum([message.size_bytes for message in durable])
                counts[2] += len(durable) if self._due_ms else 0


# ---- recording -------------------------------------------------------------------------------------------------------
#
# How persistent messages are logged: those that a crash must not lose, or all of them for readers of a retained log.


Share = tuple[Queue, list[Message]]
"""One queue, and the messages of a batch that it takes."""
Durable = list[tuple[int, list[Message]]]
"""The messages that durable queues take, by queue number."""


def recording_of(log: RecordLog) -> Recording:
    """The recording that this log needs."""
    return FullRecording(log) if log.audit.is_enabled else Recording(log)


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

    def begin_paged(self) -> None:
        """Messages are about to go to pages. Without a retained log nothing is written: the pages have them."""
        return

    def record_paged(self, batch: Batch, shares: list[Share]) -> None:
        """Log them."""
        return

    def break_off_paged(self, batch: Batch, shares: list[Share]) -> None:
        """A step failed: some of them are perhaps not in pages."""
        return

    def end_paged(self) -> None:
        """The messages are in pages, or will not be: end what ``begin_paged`` began."""
        return

    def record_unpaged(self, batch: Batch, shares: list[Share]) -> None:
        """Log messages for queues that take none of those that go to pages."""
        self.record(batch, shares)


class FullRecording(Recording):
    """Logs messages that no durable queue takes, too, and those that go to pages."""

    def __init__(self, log: RecordLog) -> None:
        super().__init__(log)
        self._passed_lsn = 0
        """The last lsn before the messages that go to pages now."""
        self._places: dict[int, int] = {}
        """Their places in the pages, by message id."""

    def record(self, batch: Batch, shares: list[Share]) -> None:
        _write(batch, _durable(shares), self._log.published, with_others=True)

    def record_unrouted(self, batch: Batch) -> None:
        _write(batch, [], self._log.published, with_others=True)

    def begin_paged(self) -> None:
        """They form one group with their pages, so no crash leaves a message in the log and not in its page."""
        self._log.begin_group()
        self._passed_lsn = self._log.last_lsn

    def record_paged(self, batch: Batch, shares: list[Share]) -> None:
        """Log each message with the place that it will have."""
        stream = batch.route.address.stream
        place = 1 if stream is None else stream.next_place
        kept = {message.id for queue, taken in shares if not queue.flow.overflow.keeps_none for message in taken}
        staying = [message.id for message in batch.messages if message.id in kept]
        places = self._places = dict(zip(staying, range(place, place + len(staying)), strict=True))
        audit = self._log.audit
        _write(
            batch,
            _durable(shares),
            lambda message, queue_ids, due_ms: audit.published_in_page(
                message, queue_ids, due_ms, places.get(message.id, 0)
            ),
            with_others=True,
        )

    def break_off_paged(self, batch: Batch, shares: list[Share]) -> None:
        """What the log has by now, and no page, has left its queues: another message will have its place."""
        stream, places = batch.route.address.stream, self._places
        next_place = 1 if stream is None else stream.next_place
        for queue, taken in shares:
            if queue.durable and not queue.flow.overflow.keeps_none:
                missing = [
                    message
                    for message in taken
                    if message.lsn > self._passed_lsn and places.get(message.id, 0) >= next_place
                ]
                if missing:
                    self._log.settled(queue.id, missing, DAMAGED)

    def end_paged(self) -> None:
        self._places = {}
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


# ---- enqueuer --------------------------------------------------------------------------------------------------------
#
# Carries out what the router decided: records messages, and puts them on their queues or into pages.


_NO_SHARES: Final[list[Share]] = []
_DECIDING: Final = 8
"""To decide that a message goes to a queue is this part of what it costs to put it there."""


@final
class Enqueuer:
    """Records and places messages. Work that is larger than a turn is put off (``FanOut``)."""

    def __init__(self, host: QueueHost, streams: Streams) -> None:
        self._host = host
        self._streams = streams
        self.recording = recording_of(host.log)
        self.begun: list[FanOut] = []
        """What was published since somebody asked, and is not on all of its queues."""

    def enqueue(self, batch: Batch, shares: list[Share]) -> None:
        """Write messages down and put them on their queues, now or later."""
        if self._host.outcomes:
            for queue, taken in shares:
                self._note_taken(taken, queue)
        if batch.paged:
            self._enqueue_paged(batch, shares)
            return
        everything, later = shares, _NO_SHARES
        if batch.route.address.is_fanning_out or self._is_too_much(shares):
            shares, later = self._part(batch, shares)
        if not batch.plain:
            self.recording.record(batch, everything)
        waiting = self._hand_over(batch, shares)
        if len(waiting) == 1 and waiting[0][1] is batch.messages:
            _put_all(waiting[0][0], batch)
        elif waiting:
            self._put_on_several(batch, waiting)
        if later:
            self._put_off(batch, later)

    def _note_taken(self, messages: list[Message], queue: Queue) -> None:
        overflow = queue.flow.overflow
        may_replace = overflow.is_ring or overflow.sheds or queue.contents.last_values is not None
        note_taken(self._host.outcomes, messages, queue.name, durable=queue.durable, may_replace=may_replace)

    def _is_too_much(self, shares: list[Share]) -> bool:
        """Would putting these shares on their queues cost more units than the turn has left?"""
        budget = self._host.budget
        if budget.left >= 0 or len(shares) == 1:
            return False
        return budget.must_put_off(sum([len(taken) for _, taken in shares]))

    def _part(self, batch: Batch, shares: list[Share]) -> tuple[list[Share], list[Share]]:
        """The shares to put on queues at once, and those that may wait. A queue that limits its senders never waits,
        because the next message must find there what came before it.
        """
        if not batch.limited:
            return [], shares
        limited = [share for share in shares if share[0].flow.limits_senders]
        return limited, [share for share in shares if not share[0].flow.limits_senders]

    def _put_off(self, batch: Batch, shares: list[Share]) -> None:
        """Put recorded messages on their queues in later turns, some in each."""
        address, budget = batch.route.address, self._host.budget
        line = address.fan_outs
        if line is None or line.may_go_on:
            line = address.fan_outs = TaskLine()
            self._host.agenda.add(line)
        places = sum([len(taken) for _, taken in shares])
        messages = batch.messages
        if not any(taken is messages for _, taken in shares):
            messages = list({message.id: message for _, taken in shares for message in taken}.values())
        fan_out = FanOut(messages, shares, batch.due_ms, plain=batch.plain)
        line.add(fan_out)
        self.begun.append(fan_out)
        budget.spend(places // _DECIDING - places)  # the rest is spent when it is done

    def take_begun(self) -> list[FanOut]:
        """What was published since somebody asked, and is not on all of its queues. It is forgotten here: whoever asks
        may wait for it.
        """
        begun, self.begun = self.begun, []
        return begun

    def enqueue_copies(
        self, address: Address, queue: Queue, messages: list[Message], now_ms: int, due_ms: int = 0
    ) -> None:
        """Put copies on one queue that it alone is to have. No filter, divert or limit is asked. ``due_ms`` above 0
        schedules them.
        """
        route = Route(address, queue, None)
        size_bytes = sum(message.size_bytes for message in messages)
        batch = Batch(route, messages, size_bytes, now_ms, plain=False, due_ms=due_ms)
        batch.paged = address.must_page
        batch.limited = queue.flow.limits_senders
        self.enqueue(batch, [(queue, messages)])

    def coming(self) -> dict[int, list[int]]:
        """What durable queues are still to get of persistent messages that are written down: count, bytes, and how
        many of them are scheduled, by queue number.
        """
        coming: dict[int, list[int]] = {}
        for line in self._host.agenda.tasks:
            for task in line.unfinished if isinstance(line, TaskLine) else ():
                if isinstance(task, FanOut):
                    task.add_to(coming)
        return coming

    def _hand_over(self, batch: Batch, shares: list[Share]) -> list[Share]:
        """Give plain messages straight to consumers that wait for them; returns the shares of the other queues."""
        if not batch.plain or batch.due_ms:
            return shares
        messages = batch.messages
        shared: list[Entry] | None = None
        waiting: list[Share] = []
        for queue, taken in shares:
            consumer = queue.arrivals.direct_consumer(taken)
            if consumer is None:
                waiting.append((queue, taken))
            elif taken is messages:
                if shared is None:
                    shared = [Entry(message) for message in messages]
                queue.arrivals.hand_over(consumer, shared, batch.size_bytes)
            else:
                size_bytes = sum(message.size_bytes for message in taken)
                queue.arrivals.hand_over(consumer, [Entry(message) for message in taken], size_bytes)
        return waiting

    def _enqueue_paged(self, batch: Batch, shares: list[Share]) -> None:
        """Put messages into pages, each once with the queues that it goes to. Paging begins with the first of them:
        what came before it has to be on its queues then.
        """
        before = batch.route.address.fan_outs
        if before is not None:
            self._host.agenda.complete(before, batch.now_ms)
        if batch.plain:
            self._put_into_pages(batch, shares)
            return
        recording = self.recording
        recording.begin_paged()
        try:  # a copy that fails is given up, and what others record is no part of its group
            recording.record_paged(batch, shares)
            self._put_into_pages(batch, shares)
        except Exception:
            recording.break_off_paged(batch, shares)
            raise
        finally:
            recording.end_paged()

    def _put_into_pages(self, batch: Batch, shares: list[Share]) -> None:
        refusing = [share for share in shares if share[0].flow.overflow.keeps_none]
        if refusing:
            if not batch.plain:
                self.recording.record_unpaged(batch, refusing)
            for queue, taken in refusing:
                queue.arrivals.refuse(taken)
            shares = [share for share in shares if not share[0].flow.overflow.keeps_none]
        waiting = self._hand_over(batch, shares)
        if not waiting:
            return
        address = batch.route.address
        stream = address.stream
        if stream is None:
            page_bytes = address.settings.page_size_bytes
            stream = address.stream = self._streams.open(address.name, address.account, page_bytes)
        if not stream.active:
            note_full(self._host.events, PAGES, address)
        stream.begin()
        for queue, _ in waiting:
            queue.pages.prepare(stream)
        failures: list[Exception] = []
        place = stream.next_place
        staying = batch.messages
        try:
            if all(taken is batch.messages for _, taken in waiting):
                stream.append(staying, [queue.reference for queue, _ in waiting], batch.due_ms)
            else:
                targets = _targets(waiting)
                staying = [message for message in staying if message.id in targets]
                for message in staying:
                    stream.append([message], targets[message.id], batch.due_ms)
        except Exception as error:  # what is in pages by then has come, and its queues count it
            failures.append(error)
            there = {message.id for message in staying[: stream.next_place - place]}
            waiting = [(queue, [one for one in taken if one.id in there]) for queue, taken in waiting]
        batch.in_pages = staying[: stream.next_place - place]
        for queue, taken in waiting:
            size_bytes = batch.size_bytes if taken is batch.messages else sum(one.size_bytes for one in taken)
            try:
                queue.arrivals.arrive_paged(stream, taken, size_bytes, batch.now_ms)
            except Exception as error:  # the other queues have them in the same pages
                failures.append(error)
        if failures:
            raise failures[0]

    def enqueue_on_one(self, batch: Batch, queue: Queue) -> None:
        """Do what ``enqueue`` does, for one queue that takes everything into memory. Nearly every message comes this
        way, and shares would cost it three functions more, five if it is recorded.
        """
        log = self._host.log
        if self._host.outcomes:
            self._note_taken(batch.messages, queue)
        if not batch.plain and not queue.durable:
            self.recording.record(batch, [(queue, batch.messages)])
        elif not batch.plain:
            log.published_run([one for one in batch.messages if one.head.persistent], queue.id, batch.due_ms)
        elif not batch.due_ms:
            consumer = queue.arrivals.direct_consumer(batch.messages)
            if consumer is not None:
                queue.arrivals.hand_over(consumer, [Entry(message) for message in batch.messages], batch.size_bytes)
                return
        _put_all(queue, batch)

    def _put_on_several(self, batch: Batch, waiting: list[Share]) -> None:
        """Several queues refer to one message: it is charged once, and kept until all of them have seen it."""
        distinct = {message.id: message for _, taken in waiting for message in taken}
        for message in distinct.values():
            keep(message)
        failures: list[Exception] = []
        for queue, taken in waiting:
            try:
                put(queue, taken, batch.due_ms, batch.now_ms, sum(message.size_bytes for message in taken))
            except Exception as error:  # the other queues still get it: the record names all of them
                failures.append(error)
        release(list(distinct.values()))
        if failures:
            raise failures[0]


def _targets(shares: list[Share]) -> dict[int, list[QueueReference]]:
    """The queues of each message, by its number."""
    targets: dict[int, list[QueueReference]] = {}
    for queue, taken in shares:
        for message in taken:
            targets.setdefault(message.id, []).append(queue.reference)
    return targets


def _put_all(queue: Queue, batch: Batch) -> None:
    """Every message goes to this queue and to no other."""
    batch.route.address.account.charge(len(batch.messages), batch.memory_bytes)
    put(queue, batch.messages, batch.due_ms, batch.now_ms, batch.size_bytes)
