"""A queue: entries on their way from an address to consumers.

It is composed of an order, a distribution, an overflow rule and a gate, which decide; the queue carries out. It does
not route, does not know sessions or frames, and calls nobody back but its host, to which it hands what leaves for
another address.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from artemis_py.core.consumer import Consumer
from artemis_py.core.distribution import Distribution
from artemis_py.core.entry import ACKED, EXPIRED, KILLED, REPLACED, Entry
from artemis_py.core.gate import Gate
from artemis_py.core.order.priority import PriorityOrder
from artemis_py.core.overflow import Overflow
from artemis_py.core.redelivery import Redelivery
from artemis_py.core.tally import Tally
from artemis_py.errors import LimitError
from artemis_py.message import Message
from artemis_py.records import RecordLog
from artemis_py.selector import Selector

if TYPE_CHECKING:
    from artemis_py.core.address import Address


class Host(ABC):
    """What a queue needs of the broker around it. None of these runs any queue: they only note work for later in the
    turn.
    """

    log: RecordLog

    @abstractmethod
    def note_ready(self, queue: Queue) -> None:
        """The queue may have something to dispatch."""

    @abstractmethod
    def note_output(self, consumer: Consumer) -> None:
        """The consumer's outbox has entries."""

    @abstractmethod
    def note_due(self, due_ms: int, queue: Queue, entry: Entry) -> None:
        """The entry is scheduled and falls due at ``due_ms``."""

    @abstractmethod
    def note_dead(self, queue: Queue, entry: Entry) -> None:
        """The entry failed for the last time; a copy belongs on the dead-letter address."""

    @abstractmethod
    def note_expired(self, queue: Queue, entry: Entry) -> None:
        """The entry expired; a copy belongs on the expiry address."""


class Queue:
    """One queue. Counts are plain ints; see ``Tally`` for what they mean."""

    def __init__(  # noqa: PLR0913 - the recipe names each part
        self,
        id: int,
        name: str,
        address: Address,
        host: Host,
        *,
        order: PriorityOrder,
        distribution: Distribution,
        overflow: Overflow,
        gate: Gate,
        redelivery: Redelivery,
        routing_type: str,
        durable: bool = True,
        selector: Selector | None = None,
        non_destructive: bool = False,
        consumers_max: int = -1,
        purge_on_no_consumers: bool = False,
        enabled: bool = True,
        auto_created: bool = False,
        temporary: bool = False,
    ) -> None:
        self.id = id
        """The number that the log knows the queue by."""
        self.name = name
        self.address = address
        self.order = order
        self.distribution = distribution
        self.overflow = overflow
        self.gate = gate
        self.redelivery = redelivery
        self.routing_type = routing_type
        self.durable = durable
        self.selector = selector
        self.non_destructive = non_destructive
        self.consumers_max = consumers_max
        self.purge_on_no_consumers = purge_on_no_consumers
        self.enabled = enabled
        self.auto_created = auto_created
        self.temporary = temporary
        self.no_local = 0
        """The connection whose messages do not enter; 0 for none."""
        self.ring_size_changed: int | None = None
        """The ring-size set while the broker ran; None while that of the configuration holds."""
        self.deleted = False
        self.noted_ready = False
        self.was_used = False
        """A consumer left, or a message was settled: only then may auto-delete take the queue (unless told
        otherwise).
        """
        self.idle_since_ms = 0
        self.tally = Tally()
        self.scheduled: dict[int, Entry] = {}
        self._host = host
        self._expiring: list[tuple[int, int, int, int]] = []
        """When to look where for which message: (epoch ms, priority, sequence, message id). Not the entry itself: what
        is acknowledged long before it would have expired must not stay in memory until then.
        """
        self._dry = False
        """Some consumer was parked because nothing matched; arrivals wake it."""

    # ---- what stands on the queue ----------------------------------------------------------------

    @property
    def message_count(self) -> int:
        """Ready, in delivery and scheduled. A message that is only being read (non-destructive) is counted once."""
        return self.order.count + self.tally.held_count + len(self.scheduled)

    @property
    def delivering_count(self) -> int:
        """Sent to a consumer and not settled."""
        return self.tally.held_count + self.tally.read_count

    @property
    def consumer_count(self) -> int:
        """Consumers attached."""
        return len(self.distribution.consumers)

    @property
    def accepts_all(self) -> bool:
        """True when every message routed here is taken: no filter, enabled, and not waiting for a consumer."""
        return self.selector is None and self.enabled and not (self.purge_on_no_consumers or self.no_local)

    def accepts(self, message: Message) -> bool:
        """Does this message enter the queue?"""
        if not self.enabled or (self.purge_on_no_consumers and not self.distribution.consumers):
            return False
        if self.no_local and message.origin == self.no_local:
            return False
        return self.selector is None or self.selector.matches(message.lookup)

    # ---- arrivals --------------------------------------------------------------------------------

    def direct_consumer(self) -> Consumer | None:
        """The consumer that may be handed arrivals without queueing them: alone, settling on send, taking everything,
        with room.
        """
        consumers = self.distribution.consumers
        if len(consumers) != 1 or self.order.count or consumers[0].outbox or self.overflow.keeps_none:
            return None
        consumer = consumers[0]
        if consumer.settles and consumer.cursor is None and consumer.room_bytes > 0 and self.gate.is_open:
            return consumer
        return None

    def hand_over(self, consumer: Consumer, entries: list[Entry], size_bytes: int) -> None:
        """Give arrivals straight to the direct consumer: added and acknowledged in one step. The entries may be shared
        by queues.
        """
        consumer.handed.extend(entries)
        consumer.room_bytes -= size_bytes
        self.tally.added += len(entries)
        self.tally.acknowledged += len(entries)
        self._host.note_output(consumer)

    def arrive(self, entries: list[Entry], size_bytes: int, now_ms: int) -> None:
        """Append entries of new messages. A consumer with room takes them before a ring counts them."""
        tally = self.tally
        tally.added += len(entries)
        tally.size_bytes += size_bytes
        special = False
        for entry in entries:
            message = entry.message
            message.refs += 1
            if message.head.persistent:
                tally.enter_durable(message)
            if message.expires_ms:
                special = True
        if special:
            self._append_expiring(entries)
        else:
            self.order.extend(entries)
        self._after_growth(len(entries), now_ms)

    def _append_expiring(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.order.extend([entry])
            if entry.message.expires_ms:
                entry.sequence = self.order.last_sequence(entry.message.head.priority)
                self._watch_expiry(entry)

    def _watch_expiry(self, entry: Entry) -> None:
        message = entry.message
        heappush(self._expiring, (message.expires_ms, message.head.priority, entry.sequence, message.id))

    def _after_growth(self, added: int, now_ms: int) -> None:
        if self._dry:
            self._dry = False
            self.distribution.wake_all()
        if self.overflow.excess(self.order.count, added):
            if not self.overflow.keeps_none:
                self.dispatch(now_ms)
            self._trim(added)
        if not self.noted_ready:
            self._host.note_ready(self)

    def _trim(self, added: int) -> None:
        for _ in range(self.overflow.excess(self.order.count, added)):
            entry = self.order.pop_least()
            self.tally.replaced += 1
            self._forget([entry.message], REPLACED)

    # ---- scheduled messages ----------------------------------------------------------------------

    def schedule(self, entry: Entry, due_ms: int) -> None:
        """Hold a new message aside until ``due_ms``; it counts as added now."""
        message = entry.message
        message.refs += 1
        self.tally.added += 1
        self.tally.size_bytes += message.size_bytes
        if message.head.persistent:
            self.tally.enter_durable(message)
        self._put_aside(entry, due_ms)

    def _put_aside(self, entry: Entry, due_ms: int) -> None:
        self.scheduled[entry.message.id] = entry
        self.tally.enter_scheduled(entry.message)
        self._host.note_due(due_ms, self, entry)

    def fall_due(self, entries: list[Entry], now_ms: int) -> None:
        """Put scheduled entries at the head, the earliest due first in line; on overflow the earliest goes."""
        restored = 0
        waiting = [entry for entry in entries if self.scheduled.get(entry.message.id) is entry]
        if self.durable:
            durable = [entry.message for entry in waiting if entry.message.head.persistent]
            if durable:
                self._host.log.fell_due(self.id, durable)
        for entry in reversed(waiting):
            del self.scheduled[entry.message.id]
            self.tally.leave_scheduled(entry.message)
            self.order.restore_at_head(entry, fresh=not entry.attempts)
            if entry.message.expires_ms:
                self._watch_expiry(entry)
            restored += 1
        if restored:
            self._after_growth(restored, now_ms)

    def take_back(self, entries: list[tuple[Entry, int]], now_ms: int) -> None:
        """After a restart: entries in order, each with the time it is due (0: ready). Rings trim as for arrivals."""
        tally = self.tally
        ready = 0
        for entry, due_ms in entries:
            message = entry.message
            tally.added += 1
            tally.size_bytes += message.size_bytes
            tally.enter_durable(message)
            message.refs += 1
            if due_ms:
                self._put_aside(entry, due_ms)
            else:
                self._append_expiring([entry])
                ready += 1
        self._trim(ready)
        if ready:
            self._host.note_ready(self)

    # ---- dispatch --------------------------------------------------------------------------------

    def dispatch(self, now_ms: int) -> None:
        """Offer ready entries to consumers until nothing is ready or everybody is parked."""
        if not self.gate.is_open:
            return
        order = self.order
        distribution = self.distribution
        while order.count:
            consumer = distribution.pick()
            if consumer is None:
                return
            entry = self._next_for(consumer, now_ms)
            if entry is None:
                distribution.park(consumer)
                self._dry = True
                continue
            self._deliver(consumer, entry)

    def _next_for(self, consumer: Consumer, now_ms: int) -> Entry | None:
        cursor = consumer.cursor
        if cursor is None:
            order = self.order
            while order.count:
                entry = order.pop()
                expires_ms = entry.message.expires_ms
                if not expires_ms or expires_ms > now_ms:
                    return entry
                self._expire(entry)
            return None
        while (found := cursor.advance()) is not None:
            message = found.message
            if message.expires_ms and message.expires_ms <= now_ms:
                self.order.remove(found, found.sequence)
                self._expire(found)
            elif consumer.wants(message):
                if consumer.destructive:
                    self.order.remove(found, found.sequence)
                return found
        return None

    def _deliver(self, consumer: Consumer, entry: Entry) -> None:
        consumer.take(entry)
        tally = self.tally
        if not consumer.settles:
            if consumer.destructive:
                tally.enter_delivery(entry.message)
            else:
                tally.read_count += 1
        if not consumer.listed:
            self._host.note_output(consumer)

    def sent(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The entries of a consumer's outbox were written: for a consumer that settles on send, that is the end of
        them.
        """
        if self._host.log.retains and self.durable and not consumer.browses:
            durable = [entry.message for entry in entries if entry.message.head.persistent]
            if durable:
                self._host.log.delivered(self.id, durable)
        if consumer.settles and consumer.destructive:
            self.was_used = True
            self.tally.acknowledged += len(entries)
            self._forget([entry.message for entry in entries], ACKED)

    # ---- settling and returning ------------------------------------------------------------------

    def acknowledge(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The consumer is done with entries that it let go."""
        if not consumer.destructive:
            self.tally.read_count -= len(entries)
            return
        self.tally.acknowledged += len(entries)
        self.was_used = True
        messages = [entry.message for entry in entries]
        for message in messages:
            self.tally.leave_delivery(message)
        self._forget(messages, ACKED)

    def release(self, consumer: Consumer, entries: list[Entry], *, failed: bool, now_ms: int) -> None:
        """Take back entries that the consumer let go, each to its own place; then the ring trims, before anybody else
        gets them.

        ``failed`` counts a delivery attempt, after which an entry may be dead or delayed (a NACK, an aborted
        acknowledgement, a lost connection); otherwise nothing is counted (UNSUBSCRIBE, DISCONNECT).
        """
        if not consumer.destructive:
            self.tally.read_count -= len(entries)
            return
        if self.deleted:
            for entry in entries:
                self.tally.leave_delivery(entry.message)
                self._kill(entry)
            return
        delayed: list[tuple[Entry, int]] = []
        restored = 0
        for entry in entries:
            self.tally.leave_delivery(entry.message)
            entry.redelivered = True
            if failed:
                entry.attempts += 1
                if self.redelivery.is_exhausted(entry.attempts):
                    self._host.note_dead(self, entry)
                    self._kill(entry)
                    continue
                due_ms = 0
                if self.redelivery.delay_ms > 0:
                    due_ms = now_ms + self.redelivery.delay_after(entry.attempts, entry.message.id)
                    delayed.append((entry, due_ms))
                if self.durable and entry.message.head.persistent:
                    self._host.log.attempted(self.id, entry.message, entry.attempts, due_ms)
            self.order.restore(entry)
            if entry.message.expires_ms:
                self._watch_expiry(entry)
            restored += 1
        self._trim(restored)
        for entry, due_ms in delayed:
            if self.order.remove(entry, entry.sequence):
                self._put_aside(entry, due_ms)
        if self._dry:
            self._dry = False
            self.distribution.wake_all()
        self._host.note_ready(self)

    def _kill(self, entry: Entry) -> None:
        self.was_used = True
        self.tally.killed += 1
        self._forget([entry.message], KILLED)

    def _expire(self, entry: Entry) -> None:
        """An entry that is out of the order already has expired."""
        self.was_used = True
        self._host.note_expired(self, entry)
        self.tally.expired += 1
        self._forget([entry.message], EXPIRED)

    def _forget(self, messages: list[Message], reason: str) -> None:
        """The queue no longer holds the messages, in whatever state they were."""
        tally = self.tally
        durable: list[Message] | None = None
        for message in messages:
            tally.size_bytes -= message.size_bytes
            if message.head.persistent:
                tally.leave_durable(message)
                if self.durable:
                    if durable is None:
                        durable = []
                    durable.append(message)
            message.refs -= 1
            if not message.refs:
                message.account.credit(message.memory_bytes)
        if durable is not None:
            self._host.log.settled(self.id, durable, reason)

    # ---- expiry ----------------------------------------------------------------------------------

    def expire_due(self, now_ms: int) -> None:
        """Remove ready entries whose time is over. What is in delivery or scheduled is left alone."""
        expiring = self._expiring
        while expiring and expiring[0][0] <= now_ms:
            _, priority, sequence, message_id = heappop(expiring)
            entry = self.order.at(priority, sequence)
            if entry is not None and entry.message.id == message_id:
                self.order.remove(entry, sequence)
                self._expire(entry)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, now_ms: int) -> None:
        """A consumer comes. Raises LimitError when the queue has as many as it may."""
        if 0 <= self.consumers_max <= self.consumer_count:
            raise LimitError(f"Queue {self.name} has reached its maximum of {self.consumers_max} consumers")
        if consumer.selector is not None or consumer.no_local or not consumer.destructive:
            consumer.cursor = self.order.open_cursor()
            consumer.cursor.sees_returns = consumer.destructive or self.non_destructive
        self.distribution.add(consumer)
        self.gate.consumer_came(self.consumer_count, now_ms)
        self.wake(consumer)
        if self.order.count and self.gate.is_open:
            self._host.note_ready(self)

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        if consumer.has_room and not consumer.closed:
            self.distribution.wake(consumer)
            if self.order.count:
                self._host.note_ready(self)

    def detach(self, consumer: Consumer, *, failed: bool, now_ms: int) -> None:
        """A consumer leaves: what it holds goes back (see ``release``), what was never sent as if it had not been
        picked.
        """
        consumer.closed = True
        if consumer.settles and consumer.destructive:
            self._take_back_unsent(consumer)
        unsent = {id(entry) for entry in consumer.outbox}
        entries = consumer.let_go_all()
        self._take_back(consumer, entries, unsent, failed, now_ms)
        self.distribution.remove(consumer)
        if consumer.cursor is not None:
            self.order.close_cursor(consumer.cursor)
        self.gate.consumer_left(self.consumer_count)
        self.was_used = True
        if not self.consumer_count:
            self.idle_since_ms = now_ms
            if self.purge_on_no_consumers:
                self.remove_all()
        else:
            self._wake_heir()

    def _wake_heir(self) -> None:
        """With an exclusive queue the next consumer takes over."""
        self.distribution.wake_all()
        self._host.note_ready(self)

    def _take_back(self, consumer: Consumer, entries: list[Entry], unsent: set[int], failed: bool, now_ms: int) -> None:
        if not unsent:
            if entries:
                self.release(consumer, entries, failed=failed, now_ms=now_ms)
            return
        waiting = [entry for entry in entries if id(entry) in unsent]
        seen = {id(entry): entry.redelivered for entry in waiting}
        self.release(consumer, waiting, failed=False, now_ms=now_ms)
        for entry in waiting:
            entry.redelivered = seen[id(entry)]
        sent = [entry for entry in entries if id(entry) not in unsent]
        if sent:
            self.release(consumer, sent, failed=failed, now_ms=now_ms)

    def _take_back_unsent(self, consumer: Consumer) -> None:
        """What was picked for or handed to a consumer that settles on send, and not written, is on the queue as
        before.
        """
        for entry in consumer.outbox:
            self.order.restore(entry)
        for entry in reversed(consumer.handed):
            message = entry.message
            self.tally.acknowledged -= 1
            self.tally.size_bytes += message.size_bytes
            message.refs += 1
            if message.refs == 1:
                message.account.charge(1, message.memory_bytes)
            self.order.restore_at_head(Entry(message), fresh=True)
        self._trim(len(consumer.outbox) + len(consumer.handed))
        consumer.outbox.clear()
        consumer.handed.clear()

    # ---- management ------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop dispatch; arrivals go on."""
        self.gate.paused = True

    def resume(self) -> None:
        """Dispatch again."""
        self.gate.paused = False
        self._host.note_ready(self)

    def tick_gate(self, now_ms: int) -> None:
        """Let a delay-before-dispatch run out."""
        if self.gate.tick(now_ms):
            self._host.note_ready(self)

    def remove_all(self) -> int:
        """Kill everything that is ready or scheduled; what is in delivery stays with its consumer. Returns how many
        went.
        """
        removed = 0
        while self.order.count:
            self._kill(self.order.pop())
            removed += 1
        for entry in self.scheduled.values():
            self.tally.leave_scheduled(entry.message)
            self._kill(entry)
            removed += 1
        self.scheduled.clear()
        self._expiring.clear()
        return removed
