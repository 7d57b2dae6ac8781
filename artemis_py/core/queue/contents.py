"""The contents of a queue: ready entries in their order, those put aside, the counters, and what expires when.

Only this part places and removes entries, and only it and its paged part move the counters, what a queue keeps of a
message, and what is watched for expiry. It decides nothing about consumers and wakes nobody; other parts do that when a
verb ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, final

from artemis_py.core.host import Host
from artemis_py.core.keeping import keep, release
from artemis_py.core.order.entry import ACKED, EXPIRED, REPLACED, Entry
from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.order import Order
from artemis_py.core.publish_outcome import note_dropped
from artemis_py.core.queue.behind import Behind
from artemis_py.core.queue.dates import Dates
from artemis_py.core.queue.deferred import Deferred
from artemis_py.core.queue.expiry_watch import ExpiryWatch
from artemis_py.core.queue.grouping import Grouping
from artemis_py.core.queue.holding import is_date, not_before_ms
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.paged_contents import PagedContents
from artemis_py.core.queue.tally import Tally
from artemis_py.core.queue.tries import Tries
from artemis_py.core.reference.reference import QueueReference
from artemis_py.message import Message
from artemis_py.paged import PagedMessage
from artemis_py.records import Actor

_NOTHING_HELD: Final[set[int]] = set()
"""Most queues never need a set of their own, and there are many queues."""


@final
class Contents:
    """Entries of one queue, in every state. ``Tally`` says what the counts mean."""

    __slots__ = (
        "_grouping", "_host", "_picked_bytes", "_reference", "ages", "barrier_is_out", "behind", "deferred",
        "expiry", "has_left", "held_back", "holds", "is_in_log_order", "last_values", "leases", "order", "paged",
        "picked_count", "scheduled", "tally", "tries", "waits_until", "was_used",
    )  # fmt: skip

    def __init__(
        self,
        reference: QueueReference,
        host: Host,
        order: Order,
        grouping: Grouping,
        *,
        last_values: LastValues | None = None,
        tries: Tries | None = None,
        leases: Leases | None = None,
        behind: Behind | None = None,
        deferred: Deferred | None = None,
    ) -> None:
        rules = reference.rules
        self._reference = reference
        self._host = host
        self._grouping = grouping
        self.order = order
        """Ready entries."""
        self.behind = behind
        """Messages that are not active yet; None when each is active when it comes."""
        self.barrier_is_out = False
        """Is a barrier on its way to consumers? It counts as in delivery, and nobody holds it."""
        self.last_values = last_values
        """The newest value of each key; None when the queue keeps every message."""
        self.tries = tries
        """Deliveries in vain; None when the queue does not count them."""
        self.leases = leases
        """Who holds what until when; None when consumers hold for as long as they are there, and nobody else may
        settle what they hold.
        """
        self.deferred = deferred
        """What clients have settled and is in pages; None where nobody settles by bookmark."""
        self.is_in_log_order = True
        """Did messages arrive in the order of their bookmarks? After a restart some may not."""
        self.holds = rules.holds
        self.ages = None if rules.alerts is None else rules.alerts.ages
        self.tally = Tally()
        self.scheduled: dict[int, Entry] = {}
        """Entries that wait for their time, by message id."""
        self.waits_until = Dates()
        self.held_back: set[int] = set() if rules.holds or behind is not None else _NOTHING_HELD
        """Ids of scheduled messages that have taken their place already and return to it."""
        self.paged = PagedContents(reference, host, self.tally)
        """Messages in pages and not in memory."""
        self.picked_count = 0
        """Messages picked for consumers that settle on send and not written yet. Counted only on a queue with a depth
        limit, or with messages that are not active.
        """
        self._picked_bytes = 0
        """Their encoded size, in bytes."""
        self.has_left = False
        """Has something left since ``Aftermath`` looked last?"""
        self.was_used = False
        """Has a consumer left, or a message been settled? Until then auto-delete spares the queue
        (``auto-delete-queues-skip-usage-check`` changes that).
        """
        self.expiry = ExpiryWatch(reference.id, host, order, rules.lifetime, self.scheduled, behind)

    @property
    def is_deleted(self) -> bool:
        """Is the queue deleted?"""
        return self._reference.deleted

    # ---- counts ----------------------------------------------------------------------------------

    @property
    def message_count(self) -> int:
        """Messages that are ready, in delivery, scheduled or in pages. One that is only being read (non-destructive)
        counts once.
        """
        return self.memory_count + self.paged.count

    @property
    def ready_count(self) -> int:
        """Messages that wait for nothing but a consumer, and those that are not active yet."""
        return self.order.count if self.behind is None else self.order.count + self.behind.count

    @property
    def active_count(self) -> int:
        """Active messages: ready, picked, in delivery, or waiting for another attempt. One that is scheduled is active
        when it is due.
        """
        out = self.tally.held_count + self.picked_count
        return self.order.count + out + len(self.scheduled) - len(self.held_back)

    @property
    def has_more(self) -> bool:
        """May there be something for a consumer?"""
        return self.order.count > 0 or self.paged.count > 0 or (self.behind is not None and self.behind.count > 0)

    @property
    def delivering_count(self) -> int:
        """Messages sent to a consumer and not settled."""
        return self.tally.held_count + self.tally.read_count

    @property
    def has_held(self) -> bool:
        """Does a consumer, or a transaction, hold a message?"""
        return self.tally.held_count > self.barrier_is_out

    @property
    def size_bytes(self) -> int:
        """Encoded size of the queue, in bytes, without messages picked for consumers that settle on send."""
        return self.tally.size_bytes - self._picked_bytes

    @property
    def memory_count(self) -> int:
        """Messages in memory: ready, not active, in delivery or scheduled."""
        count = self.order.count + self.tally.held_count + len(self.scheduled)
        return count if self.behind is None else count + self.behind.count

    @property
    def memory_bytes(self) -> int:
        """Encoded size, in bytes, of messages in memory."""
        return self.size_bytes - self.paged.size_bytes

    def oldest_ms(self) -> int:
        """When the oldest of the messages arrived that are ready or not active, in epoch ms; 0: there is none. See
        ``Order.oldest_ms``.
        """
        oldest_ms = self.order.oldest_ms()
        entry = None if self.behind is None else self.behind.first()
        if entry is not None and not 0 < oldest_ms <= entry.message.timestamp_ms:
            return entry.message.timestamp_ms
        return oldest_ms

    # ---- new messages ----------------------------------------------------------------------------

    def count_in(self, entries: list[Entry], size_bytes: int) -> bool:
        """Count new messages, of ``size_bytes`` together. Returns whether any of them expires."""
        tally = self.tally
        tally.added += len(entries)
        tally.size_bytes += size_bytes
        expires = self.expiry.lifetime is not None
        for entry in entries:
            message = entry.message
            message.refs += 1
            head = message.head
            if head.persistent:
                tally.durable_count += 1
                tally.durable_size_bytes += head.size_bytes + len(message.body)
            if message.expires_ms:
                expires = True
        if self.ages is not None:
            self.ages.add([entry.message for entry in entries])
        return expires

    def count_restored(self, entries: Sequence[Entry]) -> None:
        """Count persistent messages that a restart found, in their order."""
        tally = self.tally
        if self.deferred is not None:
            lsns = [entry.message.lsn for entry in entries]
            self.is_in_log_order = self.is_in_log_order and all(one < other for one, other in pairwise(lsns))
        tally.added += len(entries)
        tally.durable_count += len(entries)
        for entry in entries:
            message = entry.message
            size_bytes = message.head.size_bytes + len(message.body)
            tally.size_bytes += size_bytes
            tally.durable_size_bytes += size_bytes
            message.refs += 1
        if self.ages is not None:
            self.ages.add([entry.message for entry in entries])

    def count_lost(self, messages: list[Message], reason: str, *, replaced: bool = False) -> None:
        """Count new messages that the queue drops on arrival, and settle the durable ones for ``reason``."""
        if self._host.outcomes:
            note_dropped(self._host.outcomes, messages, self._reference.name)
        self.tally.lose(len(messages), reason, replaced=replaced)
        durable = [message for message in messages if message.head.persistent]
        if durable and self._reference.durable:
            self._host.log.settled(self._reference.id, durable, reason)

    def pass_through(self, count: int) -> None:
        """Count new messages that go straight to a consumer that settles on send."""
        self.tally.added += count
        self.tally.acknowledged += count

    def append_expiring(self, entries: list[Entry]) -> None:
        """Append entries, some of which may expire, or all of which are not active yet."""
        order, behind = self.order, self.behind
        for entry in entries:
            message = entry.message
            if behind is None:
                order.extend([entry])
            else:
                entry.sequence = order.take_sequence(message)
                behind.add(entry)
            if self.expires_ms(message):
                entry.sequence = order.last_sequence(message)
                self.expiry.add(entry, self.message_count)

    def append_value(self, entry: Entry) -> None:
        """Append the newest value of its key. ``enter_value`` must come first."""
        message = entry.message
        self.order.extend([entry])
        entry.sequence = self.order.last_sequence(message)
        if self.expires_ms(message):
            self.expiry.add(entry, self.message_count)

    def append_held(self, entry: Entry, due_ms: int) -> None:
        """Append an entry that may not be delivered before ``due_ms`` (epoch ms): it takes its place and is put
        aside.
        """
        entry.sequence = self.order.take_sequence(entry.message)
        self.hold(entry, due_ms)

    # ---- not active ------------------------------------------------------------------------------

    def activate(self, entry: Entry) -> None:
        """The first message behind becomes active: it goes to its place, unless it waits for its time."""
        behind = self.behind
        assert behind is not None
        behind.remove(entry)
        if self.is_aside(entry):
            behind.aside_count -= 1
        else:
            self.order.restore(entry, fresh=True)

    def take_from_behind(self, entry: Entry) -> None:
        """Take out a message that is not active. Its end follows."""
        behind = self.behind
        assert behind is not None
        if self.is_aside(entry):
            self.take_from_aside(entry)
        behind.remove(entry)

    def send_out(self, entry: Entry) -> None:
        """A barrier goes to consumers: it counts as in delivery until it was written to all."""
        self.take_from_behind(entry)
        self.tally.enter_delivery(entry.message)
        self.barrier_is_out = True

    def end_barrier(self, entry: Entry) -> None:
        """A barrier was written to all: it is done."""
        self.barrier_is_out = False
        self.acknowledge_held([entry.message], None)

    def take_back_behind(self, entry: Entry) -> None:
        """A barrier that went out was written to nobody: it is the first one behind again."""
        self.barrier_is_out = False
        self.tally.leave_delivery(entry.message)
        assert self.behind is not None
        self.behind.add(entry)
        if self.expires_ms(entry.message):
            self.expiry.add(entry, self.message_count)

    # ---- places ----------------------------------------------------------------------------------

    def place(self, entry: Entry) -> None:
        """Put an entry that was read from a page in its place."""
        if self.behind is None:
            self.order.place(entry)
        else:
            self.order.reserve(entry.sequence + 1)
            self.behind.add(entry)
        if self.expires_ms(entry.message):
            self.expiry.add(entry, self.message_count)

    def put_back(self, entry: Entry) -> None:
        """Put an entry back in its own place."""
        self.tally.returned += 1
        self.order.restore(entry)
        message = entry.message
        if message.__class__ is PagedMessage:
            self.paged.came_back(message)
        if self.expires_ms(message):
            self.expiry.add(entry, self.message_count)

    def put_at_head(self, entry: Entry, *, fresh: bool) -> None:
        """Put an entry before all others of the same rank. ``fresh``: it never stood here."""
        self.order.restore_at_head(entry, fresh=fresh)
        if self.expires_ms(entry.message):
            self.expiry.add(entry, self.message_count)

    def take_back_handed(self, message: Message) -> None:
        """Queue a message that was handed straight to a consumer and not written."""
        self.tally.returned += 1
        self.tally.acknowledged -= 1
        self.tally.size_bytes += message.size_bytes
        keep(message)
        self.put_at_head(Entry(message), fresh=True)

    # ---- aside -----------------------------------------------------------------------------------

    def keeps_place(self, entry: Entry) -> bool:
        """Does an entry that is put aside go back to its own place when it is due, and not to the head?"""
        return self.behind is not None or self._grouping.keeps_place(entry)

    def hold(self, entry: Entry, due_ms: int) -> None:
        """Put aside an entry that has taken its place already."""
        if self.behind is not None:
            self.order.reserve(entry.sequence + 1)
            self.behind.add(entry)
        self.held_back.add(entry.message.id)
        self.put_aside(entry, due_ms)
        if self.expires_ms(entry.message):
            self.expiry.add(entry, self.message_count)

    def put_aside(self, entry: Entry, due_ms: int) -> None:
        """Put an entry aside until ``due_ms`` (epoch ms). On a queue with ``hold-on-publish`` a scheduled message is
        not due before it is valid.
        """
        message = entry.message
        valid_ms = not_before_ms(message, due_ms - 1) if self.holds else 0
        due_ms = valid_ms or due_ms
        self.scheduled[message.id] = entry
        try:
            self._wait(entry, due_ms, is_valid_date=valid_ms > 0)
        except Exception:
            del self.scheduled[message.id]
            raise
        if self.behind is not None and self.behind.has(entry):
            self.behind.aside_count += 1
        self.tally.enter_scheduled(message)
        self._grouping.put_aside(entry)
        self.waits_until.note(message.id, due_ms)

    def _wait(self, entry: Entry, due_ms: int, *, is_valid_date: bool) -> None:
        """Have a timer wake the queue for an entry that is put aside."""
        host, queue_id, message_id = self._host, self._reference.id, entry.message.id
        if is_valid_date or is_date(entry):
            host.timers.note_date(due_ms, queue_id, self.scheduled, message_id)
        else:
            host.timers.note_span(host.clock.steady_ms(due_ms), queue_id, self.scheduled, message_id)

    def wait_again(self, entries: Sequence[Entry], due_ms: int) -> None:
        """Those of the entries that are still put aside are due again at ``due_ms``: a step with them has failed."""
        host = self._host
        for entry in entries:
            if self.is_aside(entry):
                steady_ms = host.clock.steady_ms(due_ms)
                host.timers.note_span(steady_ms, self._reference.id, self.scheduled, entry.message.id)

    def is_aside(self, entry: Entry) -> bool:
        """Is this very entry put aside?"""
        return self.scheduled.get(entry.message.id) is entry

    def take_from_aside(self, entry: Entry) -> None:
        """Remove an entry from those put aside: it is ready, or gone."""
        message = entry.message
        del self.scheduled[message.id]
        self.waits_until.forget(message.id)
        self.held_back.discard(message.id)
        if self.behind is not None and self.behind.has(entry):
            self.behind.aside_count -= 1
        self.tally.leave_scheduled(message)
        self._grouping.leave_aside(entry)

    def end_waiting(self, entry: Entry) -> None:
        """Take out an entry that is put aside, wherever its place is. Its end follows."""
        if self.behind is not None and self.behind.has(entry):
            self.take_from_behind(entry)
        else:
            self.take_from_aside(entry)

    def set_free(self, entry: Entry) -> None:
        """The entry's time has come. It goes to the place that it took, and readers that have passed the place see
        it. One that is not active has its place already.
        """
        self.take_from_aside(entry)
        if self.behind is not None and self.behind.has(entry):
            return
        self.order.restore(entry, fresh=True)
        message = entry.message
        if self.expires_ms(message):
            self.expiry.add(entry, self.message_count)
        if message.__class__ is PagedMessage:
            self.paged.came_back(message)

    # ---- last values -----------------------------------------------------------------------------

    def stands(self, entry: Entry) -> bool:
        """Is this very entry ready?"""
        return self.order.at(self.order.level_of(entry.message), entry.sequence) is entry

    def enter_value(self, entry: Entry) -> None:
        """Make this the newest value of its key. The one before is given up, unless a consumer holds it; then it is
        given up when it comes back.
        """
        values = self.last_values
        assert values is not None
        older = values.older(entry.message)
        if older is not None:
            is_aside = self.is_aside(older)
            if is_aside or self.stands(older):
                self.give_up(older)
                if is_aside:
                    self.take_from_aside(older)
                else:
                    self.order.remove(older, older.sequence)
        values.enter(entry)

    def enter_value_of_page(self, entry: Entry) -> bool:
        """As ``enter_value``, for a message read from a page, perhaps out of turn. Returns False, and gives the message
        up, when a newer value is known.
        """
        if self.last_values is None:
            return True
        known = self.last_values.older(entry.message)
        if known is not None and self.paged.is_newer(known, entry):
            self.give_up(entry)
            return False
        self.enter_value(entry)
        return True

    def is_outdated(self, entry: Entry) -> bool:
        """Has a newer value replaced this one while a consumer held it? Then it must not come back."""
        return self.last_values is not None and self.last_values.is_outdated(entry)

    # ---- in delivery -----------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """A message goes to a consumer that settles it later, and is out of the order."""
        self.tally.enter_delivery(message)

    def deliver_run(self, messages: list[Message]) -> None:
        """As ``deliver``, for several messages."""
        self.tally.enter_delivery_run(messages)

    def come_back(self, message: Message) -> None:
        """A message comes back from the consumer that was to settle it. ``put_back`` or its end follows."""
        self.tally.leave_delivery(message)
        if self.leases is not None:
            self.leases.end(message.id)

    def reclaim(self, entries: Sequence[Entry]) -> None:
        """Entries that a consumer has let go, and that count as in delivery, go back to their places: what was to
        become of them has failed.
        """
        for entry in entries:
            self.come_back(entry.message)
            self.put_back(entry)

    def show(self) -> None:
        """A message goes to a consumer that only reads it (non-destructive), and stays in the order."""
        self.tally.read_count += 1

    def has_shown(self, count: int) -> None:
        """Consumers are done with messages that they only read."""
        self.tally.read_count -= count

    def pick_run(self, count: int, size_bytes: int) -> None:
        """So many messages of ``size_bytes`` together were picked for a consumer that settles on send, on a queue where
        that matters.
        """
        self.picked_count += count
        self._picked_bytes += size_bytes

    def unpick(self, entries: list[Entry]) -> None:
        """Picked messages were written, or come back."""
        if self.picked_count:
            self.picked_count -= len(entries)
            self._picked_bytes -= sum([entry.message.size_bytes for entry in entries])

    # ---- leaving ---------------------------------------------------------------------------------

    def acknowledge(self, messages: list[Message], by: Actor | None, reason: str = ACKED) -> None:
        """Messages that are out of the order are done with. ``by``: the consumer, for a retained log."""
        self._forget(messages, reason, by)
        self.was_used = True
        self.tally.acknowledged += len(messages)

    def acknowledge_held(self, messages: list[Message], by: Actor | None) -> None:
        """A consumer acknowledged messages that were in delivery."""
        self.acknowledge(messages, by)
        self.tally.leave_delivery_run(messages)

    def kill_held(self, messages: list[Message], reason: str) -> None:
        """Remove messages that were in delivery, for ``reason``."""
        self.kill(messages, reason)
        self.tally.leave_delivery_run(messages)

    def kill(self, messages: list[Message], reason: str, by: Actor | None = None) -> None:
        """Remove messages that are out of the order, for ``reason``. They count as killed."""
        if messages:
            self._forget(messages, reason, by)
            self.was_used = True
            self.tally.kill(len(messages), reason)

    def expire(self, entries: list[Entry]) -> None:
        """Remove entries that are out of the order: they have expired."""
        if entries:
            self._host.copies.join()
            self._forget([entry.message for entry in entries], EXPIRED)
            self.was_used = True
            for entry in entries:
                self._host.copies.note_expired(self._reference, entry.message)
            self.tally.expired += len(entries)

    def expire_held(self, messages: list[Message], by: Actor | None) -> None:
        """A consumer had messages expire that were in delivery to it, whatever their date."""
        self._host.copies.join()
        self._forget(messages, EXPIRED, by)
        self.tally.leave_delivery_run(messages)
        self.was_used = True
        for message in messages:
            self._host.copies.note_forced(self._reference, message)
        self.tally.expired += len(messages)

    def give_up(self, entry: Entry) -> None:
        """Remove an entry that is out of the order: another replaces it."""
        if self._host.outcomes:
            note_dropped(self._host.outcomes, [entry.message], self._reference.name)
        self._forget([entry.message], REPLACED)
        self.tally.replaced += 1

    def give_up_least(self) -> None:
        """Remove the least ready entry: there are too many."""
        least = self.order.pop_least()
        try:
            self.give_up(least)
        except Exception:
            self.order.restore(least)
            raise

    def _forget(self, messages: list[Message], reason: str, by: Actor | None = None) -> None:
        """Forget messages, in whatever state they were. ``by``: the consumer that caused it. First it is written down:
        if that raises, nothing has changed, and whoever took the messages out puts them back.
        """
        is_durable = self._reference.durable
        durable: list[Message] | None = None
        paged: list[PagedMessage] | None = None
        size_bytes = durable_count = durable_size_bytes = 0
        for message in messages:
            head = message.head
            own_bytes = head.size_bytes + len(message.body)
            size_bytes += own_bytes
            if message.__class__ is PagedMessage:
                if paged is None:
                    paged = []
                paged.append(message)
            elif head.persistent and is_durable:
                if durable is None:
                    durable = []
                durable.append(message)
            if head.persistent:
                durable_count += 1
                durable_size_bytes += own_bytes
        if durable is not None:
            self._host.log.settled(self._reference.id, durable, reason, by)
        self.has_left = True
        tally = self.tally
        tally.size_bytes -= size_bytes
        tally.durable_count -= durable_count
        tally.durable_size_bytes -= durable_size_bytes
        if self.last_values is not None:
            self.last_values.forget(messages)
        if self.tries is not None:
            self.tries.forget(messages)
        if self.leases is not None:
            self.leases.forget(messages)
        if self.ages is not None:
            self.ages.remove(messages)
        release(messages)
        if paged is not None:  # a page may go now, of which nothing is in memory any more
            self.paged.forget(paged, reason, by)

    # ---- expiry ----------------------------------------------------------------------------------

    def expires_ms(self, message: Message) -> int:
        """When the message expires on this queue, in epoch ms; 0: never."""
        return self.expiry.expires_ms(message)

    def pop_expired(self, now_ms: int, looks_max: int) -> tuple[list[Entry], int]:
        """Take expired entries, ready or held back, out of the order. Returns them, and how many watched times were
        checked, at most ``looks_max``. Fewer than that means all were.
        """
        expired: list[Entry] = []
        looked = 0
        while looked < looks_max:
            place = self.expiry.pop(now_ms)
            if place is None:
                break
            looked += 1
            level, sequence, message_id = place
            entry = self.order.at(level, sequence)
            if entry is not None and entry.message.id == message_id:
                self.order.remove(entry, sequence)
                expired.append(entry)
                continue
            entry = None if self.behind is None else self.behind.at(sequence)
            if entry is not None and entry.message.id == message_id:
                entry.sequence = sequence
                self.take_from_behind(entry)
                expired.append(entry)
            elif message_id in self.held_back:
                held = self.scheduled[message_id]
                self.take_from_aside(held)
                expired.append(held)
        return expired, looked

    def unwatch(self, count_max: int) -> int:
        """Nothing that could expire is left: forget up to ``count_max`` watched places. Returns how many."""
        return self.expiry.forget(count_max)
