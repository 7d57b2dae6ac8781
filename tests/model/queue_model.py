"""The model of a queue: one list of items, sorted when looked at. Slow, plain, and written from the specification.

Where several outcomes are right (which consumer is next) the model does not choose: it says whether one that was
observed is legal, and whether a message was withheld that had to go out.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.plans import (
    FALLBACK,
    LAST_VALUE,
    LEVELS,
    PLAIN,
    SHARED,
    SORTED,
    STICKY,
    UNGROUPED,
    AddressPlan,
    QueuePlan,
)  # fmt: skip
from tests.model.reader_model import Item, Letter, Reader


@dataclass(slots=True)
class Counts:
    """What came and how it left."""

    added: int = 0
    acknowledged: int = 0
    killed: int = 0
    expired: int = 0
    replaced: int = 0


class QueueModel:
    """One queue. ``items`` are ready; what is held stands with its reader, or with a transaction in ``pending``."""

    def __init__(self, plan: QueuePlan, address: AddressPlan) -> None:
        self.plan = plan
        self.address = address
        self.ring_size = plan.ring_size
        self.items: list[Item] = []
        self.scheduled: list[tuple[int, int, Item]] = []
        self.pending: list[tuple[Reader, Item]] = []
        self.readers: list[Reader] = []
        self.counts = Counts()
        self.pins: dict[str, Reader] = {}
        """With sticky groups: whose each group is."""
        self.paused = False
        self.started = plan.consumers_before <= 0
        self.opens_at_ms: int | None = None
        self._last_number = 0
        self._head_number = 0
        self._scheduled_ever = 0

    # ---- looking ---------------------------------------------------------------------------------

    def ready(self) -> list[Item]:
        """What is ready, in order."""
        return sorted(self.items, key=self.place)

    def worth(self, item: Item) -> tuple[int, str]:
        """Items that are worth less are delivered first; what is worth the same, in order of arrival."""
        letter, kind = item.letter, self.plan.kind
        if kind == SORTED:
            return (0, "") if letter.key is None else (1, letter.key)
        if kind == LEVELS:
            return -(0 if letter.priority < 4 else 1 if letter.priority == 4 else 2), ""
        return (-letter.priority if kind in (PLAIN, LAST_VALUE) else 0), ""

    def place(self, item: Item) -> tuple[tuple[int, str], int]:
        """What decides which item is next."""
        return self.worth(item), item.number

    def find(self, letter_id: int) -> Item | None:
        """The ready item of a letter."""
        return next((item for item in self.items if item.letter.id == letter_id), None)

    def held_items(self) -> list[Item]:
        """Out with a consumer that takes away, or with its transaction."""
        held = [item for reader in self.readers if not reader.reads for item in reader.held]
        return held + [item for reader, item in self.pending if not reader.reads]

    def read_items(self) -> list[Item]:
        """Out with a consumer that only reads."""
        read = [item for reader in self.readers if reader.reads for item in reader.held]
        return read + [item for reader, item in self.pending if reader.reads]

    def letters(self) -> list[Letter]:
        """Everything the queue has, in whatever state."""
        every = self.items + self.held_items() + self.picked_items() + [item for _, _, item in self.scheduled]
        return [item.letter for item in every]

    def picked_items(self) -> list[Item]:
        """Picked for a consumer that settles on send, and not written yet."""
        return [item for reader in self.readers for item in reader.picked]

    @property
    def takers(self) -> list[Reader]:
        """Readers that are no browsers: those count where readers are counted."""
        return [reader for reader in self.readers if not reader.browses]

    @property
    def is_open(self) -> bool:
        """May anything be dispatched?"""
        return self.started and not self.paused

    def accepts(self, letter: Letter) -> bool:
        """Does a message sent to the address come to this queue?"""
        if self.plan.purge and not self.takers:
            return False
        return not self.plan.red_only or letter.color == "red"

    # ---- arrivals --------------------------------------------------------------------------------

    def append(self, letters: list[Letter]) -> None:
        """Put new messages behind all others that are worth the same."""
        for letter in letters:
            self._last_number += 1
            item = Item(letter, self._last_number)
            self.become_value(item)
            self.items.append(item)

    def value_of(self, key: str | None) -> Item | None:
        """The value of a key, if it is not out with a consumer."""
        here = [*self.items, *(item for _, _, item in self.scheduled)]
        return next((item for item in here if item.is_value and key is not None and item.letter.key == key), None)

    def become_value(self, new: Item) -> None:
        """On a last-value queue: what has the same key goes, or must not come back."""
        if not self.plan.keeps_last:
            return
        older = self.value_of(new.letter.key)
        if older is not None:
            self.items = [item for item in self.items if item is not older]
            self.scheduled = [one for one in self.scheduled if one[2] is not older]
            self.counts.replaced += 1
        for item in self.held_items() + self.picked_items():
            item.outdated = item.outdated or (new.letter.key is not None and item.letter.key == new.letter.key)
        new.is_value = True

    def least(self) -> Item:
        """What a ring gives up: the oldest of the lowest priority; where priority does not count, the oldest."""
        if self.plan.kind == SORTED:
            return min(self.items, key=lambda item: item.number)
        return min(self.items, key=lambda item: (-self.worth(item)[0], item.number))

    def trim(self, grown: int, now_ms: int, *, offered: bool) -> None:
        """Fit the ring: at most one item goes for each one added. ``offered``: consumers had their chance first."""
        if self.plan.depth >= 0 and grown:
            self._shed(now_ms, offered=offered)
        if self.ring_size < 0:
            return
        over = min(len(self.items) - self.ring_size, grown)
        if over > 0 and offered:
            assert self.withheld(now_ms) is None, "a ring gave up a message while a consumer could take one"
        for _ in range(over):
            self.items.remove(self.least())
            self.counts.replaced += 1

    @property
    def depth(self) -> int:
        """What a ring that counts the depth counts."""
        return len(self.items) + len(self.held_items()) + len(self.scheduled)

    def _shed(self, now_ms: int, *, offered: bool) -> None:
        """The least go until the depth fits; the last one stays when it has just come (``offered``)."""
        last = 1 if offered else 0
        if offered and self.depth > self.plan.depth:
            assert self.withheld(now_ms) is None, "a ring gave up a message while a consumer could take one"
        while len(self.items) > last and self.depth > self.plan.depth:
            self.items.remove(self.least())
            self.counts.replaced += 1

    def schedule(self, item: Item, due_ms: int) -> None:
        """Put an item aside until it is due."""
        self._scheduled_ever += 1
        self.scheduled.append((due_ms, self._scheduled_ever, item))

    def new_item(self, letter: Letter) -> Item:
        """An item that has no place yet."""
        return Item(letter, 0)

    def fall_due(self, now_ms: int) -> int:
        """Put what is due at the head of its priority, the earliest first in line; returns how many."""
        for _, _, item in sorted(one for one in self.scheduled if one[0] <= now_ms):
            if not item.is_value:
                self.become_value(item)
        due = sorted(one for one in self.scheduled if one[0] <= now_ms)
        self.scheduled = [one for one in self.scheduled if one[0] > now_ms]
        for _, _, item in reversed(due):
            if not item.attempts or self.group_of(item) is None:
                self._head_number -= 1
                item.number = self._head_number
            self._put_back(item, returned=item.redelivered)
        return len(due)

    def _stays_away(self, item: Item) -> bool:
        """A newer value came while a consumer had this one: it is replaced when it comes back."""
        self.counts.replaced += item.outdated
        return item.outdated

    def _put_back(self, item: Item, *, returned: bool) -> None:
        self.items.append(item)
        if returned:
            for reader in self.readers:
                reader.may_miss.add(item.letter.id)

    # ---- deliveries ------------------------------------------------------------------------------

    def owner(self) -> Reader | None:
        """On an exclusive queue: the consumer that came first. Who only browses owns nothing."""
        return next((reader for reader in self.readers if not reader.browses), None)

    def is_served(self, reader: Reader) -> bool:
        """Does the distribution offer this reader anything?"""
        if self.plan.live_max and not reader.browses:
            return reader in [one for one in self.readers if not one.browses][: self.plan.live_max]
        return not self.plan.exclusive or reader.browses or reader is self.owner()

    def group_of(self, item: Item) -> str | None:
        """The group of an item, None when it is in none."""
        if self.plan.groups == UNGROUPED:
            return None
        return item.letter.group or (FALLBACK if self.plan.groups == SHARED else None)

    def may_have(self, reader: Reader, item: Item) -> bool:
        """Do groups let this reader have the item? Looking is free."""
        group = self.group_of(item)
        if group is None or reader.reads:
            return True
        if any(other.attempts and self.group_of(other) == group for _, _, other in self.scheduled):
            return False
        if self.plan.groups == STICKY:
            return self.pins.get(group, reader) is reader
        out = [(one, held) for one in self.readers for held in one.held + one.picked] + self.pending
        return all(one is reader for one, held in out if not one.reads and self.group_of(held) == group)

    def next_for(self, reader: Reader, now_ms: int) -> Item | None:
        """The item that this reader must be given next."""
        for item in self.ready():
            letter = item.letter
            if letter.is_over(now_ms) or not reader.wants(letter) or not self.may_have(reader, item):
                continue
            if reader.reads and (letter.id in reader.shown or letter.id in reader.may_miss):
                continue
            return item
        return None

    def withheld(self, now_ms: int) -> tuple[Reader, Item] | None:
        """A reader with room and the item that it should have had by now."""
        for reader in self.readers:
            if reader.has_room and self.is_served(reader) and (self.is_open or reader.browses):
                item = self.next_for(reader, now_ms)
                if item is not None:
                    return reader, item
        return None

    def deliver(self, reader: Reader, letter_id: int, now_ms: int) -> None:
        """Take note of a delivery that was observed; it must be a legal one."""
        item = self.find(letter_id)
        assert item is not None, f"message {letter_id} was delivered but is not ready"
        self._check_legal(reader, item, now_ms)
        group = self.group_of(item)
        if self.plan.groups == STICKY and group is not None and not reader.reads:
            self.pins[group] = reader
        reader.room -= reader.weight(item.letter)
        reader.unsent.append(letter_id)
        if reader.reads:
            reader.shown.add(letter_id)
        else:
            self.items.remove(item)
        if not reader.settles:
            reader.held.append(item)
        elif not reader.reads:
            reader.picked.append(item)

    def written(self, reader: Reader) -> None:
        """What a reader got was written: for one that settles on send that is the end of it."""
        self.counts.acknowledged += len(reader.picked)
        reader.picked = []
        reader.handed = []
        reader.unsent = []

    def _check_legal(self, reader: Reader, item: Item, now_ms: int) -> None:
        letter = item.letter
        assert self.is_open or reader.browses, "delivered through a closed gate"
        assert not letter.is_over(now_ms), "an expired message was delivered"
        assert reader.wants(letter), "delivered against selector or no-local"
        assert reader.has_room, "delivered without room or beyond the window"
        assert self.is_served(reader), "delivered past the owner of an exclusive queue"
        assert self.may_have(reader, item), "delivered although the group is with another"
        if reader.reads:
            assert letter.id not in reader.shown, "shown twice to one reader"
        first = self.next_for(reader, now_ms)
        if first is not item:
            assert reader.reads, f"message {letter.id} overtook another"
            assert letter.id in reader.may_miss, f"message {letter.id} overtook another"
            assert first is None or self.place(item) < self.place(first), f"message {letter.id} overtook another"
        if not reader.reads and not self.plan.exclusive:
            better = [
                other
                for other in self.readers
                if other.priority > reader.priority and not other.reads and other.has_room and other.wants(letter)
                if self.is_served(other) and self.may_have(other, item)
            ]
            assert not better, "a consumer of higher priority had room"

    def hand_over(self, reader: Reader, letters: list[Letter]) -> None:
        """Arrivals went straight to the only consumer, which settles on send."""
        for letter in letters:
            reader.room -= reader.weight(letter)
        reader.handed.extend(letters)
        self.counts.acknowledged += len(letters)

    def direct_reader(self) -> Reader | None:
        """The reader that arrivals may be handed to without queueing."""
        if len(self.readers) != 1 or self.items or not self.is_open or self.ring_size == 0 or self.plan.keeps_last:
            return None
        reader = self.readers[0]
        takes_all = reader.selector is None and not reader.no_local and not reader.reads
        return reader if reader.settles and takes_all and reader.room > 0 and not reader.unsent else None

    def expire(self, letter_id: int, now_ms: int) -> None:
        """Take note of an expiry that was observed."""
        item = self.find(letter_id)
        assert item is not None, f"message {letter_id} expired but is not ready"
        assert item.letter.is_over(now_ms), f"message {letter_id} expired before its time"
        self.items.remove(item)
        self.counts.expired += 1

    # ---- settling and returning ------------------------------------------------------------------

    def acknowledge(self, reader: Reader) -> None:
        """One message that the reader let go is settled; reading settles nothing."""
        if not reader.reads:
            self.counts.acknowledged += 1

    def release(self, reader: Reader, items: list[Item], *, failed: bool, now_ms: int) -> list[Letter]:
        """Take items back, each to its place, then trim, then delay what survived; returns the dead."""
        dead: list[Letter] = []
        if reader.reads:
            return dead
        delayed: list[Item] = []
        restored = 0
        for item in items:
            if self._stays_away(item):
                continue
            item.redelivered = True
            if failed:
                item.attempts += 1
                if 0 < self.address.attempts_max <= item.attempts:
                    self.counts.killed += 1
                    dead.append(item.letter)
                    continue
                if self.address.redelivery_delay > 0:
                    delayed.append(item)
            self._put_back(item, returned=True)
            restored += 1
        self.trim(restored, now_ms, offered=False)
        for item in delayed:
            if item in self.items:
                self.items.remove(item)
                self.schedule(item, now_ms + self._delay(item.attempts))
        return dead

    def _delay(self, attempts: int) -> int:
        delay = self.address.redelivery_delay * self.address.multiplier ** (attempts - 1)
        return int(min(delay, self.address.redelivery_delay_max))

    def put_back_unsent(self, reader: Reader) -> None:
        """What was picked for a reader and never written returns as if nothing had happened."""
        unsent = set(reader.unsent)
        waiting = reader.picked + [item for item in reader.held if item.letter.id in unsent]
        reader.held = [item for item in reader.held if item.letter.id not in unsent]
        reader.unsent = []
        reader.picked = []
        if reader.reads:
            return
        waiting = [item for item in waiting if not self._stays_away(item)]
        for item in waiting:
            self._put_back(item, returned=True)
        for letter in reversed(reader.handed):
            self._head_number -= 1
            self._put_back(Item(letter, self._head_number), returned=False)
        self.counts.acknowledged -= len(reader.handed)
        self.trim(len(waiting) + len(reader.handed), 0, offered=False)
        reader.handed = []

    # ---- readers and gates -----------------------------------------------------------------------

    def come(self, reader: Reader, now_ms: int) -> None:
        """A reader attaches."""
        self.readers.append(reader)
        if self.started or reader.browses:
            return
        if len(self.takers) >= self.plan.consumers_before:
            self.started = True
            self.opens_at_ms = None
        elif self.plan.delay_before >= 0 and self.opens_at_ms is None:
            self.opens_at_ms = now_ms + self.plan.delay_before

    def leave(self, reader: Reader) -> None:
        """A reader is gone, what it had is back."""
        self.readers.remove(reader)
        self.pins = {group: owner for group, owner in self.pins.items() if owner is not reader}
        if self.takers or reader.browses:
            return
        if self.plan.consumers_before > 0:
            self.started = False
            self.opens_at_ms = None
        if self.plan.purge:
            self.purge()

    def tick_gate(self, now_ms: int) -> None:
        """Open when delay-before-dispatch is over."""
        if self.opens_at_ms is not None and now_ms >= self.opens_at_ms:
            self.started = True
            self.opens_at_ms = None

    def purge(self) -> int:
        """Kill what is ready or scheduled; returns how many."""
        gone = len(self.items) + len(self.scheduled)
        self.counts.killed += gone
        self.items = []
        self.scheduled = []
        return gone
