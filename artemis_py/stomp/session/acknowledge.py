"""ACK and NACK: of the message with this id, of all before it, or of those that the client names by bookmarks or a
filter.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.acknowledge import SelectedMessages
from artemis_py.core.queue.messages import ACCEPT, CANCEL, EXPIRE
from artemis_py.core.queue.queue import Queue
from artemis_py.core.transactions import Transaction
from artemis_py.errors import LimitError
from artemis_py.record_log import Actor
from artemis_py.selector import compile_selector
from artemis_py.stomp.session.state import Remainder, SessionState
from artemis_py.stomp.session.subscribe import AUTO, INDIVIDUAL, SELECTOR_CHARACTERS_PER_UNIT, Subscription
from artemis_py.stomp.session.subscriptions import Subscriptions
from artemis_py.stomp.session.transactions import Transactions
from artemis_py.stomp.wire.dialect import split_qualified
from artemis_py.stomp.wire.frames import AckRun, Frame, FrameError

# ---- choosing --------------------------------------------------------------------------------------------------------
#
# ACK and NACK of messages that the client names by bookmarks or by a filter (AMPS).


_BOOKMARKS: Final = "bookmarks"
_FILTER: Final = "filter"
_DIGITS_MAX: Final = 19
_MARKS_PER_UNIT: Final = 4
_GONE_PER_UNIT: Final = 16


def names_several(frame: Frame) -> bool:
    """Does an ACK or NACK name its messages itself, instead of one by its id?"""
    return _BOOKMARKS in frame.headers or _FILTER in frame.headers


def settle_entries(
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
class AcknowledgingSeveral:
    """Settles messages of a queue, whoever holds them, as far as the queue's ``leasing`` allows that. The client need
    not be subscribed, but it must be allowed to consume there.
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
        if not queue.tells_bookmarks:
            _begin_bookmarks(queue, frame)
        if _FILTER in headers:
            text = headers[_FILTER]
            self._state.broker.budget.spend(len(text) // SELECTOR_CHARACTERS_PER_UNIT)
            selector = compile_selector(text, self._state.service.limits.selectors)
            self._acknowledge_by_filter(queue, SelectedMessages(selector), outcome, transaction, now_ms)
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
                settle_entries(state, queue, holder, entries, outcome, now_ms)
            if holder.parked and not holder.closed:
                queue.wake(holder)
        if others and outcome != CANCEL:
            self._acknowledge_by_filter(queue, SelectedMessages(None, others), outcome, transaction, now_ms)

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

    def _acknowledge_by_filter(
        self, queue: Queue, chosen: SelectedMessages, outcome: str, transaction: Transaction | None, now_ms: int
    ) -> None:
        state = self._state
        actor = self._actor(queue)
        if transaction is None:
            work = queue.acknowledge_by_filter(chosen, outcome, now_ms, connection=state.origin, actor=actor)
            state.leave_unfinished(work)
            return
        if not self._transactions.operations_left:
            raise LimitError(self._transactions.too_many_operations)
        state.broker.holdings.admit("ACK in a transaction")
        transaction.acknowledge_by_filter(queue, chosen, outcome, state.origin, actor)

    def _own(self, queue: Queue) -> list[Subscription]:
        """The client's subscriptions of a queue."""
        return [one for one in self._subscriptions.by_key.values() if one.queue is queue]

    def _actor(self, queue: Queue) -> Actor | None:
        """The client's consumer, by which a retained log names who acknowledged; None: it has none there."""
        return next((one.consumer.actor for one in self._own(queue)), None)


def _begin_bookmarks(queue: Queue, frame: Frame) -> None:
    """A queue without an attribute of AMPS is to settle by bookmarks. Raises FrameError where it cannot."""
    if _FILTER in frame.headers:
        raise FrameError(
            f"Queue {queue.name} has no attribute of AMPS: acknowledge its messages by bookmarks or one by one, or "
            'give it one, for example leasing="sublet"'
        )
    if queue.non_destructive:
        raise FrameError(f"Queue {queue.name} is non-destructive: its messages stay, whoever acknowledges them")
    if not queue.durable:
        raise FrameError(f"Queue {queue.name} is not durable: its messages have no bookmarks")
    queue.know_holders()


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


# ---- acknowledging ---------------------------------------------------------------------------------------------------
#
# ACK and NACK.


@final
class Acknowledging:
    """Settles what the consumers of one session hold, at once or with a transaction."""

    __slots__ = ("_choosing", "_state", "_subscriptions", "_transactions")

    def __init__(self, state: SessionState, subscriptions: Subscriptions, transactions: Transactions) -> None:
        self._state = state
        self._subscriptions = subscriptions
        self._transactions = transactions
        self._choosing = AcknowledgingSeveral(state, subscriptions, transactions)

    def acknowledge(self, frame: Frame, now_ms: int, *, refuses: bool) -> Remainder | None:
        """ACK, or NACK when ``refuses``. The header ``options`` makes of either a cancel, which NACK is, or an expire
        (AMPS). For a message of a replay it does nothing. Returns what the
        RECEIPT tells, if anything.

        Raises FrameError for a message that is not in delivery here.
        """
        state = self._state
        if refuses and state.version == "1.0":
            raise FrameError("STOMP 1.0 has no NACK")
        outcome = _outcome_in(frame, refuses=refuses)
        name = frame.headers.get("transaction")
        transaction = None if name is None else self._transactions.named(name)
        if names_several(frame):
            return self._choosing.settle(frame, outcome, transaction, now_ms)
        if self._subscriptions.replaying is not None and self._is_replayed(_id_in(frame, state.version)):
            return None
        subscription, message_id = self._find(frame)
        if message_id not in subscription.consumer.held:
            self._settle_late(subscription, message_id, outcome, transaction, now_ms)
            return None
        consumer, queue = subscription.consumer, subscription.queue
        is_individual = subscription.ack_mode == INDIVIDUAL
        if transaction is not None:
            count_max = self._transactions.operations_left + 1
            if (1 if is_individual else consumer.count_up_to(message_id, count_max)) == count_max:
                raise LimitError(self._transactions.too_many_operations)
            taken = taken_in(transaction, outcome)
            taken.extend([(queue, consumer, entry) for entry in subscription.covered_by(message_id)])
        elif is_individual:
            self._settle_one(subscription, message_id, outcome, now_ms)
        elif outcome == CANCEL:
            state.leave_unfinished(queue.refuse_up_to(consumer, message_id, now_ms))
        elif outcome == EXPIRE:
            state.leave_unfinished(queue.expire_up_to(consumer, message_id, now_ms))
        else:
            state.leave_unfinished(queue.acknowledge_up_to(consumer, message_id, now_ms))
        if consumer.parked:
            queue.wake(consumer)
        return None

    def _settle_late(
        self, subscription: Subscription, message_id: int, outcome: str, transaction: Transaction | None, now_ms: int
    ) -> None:
        """Settle a message whose lease has ended, where the queue's ``leasing`` allows that. Otherwise nothing happens:
        the client could not know.
        """
        if transaction is not None and not self._transactions.operations_left:
            raise LimitError(self._transactions.too_many_operations)
        queue = subscription.queue
        found = queue.take_late(subscription.consumer, message_id, refuses=outcome == CANCEL)
        if found is None:
            return
        holder, entry = found
        if transaction is not None:
            taken_in(transaction, outcome).append((queue, holder, entry))
        else:
            settle_entries(self._state, queue, holder, [entry], outcome, now_ms)
        if holder.parked:
            queue.wake(holder)

    def _settle_one(self, subscription: Subscription, message_id: int, outcome: str, now_ms: int) -> None:
        entries = subscription.covered_by(message_id)
        settle_entries(self._state, subscription.queue, subscription.consumer, entries, outcome, now_ms)

    def acknowledge_run(self, run: AckRun, now_ms: int) -> None:
        """ACKs that follow each other, those of one subscription in one request, with their receipts. Those that are
        carried out leave the run. It stops behind one whose work is not finished, for which ``SessionState.blocked_by``
        then waits.

        Raises FrameError at the first that is for no message in delivery; those before it are carried out and
        confirmed.
        """
        state, by_consumer = self._state, self._subscriptions.by_consumer
        entries: list[Entry] = []
        receipts: list[tuple[int, str]] = []
        subscription: Subscription | None = None
        consumer_text = b""
        for place, (early, consumer, message, late) in enumerate(run.acks):
            if consumer != consumer_text:
                _settle(subscription, entries)
                consumer_text = consumer
                subscription = by_consumer.get(int(consumer))
                entries = []
            message_id = int(message)
            if subscription is not None and message_id in subscription.consumer.held:
                if subscription.ack_mode == INDIVIDUAL:
                    entries.append(subscription.consumer.let_go(message_id))
                else:
                    queue = subscription.queue
                    state.leave_unfinished(queue.acknowledge_up_to(subscription.consumer, message_id, now_ms))
                    if subscription.consumer.parked:
                        queue.wake(subscription.consumer)
                    if state.unfinished:
                        self._end_run(run, place + 1, receipts)
                        state.wait_for_unfinished("ACK", (early or late).decode() or None, None)
                        return
            elif subscription is not None and _takes_late(subscription):
                _settle(subscription, entries)
                entries = []
                self._settle_late(subscription, message_id, ACCEPT, None, now_ms)
            elif subscription is not None or not self._is_replay(int(consumer)):
                _settle(subscription, entries)
                self._end_run(run, place, receipts)
                state.service.traffic.frames_in["ACK"] += 1
                self.acknowledge(Frame("ACK", {"id": f"{consumer.decode()}-{message.decode()}"}), now_ms, refuses=False)
                raise AssertionError("an ACK for a message that is not held must be refused")
            if early or late:
                receipts.append((place, (early or late).decode()))
        _settle(subscription, entries)
        self._end_run(run, len(run.acks), receipts)

    def _end_run(self, run: AckRun, count: int, receipts: list[tuple[int, str]]) -> None:
        """The first ``count`` ACKs of a run are carried out: count them, and confirm those that ask for it."""
        state = self._state
        state.service.traffic.frames_in["ACK"] += count
        state.broker.budget.left -= count
        if receipts:
            state.confirm_run(receipts, count)
        run.acks = run.acks[count:]

    def _is_replayed(self, text: str) -> bool:
        """Does a replay of this connection show the message with this id? Then there is nothing to settle."""
        number = text.partition("-")[0]
        return _is_number(number) and self._is_replay(int(number))

    def _is_replay(self, number: int) -> bool:
        replaying = self._subscriptions.replaying
        return replaying is not None and number in replaying.by_number

    def _find(self, frame: Frame) -> tuple[Subscription, int]:
        """The subscription and message that the frame means: by ack id (1.2), by subscription and message-id, by
        message-id (1.0).
        """
        version = self._state.version
        text = _id_in(frame, version)
        consumer_text, dash, message_text = text.partition("-")
        if not (dash and _is_number(consumer_text) and _is_number(message_text)):
            raise _not_in_delivery(text)
        subscription = self._subscriptions.by_consumer.get(int(consumer_text))
        if subscription is None or not (int(message_text) in subscription.consumer.held or _takes_late(subscription)):
            if subscription is not None and subscription.ack_mode == AUTO:
                raise FrameError(f"Message {text[:80]} was delivered with ack:auto and is already acknowledged")
            raise _not_in_delivery(text)
        named = frame.headers.get("subscription")
        if version == "1.1" and named != subscription.id:
            raise FrameError(f"Message {text[:80]} belongs to subscription {subscription.id!r}, not {named!r}")
        return subscription, int(message_text)


def _outcome_in(frame: Frame, *, refuses: bool) -> str:
    option = frame.headers.get("options", "")
    if option not in ("", CANCEL, EXPIRE):
        raise FrameError(f"options of {frame.command} must be cancel or expire, not {option[:40]!r}")
    return option or (CANCEL if refuses else ACCEPT)


def _takes_late(subscription: Subscription) -> bool:
    """May a message be settled here that is not in delivery here any more, or never was? Leases end. A barrier needs no
    acknowledgement, and nobody remembers which messages were barriers.
    """
    consumer, contents = subscription.consumer, subscription.queue.contents
    if not consumer.destructive:
        return False
    if contents.pending is not None and contents.pending.threshold.makes_barriers:
        return True
    return contents.leases is not None and not consumer.settles and subscription.writer.tells_bookmarks


def _settle(subscription: Subscription | None, entries: list[Entry]) -> None:
    if subscription is not None and entries:
        subscription.queue.acknowledge(subscription.consumer, entries)
        if subscription.consumer.parked:
            subscription.queue.wake(subscription.consumer)


def _id_in(frame: Frame, version: str) -> str:
    """The text that names the message. Raises FrameError where a header is missing that the version asks for."""
    headers = frame.headers
    header = "id" if version == "1.2" else "message-id"
    text = headers.get(header)
    if not text:
        needed = "an id" if header == "id" else "a message-id"
        raise FrameError(f"{frame.command} needs {needed} header in STOMP {version}", syntax=True)
    if version == "1.1" and not headers.get("subscription"):
        raise FrameError(f"{frame.command} needs a subscription header in STOMP 1.1", syntax=True)
    return text


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _not_in_delivery(text: str) -> FrameError:
    return FrameError(f"No message {text[:80]!r} waits for acknowledgement on this connection")
