"""ACK and NACK of messages that the client names by bookmarks or by a filter (AMPS, rows A-39 to A-41 of
tests/queues/rows.py).
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.outcomes import ACCEPT, CANCEL, EXPIRE
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.sifting import Chosen
from artemis_py.core.transaction import Transaction
from artemis_py.errors import LimitError
from artemis_py.records import Actor
from artemis_py.selector import compile_selector
from artemis_py.stomp.session.remainder import Remainder
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.session.subscription import SELECTOR_CHARACTERS_PER_UNIT, Subscription
from artemis_py.stomp.session.subscriptions import Subscriptions
from artemis_py.stomp.session.transactions import Transactions
from artemis_py.stomp.wire.destinations import split_qualified
from artemis_py.stomp.wire.frames import Frame, FrameError

_BOOKMARKS: Final = "bookmarks"
_FILTER: Final = "filter"
_DIGITS_MAX: Final = 19
_MARKS_PER_UNIT: Final = 4
_GONE_PER_UNIT: Final = 16


def names_several(frame: Frame) -> bool:
    """Does an ACK or NACK name its messages itself, instead of one by its id?"""
    return _BOOKMARKS in frame.headers or _FILTER in frame.headers


def carry_out(
    state: SessionState, queue: Queue, consumer: Consumer, entries: list[Entry], outcome: str, now_ms: int
) -> None:
    """Settle entries that a consumer let go."""
    if outcome == CANCEL:
        state.leave_unfinished(queue.release(consumer, entries, failed=True, now_ms=now_ms))
    elif outcome == EXPIRE:
        state.leave_unfinished(queue.expire_held(consumer, entries, now_ms))
    else:
        queue.acknowledge(consumer, entries)


def taken_in(transaction: Transaction, outcome: str) -> list[tuple[Queue, Consumer, Entry]]:
    """Where a transaction keeps what is settled so."""
    if outcome == ACCEPT:
        return transaction.acknowledged
    return transaction.refused if outcome == CANCEL else transaction.expired


@final
class Choosing:
    """Settles messages of a queue, whoever holds them, as far as the queue's ``leasing`` allows that. The client need
    not be subscribed, but it must be allowed to consume there (row A-14).
    """

    __slots__ = ("_state", "_subscriptions", "_transactions")

    def __init__(self, state: SessionState, subscriptions: Subscriptions, transactions: Transactions) -> None:
        self._state = state
        self._subscriptions = subscriptions
        self._transactions = transactions

    def settle(self, frame: Frame, outcome: str, transaction: Transaction | None, now_ms: int) -> Remainder | None:
        """Carry out the frame, or keep it for the COMMIT. Returns what its RECEIPT tells, if anything. Raises
        ArtemisError.
        """
        headers = frame.headers
        if _BOOKMARKS in headers and _FILTER in headers:
            raise FrameError(f"{frame.command} may have bookmarks or a filter, not both")
        if not headers.get("destination"):
            named = _BOOKMARKS if _BOOKMARKS in headers else _FILTER
            raise FrameError(f"{frame.command} with {named} needs a destination header", syntax=True)
        queue = self._queue(headers["destination"])
        if _FILTER in headers:
            text = headers[_FILTER]
            self._state.broker.budget.spend(len(text) // SELECTOR_CHARACTERS_PER_UNIT)
            selector = compile_selector(text, self._state.service.limits.selectors)
            self._sift(queue, Chosen(selector), outcome, transaction, now_ms)
            return None
        bookmarks = _bookmarks_in(headers[_BOOKMARKS])
        if queue.consumer_defaults.at_most_once:
            self._confirm(queue, bookmarks)
            return None
        self._settle_bookmarks(queue, bookmarks, outcome, transaction, now_ms)
        if transaction is not None or outcome == CANCEL or "receipt" not in headers:
            return None
        self._state.broker.budget.spend(len(bookmarks) // _MARKS_PER_UNIT)
        return Remainder(queue, bookmarks)

    def _queue(self, destination: str) -> Queue:
        """The queue that a destination names, if its messages can be settled so. Raises ArtemisError."""
        state = self._state
        name, _ = state.service.prefixes.split(destination)
        address_name, queue_name = split_qualified(name)
        queue = state.broker.resolver.existing_queue(address_name, queue_name)
        if state.rights is not None:
            state.rights.demand("consume", queue.address.name, queue.name)
        if not queue.tells_bookmarks:
            raise FrameError(
                f"Queue {queue.name} has no attribute of AMPS: acknowledge its messages one by one, or give it one, "
                'for example leasing="sublet"'
            )
        return queue

    # ---- bookmarks -------------------------------------------------------------------------------

    def _settle_bookmarks(
        self, queue: Queue, bookmarks: list[int], outcome: str, transaction: Transaction | None, now_ms: int
    ) -> None:
        """What is leased is taken from its holders at once, also in a transaction: they have room again. The rest is
        looked for.
        """
        state, transactions = self._state, self._transactions
        if transaction is not None and transactions.operations_left < len(bookmarks):
            raise LimitError(transactions.too_many_operations)
        state.broker.budget.spend(len(bookmarks) // _MARKS_PER_UNIT)
        taken, others = queue.take_leased(bookmarks, state.origin)
        by_holder: dict[int, tuple[Consumer, list[Entry]]] = {}
        for holder, entry in taken:
            by_holder.setdefault(holder.id, (holder, []))[1].append(entry)
        for holder, entries in by_holder.values():
            if transaction is not None:
                taken_in(transaction, outcome).extend([(queue, holder, entry) for entry in entries])
            else:
                carry_out(state, queue, holder, entries, outcome, now_ms)
            if holder.parked and not holder.closed:
                queue.wake(holder)
        if others and outcome != CANCEL:
            self._sift(queue, Chosen(None, others), outcome, transaction, now_ms)

    def _confirm(self, queue: Queue, bookmarks: list[int]) -> None:
        """Messages that were sent at most once are gone: the client has room for others."""
        wanted = frozenset(bookmarks)
        for subscription in self._own(queue):
            consumer = subscription.consumer
            self._state.broker.budget.spend(len(consumer.held) // _GONE_PER_UNIT)
            queue.acknowledge(consumer, consumer.let_go_gone(wanted))
            if consumer.parked:
                queue.wake(consumer)

    # ---- what has to be looked for ---------------------------------------------------------------

    def _sift(self, queue: Queue, chosen: Chosen, outcome: str, transaction: Transaction | None, now_ms: int) -> None:
        state = self._state
        actor = self._actor(queue)
        if transaction is None:
            work = queue.sift(chosen, outcome, now_ms, connection=state.origin, actor=actor)
            state.leave_unfinished(work)
            return
        if not self._transactions.operations_left:
            raise LimitError(self._transactions.too_many_operations)
        state.broker.holdings.admit("ACK in a transaction")
        transaction.sift(queue, chosen, outcome, state.origin, actor)

    def _own(self, queue: Queue) -> list[Subscription]:
        """The client's subscriptions of a queue."""
        return [one for one in self._subscriptions.by_key.values() if one.queue is queue]

    def _actor(self, queue: Queue) -> Actor | None:
        """The client's consumer, by which a retained log names who acknowledged; None: it has none there."""
        return next((one.consumer.actor for one in self._own(queue)), None)


def _bookmarks_in(text: str) -> list[int]:
    """The bookmarks in a header. 0 is the beginning of the log and names no message. Raises FrameError for what is no
    number.
    """
    bookmarks: list[int] = []
    for part in text.split(","):
        mark = part.strip()
        if not (mark.isascii() and mark.isdigit() and len(mark) <= _DIGITS_MAX):
            raise FrameError(f"bookmarks must be numbers, separated by commas, not {mark[:40]!r}")
        bookmarks.append(int(mark))
    return [bookmark for bookmark in bookmarks if bookmark]
