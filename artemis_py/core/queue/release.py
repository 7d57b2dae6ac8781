"""Entries come back to their queue, from a consumer that leaves or has refused them, or from several at once.

Each goes to its own place. Then the queue is trimmed to its limit, and entries that wait for another attempt are put
aside. Only then does anybody get anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Final, final

from artemis_py.core.budget import SLICE_MAX, Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import DEAD, DELETED, NACKED, SUPERSEDED, Entry
from artemis_py.core.queue.redelivery import MAX_DELIVERIES
from artemis_py.core.queue.state import QueueState
from artemis_py.core.tasks import Task
from artemis_py.units import date_after

EVERYTHING: Final = -1
"""Instead of a message id: everything that the consumer holds."""
_BACK_UNITS: Final = 3
_GIVE_UP_UNITS: Final = 4
_COPY_UNITS: Final = 8


@final
class Release(Task):
    """Returns entries that a consumer let go (``entries``), or else those that it holds, up to the message ``up_to``.

    ``failed`` counts a delivery attempt, after which an entry may be dead or delayed. ``cause`` says what failed: a
    NACK, an aborted acknowledgement, a lost connection, or a lease that ended. UNSUBSCRIBE and DISCONNECT do not count.
    Entries that were not ``sent`` come back as if they had never been picked. ``leaves``: the consumer leaves with
    them. ``dead``: an entry that fails is dead at once, for this reason. Where several consumers let entries go, more
    are added from time to time, each with its holder.
    """

    def __init__(
        self,
        state: QueueState,
        consumer: Consumer,
        entries: list[Entry] | None,
        *,
        failed: bool,
        cause: str = NACKED,
        up_to: int = EVERYTHING,
        sent: bool = True,
        leaves: bool = False,
        dead: str = "",
    ) -> None:
        self.holds = consumer.destructive
        self._state = state
        self._consumer = consumer
        self._entries = entries
        self._holders: list[Consumer] | None = None
        """Who held each entry; None: the consumer did."""
        self._everybody = {consumer: None}
        self._position = 0
        self._up_to = up_to
        self._failed = failed
        self._cause = cause
        self._dead = dead
        self._sent = sent
        may_die = failed or state.contents.delivery_attempts is not None
        self._units_each = _BACK_UNITS + _COPY_UNITS if may_die else _BACK_UNITS
        """What each entry may cost: nobody knows beforehand how many are dead."""
        self._leaves = leaves
        self._restored_count = 0
        self._delayed: list[tuple[Entry, int]] = []
        self._put_off_count = 0
        self._excess = -1
        """How many entries must still be dropped; -1 until all are back."""
        self._dropped_count = 0
        self._dead_count = 0

    def work(self, budget: Budget, now_ms: int) -> bool:
        return self.give_back(budget, now_ms) and self.finish(budget)

    def add(self, entries: list[Entry], holders: list[Consumer]) -> None:
        """More entries are to go back, each from its holder. Those before them must be back."""
        self._entries = entries
        self._holders = holders
        self._everybody |= dict.fromkeys(holders)
        self._position = 0

    def give_back(self, budget: Budget, now_ms: int) -> bool:
        """Return each entry to its place. Returns False while that is unfinished."""
        while entries := self._next(budget.slice_of(self._units_each)):
            budget.spend(_BACK_UNITS * len(entries))
            self._dead_count = 0
            self._take_back(entries, now_ms)
            budget.spend(_COPY_UNITS * self._dead_count)
            if budget.is_spent:
                return False
        return True

    def finish(self, budget: Budget) -> bool:
        """All are back: fit the queue to its limits, and let it go on. Returns False while that is unfinished."""
        if self._excess < 0:
            self._all_are_back()
        if not self._has_made_room(budget) or not self._has_put_off(budget):
            return False
        if self._leaves:
            self._state.record_left(self._consumer, failed=self._failed)
        return True

    def _next(self, count: int) -> list[Entry]:
        if self._entries is not None:
            entries = self._entries[self._position : self._position + count]
            self._position += len(entries)
            return entries
        consumer = self._consumer
        held = consumer.held
        if self._up_to == EVERYTHING and held:
            self._up_to = next(reversed(held))
        if self._up_to not in held:
            return []
        return consumer.let_go_up_to(self._up_to, count)

    def _take_back(self, entries: list[Entry], now_ms: int) -> None:
        state = self._state
        if not self._consumer.destructive:
            state.contents.has_shown(len(entries))
            return
        messages = [entry.message for entry in entries]
        if state.reference.deleted:
            state.contents.kill_held(messages, DELETED)
            return
        holders: Iterable[Consumer] = repeat(self._consumer)
        if self._holders is not None:
            holders = self._holders[self._position - len(entries) : self._position]
        back_count = 0
        try:
            for entry, holder in zip(entries, holders, strict=False):
                self._give_back(entry, holder, now_ms)
                back_count += 1
        except Exception:
            state.contents.reclaim(entries[back_count:])
            raise
        finally:
            state.grouping.settle(messages)

    def break_off(self, now_ms: int) -> bool:
        """The rest goes back as it is."""
        while entries := self._next(SLICE_MAX):
            if not self._consumer.destructive:
                self._state.contents.has_shown(len(entries))
            else:
                self._state.reclaim(entries)
        if self._leaves:
            self._state.record_left(self._consumer, failed=self._failed)
        return False

    def _give_back(self, entry: Entry, holder: Consumer, now_ms: int) -> None:
        """Nothing has changed until the entry is in its place, or gone: what raises before that leaves it in
        delivery.
        """
        contents = self._state.contents
        if contents.is_outdated(entry):
            contents.give_up(entry, SUPERSEDED)
            contents.come_back(entry.message)
            return
        if self._sent:
            entry.returned += 1
            if self._has_reached_attempts_max(entry, holder):
                return
        if self._failed and self._is_dead(entry, holder, now_ms):
            return
        contents.come_back(entry.message)
        contents.put_back(entry)
        if contents.leases is not None and self._sent:
            contents.leases.note_back(entry)
        self._restored_count += 1

    def _is_dead(self, entry: Entry, holder: Consumer, now_ms: int) -> bool:
        """Count a failed attempt. Returns True when it was the last; otherwise the next may have to wait."""
        state, message = self._state, entry.message
        redelivery = state.redelivery
        entry.attempts += 1
        if self._dead or redelivery.is_exhausted(entry.attempts):
            self._send_to_dead_letters(entry, holder, self._dead or MAX_DELIVERIES)
            return True
        due_ms = 0
        if redelivery.delay_ms > 0:
            due_ms = date_after(now_ms, redelivery.delay_after(entry.attempts, message.id))
        state.note_attempt(entry, due_ms, holder, self._cause)
        if due_ms:
            self._delayed.append((entry, due_ms))
        return False

    def _has_reached_attempts_max(self, entry: Entry, holder: Consumer) -> bool:
        """Count a delivery after which the message came back, failed or not. Returns True at the limit of the queue:
        the entry is dead.
        """
        delivery_attempts = self._state.contents.delivery_attempts
        if delivery_attempts is None:
            return False
        reason = delivery_attempts.note(entry.message.id, refused=self._failed and self._cause == NACKED)
        if not reason:
            return False
        entry.attempts += self._failed
        self._send_to_dead_letters(entry, holder, reason)
        return True

    def _send_to_dead_letters(self, entry: Entry, holder: Consumer, reason: str) -> None:
        state = self._state
        state.host.copies.join()
        if holder.actor is not None and self._failed:  # not for a restart, but for readers who ask why it died
            state.note_attempt(entry, 0, holder, self._cause)
        state.contents.kill([entry.message], DEAD, holder.actor)
        state.contents.come_back(entry.message)
        state.host.copies.note_dead(state.reference, entry.message, reason)
        self._dead_count += 1

    def _all_are_back(self) -> None:
        if not self._consumer.destructive or self._state.reference.deleted or not self._restored_count:
            self._excess = 0
        else:
            self._excess = self._state.flow.excess(self._restored_count, arriving=False)

    def _has_made_room(self, budget: Budget) -> bool:
        """Trim the queue after entries came back. Returns False while that is unfinished."""
        contents, flow = self._state.contents, self._state.flow
        order = contents.order
        while self._excess > 0 and order.count and flow.is_beyond:
            contents.give_up_least()
            self._excess -= 1
            self._dropped_count += 1
            budget.spend(_GIVE_UP_UNITS)
            if budget.is_spent:
                return False
        self._excess = 0
        flow.note_dropped(self._dropped_count)
        self._dropped_count = 0
        return True

    def _has_put_off(self, budget: Budget) -> bool:
        """Put aside entries that wait for their next attempt, then let the queue go on. Returns False while that is
        unfinished.
        """
        state, delayed = self._state, self._delayed
        while self._put_off_count < len(delayed):
            entry, due_ms = delayed[self._put_off_count]
            self._put_off_count += 1
            if state.contents.stands(entry):
                state.contents.put_aside(entry, due_ms)
                state.contents.order.remove(entry, entry.sequence)
            budget.spend(1)
            if budget.is_spent and self._put_off_count < len(delayed):
                return False
        if self._consumer.destructive and not state.reference.deleted:
            state.wake_ups.wake_dry()
            state.note_ready()
        for holder in self._everybody:
            if holder.parked:
                state.wake(holder)
        return True
