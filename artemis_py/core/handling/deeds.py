"""What an operator has done with one message: each deed is done completely or not at all, also in a crash.

A message and its copy are in one group of the log: the end of the original and the copy survive together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, NamedTuple, final

from artemis_py.core.addresses.bindings import Bindings
from artemis_py.core.copies import SENT_BY_OPERATOR
from artemis_py.core.handling import heads
from artemis_py.core.handling.origin import has_origin, origin_of, routing_type_of
from artemis_py.core.handling.round import PAGED, SCHEDULED, Sight
from artemis_py.core.handling.taking import put_back, take
from artemis_py.core.handling.targets import QueueTarget, Target, Targets
from artemis_py.core.order.entry import CANCELLED, MOVED, PURGED, Entry
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.core.queue.parts import QueueParts
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import BrokerError
from artemis_py.message import Head, Message

_END_UNITS: Final = 5
_BURY_UNITS: Final = 14
_COPY_UNITS: Final = 40
"""What it costs to make a copy and to publish it at once, in units of a turn."""


class Outcome(NamedTuple):
    """What became of a deed. ``reason`` says why it was not done; empty: the message was not there any more. ``stops``:
    nor would it be with the next message.
    """

    is_done: bool
    reason: str = ""
    stops: bool = False


DONE: Final = Outcome(is_done=True)
GONE: Final = Outcome(is_done=False)


class Deed(ABC):
    """One kind of deed, on the messages of one queue. ``word`` is the participle for the answer. ``units`` is what one
    costs.
    """

    word: str
    units: int = _END_UNITS

    @property
    def must_wait(self) -> bool:
        """Can nothing be done in this turn?"""
        return False

    @abstractmethod
    def do(self, sight: Sight, now_ms: int) -> Outcome:
        """Do it with this message, which no consumer has."""


@final
class Remove(Deed):
    """Removes messages: they are gone."""

    word = "removed"

    def __init__(self, queue: Queue) -> None:
        self._parts = queue.parts

    def do(self, sight: Sight, now_ms: int) -> Outcome:
        parts = self._parts
        return _end(parts, sight, lambda entry: parts.contents.kill([entry.message], PURGED))


@final
class Expire(Deed):
    """Has messages expire, whatever their date."""

    word = "expired"
    units = _BURY_UNITS

    def __init__(self, queue: Queue) -> None:
        self._parts = queue.parts

    def do(self, sight: Sight, now_ms: int) -> Outcome:
        return _end(self._parts, sight, self._expire)

    def _expire(self, entry: Entry) -> None:
        contents = self._parts.contents
        contents.deliver(entry.message)
        try:
            contents.expire_held([entry.message], None)
        except Exception:
            contents.come_back(entry.message)
            raise


@final
class Bury(Deed):
    """Sends messages to the dead-letter address, as ``Target``. What nothing takes there stays."""

    word = "sent"
    units = _BURY_UNITS

    def __init__(self, queue: Queue, grave: Target, bindings: Bindings) -> None:
        self._queue = queue
        self._grave = grave
        self._bindings = bindings

    def do(self, sight: Sight, now_ms: int) -> Outcome:
        parts, grave = self._queue.parts, self._grave
        if grave.is_gone():
            return Outcome(is_done=False, reason="the dead-letter address was deleted", stops=True)
        source = self._bindings.source_of(sight.message, self._queue.reference)
        head = heads.dead(sight.message, grave.address.name, source.name, self._queue.name, SENT_BY_OPERATOR)
        fault = grave.fault(_copy(sight.message, head, 0, grave))
        if not fault and grave.address.refusal == "DROP":
            fault = f"address {grave.address.name} is full, and drops messages (address-full-policy DROP)"
        if fault:
            return Outcome(is_done=False, reason=fault)
        return _end(parts, sight, self._bury)

    def _bury(self, entry: Entry) -> None:
        parts = self._queue.parts
        parts.host.copies.join()
        parts.contents.kill([entry.message], CANCELLED)
        parts.host.copies.note_dead(parts.reference, entry.message, SENT_BY_OPERATOR)


@final
class Move(Deed):
    """Moves messages to a target. A scheduled one stays scheduled; how often deliveries failed is forgotten."""

    word = "moved"
    units = _COPY_UNITS

    def __init__(self, queue: Queue, target: Target, bindings: Bindings) -> None:
        self._queue = queue
        self._target = target
        self._bindings = bindings

    @property
    def must_wait(self) -> bool:
        return self._target.is_behind

    def do(self, sight: Sight, now_ms: int) -> Outcome:
        target, message, parts = self._target, sight.message, self._queue.parts
        head = _moved_head(self._queue, target, message, self._bindings)
        copy = _copy(message, head, message.expires_ms, target)
        return _refused(target, copy) or _carry(parts, sight, target, copy, now_ms)


@final
class Copy(Deed):
    """Copies messages to a target. The originals stay as they are."""

    word = "copied"
    units = _COPY_UNITS

    def __init__(self, queue: Queue, target: Target, bindings: Bindings) -> None:
        self._queue = queue
        self._target = target
        self._bindings = bindings

    @property
    def must_wait(self) -> bool:
        return self._target.is_behind

    def do(self, sight: Sight, now_ms: int) -> Outcome:
        target, message, parts = self._target, sight.message, self._queue.parts
        head = _moved_head(self._queue, target, message, self._bindings)
        copy = _copy(message, head, message.expires_ms, target)
        refused = _refused(target, copy)
        if refused is not None:
            return refused
        due_ms = due_ms_of(parts, sight, now_ms)
        parts.host.copies.join()
        why_lost = _put(parts, target, copy, now_ms, due_ms)
        return Outcome(is_done=False, reason=why_lost) if why_lost else DONE


@final
class Prioritize(Deed):
    """Gives messages another priority. Each goes behind those that have it already, under a new number."""

    word = "changed"
    units = _COPY_UNITS

    def __init__(self, own: QueueTarget, priority: int) -> None:
        self._own = own
        self._priority = priority

    @property
    def must_wait(self) -> bool:
        return self._own.is_behind

    def do(self, sight: Sight, now_ms: int) -> Outcome:
        message, priority = sight.message, self._priority
        if message.head.priority == priority:
            return Outcome(is_done=False, reason=f"has priority {priority} already")
        parts = self._own.queue.parts
        copy = _copy(message, heads.with_priority(message, priority), message.expires_ms, self._own)
        return _carry(parts, sight, self._own, copy, now_ms)


@final
class Retry(Deed):
    """Sends dead and expired messages back to the queues they came from (``Targets.of_origin``). They do not expire, as
    the copies on a dead-letter queue do not.
    """

    word = "retried"
    units = _COPY_UNITS

    def __init__(self, queue: Queue, targets: Targets) -> None:
        self._queue = queue
        self._targets = targets
        self._waits_for: Target | None = None

    @property
    def must_wait(self) -> bool:
        target = self._waits_for
        return target is not None and not target.is_gone() and target.is_behind

    def do(self, sight: Sight, now_ms: int) -> Outcome:
        message = sight.message
        if not has_origin(message.head):
            return Outcome(is_done=False, reason="does not say where it comes from")
        origin, routing_type = origin_of(message.head), routing_type_of(message.head)
        try:
            target = self._targets.of_origin(origin, routing_type)
        except BrokerError as error:
            return Outcome(is_done=False, reason=str(error))
        if isinstance(target, QueueTarget) and target.queue is self._queue:
            return Outcome(is_done=False, reason="comes from this queue")
        self._waits_for = target
        parts = self._queue.parts
        copy = _copy(message, heads.retried(message, origin.address or target.address.name), 0, target)
        refused = _refused(target, copy)
        if refused is not None:  # messages of other queues may go all the same
            return Outcome(is_done=False, reason=refused.reason)
        return _carry(parts, sight, target, copy, now_ms)


def due_ms_of(parts: QueueParts, sight: Sight, now_ms: int) -> int:
    """When a sender wants the message delivered, in epoch ms; 0: at once, or it waits only for another attempt."""
    if sight.entry.attempts:
        return 0
    if sight.state == SCHEDULED:
        return parts.contents.waits_until.of(sight.message.id)
    if sight.state == PAGED and sight.found is not None and sight.found.due_ms > now_ms:
        return sight.found.due_ms
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
    return heads.moved(message, target.address.name, source.name, queue.name)


def _copy(message: Message, head: Head, expires_ms: int, target: Target) -> Message:
    """A copy for the target. It has no number before it is put there."""
    return Message(head, message.body, 0, message.timestamp_ms, expires_ms, target.address.account, 0)


def _put(parts: QueueParts, target: Target, copy: Message, now_ms: int, due_ms: int) -> str:
    """Put a copy on the target. Returns why it is not there all the same: a ring has dropped it. Empty: it is."""
    copy.id = parts.host.next_message_id()
    outcome = PublishOutcome(parts.host.outcomes)
    outcome.watch(copy.id)
    try:
        target.put(copy, now_ms, due_ms)
    finally:
        outcome.end()
    return "" if outcome.is_kept else outcome.why_lost


def _carry(parts: QueueParts, sight: Sight, target: Target, copy: Message, now_ms: int) -> Outcome:
    """Put a copy on the target in the original's stead. What the target does not keep stays where it is."""
    due_ms = due_ms_of(parts, sight, now_ms)
    why_lost = ""

    def move(entry: Entry) -> None:
        nonlocal why_lost
        parts.host.copies.join()
        why_lost = _put(parts, target, copy, now_ms, due_ms)
        if why_lost:
            raise _NotKept
        parts.contents.acknowledge([entry.message], None, MOVED)  # as Artemis counts it

    try:
        return _end(parts, sight, move)
    except _NotKept:
        return Outcome(is_done=False, reason=why_lost)


class _NotKept(Exception):
    """The target keeps no copy."""


def _end(parts: QueueParts, sight: Sight, end: Callable[[Entry], None]) -> Outcome:
    """Take a message out and end it. If that raises, the message is where it was."""
    waits_until_ms = parts.contents.waits_until.of(sight.message.id)
    entry = take(parts, sight)
    if entry is None:
        return GONE
    try:
        end(entry)
    except Exception:
        put_back(parts, sight, entry, waits_until_ms)
        raise
    return DONE
