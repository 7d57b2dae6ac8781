"""The model of a queue that also has messages in pages: one slot for each message, moved by what is observed.

It does not say which message comes into memory when; it says what may be done with each one, and who was left waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from sys import maxsize

from artemis_py.core.queue.queue import Queue
from tests.model.plans import (
    BARRIER_KEY,
    BY_VALUE,
    FLOW_CONTROL,
    LVQ,
    PAUSE,
    REJECT,
    RING,
    SORTED,
    STANDARD,
    STAY,
    STICKY,
    QueuePlan,
)
from tests.model.reader_model import Letter, Wishes
from tests.model.rules_model import group_of, is_over, valid_ms, value_of

READY, HELD, PICKED, HANDED, PENDING, DONE, OUT = "ready", "held", "picked", "handed", "pending", "done", "out"
"""Ready is also what waits for its time. Picked: for a consumer that settles on send. Pending: in a transaction. Done:
the next thing observed has to be its end. Out: a barrier that consumers have got.
"""


@dataclass(slots=True, eq=False)
class Slot:
    """One message on one queue. ``deliveries`` came to nothing, ``cancels`` of them because a consumer refused it;
    ``forced``: a consumer has it expire. ``floats``: it has been aside, or at the head: order says nothing about it.
    ``holder`` took it last.
    """

    letter: Letter
    key: int
    due_ms: int = 0
    state: str = READY
    attempts: int = 0
    deliveries: int = 0
    cancels: int = 0
    forced: bool = False
    floats: bool = False
    holder: PagedReader | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class PagedReader(Wishes):
    """A consumer, as the model sees it. ``backlog`` is how many messages it may hold, ``out`` what was sent to it at
    most once and is not acknowledged, ``leases`` says when those end that it holds (ms, by letter).
    """

    number: int
    acks: bool = True
    backlog: int = maxsize
    out: set[int] = field(default_factory=set)
    leases: dict[int, int] = field(default_factory=dict)
    settles: bool
    browses: bool
    reads: bool
    shown: set[int] = field(default_factory=set)
    may_miss: set[int] = field(default_factory=set)

    @property
    def is_plain(self) -> bool:
        """Does it take whatever comes next?"""
        return self.wants_all and not self.reads


class Book:
    """What one queue must have."""

    def __init__(self, plan: QueuePlan, queue: Queue, attempts_max: int) -> None:
        self.plan = plan
        self.queue = queue
        self.attempts_max = attempts_max
        self.slots: dict[int, Slot] = {}
        self.readers: list[PagedReader] = []
        self.ring_size = plan.ring_size
        self.kills = False
        """May messages be killed in this step?"""
        self.pins: dict[str, PagedReader] = {}
        self.knows_groups = False
        self.waits_for_settling = False
        """Groups were handed out anew: what is out has to be settled first."""
        self.pending_out = 0
        """How many that were sent at most once are acknowledged in a transaction."""
        self.barrier_got: set[int] = set()
        """The readers that have the barrier that is out."""
        self.barrier_was_written = False
        self._last_key = 0
        self._newest: dict[str | None, int] = {}
        self._floated: set[str | None] = set()

    def accepts(self, letter: Letter) -> bool:
        """Does a message sent to the address come to this queue?"""
        if self.queue.deleted or (self.plan.purge and all(reader.browses for reader in self.readers)):
            return False
        return not self.plan.red_only or letter.color == "red"

    def add(self, letter: Letter, due_ms: int) -> None:
        """A message is about to arrive."""
        self._last_key += 1
        floats = due_ms > 0 or (self.plan.holds and letter.held_until_ms > 0)
        self.slots[letter.id] = Slot(letter, self._last_key, due_ms, floats=floats)
        if letter.key is not None:
            self._newest[letter.key] = self._last_key
            if floats:
                self._floated.add(letter.key)

    def look_for_groups(self, letter: Letter) -> None:
        """A message has come in: does it name a group?"""
        self.knows_groups = self.knows_groups or group_of(self.plan, letter) is not None

    # ---- limits ----------------------------------------------------------------------------------

    @property
    def limits_senders(self) -> bool:
        """May it be that a message has to stay outside?"""
        return self.plan.policy in {REJECT, FLOW_CONTROL}

    def is_within(self, more_count: int, more_bytes: int, percent: float = 100) -> bool:
        """With so much more, is the depth within that share of its limits?"""
        letters = [slot.letter for slot in self.slots.values() if slot.state not in {PICKED, HANDED}]
        count, size = len(letters) + more_count, sum(letter.size_bytes for letter in letters) + more_bytes
        limits = {self.plan.depth_messages: count, self.plan.depth_bytes: size}
        return all(value <= ceil(limit * percent / 100) for limit, value in limits.items() if limit >= 0)

    def is_kept_out(self, size_bytes: int) -> bool:
        """Is there a reason to keep a message out?"""
        if self.plan.policy == REJECT:
            return not self.is_within(1, size_bytes)
        picked = any(slot.state == PICKED for slot in self.slots.values())
        return self.plan.policy == FLOW_CONTROL and (picked or not self.is_within(0, 0, self.plan.resume_percent))

    # ---- deliveries ------------------------------------------------------------------------------

    def available(self, slot: Slot, now_ms: int) -> bool:
        """May the message be delivered now?"""
        if slot.state != READY or is_over(self.plan, slot.letter, now_ms) or slot.due_ms > now_ms:
            return False
        if valid_ms(self.plan, slot.letter, now_ms):
            return False
        return slot.letter.id not in self.queue.contents.scheduled

    # ---- what is active --------------------------------------------------------------------------

    def is_barrier(self, slot: Slot) -> bool:
        """Does everything wait for it?"""
        return self.plan.barriers and slot.letter.key == BARRIER_KEY

    def may_be_active(self, slot: Slot, *, surely: bool = False) -> bool:
        """May the message be active? ``surely``: it is when nothing moves any more. What was aside may have become
        active beyond the target.
        """
        if self.plan.barriers:
            before = [other for other in self.slots.values() if self.is_barrier(other) and other.key <= slot.key]
            return not before
        earlier = [other for other in self.slots.values() if other.key < slot.key and (surely or not other.floats)]
        return not self.plan.active_max or len(earlier) < self.plan.active_max

    def barrier_in_turn(self, now_ms: int) -> Slot | None:
        """The barrier that is out, or may go out now."""
        slot = min(self.slots.values(), key=lambda slot: slot.key, default=None)
        if slot is None or not self.is_barrier(slot):
            return None
        if slot.state == OUT:
            return slot
        unconfirmed = self.pending_out + sum(len(reader.out) for reader in self.readers)
        return slot if self.available(slot, now_ms) and not unconfirmed else None

    def barrier_for(self, reader: PagedReader, now_ms: int) -> Slot | None:
        """The barrier that this reader is to get now."""
        slot = self.barrier_in_turn(now_ms)
        if slot is None or reader.browses or reader.number in self.barrier_got or not reader.wants(slot.letter):
            return None
        return slot if self.is_served(reader) and self.queue.gate.is_open and not self.must_settle else None

    def barrier_delivered(self, reader: PagedReader, letter_id: int, now_ms: int) -> None:
        """Take note of a barrier that goes to a reader; it must be its turn."""
        slot = self.barrier_for(reader, now_ms)
        assert slot is not None, f"barrier {letter_id} went to {reader.number} before its time, or against its wish"
        assert slot.letter.id == letter_id, f"barrier {letter_id} overtook another"
        slot.state = OUT
        self.barrier_got.add(reader.number)

    def see_barrier(self, *, is_out: bool) -> None:
        """Is the barrier that was out still out? If it is there and is not, nobody was sent it."""
        slot = next((slot for slot in self.slots.values() if slot.state == OUT), None)
        if slot is not None and not is_out:
            assert not self.barrier_was_written, "a barrier came back although it was sent"
            slot.state = READY
        if slot is None or slot.state == READY:
            self.barrier_got, self.barrier_was_written = set(), False

    def delivered(self, reader: PagedReader, letter_id: int, now_ms: int) -> None:
        """Take note of a delivery; it must be a legal one."""
        slot = self.slots.get(letter_id)
        assert slot is not None, f"message {letter_id} was delivered and is not there"
        assert self.available(slot, now_ms), f"message {letter_id} was delivered while {slot.state}"
        assert self.may_be_active(slot), f"message {letter_id} was delivered before it was active"
        assert reader.wants(slot.letter), "delivered against selector or no-local"
        assert self.queue.gate.is_open or reader.browses, "delivered through a closed gate"
        assert not self.must_settle or reader.browses, "delivered before what is out is settled"
        if not reader.browses:
            self.waits_for_settling = False
        assert self.is_served(reader), "delivered past the owner of an exclusive queue"
        assert reader.browses or not self.is_full, "more are out than may be"
        assert self.count_of(reader) < reader.backlog, "delivered beyond the backlog"
        assert not self.is_exhausted(slot), "delivered too often"
        if reader.reads:
            assert letter_id not in reader.shown, "shown twice to one reader"
            reader.shown.add(letter_id)
            return
        assert self.may_have(reader, slot), "delivered although the group is with another"
        if reader.is_plain and not slot.floats:
            self._check_order(reader, slot, now_ms)
        group = self.group_of(slot)
        if group is not None and self.plan.groups == STICKY and slot.letter.closes:
            self.pins.pop(group, None)
        elif group is not None:
            self.pins.setdefault(group, reader)
        slot.holder = reader
        slot.state = PICKED if reader.settles else HELD
        if reader.settles and reader.acks:
            reader.out.add(letter_id)

    def count_of(self, reader: PagedReader) -> int:
        """How many messages a reader has that takes them away."""
        held = sum(slot.state == HELD and slot.holder is reader for slot in self.slots.values())
        return 0 if reader.reads else held + len(reader.out)

    @property
    def is_full(self) -> bool:
        """Are as many out as may be?"""
        out = sum(slot.state in {HELD, PENDING} for slot in self.slots.values())
        return 0 <= self.plan.backlog_all <= out + self.pending_out + sum(len(reader.out) for reader in self.readers)

    def is_exhausted(self, slot: Slot) -> bool:
        """Was it delivered, refused, or attempted as often as may be?"""
        counts = slot.attempts, slot.deliveries, slot.cancels
        limits = self.attempts_max, self.plan.deliveries_max, self.plan.cancels_max
        return any(0 < limit <= count for count, limit in zip(counts, limits, strict=True))

    def group_of(self, slot: Slot) -> str | None:
        """The group of a message, None when it is in none."""
        return group_of(self.plan, slot.letter)

    @property
    def must_settle(self) -> bool:
        """Must something be settled before anything else is delivered?"""
        return self.waits_for_settling and any(slot.state in {HELD, PENDING} for slot in self.slots.values())

    def come(self, reader: PagedReader) -> None:
        """A reader comes: where groups are rebalanced, they are with nobody now."""
        self.readers.append(reader)
        if self.knows_groups and not reader.reads and self.plan.groups == STICKY and self.plan.rebalances != STAY:
            self.pins = {}
            self.waits_for_settling = self.plan.rebalances == PAUSE
            self.waits_for_settling = self.must_settle

    def may_have(self, reader: PagedReader, slot: Slot) -> bool:
        """Do groups let this reader have the message? Looking is free."""
        group = self.group_of(slot)
        if group is None or reader.reads:
            return True
        others = [other for other in self.slots.values() if self.group_of(other) == group]
        if any(other.attempts and other.letter.id in self.queue.contents.scheduled for other in others):
            return False
        if self.plan.groups == STICKY:
            return self.pins.get(group, reader) is reader
        return all(other.holder is reader for other in others if other.state in {HELD, PICKED, PENDING})

    def left(self, reader: PagedReader) -> None:
        """A reader is gone."""
        self.readers.remove(reader)
        self.pins = {group: owner for group, owner in self.pins.items() if owner is not reader}
        if not self.readers and all(slot.state in {PICKED, HANDED} for slot in self.slots.values()):
            self.knows_groups = self.waits_for_settling = False

    def _check_order(self, reader: PagedReader, slot: Slot, now_ms: int) -> None:
        if self.plan.view and slot.deliveries:
            return  # it was fetched from a page before older ones, and stands where it was read
        for other in self.slots.values():
            overtaken = other.key < slot.key and self._is_worth(other, slot) and not other.floats
            overtaken = overtaken and self.may_have(reader, other)
            assert not (overtaken and self.available(other, now_ms)), (
                f"message {slot.letter.id} overtook {other.letter.id}"
            )

    def _is_worth(self, one: Slot, other: Slot) -> bool:
        """Is it in arrival order that the two are delivered?"""
        if self.plan.kind == SORTED:
            return one.letter.key == other.letter.key
        if self.plan.kind == BY_VALUE:
            return value_of(one.letter) == value_of(other.letter)
        if self.plan.activates_in_order:
            return True
        return self.plan.kind in (STANDARD, LVQ) or one.letter.priority == other.letter.priority

    def is_served(self, reader: PagedReader) -> bool:
        """Does the distribution offer this reader anything?"""
        if self.plan.live_max and not reader.browses and not self.plan.exclusive:
            return reader in [one for one in self.readers if not one.browses][: self.plan.live_max]
        owner = next((one for one in self.readers if not one.browses), None)
        return not self.plan.exclusive or reader.browses or reader is owner

    def ended(self, letter_id: int, reason: str, now_ms: int) -> None:
        """Take note of a message's end; it must be a legal one."""
        slot = self.slots.pop(letter_id, None)
        assert slot is not None, f"message {letter_id} ends ({reason}) and is not there"
        if reason == "acked":
            assert slot.state in {DONE, PICKED} or self.barrier_was_written, f"acknowledged while {slot.state}"
        elif reason == "expired":
            in_time = is_over(self.plan, slot.letter, now_ms) or slot.forced
            assert in_time, f"message {letter_id} expired before its time"
        elif reason == "replaced":
            assert self.ring_size >= 0 or self.plan.policy == RING, f"message {letter_id} was given up"
        elif reason == "superseded":
            assert self._has_newer(slot), f"message {letter_id} was given up"
        else:
            assert self.kills or self.is_exhausted(slot), f"message {letter_id} was killed"
        assert reason == "acked" or slot.forced or slot.state == READY, (
            f"message {letter_id} ends ({reason}) while {slot.state}"
        )

    def _has_newer(self, slot: Slot) -> bool:
        """Did another value with this one's key come later, or fall due?"""
        newest = self._newest.get(slot.letter.key)
        return self.plan.keeps_last and newest is not None and (newest > slot.key or slot.letter.key in self._floated)

    def come_back(
        self, letter_ids: list[int], *, failed: bool, delayed: bool = False, sent: bool = True, cancels: bool = False
    ) -> None:
        """Messages are about to return from a consumer or a transaction."""
        for letter_id in letter_ids:
            slot = self.slots[letter_id]
            slot.state, slot.forced = READY, False
            slot.deliveries += sent
            slot.cancels += cancels
            slot.attempts += failed
            slot.floats = slot.floats or (failed and delayed)
            for reader in self.readers:
                reader.may_miss.add(letter_id)

    def clear(self) -> int:
        """Everything that nobody has in hand is gone; returns how much was."""
        gone = [letter_id for letter_id, slot in self.slots.items() if slot.state == READY]
        for letter_id in gone:
            del self.slots[letter_id]
        return len(gone)

    def wanted_by(self, reader: PagedReader, now_ms: int) -> list[int]:
        """What a reader should have been offered by now, had it room."""
        return [
            letter_id
            for letter_id, slot in self.slots.items()
            if self.available(slot, now_ms)
            and self.may_be_active(slot, surely=True)
            and reader.wants(slot.letter)
            and self.may_have(reader, slot)
            and not (reader.reads and (letter_id in reader.shown or letter_id in reader.may_miss))
        ]
