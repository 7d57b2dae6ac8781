"""The model of a queue that also has messages in pages: one slot for each message, moved by what is observed.

It does not say which message comes into memory when; it says what may be done with each one, and who was left waiting.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from artemis_py.core.queue.queue import Queue
from tests.model.compare import behind_on
from tests.model.plans import RING
from tests.model.reader_model import Item, Letter, Reader
from tests.model.readers_model import ReadersModel

READY, HELD, PICKED, DONE = "ready", "held", "picked", "done"
"""Ready is also what waits for its time. Held: by a consumer, or in its transaction; or a barrier that consumers have.
Picked: for a consumer that settles on send. Done: the next thing observed has to be its end.
"""


@dataclass(slots=True, eq=False)
class Slot(Item):
    """One message on one queue. ``number`` is its place in order of arrival. Of ``deliveries``, which came to nothing,
    ``cancels`` did because a consumer refused it. ``forced``: a consumer has it expire. ``floats``: it has been aside,
    or at the head: order says nothing about it.
    """

    due_ms: int = 0
    state: str = READY
    forced: bool = False
    floats: bool = False


@dataclass(eq=False, repr=False)
class Book(ReadersModel):
    """What one queue must have."""

    queue: Queue
    _: KW_ONLY
    barrier_out: Slot | None = None
    slots: dict[int, Slot] = field(default_factory=dict)
    kills: bool = False
    """May messages be killed in this step? At its end all are gone that nobody has in hand."""
    _newest: dict[str | None, int] = field(default_factory=dict)
    _floated: set[str | None] = field(default_factory=set)

    def unheld(self) -> list[Item]:
        return [slot for slot in self.slots.values() if slot.state == READY]

    def aside(self) -> list[Item]:
        return [slot for letter_id, slot in self.slots.items() if letter_id in self.queue.contents.scheduled]

    def siftable(self) -> list[Item]:
        """What nobody has, and a filter finds: all that is in memory, and active."""
        contents = self.queue.contents
        here = {entry.message.id for entry in contents.order} | set(contents.scheduled)
        return [self.slots[letter_id] for letter_id in here - {entry.message.id for entry in behind_on(self.queue)}]

    def add(self, letter: Letter, due_ms: int) -> None:
        """A message is about to arrive."""
        self._last_number += 1
        floats = due_ms > 0 or (self.plan.holds and letter.held_until_ms > 0)
        self.slots[letter.id] = Slot(letter, self._last_number, due_ms=due_ms, floats=floats)
        if letter.key is not None:
            self._newest[letter.key] = self._last_number
            if floats:
                self._floated.add(letter.key)

    # ---- deliveries ------------------------------------------------------------------------------

    def available(self, slot: Slot, now_ms: int) -> bool:
        """May the message be delivered now?"""
        if slot.state != READY or self.expires_ms(slot.letter) <= now_ms or slot.due_ms > now_ms:
            return False
        if self.valid_ms(slot.letter, now_ms):
            return False
        return slot.letter.id not in self.queue.contents.scheduled

    # ---- what is active --------------------------------------------------------------------------

    def may_be_active(self, slot: Slot, *, surely: bool = False) -> bool:
        """May the message be active? ``surely``: it is when nothing moves any more. What was aside may have become
        active beyond the target.
        """
        if self.plan.barriers:
            before = [
                other for other in self.slots.values() if self.is_barrier(other.letter) and other.number <= slot.number
            ]
            return not before
        earlier = [
            other for other in self.slots.values() if other.number < slot.number and (surely or not other.floats)
        ]
        return not self.plan.active_max or len(earlier) < self.plan.active_max

    def barrier_in_turn(self, now_ms: int) -> Slot | None:
        """The barrier that is out, or that may go out now: everything is done that came before it."""
        slot = min(self.slots.values(), key=lambda slot: slot.number, default=None)
        if slot is None or not self.is_barrier(slot.letter) or slot is self.barrier_out:
            return self.barrier_out
        return slot if self.available(slot, now_ms) and not self.unconfirmed() else None

    def deliver_barrier(self, reader: Reader, letter_id: int, now_ms: int) -> None:
        """Take note of a barrier that goes to a reader; it must be its turn."""
        self.take_barrier(reader, letter_id, self.barrier_in_turn(now_ms))
        self.slots[letter_id].state = HELD

    def end_barrier(self) -> None:
        assert self.barrier_out is not None
        self.barrier_out.state = DONE if self.barrier_was_written else READY
        self.barrier_out, self.barrier_got, self.barrier_was_written = None, set(), False

    def deliver(self, reader: Reader, letter_id: int, now_ms: int) -> None:
        """Take note of a delivery; it must be a legal one."""
        slot = self.slots.get(letter_id)
        assert slot is not None, f"message {letter_id} was delivered and is not there"
        assert self.available(slot, now_ms), f"message {letter_id} was delivered while {slot.state}"
        assert self.may_be_active(slot), f"message {letter_id} was delivered before it was active"
        assert not self.exhausted_by(slot), "delivered too often"
        self.take(reader, slot)
        if not reader.reads:
            # of a view, what came back was fetched from a page before older ones, and stands where it was read
            if reader.wants_all and not slot.floats and not (self.plan.view and slot.deliveries):
                worth = self.worth(slot)
                for other in self.slots.values():
                    overtaken = other.number < slot.number and not other.floats and self.worth(other) == worth
                    overtaken = overtaken and self.may_have(reader, other) and self.available(other, now_ms)
                    assert not overtaken, f"message {letter_id} overtook {other.letter.id}"
            slot.state = PICKED if reader.settles else HELD

    def ended(self, letter_id: int, reason: str, now_ms: int) -> None:
        """Take note of a message's end; it must be a legal one."""
        slot = self.slots.pop(letter_id, None)
        assert slot is not None, f"message {letter_id} ends ({reason}) and is not there"
        if reason == "acked":
            if slot is self.barrier_out:
                self.end_barrier()
            assert slot.state in {DONE, PICKED}, f"acknowledged while {slot.state}"
        elif reason == "expired":
            in_time = slot.forced or self.expires_ms(slot.letter) <= now_ms
            assert in_time, f"message {letter_id} expired before its time"
        elif reason == "replaced":
            assert self.ring_size >= 0 or self.plan.policy == RING, f"message {letter_id} was given up"
        elif reason == "superseded":
            newest, floated = self._newest.get(slot.letter.key), slot.letter.key in self._floated
            assert self.plan.keeps_last, f"message {letter_id} was given up"
            has_newer = newest is not None and (newest > slot.number or floated)  # one came later, or fell due
            assert has_newer, f"message {letter_id} was given up"
        else:
            assert self.kills or self.queue.deleted or self.exhausted_by(slot), f"message {letter_id} was killed"
        assert reason == "acked" or slot.forced or slot.state == READY, (
            f"message {letter_id} ends ({reason}) while {slot.state}"
        )

    def release(
        self, held: list[tuple[Reader, list[Item]]], *, failed: bool, now_ms: int, cancels: bool = False
    ) -> list[Letter]:
        """Take back what readers held that take messages away. It is seen what is dead; here nobody asks for that."""
        for reader, items in held:
            for item in [] if reader.reads or reader.settles else items:
                reader.leases.pop(item.letter.id, None)
                slot = self._stand_again(item.letter)
                slot.deliveries += 1
                slot.cancels += cancels
                slot.attempts += failed
                slot.floats = slot.floats or (failed and self.address.redelivery_delay > 0)
        return []

    def _stand_again(self, letter: Letter) -> Slot:
        slot = self.slots[letter.id]
        slot.state, slot.forced = READY, False
        for reader in self.readers:
            reader.may_miss.add(letter.id)
        return slot

    def put_back_unsent(self, reader: Reader) -> None:
        """What was picked for a reader and never written returns as if nothing had happened."""
        waiting = reader.picked + [item for item in reader.held if item.letter.id in reader.unsent]
        reader.held = [item for item in reader.held if item not in waiting]
        for item in [] if reader.reads else waiting:
            self._stand_again(item.letter)
        for letter in reader.handed:
            self.add(letter, 0)
            self._stand_again(letter).floats = True
        reader.picked, reader.handed, reader.unsent = [], [], []

    def settle(self, items: list[Item], *, expires: bool) -> None:
        """Items are done, or a consumer has them expire."""
        for item in items:
            slot = self.slots[item.letter.id]
            slot.state, slot.forced = DONE, expires

    def purge(self) -> None:
        """Kill what nobody has in hand."""
        self.kills = True
