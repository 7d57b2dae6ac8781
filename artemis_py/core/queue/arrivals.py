"""How messages arrive on a queue, what follows when some were added, and the tasks of a queue."""

from __future__ import annotations

from typing import final

from artemis_py.core.budget import OVERDRAFT_UNITS, Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import ABANDONED, REPLACED, Entry
from artemis_py.core.pages import PageStream
from artemis_py.core.queue.alerts import AlertWatch
from artemis_py.core.queue.delivery import AfterRemoval, Delivery
from artemis_py.core.queue.depaging import QueuePages
from artemis_py.core.queue.messages import not_before_ms
from artemis_py.core.queue.state import QueueState
from artemis_py.core.tasks import Task, TaskLine
from artemis_py.message import Message

# ---- after enqueue ---------------------------------------------------------------------------------------------------
#
# What follows when something was added to a queue: consumers take theirs, then it keeps to its limit (``Flow``).


@final
class AfterEnqueue:
    """Serves consumers first, then trims the queue or makes senders wait.

    It trims in one go. Only entries that come back may be more than one turn can trim (see ``Release``).
    """

    __slots__ = (
        "_activates", "_after_removal", "_contents", "_delivery", "_distribution", "_flow", "_gate", "_host",
        "_reference", "_wake_ups",
    )  # fmt: skip

    def __init__(self, state: QueueState, delivery: Delivery, after_removal: AfterRemoval) -> None:
        self._reference = state.reference
        self._host = state.host
        self._contents = state.contents
        self._flow = state.flow
        self._gate = state.gate
        self._wake_ups = state.wake_ups
        self._distribution = state.distribution
        self._activates = state.activation is not None
        """Does dispatch do something without a consumer, too: make messages active?"""
        self._delivery = delivery
        self._after_removal = after_removal

    def run(self, added: int, now_ms: int) -> None:
        """``added`` entries were added. Consumers with room are served first, then the queue is trimmed to its
        limit.
        """
        if self._wake_ups.dry:
            self._wake_ups.wake_dry()
        if self._gate.is_held:
            self._gate.late_count += added
            self._flow.stop()
            return
        overflow = self._flow.overflow
        if overflow.is_ring and overflow.excess(self._contents.order.count, added):
            if not overflow.keeps_none:
                self.offer_first(now_ms)
            self._flow.trim(added, arriving=True)
        elif overflow.depth is not None:
            self.keep_to_depth(now_ms)
        if self._distribution.consumers or self._activates or self._contents.paged.backlogs:
            self._host.note_ready(self._reference)

    def offer_first(self, now_ms: int) -> None:
        """Offer ready entries to consumers before anything is refused or dropped, even when the budget is spent."""
        if not self._gate.is_held:
            self._delivery.run(now_ms, -OVERDRAFT_UNITS)
            self._after_removal.run()

    def keep_to_depth(self, now_ms: int) -> None:
        """Something arrived. If the queue is too deep and consumers do not take it, drop entries or make senders
        wait.
        """
        flow = self._flow
        if flow.overflow.depth is None or not flow.is_too_deep:
            return
        if not flow.overflow.keeps_none:
            self.offer_first(now_ms)
        if flow.overflow.sheds:
            flow.trim(1, arriving=True)
        else:
            flow.stop()

    def fit_again(self, restored: int) -> None:
        """Trim to the limit after entries are put back."""
        if restored:
            self._flow.trim(restored, arriving=False)


# ---- tasks -----------------------------------------------------------------------------------------------------------
#
# What a queue does that may take longer than a turn. Each task is decided at once and carried out in order, a little in
# each turn, so its result is the same as in one go.


@final
class QueueTasks(TaskLine):
    """Begins the tasks of one queue and goes on with them. While one of them moves entries (``holds``), the queue
    dispatches nothing.
    """

    def __init__(self, state: QueueState, after_enqueue: AfterEnqueue, after_removal: AfterRemoval) -> None:
        super().__init__()
        self._reference = state.reference
        self._host = state.host
        self._gate = state.gate
        self._after_enqueue = after_enqueue
        self._after_removal = after_removal
        self._holding_count = 0
        self._serves = False
        """Is the queue between two tasks, looking at what arrived meanwhile?"""

    def begin(self, task: Task, now_ms: int, budget: Budget | None = None) -> Task | None:
        """Carry out a task, behind those begun before. Returns it when it is unfinished: it goes on in later turns.
        ``budget``: that of the task that asks, instead of a share of the turn's.
        """
        if not self.may_go_on:
            self.add(task)
            return task
        if self._is_done(task, now_ms, budget):
            if task.added_count:
                self._after_enqueue.run(task.added_count, now_ms)
            self._after_removal.run()
            return None
        self.add(task)
        self._host.agenda.add(self)
        self._after_removal.run()
        return task

    def _is_done(self, task: Task, now_ms: int, budget: Budget | None) -> bool:
        share = self._host.budget.lend() if budget is None else budget
        try:
            return task.work(share, now_ms)
        except Exception:
            task.fail(now_ms)
            self._host.note_ready(self._reference)
            raise
        finally:
            if budget is None:
                self._host.budget.take_back(share)

    @property
    def queue_name(self) -> str:
        return self._reference.name

    def add(self, task: Task) -> None:
        super().add(task)
        if task.holds:
            self._holding_count += 1
            self._gate.is_held = True

    def work(self, budget: Budget, now_ms: int) -> bool:
        is_done = super().work(budget, now_ms)
        self._after_removal.run()
        return is_done

    def end_first(self, task: Task, now_ms: int) -> None:
        """The first task has ended. Consumers are served what it put on the queue, and behind the last one that moves
        entries what arrived meanwhile.
        """
        gate = self._gate
        added, task.added_count = task.added_count, 0
        if added:
            gate.is_held = False
            self._after_enqueue.run(added, now_ms)
        super().end_first(task, now_ms)
        self._holding_count -= task.holds
        gate.is_held = self._holding_count > 0
        if task.holds and not gate.is_held and not self._reference.deleted:
            self._serves = True
            late_count, gate.late_count = gate.late_count, 0
            self._host.note_ready(self._reference)
            if late_count:
                self._after_enqueue.run(late_count, now_ms)
            self._serves = False

    def break_off(self, now_ms: int) -> bool:
        if self._serves:  # the task before is done, and the next has not begun
            self._serves = False
            return not self.may_go_on
        try:
            return super().break_off(now_ms)
        finally:
            self._serves = False


# ---- arrivals --------------------------------------------------------------------------------------------------------
#
# How messages get on a queue: at once or scheduled, into memory or a page, new or restored after a restart.


@final
class Arrivals:
    """Puts messages on one queue."""

    __slots__ = (
        "_after_removal", "_alerts", "_contents", "_distribution", "_flow", "_gate", "_goes_to_tail", "_grouping",
        "_after_enqueue", "_host", "_is_plain", "_pages", "_reference", "_wake_ups",
    )  # fmt: skip

    def __init__(
        self,
        state: QueueState,
        pages: QueuePages,
        after_enqueue: AfterEnqueue,
        after_removal: AfterRemoval,
        alerts: AlertWatch | None,
    ) -> None:
        self._reference = state.reference
        self._host = state.host
        self._contents = state.contents
        self._flow = state.flow
        self._grouping = state.grouping
        self._wake_ups = state.wake_ups
        self._distribution = state.distribution
        self._gate = state.gate
        self._pages = pages
        self._after_enqueue = after_enqueue
        self._after_removal = after_removal
        self._alerts = alerts
        self._goes_to_tail = not self._contents.holds and self._contents.last_values is None
        """Does every arrival go to the tail?"""
        self._is_plain = self._goes_to_tail and self._contents.pending is None
        """And is it active there?"""

    # ---- handed over -----------------------------------------------------------------------------

    def direct_consumer(self, messages: list[Message]) -> Consumer | None:
        """The consumer that may get arrivals without queueing, if there is one: it is alone, settles on send without
        an acknowledgement, takes any message, and has room.
        """
        consumers = self._distribution.consumers
        contents = self._contents
        if len(consumers) != 1 or contents.order.count or consumers[0].outbox or self._flow.overflow.keeps_none:
            return None
        if (
            not self._is_plain
            or self._alerts is not None
            or (contents.paged.backlogs and contents.paged.count)
            or self._gate.is_held
        ):
            return None
        consumer = consumers[0]
        wants_it = consumer.settles and not consumer.acks and consumer.cursor is None and consumer.room_bytes > 0
        if wants_it and self._gate.is_open and self._gate.lets_out(contents.counters.held_count):
            self._grouping.look_for(messages)
            return consumer if self._grouping.groups is None else None
        return None

    def hand_over(self, consumer: Consumer, entries: list[Entry], size_bytes: int) -> None:
        """Give arrivals to the direct consumer: they count as added and acknowledged at once. Queues may share the
        entries.
        """
        consumer.handed.extend(entries)
        consumer.room_bytes -= size_bytes
        self._contents.pass_through(len(entries))
        self._host.note_output(consumer)

    # ---- queued ----------------------------------------------------------------------------------

    def arrive(self, entries: list[Entry], size_bytes: int, now_ms: int) -> None:
        """Append entries of new messages. Consumers with room take theirs before a ring trims."""
        if len(entries) > 1 and self._flow.overflow.sheds_bytes and not self._flow.fits(len(entries), size_bytes):
            for entry in entries:  # which ones stay must not depend on how many arrive together
                self.arrive([entry], entry.message.size_bytes, now_ms)
            return
        rule = self._grouping.rule
        if rule is not None and self._grouping.groups is None:
            if len(entries) > 1:
                self._grouping.look_for([entry.message for entry in entries])
            elif rule.may_name_group(entries[0].message.head.block):
                self._grouping.begin()
        expires = self._contents.count_added(entries, size_bytes)
        if self._is_plain and not expires:
            self._contents.order.extend(entries)
        else:
            self._append(entries, now_ms)
        self._after_enqueue.run(len(entries), now_ms)
        if self._alerts is not None:
            self._alerts.check_new([entry.message for entry in entries], now_ms)
        if self._contents.has_left or self._grouping.groups is not None:
            self._after_removal.run()

    def _append(self, entries: list[Entry], now_ms: int) -> None:
        """Append entries one by one. One that may not be delivered yet takes its place and is put aside. A newer value
        replaces the one before it.
        """
        contents = self._contents
        if self._goes_to_tail:
            before = -1
            try:
                before = contents.standing_count
                contents.append_expiring(entries)
            except Exception:
                placed_count = contents.standing_count - before if before >= 0 else 0
                contents.kill([entry.message for entry in entries[placed_count:]], ABANDONED)
                raise
            return
        placed_count = 0
        try:
            for entry in entries:
                self._append_one(entry, now_ms)
                placed_count += 1
        except Exception:
            contents.kill([entry.message for entry in entries[placed_count:]], ABANDONED)
            raise

    def _append_one(self, entry: Entry, now_ms: int) -> None:
        contents = self._contents
        due_ms = not_before_ms(entry.message, now_ms) if contents.holds else 0
        keeps_last = contents.last_values is not None
        if keeps_last:
            self._offer_older(entry, now_ms)
            contents.enter_value(entry)
            self._after_removal.run()
        if due_ms:
            contents.append_held(entry, due_ms)
        elif keeps_last:
            contents.append_value(entry)
        else:
            contents.append_expiring([entry])

    def _offer_older(self, entry: Entry, now_ms: int) -> None:
        """Offer the older value to a consumer with room before it is replaced. What a consumer gets must not depend on
        how many messages arrive together.
        """
        contents = self._contents
        older = None if contents.last_values is None else contents.last_values.older(entry.message)
        if older is not None and contents.stands(older):
            self._wake_ups.wake_dry()
            self._after_enqueue.offer_first(now_ms)

    def schedule(self, entry: Entry, due_ms: int, now_ms: int) -> None:
        """Put a new message aside until ``due_ms`` (epoch ms). It counts as added now."""
        message = entry.message
        self._grouping.look_for([message])
        self._contents.count_added([entry], message.size_bytes)
        try:
            if self._contents.pending is None:
                self._contents.put_aside(entry, due_ms)
            else:
                self._contents.append_held(entry, due_ms)
        except Exception:
            self._contents.kill([message], ABANDONED)
            raise
        self._after_enqueue.keep_to_depth(now_ms)
        if self._alerts is not None:
            self._alerts.check_new([message], now_ms)
        self._after_removal.run()

    def arrive_paged(self, stream: PageStream, messages: list[Message], size_bytes: int, now_ms: int) -> None:
        """New messages were paged. ``QueuePages.prepare`` must come first."""
        self._pages.arrive(stream, messages, size_bytes, now_ms)
        self._after_removal.run()

    def refuse(self, messages: list[Message]) -> None:
        """A ring that keeps nothing drops new messages as they arrive, while other queues page them."""
        self._contents.count_lost(messages, REPLACED, replaced=True)

    def miss(self, messages: list[Message], reason: str) -> None:
        """The queue does not take these messages any more: it was deleted, or has no consumer. ``reason`` is one of
        those in ``core/order/entry.py``.
        """
        self._contents.count_lost(messages, reason)

    # ---- after a restart -------------------------------------------------------------------------

    def take_back(self, entries: list[tuple[Entry, int]], now_ms: int) -> None:
        """Restore entries in their order, each with the date when it is due in epoch ms (0: ready). Rings trim as for
        arrivals.
        """
        contents, grouping = self._contents, self._grouping
        grouping.look_for([entry.message for entry, _ in entries])
        contents.count_restored([entry for entry, _ in entries])
        ready: list[Entry] = []
        restored = 0
        for entry, due_ms in entries:
            keeps_place = contents.keeps_place(entry)
            if not due_ms or (keeps_place and due_ms <= now_ms):
                ready.append(entry)
                restored += 1
                continue
            if keeps_place or contents.last_values is not None:
                self._append_ready(ready, now_ms)
                ready = []
            if contents.pending is not None and not entry.attempts:
                contents.append_held(entry, due_ms)
                continue
            if keeps_place:
                entry.sequence = contents.order.take_sequence(entry.message)
            contents.put_aside(entry, due_ms)
            if entry.attempts and contents.last_values is not None:
                contents.enter_value(entry)
        self._append_ready(ready, now_ms)
        self._after_enqueue.fit_again(restored)
        self._flow.stop()
        if self._alerts is not None:
            self._alerts.check_new([entry.message for entry, _ in entries], now_ms)
        if restored:
            self._host.note_ready(self._reference)
        self._after_removal.run()

    def _append_ready(self, entries: list[Entry], now_ms: int) -> None:
        if not entries:
            return
        if self._is_plain and not any(self._contents.expires_ms(entry.message) for entry in entries):
            self._contents.order.extend(entries)
        else:
            self._append(entries, now_ms)
