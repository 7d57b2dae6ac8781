"""The consumers of a queue: who may attach, whose it is, and what comes back when one leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from artemis_py.core.budget import SLICE_MAX, Budget
from artemis_py.core.consumer import Consumer, Reader
from artemis_py.core.order.entry import LOST, SUPERSEDED, Entry
from artemis_py.core.order.order import Cursor, Order
from artemis_py.core.queue.arrivals import AfterEnqueue, QueueTasks
from artemis_py.core.queue.delivery import AfterRemoval
from artemis_py.core.queue.depaging import QueuePages
from artemis_py.core.queue.release import Release
from artemis_py.core.queue.state import QueueState
from artemis_py.core.tasks import Task
from artemis_py.errors import LimitError
from artemis_py.selector import Program, Selector
from artemis_py.terminal_output import many

# ---- freeing ---------------------------------------------------------------------------------------------------------
#
# Groups lose their owner, because it leaves or all groups are handed out anew: some in each turn. A consumer may have
# owned very many. The queue dispatches nothing meanwhile, so that it is as if all of them became free at once.


@final
class FreeGroups(Task):
    """Frees what is to be freed of one queue's groups."""

    holds = True

    def __init__(self, state: QueueState) -> None:
        self._state = state

    def work(self, budget: Budget, now_ms: int) -> bool:
        grouping = self._state.grouping
        while grouping.is_freeing:
            budget.spend(grouping.free_some(SLICE_MAX))
            if budget.is_spent and grouping.is_freeing:
                return False
        offer_freed(self._state)
        return True


def offer_freed(state: QueueState) -> None:
    """Groups may have become free: consumers that found nothing look again, and without consumers and messages there is
    nothing to remember.
    """
    if state.grouping.takes_freed():
        state.wake_ups.wake_dry()
        state.note_ready()
    if not state.distribution.consumers and not state.contents.message_count:
        state.grouping.forget()


# ---- shared cursors --------------------------------------------------------------------------------------------------
#
# Consumers of one queue that want the same messages share one cursor. An entry that the cursor has passed was given
# to one of them, or none of them wants it. So the others need not look at it again. A consumer that only looks must
# see every message, so it has a cursor of its own.


_Wish = tuple[Program | None, int]
"""Which messages a consumer wants: its selector's program, and the connection that no-local excludes."""


@final
class SharedCursors:
    """The cursors of one queue by what their readers want, and how many consumers share each."""

    __slots__ = ("_by_wish",)

    def __init__(self) -> None:
        self._by_wish: dict[_Wish, tuple[Cursor, int]] = {}

    def open(self, consumer: Consumer, order: Order) -> Cursor:
        """The cursor for a consumer that attaches."""
        if not _shares(consumer):
            return order.open_cursor()
        wish = _wish_of(consumer)
        known = self._by_wish.get(wish)
        cursor, count = (order.open_cursor(), 0) if known is None else known
        self._by_wish[wish] = cursor, count + 1
        return cursor

    def close(self, consumer: Consumer, cursor: Cursor, order: Order) -> None:
        """A consumer with a cursor left. The last reader of a cursor closes it."""
        if _shares(consumer):
            wish = _wish_of(consumer)
            _, count = self._by_wish[wish]
            if count > 1:
                self._by_wish[wish] = cursor, count - 1
                return
            del self._by_wish[wish]
        order.close_cursor(cursor)


def _shares(consumer: Consumer) -> bool:
    """May it share a cursor? It may if it takes messages away and has no replay period."""
    return consumer.destructive and not consumer.since_ms


def _wish_of(consumer: Consumer) -> _Wish:
    selector = consumer.selector
    return None if selector is None else selector.program, consumer.no_local


# ---- exclusivity -----------------------------------------------------------------------------------------------------
#
# Which clients' consumers a queue admits.


NONE: Final = "NONE"
_LINK: Final = "LINK"
_SHARED_SUBSCRIPTION: Final = "SHARED_SUBSCRIPTION"
_CONNECTION: Final = ("CONNECTION", "SESSION")
_CONTAINER: Final = "CONTAINER"


@final
@dataclass(slots=True)
class Exclusivity:
    """``exclusivity-policy`` (docs/queues.md, Who is admitted): the first consumer's connection, client id or user
    becomes the owner, and the queue refuses others.

    A STOMP connection has one session, so SESSION is the same as CONNECTION. Ownership by a connection ends with its
    last consumer. A client id or user owns the queue until it is deleted. A consumer that asks for it (SUBSCRIBE with
    ``exclusive:true``) is alone on its queue, whatever the policy.
    """

    policy: str = NONE
    owner: str | None = None

    @property
    def outlives_consumers(self) -> bool:
        """Must a restart know the owner?"""
        return self.owner is not None and self.policy not in _CONNECTION

    def admit(self, queue_name: str, consumer: Consumer, others: Sequence[Consumer]) -> None:
        """Check a consumer that wants to attach; it may become the owner. Raises LimitError when the queue does not
        admit it.
        """
        if others and (consumer.exclusive or others[0].exclusive):
            raise LimitError(
                f"Queue {queue_name} already has a consumer, and one of the two asked to be exclusive (header "
                "exclusive)"
            )
        if self.policy in (NONE, _SHARED_SUBSCRIPTION):
            return
        if self.policy == _LINK:
            if others:
                raise LimitError(f"Queue {queue_name} admits one consumer (exclusivity-policy LINK)")
            return
        who = self._who(queue_name, consumer.reader)
        if self.policy in _CONNECTION and not others:
            self.owner = None
        if self.owner is None:
            self.owner = who
        elif self.owner != who:
            raise LimitError(
                f"Queue {queue_name} belongs to another {self._owner_is} (exclusivity-policy {self.policy})"
            )

    @property
    def _owner_is(self) -> str:
        if self.policy in _CONNECTION:
            return "connection"
        return "client-id" if self.policy == _CONTAINER else "user"

    def _who(self, queue_name: str, reader: Reader) -> str:
        if self.policy in _CONNECTION:
            return str(reader.connection)
        who = reader.client_id if self.policy == _CONTAINER else reader.user
        if who is None:
            needed = "client-id" if self.policy == _CONTAINER else "login"
            raise LimitError(
                f"Queue {queue_name} admits consumers of one {self._owner_is} only (exclusivity-policy "
                f"{self.policy}); send a {needed} header in CONNECT"
            )
        return who


# ---- registry --------------------------------------------------------------------------------------------------------
#
# How consumers attach to a queue and leave it.


@final
class ConsumerRegistry:
    """Decides which consumers a queue admits, and takes back what a leaving consumer has."""

    __slots__ = (
        "_after_enqueue", "_after_removal", "_pages", "_shared_cursors", "_state", "_tasks", "consumers_max",
        "exclusivity", "idle_since_ms", "shows_returns",
    )  # fmt: skip

    def __init__(
        self,
        state: QueueState,
        exclusivity: Exclusivity,
        pages: QueuePages,
        after_enqueue: AfterEnqueue,
        after_removal: AfterRemoval,
        tasks: QueueTasks,
        *,
        consumers_max: int,
        shows_returns: bool,
    ) -> None:
        self._state = state
        self._pages = pages
        self._after_enqueue = after_enqueue
        self._after_removal = after_removal
        self._tasks = tasks
        self._shared_cursors: SharedCursors | None = None
        """Cursors of consumers that choose or only look; None before the first of them attaches."""
        self.exclusivity = exclusivity
        self.consumers_max = consumers_max
        self.shows_returns = shows_returns
        """Are browsing consumers shown entries that come back to a place they have passed?"""
        self.idle_since_ms = 0

    def attach(self, consumer: Consumer, now_ms: int) -> None:
        """A consumer attaches. Raises LimitError when the queue has its maximum of consumers, or does not admit this
        one.
        """
        state = self._state
        contents, distribution, gate = state.contents, state.distribution, state.gate
        name = state.reference.name
        if 0 <= self.consumers_max <= distribution.taker_count and not consumer.browses:
            raise LimitError(f"Queue {name} has reached its maximum of {many(self.consumers_max, 'consumer')}")
        self.exclusivity.admit(name, consumer, distribution.consumers)
        self._open_cursor(consumer)
        try:
            consumer.statistics.begun_ms = now_ms
            distribution.add(consumer)
            if state.grouping.attach(consumer, held=contents.has_held):
                gate.close_again()
            if state.grouping.is_freeing:
                self._tasks.begin(FreeGroups(state), now_ms)
            if not consumer.browses:
                gate.consumer_joined(distribution.taker_count, state.host.clock.steady_ms(now_ms))
            state.wake(consumer)
            if contents.has_more and (gate.is_open or consumer.browses):
                state.note_ready()
            self._after_removal.run()
        except Exception:  # nobody may be left that is served, or waited for, and does not exist
            self.detach(consumer, failed=False, now_ms=now_ms)
            raise

    def _open_cursor(self, consumer: Consumer) -> None:
        if consumer.chooses or not consumer.destructive:
            if self._shared_cursors is None:
                self._shared_cursors = SharedCursors()
            consumer.cursor = self._shared_cursors.open(consumer, self._state.contents.order)
            consumer.cursor.sees_returns = consumer.destructive or self.shows_returns

    def _close_cursor(self, consumer: Consumer) -> None:
        if consumer.cursor is not None and self._shared_cursors is not None:
            self._shared_cursors.close(consumer, consumer.cursor, self._state.contents.order)
            self._pages.search.forget_consumer(consumer.id)

    def replace(
        self, consumer: Consumer, selector: Selector | None, no_local: int, backlog_max: int, now_ms: int
    ) -> Task | None:
        """A consumer that takes messages away wants others from now on, or another number of them. It keeps what it
        holds. What it was not sent yet goes back, but for a barrier. Returns the unfinished work, if any.
        """
        state = self._state
        unfinished: Task | None = None
        if consumer.outbox and not consumer.settles and consumer.barrier is None:
            waiting = [consumer.let_go(entry.message.id) for entry in consumer.outbox]
            consumer.outbox.clear()
            work = Release(state, consumer, waiting, failed=False, sent=False)
            unfinished = self._tasks.begin(work, now_ms)
        state.distribution.park_served(consumer)
        if not _chooses_alike(consumer, selector, no_local):
            state.grouping.take_out(consumer)
            self._close_cursor(consumer)
            consumer.cursor = None
            consumer.choose(selector, no_local)
            if state.activation is not None:
                state.activation.note_changed(consumer)
            self._open_cursor(consumer)
            state.grouping.put_in(consumer)
        consumer.backlog_max = backlog_max
        state.wake(consumer)
        return unfinished

    def detach(self, consumer: Consumer, *, failed: bool, now_ms: int) -> Task | None:
        """A consumer leaves. What it holds comes back (see ``Release``); what was never sent comes back as if it had
        not been picked. Returns the unfinished work, if any.
        """
        state = self._state
        consumer.closed = True
        if state.activation is not None:
            state.activation.leave(consumer)
        unfinished: Task | None = None
        try:
            if consumer.settles and consumer.destructive:
                self._take_back_unsent(consumer)
                state.confirm(len(consumer.let_go_all()))
            waiting = [entry for entry in consumer.outbox if consumer.held.pop(entry.message.id, None) is not None]
            consumer.outbox.clear()
            if waiting:
                self._tasks.begin(Release(state, consumer, waiting, failed=False, sent=False), now_ms)
            if not consumer.held:
                state.record_left(consumer, failed=failed)
        finally:  # whatever fails, nothing stays with a consumer that is gone
            try:
                if consumer.held:
                    work = Release(state, consumer, None, failed=failed, cause=LOST, leaves=True)
                    unfinished = self._tasks.begin(work, now_ms)
            finally:
                self._remove(consumer, now_ms)
        if state.activation is not None:
            state.activation.note_left()
        self._after_removal.run()
        return unfinished

    def _remove(self, consumer: Consumer, now_ms: int) -> None:
        """Forget a consumer that has nothing left."""
        state = self._state
        contents, distribution = state.contents, state.distribution
        distribution.remove(consumer)
        state.grouping.detach(consumer)
        if state.grouping.is_freeing:
            self._tasks.begin(FreeGroups(state), now_ms)
        else:
            offer_freed(state)
        self._close_cursor(consumer)
        state.gate.consumer_left(distribution.taker_count)
        contents.was_used = True
        if not distribution.consumers:
            self.idle_since_ms = state.host.clock.steady_ms(now_ms)
        else:
            state.wake_ups.has_lost_one = True  # with an exclusive queue the next consumer takes over
            state.note_ready()

    def _take_back_unsent(self, consumer: Consumer) -> None:
        """Put back what was picked for, or handed to, a consumer that settles on send, and was not written. An outdated
        value goes; if that fails, it is on the queue again.
        """
        state = self._state
        contents, values = state.contents, state.contents.last_values
        picked, consumer.outbox = consumer.outbox, []
        handed, consumer.handed = consumer.handed, []
        contents.unpick(picked)
        outdated: list[Entry] = []
        for entry in picked:
            if values is not None and values.is_outdated(entry):
                outdated.append(entry)
            else:
                contents.put_back(entry)
        gone = 0
        try:
            for entry in outdated:
                contents.give_up(entry, SUPERSEDED)
                gone += 1
            self._after_removal.run()
        finally:
            for entry in outdated[gone:]:
                contents.put_back(entry)
            for entry in reversed(handed):
                contents.take_back_handed(entry.message)
            self._after_enqueue.fit_again(len(handed) + len(picked) - gone)
            state.grouping.settle([entry.message for entry in picked])


def _chooses_alike(consumer: Consumer, selector: Selector | None, no_local: int) -> bool:
    """Does the consumer want the same messages as before? Then it reads on where it is."""
    before = consumer.selector
    texts = None if before is None else before.text, None if selector is None else selector.text
    return texts[0] == texts[1] and no_local == consumer.no_local
