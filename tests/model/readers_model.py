"""The model of a queue and of who reads it: all that holds wherever its messages stand. What the queue's settings mean
for one letter, groups, the gate, barriers, and what consumers have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from math import ceil
from operator import itemgetter
from sys import maxsize
from typing import Final
from zlib import crc32

from tests.model.plans import (
    BARRIER_KEY,
    BY_VALUE,
    FALLBACK,
    LAST_VALUE,
    LEVELS,
    PAUSE,
    PLAIN,
    SHARED,
    SORTED,
    STAY,
    STICKY,
    AddressPlan,
    QueuePlan,
)
from tests.model.reader_model import Item, Letter, Reader

_NEVER: Final = (maxsize, 0)


@dataclass(eq=False, repr=False)
class ReadersModel(ABC):
    """A queue, and who reads it. What is held stands with its reader, or with a transaction in ``pending``."""

    plan: QueuePlan
    address: AddressPlan
    _: KW_ONLY
    readers: list[Reader] = field(default_factory=list)
    pending: list[tuple[Reader, Item]] = field(default_factory=list)
    pending_out: list[tuple[Reader, Item]] = field(default_factory=list)
    """Sent at most once, and acknowledged in a transaction."""
    happened: set[str] = field(default_factory=set)
    """What the queue was seen to do: a run must have seen everything."""
    ring_size: int = -1
    paused: bool = False
    started: bool = False
    opens_at_ms: int | None = None
    owner: int | None = None
    """The connection, or client, whose consumers are admitted."""
    pins: dict[str, Reader] = field(default_factory=dict)
    """With sticky groups: whose each group is."""
    knows_groups: bool = False
    """Did anything come that is in a group? Until then nobody asks for them."""
    waits_for_settling: bool = False
    """Groups were handed out anew: what is out has to be settled first."""
    barrier_out: Item | None = None
    """A barrier that consumers have got, and that others are still to get."""
    barrier_got: set[int] = field(default_factory=set)
    """The readers that have the barrier that is out, or that it waits to be written to."""
    barrier_was_written: bool = False
    _last_turn: int = 0
    _writes: int = 0
    _last_number: int = 0
    """Of what came."""

    def __post_init__(self) -> None:
        self.ring_size = self.plan.ring_size
        self.started = self.plan.consumers_before <= 0

    # ---- what a model of messages knows ----------------------------------------------------------

    @abstractmethod
    def unheld(self) -> list[Item]:
        """What nobody has in hand, ready or not: what a purge removes."""

    @abstractmethod
    def aside(self) -> list[Item]:
        """What waits for its time, or for that of another attempt."""

    @abstractmethod
    def end_barrier(self) -> None:
        """The barrier that is out is done; or nobody was sent it, and it stands where it stood."""

    def standing(self) -> list[Item]:
        """Everything the queue has, but what is on its way to a consumer that settles on send: its depth."""
        return self.unheld() + self.held_items()

    # ---- what settings mean for one letter -------------------------------------------------------

    def expires_ms(self, letter: Letter) -> int:
        """From when on a letter is over here: it may live longer than it asks, and no longer than the queue says;
        ``maxsize``: never.
        """
        plan = self.plan
        times = [letter.arrived_ms + plan.ttl_max] if plan.ttl_max else []
        own_ms = letter.expires_ms or (letter.arrived_ms + plan.ttl_usual if plan.ttl_usual else 0)
        if own_ms:
            times.append(max(own_ms, letter.arrived_ms + plan.ttl_min))
        return min(times, default=maxsize)

    def valid_ms(self, letter: Letter, now_ms: int) -> int:
        """From when on a letter that comes now may be delivered: when the time in it is past; 0: at once."""
        return letter.held_until_ms + 1 if self.plan.holds and letter.held_until_ms >= now_ms else 0

    def group_of(self, letter: Letter) -> str | None:
        """The group of a letter, None when it is in none. With buckets, the bucket stands for all groups in it."""
        plan = self.plan
        if not plan.is_grouped:
            return None
        if plan.groups == SHARED:
            return letter.group or FALLBACK
        if letter.group is not None and plan.buckets > 0:
            return f"bucket {crc32(letter.group.encode()) % plan.buckets}"
        return letter.group

    def exhausted_by(self, item: Item) -> str:
        """What there was too often of an item: refused, delivered, or attempted; empty when nothing was."""
        counts = {
            "cancelled too often": (item.cancels, self.plan.cancels_max),
            "delivered too often": (item.deliveries, self.plan.deliveries_max),
            "dead": (item.attempts, self.address.attempts_max),
        }
        return next((what for what, (count, limit) in counts.items() if 0 < limit <= count), "")

    # ---- what readers have -----------------------------------------------------------------------

    @property
    def takers(self) -> list[Reader]:
        """Readers that are no browsers: those count where readers are counted."""
        return [reader for reader in self.readers if not reader.browses]

    def held_items(self) -> list[Item]:
        """Out with a consumer that takes away, or with its transaction; a barrier that is out."""
        held = [item for reader in self.readers if not reader.reads for item in reader.held]
        if self.barrier_out is not None:
            held.append(self.barrier_out)
        return held + [item for reader, item in self.pending if not reader.reads] if self.pending else held

    def picked_items(self) -> list[Item]:
        """Picked for a consumer that settles on send, and not written yet."""
        return [item for reader in self.readers for item in reader.picked]

    def unconfirmed(self) -> list[Item]:
        """What was sent at most once, and not acknowledged."""
        return [item for reader in self.readers for item in reader.out] + [item for _, item in self.pending_out]

    @property
    def is_full(self) -> bool:
        """Are as many out as may be?"""
        return 0 <= self.plan.backlog_all <= len(self.held_items()) + len(self.unconfirmed())

    def is_within(self, more: list[Letter], percent: float = 100) -> bool:
        """With these letters more, is the depth within that share of its limits?"""
        letters = [item.letter for item in self.standing()] + more
        depth = {
            self.plan.depth_messages: len(letters),
            self.plan.depth_bytes: sum(letter.size_bytes for letter in letters),
        }
        return all(value <= ceil(limit * percent / 100) for limit, value in depth.items() if limit >= 0)

    def worth(self, item: Item) -> tuple[int, str]:
        """Items that are worth less are delivered first; what is worth the same, in order of arrival."""
        letter, kind = item.letter, self.plan.kind
        if self.plan.activates_in_order:
            return 0, ""
        if kind == SORTED:
            return (0, "") if letter.key is None else (1, letter.key)
        if kind == BY_VALUE:
            return -max(letter.priority % 5 * 4 - 3, 0), ""
        if kind == LEVELS:
            return -(0 if letter.priority < 4 else 1 if letter.priority == 4 else 2), ""
        return (-letter.priority if kind in (PLAIN, LAST_VALUE) else 0), ""

    def pending_of(self, reader: Reader) -> list[tuple[Reader, Item]]:
        """Where a transaction keeps what the reader settles in it."""
        return self.pending_out if reader.settles else self.pending

    # ---- coming and going ------------------------------------------------------------------------

    def accepts(self, letter: Letter) -> bool:
        """Does a message sent to the address come to this queue?"""
        if self.plan.purge and not self.takers:
            return False
        return not self.plan.red_only or letter.color == "red"

    def admits_reader(self, reader: Reader) -> bool:
        """May the reader come? If so, its connection or client may be the owner from now on."""
        plan, others = self.plan, self.readers
        if 0 <= plan.consumers_max <= len(self.takers) and not reader.browses:
            return False
        if others and (reader.alone or any(other.alone for other in others)):
            return False
        if plan.admits == "LINK":
            return not others
        if plan.admits == "CONNECTION":
            return all(other.connection == reader.connection for other in others)
        if plan.admits == "CONTAINER":
            self.owner = self.owner or reader.connection
            return self.owner == reader.connection
        return True

    def come(self, reader: Reader, now_ms: int) -> None:
        """A reader attaches. Where groups are rebalanced they are with nobody now, and it may be that nothing goes out
        until everything that is out is settled.
        """
        grouped = self.knows_groups and not reader.reads and self.plan.groups != SHARED
        if grouped and self.plan.rebalances != STAY:
            self.pins = {}
            self.happened.add("rebalanced")
            self.waits_for_settling = self.plan.rebalances == PAUSE
            self.waits_for_settling = self.must_settle
            if self.waits_for_settling:
                self.happened.add("paused to rebalance")
                self.started = self.plan.consumers_before <= 0
        self.readers.append(reader)
        self.put_last(reader)
        if self.started or reader.browses:
            return
        if len(self.takers) >= self.plan.consumers_before:
            self.started = True
            self.opens_at_ms = None
        elif self.plan.delay_before >= 0 and self.opens_at_ms is None:
            self.opens_at_ms = now_ms + self.plan.delay_before

    def put_last(self, reader: Reader) -> None:
        """It comes behind all others that are equal else."""
        self._last_turn += 1
        reader.turn = self._last_turn

    def leave(self, reader: Reader) -> None:
        """A reader is gone, what it had is back."""
        self.readers.remove(reader)
        reader.has_barrier = False
        if self.barrier_out is not None and not self.takers:
            self.end_barrier()
        self.pins = {group: owner for group, owner in self.pins.items() if owner is not reader}
        if not self.readers and not self.standing():
            self.knows_groups = self.waits_for_settling = False
        if self.takers or reader.browses:
            return
        if self.plan.consumers_before > 0:
            self.started = False
            self.opens_at_ms = None

    @property
    def is_open(self) -> bool:
        """May anything be dispatched?"""
        return self.started and not self.paused and not self.must_settle

    def tick_gate(self, now_ms: int) -> None:
        """Open when delay-before-dispatch is over."""
        if self.opens_at_ms is not None and now_ms >= self.opens_at_ms:
            self.started = True
            self.opens_at_ms = None

    # ---- groups ----------------------------------------------------------------------------------

    def look_for_groups(self, letters: list[Letter]) -> None:
        """Letters came."""
        self.knows_groups = self.knows_groups or any(self.group_of(letter) for letter in letters)

    @property
    def must_settle(self) -> bool:
        """Must something be settled before anything else is delivered? A barrier is held by nobody."""
        return self.waits_for_settling and any(item is not self.barrier_out for item in self.held_items())

    def may_have(self, reader: Reader, item: Item) -> bool:
        """Do groups let this reader have the item? Looking is free."""
        group = self.group_of(item.letter)
        if group is None or reader.reads:
            return True
        if any(other.attempts and self.group_of(other.letter) == group for other in self.aside()):
            return False
        if self.plan.groups == STICKY:
            return self.pins.get(group, reader) is reader
        out = [(one, held) for one in self.readers for held in one.held + one.picked] + self.pending
        return all(one is reader for one, held in out if not one.reads and self.group_of(held.letter) == group)

    # ---- deliveries ------------------------------------------------------------------------------

    def is_served(self, reader: Reader) -> bool:
        """Does the distribution offer this reader anything?"""
        if self.plan.exclusive:
            return reader.browses or reader is next(iter(self.takers), None)
        return reader.browses or not self.plan.live_max or reader in self.takers[: self.plan.live_max]

    def take(self, reader: Reader, item: Item) -> None:
        """Take note of a delivery that was observed; it must be a legal one. With the item the reader gets its group,
        or with the last item of a group loses it.
        """
        letter = item.letter
        assert self.is_open or reader.browses, "delivered through a closed gate, or before what is out is settled"
        assert reader.wants(letter), "delivered against selector, no-local or replay period"
        assert reader.has_room, "delivered without room or beyond the window"
        assert reader.browses or not self.is_full, "more are out than may be"
        assert self.is_served(reader), "delivered past those that are served"
        assert self.may_have(reader, item), "delivered although the group is with another"
        assert not reader.reads or letter.id not in reader.shown, "shown twice to one reader"
        if not reader.browses:
            self.waits_for_settling = False
        group = self.group_of(letter)
        if group is not None and not reader.reads and self.plan.groups != SHARED:
            if letter.closes:
                self.happened.add("group closed" if group in self.pins else "lone end of a group")
                self.pins.pop(group, None)
            elif group not in self.pins:
                self.pins[group] = reader
                if self.plan.marks_first:
                    reader.firsts.add(letter.id)
                    self.happened.add("first of a group")
        reader.room -= reader.weight(letter)
        reader.unsent.append(letter.id)
        if reader.reads:
            reader.shown.add(letter.id)
        if not reader.settles:
            reader.held.append(item)
        elif not reader.reads:
            reader.picked.append(item)
            if reader.acks:
                reader.out.append(item)

    def written(self, reader: Reader, now_ms: int) -> None:
        """What a reader got is written: for one that settles on send that is the end of it."""
        if reader.has_barrier:
            self.barrier_was_written, reader.has_barrier = True, False
            reader.unsent = []
            return
        self._writes += 1
        held = {item.letter.id for item in reader.held}
        reader.written |= dict.fromkeys(reader.unsent, self._writes)
        reader.written = {letter_id: number for letter_id, number in reader.written.items() if letter_id in held}
        if self.plan.lease_ms and not (reader.reads or reader.settles):
            reader.leases |= dict.fromkeys(reader.unsent, (now_ms + self.plan.lease_ms, self._writes))
        reader.picked, reader.handed, reader.unsent = [], [], []
        reader.firsts = set()

    def lapsed(self, now_ms: int) -> list[tuple[Reader, list[Item]]]:
        """What readers have held for too long, the reader first whose lease began first."""
        over: list[tuple[tuple[int, int], Reader, list[Item]]] = []
        for reader in self.readers:
            items = [item for item in reader.sent if reader.leases.get(item.letter.id, _NEVER)[0] <= now_ms]
            if items:
                over.append((reader.leases[items[0].letter.id], reader, items))
                self.happened.add("lease over")
        return [(reader, items) for _, reader, items in sorted(over, key=itemgetter(0))]

    # ---- barriers --------------------------------------------------------------------------------

    def is_barrier(self, letter: Letter) -> bool:
        """Does everything wait for it?"""
        return self.plan.barriers and letter.key == BARRIER_KEY

    def lacks_barrier(self, reader: Reader, item: Item) -> bool:
        """Is the reader to get this barrier, and has not got it?"""
        is_for_it = not reader.browses and self.is_served(reader) and reader.wants(item.letter)
        return is_for_it and reader.number not in self.barrier_got

    def take_barrier(self, reader: Reader, letter_id: int, item: Item | None) -> None:
        """Take note of a barrier that goes to a reader; ``item`` is the one whose turn it is."""
        assert item is not None, f"barrier {letter_id} went out before its time"
        assert item.letter.id == letter_id, f"barrier {letter_id} overtook another"
        assert self.is_open, "a barrier went out through a closed gate"
        assert self.lacks_barrier(reader, item), "a barrier went to somebody who does not want it, or has it"
        assert reader.room > 0, "a barrier went to a reader without room"
        assert not reader.unsent, "a barrier came behind something that is not done"
        self.happened.add("barrier" if self.barrier_out is None else "barrier to several")
        self.barrier_out = item
        self.barrier_got.add(reader.number)
        reader.room -= reader.weight(item.letter)
        reader.unsent.append(letter_id)
        reader.has_barrier = True
