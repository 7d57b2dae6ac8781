"""A queue: entries on their way from an address to consumers.

It is composed of an order, a distribution, an overflow rule and a gate, which decide; the queue carries out. It does
not route, does not know sessions or frames, and calls nobody back but its host, to which it hands what leaves for
another address.
"""

from __future__ import annotations

from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.entry import ABANDONED, ACKED, DEAD, DELETED, EXPIRED, LOST, NACKED, PURGED, Entry
from artemis_py.core.queue_groups import QueueGroups
from artemis_py.core.queue_pages import READY_MIN
from artemis_py.core.queue_times import not_before_ms
from artemis_py.errors import LimitError
from artemis_py.message import Message
from artemis_py.paged import PagedMessage
from artemis_py.records import Actor

_LOOKS_MAX: Final = 20_000
"""How many entries a consumer that chooses is shown at once, before others have their turn."""


class Queue(QueueGroups):
    """One queue."""

    # ---- arrivals --------------------------------------------------------------------------------

    def direct_consumer(self, messages: list[Message]) -> Consumer | None:
        """The consumer that may be handed arrivals without queueing them: alone, settling on send, taking everything,
        with room.
        """
        consumers = self.distribution.consumers
        if len(consumers) != 1 or self.order.count or consumers[0].outbox or self.overflow.keeps_none:
            return None
        if (
            self.last_values is not None
            or self.holds
            or self.alerts is not None
            or (self.backlogs and self.paged_count)
        ):
            return None
        consumer = consumers[0]
        if consumer.settles and consumer.cursor is None and consumer.room_bytes > 0 and self.gate.is_open:
            self._look_for_groups(messages)
            return self._unless_grouped(consumer)
        return None

    def _unless_grouped(self, consumer: Consumer) -> Consumer | None:
        return consumer if self.groups is None else None

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
        if len(entries) > 1 and self.overflow.sheds_bytes and not self.fits(len(entries), size_bytes):
            for entry in entries:  # what stays must not depend on how many came at once
                self.arrive([entry], entry.message.size_bytes, now_ms)
            return
        tally = self.tally
        tally.added += len(entries)
        tally.size_bytes += size_bytes
        special = self.lifetime is not None
        if self.groups is None and self.group_rule is not None:
            self._look_for_groups([entry.message for entry in entries])
        for entry in entries:
            message = entry.message
            message.refs += 1
            head = message.head
            if head.persistent:
                tally.durable_count += 1
                tally.durable_size_bytes += head.size_bytes + len(message.body)
            if message.expires_ms:
                special = True
        if self._ages is not None:
            self._note_ages(entries)
        if self.holds:
            self._append_free(self._hold_back(entries, now_ms), now_ms)
        elif self.last_values is not None:
            self._append_values(entries, now_ms)
        elif special:
            self._append_expiring(entries)
        else:
            self.order.extend(entries)
        self._after_growth(len(entries), now_ms)
        if self.alerts is not None:
            self._watch([entry.message for entry in entries], now_ms)

    def _after_growth(self, added: int, now_ms: int) -> None:
        self._wake_dry()
        if self.overflow.excess(self.order.count, added):
            if not self.overflow.keeps_none:
                self.dispatch(now_ms)
            self._trim(added)
        elif self.overflow.depth is not None and self._is_too_deep():
            self._leave_depth(now_ms)
        if not self.noted_ready:
            self._host.note_ready(self)

    def _trim(self, added: int) -> None:
        excess = self.overflow.excess(self.order.count, added)
        for _ in range(excess):
            self._replace(self.order.pop_least())
        self._note_dropped(excess)

    def _fit_again(self, restored: int) -> None:
        """Entries are back at their places: what is too much goes."""
        if not self.overflow.sheds:
            self._trim(restored)
        elif restored:
            self._shed(arriving=False)

    def _leave_depth(self, now_ms: int) -> None:
        """Something came and the queue is too deep, unless a consumer takes it."""
        if not self.overflow.keeps_none:
            self.dispatch(now_ms)
        if self.overflow.sheds:
            self._shed(arriving=True)
        else:
            self._stop_flow()

    # ---- scheduled messages ----------------------------------------------------------------------

    def schedule(self, entry: Entry, due_ms: int, now_ms: int) -> None:
        """Hold a new message aside until ``due_ms``; it counts as added now."""
        message = entry.message
        self._look_for_groups([message])
        message.refs += 1
        self.tally.added += 1
        self.tally.size_bytes += message.size_bytes
        if message.head.persistent:
            self.tally.enter_durable(message)
        self._note_ages([entry])
        self._put_aside(entry, due_ms)
        if self.overflow.depth is not None and self._is_too_deep():
            self._leave_depth(now_ms)
        if self.alerts is not None:
            self._watch([message], now_ms)

    def _put_aside(self, entry: Entry, due_ms: int) -> None:
        if self.holds:  # what is scheduled is not due before it is valid
            due_ms = not_before_ms(entry.message, due_ms) or due_ms
        self.scheduled[entry.message.id] = entry
        self.tally.enter_scheduled(entry.message)
        if self.groups is not None and entry.attempts:
            self.groups.put_aside(entry.message)
        self._host.note_due(due_ms, self, entry)

    def fall_due(self, entries: list[Entry], now_ms: int) -> None:
        """Put scheduled entries at the head, the earliest due first in line; on overflow the earliest goes. What waited
        for another attempt and has a group goes to its own place: nothing of the group went by.
        """
        restored = 0
        waiting = [entry for entry in entries if self.scheduled.get(entry.message.id) is entry]
        if self._held_back:
            freed = [entry for entry in waiting if entry.message.id in self._held_back]
            for entry in freed:
                self._free(entry)
            restored = len(freed)
            waiting = [entry for entry in waiting if entry.message.id in self.scheduled]
        if self.last_values is not None:
            waiting = self._enter_values_due(waiting)
        if self.durable:
            heads = [one.message for one in waiting if one.message.head.persistent and not self._keeps_place(one)]
            in_journal = [message for message in heads if message.__class__ is not PagedMessage]
            if in_journal:
                self._host.log.fell_due(self.id, in_journal)
        for entry in reversed(waiting):
            del self.scheduled[entry.message.id]
            self.tally.leave_scheduled(entry.message)
            if self._keeps_place(entry):
                self.order.restore(entry)
            else:
                self.order.restore_at_head(entry, fresh=not entry.attempts)
            self._left_aside(entry)
            if self.expires_ms(entry.message):
                self._watch_expiry(entry)
            restored += 1
        if restored:
            self._after_growth(restored, now_ms)

    def _keeps_place(self, entry: Entry) -> bool:
        """Does an entry that is put aside go to its own place when it is due, and not to the head?"""
        if not entry.attempts or self.groups is None:
            return False
        return self.groups.rule.group_of(entry.message) is not None

    def take_back(self, entries: list[tuple[Entry, int]], now_ms: int) -> None:
        """After a restart: entries in order, each with the time it is due (0: ready). Rings trim as for arrivals."""
        tally = self.tally
        self._look_for_groups([entry.message for entry, _ in entries])
        self._note_ages([entry for entry, _ in entries])
        ready: list[Entry] = []
        restored = 0
        for entry, due_ms in entries:
            message = entry.message
            size_bytes = message.head.size_bytes + len(message.body)
            tally.size_bytes += size_bytes
            tally.durable_size_bytes += size_bytes
            message.refs += 1
            if due_ms <= now_ms and self._keeps_place(entry):
                due_ms = 0  # noqa: PLW2901 - it is due, and here its place comes
            restored += not due_ms
            if due_ms:
                if self._keeps_place(entry):
                    self._append_restored(ready, now_ms)
                    ready = []
                    entry.sequence = self.order.take_sequence(message)
                self._put_aside(entry, due_ms)
                if entry.attempts and self.last_values is not None:
                    self._enter_value(entry)
            elif self.last_values is not None:
                self._append_restored([entry], now_ms)
            else:
                ready.append(entry)
        tally.added += len(entries)
        tally.durable_count += len(entries)
        self._append_restored(ready, now_ms)
        self._fit_again(restored)
        self._stop_flow()
        if self.alerts is not None:
            self._watch([entry.message for entry, _ in entries], now_ms)
        if restored:
            self._host.note_ready(self)

    def _append_restored(self, entries: list[Entry], now_ms: int) -> None:
        self._append_free(self._hold_back(entries, now_ms) if self.holds else entries, now_ms)

    # ---- dispatch --------------------------------------------------------------------------------

    def _note_ready(self) -> None:
        self._host.note_ready(self)

    def dispatch(self, now_ms: int) -> None:
        """Offer ready entries to consumers until nothing is ready or everybody is parked."""
        order = self.order
        if self.backlogs:
            self._begin_reading(now_ms)
        if self._tired:
            self._wake_tired()
        if not self.gate.is_open or self._groups_wait():
            self._show(now_ms)
            return
        if self.backlogs and order.count < READY_MIN and self._takers_are_here() and self._read_ahead(now_ms):
            self._wake_dry()
        distribution = self.distribution
        while order.count or (self.backlogs and self.paged_count):
            consumer = distribution.pick()
            if consumer is None:
                if not (self._cramped and self._has_space()):
                    return
                self._cramped = False  # what was delivered made room for what others may want
                self._wake_dry()
                continue
            if self._is_grouped(consumer):
                entry = self._next_grouped(consumer, now_ms)
            elif consumer.cursor is None and distribution.stays_with(consumer) and self._may_run(order.count):
                self._deliver_run(consumer, now_ms)
                continue
            else:
                entry = self._next_for(consumer, now_ms)
            if entry is None:
                distribution.park(consumer)
                self._dry = True
                continue
            self._deliver(consumer, entry)

    def _may_run(self, ready_count: int) -> bool:
        """Is what is ready next in order, so that pages need not be asked?"""
        return ready_count > 0 and not (self.backlogs and any(backlog.has_early for backlog in self.backlogs.values()))

    def _deliver_run(self, consumer: Consumer, now_ms: int) -> None:
        """Give a consumer all that it has room and credit for: nobody else is in line."""
        order = self.order
        lifetime = self.lifetime
        start = len(consumer.outbox)
        while order.count and consumer.room_bytes > 0 and consumer.credit_bytes > 0:
            entry = order.pop()
            expires_ms = entry.message.expires_ms if lifetime is None else lifetime.expires_ms(entry.message)
            if expires_ms and expires_ms <= now_ms:
                start = self._count_run(consumer, start)
                self._expire(entry)
            else:
                consumer.take(entry)
        self._count_run(consumer, start)

    def _count_run(self, consumer: Consumer, start: int) -> int:
        """What is in the consumer's outbox from ``start`` on is in delivery; returns its end. The depth must be right
        before anything else leaves.
        """
        taken = [entry.message for entry in consumer.outbox[start:]]
        if not consumer.settles:
            self.tally.enter_delivery_run(taken)
        elif self.overflow.depth is not None:
            self._picked_bytes += sum([message.size_bytes for message in taken])
        if taken and not consumer.listed:
            self._host.note_output(consumer)
        return start + len(taken)

    def _next_for(self, consumer: Consumer, now_ms: int) -> Entry | None:
        cursor = consumer.cursor
        if cursor is None:
            order = self.order
            while order.count or (self.backlogs and self._read_ahead(now_ms)):
                if self.backlogs and not self._read_before(now_ms):
                    return None
                entry = order.pop()
                expires_ms = self.expires_ms(entry.message)
                if not expires_ms or expires_ms > now_ms:
                    return entry
                self._expire(entry)
            return None
        for _ in range(_LOOKS_MAX):
            found = cursor.advance()
            if found is None:
                return self._search(consumer, now_ms) if self.backlogs else None
            message = found.message
            if 0 < self.expires_ms(message) <= now_ms:
                self.order.remove(found, found.sequence)
                self._expire(found)
            elif consumer.wants(message) and not (self.backlogs and self._was_shown(consumer, message)):
                if consumer.destructive:
                    self.order.remove(found, found.sequence)
                return found
        self._tired.append(consumer)
        self._note_ready()
        return None

    def _deliver(self, consumer: Consumer, entry: Entry) -> None:
        consumer.take(entry)
        tally = self.tally
        if not consumer.settles:
            if consumer.destructive:
                tally.enter_delivery(entry.message)
            else:
                tally.read_count += 1
        elif consumer.destructive and self.overflow.depth is not None:
            self._picked_bytes += entry.message.size_bytes
        if not consumer.listed:
            self._host.note_output(consumer)

    def sent(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The entries of a consumer's outbox were written: for a consumer that settles on send, that is the end of
        them.
        """
        if self._host.log.retains and self.durable and not consumer.browses:
            durable = [entry.message for entry in entries if entry.message.head.persistent]
            if durable:
                self._host.log.delivered(self.id, durable, consumer.actor)
        if consumer.settles and consumer.destructive:
            self.was_used = True
            self.tally.acknowledged += len(entries)
            if self._picked_bytes:
                self._picked_bytes -= sum([entry.message.size_bytes for entry in entries])
            messages = [entry.message for entry in entries]
            self._forget(messages, ACKED, consumer.actor)
            self._settle_groups(messages)

    # ---- settling and returning ------------------------------------------------------------------

    def acknowledge(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The consumer is done with entries that it let go."""
        if not consumer.destructive:
            self.tally.read_count -= len(entries)
            return
        self.tally.acknowledged += len(entries)
        self.was_used = True
        messages = [entry.message for entry in entries]
        self.tally.leave_delivery_run(messages)
        self._forget(messages, ACKED, consumer.actor)
        if self.groups is not None:
            self._settle_groups(messages)

    def release(
        self, consumer: Consumer, entries: list[Entry], *, failed: bool, now_ms: int, cause: str = NACKED
    ) -> None:
        """Take back entries that the consumer let go, each to its own place; then the ring trims, before anybody else
        gets them.

        ``failed`` counts a delivery attempt, after which an entry may be dead or delayed (a NACK, an aborted
        acknowledgement, a lost connection: the ``cause``); otherwise nothing is counted (UNSUBSCRIBE, DISCONNECT).
        """
        if not consumer.destructive:
            self.tally.read_count -= len(entries)
            return
        if self.deleted:
            for entry in entries:
                self.tally.leave_delivery(entry.message)
                self._kill(entry, DELETED)
            return
        delayed: list[tuple[Entry, int]] = []
        restored = 0
        for entry in entries:
            self.tally.leave_delivery(entry.message)
            if self._is_outdated(entry):
                continue
            entry.redelivered = True
            if failed:
                entry.attempts += 1
                if self.redelivery.is_exhausted(entry.attempts):
                    self._host.note_dead(self, entry)
                    if self._host.log.retains:  # a restart does not need it, but who asks what the message died of
                        self._note_attempt(entry, 0, consumer, cause)
                    self._kill(entry, DEAD, consumer.actor)
                    continue
                due_ms = 0
                if self.redelivery.delay_ms > 0:
                    due_ms = now_ms + self.redelivery.delay_after(entry.attempts, entry.message.id)
                    delayed.append((entry, due_ms))
                self._note_attempt(entry, due_ms, consumer, cause)
            self.order.restore(entry)
            if isinstance(entry.message, PagedMessage):
                self.backlogs[entry.message.page.stream].came_back(entry.message)
            if self.expires_ms(entry.message):
                self._watch_expiry(entry)
            restored += 1
        self._fit_again(restored)
        for entry, due_ms in delayed:
            if self.order.remove(entry, entry.sequence):
                self._put_aside(entry, due_ms)
        self._settle_groups([entry.message for entry in entries])
        self._wake_dry()
        self._host.note_ready(self)

    def _note_attempt(self, entry: Entry, due_ms: int, consumer: Consumer, cause: str) -> None:
        """What a restart must know of a failed delivery."""
        message = entry.message
        if self.durable and message.head.persistent:
            if isinstance(message, PagedMessage):
                self._host.log.page_attempted(self.id, message, entry.attempts, due_ms, consumer.actor, cause)
            else:
                self._host.log.attempted(self.id, message, entry.attempts, due_ms, consumer.actor, cause)

    def _kill(self, entry: Entry, reason: str, by: Actor | None = None) -> None:
        self.was_used = True
        self.tally.killed += 1
        self._forget([entry.message], reason, by)

    def _expire(self, entry: Entry) -> None:
        """An entry that is out of the order already has expired."""
        self.was_used = True
        self._host.note_expired(self, entry)
        self.tally.expired += 1
        self._forget([entry.message], EXPIRED)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, now_ms: int) -> None:
        """A consumer comes. Raises LimitError when the queue has as many as it may, or admits others only."""
        if 0 <= self.consumers_max <= self.taker_count and not consumer.browses:
            raise LimitError(f"Queue {self.name} has reached its maximum of {self.consumers_max} consumers")
        self.exclusivity.admit(self.name, consumer, self.distribution.consumers)
        if consumer.chooses or not consumer.destructive:
            consumer.cursor = self.order.open_cursor()
            consumer.cursor.sees_returns = consumer.destructive or self.non_destructive
        self.distribution.add(consumer)
        self._attach_to_groups(consumer)
        if not consumer.browses:
            self.gate.consumer_came(self.taker_count, now_ms)
        self.wake(consumer)
        if (self.order.count or self.paged_count) and (self.gate.is_open or consumer.browses):
            self._host.note_ready(self)

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        if consumer.has_room and not consumer.closed:
            self.distribution.wake(consumer)
            if self.order.count or self.paged_count:
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
        self._detach_from_groups(consumer)
        if consumer.cursor is not None:
            self.order.close_cursor(consumer.cursor)
            consumer.page_readers.clear()
        self.gate.consumer_left(self.taker_count)
        self.was_used = True
        if not self.consumer_count:
            self.idle_since_ms = now_ms
        else:
            self.distribution.wake_all()  # with an exclusive queue the next consumer takes over
            self._host.note_ready(self)
        if self.purge_on_no_consumers and not self.taker_count and not consumer.browses:
            self.remove_all(ABANDONED)

    def _take_back(self, consumer: Consumer, entries: list[Entry], unsent: set[int], failed: bool, now_ms: int) -> None:
        if not unsent:
            if entries:
                self.release(consumer, entries, failed=failed, now_ms=now_ms, cause=LOST)
            return
        waiting = [entry for entry in entries if id(entry) in unsent]
        seen = {id(entry): entry.redelivered for entry in waiting}
        self.release(consumer, waiting, failed=False, now_ms=now_ms)
        for entry in waiting:
            entry.redelivered = seen[id(entry)]
        sent = [entry for entry in entries if id(entry) not in unsent]
        if sent:
            self.release(consumer, sent, failed=failed, now_ms=now_ms, cause=LOST)

    def _take_back_unsent(self, consumer: Consumer) -> None:
        """What was picked for or handed to a consumer that settles on send, and not written, is on the queue as
        before.
        """
        if self._picked_bytes:
            self._picked_bytes -= sum([entry.message.size_bytes for entry in consumer.outbox])
        outdated: list[Entry] = []
        for entry in consumer.outbox:
            if self.last_values is not None and self.last_values.is_outdated(entry):
                outdated.append(entry)
                continue
            self.order.restore(entry)
            if self.expires_ms(entry.message):
                self._watch_expiry(entry)
        for entry in outdated:  # when the others stand again: what is left decides whether senders go on
            self._replace(entry)
        for entry in reversed(consumer.handed):
            message = entry.message
            self.tally.acknowledged -= 1
            self.tally.size_bytes += message.size_bytes
            message.refs += 1
            if message.refs == 1:
                message.account.charge(1, message.memory_bytes)
            returned = Entry(message)
            self.order.restore_at_head(returned, fresh=True)
            if self.expires_ms(message):
                self._watch_expiry(returned)
        self._fit_again(len(consumer.handed) + len(consumer.outbox) - len(outdated))
        self._settle_groups([entry.message for entry in consumer.outbox])
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

    def ring(self, now_ms: int) -> None:
        """A time has come for which the queue set an alarm."""
        self.expire_due(now_ms)
        if self.alerts is not None:
            self._look(now_ms)

    def tick_gate(self, now_ms: int) -> None:
        """Let a delay-before-dispatch run out."""
        if self.gate.tick(now_ms):
            self._host.note_ready(self)

    def remove_all(self, reason: str = PURGED) -> int:
        """Kill everything that is ready or scheduled; what is in delivery stays with its consumer. Returns how many
        went.
        """
        removed = 0
        while self.order.count:
            self._kill(self.order.pop(), reason)
            removed += 1
        for entry in self.scheduled.values():
            self.tally.leave_scheduled(entry.message)
            self._left_aside(entry)
            self._kill(entry, reason)
            removed += 1
        self.scheduled.clear()
        self._held_back.clear()
        self._expiring.clear()
        removed += self._remove_paged(reason)
        self._resume_flow()
        return removed
