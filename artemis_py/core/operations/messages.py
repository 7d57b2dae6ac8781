"""What operators do to messages: move, copy, remove, expire, retry, change the priority, send to the dead letters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, final

from artemis_py.core.addresses.address import ANYCAST, Address
from artemis_py.core.addresses.batch import Batch, FilterResults
from artemis_py.core.addresses.enqueue import Enqueuer
from artemis_py.core.addresses.full_policy import why_refused
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.budget import Budget
from artemis_py.core.dead_letters import (
    RETRIED_HEADER,
    SENT_BY_OPERATOR,
    Origin,
    has_origin,
    origin_of,
    retried_count,
    routing_type_of,
)
from artemis_py.core.destinations.auto_create import Resolver
from artemis_py.core.events import DEAD, OPERATION
from artemis_py.core.operations.scan import (
    BEHIND,
    DELIVERING,
    PAGED,
    READY,
    SCHEDULED,
    UNHELD,
    LocatedMessage,
    MessageFilter,
    QueueScan,
)
from artemis_py.core.order.entry import CANCELLED, MOVED, PURGED, Entry
from artemis_py.core.order.priority import PRIORITIES
from artemis_py.core.publish.copies import HOPS_HEADER, copy_headers
from artemis_py.core.publish.publish import Publisher, takers
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.core.queue.overflow import Ring
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.tasks import Task
from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from artemis_py.message import COPIED, SENT, Head, Message, encode_headers
from artemis_py.terminal_output import many

# ---- heads -----------------------------------------------------------------------------------------------------------
#
# The headers of copies that an operator has made. What says where a message comes from stays with it.


_STRIPPED: Final = frozenset({"destination-type", HOPS_HEADER})
_ORIGINAL: Final = "_AMQ_ORIG_MESSAGE_ID"
_ENDED: Final = frozenset({"destination-type", HOPS_HEADER, "_AMQ_ACTUAL_EXPIRY"})


def moved(message: Message, address: str, source: str, queue: str) -> Head:
    """For a copy on another ``address``. The original was sent to the address ``source`` and lay on ``queue``. A dead
    letter goes on saying where it died.
    """
    is_copy = has_origin(message.head) and message.head.provenance != SENT
    changes = {} if is_copy else copy_headers(message, source, queue, 1)
    return message.head.forwarded(address, changes, _STRIPPED)


def dead(message: Message, address: str, source: str, queue: str, reason: str) -> Head:
    """For a copy at the dead-letter ``address``, as one that died by itself has it."""
    changes = {**copy_headers(message, source, queue, 1), "reason": reason}
    return message.head.forwarded(address, changes, _STRIPPED)


def retried(message: Message, address: str) -> Head:
    """For a dead or expired message that goes back to where it came from. It is marked with how often it did."""
    changes = {RETRIED_HEADER: str(retried_count(message.head) + 1)}
    routing_type = routing_type_of(message.head)
    if routing_type is not None:
        changes["destination-type"] = routing_type
    head = message.head.forwarded(address, changes, _ENDED)
    head.routing_type = routing_type
    return head


def with_priority(message: Message, priority: int) -> Head:
    """The same with another priority. Readers of the log find the original by its number. Where it came from is then
    no longer what a client says.
    """
    head = message.head
    dropped = ("priority", _ORIGINAL, *(("_AMQ_ORIG_ADDRESS",) if head.provenance == SENT else ()))
    headers = [(name, value) for name, value in head.headers() if name not in dropped]
    changed = Head(
        encode_headers([*headers, ("priority", str(priority)), (_ORIGINAL, str(message.id))]), head.address,
        priority=priority, persistent=head.persistent, sized=head.sized, routing_type=head.routing_type,
        duplicate_id=head.duplicate_id,
    )  # fmt: skip
    changed.provenance = COPIED if head.provenance == SENT else head.provenance
    return changed


# ---- taking ----------------------------------------------------------------------------------------------------------
#
# Takes a message that an operator has chosen from where it stands, and puts it back.


def take(queue: Queue, located: LocatedMessage) -> Entry | None:
    """Take the message out; None if it is not there any more, or not free. Its end follows, or ``put_back``."""
    contents, entry = queue.contents, located.entry
    if contents.is_deleted:
        return None
    if located.state == READY:
        return entry if contents.order.remove(entry, entry.sequence) else None
    if located.state == SCHEDULED:
        if not contents.is_aside(entry):
            return None
        contents.end_waiting(entry)
        return entry
    if located.state == BEHIND:
        pending = contents.pending
        if pending is None or not pending.has(entry):
            return None
        contents.take_from_pending(entry)
        return entry
    backlog, found = located.backlog, located.found
    if located.state != PAGED or backlog is None or found is None:
        return None
    if contents.deferred_acks is not None and contents.deferred_acks.knows(entry.message.lsn):
        return None  # a client has settled it already
    return queue.pages.enter(backlog, found)


def put_back(queue: Queue, located: LocatedMessage, entry: Entry, due_ms: int) -> None:
    """Undo ``take``: nothing could be done with the message. ``due_ms`` is what a scheduled one waits for."""
    contents = queue.contents
    if located.state == SCHEDULED:
        contents.put_aside(entry, due_ms)
    elif located.state == BEHIND and contents.pending is not None:
        contents.pending.add(entry)
    else:
        contents.put_back(entry)
    queue.state.note_ready()


# ---- targets ---------------------------------------------------------------------------------------------------------
#
# Where an operator has messages moved or copied to: a queue, which gets them whatever its filter says, or an address,
# which routes them as if a client had sent them.


_SEPARATOR: Final = "::"


class Target(ABC):
    """One target. Copies are made of originals; what is asked first is whether there is room for them."""

    @property
    @abstractmethod
    def address(self) -> Address:
        """The address that has the copies."""

    @abstractmethod
    def is_gone(self) -> bool:
        """Does it exist no more?"""

    @abstractmethod
    def fault(self, copy: Message) -> str:
        """Why this copy may not come, so that its original must stay; empty: it may."""

    @abstractmethod
    def full_because(self, copy: Message) -> str:
        """Why there is no room for the copy; empty: there is."""

    @property
    @abstractmethod
    def takers(self) -> list[Queue]:
        """The queues that get the copy that was asked about last (``fault``)."""

    @abstractmethod
    def put(self, copy: Message, now_ms: int, due_ms: int) -> None:
        """Put a copy there. ``due_ms`` above 0 schedules it."""

    @property
    def is_behind(self) -> bool:
        """Must copies wait, because the disk is behind with the pages of the address?"""
        stream = self.address.stream
        return stream is not None and stream.active and stream.is_behind


@final
class _QueueTarget(Target):
    """One queue."""

    def __init__(self, queue: Queue, bindings: Bindings, enqueuer: Enqueuer) -> None:
        self.queue = queue
        self._address = bindings.address_of(queue)
        self._enqueuer = enqueuer

    @property
    def address(self) -> Address:
        return self._address

    def is_gone(self) -> bool:
        return self.queue.deleted

    def fault(self, copy: Message) -> str:
        return "" if self.queue.enabled else f"queue {self.queue.name} is disabled"

    def full_because(self, copy: Message) -> str:
        flow = self.queue.flow
        if self._address.refusal is None and flow.limits_senders and not flow.admits(copy.size_bytes):
            return flow.why_full(1, copy.size_bytes)
        return why_refused(self._address)

    @property
    def takers(self) -> list[Queue]:
        return [self.queue]

    def put(self, copy: Message, now_ms: int, due_ms: int) -> None:
        self._enqueuer.enqueue_copies(self._address, self.queue, [copy], now_ms, due_ms)


@final
class _AddressTarget(Target):
    """An address with all its queues and diverts."""

    def __init__(self, address: Address, bindings: Bindings, publisher: Publisher) -> None:
        self._address = address
        self._bindings = bindings
        self._publisher = publisher
        self._full = ""
        self._takers: list[Queue] = []

    @property
    def address(self) -> Address:
        return self._address

    def is_gone(self) -> bool:
        return self._bindings.addresses.get(self._address.name) is not self._address

    def fault(self, copy: Message) -> str:
        self._full = ""
        route = self._bindings.route_to(self._address, None, copy.head.routing_type)
        plan = self._bindings.plan_of(route)
        filter_results = FilterResults(copy)
        queues = self._takers = takers(self._address, plan, None, copy.head.routing_type, filter_results)
        if any(filter_results.of(divert.selector) for divert in (*plan.exclusive_diverts, *plan.diverts)):
            return ""
        for queue in queues:
            if queue.flow.limits_senders and not queue.flow.admits(copy.size_bytes):
                self._full = queue.flow.why_full(1, copy.size_bytes)
        return "" if queues else f"no queue of address {self._address.name} takes it"

    def full_because(self, copy: Message) -> str:
        return why_refused(self._address) or self._full

    @property
    def takers(self) -> list[Queue]:
        return self._takers

    def put(self, copy: Message, now_ms: int, due_ms: int) -> None:
        route = self._bindings.route_to(self._address, None, copy.head.routing_type)
        copy.head = route.head_of(copy.head)
        batch = Batch(route, [copy], copy.size_bytes, now_ms, plain=False, due_ms=due_ms)
        batch.hops = 1
        self._publisher.publish(batch, admitted=True)


def _why_gone(queue: Queue) -> str:
    """Why a queue gives messages up when others come, as words that follow its name."""
    overflow = queue.flow.overflow
    reasons: list[str] = []
    if isinstance(overflow, Ring):
        reasons.append(f"which keeps {many(overflow.size, 'message')} (ring-size)")
    elif overflow.sheds:
        reasons.append(f"which keeps {overflow.depth} (max-depth, overflow-policy RING)")
    if queue.contents.last_values is not None:
        reasons.append("where newer ones have the same last-value-key")
    return ", or ".join(reasons)


@final
class Targets:
    """Finds targets by their names."""

    def __init__(self, bindings: Bindings, resolver: Resolver, enqueuer: Enqueuer, publisher: Publisher) -> None:
        self.bindings = bindings
        self._resolver = resolver
        self._enqueuer = enqueuer
        self._publisher = publisher

    def queue(self, queue: Queue) -> _QueueTarget:
        """This queue as a target."""
        return _QueueTarget(queue, self.bindings, self._enqueuer)

    def address(self, address: Address) -> _AddressTarget:
        """This address as a target."""
        return _AddressTarget(address, self.bindings, self._publisher)

    def find(self, name: str) -> Target:
        """The queue of this name (also ``address::queue``), or else the address. Raises NotFoundError."""
        address_name, separator, queue_name = name.partition(_SEPARATOR)
        queue = self.bindings.queues.get(queue_name if separator else name)
        if queue is not None and (not separator or queue.address.name == address_name):
            return self.queue(queue)
        address = None if separator else self.bindings.addresses.get(name)
        if address is None:
            raise NotFoundError(f"there is no queue or address {name!r} to put messages on")
        return self.address(address)

    def of_origin(self, origin: Origin, routing_type: str | None) -> Target:
        """Where a message came from: its queue, and an anycast queue that is gone is created again, as a SEND to it
        would. Never the address: all other subscriptions would get the message once more. What came from no queue (no
        route) goes to its address, as a SEND. Raises BrokerError if there is nothing to send it to.
        """
        name = origin.address or ""
        if origin.queue is None:
            return self.address(self._resolver.route(name, None, routing_type).address)
        queue = self.bindings.queues.get(origin.queue)
        if queue is None and set(self._resolver.types_of(name, routing_type)) != {ANYCAST}:
            raise NotFoundError(
                f"its queue {origin.queue} of address {name} is gone and was no anycast queue, and other subscriptions"
                " must not get it again; create the queue, or move the message"
            )
        return self.queue(queue or self._resolver.obtain_queue(name, origin.queue, ANYCAST))


# ---- operations ------------------------------------------------------------------------------------------------------
#
# What an operator has done with one message: each operation is done completely or not at all, also in a crash. A
# message and its copy are in one group of the log: the end of the original and the copy survive together.


_END_UNITS: Final = 5
_EXPIRE_UNITS: Final = 14
_COPY_UNITS: Final = 40
"""What it costs to make a copy and to publish it at once, in units of a turn."""


class CopyResult(NamedTuple):
    """A copy is on its target. ``replaced`` counts the messages that its queues gave up for it, by why they did;
    ``transient`` says why it does not survive a restart, as its original did; empty: it does.
    """

    replaced: dict[str, int]
    transient: str


class Outcome(NamedTuple):
    """What became of an operation on one message. ``reason`` says why it was not done; empty: the message was not there
    any more. ``stops``: nor would it be with the next message. ``placed``: where its copy came, if it made one.
    """

    is_done: bool
    reason: str = ""
    stops: bool = False
    placed: CopyResult | None = None


DONE: Final = Outcome(is_done=True)
GONE: Final = Outcome(is_done=False)


class MessageOperation(ABC):
    """One kind of operation, on the messages of one queue. ``word`` is the participle for the answer. ``units`` is what
    one costs.
    """

    word: str
    units: int = _END_UNITS
    makes_copies: bool = False

    @property
    def must_wait(self) -> bool:
        """Can nothing be done in this turn?"""
        return False

    @abstractmethod
    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        """Do it with this message, which no consumer has."""


@final
class Remove(MessageOperation):
    """Removes messages: they are gone."""

    word = "removed"

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        queue = self._queue
        return _end(queue, located, lambda entry: queue.contents.kill([entry.message], PURGED))


@final
class Expire(MessageOperation):
    """Has messages expire, whatever their date."""

    word = "expired"
    units = _EXPIRE_UNITS

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        return _end(self._queue, located, self._expire)

    def _expire(self, entry: Entry) -> None:
        contents = self._queue.contents
        contents.deliver(entry.message)
        try:
            contents.expire_held([entry.message], None)
        except Exception:
            contents.come_back(entry.message)
            raise


class _ToTarget(MessageOperation):
    """Makes copies of a queue's messages for a target, and waits while the target is behind."""

    units = _COPY_UNITS
    makes_copies = True

    def __init__(self, queue: Queue, target: Target, bindings: Bindings) -> None:
        self._queue = queue
        self._target = target
        self._bindings = bindings

    @property
    def must_wait(self) -> bool:
        return self._target.is_behind


@final
class Move(_ToTarget):
    """Moves messages to a target. A scheduled one stays scheduled; how often deliveries failed is forgotten."""

    word = "moved"

    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        target, message, queue = self._target, located.message, self._queue
        head = _moved_head(self._queue, target, message, self._bindings)
        copy = _copy(message, head, message.expires_ms, target)
        refused = _refused(target, copy)
        return refused or _carry(self._queue, located, target, copy, now_ms, due_ms_of(queue, located, now_ms), MOVED)


@final
class SendToDeadLetters(_ToTarget):
    """Sends messages to the dead-letter address, however full it is. What nothing takes there stays."""

    word = "sent"

    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        target, queue, message = self._target, self._queue, located.message
        if target.is_gone():
            return Outcome(is_done=False, reason="the dead-letter address was deleted", stops=True)
        name = target.address.name
        source = self._bindings.source_of(message, queue.reference)
        copy = _copy(message, dead(message, name, source.name, queue.name, SENT_BY_OPERATOR), 0, target)
        fault = target.fault(copy)
        if fault:
            return Outcome(is_done=False, reason=fault)
        outcome = _carry(queue, located, target, copy, now_ms, 0, CANCELLED)
        if outcome.is_done:
            told: dict[str, str | int] = {
                "message": message.id, "reason": SENT_BY_OPERATOR, "dead_letter_address": name
            }  # fmt: skip
            queue.host.note_event(DEAD, queue.reference, told, kind=SENT_BY_OPERATOR)
        return outcome


@final
class Copy(_ToTarget):
    """Copies messages to a target. The originals stay as they are."""

    word = "copied"

    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        target, message, queue = self._target, located.message, self._queue
        head = _moved_head(self._queue, target, message, self._bindings)
        copy = _copy(message, head, message.expires_ms, target)
        refused = _refused(target, copy)
        if refused is not None:
            return refused
        queue.host.copies.join()
        try:
            placed = _put(self._queue, target, copy, now_ms, due_ms_of(queue, located, now_ms))
        except _NotKeptError as error:
            return Outcome(is_done=False, reason=error.reason)
        return Outcome(is_done=True, placed=placed)


@final
class Prioritize(MessageOperation):
    """Gives messages another priority. Each goes behind those that have it already, under a new number."""

    word = "changed"
    units = _COPY_UNITS
    makes_copies = True

    def __init__(self, own: _QueueTarget, priority: int) -> None:
        self._own = own
        self._priority = priority

    @property
    def must_wait(self) -> bool:
        return self._own.is_behind

    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        message, priority = located.message, self._priority
        if message.head.priority == priority:
            return Outcome(is_done=False, reason=f"has priority {priority} already")
        queue = self._own.queue
        copy = _copy(message, with_priority(message, priority), message.expires_ms, self._own)
        return _carry(queue, located, self._own, copy, now_ms, due_ms_of(queue, located, now_ms), MOVED)


@final
class Retry(MessageOperation):
    """Sends dead and expired messages back to the queues they came from (``Targets.of_origin``). They do not expire, as
    the copies on a dead-letter queue do not.
    """

    word = "retried"
    units = _COPY_UNITS
    makes_copies = True

    def __init__(self, queue: Queue, targets: Targets) -> None:
        self._queue = queue
        self._targets = targets
        self._waits_for: Target | None = None

    @property
    def must_wait(self) -> bool:
        target = self._waits_for
        return target is not None and not target.is_gone() and target.is_behind

    def do(self, located: LocatedMessage, now_ms: int) -> Outcome:
        message = located.message
        if not has_origin(message.head):
            return Outcome(is_done=False, reason="does not say where it comes from")
        origin, routing_type = origin_of(message.head), routing_type_of(message.head)
        try:
            target = self._targets.of_origin(origin, routing_type)
        except BrokerError as error:
            return Outcome(is_done=False, reason=str(error))
        if isinstance(target, _QueueTarget) and target.queue is self._queue:
            return Outcome(is_done=False, reason="comes from this queue")
        self._waits_for = target
        copy = _copy(message, retried(message, origin.address or target.address.name), 0, target)
        refused = _refused(target, copy)
        if refused is not None:  # messages of other queues may still be moved
            return Outcome(is_done=False, reason=refused.reason)
        return _carry(self._queue, located, target, copy, now_ms, due_ms_of(self._queue, located, now_ms), MOVED)


def due_ms_of(queue: Queue, located: LocatedMessage, now_ms: int) -> int:
    """When a sender wants the message delivered, in epoch ms; 0: at once, or it waits only for another attempt."""
    if located.entry.attempts:
        return 0
    if located.state == SCHEDULED:
        return queue.contents.scheduled_dates.of(located.message.id)
    if located.state == PAGED and located.found is not None and located.found.due_ms > now_ms:
        return located.found.due_ms
    return 0


def _refused(target: Target, copy: Message) -> Outcome | None:
    """Why the target cannot have the copy; None: it can."""
    if target.is_gone():
        return Outcome(is_done=False, reason="the target was deleted", stops=True)
    fault = target.fault(copy)
    full = target.full_because(copy)
    if full:
        return Outcome(is_done=False, reason=full, stops=True)
    return Outcome(is_done=False, reason=fault) if fault else None


def _moved_head(queue: Queue, target: Target, message: Message, bindings: Bindings) -> Head:
    source = bindings.source_of(message, queue.reference)
    return moved(message, target.address.name, source.name, queue.name)


def _copy(message: Message, head: Head, expires_ms: int, target: Target) -> Message:
    """A copy for the target. It has no number before it is put there."""
    return Message(head, message.body, 0, message.timestamp_ms, expires_ms, target.address.account, 0)


class _NotKeptError(Exception):
    """The target keeps no copy, for this ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _put(queue: Queue, target: Target, copy: Message, now_ms: int, due_ms: int) -> CopyResult:
    """Put a copy of a message of the queue on the target. Raises _NotKeptError if it did not stay there: a ring
    has dropped it.
    """
    host, takers = queue.host, target.takers
    before = [taker.contents.counters.replaced for taker in takers]
    copy.id = host.next_message_id()
    outcome = PublishOutcome(host.outcomes)
    outcome.begin(copy.id)
    try:
        target.put(copy, now_ms, due_ms)
        fan_outs = target.address.fan_outs
        if fan_outs is not None:  # put off, because the turn has no units left; the count is wanted now
            host.agenda.complete(fan_outs, now_ms)
    finally:
        outcome.end()
    if not outcome.is_kept:
        raise _NotKeptError(outcome.why_lost)
    replaced: dict[str, int] = {}
    for taker, count in zip(takers, before, strict=True):
        more = taker.contents.counters.replaced - count
        if more:
            replaced[f"gone from queue {taker.name}, {_why_gone(taker)}"] = more
    return CopyResult(replaced, _why_transient(queue, takers, copy))


def _why_transient(queue: Queue, takers: Sequence[Queue], copy: Message) -> str:
    """Why a restart loses the copy, though not its original; empty: it does not, or would have lost both."""
    if not copy.head.persistent or not _survives(queue) or not takers or any(_survives(taker) for taker in takers):
        return ""
    return f"queue {takers[0].name} is not durable: what it has does not survive a restart"


def _survives(queue: Queue) -> bool:
    return queue.durable and not queue.temporary


def _carry(
    queue: Queue, located: LocatedMessage, target: Target, copy: Message, now_ms: int, due_ms: int, reason: str
) -> Outcome:
    """Put a copy on the target in the original's stead, which leaves its queue for this ``reason``. What the target
    does not keep stays where it is.
    """
    placed: list[CopyResult] = []

    def carry(entry: Entry) -> None:
        queue.host.copies.join()
        placed.append(_put(queue, target, copy, now_ms, due_ms))
        if reason == MOVED:
            queue.contents.acknowledge([entry.message], None, MOVED)  # as Artemis counts it
        else:
            queue.contents.kill([entry.message], reason)

    try:
        outcome = _end(queue, located, carry)
    except _NotKeptError as error:
        return Outcome(is_done=False, reason=error.reason)
    return Outcome(is_done=True, placed=placed[0]) if outcome.is_done else outcome


def _end(queue: Queue, located: LocatedMessage, end: Callable[[Entry], None]) -> Outcome:
    """Take a message out and end it. If that raises, the message is where it was."""
    waits_until_ms = queue.contents.scheduled_dates.of(located.message.id)
    entry = take(queue, located)
    if entry is None:
        return GONE
    try:
        end(entry)
    except Exception:
        put_back(queue, located, entry, waits_until_ms)
        raise
    return DONE


# ---- change ----------------------------------------------------------------------------------------------------------
#
# What an operator does with many messages of a queue, carried out over as many turns as it takes.


UNITS_MAX: Final = 1_000
"""What one change may spend in a turn, whatever else the turn has left."""
HELD_NAMED_MAX: Final = 100
"""So many messages that consumers have are named."""
_REASONS_MAX: Final = 20
_OTHERS: Final = "other reasons"


@final
class Change(Task):
    """Does something with each of the chosen messages that was on the queue when it began. Those that consumers have
    are left alone, and counted when everything else is done.

    It leaves the agenda before it ``is_over`` while it waits for the disk, for room in its target, or because it has
    used up its ``allowance`` of messages (None: any number). Whoever began it looks whether it ``can_work``, and puts
    it on the agenda again. The queue delivers meanwhile, and no other task of it has to wait.
    """

    def __init__(
        self, queue: Queue, choice: MessageFilter, operation: MessageOperation, *, allowance: int | None = None
    ) -> None:
        self.queue = queue
        self.operation = operation
        self.done_count = 0
        self.kept: dict[str, int] = {}
        """How many of the chosen messages stayed where they are, by the reason."""
        self.replaced: dict[str, int] = {}
        """How many messages are gone because copies came to full rings, or with newer values, by the queue and why."""
        self.transient: dict[str, int] = {}
        """How many copies do not survive a restart, though their originals did, by the reason."""
        self.held_count = 0
        self.held_ids: list[int] = []
        """The first of those chosen messages that consumers have."""
        self.stopped_because = ""
        """Why it ended before it had looked at everything; empty: it did not."""
        self.is_over = False
        self.allowance = allowance
        self._choice = choice
        self._scan = QueueScan(queue, UNHELD, choice.ids or ())
        self._is_counting_held = False
        self._found_count = 0

    @property
    def can_work(self) -> bool:
        """Is there something that it could do?"""
        if self.allowance is not None and self.allowance <= 0:
            return False
        return not (self._scan.is_waiting or self.operation.must_wait)

    def stop(self, reason: str) -> None:
        """End it before it is done. What it has done is not undone."""
        if not self.is_over:
            self.stopped_because = reason
            self._end()

    def work(self, budget: Budget, now_ms: int) -> bool:
        given = min(budget.left, UNITS_MAX)
        share = Budget()
        share.refill(max(given, 1))
        while not self.is_over and self.can_work:
            if self.queue.deleted:
                self.stop("the queue was deleted")
                break
            located = self._scan.next(share)
            if located is not None:
                self._look_at(located, share, now_ms)
            elif self._scan.is_done:
                self._go_on()
            if share.is_spent:
                break
        budget.spend(max(given, 1) - share.left)
        self.queue.after_removal.run()
        return self.is_over or not self.can_work

    def break_off(self, now_ms: int) -> bool:
        self.stop("a step of it failed; see the log of the broker")
        return False

    def _go_on(self) -> None:
        """Everything free was looked at. Count what consumers have; then that is all."""
        if self._is_counting_held or self._has_found_all:
            self._end()
            return
        self._is_counting_held = True
        self._scan = QueueScan(self.queue, (DELIVERING,), self._choice.ids or ())

    @property
    def _has_found_all(self) -> bool:
        """Was every message found that was chosen by its number, or as many done as are wanted?"""
        ids, count_max = self._choice.ids, self._choice.count_max
        if count_max is not None and self.done_count >= count_max:
            return True
        return ids is not None and self._found_count >= len(ids)

    def _look_at(self, located: LocatedMessage, share: Budget, now_ms: int) -> None:
        message = located.message
        if not self._choice.matches(message, share):
            return
        self._found_count += 1
        if self._is_counting_held:
            self.held_count += 1
            if len(self.held_ids) < HELD_NAMED_MAX:
                self.held_ids.append(message.id)
        else:
            self._note(self.operation.do(located, now_ms), share)
        if self._has_found_all:
            self._end()

    def _note(self, outcome: Outcome, share: Budget) -> None:
        if outcome.is_done:
            share.spend(self.operation.units)
            self.done_count += 1
            if self.allowance is not None:
                self.allowance -= 1
            if outcome.placed is not None:
                for reason, count in outcome.placed.replaced.items():
                    _count(self.replaced, reason, count)
                if outcome.placed.transient:
                    _count(self.transient, outcome.placed.transient, 1)
        elif outcome.stops:
            self.stop(outcome.reason)
        elif outcome.reason:
            share.spend(self.operation.units // 2)
            _count(self.kept, outcome.reason, 1)
        else:
            self._found_count -= 1  # a consumer may have it by now

    def _end(self) -> None:
        self._scan.close()
        self.is_over = True


def _count(counts: dict[str, int], reason: str, count: int) -> None:
    """So many more for this reason. Of very many reasons the later ones are one."""
    name = reason if reason in counts or len(counts) < _REASONS_MAX else _OTHERS
    counts[name] = counts.get(name, 0) + count


# ---- operations ------------------------------------------------------------------------------------------------------
#
# The changes that operators make to messages, by name. Each goes on by itself until it is over.


DELIVERED_MAX: Final = 5_000
"""So many scheduled messages, at most, are put in the order of their time and delivered together."""


@final
class MessageOperations:
    """Begins changes, and ends them when the broker stops."""

    def __init__(
        self, host: QueueHost, bindings: Bindings, resolver: Resolver, enqueuer: Enqueuer, publisher: Publisher
    ) -> None:
        self._host = host
        self._bindings = bindings
        self._resolver = resolver
        self._targets = Targets(bindings, resolver, enqueuer, publisher)
        self.changes: list[Change] = []
        """Changes that are not over, and some that are."""

    def remove(self, queue: Queue, choice: MessageFilter) -> Change:
        """Remove messages."""
        return self._begin(queue, choice, Remove(queue))

    def expire(self, queue: Queue, choice: MessageFilter) -> Change:
        """Have messages expire."""
        return self._begin(queue, choice, Expire(queue))

    def send_to_dead_letters(self, queue: Queue, choice: MessageFilter) -> Change:
        """Send messages to the dead-letter address. Raises BrokerError if the queue has none, or nothing takes what is
        sent there.
        """
        target = self._targets.address(self._dead_letter_address_of(queue))
        return self._begin(queue, choice, SendToDeadLetters(queue, target, self._bindings))

    def move(self, queue: Queue, choice: MessageFilter, target_name: str) -> Change:
        """Move messages to the queue or address of this name. Raises BrokerError."""
        return self._begin(queue, choice, Move(queue, self._target(queue, target_name), self._bindings))

    def copy(self, queue: Queue, choice: MessageFilter, target_name: str) -> Change:
        """Copy messages to the queue or address of this name. Raises BrokerError."""
        return self._begin(queue, choice, Copy(queue, self._target(queue, target_name), self._bindings))

    def prioritize(self, queue: Queue, choice: MessageFilter, priority: int) -> Change:
        """Give messages another priority. Raises BadRequestError."""
        if not 0 <= priority < PRIORITIES:
            raise BadRequestError(f"priority must be 0 to {PRIORITIES - 1}, not {priority}")
        return self._begin(queue, choice, Prioritize(self._targets.queue(queue), priority))

    def retry(self, queue: Queue, choice: MessageFilter, *, allowance: int | None = None) -> Change:
        """Send dead and expired messages back to the queues they came from; see ``Change`` for the allowance."""
        return self._begin(queue, choice, Retry(queue, self._targets), allowance=allowance)

    def deliver(self, queue: Queue, ids: Iterable[int], now_ms: int) -> int:
        """Have scheduled messages delivered now, at most ``DELIVERED_MAX``: the earliest first. Returns how many there
        are.
        """
        contents = queue.contents
        entries = [entry for one in ids if (entry := contents.scheduled.get(one)) is not None]
        if not entries:
            return 0
        entries.sort(key=lambda entry: contents.scheduled_dates.of(entry.message.id))
        count = len(entries)
        budget = Budget()
        budget.refill(1)
        self._tell(queue, "delivered")
        queue.release_due(entries, now_ms, budget)
        return count

    def nudge(self, change: Change) -> None:
        """Let a change go on: what it waited for has come."""
        if change.done and not change.is_over and change.can_work:
            self._host.agenda.add(change)

    def stop(self) -> None:
        """The broker stops: end all changes as they are."""
        for change in self.changes:
            change.stop("the broker stopped")

    def _begin(
        self, queue: Queue, choice: MessageFilter, operation: MessageOperation, *, allowance: int | None = None
    ) -> Change:
        change = Change(queue, choice, operation, allowance=allowance)
        self.changes = [each for each in self.changes if not each.is_over]
        self.changes.append(change)
        self._tell(queue, operation.word)
        self._host.agenda.add(change)
        return change

    def _tell(self, queue: Queue, word: str) -> None:
        self._host.note_event(OPERATION, queue.reference, {"operation": f"messages {word}"}, kind=word)

    def _target(self, queue: Queue, name: str) -> Target:
        target = self._targets.find(name)
        if isinstance(target, _QueueTarget):
            if target.queue is queue:
                raise BadRequestError(f"{name} is the queue itself; name another one")
            if not target.queue.enabled:
                raise BrokerError(f"queue {target.queue.name} is disabled and takes no messages")
        elif not self._bindings.has_queues(target.address) and not target.address.diverts:
            raise BrokerError(f"address {name} has no queue, so the messages would be lost; create one first")
        return target

    def _dead_letter_address_of(self, queue: Queue) -> Address:
        address = self._bindings.address_of(queue)
        own = queue.reference.rules.dead_letter_address
        name = address.settings.dead_letter_address if own is None else own
        if not name:
            raise BrokerError(f"queue {queue.name} has no dead-letter-address; set one, or remove the messages instead")
        if name == address.name:
            raise BrokerError(f"queue {queue.name} is on the dead-letter-address {name} already")
        self._resolver.obtain_resources(address, name, dead=True)
        target = self._bindings.addresses.get(name)
        if target is None or not (self._bindings.has_queues(target) or target.diverts):
            raise BrokerError(
                f"nothing takes what is sent to the dead-letter-address {name}; create a queue on it first"
            )
        return target
