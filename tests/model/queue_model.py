"""The model of a queue: slow, plain, and written from the specification. One list of items, sorted when looked at.

Where several outcomes are right (which consumer is next) the model does not choose: it says whether one that was
observed is legal, and whether a message was withheld that had to go out. So it is with messages that become active one
after the other: when the broker looks for what may be active is its own business. The model says what may be active by
now, and what must be after a dispatch, and takes over what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from operator import itemgetter

from tests.model.plans import FLOW_CONTROL, PROPORTIONAL, REJECT, RING, ROUND_ROBIN, SORTED
from tests.model.reader_model import Item, Letter, Reader
from tests.model.readers_model import ReadersModel


@dataclass(slots=True)
class Counts:
    """What came and how it left."""

    added: int = 0
    acknowledged: int = 0
    killed: int = 0
    expired: int = 0
    replaced: int = 0


@dataclass(eq=False, repr=False)
class QueueModel(ReadersModel):
    """One queue, and who reads it. ``items`` are ready, ``scheduled`` wait for their time (or for that of another
    attempt). Its depth is everything that stands on it, in whatever state.
    """

    _: KW_ONLY
    items: list[Item] = field(default_factory=list)
    scheduled: list[tuple[int, int, Item]] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    senders_wait: bool = False
    _head_number: int = 0
    _scheduled_ever: int = 0

    # ---- what stands here ------------------------------------------------------------------------

    def ready(self) -> list[Item]:
        """What is ready, in order."""
        return sorted(self.items, key=self.place)

    def place(self, item: Item) -> tuple[tuple[int, str], int]:
        """What decides which item is next."""
        return self.worth(item), item.number

    def unheld(self) -> list[Item]:
        return self.items + self.aside()

    def aside(self) -> list[Item]:
        return [item for _, _, item in self.scheduled]

    def held_back(self) -> list[Item]:
        """What has its place, and waits until it is valid."""
        return [item for item in self.aside() if item.is_held_back]

    def delayed(self) -> list[Item]:
        """What waits for another attempt."""
        return [item for item in self.aside() if not item.is_held_back]

    def siftable(self) -> list[Item]:
        """What nobody has, and a filter finds."""
        delayed, in_order = self.delayed(), self.plan.activates_in_order
        return [item for item in self.unheld() if item.is_active or not in_order or item in delayed]

    def remove(self, item: Item) -> None:
        """Take an item away from where it stands or waits."""
        self.items = [one for one in self.items if one is not item]
        self.scheduled = [one for one in self.scheduled if one[2] is not item]

    # ---- time ------------------------------------------------------------------------------------

    def schedule(self, item: Item, due_ms: int) -> None:
        """Put an item aside until it is due, and valid."""
        self._scheduled_ever += 1
        due_ms = max(due_ms, self.valid_ms(item.letter, due_ms))
        self.scheduled.append((due_ms, self._scheduled_ever, item))

    def due_items(self, now_ms: int) -> list[Item]:
        """What waits and is due, the earliest first."""
        return [item for _, _, item in sorted(one for one in self.scheduled if one[0] <= now_ms)]

    def overdue(self, now_ms: int, *, or_due: bool = False) -> list[Item]:
        """What is over and still stands where time takes it away: ready, or held back. ``or_due``: or falls due now."""
        here = self.items + self.held_back()
        if or_due:
            here += [item for item in self.due_items(now_ms) if not item.is_held_back]
        return [item for item in here if self.expires_ms(item.letter) <= now_ms]

    # ---- a full queue ----------------------------------------------------------------------------

    @property
    def keeps_none(self) -> bool:
        """Does no arrival stay, whoever waits for it?"""
        plan = self.plan
        return self.ring_size == 0 or (plan.policy == RING and 0 in (plan.depth_messages, plan.depth_bytes))

    def admits(self, letters: list[Letter]) -> bool:
        """May the letters come now?"""
        return self.is_within(letters) if self.plan.policy == REJECT else not self.senders_wait

    def grew(self) -> None:
        """Something came, and consumers had their chance: beyond the limit senders wait from now on."""
        if self.plan.policy == FLOW_CONTROL and not self.is_within([]):
            self.senders_wait = True
            self.happened.add("senders wait")

    def shrank(self, coming: Sequence[Letter] = ()) -> None:
        """Something left: when it was enough, senders go on. What takes its place, ``coming``, counts already."""
        if self.senders_wait and self.is_within(list(coming), self.plan.resume_percent):
            self.senders_wait = False
            self.happened.add("senders go on")

    def fit(self, grown: int, now_ms: int, *, offered: bool) -> None:
        """So many came or returned: a ring fits itself, senders may have to wait. ``offered``: consumers had their
        chance before.

        Of a ring the oldest of the lowest priority goes; where priority does not count, the oldest. Where it counts
        what is ready, at most one item goes for each one added; where it counts the depth, as many as need be, but for
        the last one when it has just come.
        """
        is_deep, by_age = self.plan.policy == RING and grown > 0, self.plan.kind == SORTED
        is_ring = self.ring_size >= 0 or self.plan.policy == RING
        withheld = self.withheld(now_ms) if offered and is_ring else None
        least = 1 if offered else 0
        over = min(len(self.items) - self.ring_size, grown) if self.ring_size >= 0 else 0
        gone = 0
        while gone < over or (is_deep and len(self.items) > least and not self.is_within([])):
            self.items.remove(min(self.items, key=lambda item: (0 if by_age else -self.worth(item)[0], item.number)))
            self.counts.replaced += 1
            self.happened.add("ring")
            gone += 1
        assert not gone or withheld is None, "a ring gave up a message while a consumer could take one"
        if offered:
            self.grew()

    # ---- becoming active -------------------------------------------------------------------------

    def may_be_active(self) -> Iterator[Item]:
        """What may become active now, in order."""
        if self.barrier_out is not None:
            return
        room = self.plan.active_max - len(self.held_items() + self.picked_items() + self.delayed())
        room -= sum(item.is_active for item in self.items)
        aside = [item for item in self.held_back() if not item.is_active]
        for item in sorted([item for item in self.items if not item.is_active] + aside, key=self.place):
            if self.is_barrier(item.letter) or (self.plan.active_max and room <= 0):
                return
            yield item
            room -= item in self.items

    def activate(self, ids: set[int]) -> None:
        """These are active, or would be if it were time: they must be a part of those that may be, the first ones."""
        may = list(self.may_be_active())
        fresh = [item for item in may if item.letter.id in ids]
        assert fresh == may[: len(fresh)], "a message became active before an earlier one"
        here = self.items + self.held_back()
        wrong = [item.letter.id for item in here if item.letter.id in ids and not item.is_active and item not in may]
        assert not wrong, f"messages {wrong} are active before their time"
        for item in fresh:
            item.is_active = True
            self.happened.add("became active")
        lost = [item.letter.id for item in here if item.is_active and item.letter.id not in ids]
        assert not lost, f"messages {lost} are not active any more"

    # ---- barriers --------------------------------------------------------------------------------

    def barrier_in_turn(self, now_ms: int) -> Item | None:
        """The barrier that is out, or that may go out now: everything is done that came before it."""
        if self.barrier_out is not None:
            return self.barrier_out
        here = sorted(self.items + self.held_back(), key=self.place)
        first = here[0] if here else None
        if first is None or first not in self.items or not self.is_barrier(first.letter):
            return None
        before = self.held_items() + self.picked_items() + self.delayed() + self.unconfirmed()
        return None if before or self.expires_ms(first.letter) <= now_ms else first

    def deliver_barrier(self, reader: Reader, letter_id: int, now_ms: int) -> None:
        """Take note of a barrier that goes to a reader; it must be its turn."""
        if self.barrier_out is not None and self.barrier_out.letter.id != letter_id:
            self.note_end_of_barrier()
        self.take_barrier(reader, letter_id, self.barrier_in_turn(now_ms))
        assert self.barrier_out is not None
        self.remove(self.barrier_out)

    def barrier_is_over(self) -> bool:
        """Has everybody got the barrier that is out, or left?"""
        item = self.barrier_out
        if item is None:
            return False
        return not any(reader.has_barrier or self.lacks_barrier(reader, item) for reader in self.readers)

    def note_end_of_barrier(self) -> None:
        """Something is delivered that stood behind the barrier that was out: it has to be over."""
        if self.barrier_is_over():
            self.end_barrier()

    def end_barrier(self) -> None:
        item = self.barrier_out
        assert item is not None
        assert self.barrier_is_over(), "a barrier is done although somebody is still to get it"
        self.barrier_out = None
        if self.barrier_was_written:
            self.counts.acknowledged += 1
            self.shrank()
        else:
            self.items.append(item)
            self.happened.add("barrier came back")
        self.barrier_got, self.barrier_was_written = set(), False

    # ---- arrivals --------------------------------------------------------------------------------

    def append(self, letters: list[Letter], now_ms: int, due_ms: int = 0) -> None:
        """Put new messages behind all others that are worth the same, or aside until they are due. What is not valid
        yet keeps its place free; where messages become active in order, so does what is put aside.
        """
        for letter in letters:
            has_place = not due_ms or self.plan.activates_in_order
            self._last_number += has_place
            item = Item(letter, self._last_number if has_place else 0, is_held_back=has_place and due_ms > 0)
            if due_ms:
                self.schedule(item, due_ms)
                continue
            self.become_value(item)
            if self.valid_ms(letter, now_ms):
                item.is_held_back = True
                self.schedule(item, 0)
                self.happened.add("held back")
            else:
                self.items.append(item)

    def value_of(self, key: str | None) -> Item | None:
        """The value of a key, if it is not out with a consumer."""
        return next(
            (item for item in self.unheld() if item.is_value and key is not None and item.letter.key == key), None
        )

    def become_value(self, new: Item) -> None:
        """On a last-value queue: what has the same key goes, or must not come back."""
        if not self.plan.keeps_last:
            return
        older = self.value_of(new.letter.key)
        if older is not None:
            self.remove(older)
            self.counts.replaced += 1
            self.happened.add("value replaced")
            self.shrank([] if new in self.standing() else [new.letter])
        for item in self.held_items() + self.picked_items():
            item.outdated = item.outdated or (new.letter.key is not None and item.letter.key == new.letter.key)
        new.is_value = True

    def fall_due(self, now_ms: int) -> int:
        """Put what is valid now to its place, and what is due at the head of its priority, the earliest first in line;
        returns how many.
        """
        valid = [item for item in self.due_items(now_ms) if item.is_held_back]
        for item in valid:
            self.remove(item)
            item.is_held_back = False
            self._put_back(item, returned=False)
        for item in self.due_items(now_ms):
            if not item.is_value:
                self.become_value(item)
        due = self.due_items(now_ms)
        for item in reversed(due):
            self.remove(item)
            if not self.plan.activates_in_order and (not item.attempts or self.group_of(item.letter) is None):
                self._head_number -= 1
                item.number = self._head_number
            self._put_back(item, returned=item.redelivered)
        return len(valid) + len(due)

    def _put_back(self, item: Item, *, returned: bool) -> None:
        self.items.append(item)
        if returned:
            for reader in self.readers:
                reader.may_miss.add(item.letter.id)

    def _stays_away(self, item: Item) -> bool:
        """A newer value came while a consumer had this one: it is replaced when it comes back."""
        if item.outdated:
            self.counts.replaced += 1
            self.happened.add("outdated value")
        return item.outdated

    # ---- deliveries ------------------------------------------------------------------------------

    def next_for(self, reader: Reader, now_ms: int) -> Item | None:
        """The next item that this reader must be given. What may be active is offered before anything is refused."""
        active = [*self.may_be_active()] if self.plan.active_max else []
        for item in self.ready():
            letter = item.letter
            if self.plan.activates_in_order and not item.is_active and item not in active:
                continue
            if self.expires_ms(letter) <= now_ms or not reader.wants(letter) or not self.may_have(reader, item):
                continue
            if reader.reads and (letter.id in reader.shown or letter.id in reader.may_miss):
                continue
            return item
        return None

    def withheld(self, now_ms: int) -> tuple[Reader, Item] | None:
        """A reader with room and the item that it should have had by now."""
        for reader in self.readers:
            may_go = self.is_open and not self.is_full
            if reader.has_room and self.is_served(reader) and (may_go or reader.browses):
                item = self.next_for(reader, now_ms)
                if item is not None:
                    return reader, item
        return None

    def deliver(self, reader: Reader, letter_id: int, now_ms: int) -> None:
        """Take note of a delivery that was observed; it must be a legal one."""
        item = next((item for item in self.items if item.letter.id == letter_id), None)
        assert item is not None, f"message {letter_id} was delivered but is not ready"
        if self.plan.activates_in_order and not item.is_active:
            self.note_end_of_barrier()
            # it and all before it are active; what stands behind it may be looked at later
            active = [one for one in self.items + self.held_back() if one.is_active]
            fresh = [one for one in self.may_be_active() if one.number <= item.number]
            self.activate({one.letter.id for one in active + fresh})
        self._check_turn(reader, item, now_ms)
        self.take(reader, item)
        if not reader.reads:
            self.items.remove(item)
        if reader.settles and not reader.reads:
            self.shrank()

    def _check_turn(self, reader: Reader, item: Item, now_ms: int) -> None:
        """Is it this one's turn, and this reader's? Of readers of one priority, fast means that nobody who came before
        could have had it; proportional, nobody who has a smaller share of its backlog, or an equal one and came before.
        """
        letter = item.letter
        assert item.is_active or not self.plan.activates_in_order, "delivered before it was active"
        assert self.expires_ms(letter) > now_ms, "an expired message was delivered"
        first = self.next_for(reader, now_ms)
        if first is not item:
            assert reader.reads, f"message {letter.id} overtook another"
            assert letter.id in reader.may_miss, f"message {letter.id} overtook another"
            assert first is None or self.place(item) < self.place(first), f"message {letter.id} overtook another"
        if reader.reads or self.plan.exclusive:
            return
        others = [
            other
            for other in self.readers
            if other is not reader and not other.reads and other.has_room and other.wants(letter)
            if self.is_served(other) and self.may_have(other, item)
        ]
        assert all(other.priority <= reader.priority for other in others), "a consumer of higher priority had room"
        if self.plan.fair == ROUND_ROBIN:
            return
        by_share = self.plan.fair == PROPORTIONAL
        ranks = {one: (Fraction(len(one.held) if by_share else 0, one.backlog), one.turn) for one in (reader, *others)}
        for other in others:
            is_next = other.priority < reader.priority or ranks[reader] <= ranks[other]
            assert is_next, f"{other.number} was to have it, not {reader.number}"
        if len(self.readers) > 1:
            self.happened.add(self.plan.fair)

    def direct_reader(self) -> Reader | None:
        """The reader that arrivals may be handed to without queueing."""
        if self.is_full:
            return None
        if len(self.readers) != 1 or self.items or not self.is_open or self.keeps_none:
            return None
        if self.plan.keeps_last or self.knows_groups or self.plan.activates_in_order:
            return None
        reader = self.readers[0]
        takes_it = reader.settles and not reader.acks and reader.wants_all and not reader.reads
        return reader if takes_it and reader.room > 0 and not reader.unsent else None

    def expire(self, letter_id: int, now_ms: int) -> None:
        """Take note of an expiry that was observed."""
        item = next((one for one in self.overdue(now_ms, or_due=True) if one.letter.id == letter_id), None)
        assert item is not None, f"message {letter_id} expired before its time, or while it was away"
        self.happened.add("expired while held back" if item.is_held_back else "expired")
        self.remove(item)
        self.counts.expired += 1
        self.shrank()

    # ---- settling and returning ------------------------------------------------------------------

    def settle(self, items: list[Item], *, expires: bool) -> None:
        """Items are done, or a consumer has them expire."""
        for item in items:
            self.remove(item)
        if expires:
            self.counts.expired += len(items)
        else:
            self.counts.acknowledged += len(items)
        if items:
            self.shrank()

    def release(
        self, held: list[tuple[Reader, list[Item]]], *, failed: bool, now_ms: int, cancels: bool = False
    ) -> list[Letter]:
        """Take back what readers held that take messages away, in the order in which it was sent: each to its place,
        then trim, then delay what survived. Returns the dead.
        """
        held = [(reader, items) for reader, items in held if not (reader.reads or reader.settles)]
        dead: list[Letter] = []
        delayed: list[Item] = []
        restored = 0
        sent = [(reader.written.get(item.letter.id, 0), item) for reader, items in held for item in items]
        for reader, items in held:
            for item in items:
                reader.leases.pop(item.letter.id, None)
        items = [item for _, item in (sorted(sent, key=itemgetter(0)) if len(held) > 1 else sent)]
        for item in items:
            if self._stays_away(item):
                continue
            item.redelivered = True
            item.deliveries += 1
            item.cancels += cancels
            item.attempts += failed
            if over := self.exhausted_by(item):
                self.counts.killed += 1
                dead.append(item.letter)
                self.happened.add(over)
                continue
            if failed and self.address.redelivery_delay > 0:
                delayed.append(item)
            self._put_back(item, returned=True)
            restored += 1
        self.fit(restored, now_ms, offered=False)
        for item in delayed:
            if item in self.items:
                self.items.remove(item)
                delay = self.address.redelivery_delay * self.address.multiplier ** (item.attempts - 1)
                self.schedule(item, now_ms + int(min(delay, self.address.redelivery_delay_max)))
                self.happened.add("delayed in a group" if self.group_of(item.letter) is not None else "delayed")
        if restored < len(items):
            self.shrank()
        return dead

    def put_back_unsent(self, reader: Reader) -> None:
        """What was picked for a reader and never written returns as if nothing had happened."""
        unsent = set(reader.unsent)
        waiting = reader.picked + [item for item in reader.held if item.letter.id in unsent]
        reader.held = [item for item in reader.held if item.letter.id not in unsent]
        reader.unsent = []
        reader.picked = []
        reader.out = []
        if reader.reads:
            return
        outdated = [item for item in waiting if self._stays_away(item)]
        waiting = [item for item in waiting if item not in outdated]
        for item in waiting:
            self._put_back(item, returned=True)
        if outdated:
            self.shrank()
        for letter in reversed(reader.handed):
            self._head_number -= 1
            self._put_back(Item(letter, self._head_number), returned=False)
        self.counts.acknowledged -= len(reader.handed)
        self.fit(len(waiting) + len(reader.handed), 0, offered=False)
        reader.handed = []

    # ---- other ends ------------------------------------------------------------------------------

    def restart(self, now_ms: int) -> None:
        """The power goes: clients are gone, what they had is back, and what is not durable is lost. Paused and
        ring-size are as they were, and so is a client that owns the queue. What was aside is again, what is left
        becomes a value in order.
        """
        left = [item for item in self.standing() if item.letter.persistent and self.plan.durable]
        in_order = self.plan.activates_in_order
        waiting = {item.letter.id: due_ms for due_ms, _, item in self.scheduled if in_order or not item.is_held_back}
        if not self.plan.durable:
            self.paused, self.ring_size, self.owner = False, self.plan.ring_size, None
        self.items, self.scheduled, self.pending, self.pending_out, self.readers = [], [], [], [], []
        self.barrier_out, self.barrier_got, self.barrier_was_written = None, set(), False
        self.counts = Counts(added=len(left))
        self.pins = {}
        self.knows_groups = self.waits_for_settling = self.senders_wait = False
        self.started, self.opens_at_ms = self.plan.consumers_before <= 0, None
        self.look_for_groups([item.letter for item in left])
        for item in sorted(left, key=lambda item: item.number):
            item.letter.origin = 0  # nobody's connection is there any more
            item.redelivered = item.attempts > 0
            item.deliveries = item.cancels = 0
            item.outdated = item.is_value = item.is_held_back = item.is_active = False
            due_ms = waiting.get(item.letter.id, 0)
            if due_ms <= now_ms and (in_order or (item.attempts and self.group_of(item.letter) is not None)):
                due_ms = 0  # it is due, and has its place
            if not due_ms or item.attempts:
                self.become_value(item)
            is_invalid = self.valid_ms(item.letter, now_ms) > 0
            item.is_held_back = is_invalid if not due_ms else in_order and not item.attempts
            if due_ms or is_invalid:
                self.schedule(item, due_ms)
            else:
                self.items.append(item)
        aside = [item for _, _, item in self.scheduled if not item.is_held_back]
        self.fit(len(left) - len(aside), now_ms, offered=False)
        self.grew()
        self.happened.add("restarted")

    def purge(self) -> None:
        """Kill what nobody has in hand."""
        self.counts.killed += len(self.unheld())
        self.items, self.scheduled = [], []
        self.shrank()
