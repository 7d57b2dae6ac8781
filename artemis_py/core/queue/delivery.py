"""Dispatch: offers ready entries to consumers, and what follows when something has left."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import SLICE_MAX
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import HELD_UP
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.barriers import BYTES_SHIFT
from artemis_py.core.queue.depaging import READY_MIN, PageReading, QueuePages
from artemis_py.core.queue.messages import EXPIRE_UNITS
from artemis_py.core.queue.state import QueueState
from artemis_py.core.queue.why import Reason, is_full, why_full, why_pending, why_used_up
from artemis_py.message import Message

# ---- after removal ---------------------------------------------------------------------------------------------------
#
# What follows when something has left a queue.


@final
class AfterRemoval:
    """The end of every verb of a queue. What left may let senders go on, let pages be read, or free a group for another
    consumer.
    """

    __slots__ = ("_contents", "_flow", "_gate", "_grouping", "_host", "_reading", "_reference", "_wake_ups")

    def __init__(self, state: QueueState, reading: PageReading) -> None:
        self._reference = state.reference
        self._host = state.host
        self._contents = state.contents
        self._flow = state.flow
        self._gate = state.gate
        self._grouping = state.grouping
        self._wake_ups = state.wake_ups
        self._reading = reading

    def run(self, popped_count: int = 0) -> None:
        """React to everything that left since the last call. ``popped_count``: so many entries are out of the order and
        not delivered yet, so they still count.
        """
        contents, groups = self._contents, self._grouping.groups
        if contents.has_left:
            contents.has_left = False
            if self._flow.stopped:
                self._flow.resume(popped_count)
            if (self._gate.counts or contents.pending is not None) and contents.has_more:
                self._host.note_ready(self._reference)
            if self._reading.cramped and self._wake_ups.dry:
                self.use_room()
        if groups is not None:
            if self._grouping.takes_freed():
                self._wake_ups.wake_dry()
                self._host.note_ready(self._reference)
            if groups.owners.pausing and not contents.has_held:
                self._host.note_ready(self._reference)

    def use_room(self) -> None:
        """There may be room for messages from pages again. Wake every consumer, and not only the one whose messages
        left.
        """
        self._reading.cramped = False
        self._wake_ups.wake_dry()
        self._host.note_ready(self._reference)


# ---- stall detection -------------------------------------------------------------------------------------------------
#
# Notices that a queue delivers nothing because backlogs are used up, or because what has come is not active yet, and
# tells the operational log.


FIRST_MS: Final = 10_000
"""A queue is held up when it has sent nothing for so long. Consumers that work have full backlogs all the time."""
_LONGEST_MS: Final = 640_000
_LOOKS_MAX: Final = 512
"""How many consumers are looked at in one turn."""
_LOOKS_PER_UNIT: Final = 8


@final
class StallDetection:
    """Of one queue with an attribute of AMPS. A dispatch that ends with entries left sets an alarm, unless one is set.
    When it rings, and nothing was sent for some time, the reason is logged; then again after twice the time, up to some
    minutes, until something is sent.
    """

    __slots__ = ("_state", "_due_ms", "_full", "_gap_ms", "_held", "_place", "_sent_ms", "_takers")

    def __init__(self, state: QueueState) -> None:
        self._state = state
        self._sent_ms = 0
        """The steady time at which something was sent to a consumer last."""
        self._due_ms = 0
        """The steady time at which to look; 0 when nobody waits for it."""
        self._gap_ms = FIRST_MS
        """How long to wait after the next look."""
        self._place = 0
        """How many consumers this look has seen."""
        self._takers = 0
        self._full = 0
        self._held = 0
        """Of these: those that are offered messages, those with a full backlog, and what they hold."""

    def note_sent(self) -> None:
        """Entries were sent to a consumer that takes them away."""
        host = self._state.host
        self._sent_ms = host.clock.steady_ms(host.log.now_ms)
        self._gap_ms = FIRST_MS

    def begin(self, now_ms: int) -> None:
        """A dispatch ends although entries are ready."""
        if not self._due_ms and self._state.distribution.taker_count:
            self._gap_ms = FIRST_MS
            self._wait(FIRST_MS, now_ms)

    def _wait(self, wait_ms: int, now_ms: int) -> None:
        """Look again after so many ms."""
        state = self._state
        self._place = self._takers = self._full = self._held = 0
        self._due_ms = state.host.clock.steady_ms(now_ms) + wait_ms
        state.host.timers.alarms.set_by(state.reference.id, now_ms + wait_ms)

    def on_alarm(self, now_ms: int) -> None:
        """An alarm of the queue rings, perhaps another one."""
        if not self._due_ms:
            return
        state, contents = self._state, self._state.contents
        steady_ms = state.host.clock.steady_ms(now_ms)
        quiet_ms = steady_ms - self._sent_ms
        if steady_ms < self._due_ms:
            state.host.timers.alarms.set_by(state.reference.id, now_ms + self._due_ms - steady_ms)
        elif not (state.gate.is_open and contents.has_more):
            self._due_ms = 0  # until a dispatch ends with entries left
        elif quiet_ms < FIRST_MS:
            self._wait(FIRST_MS - quiet_ms, now_ms)
        elif not state.gate.lets_out(contents.counters.held_count):
            self._tell(why_used_up(state), quiet_ms, now_ms)
        elif not contents.order.count and (reason := why_pending(state)) is not None:
            self._tell(reason, quiet_ms, now_ms)
        elif not self._has_counted_all():
            state.host.timers.alarms.set_by(state.reference.id, now_ms)
        elif self._full:
            self._tell(why_full(state, self._takers, self._full, self._held, now_ms), quiet_ms, now_ms)
        else:
            self._due_ms = 0

    def _has_counted_all(self) -> bool:
        """Count the next consumers with a full backlog. Returns whether all were looked at."""
        distribution = self._state.distribution
        some = distribution.consumers[self._place : self._place + _LOOKS_MAX]
        self._state.host.budget.spend(1 + len(some) // _LOOKS_PER_UNIT)
        for consumer in some:
            if not consumer.browses and distribution.is_served(consumer):
                self._takers += 1
                if is_full(consumer):
                    self._full += 1
                    self._held += len(consumer.held)
        self._place += len(some)
        return self._place >= len(distribution.consumers)

    def _tell(self, reason: Reason, quiet_ms: int, now_ms: int) -> None:
        state = self._state
        contents = state.contents
        fields: dict[str, str | int] = {"reason": reason.kind, "quiet_ms": quiet_ms, "ready": contents.order.count}
        if contents.paged.count:
            fields["paged"] = contents.paged.count
        state.host.note_event(HELD_UP, state.reference, {**fields, **reason.fields, "why": reason.text})
        self._gap_ms = min(2 * self._gap_ms, _LONGEST_MS)
        self._wait(self._gap_ms, now_ms)


# ---- next entry ------------------------------------------------------------------------------------------------------
#
# The next entry for a consumer: from memory or from a page, by order, by cursor or by group.


@final
class NextEntry:
    """Finds what one queue has for each of its consumers. What it meets on the way and has expired, it removes."""

    __slots__ = ("_activation", "_contents", "_grouping", "_host", "_pages", "_reference", "_wake_ups", "was_cut")

    def __init__(self, state: QueueState, pages: QueuePages) -> None:
        self._reference = state.reference
        self._host = state.host
        self._contents = state.contents
        self._activation = state.activation
        self._grouping = state.grouping
        self._wake_ups = state.wake_ups
        self._pages = pages
        self.was_cut = False
        """The budget ended before the consumer just picked was shown everything: it stays next."""

    def for_consumer(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry for a consumer. It is out of the order if the consumer takes it away."""
        if consumer.cursor is not None:
            return self._shown_to(consumer, now_ms)
        contents = self._contents
        order, reading = contents.order, self._pages.reading
        while order.count or (contents.paged.backlogs and reading.read_ahead(now_ms)):
            if contents.paged.backlogs and not reading.read_before(now_ms):
                return None
            entry = order.pop()
            expires_ms = contents.expires_ms(entry.message)
            if not expires_ms or expires_ms > now_ms:
                return entry
            if self.expire(entry):
                self.was_cut = True
                break
        return None

    def expire(self, entry: Entry) -> bool:
        """Expire an entry that is out of the order. Returns True when that spent the budget."""
        try:
            self._contents.expire([entry])
        except Exception:
            self._contents.put_back(entry)
            raise
        budget = self._host.budget
        budget.spend(EXPIRE_UNITS)
        return budget.is_spent

    def _shown_to(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry that the consumer's cursor shows and the consumer wants."""
        contents, cursor = self._contents, consumer.cursor
        assert cursor is not None
        budget, search = self._host.budget, self._pages.search
        for _ in range(min(SLICE_MAX, max(budget.left, 1))):
            budget.spend(1)
            found = cursor.advance()
            if found is None and self._activation is not None and contents.paged.backlogs:
                if self._pages.reading.read_ahead(now_ms):
                    self._wake_ups.wake_dry()
                    continue
                return None
            if found is None:
                return search.search(consumer, now_ms) if contents.paged.backlogs else None
            message = found.message
            if 0 < contents.expires_ms(message) <= now_ms:
                contents.order.remove(found, found.sequence)
                self.expire(found)
            elif consumer.wants(message) and not (contents.paged.backlogs and search.was_shown(consumer, message)):
                if consumer.destructive:
                    contents.order.remove(found, found.sequence)
                return found
            if consumer.asked_units >= SLICE_MAX:
                break
        self.was_cut = True
        return None

    def in_groups_for(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry for a consumer, out of the order; the consumer now owns its group."""
        contents, wake_ups = self._contents, self._wake_ups
        groups = self._grouping.groups
        assert groups is not None
        views = groups.views
        budget = self._host.budget
        while True:
            passes = min(SLICE_MAX, max(budget.left, 1))
            views.passes_left = passes
            entry = views.next_for(consumer)
            budget.spend(passes - views.passes_left)
            if entry is None:
                if views.passes_left <= 0:
                    self.was_cut = True
                elif contents.paged.backlogs and self._pages.reading.read_ahead(now_ms):
                    wake_ups.wake_dry()
                    continue
                return None
            contents.order.remove(entry, entry.sequence)
            if 0 < contents.expires_ms(entry.message) <= now_ms:
                self.expire(entry)
                continue
            groups.owners.take(consumer, entry.message)
            if self._grouping.takes_freed():
                wake_ups.wake_dry()
                self._host.note_ready(self._reference)
            return entry


# ---- delivery --------------------------------------------------------------------------------------------------------
#
# Dispatch: offers ready entries to consumers until none is ready, every consumer is parked, or the budget is spent.


_OFFERED_MAX: Final = 64
"""To how many consumers entries are offered together."""


@final
class Delivery:
    """Gives entries of one queue to its consumers, and keeps whose turn it is."""

    __slots__ = (
        "_activation", "_after_removal", "_contents", "_counts_picked", "_distribution", "_gate", "_grouping",
        "_host", "_next", "_pages", "_reference", "_shown_count", "_stall_detection", "_wake_ups",
    )  # fmt: skip

    def __init__(
        self,
        state: QueueState,
        pages: QueuePages,
        after_removal: AfterRemoval,
        stall_detection: StallDetection | None = None,
    ) -> None:
        self._reference = state.reference
        self._host = state.host
        self._contents = state.contents
        self._activation = state.activation
        self._counts_picked = state.flow.overflow.depth is not None or state.activation is not None
        """Must be counted what is out of the order and not written yet?"""
        self._grouping = state.grouping
        self._wake_ups = state.wake_ups
        self._distribution = state.distribution
        self._gate = state.gate
        self._pages = pages
        self._next = NextEntry(state, pages)
        self._after_removal = after_removal
        self._stall_detection = stall_detection
        self._shown_count = 0
        """On a queue that dispatches nothing: how many consumers were shown its entries before the turn ended."""

    def run(self, now_ms: int, floor: int) -> None:
        """Offer ready entries to consumers until none is ready or every consumer is parked. At ``floor`` units left in
        the turn's budget it stops and notes the queue ready.
        """
        self._host.budget.left -= 1
        if self._contents.paged.backlogs:
            self._pages.begin_dispatch(now_ms)
        if self._wake_ups.is_due:
            self._wake_ups.begin()
        activation = self._activation
        if activation is None:
            self._offer(now_ms, floor)
            return
        counters = self._contents.counters
        is_more = True
        while is_more:
            expired = counters.expired
            is_more = activation.advance(now_ms, floor)
            self._offer(now_ms, floor)
            is_more = is_more or counters.expired > expired  # what has expired made way for others
            if is_more and self._host.budget.left <= floor:
                self._host.note_ready(self._reference)
                return
        if self._contents.has_more:
            self._end_early(now_ms)

    def _offer(self, now_ms: int, floor: int) -> None:
        """Offer what is active."""
        budget, gate = self._host.budget, self._gate
        contents, distribution, grouping = self._contents, self._distribution, self._grouping
        order = contents.order
        # The groups are asked first: a pause that is over ends on a paused queue, too.
        if (grouping.groups is not None and grouping.must_wait(held=contents.has_held)) or not gate.is_open:
            self._show(now_ms, floor)
            return
        self._read_for_takers(now_ms)
        if self._activation is not None and not self._activation.send_barrier(floor):
            self._host.note_ready(self._reference)
            return
        while order.count or (contents.paged.backlogs and contents.paged.count):
            if gate.counts and not gate.lets_out(contents.counters.held_count):
                self._end_early(now_ms)
                self._show(now_ms, floor)
                return
            consumer = distribution.pick()
            if consumer is None:
                if not self._others_are_woken(floor):
                    self._end_early(now_ms)
                    return
                continue
            if grouping.groups is not None and grouping.serves(consumer):
                entry = self._next.in_groups_for(consumer, now_ms)
            elif consumer.cursor is None and not gate.counts and self._may_run(order.count):
                picked = self._deliver_some(consumer, now_ms, floor)
                if picked is None:
                    if budget.left > floor:
                        continue
                    self._host.note_ready(self._reference)
                    return
                consumer = picked
                entry = self._next.for_consumer(consumer, now_ms)
            else:
                entry = self._next.for_consumer(consumer, now_ms)
            budget.spend(consumer.take_asked())
            if contents.has_left:
                self._react(entry if consumer.destructive else None)  # before the delivery
            if entry is not None:
                self._deliver(consumer, entry)
            elif self._next.was_cut:
                self._next.was_cut = False
            else:
                distribution.park(consumer)
                self._wake_ups.dry = True
            if budget.left <= floor:
                self._host.note_ready(self._reference)
                return

    # ---- before the first entry ------------------------------------------------------------------

    def _end_early(self, now_ms: int) -> None:
        """Nobody takes the entries that are left, or they are not active yet."""
        if self._stall_detection is not None:
            self._stall_detection.begin(now_ms)

    def _read_for_takers(self, now_ms: int) -> None:
        """Read ahead in pages if a consumer takes any message."""
        contents = self._contents
        if not contents.paged.backlogs:
            return
        if contents.ready_count < READY_MIN and self._takers_are_here() and self._pages.reading.read_ahead(now_ms):
            self._wake_ups.wake_dry()

    def _takers_are_here(self) -> bool:
        consumers = self._distribution.consumers
        if self._activation is not None:  # all read pages in order, for nobody may see what is not active
            return len(consumers) > 0
        if self._grouping.groups is not None:  # with groups, consumers that choose do not read pages themselves
            return any(consumer.destructive for consumer in consumers)
        return any(consumer.cursor is None for consumer in consumers)

    def _others_are_woken(self, floor: int) -> bool:
        """Every awake consumer has what it can have. Are others awake now, and is there budget to ask them?"""
        wake_ups, reading = self._wake_ups, self._pages.reading
        if wake_ups.left:
            wake_ups.wake_some()
            if self._host.budget.left > floor:
                return True
            self._host.note_ready(self._reference)
        elif reading.cramped and reading.has_space():
            reading.cramped = False  # deliveries made room for messages that others may want
            wake_ups.wake_dry()
            return True
        return False

    def _show(self, now_ms: int, floor: int) -> None:
        """Nothing may leave now, but browsers may look. When the budget is spent, the next dispatch goes on with the
        next consumer.
        """
        consumers = self._distribution.consumers
        if len(consumers) == self._distribution.taker_count:
            return
        budget = self._host.budget
        start = self._shown_count % max(len(consumers), 1)
        for consumer in consumers[start:] + consumers[:start]:
            budget.spend(1)
            if not self._show_to(consumer, now_ms, floor):
                self._host.note_ready(self._reference)
                return
            self._shown_count += 1
            if not consumer.has_room:
                self._distribution.park_served(consumer)
            if budget.left <= floor and self._shown_count < len(consumers):
                self._host.note_ready(self._reference)
                return
        self._shown_count = 0

    def _show_to(self, consumer: Consumer, now_ms: int, floor: int) -> bool:
        """Show one consumer what it has not seen. Returns False when the budget ends before that."""
        budget = self._host.budget
        while consumer.browses and consumer.has_room:
            entry = self._next.for_consumer(consumer, now_ms)
            budget.spend(consumer.take_asked())
            if entry is not None:
                self._deliver(consumer, entry)
            elif not self._next.was_cut:
                break
            self._next.was_cut = False
            if budget.left <= floor:
                return False
        return True

    def _react(self, picked: Entry | None) -> None:
        """React to what has left. An entry that is picked, and not delivered yet, still counts."""
        try:
            self._after_removal.run(0 if picked is None else 1)
        except Exception:
            if picked is not None:
                self._contents.put_back(picked)
            raise

    # ---- giving ----------------------------------------------------------------------------------

    def _deliver(self, consumer: Consumer, entry: Entry) -> None:
        room_bytes = consumer.room_bytes
        try:
            consumer.take(entry)
        except Exception:
            if consumer.destructive:
                self._contents.put_back(entry)
            raise
        self._host.budget.spend(1 + ((room_bytes - consumer.room_bytes) >> BYTES_SHIFT))
        contents = self._contents
        if not consumer.settles:
            if consumer.destructive:
                contents.deliver(entry.message)
            else:
                contents.show()
        elif consumer.destructive:
            self._gate.unconfirmed_count += consumer.acks
            if self._counts_picked:
                contents.pick_run(1, entry.message.size_bytes)
        if not consumer.listed:
            self._host.note_output(consumer)

    def _may_run(self, ready_count: int) -> bool:
        """Is the first ready entry next in order, without a look at pages?"""
        return ready_count > 0 and not (self._contents.paged.backlogs and self._pages.reading.has_early)

    def _deliver_some(self, consumer: Consumer, now_ms: int, floor: int) -> Consumer | None:
        """Give the next entries to a consumer that was picked, or to several in turns. Returns one that was picked and
        got nothing: what is next for it must be looked for.
        """
        if self._distribution.stays_with(consumer):
            return self._deliver_runs(consumer, now_ms, self._host.budget.left - floor)
        if self._grouping.groups is not None:
            return consumer
        return self._deliver_in_turns(consumer, now_ms, self._host.budget.left - floor)

    def _deliver_in_turns(self, first: Consumer, now_ms: int, units: int) -> Consumer | None:
        """Give entries to consumers that take any, for so many units of the budget. They are counted together."""
        contents, distribution, host = self._contents, self._distribution, self._host
        order, lifetime = contents.order, contents.expiry.lifetime
        held: list[Message] = []
        left, offered, was_picked = units, [first], True
        consumer = first
        entry: Entry | None = None
        expired: Entry | None = None
        try:
            while offered:
                count = 0
                for consumer in offered:
                    entry = order.pop()
                    message = entry.message
                    expires_ms = message.expires_ms if lifetime is None else lifetime.expires_ms(message)
                    if expires_ms and expires_ms <= now_ms:
                        expired = entry
                        break
                    count += 1
                    room_bytes = consumer.room_bytes
                    consumer.take(entry)
                    left -= 1 + ((room_bytes - consumer.room_bytes) >> BYTES_SHIFT)
                    if not consumer.settles:
                        held.append(message)
                    else:
                        self._gate.unconfirmed_count += consumer.acks
                        if self._counts_picked:
                            contents.pick_run(1, message.size_bytes)
                    if not consumer.listed:
                        host.note_output(consumer)
                    if left <= 0:
                        break
                if not was_picked:
                    distribution.taken(offered[:count])
                was_picked = False
                may_offer = expired is None and left > 0 and order.count
                offered = distribution.offer(min(left, order.count, _OFFERED_MAX)) if may_offer else []
        except Exception:
            self._break_off(consumer, entry, held)
            raise
        self._end_run(held, units - left, expired)
        return distribution.pick() if expired is None and left > 0 and order.count else None

    def _deliver_runs(self, consumer: Consumer, now_ms: int, units: int) -> Consumer | None:
        """Give a consumer everything that it has room and credit for, then the next one that is picked, for so many
        units of the budget. They are counted together. Returns one that was picked and takes not any entry.
        """
        distribution, order = self._distribution, self._contents.order
        lifetime = self._contents.expiry.lifetime
        held: list[Message] = []
        left, expired = units, None
        entry: Entry | None = None
        picked: Consumer | None = consumer
        start = 0
        try:
            while picked is not None and picked.cursor is None:
                start, room_bytes = len(picked.outbox), picked.room_bytes
                for _ in range(min(order.count, picked.backlog_max - len(picked.held))):
                    entry = order.pop()
                    expires_ms = entry.message.expires_ms if lifetime is None else lifetime.expires_ms(entry.message)
                    if expires_ms and expires_ms <= now_ms:
                        expired = entry
                        break
                    picked.take(entry)
                    if picked.room_bytes <= 0 or picked.credit_bytes <= 0:
                        break
                taken = [one.message for one in picked.outbox[start:]]
                left -= len(taken) + ((room_bytes - picked.room_bytes) >> BYTES_SHIFT)
                start += len(taken)
                self._note_taken(picked, taken, held)
                if expired is not None or left <= 0 or not order.count or self._grouping.groups is not None:
                    picked = None
                else:
                    picked = distribution.pick()
        except Exception:
            if picked is not None:
                self._note_taken(picked, [one.message for one in picked.outbox[start:]], held)
                self._break_off(picked, entry, held)
            raise
        self._end_run(held, units - left, expired)
        return picked

    def _break_off(self, consumer: Consumer, entry: Entry | None, held: list[Message]) -> None:
        """A step of a run has failed: what consumers have counts, and the entry that the last of them was not given is
        on the queue.
        """
        self._contents.deliver_run(held)
        if entry is not None and not (consumer.outbox and consumer.outbox[-1] is entry):
            self._contents.put_back(entry)

    def _end_run(self, held: list[Message], units: int, expired: Entry | None) -> None:
        """Count what consumers are to settle, before the entry goes that ended the run because it has expired."""
        if held:
            self._contents.deliver_run(held)
        self._host.budget.left -= units
        if expired is not None:
            self._next.expire(expired)
            self._after_removal.run()

    def _note_taken(self, consumer: Consumer, taken: list[Message], held: list[Message]) -> None:
        """A consumer took these. What it is to settle joins ``held``."""
        if not consumer.settles:
            held += taken
        else:
            if consumer.acks:
                self._gate.unconfirmed_count += len(taken)
            if self._counts_picked:
                self._contents.pick_run(len(taken), sum([message.size_bytes for message in taken]))
        if taken and not consumer.listed:
            self._host.note_output(consumer)
