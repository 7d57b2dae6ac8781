"""The model of a queue: slow, plain, and written from the specification.

Where several outcomes are right (which consumer is next) the model does not choose: it says whether one that was
observed is legal, and whether a message was withheld that had to go out.
"""

from __future__ import annotations

from fractions import Fraction
from operator import itemgetter

from tests.model.activation_model import ActivationModel
from tests.model.items_model import Counts
from tests.model.plans import PROPORTIONAL, RING, ROUND_ROBIN
from tests.model.reader_model import Item, Letter, Reader
from tests.model.rules_model import group_of, is_over, valid_ms


class QueueModel(ActivationModel):
    """One queue, and who reads it."""

    # ---- arrivals --------------------------------------------------------------------------------

    def append(self, letters: list[Letter], now_ms: int) -> None:
        """Put new messages behind all others that are worth the same; what is not valid yet keeps its place free."""
        for letter in letters:
            self._last_number += 1
            item = Item(letter, self._last_number)
            self.become_value(item)
            if valid_ms(self.plan, letter, now_ms):
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

    def fit(self, grown: int, now_ms: int, *, offered: bool) -> None:
        """So many came or returned: a ring fits itself, senders may have to wait. ``offered``: consumers had their
        chance before.
        """
        is_ring = self.ring_size >= 0 or self.plan.policy == RING
        withheld = self.withheld(now_ms) if offered and is_ring else None
        gone = self.trim(grown, offered=offered)
        assert not gone or withheld is None, "a ring gave up a message while a consumer could take one"
        if offered:
            self.grew()

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
            if not self.plan.activates_in_order and (not item.attempts or group_of(self.plan, item.letter) is None):
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
        """The next item that this reader must be given."""
        for item in self.active():
            letter = item.letter
            if is_over(self.plan, letter, now_ms) or not reader.wants(letter) or not self.may_have(reader, item):
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

    def written(self, reader: Reader, now_ms: int) -> None:
        picked = [] if reader.has_barrier else reader.picked
        super().written(reader, now_ms)
        self.counts.acknowledged += len(picked)
        if picked:
            self.shrank()

    def _check_turn(self, reader: Reader, item: Item, now_ms: int) -> None:
        """Is it this one's turn, and this reader's?"""
        letter = item.letter
        assert item.is_active or not self.plan.activates_in_order, "delivered before it was active"
        assert not is_over(self.plan, letter, now_ms), "an expired message was delivered"
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
            self._check_fair(reader, item)

    def _check_fair(self, reader: Reader, item: Item) -> None:
        """Fast: nobody who came before could have had it. Proportional: nobody who has a smaller share of its backlog,
        or an equal one and came before.
        """
        if self.plan.fair == ROUND_ROBIN:
            return
        own = self._rank(reader)
        for other in self.readers:
            could = other.has_room and other.wants(item.letter) and not other.reads and self.is_served(other)
            if other.priority == reader.priority and could and self.may_have(other, item):
                assert own <= self._rank(other), f"{other.number} was to have it, not {reader.number}"
        if len(self.readers) > 1:
            self.happened.add(self.plan.fair)

    def _rank(self, reader: Reader) -> tuple[Fraction, int]:
        share = Fraction(len(reader.held), reader.backlog) if self.plan.fair == PROPORTIONAL else Fraction(0)
        return share, reader.turn

    def hand_over(self, reader: Reader, letters: list[Letter], now_ms: int) -> None:
        """Arrivals went straight to the only consumer, which settles on send."""
        assert not any(valid_ms(self.plan, letter, now_ms) for letter in letters), "handed over before its time"
        for letter in letters:
            reader.room -= reader.weight(letter)
        reader.handed.extend(letters)
        self.counts.acknowledged += len(letters)

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
        item = next((one for one in self.overdue_or_due(now_ms) if one.letter.id == letter_id), None)
        assert item is not None, f"message {letter_id} expired before its time, or while it was away"
        self.happened.add("expired while held back" if item.is_held_back else "expired")
        self.remove(item)
        self.counts.expired += 1
        self.shrank()

    # ---- settling and returning ------------------------------------------------------------------

    def settle(self, reader: Reader | None, items: list[Item], *, expires: bool) -> list[Letter]:
        if reader is None:
            for item in items:
                self.remove(item)
        elif reader.reads or reader.settles:
            return []
        elif expires and items:
            self.happened.add("expired by a consumer")
        if expires:
            self.counts.expired += len(items)
        else:
            self.counts.acknowledged += len(items)
        if items:
            self.shrank()
        return [item.letter for item in items] if expires else []

    def _was_tried_enough(self, item: Item, *, cancels: bool) -> bool:
        """A delivery came to nothing: was it one too many?"""
        item.deliveries += 1
        item.cancels += cancels
        found = {"cancelled too often": self.plan.cancels_max, "delivered too often": self.plan.deliveries_max}
        counts = item.cancels, item.deliveries
        over = [what for (what, limit), count in zip(found.items(), counts, strict=True) if 0 < limit <= count]
        self.happened.update(over[:1])
        return bool(over)

    def release(
        self, held: list[tuple[Reader, list[Item]]], *, failed: bool, now_ms: int, cancels: bool = False
    ) -> list[Letter]:
        """In the order in which it was sent: each to its place, then trim, then delay what survived."""
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
            if self._was_tried_enough(item, cancels=cancels):
                self.counts.killed += 1
                dead.append(item.letter)
                continue
            if failed:
                item.attempts += 1
                if 0 < self.address.attempts_max <= item.attempts:
                    self.counts.killed += 1
                    dead.append(item.letter)
                    self.happened.add("dead")
                    continue
                if self.address.redelivery_delay > 0:
                    delayed.append(item)
            self._put_back(item, returned=True)
            restored += 1
        self.fit(restored, now_ms, offered=False)
        for item in delayed:
            if item in self.items:
                self.items.remove(item)
                delay = self.address.redelivery_delay * self.address.multiplier ** (item.attempts - 1)
                self.schedule(item, now_ms + int(min(delay, self.address.redelivery_delay_max)))
                self.happened.add("delayed in a group" if group_of(self.plan, item.letter) is not None else "delayed")
        if restored < len(items):
            self.shrank()
        return dead

    def put_back_unsent(self, reader: Reader) -> None:
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
        ring-size are as they were, and so is a client that owns the queue.
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
            self._stand_again(item, waiting.get(item.letter.id, 0), now_ms)
        aside = [item for _, _, item in self.scheduled if not item.is_held_back]
        self.fit(len(left) - len(aside), now_ms, offered=False)
        self.grew()
        self.happened.add("restarted")

    def _stand_again(self, item: Item, due_ms: int, now_ms: int) -> None:
        """After a restart: what was aside is again (but what is due and has its place), what is left becomes a value in
        order.
        """
        keeps_place = self.plan.activates_in_order or (item.attempts and group_of(self.plan, item.letter) is not None)
        if due_ms <= now_ms and keeps_place:
            due_ms = 0
        if not due_ms or item.attempts:
            self.become_value(item)
        if due_ms:
            item.is_held_back = self.plan.activates_in_order and not item.attempts
            self.schedule(item, due_ms)
        elif valid_ms(self.plan, item.letter, now_ms):
            item.is_held_back = True
            self.schedule(item, 0)
        else:
            self.items.append(item)

    def purge(self) -> None:
        self.counts.killed += len(self.unheld())
        self.items, self.scheduled = [], []
        self.shrank()
