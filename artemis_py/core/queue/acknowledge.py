"""Acknowledging many messages: up to one, by bookmarks, or by a filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from artemis_py.core.budget import SLICE_MAX, Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.memory import selector_bytes
from artemis_py.core.order.entry import NACKED, Entry
from artemis_py.core.order.order import Cursor
from artemis_py.core.queue.messages import CANCEL, EXPIRE, EXPIRE_UNITS, ScheduledCursor
from artemis_py.core.queue.release import Release
from artemis_py.core.queue.state import QueueState
from artemis_py.core.tasks import Task
from artemis_py.message import Head, Message
from artemis_py.record_log import Actor
from artemis_py.selector import Selector

# ---- up to one -------------------------------------------------------------------------------------------------------
#
# A cumulative ACK, however many messages it covers.


@final
class AcknowledgeUpTo(Task):
    """Settles one message and all that were sent to the consumer before it. The consumer holds entries that are not
    reached yet.
    """

    def __init__(self, state: QueueState, consumer: Consumer, message_id: int) -> None:
        self._state = state
        self._consumer = consumer
        self._message_id = message_id

    def work(self, budget: Budget, now_ms: int) -> bool:
        consumer = self._consumer
        count = budget.slice_of(1)
        while True:
            if self._message_id not in consumer.held:  # an ACK before this one has settled it
                return True
            entries = consumer.let_go_up_to(self._message_id, count)
            self._state.acknowledge(consumer, entries)
            budget.spend(len(entries))
            if consumer.parked:
                self._state.wake(consumer)
            if budget.is_spent and self._message_id in consumer.held:
                return False


# ---- by filter -------------------------------------------------------------------------------------------------------
#
# A client settles messages that it names itself: by a filter, or by bookmarks (AMPS). Nobody needs to hold them, but
# they must be active (``barriers.py``). Messages in pages are not looked at; a bookmark of one is remembered until it
# is read (``messages.py``).


SELECTION_BYTES: Final = 500
_MARK_BYTES: Final = 120
_FIND_UNITS: Final = 20
"""What it may cost to find a bookmark in the order."""
_TAKE_UNITS: Final = 2
_IDS_PER_UNIT: Final = 64
_PER_MESSAGE: Final = frozenset({"AMQTimestamp", "AMQExpiration", "AMQSize"})


@final
class SelectedMessages:
    """The messages that a client names: by their bookmarks, or else those that its filter matches."""

    __slots__ = ("_head", "_head_only", "_bookmarks", "_program", "_last_match", "bookmarks", "size_bytes")

    def __init__(self, selector: Selector | None, bookmarks: Sequence[int] = ()) -> None:
        self.size_bytes = SELECTION_BYTES + selector_bytes(None if selector is None else selector.text)
        self.size_bytes += _MARK_BYTES * len(bookmarks)
        """What it holds in memory."""
        self.bookmarks = list(dict.fromkeys(bookmarks))
        self._bookmarks = frozenset(bookmarks)
        self._program = None if selector is None else selector.program
        self._head_only = selector is not None and not (selector.identifiers & _PER_MESSAGE)
        self._head: Head | None = None
        self._last_match = False

    def includes(self, message: Message, budget: Budget) -> bool:
        """Is the message one of them?"""
        program = self._program
        budget.spend(1)
        if program is None:
            return message.lsn in self._bookmarks
        if self._head_only and message.head is self._head:
            return self._last_match
        budget.spend(program.units + (program.units_per_kb * message.head.size_bytes >> 10))
        self._head = message.head
        self._last_match = program.condition(message.lookup) is True
        return self._last_match


def take_leased(
    state: QueueState, bookmarks: Sequence[int], connection: int
) -> tuple[list[tuple[Consumer, Entry]], list[int]]:
    """Take the messages with these bookmarks from their holders. Under ``leasing="strict"`` only holders of this
    connection have to give them. Returns who held them, each with its entry, and the bookmarks that nobody has leased.
    """
    leases = state.contents.leases
    taken: list[tuple[Consumer, Entry]] = []
    others: list[int] = []
    if leases is None:
        return taken, list(bookmarks)
    for bookmark in bookmarks:
        message_id = leases.id_of(bookmark)
        holder = leases.holder_of(message_id) if message_id else None
        if holder is None:
            others.append(bookmark)
        elif message_id in holder.held and (not leases.is_strict or holder.reader.connection == connection):
            taken.append((holder, holder.let_go(message_id)))
    return taken, others


def still_there(state: QueueState, bookmarks: Sequence[int]) -> list[int]:
    """Which of these bookmarks are still on the queue although a client has settled them. Another consumer or a
    transaction holds the message (``leasing="strict"``), or it is in a page and is removed when it is read.
    """
    leases, deferred = state.contents.leases, state.contents.deferred_acks
    if leases is None or deferred is None:
        return []
    return [bookmark for bookmark in bookmarks if leases.id_of(bookmark) or deferred.knows(bookmark)]


def take_late(
    state: QueueState, consumer: Consumer, message_id: int, *, refuses: bool
) -> tuple[Consumer, Entry] | None:
    """A consumer settles a message that it does not hold. Under ``leasing="sublet"`` it may settle what another one
    holds; what nobody holds it may settle in any case, unless it ``refuses`` it.

    Returns the holder, or else the consumer, that settles it, and its entry, which is in delivery and held by no
    consumer. Returns None if the consumer may not settle it.
    """
    contents = state.contents
    leases = contents.leases
    if leases is None:
        return None
    holder = leases.holder_of(message_id)
    if holder is not None:
        if leases.is_strict or message_id not in holder.held:
            return None
        return holder, holder.let_go(message_id)
    entry = None if refuses else leases.returned(message_id)
    if entry is None:
        return None
    if not contents.order.remove(entry, entry.sequence):
        if not contents.is_aside(entry):
            return None
        contents.take_from_aside(entry)
    contents.deliver(entry.message)
    return consumer, entry


@final
class AcknowledgeByFilter(Task):
    """Settles the selected messages among those that are on the queue now. ``connection`` is the client's;
    ``actor`` its consumer, for a retained log.

    Consumers are served meanwhile, unless messages go back (``cancel``, which only concerns what is leased). What is on
    its way back waits for the end of this work, so a message can only go from ready to leased, and none is missed.
    """

    def __init__(
        self, state: QueueState, selected: SelectedMessages, outcome: str, connection: int, actor: Actor | None = None
    ) -> None:
        self.holds = outcome == CANCEL
        self._state = state
        self._selected = selected
        self._outcome = outcome
        self._connection = connection
        self._actor = actor
        self._last_id = state.host.message_id
        self._ready_is_done = outcome == CANCEL
        self._cursor: Cursor | None = None
        self._found_count = 0
        """How many bookmarks were looked for."""
        self._aside: ScheduledCursor | None = None
        self._leased: list[tuple[int, Consumer | None]] | None = None
        """Ids of what is leased and not looked at yet, the next one last, with the consumer for what is not sent."""
        self._release: Release | None = None
        """What is on its way back."""

    def work(self, budget: Budget, now_ms: int) -> bool:
        while not self._ready_is_done:
            self._look_among_ready(budget)
            if budget.is_spent:
                return False
        while self._look_aside(budget):
            if budget.is_spent:
                return False
        while self._look_among_leased(budget, now_ms):
            if budget.is_spent:
                return False
        return self._release is None or self._release.finish(budget)

    # ---- what nobody has -------------------------------------------------------------------------

    def _look_among_ready(self, budget: Budget) -> None:
        contents = self._state.contents
        if contents.is_deleted:
            self._ready_is_done = True
        elif self._selected.bookmarks and contents.is_in_log_order:
            self._look_up(budget)
        else:
            self._look_at_each(budget)

    def _look_up(self, budget: Budget) -> None:
        """Find some of the bookmarks in the order."""
        contents, bookmarks = self._state.contents, self._selected.bookmarks
        start = self._found_count
        self._found_count = end = start + budget.slice_of(_FIND_UNITS)
        budget.spend(_FIND_UNITS * len(bookmarks[start:end]))
        taken: list[Entry] = []
        try:
            for bookmark in bookmarks[start:end]:
                entry = self._standing(bookmark)
                if entry is not None:
                    taken.append(entry)
                elif contents.deferred_acks is not None and contents.paged.count:
                    contents.deferred_acks.note(bookmark, self._outcome)
        finally:
            self._settle(taken, budget)
        self._ready_is_done = end >= len(bookmarks)

    def _standing(self, bookmark: int) -> Entry | None:
        """The entry with this bookmark, which was on the queue and is not any more; None: it was not there."""
        contents = self._state.contents
        leases, order = contents.leases, contents.order
        known = None if leases is None else leases.returned(leases.id_of(bookmark))
        entry = known or order.find_published(bookmark)
        if entry is None or order.remove(entry, entry.sequence):
            return entry
        if not contents.is_aside(entry):
            return None
        contents.take_from_aside(entry)
        return entry

    def _look_at_each(self, budget: Budget) -> None:
        """Look at some ready entries."""
        order, selected = self._state.contents.order, self._selected
        if self._cursor is None:
            self._cursor = order.open_cursor()
            self._cursor.sees_returns = False
        taken: list[Entry] = []
        try:
            for _ in range(SLICE_MAX):
                found = self._cursor.advance()
                if found is None:
                    order.close_cursor(self._cursor)
                    self._ready_is_done = True
                    break
                if found.message.id <= self._last_id and selected.includes(found.message, budget):
                    order.remove(found, found.sequence)
                    taken.append(found)
                if budget.is_spent:
                    break
        finally:  # whatever fails, what was taken out is settled, or goes back
            self._settle(taken, budget)

    def _look_aside(self, budget: Budget) -> bool:
        """Look at some entries that were put aside. Returns False when none is left."""
        contents, pending, selected = self._state.contents, self._state.contents.pending, self._selected
        if self._aside is None:
            if self._outcome == CANCEL or (selected.bookmarks and contents.is_in_log_order):
                return False
            self._aside = contents.scheduled_dates.open_cursor()
        taken: list[Entry] = []
        looks = SLICE_MAX
        message_id = self._aside.next_id()
        try:
            while message_id is not None:
                looks -= 1
                entry = contents.scheduled.get(message_id)
                if entry is None or (pending is not None and pending.has(entry)):
                    pass
                elif selected.includes(entry.message, budget):
                    taken.append(entry)
                if budget.is_spent or not looks:
                    break
                message_id = self._aside.next_id()
        finally:
            self._settle(taken, budget, aside=True)
        return message_id is not None

    def break_off(self, now_ms: int) -> bool:
        """A step has failed: what was on its way back goes there."""
        if self._cursor is not None:
            self._state.contents.order.close_cursor(self._cursor)
        if self._release is not None:
            self._release.break_off(now_ms)
        return False

    def _settle(self, taken: list[Entry], budget: Budget, *, aside: bool = False) -> None:
        """Settle entries that nobody had, and that are on the queue no more. Those that were put aside (``aside``) are
        there until it is written down.
        """
        if not taken:
            return
        contents = self._state.contents
        messages = [entry.message for entry in taken]
        contents.deliver_run(messages)
        try:
            if self._outcome == EXPIRE:
                contents.expire_held(messages, self._actor)
            else:
                contents.acknowledge_held(messages, self._actor)
        except Exception:
            if not aside:
                contents.reclaim(taken)
                raise
            for message in messages:
                contents.come_back(message)
            raise
        if aside:
            for entry in taken:
                contents.take_from_aside(entry)
        budget.spend((EXPIRE_UNITS if self._outcome == EXPIRE else _TAKE_UNITS) * len(messages))

    # ---- what is leased --------------------------------------------------------------------------

    def _look_among_leased(self, budget: Budget, now_ms: int) -> bool:
        """Look at some messages that consumers hold. Returns False when none is left."""
        if self._release is not None and not self._release.give_back(budget, now_ms):
            return True
        if self._leased is None:
            self._leased = self._leased_now()
            budget.spend(len(self._leased) // _IDS_PER_UNIT)
        entries: list[Entry] = []
        holders: list[Consumer] = []
        unsent: dict[Consumer, set[int]] = {}
        try:
            for _ in range(min(len(self._leased), SLICE_MAX)):
                message_id, picker = self._leased.pop()
                holder = self._holder_of(message_id, picker, budget)
                if holder is not None:
                    entry = holder.let_go(message_id)
                    entries.append(entry)
                    holders.append(holder)
                    if picker is not None:
                        unsent.setdefault(picker, set()).add(message_id)
                if budget.is_spent:
                    break
        finally:  # whatever fails, what was let go is settled, or goes back
            for picker, ids in unsent.items():
                picker.outbox = [entry for entry in picker.outbox if entry.message.id not in ids]
            if entries and self._outcome == CANCEL:
                if self._release is None:
                    self._release = Release(self._state, holders[0], [], failed=True, cause=NACKED)
                self._release.add(entries, holders)
            else:
                self._settle_held(entries, holders, budget)
        return bool(self._leased) or (self._outcome == CANCEL and bool(entries))

    def _leased_now(self) -> list[tuple[int, Consumer | None]]:
        """Everything that is leased, or will be when it is written: the first one last."""
        state = self._state
        leases = state.contents.leases
        if leases is None or state.reference.deleted or self._selected.bookmarks:
            return []
        leased: list[tuple[int, Consumer | None]] = [(message_id, None) for message_id in leases.leased_ids()]
        if self._outcome != CANCEL:
            for consumer in state.distribution.consumers:
                if consumer.outbox and consumer.destructive and not consumer.settles:
                    leased += [(entry.message.id, consumer) for entry in consumer.outbox]
        leased.reverse()
        return leased

    def _holder_of(self, message_id: int, picker: Consumer | None, budget: Budget) -> Consumer | None:
        """Who holds a message and has to give it; None: nobody."""
        leases = self._state.contents.leases
        assert leases is not None
        holder = leases.holder_of(message_id) if picker is None else picker
        entry = None if holder is None else holder.held.get(message_id)
        budget.spend(1)
        if holder is None or entry is None or message_id > self._last_id:
            return None
        if leases.is_strict and holder.reader.connection != self._connection:
            return None
        return holder if self._selected.includes(entry.message, budget) else None

    def _settle_held(self, entries: list[Entry], holders: list[Consumer], budget: Budget) -> None:
        state = self._state
        by_holder: dict[Consumer, list[Entry]] = {}
        for entry, holder in zip(entries, holders, strict=True):
            by_holder.setdefault(holder, []).append(entry)
        for holder, some in by_holder.items():
            if self._outcome == EXPIRE:
                state.expire_held(holder, some)
                budget.spend(EXPIRE_UNITS * len(some))
            else:
                state.acknowledge(holder, some)
                budget.spend(_TAKE_UNITS * len(some))
            if holder.parked and not holder.closed:
                state.wake(holder)
