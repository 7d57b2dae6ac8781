"""Barriers and target depth (AMPS): pending messages become active in order, and a barrier goes to all consumers."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import SLICE_MAX, Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.distribution import Distribution, WakeUps
from artemis_py.core.queue.gate import Gate
from artemis_py.core.queue.messages import EXPIRE_UNITS, Contents, PendingMessages, Threshold
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Message
from artemis_py.selector import Selector

# ---- rules -----------------------------------------------------------------------------------------------------------
#
# Which pending messages may become active.


@final
class BarrierRule(Threshold):
    """``barrier-expression``: a message that matches is a barrier. That depends on the message alone."""

    __slots__ = ("_selector",)

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    @property
    def makes_barriers(self) -> bool:
        return True

    def units_of(self, message: Message) -> int:
        program = self._selector.program
        return program.units + (program.units_per_kb * message.head.size_bytes >> 10)

    def lets_in(self, message: Message, active_count: int) -> bool:
        return not self._selector.matches(message.lookup)


@final
class TargetDepth(Threshold):
    """``target-queue-depth``: so many messages are active."""

    __slots__ = ("target",)

    def __init__(self, target: int) -> None:
        self.target = target

    def lets_in(self, message: Message, active_count: int) -> bool:
        return active_count < self.target


# ---- broadcast -------------------------------------------------------------------------------------------------------
#
# A barrier on its way to all consumers (AMPS).


_LOOKS_PER_UNIT: Final = 8
_LOOKS_MAX: Final = 1024


@final
class Broadcast:
    """Which consumers have one barrier, and which are still to get it. It moves no entry.

    Every consumer that is served and wants the message gets it, also one that comes meanwhile. One whose connection
    takes nothing now is waited for.
    """

    __slots__ = (
        "_got",
        "_lacking",
        "_passed_over",
        "_place",
        "_unsent",
        "_with_room",
        "entry",
        "is_out",
        "was_written",
    )

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.is_out = False
        """Has a consumer got it, so that it counts as in delivery?"""
        self.was_written = False
        """Was it written to a consumer? Then it is done when nobody is left to get it."""
        self._got: set[int] = set()
        """Ids of consumers that got it."""
        self._passed_over: set[int] = set()
        """Ids of consumers that do not want it."""
        self._place = 0
        """Where in the list of consumers the next one is looked for."""
        self._lacking: dict[int, Consumer] = {}
        """Consumers without room, by id."""
        self._with_room: dict[int, Consumer] = {}
        """Those of them that may have room again."""
        self._unsent: set[int] = set()
        """Ids of consumers that have it in their outbox."""

    # ---- who is next -----------------------------------------------------------------------------

    def next_consumer(self, distribution: Distribution, budget: Budget) -> Consumer | None:
        """A consumer that must be asked; None when none was found so far (see ``has_asked_all``)."""
        if self._with_room:
            _, consumer = self._with_room.popitem()
            del self._lacking[consumer.id]
            return consumer
        consumers = distribution.consumers
        start = self._place
        end = min(len(consumers), start + _LOOKS_MAX)
        found: Consumer | None = None
        while found is None and self._place < end:
            consumer = consumers[self._place]
            self._place += 1
            known = consumer.id in self._got or consumer.id in self._passed_over or consumer.id in self._lacking
            if not known and not consumer.browses and distribution.is_served(consumer):
                found = consumer
        budget.spend((self._place - start) // _LOOKS_PER_UNIT)
        return found

    def has_asked_all(self, distribution: Distribution) -> bool:
        """Was every consumer asked that there is now?"""
        return self._place >= len(distribution.consumers) and not self._with_room

    def is_over(self, distribution: Distribution) -> bool:
        """Is nobody left to get it, or to be sent it?"""
        return self.has_asked_all(distribution) and not self._lacking and not self._unsent

    def skip_all(self, distribution: Distribution) -> None:
        """All that are left only look."""
        self._place = len(distribution.consumers)

    @property
    def awaited_count(self) -> int:
        """How many consumers are still to get it, of those that were asked: their connections take nothing now."""
        return len(self._lacking) + len(self._unsent)

    # ---- what became of the question -------------------------------------------------------------

    def pass_over(self, consumer: Consumer) -> None:
        """The consumer does not want it."""
        self._passed_over.add(consumer.id)

    def wait_for(self, consumer: Consumer) -> None:
        """The consumer's connection takes nothing now."""
        self._lacking[consumer.id] = consumer

    def note_given(self, consumer: Consumer) -> None:
        """The consumer has it in its outbox."""
        self._got.add(consumer.id)
        self._unsent.add(consumer.id)

    # ---- what happens to consumers ---------------------------------------------------------------

    def note_room(self, consumer: Consumer) -> None:
        """The consumer may have room again."""
        if consumer.id in self._lacking:
            self._with_room[consumer.id] = consumer

    def note_written(self, consumer: Consumer) -> None:
        """It was written to the consumer."""
        self._unsent.discard(consumer.id)
        self.was_written = True

    def note_changed(self, consumer: Consumer) -> None:
        """The consumer wants other messages now. Unless it has the barrier, it is asked again."""
        self._passed_over.discard(consumer.id)
        self._forget(consumer)

    def note_left(self, consumer: Consumer) -> None:
        """The consumer leaves. Another one may be served in its place, so all are looked at again."""
        self._unsent.discard(consumer.id)
        self._forget(consumer)

    def _forget(self, consumer: Consumer) -> None:
        """Wait for the consumer no more, and look at all again."""
        self._lacking.pop(consumer.id, None)
        self._with_room.pop(consumer.id, None)
        self._place = 0


# ---- pending activator -----------------------------------------------------------------------------------------------
#
# Lets messages that stand behind others become active, and sends barriers to all consumers. Only a queue with
# ``barrier-expression`` or ``target-queue-depth`` has this part. It works in a dispatch, some messages in each, so
# however many become active at once, no turn is too long.


BYTES_SHIFT: Final = 11
"""Each 2 to the power of this many bytes that go out cost a unit, besides the one for each message."""


@final
class PendingActivator:
    """Decides for one queue when messages become active, and carries a barrier out.

    A barrier waits until every earlier message is done: acknowledged, expired or dead, also one that is scheduled or
    waits for another attempt, and one that was sent at most once. Then it goes to every consumer that wants it,
    whatever that one holds, and needs no acknowledgement. Without such a consumer it waits for one.
    """

    __slots__ = ("_pending", "_contents", "_distribution", "_gate", "_host", "_reference", "_wake_ups", "broadcast")

    def __init__(
        self,
        reference: QueueReference,
        host: QueueHost,
        contents: Contents,
        pending: PendingMessages,
        *,
        distribution: Distribution,
        gate: Gate,
        wake_ups: WakeUps,
    ) -> None:
        self._reference = reference
        self._host = host
        self._contents = contents
        self._pending = pending
        self._distribution = distribution
        self._gate = gate
        self._wake_ups = wake_ups
        self.broadcast: Broadcast | None = None
        """The barrier that is being sent."""

    # ---- becoming active -------------------------------------------------------------------------

    def advance(self, now_ms: int, floor: int) -> bool:
        """Let messages become active, from the first on. Returns True when more of them may: after so many, or at
        ``floor`` units left in the turn's budget, it stops.
        """
        pending, contents, budget = self._pending, self._contents, self._host.budget
        threshold = pending.threshold
        count = 0
        is_cut = False
        while not is_cut:
            entry = pending.first()
            if self._is_under_way(entry, now_ms) or entry is None:
                break
            if entry is not pending.barrier and threshold.lets_in(entry.message, contents.active_count):
                contents.activate(entry)
                count += 1
                budget.spend(1 + threshold.units_of(entry.message))
            elif threshold.makes_barriers:
                if entry is not pending.barrier:
                    pending.barrier = entry
                    budget.spend(1 + threshold.units_of(entry.message))
                if contents.is_aside(entry) or not self._is_first():
                    break
                if self._has_expired(entry, now_ms):
                    contents.take_from_pending(entry)
                    contents.expire([entry])
                    budget.spend(EXPIRE_UNITS)
                else:
                    self.broadcast = Broadcast(entry)
            else:
                break
            is_cut = count >= SLICE_MAX or budget.left <= floor
        if count:
            self._wake_ups.wake_dry()
        return is_cut

    def _is_under_way(self, first: Entry | None, now_ms: int) -> bool:
        """Is a barrier being sent? One that no consumer has yet is dropped here if it is gone or has expired."""
        broadcast = self.broadcast
        if broadcast is not None and not broadcast.is_out:
            is_here = broadcast.entry is first and not self._has_expired(broadcast.entry, now_ms)
            self.broadcast = broadcast if is_here else None
        return self.broadcast is not None

    def _has_expired(self, entry: Entry, now_ms: int) -> bool:
        return 0 < self._contents.expires_ms(entry.message) <= now_ms

    def _is_first(self) -> bool:
        """Are all messages done that came before the first pending one?"""
        contents = self._contents
        here = (
            contents.order.count + contents.counters.held_count + contents.picked_count + self._gate.unconfirmed_count
        )
        return not here and len(contents.scheduled) == self._pending.aside_count

    # ---- barriers --------------------------------------------------------------------------------

    def send_barrier(self, floor: int) -> bool:
        """Send the current barrier, if there is one, to every consumer that has room. Returns False when the budget
        ends before all were asked. The gate must be open, and ``advance`` comes first.
        """
        broadcast = self.broadcast
        if broadcast is None:
            return True
        budget, distribution = self._host.budget, self._distribution
        while True:
            consumer = broadcast.next_consumer(distribution, budget)
            if consumer is not None:
                self._offer(broadcast, consumer)
            elif broadcast.has_asked_all(distribution):
                break
            if budget.left <= floor:
                return False
        self._end_if_over()
        return True

    def _offer(self, broadcast: Broadcast, consumer: Consumer) -> None:
        entry, budget = broadcast.entry, self._host.budget
        wants_it = consumer.wants(entry.message)
        budget.spend(1 + consumer.take_asked())
        if not wants_it:
            broadcast.pass_over(consumer)
        elif consumer.room_bytes <= 0:
            broadcast.wait_for(consumer)
            self._distribution.park_served(consumer)
        else:
            room_bytes = consumer.room_bytes
            consumer.take_barrier(entry)
            if not broadcast.is_out:
                self._contents.send_out(entry)
                broadcast.is_out = True
            budget.spend((room_bytes - consumer.room_bytes) >> BYTES_SHIFT)
            broadcast.note_given(consumer)
            self._host.note_output(consumer)

    def _end_if_over(self) -> None:
        """If nobody is left to get the barrier, it is done; and if nobody got it, it waits for a consumer."""
        broadcast = self.broadcast
        if broadcast is None or not broadcast.is_out or not broadcast.is_over(self._distribution):
            return
        entry = broadcast.entry
        if broadcast.was_written:
            self.broadcast = None
            try:
                self._contents.end_barrier(entry)
            except Exception:
                self._contents.take_back_pending(entry)
                raise
        else:
            broadcast.is_out = False
            self._contents.take_back_pending(entry)

    # ---- consumers -------------------------------------------------------------------------------

    def note_written(self, consumer: Consumer) -> None:
        """The barrier was written to a consumer that had it in its outbox."""
        consumer.barrier = None
        broadcast = self.broadcast
        if broadcast is None:
            return
        broadcast.note_written(consumer)
        if broadcast.has_asked_all(self._distribution):
            self._end_if_over()
        else:  # somebody has come meanwhile, and may never have room, or never be served
            self._host.note_ready(self._reference)

    def takes_note_of(self, consumer: Consumer) -> bool:
        """The consumer has room. Returns whether a barrier may go to it."""
        if self.broadcast is None:
            return False
        self.broadcast.note_room(consumer)
        return not self.broadcast.has_asked_all(self._distribution)

    def note_changed(self, consumer: Consumer) -> None:
        """A consumer wants other messages now: perhaps the barrier whose turn it is, or not any more."""
        if self.broadcast is not None:
            self.broadcast.note_changed(consumer)
            self._host.note_ready(self._reference)

    def leave(self, consumer: Consumer) -> None:
        """A consumer leaves: it is not sent the barrier that it has in its outbox."""
        if consumer.barrier is not None:
            consumer.outbox = [entry for entry in consumer.outbox if entry is not consumer.barrier]
            consumer.barrier = None
        if self.broadcast is not None:
            self.broadcast.note_left(consumer)

    def note_left(self) -> None:
        """A consumer has left. The barrier may be done now, or others may get it."""
        if self.broadcast is None:
            return
        if self._distribution.taker_count:
            self._host.note_ready(self._reference)
        else:
            self.broadcast.skip_all(self._distribution)
            self._end_if_over()
