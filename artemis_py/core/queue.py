"""A queue: entries on their way from an address to consumers.

It is composed of an order, a distribution, an overflow rule and a gate, which decide; the queue carries out. It does
not route, does not know sessions or frames, and calls nobody back but its host, to which it hands what leaves for
another address.
"""

from __future__ import annotations

from typing import Final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.entry import ABANDONED, ACKED, EXPIRED, LOST, NACKED, PURGED, Entry
from artemis_py.core.falling import FallDue
from artemis_py.core.queue_groups import QueueGroups
from artemis_py.core.queue_pages import READY_MIN
from artemis_py.core.queue_times import not_before_ms
from artemis_py.core.queue_work import SLICE_MAX, QueueWork, QueueWorks, Settling
from artemis_py.core.removal import EXPIRE_UNITS, Expiring, Removal
from artemis_py.core.returning import Return
from artemis_py.core.shared_cursors import SharedCursors
from artemis_py.errors import LimitError
from artemis_py.message import Message
from artemis_py.paged import PagedMessage
from artemis_py.records import Actor

_BYTES_SHIFT: Final = 11
"""So many bytes that go out, as a power of two, cost a unit beside the one that each message costs."""


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
            or self.is_held
        ):
            return None
        consumer = consumers[0]
        if consumer.settles and consumer.cursor is None and consumer.room_bytes > 0 and self.gate.is_open:
            self.look_for_groups(messages)
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
        self.host.note_output(consumer)

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
            self.look_for_groups([entry.message for entry in entries])
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
            self.note_ages(entries)
        if self.holds:
            self._append_free(self._hold_back(entries, now_ms), now_ms)
        elif self.last_values is not None:
            self._append_values(entries, now_ms)
        elif special:
            self._append_expiring(entries)
        else:
            self.order.extend(entries)
        self.after_growth(len(entries), now_ms)
        if self.alerts is not None:
            self.watch([entry.message for entry in entries], now_ms)

    def after_growth(self, added: int, now_ms: int) -> None:
        """Entries were added: consumers with room are served first, then the queue is trimmed to its limit."""
        self.wake_dry()
        if self.is_held and self.works is not None:
            self.works.late_count += added
            self.stop_flow()
            return
        if self.overflow.excess(self.order.count, added):
            if not self.overflow.keeps_none:
                self.offer_first(now_ms)
            self._trim(added)
        elif self.overflow.depth is not None and self.is_too_deep():
            self._leave_depth(now_ms)
        if not self.noted_ready:
            self.host.note_ready(self)

    def _trim(self, added: int) -> None:
        excess = self.overflow.excess(self.order.count, added)
        for _ in range(excess):
            self.give_up(self.order.pop_least())
        self.note_dropped(excess)

    def fit_again(self, restored: int) -> None:
        """Trim to the limit after entries are put back."""
        if not self.overflow.sheds:
            self._trim(restored)
        elif restored:
            self._shed(arriving=False)

    def _leave_depth(self, now_ms: int) -> None:
        """Something came and the queue is too deep, unless a consumer takes it."""
        if not self.overflow.keeps_none:
            self.offer_first(now_ms)
        if self.overflow.sheds:
            self._shed(arriving=True)
        else:
            self.stop_flow()

    # ---- scheduled messages ----------------------------------------------------------------------

    def schedule(self, entry: Entry, due_ms: int, now_ms: int) -> None:
        """Hold a new message aside until ``due_ms``; it counts as added now."""
        message = entry.message
        self.look_for_groups([message])
        message.refs += 1
        self.tally.added += 1
        self.tally.size_bytes += message.size_bytes
        if message.head.persistent:
            self.tally.enter_durable(message)
        self.note_ages([entry])
        self.put_aside(entry, due_ms)
        if self.overflow.depth is not None and self.is_too_deep():
            self._leave_depth(now_ms)
        if self.alerts is not None:
            self.watch([message], now_ms)

    def put_aside(self, entry: Entry, due_ms: int) -> None:
        valid_ms = not_before_ms(entry.message, due_ms) if self.holds else 0
        is_date = valid_ms > 0 or self._is_date(entry)  # what is scheduled is not due before it is valid
        self.scheduled[entry.message.id] = entry
        self.tally.enter_scheduled(entry.message)
        if self.groups is not None and entry.attempts:
            self.groups.put_aside(entry.message)
        self.host.note_due(valid_ms or due_ms, self, entry, is_date=is_date)

    def fall_due(self, entries: list[Entry], now_ms: int, budget: Budget) -> None:
        """Scheduled entries, the earliest first, take their places."""
        self.begin(FallDue(self, entries), now_ms, budget)

    def keeps_place(self, entry: Entry) -> bool:
        """Does an entry that is put aside go to its own place when it is due, and not to the head?"""
        if not entry.attempts or self.groups is None:
            return False
        return self.groups.rule.group_of(entry.message) is not None

    def append_restored(self, entries: list[Entry], now_ms: int) -> None:
        """After a restart: entries that are ready, or will be at their places."""
        self._append_free(self._hold_back(entries, now_ms) if self.holds else entries, now_ms)

    # ---- dispatch --------------------------------------------------------------------------------

    def _note_ready(self) -> None:
        self.host.note_ready(self)

    def dispatch(self, now_ms: int, floor: int = 0) -> None:
        """Offer ready entries to consumers until nothing is ready or everybody is parked, or until the turn's budget
        has come down to ``floor``: then the queue is noted ready, and goes on with whose turn it is.
        """
        if self.is_held:
            return
        order = self.order
        budget = self.host.budget
        budget.spend(1)
        if self.backlogs:
            self._begin_reading(now_ms)
        if self._tired or self._has_lost_one or self._waking:
            self._wake_for_turn()
        if not self.gate.is_open or self._groups_wait():
            self._show(now_ms, floor)
            return
        if self.backlogs and order.count < READY_MIN and self._takers_are_here() and self._read_ahead(now_ms):
            self.wake_dry()
        distribution = self.distribution
        while order.count or (self.backlogs and self.paged_count):
            consumer = distribution.pick()
            if consumer is None:
                if not self._others_are_woken(floor):
                    return
                continue
            if self._is_grouped(consumer):
                entry = self._next_grouped(consumer, now_ms)
            elif consumer.cursor is None and distribution.stays_with(consumer) and self._may_run(order.count):
                self._deliver_run(consumer, now_ms)
                if budget.left <= floor:
                    self._note_ready()
                    return
                continue
            else:
                entry = self._next_for(consumer, now_ms)
            budget.spend(consumer.take_asked())
            if entry is not None:
                self._deliver(consumer, entry)
            elif self._was_cut:
                self._was_cut = False
            else:
                distribution.park(consumer)
                self._dry = True
            if budget.left <= floor:
                self._note_ready()
                return

    def _others_are_woken(self, floor: int) -> bool:
        """All who were awake have what they can have: may others want what is there, and does the budget let them be
        asked now?
        """
        if self._waking:
            self._wake_some()
            if self.host.budget.left > floor:
                return True
            self._note_ready()
        elif self._cramped and self._has_space():
            self._cramped = False  # what was delivered made room for what others may want
            self.wake_dry()
            return True
        return False

    def _may_run(self, ready_count: int) -> bool:
        """Is what is ready next in order, so that pages need not be asked?"""
        return ready_count > 0 and not (self.backlogs and any(backlog.has_early for backlog in self.backlogs.values()))

    def _deliver_run(self, consumer: Consumer, now_ms: int) -> None:
        """Give a consumer all that it has room and credit for: nobody else is in line."""
        order = self.order
        lifetime = self.lifetime
        start = len(consumer.outbox)
        room_bytes = consumer.room_bytes
        while order.count and consumer.room_bytes > 0 and consumer.credit_bytes > 0:
            entry = order.pop()
            expires_ms = entry.message.expires_ms if lifetime is None else lifetime.expires_ms(entry.message)
            if expires_ms and expires_ms <= now_ms:
                start = self._count_run(consumer, start)
                self.expire([entry])
                self.host.budget.spend(EXPIRE_UNITS)
                if self.host.budget.is_spent:
                    break
            else:
                consumer.take(entry)
        self._count_run(consumer, start)
        self.host.budget.spend((room_bytes - consumer.room_bytes) >> _BYTES_SHIFT)

    def _count_run(self, consumer: Consumer, start: int) -> int:
        """What is in the consumer's outbox from ``start`` on is in delivery; returns its end. The depth must be right
        before anything else leaves.
        """
        taken = [entry.message for entry in consumer.outbox[start:]]
        self.host.budget.spend(len(taken))
        if not consumer.settles:
            self.tally.enter_delivery_run(taken)
        elif self.overflow.depth is not None:
            self._picked_bytes += sum([message.size_bytes for message in taken])
        if taken and not consumer.listed:
            self.host.note_output(consumer)
        return start + len(taken)

    def _next_for(self, consumer: Consumer, now_ms: int) -> Entry | None:
        cursor = consumer.cursor
        budget = self.host.budget
        if cursor is None:
            order = self.order
            while order.count or (self.backlogs and self._read_ahead(now_ms)):
                if self.backlogs and not self._read_before(now_ms):
                    return None
                entry = order.pop()
                expires_ms = self.expires_ms(entry.message)
                if not expires_ms or expires_ms > now_ms:
                    return entry
                self.expire([entry])
                budget.spend(EXPIRE_UNITS)
                if budget.is_spent:
                    self._was_cut = True
                    break
            return None
        for _ in range(min(SLICE_MAX, max(budget.left, 1))):
            budget.spend(1)
            found = cursor.advance()
            if found is None:
                return self._search(consumer, now_ms) if self.backlogs else None
            message = found.message
            if 0 < self.expires_ms(message) <= now_ms:
                self.order.remove(found, found.sequence)
                self.expire([found])
                budget.spend(EXPIRE_UNITS)
            elif consumer.wants(message) and not (self.backlogs and self._was_shown(consumer, message)):
                if consumer.destructive:
                    self.order.remove(found, found.sequence)
                return found
            if consumer.asked_units >= SLICE_MAX:
                break
        self._was_cut = True
        return None

    def _deliver(self, consumer: Consumer, entry: Entry) -> None:
        room_bytes = consumer.room_bytes
        consumer.take(entry)
        self.host.budget.spend(1 + ((room_bytes - consumer.room_bytes) >> _BYTES_SHIFT))
        tally = self.tally
        if not consumer.settles:
            if consumer.destructive:
                tally.enter_delivery(entry.message)
            else:
                tally.read_count += 1
        elif consumer.destructive and self.overflow.depth is not None:
            self._picked_bytes += entry.message.size_bytes
        if not consumer.listed:
            self.host.note_output(consumer)

    def sent(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The entries of a consumer's outbox were written: for a consumer that settles on send, that is the end of
        them.
        """
        if consumer.actor is not None:
            durable = [entry.message for entry in entries if entry.message.head.persistent]
            if durable:
                self.host.log.story.delivered(self.id, durable, consumer.actor)
        if consumer.settles and consumer.destructive:
            self.was_used = True
            self.tally.acknowledged += len(entries)
            if self._picked_bytes:
                self._picked_bytes -= sum([entry.message.size_bytes for entry in entries])
            messages = [entry.message for entry in entries]
            self._forget(messages, ACKED, consumer.actor)
            self.settle_groups(messages)

    # ---- what may take more than a turn ----------------------------------------------------------

    def begin(self, work: QueueWork, now_ms: int, budget: Budget | None = None) -> QueueWork | None:
        """Carry something out, behind what was begun before. Returns it when it is not done yet: it goes on in later
        turns. ``budget``: that of a chore of which it is a part, instead of the turn's.
        """
        if self.works is None:
            if work.work(self.host.budget if budget is None else budget, now_ms):
                return None
            self.works = QueueWorks(self)
            self.host.agenda.add(self.works)
        self.works.add(work)
        return work

    def go_on(self, late_count: int, now_ms: int) -> None:
        """No entries are being moved any more: so many that came meanwhile are looked at, and consumers are served."""
        if not self.deleted:
            if late_count:
                self.after_growth(late_count, now_ms)
            self._note_ready()

    def grow(self, added: int, now_ms: int) -> None:
        """What is under way has put entries on the queue and ends with that; see ``after_growth``."""
        works = self.works
        if works is None:
            self.after_growth(added, now_ms)
        else:
            works.is_lifted = True
            self.after_growth(added, now_ms)
            works.is_lifted = False

    def acknowledge_up_to(self, consumer: Consumer, message_id: int, now_ms: int) -> QueueWork | None:
        """The consumer is done with a held message and all that were sent to it before. Returns what is not done
        yet.
        """
        if self.works is None and len(consumer.held) <= self.host.budget.left:
            entries = consumer.let_go_up_to(message_id)
            self.host.budget.spend(len(entries))
            self.acknowledge(consumer, entries)
            return None
        return self.begin(Settling(self, consumer, message_id), now_ms)

    def refuse_up_to(self, consumer: Consumer, message_id: int, now_ms: int) -> QueueWork | None:
        """The consumer refuses a held message and all that were sent to it before. Returns what is not done yet."""
        return self.begin(Return(self, consumer, None, failed=True, up_to=message_id), now_ms)

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
            self.settle_groups(messages)

    def release(
        self, consumer: Consumer, entries: list[Entry], *, failed: bool, now_ms: int, cause: str = NACKED
    ) -> QueueWork | None:
        """Take back entries that the consumer let go; see ``Return``. Returns what is not done yet."""
        return self.begin(Return(self, consumer, entries, failed=failed, cause=cause), now_ms)

    def note_attempt(self, entry: Entry, due_ms: int, consumer: Consumer, cause: str) -> None:
        """What a restart must know of a failed delivery."""
        message = entry.message
        if self.durable and message.head.persistent:
            if isinstance(message, PagedMessage):
                self.host.log.page_attempted(self.id, message, entry.attempts, due_ms, consumer.actor, cause)
            else:
                self.host.log.attempted(self.id, message, entry.attempts, due_ms, consumer.actor, cause)

    def kill(self, messages: list[Message], reason: str, by: Actor | None = None) -> None:
        """The queue is done with messages that are out of the order already, whoever may have wanted them."""
        if messages:
            self.was_used = True
            self.tally.killed += len(messages)
            self._forget(messages, reason, by)

    def expire(self, entries: list[Entry]) -> None:
        """Entries that are out of the order already have expired."""
        if entries:
            self.was_used = True
            for entry in entries:
                self.host.note_expired(self, entry)
            self.tally.expired += len(entries)
            self._forget([entry.message for entry in entries], EXPIRED)

    def tell_left(self, consumer: Consumer, *, failed: bool) -> None:
        """A consumer left, and what it held is back: tell a log that is retained."""
        if consumer.actor is not None:
            self.host.log.story.consumer_closed(consumer.actor, failed=failed)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, now_ms: int) -> None:
        """A consumer comes. Raises LimitError when the queue has as many as it may, or admits others only."""
        if 0 <= self.consumers_max <= self.taker_count and not consumer.browses:
            raise LimitError(f"Queue {self.name} has reached its maximum of {self.consumers_max} consumers")
        self.exclusivity.admit(self.name, consumer, self.distribution.consumers)
        if consumer.chooses or not consumer.destructive:
            if self.shared_cursors is None:
                self.shared_cursors = SharedCursors()
            consumer.cursor = self.shared_cursors.open(consumer, self.order)
            consumer.cursor.sees_returns = consumer.destructive or self.non_destructive
        self.distribution.add(consumer)
        self._attach_to_groups(consumer)
        if not consumer.browses:
            self.gate.consumer_came(self.taker_count, self.host.clock.steady_ms(now_ms))
        self.wake(consumer)
        if (self.order.count or self.paged_count) and (self.gate.is_open or consumer.browses):
            self.host.note_ready(self)

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        if consumer.has_room and not consumer.closed:
            self.distribution.wake(consumer)
            if self.order.count or self.paged_count:
                self.host.note_ready(self)

    def detach(self, consumer: Consumer, *, failed: bool, now_ms: int) -> QueueWork | None:
        """A consumer leaves: what it holds goes back (see ``Return``), what was never sent as if it had not been
        picked. Returns what is not done yet.
        """
        consumer.closed = True
        if consumer.settles and consumer.destructive:
            self._take_back_unsent(consumer)
        waiting = [entry for entry in consumer.outbox if consumer.held.pop(entry.message.id, None) is not None]
        consumer.outbox.clear()
        if waiting:
            self.begin(Return(self, consumer, waiting, failed=False, sent=False), now_ms)
        unfinished: QueueWork | None = None
        if consumer.held:
            unfinished = self.begin(Return(self, consumer, None, failed=failed, cause=LOST, leaves=True), now_ms)
        else:
            self.tell_left(consumer, failed=failed)
        self.distribution.remove(consumer)
        self._detach_from_groups(consumer)
        if consumer.cursor is not None and self.shared_cursors is not None:
            self.shared_cursors.close(consumer, consumer.cursor, self.order)
            consumer.page_readers.clear()
        self.gate.consumer_left(self.taker_count)
        self.was_used = True
        if not self.consumer_count:
            self.idle_since_ms = self.host.clock.steady_ms(now_ms)
        else:
            self._has_lost_one = True  # with an exclusive queue the next consumer takes over
            self.host.note_ready(self)
        if self.purge_on_no_consumers and not self.taker_count and not consumer.browses:
            unfinished = self.purge(ABANDONED, now_ms) or unfinished
        return unfinished

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
                self.watch_expiry(entry)
        for entry in outdated:  # when the others stand again: what is left decides whether senders go on
            self.give_up(entry)
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
                self.watch_expiry(returned)
        self.fit_again(len(consumer.handed) + len(consumer.outbox) - len(outdated))
        self.settle_groups([entry.message for entry in consumer.outbox])
        consumer.outbox.clear()
        consumer.handed.clear()

    # ---- management ------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop dispatch; arrivals go on."""
        self.gate.paused = True

    def resume(self) -> None:
        """Dispatch again."""
        self.gate.paused = False
        self.host.note_ready(self)

    def ring(self, now_ms: int) -> None:
        """A time has come for which the queue set an alarm."""
        self.expire_due(now_ms)
        if self.alerts is not None:
            self.alerts.next_ms = 0  # it may have come before its time
            self._look(now_ms)

    def tick_gate(self, steady_ms: int) -> None:
        """Let a delay-before-dispatch run out."""
        if self.gate.tick(steady_ms):
            self.host.note_ready(self)

    def expire_due(self, now_ms: int) -> None:
        """Remove entries of which the time is over, ready or held back. What is in delivery or scheduled is left
        alone.
        """
        if not self.expiring:
            return
        if self.expiring[0][0] > now_ms:
            self.set_alarm()
        elif self._expiry is None or self._expiry.done:
            self._expiry = self.begin(Expiring(self), now_ms)

    def remove_all(self, reason: str = PURGED) -> int:
        """Kill everything that is ready or scheduled; what is in delivery stays with its consumer. Returns how many
        go.
        """
        removed = self.order.count + len(self.scheduled) + self.paged_count
        self.purge(reason, self.host.log.now_ms)
        return removed

    def purge(self, reason: str, now_ms: int) -> QueueWork | None:
        """As ``remove_all``; returns what is not done yet."""
        self.remove_paged(reason)
        unfinished = self.begin(Removal(self, reason, self.host.last_message_id), now_ms)
        self._resume_flow()
        return unfinished
