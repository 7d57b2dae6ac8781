"""The messages of a queue: where each stands, what it counts for, when it expires, and which are in pages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final, final

from artemis_py.core.clock import drop_void
from artemis_py.core.memory import ID_BYTES, IDS, Holdings, keep, release
from artemis_py.core.order.entry import ACKED, DAMAGED, EXPIRED, MOVED, REPLACED, SUPERSEDED, Entry
from artemis_py.core.order.fifo import Fifo
from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.order import Order
from artemis_py.core.pages import Backlog, RestoredShare
from artemis_py.core.publish_outcome import note_dropped
from artemis_py.core.queue.groups import Grouping
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.redelivery import DeliveryAttempts
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import Lifetime, QueueReference
from artemis_py.message import HeaderName, Message
from artemis_py.paged_messages import Page, PagedMessage
from artemis_py.record_log import Actor
from artemis_py.units import DATE_MAX_MS, LONG_MAX

# ---- outcomes --------------------------------------------------------------------------------------------------------
#
# How a client settles a message.


ACCEPT: Final = ""
"""It is done."""
CANCEL: Final = "cancel"
"""It goes back to its queue."""
EXPIRE: Final = "expire"
"""It goes to the expiry address."""


# ---- holding ---------------------------------------------------------------------------------------------------------
#
# Messages that a queue with ``hold-on-publish`` holds back, and which delays are dates.


_NOT_VALID_BEFORE: Final = HeaderName("x-qpid-not-valid-before")
_SCHEDULED_TIME: Final = HeaderName("AMQ_SCHEDULED_TIME")
_DIGITS_MAX: Final = 19


def not_before_ms(message: Message, now_ms: int) -> int:
    """When a queue with ``hold-on-publish`` may deliver the message, in epoch ms; 0: at once.

    Qpid's rules: a message is held until the time in its header is past. A text
    that is not a 64-bit number holds nothing.
    """
    text = message.head.first(_NOT_VALID_BEFORE)
    if text is None:
        return 0
    digits = text.strip()
    if len(digits) > _DIGITS_MAX or not (digits.isascii() and digits.isdigit()):
        return 0
    until_ms = int(digits)
    return min(until_ms + 1, DATE_MAX_MS) if now_ms <= until_ms <= LONG_MAX else 0


def is_date(entry: Entry) -> bool:
    """Does an entry that is put aside wait for a date? Otherwise it waits for a time to pass: a sender's delay, or the
    delay between two attempts.
    """
    return not entry.attempts and (entry.message.head.first(_SCHEDULED_TIME) or "").strip(" 0") != ""


# ---- scheduled dates -------------------------------------------------------------------------------------------------
#
# Until when messages of a queue wait that are put aside, and in which order they began to wait.


RUN_LENGTH: Final = 1024
"""So many messages form a run. A walk copies one run at a time, so that no step depends on how many wait."""
_NONE: Final[dict[int, int]] = {}
_NO_RUNS: Final[dict[int, dict[int, int]]] = {}
"""Most queues never need any of their own, and there are many queues."""


@final
class ScheduledDates:
    """Due dates by message id, for operators. The timers of scheduled messages are in ``core/queue_timers.py``."""

    __slots__ = ("_newest", "_run_of", "_runs")

    def __init__(self) -> None:
        self._runs = _NO_RUNS
        """By number, the oldest first: the dates of messages that began to wait one after the other."""
        self._run_of = _NONE
        """The run of each message."""
        self._newest = 0

    def note(self, message_id: int, date_ms: int) -> None:
        """A message waits until this date (epoch ms), if nobody sets the clock."""
        if self._runs is _NO_RUNS:
            self._runs, self._run_of = {}, {}
        run = self._runs.get(self._newest)
        if run is None or len(run) >= RUN_LENGTH:
            self._newest += 1
            run = self._runs[self._newest] = {}
        run[message_id] = date_ms
        self._run_of[message_id] = self._newest

    def forget(self, message_id: int) -> None:
        """It waits no more."""
        number = self._run_of.pop(message_id, None)
        if number is not None:
            run = self._runs[number]
            del run[message_id]
            if not run:
                del self._runs[number]

    def of(self, message_id: int) -> int:
        """Until when it waits; 0: it does not."""
        number = self._run_of.get(message_id)
        return 0 if number is None else self._runs[number][message_id]

    def open_cursor(self, first_run: int = 0) -> ScheduledCursor:
        """All that wait now, from a run on, in the order in which they began to. What comes later is not among
        them.
        """
        if self._runs:
            self._newest += 1
        return ScheduledCursor(self._runs, first_run)

    def __len__(self) -> int:
        return len(self._run_of)


@final
class ScheduledCursor:
    """A cursor over messages that wait. It reads some at a time, while others come and go."""

    def __init__(self, runs: dict[int, dict[int, int]], first_run: int) -> None:
        self.run = 0
        """The number of the run that was copied last."""
        self._runs = runs
        self._numbers = [number for number in reversed(runs) if number >= first_run]
        self._ids: list[int] = []
        """What is left of the run that was copied last, the first at the end."""

    def take(self, count: int) -> list[int]:
        """The ids of the next ones of one run, at most ``count``. Empty: there are no more. One that has ceased to wait
        may be among them.
        """
        while not self._ids and self._numbers:
            self.run = self._numbers.pop()
            self._ids = list(reversed(self._runs.get(self.run, _NONE)))
        some = self._ids[-count:]
        del self._ids[-count:]
        some.reverse()
        return some

    def next_id(self) -> int | None:
        """The id of the next one, or None."""
        ids = self.take(1)
        return ids[0] if ids else None


# ---- deferred acks ---------------------------------------------------------------------------------------------------
#
# Acknowledgements of messages that are in pages: they are carried out when the message is read (AMPS'
# DeferredAckExpiration).


DEFERRED_ACKS_MAX: Final = 10_000
"""How many a queue remembers. The oldest are forgotten, and their messages then come again."""


@final
class DeferredAcks:
    """Bookmarks that clients have settled and that the queue does not have in memory, each with its outcome
    (``ACCEPT``, ``EXPIRE``). A restart forgets them.
    """

    __slots__ = ("_holdings", "_outcomes")

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._outcomes: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._outcomes)

    def note(self, bookmark: int, outcome: str) -> None:
        """A client has settled this bookmark."""
        outcomes = self._outcomes
        if bookmark in outcomes:
            return
        if len(outcomes) >= DEFERRED_ACKS_MAX:
            self._drop(next(iter(outcomes)))
        outcomes[bookmark] = outcome
        self._holdings.move(IDS, ID_BYTES)

    def knows(self, bookmark: int) -> bool:
        """Has a client settled it?"""
        return bookmark in self._outcomes

    def take(self, bookmark: int) -> str | None:
        """The outcome of a message that was just read; None: nobody has settled it."""
        outcome = self._outcomes.get(bookmark)
        if outcome is not None:
            self._drop(bookmark)
        return outcome

    def forget(self) -> None:
        """Forget all: the queue has no pages any more, or is deleted."""
        self._holdings.move(IDS, -ID_BYTES * len(self._outcomes))
        self._outcomes.clear()

    def _drop(self, bookmark: int) -> None:
        del self._outcomes[bookmark]
        self._holdings.move(IDS, -ID_BYTES)


# ---- pending ---------------------------------------------------------------------------------------------------------
#
# Messages that have their place and are not active yet: nobody is offered or shown them. They stand in order of
# arrival, and become active from the first on: then they go to the places in the order that they took when they came. A
# queue has such messages where it has barriers (AMPS) or keeps to a number of active messages (AMPS' TargetQueueDepth).


class Threshold(ABC):
    """Says whether the first message behind may become active. It holds no entry."""

    __slots__ = ()

    @property
    def makes_barriers(self) -> bool:
        """Is a message that may not become active a barrier, which goes to all consumers when it is first?"""
        return False

    def units_of(self, message: Message) -> int:
        """What it costs to ask about a message."""
        return 0

    @abstractmethod
    def lets_in(self, message: Message, active_count: int) -> bool:
        """May the first message behind become active, with so many active ones?"""


@final
class PendingMessages:
    """The messages themselves. One that waits for its time stands here, too, until it would be active but for that."""

    __slots__ = ("_fifo", "aside_count", "barrier", "threshold")

    def __init__(self, threshold: Threshold) -> None:
        self.threshold = threshold
        self._fifo = Fifo()
        self.aside_count = 0
        """How many of them wait for their time."""
        self.barrier: Entry | None = None
        """The first of them, if it is known to be a barrier."""

    @property
    def count(self) -> int:
        """Messages behind that do not wait for their time."""
        return self._fifo.count - self.aside_count

    def add(self, entry: Entry) -> None:
        """Add an entry with its sequence."""
        self._fifo.restore(entry)

    def remove(self, entry: Entry) -> None:
        """Take an entry out; it must be here."""
        self._fifo.remove(entry.sequence)
        if entry is self.barrier:
            self.barrier = None

    def has(self, entry: Entry) -> bool:
        """Does this very entry stand here?"""
        return self._fifo.at(entry.sequence) is entry

    def at(self, sequence: int) -> Entry | None:
        """The entry with this sequence; None when there is none."""
        return self._fifo.at(sequence)

    def first(self) -> Entry | None:
        """The first entry, or None. Its ``sequence`` is filled in."""
        return self._fifo.first()

    def next_from(self, sequence: int) -> Entry | None:
        """The first entry whose sequence is at least this, or None. Its ``sequence`` is filled in."""
        return self._fifo.next_from(sequence)


# ---- counters --------------------------------------------------------------------------------------------------------
#
# A queue's counters: plain ints that the queue changes and a scrape reads.


class Counters:
    """Counts and encoded sizes of one queue. Sizes are header block plus body, in bytes. ``durable_*`` count only
    persistent messages.

    ``held`` is in delivery and out of the order. ``read`` is in delivery on a non-destructive queue, where the message
    also stays. ``added`` counts every arrival, even one that a ring drops at once; ``acknowledged``, ``expired``,
    ``killed`` and ``replaced`` count the ways to leave.
    """

    __slots__ = (
        "acknowledged", "added", "durable_count", "durable_size_bytes", "expired", "held_count", "held_durable_count",
        "held_durable_size_bytes", "held_size_bytes", "killed", "killed_by", "read_count", "replaced", "returned",
        "scheduled_durable_count", "scheduled_durable_size_bytes", "scheduled_size_bytes", "size_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.added = 0
        self.acknowledged = 0
        self.expired = 0
        self.killed = 0
        self.killed_by: dict[str, int] | None = None
        """The same by reason; None before the first: most queues never kill a message."""
        self.replaced = 0
        self.returned = 0
        """How often a message came back to the queue, or to its place: somebody who looks may have passed that."""
        self.size_bytes = 0
        self.durable_count = 0
        self.durable_size_bytes = 0
        self.held_count = 0
        self.held_size_bytes = 0
        self.held_durable_count = 0
        self.held_durable_size_bytes = 0
        self.read_count = 0
        self.scheduled_size_bytes = 0
        self.scheduled_durable_count = 0
        self.scheduled_durable_size_bytes = 0

    def lose(self, count: int, reason: str, *, replaced: bool) -> None:
        """New messages were dropped on arrival: others replaced them, or they went for this reason."""
        self.added += count
        if replaced:
            self.replaced += count
        else:
            self.kill(count, reason)

    def kill(self, count: int, reason: str) -> None:
        """So many messages were removed for this reason (``core/order/entry.py``)."""
        self.killed += count
        if self.killed_by is None:
            self.killed_by = {}
        self.killed_by[reason] = self.killed_by.get(reason, 0) + count

    def leave_delivery_run(self, messages: list[Message]) -> None:
        """Messages were settled together."""
        count, size_bytes, durable_count, durable_size_bytes = _measured(messages)
        self.held_count -= count
        self.held_size_bytes -= size_bytes
        self.held_durable_count -= durable_count
        self.held_durable_size_bytes -= durable_size_bytes

    def leave_delivery(self, message: Message) -> None:
        """A message came back from the consumer that was to settle it."""
        self.returned += 1
        size = message.size_bytes
        self.held_count -= 1
        self.held_size_bytes -= size
        if message.head.persistent:
            self.held_durable_count -= 1
            self.held_durable_size_bytes -= size

    def enter_scheduled(self, message: Message) -> None:
        """A message was put aside until it is due."""
        size = message.size_bytes
        self.scheduled_size_bytes += size
        if message.head.persistent:
            self.scheduled_durable_count += 1
            self.scheduled_durable_size_bytes += size

    def leave_scheduled(self, message: Message) -> None:
        """A scheduled message is due, or went."""
        size = message.size_bytes
        self.scheduled_size_bytes -= size
        if message.head.persistent:
            self.scheduled_durable_count -= 1
            self.scheduled_durable_size_bytes -= size


class DeletedQueueCounters:
    """Counters of deleted queues, so that the sums over all queues only grow."""

    __slots__ = ("acknowledged", "added")

    def __init__(self) -> None:
        self.added = 0
        self.acknowledged = 0

    def add(self, counters: Counters) -> None:
        """A queue with these counts goes."""
        self.added += counters.added
        self.acknowledged += counters.acknowledged


def _measured(messages: list[Message]) -> tuple[int, int, int, int]:
    """Count and bytes of messages, then of the persistent ones among them. It avoids a call for each message: this is
    the hot path of a consumer that acknowledges.
    """
    size_bytes = durable_count = durable_size_bytes = 0
    for message in messages:
        head = message.head
        size = head.size_bytes + len(message.body)
        size_bytes += size
        if head.persistent:
            durable_count += 1
            durable_size_bytes += size
    return len(messages), size_bytes, durable_count, durable_size_bytes


# ---- paged contents --------------------------------------------------------------------------------------------------
#
# What a queue has in pages, and the counters for it: the paged part of its contents.


_NO_BACKLOGS: Final[dict[int, Backlog]] = {}
"""Most queues never need a dict of their own, and there are many queues."""


@final
class PagedContents:
    """One queue's backlogs. It counts messages that come into pages, leave them for memory, and are gone."""

    __slots__ = ("_host", "_reference", "_counters", "backlogs")

    def __init__(self, reference: QueueReference, host: QueueHost, counters: Counters) -> None:
        self._reference = reference
        self._host = host
        self._counters = counters
        self.backlogs: dict[int, Backlog] = _NO_BACKLOGS
        """Messages in pages and not in memory, by stream. A queue on a wildcard address may have several streams."""

    @property
    def count(self) -> int:
        """Messages in pages and not in memory."""
        return sum(backlog.count for backlog in self.backlogs.values()) if self.backlogs else 0

    @property
    def size_bytes(self) -> int:
        """Encoded size, in bytes, of messages in pages and not in memory."""
        return sum(backlog.size_bytes for backlog in self.backlogs.values()) if self.backlogs else 0

    def begin(self, backlog: Backlog) -> None:
        """The queue may have messages in the pages of this backlog's stream from now on."""
        if not self.backlogs:
            self.backlogs = {}
        self.backlogs[backlog.stream.number] = backlog

    def end(self, number: int) -> None:
        """Paging has ended in a stream."""
        del self.backlogs[number]

    # ---- into pages, and out of them -------------------------------------------------------------

    def arrive(self, number: int, messages: list[Message], size_bytes: int) -> None:
        """Count new messages of ``size_bytes`` together that went to the pages of a stream."""
        durable_sizes = [message.size_bytes for message in messages if message.head.persistent]
        self._add(self.backlogs[number], len(messages), size_bytes, len(durable_sizes), sum(durable_sizes))

    def restore(self, backlog: Backlog, share: RestoredShare) -> None:
        """After a restart: count the queue's share of a page."""
        count, size_bytes = share.left
        self._add(backlog, count, size_bytes, count, size_bytes)
        backlog.restore(share.page, share.settled, share.attempts)

    def _add(self, backlog: Backlog, count: int, size_bytes: int, durable_count: int, durable_size_bytes: int) -> None:
        counters = self._counters
        counters.added += count
        counters.size_bytes += size_bytes
        counters.durable_count += durable_count
        counters.durable_size_bytes += durable_size_bytes
        backlog.add(count, size_bytes, durable_count, durable_size_bytes)

    def fetch(self, backlog: Backlog, message: PagedMessage) -> None:
        """The queue takes a message from a page into memory."""
        backlog.take(message)
        self._correct(backlog)
        if not message.refs:
            message.page.resident[message.place] = message
        keep(message)

    def came_back(self, message: Message) -> None:
        """A message is ready again. If it is from a page, it may stand behind some that were not read yet."""
        if isinstance(message, PagedMessage):
            self.backlogs[message.page.stream].came_back(message)

    def is_newer(self, known: Entry, entry: Entry) -> bool:
        """Did a known entry arrive after one that was read from a page? With a shared order the sequences tell, in one
        stream the places. Otherwise the message ids do: sequences then only tell when an entry was read.
        """
        message, other = entry.message, known.message
        assert isinstance(message, PagedMessage)
        if self.backlogs[message.page.stream].shared_order:
            return known.sequence > entry.sequence
        if isinstance(other, PagedMessage) and other.page.stream == message.page.stream:
            return other.place > message.place
        return other.id > message.id

    # ---- gone ------------------------------------------------------------------------------------

    def record(self, messages: list[PagedMessage], reason: str, by: Actor | None) -> None:
        """Write down that messages which were fetched from pages are settled, for ``reason``. ``forget`` follows."""
        reference = self._reference
        if not reference.deleted:
            for number, group in _by_stream(messages).items():
                self.backlogs[number].stream.record_settled(reference, group, reason, by)
            return
        durable: list[Message] = [message for message in messages if message.head.persistent]
        if reference.durable and durable:  # its pages are forgotten, but the log still says how messages ended
            self._host.log.settled(reference.id, durable, reason, by)

    def forget(self, messages: list[PagedMessage]) -> None:
        """Forget messages that were fetched from pages: they are settled."""
        for number, group in _by_stream(messages).items():
            backlog = self.backlogs[number]
            for message in group:
                del backlog.in_memory[message.place]
            if not self._reference.deleted:
                backlog.stream.settle(self._reference, group)

    def kill(self, backlog: Backlog, reason: str) -> None:
        """Remove everything in the pages of one stream that is not in memory, for ``reason``."""
        counters = self._counters
        held = list(backlog.in_memory.values())
        backlog.stream.record_purged(self._reference, held, reason)
        counters.kill(backlog.count, reason)
        counters.size_bytes -= backlog.size_bytes
        counters.durable_count -= backlog.durable_count
        counters.durable_size_bytes -= backlog.durable_size_bytes
        backlog.drop_all()
        backlog.stream.purge(self._reference, held)

    def write_off(self, backlog: Backlog, pages: list[Page]) -> None:
        """Kill what damaged pages, read to their end, did not give."""
        for page in pages:
            there = [message for message in backlog.in_memory.values() if message.page is page]
            lost = backlog.stream.purge_page(self._reference, page, there, DAMAGED)
            if lost > 0:
                self._counters.kill(lost, DAMAGED)
                backlog.count -= lost
        self._correct(backlog)

    def _correct(self, backlog: Backlog) -> None:
        """Correct the sizes when nothing is left in pages. What they still count are damaged messages that were lost;
        nobody knows how large each was.
        """
        if not backlog.count:
            counters = self._counters
            counters.size_bytes -= backlog.size_bytes
            counters.durable_count -= backlog.durable_count
            counters.durable_size_bytes -= backlog.durable_size_bytes
            backlog.size_bytes = backlog.durable_count = backlog.durable_size_bytes = 0


def _by_stream(messages: list[PagedMessage]) -> dict[int, list[PagedMessage]]:
    """The messages by the number of their stream."""
    by_stream: dict[int, list[PagedMessage]] = {}
    for message in messages:
        by_stream.setdefault(message.page.stream, []).append(message)
    return by_stream


# ---- expiry watch ----------------------------------------------------------------------------------------------------
#
# When to look at which place for an expired message.


_VOID_MIN: Final = 1024
_LOOKS: Final = 4
"""How many watched messages each new one makes the queue check, once more than ``_VOID_MIN`` of them, and more than are
on the queue, are gone.
"""

EXPIRE_UNITS: Final = 12
"""The cost of an expired message, with its copy for another address. The copy is made in the same turn, so no crash
separates the two.
"""


@final
class ExpiryWatch:
    """Places of one queue where a message expires. It holds no entry: a message acknowledged long before its expiry
    must not stay in memory until then.
    """

    __slots__ = ("_aside", "_pending", "_host", "_looked_at", "_order", "_queue_id", "_watched", "lifetime")

    def __init__(
        self,
        queue_id: int,
        host: QueueHost,
        order: Order,
        lifetime: Lifetime | None,
        aside: dict[int, Entry],
        pending: PendingMessages | None = None,
    ) -> None:
        self._queue_id = queue_id
        self._host = host
        self._order = order
        self._aside = aside
        """Entries put aside, by message id."""
        self._pending = pending
        """Entries that are not active."""
        self.lifetime = lifetime
        """The queue's own bounds on how long messages live; None without any."""
        self._watched: list[tuple[int, int, int, int]] = []
        """(epoch ms, level, sequence, message id), as a heap."""
        self._looked_at = 0
        """Where the search for watched messages that are gone goes on."""

    def __len__(self) -> int:
        return len(self._watched)

    def expires_ms(self, message: Message) -> int:
        """When the message expires on this queue, in epoch ms; 0: never."""
        return message.expires_ms if self.lifetime is None else self.lifetime.expires_ms(message)

    @property
    def next_ms(self) -> int:
        """When the next watched message expires, in epoch ms; 0: never."""
        return self._watched[0][0] if self._watched else 0

    def add(self, entry: Entry, message_count: int) -> None:
        """Watch an entry that has its place and expires. ``message_count`` is the number of messages on the queue."""
        message = entry.message
        watched = self._watched
        expires_ms = self.expires_ms(message)
        if self.lifetime is not None and not (watched and watched[0][0] <= expires_ms):
            self._host.timers.alarms.set_by(self._queue_id, expires_ms)
        heappush(watched, (expires_ms, self._order.level_of(message), entry.sequence, message.id))
        if len(watched) > 2 * message_count + _VOID_MIN:
            self._looked_at = drop_void(watched, self._looked_at, _LOOKS, self._is_void)

    def _is_void(self, watched: tuple[int, int, int, int]) -> bool:
        """Is a watched message gone? It is here while it is ready, put aside, or not active. One that a consumer holds
        is watched again when it comes back.
        """
        _, level, sequence, message_id = watched
        entry = self._order.at(level, sequence)
        if entry is None and self._pending is not None:
            entry = self._pending.at(sequence)
        return (entry is None or entry.message.id != message_id) and message_id not in self._aside

    def count_outlived(self, now_ms: int) -> int:
        """How many watched messages the queue's own bounds have expired by ``now_ms``, although their own date has
        not come.
        """
        count = 0
        for expires_ms, level, sequence, message_id in self._watched:
            if self.lifetime is None or expires_ms > now_ms:
                continue
            entry = self._order.at(level, sequence) or self._aside.get(message_id)
            if entry is None and self._pending is not None:
                entry = self._pending.at(sequence)
            if entry is not None and entry.message.id == message_id and not 0 < entry.message.expires_ms <= now_ms:
                count += 1
        return count

    def pop(self, now_ms: int) -> tuple[int, int, int] | None:
        """Where the next expired message was, as (level, sequence, message id). None when none expires by
        ``now_ms``.
        """
        watched = self._watched
        if not watched or watched[0][0] > now_ms:
            return None
        _, level, sequence, message_id = heappop(watched)
        return level, sequence, message_id

    def set_alarm(self) -> None:
        """Set an alarm for the next expiry, on a queue with its own bounds on time."""
        if self._watched and self.lifetime is not None:
            self._host.timers.alarms.set_by(self._queue_id, self._watched[0][0])

    def forget(self, count_max: int) -> int:
        """Nothing that could expire is left: forget up to ``count_max`` watched places. Returns how many."""
        count = min(count_max, len(self._watched))
        del self._watched[len(self._watched) - count :]  # the rest of a heap is a heap
        return count


# ---- contents --------------------------------------------------------------------------------------------------------
#
# The contents of a queue: ready entries in their order, those put aside, the counters, and what expires when. Only
# this part places and removes entries, and only it and its paged part move the counters, what a queue keeps of a
# message, and what is watched for expiry. It decides nothing about consumers and wakes nobody; other parts do that
# when a verb ends.


_NOTHING_HELD: Final[set[int]] = set()
"""Most queues never need a set of their own, and there are many queues."""


@final
class Contents:
    """Entries of one queue, in every state. ``Counters`` says what the counts mean."""

    __slots__ = (
        "_grouping", "_host", "_picked_bytes", "_reference", "ages", "barrier_is_out", "pending", "deferred_acks",
        "expiry", "has_left", "held_back", "holds", "is_in_log_order", "last_values", "leases", "order", "paged",
        "picked_count", "scheduled", "counters", "delivery_attempts", "scheduled_dates", "was_used",
    )  # fmt: skip

    def __init__(
        self,
        reference: QueueReference,
        host: QueueHost,
        order: Order,
        grouping: Grouping,
        *,
        last_values: LastValues | None = None,
        delivery_attempts: DeliveryAttempts | None = None,
        leases: Leases | None = None,
        pending: PendingMessages | None = None,
        deferred_acks: DeferredAcks | None = None,
    ) -> None:
        rules = reference.rules
        self._reference = reference
        self._host = host
        self._grouping = grouping
        self.order = order
        """Ready entries."""
        self.pending = pending
        """Messages that are not active yet; None when each is active when it comes."""
        self.barrier_is_out = False
        """Is a barrier on its way to consumers? It counts as in delivery, and nobody holds it."""
        self.last_values = last_values
        """The newest value of each key; None when the queue keeps every message."""
        self.delivery_attempts = delivery_attempts
        """Deliveries in vain; None when the queue does not count them."""
        self.leases = leases
        """Who holds what until when; None when consumers hold for as long as they are there, and nobody else may
        settle what they hold.
        """
        self.deferred_acks = deferred_acks
        """What clients have settled and is in pages; None where nobody settles by bookmark."""
        self.is_in_log_order = True
        """Did messages arrive in the order of their bookmarks? After a restart some may not."""
        self.holds = rules.holds
        self.ages = None if rules.alerts is None else rules.alerts.ages
        self.counters = Counters()
        self.scheduled: dict[int, Entry] = {}
        """Entries that wait for their time, by message id."""
        self.scheduled_dates = ScheduledDates()
        self.held_back: set[int] = set() if rules.holds or pending is not None else _NOTHING_HELD
        """Ids of scheduled messages that have taken their place already and return to it."""
        self.paged = PagedContents(reference, host, self.counters)
        """Messages in pages and not in memory."""
        self.picked_count = 0
        """Messages picked for consumers that settle on send and not written yet. Counted only on a queue with a depth
        limit, or with messages that are not active.
        """
        self._picked_bytes = 0
        """Their encoded size, in bytes."""
        self.has_left = False
        """Has something left since ``AfterRemoval`` looked last?"""
        self.was_used = False
        """Has a consumer left, or a message been settled? Until then auto-delete spares the queue
        (``auto-delete-queues-skip-usage-check`` changes that).
        """
        self.expiry = ExpiryWatch(reference.id, host, order, rules.lifetime, self.scheduled, pending)

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
        return self.order.count if self.pending is None else self.order.count + self.pending.count

    @property
    def active_count(self) -> int:
        """Active messages: ready, picked, in delivery, or waiting for another attempt. One that is scheduled is active
        when it is due.
        """
        out = self.counters.held_count + self.picked_count
        return self.order.count + out + len(self.scheduled) - len(self.held_back)

    @property
    def has_more(self) -> bool:
        """May there be something for a consumer?"""
        return self.order.count > 0 or self.paged.count > 0 or (self.pending is not None and self.pending.count > 0)

    @property
    def delivering_count(self) -> int:
        """Messages sent to a consumer and not settled."""
        return self.counters.held_count + self.counters.read_count

    @property
    def has_held(self) -> bool:
        """Does a consumer, or a transaction, hold a message?"""
        return self.counters.held_count > self.barrier_is_out

    @property
    def size_bytes(self) -> int:
        """Encoded size of the queue, in bytes, without messages picked for consumers that settle on send."""
        return self.counters.size_bytes - self._picked_bytes

    @property
    def memory_count(self) -> int:
        """Messages in memory: ready, not active, in delivery or scheduled."""
        count = self.order.count + self.counters.held_count + len(self.scheduled)
        return count if self.pending is None else count + self.pending.count

    @property
    def memory_bytes(self) -> int:
        """Encoded size, in bytes, of messages in memory."""
        return self.size_bytes - self.paged.size_bytes

    def oldest_ms(self) -> int:
        """When the oldest of the messages arrived that are ready or not active, in epoch ms; 0: there is none. See
        ``Order.oldest_ms``.
        """
        oldest_ms = self.order.oldest_ms()
        entry = None if self.pending is None else self.pending.first()
        if entry is not None and not 0 < oldest_ms <= entry.message.timestamp_ms:
            return entry.message.timestamp_ms
        return oldest_ms

    # ---- new messages ----------------------------------------------------------------------------

    def count_added(self, entries: list[Entry], size_bytes: int) -> bool:
        """Count new messages, of ``size_bytes`` together. Returns whether any of them expires."""
        counters = self.counters
        counters.added += len(entries)
        counters.size_bytes += size_bytes
        expires = self.expiry.lifetime is not None
        for entry in entries:
            message = entry.message
            message.refs += 1
            head = message.head
            if head.persistent:
                counters.durable_count += 1
                counters.durable_size_bytes += head.size_bytes + len(message.body)
            if message.expires_ms:
                expires = True
        if self.ages is not None:
            self.ages.add([entry.message for entry in entries])
        return expires

    def count_restored(self, entries: Sequence[Entry]) -> None:
        """Count persistent messages that a restart found, in their order."""
        counters = self.counters
        lsns = [entry.message.lsn for entry in entries]
        self.is_in_log_order = self.is_in_log_order and lsns == sorted(lsns)
        counters.added += len(entries)
        counters.durable_count += len(entries)
        for entry in entries:
            message = entry.message
            size_bytes = message.head.size_bytes + len(message.body)
            counters.size_bytes += size_bytes
            counters.durable_size_bytes += size_bytes
            message.refs += 1
        if self.ages is not None:
            self.ages.add([entry.message for entry in entries])

    def count_lost(self, messages: list[Message], reason: str, *, replaced: bool = False) -> None:
        """Count new messages that the queue drops on arrival, and settle the durable ones for ``reason``."""
        if self._host.outcomes:
            note_dropped(self._host.outcomes, messages, self._reference.name, durable=self._reference.durable)
        self.counters.lose(len(messages), reason, replaced=replaced)
        durable = [message for message in messages if message.head.persistent]
        if durable and self._reference.durable:
            self._host.log.settled(self._reference.id, durable, reason)

    def pass_through(self, count: int) -> None:
        """Count new messages that go straight to a consumer that settles on send."""
        self.counters.added += count
        self.counters.acknowledged += count

    def append_expiring(self, entries: list[Entry]) -> None:
        """Append entries, some of which may expire, or all of which are not active yet."""
        order, pending = self.order, self.pending
        for entry in entries:
            message = entry.message
            if pending is None:
                order.extend([entry])
            else:
                entry.sequence = order.take_sequence(message)
                pending.add(entry)
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
        self.hold_back(entry, due_ms)

    @property
    def standing_count(self) -> int:
        """Entries that have their place on the queue: ready ones, and those that are not active."""
        return self.order.count + (0 if self.pending is None else self.pending.count)

    # ---- not active ------------------------------------------------------------------------------

    def activate(self, entry: Entry) -> None:
        """The first message behind becomes active: it goes to its place, unless it waits for its time."""
        pending = self.pending
        assert pending is not None
        pending.remove(entry)
        if self.is_aside(entry):
            pending.aside_count -= 1
        else:
            self.order.restore(entry, fresh=True)

    def take_from_pending(self, entry: Entry) -> None:
        """Take out a message that is not active. Its end follows."""
        pending = self.pending
        assert pending is not None
        if self.is_aside(entry):
            self.take_from_aside(entry)
        pending.remove(entry)

    def send_out(self, entry: Entry) -> None:
        """A barrier goes to consumers: it counts as in delivery until it was written to all."""
        self.take_from_pending(entry)
        self.deliver(entry.message)
        self.barrier_is_out = True

    def end_barrier(self, entry: Entry) -> None:
        """A barrier was written to all: it is done."""
        self.acknowledge_held([entry.message], None)
        self.barrier_is_out = False

    def take_back_pending(self, entry: Entry) -> None:
        """A barrier that went out was written to nobody: it is the first one behind again."""
        self.barrier_is_out = False
        self.counters.leave_delivery(entry.message)
        assert self.pending is not None
        self.pending.add(entry)
        if self.expires_ms(entry.message):
            self.expiry.add(entry, self.message_count)

    # ---- places ----------------------------------------------------------------------------------

    def place(self, entry: Entry) -> None:
        """Put an entry that was read from a page in its place."""
        if self.pending is None:
            self.order.place(entry)
        else:
            self.order.reserve(entry.sequence + 1)
            self.pending.add(entry)
        if self.expires_ms(entry.message):
            self.expiry.add(entry, self.message_count)

    def put_back(self, entry: Entry) -> None:
        """Put an entry back in its own place."""
        self.counters.returned += 1
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
        self.counters.returned += 1
        self.counters.acknowledged -= 1
        self.counters.size_bytes += message.size_bytes
        keep(message)
        self.put_at_head(Entry(message), fresh=True)

    # ---- aside -----------------------------------------------------------------------------------

    def keeps_place(self, entry: Entry) -> bool:
        """Does an entry that is put aside go back to its own place when it is due, and not to the head?"""
        return self.pending is not None or self._grouping.keeps_place(entry)

    def hold_back(self, entry: Entry, due_ms: int) -> None:
        """Put aside an entry that has taken its place already."""
        if self.pending is not None:
            self.order.reserve(entry.sequence + 1)
            self.pending.add(entry)
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
        if self.pending is not None and self.pending.has(entry):
            self.pending.aside_count += 1
        self.counters.enter_scheduled(message)
        self._grouping.put_aside(entry)
        self.scheduled_dates.note(message.id, due_ms)

    def _wait(self, entry: Entry, due_ms: int, *, is_valid_date: bool) -> None:
        """Have a timer wake the queue for an entry that is put aside."""
        host, queue_id, message_id = self._host, self._reference.id, entry.message.id
        is_by_date = is_valid_date or is_date(entry)
        when_ms = due_ms if is_by_date else host.clock.steady_ms(due_ms)
        host.timers.schedule(queue_id, self.scheduled, message_id, when_ms, is_date=is_by_date)

    def wait_again(self, entries: Sequence[Entry], due_ms: int) -> None:
        """Those of the entries that are still put aside are due again at ``due_ms``: a step with them has failed."""
        timers, queue_id, steady_ms = self._host.timers, self._reference.id, self._host.clock.steady_ms(due_ms)
        for entry in entries:
            if self.is_aside(entry):
                timers.schedule(queue_id, self.scheduled, entry.message.id, steady_ms, is_date=False)

    def is_aside(self, entry: Entry) -> bool:
        """Is this very entry put aside?"""
        return self.scheduled.get(entry.message.id) is entry

    def take_from_aside(self, entry: Entry) -> None:
        """Remove an entry from those put aside: it is ready, or gone."""
        message = entry.message
        del self.scheduled[message.id]
        self.scheduled_dates.forget(message.id)
        self.held_back.discard(message.id)
        if self.pending is not None and self.pending.has(entry):
            self.pending.aside_count -= 1
        self.counters.leave_scheduled(message)
        self._grouping.leave_aside(entry)

    def end_waiting(self, entry: Entry) -> None:
        """Take out an entry that is put aside, wherever its place is. Its end follows."""
        if self.pending is not None and self.pending.has(entry):
            self.take_from_pending(entry)
        else:
            self.take_from_aside(entry)

    def release_scheduled(self, entry: Entry) -> None:
        """The entry's time has come. It goes to the place that it took, and readers that have passed the place see
        it. One that is not active has its place already.
        """
        self.take_from_aside(entry)
        if self.pending is not None and self.pending.has(entry):
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
                self.give_up(older, SUPERSEDED)
                if is_aside:
                    self.take_from_aside(older)
                else:
                    self.order.remove(older, older.sequence)
        values.enter(entry)

    def enter_value_of_page(self, entry: Entry) -> bool:
        """As ``enter_value``, for a message read from a page, perhaps not in order. Returns False, and removes the
        message, when a newer value is known.
        """
        if self.last_values is None:
            return True
        known = self.last_values.older(entry.message)
        if known is not None and self.paged.is_newer(known, entry):
            self.give_up(entry, SUPERSEDED)
            return False
        self.enter_value(entry)
        return True

    def is_outdated(self, entry: Entry) -> bool:
        """Has a newer value replaced this one while a consumer held it? Then it must not come back."""
        return self.last_values is not None and self.last_values.is_outdated(entry)

    # ---- in delivery -----------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """Count a message that goes to a consumer, which settles it later. It is out of the order."""
        counters, size_bytes = self.counters, message.size_bytes
        counters.held_count += 1
        counters.held_size_bytes += size_bytes
        if message.head.persistent:
            counters.held_durable_count += 1
            counters.held_durable_size_bytes += size_bytes

    def deliver_run(self, messages: list[Message]) -> None:
        """As ``deliver``, for several messages."""
        counters = self.counters
        count, size_bytes, durable_count, durable_size_bytes = _measured(messages)
        counters.held_count += count
        counters.held_size_bytes += size_bytes
        counters.held_durable_count += durable_count
        counters.held_durable_size_bytes += durable_size_bytes

    def come_back(self, message: Message) -> None:
        """A message comes back from the consumer that was to settle it. ``put_back`` or its end follows."""
        self.counters.leave_delivery(message)
        if self.leases is not None:
            self.leases.end(message.id)

    def reclaim(self, entries: Sequence[Entry]) -> None:
        """Put back entries that a consumer has let go and that count as in delivery: settling them has failed."""
        for entry in entries:
            self.come_back(entry.message)
            self.put_back(entry)

    def show(self) -> None:
        """A message goes to a consumer that only reads it (non-destructive), and stays in the order."""
        self.counters.read_count += 1

    def has_shown(self, count: int) -> None:
        """Consumers are done with messages that they only read."""
        self.counters.read_count -= count

    def pick_run(self, count: int, size_bytes: int) -> None:
        """So many messages of ``size_bytes`` together were picked for a consumer that settles on send, on a queue where
        that matters: they are no part of its depth any more.
        """
        self.picked_count += count
        self._picked_bytes += size_bytes
        self.has_left = True

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
        self.counters.acknowledged += len(messages)

    def acknowledge_held(self, messages: list[Message], by: Actor | None) -> None:
        """A consumer acknowledged messages that were in delivery."""
        self.acknowledge(messages, by)
        self.counters.leave_delivery_run(messages)

    def kill_held(self, messages: list[Message], reason: str) -> None:
        """Remove messages that were in delivery, for ``reason``."""
        self.kill(messages, reason)
        self.counters.leave_delivery_run(messages)

    def kill(self, messages: list[Message], reason: str, by: Actor | None = None) -> None:
        """Remove messages that are out of the order, for ``reason``. They count as killed."""
        if messages:
            self._forget(messages, reason, by)
            self.was_used = True
            self.counters.kill(len(messages), reason)

    def expire(self, entries: list[Entry]) -> None:
        """Remove entries that are out of the order: they have expired."""
        if entries:
            self._host.copies.join()
            self._forget([entry.message for entry in entries], EXPIRED)
            self.was_used = True
            for entry in entries:
                self._host.copies.note_expired(self._reference, entry.message)
            self.counters.expired += len(entries)

    def send_again(self, entries: list[Entry], now_ms: int) -> None:
        """Remove entries that are put aside on the queue of schedules: they are due, and are to be sent, or have
        expired.
        """
        gone = [entry for entry in entries if 0 < entry.message.expires_ms <= now_ms]
        sent = [entry for entry in entries if not 0 < entry.message.expires_ms <= now_ms]
        self._host.copies.join()
        self.expire(gone)
        for entry in gone:
            self.end_waiting(entry)
        self.kill([entry.message for entry in sent], MOVED)
        for entry in sent:
            self.end_waiting(entry)
            self._host.copies.note_due(self._reference, entry.message)

    def expire_held(self, messages: list[Message], by: Actor | None) -> None:
        """A consumer had messages expire that were in delivery to it, whatever their date."""
        self._host.copies.join()
        self._forget(messages, EXPIRED, by)
        self.counters.leave_delivery_run(messages)
        self.was_used = True
        for message in messages:
            self._host.copies.note_forced(self._reference, message)
        self.counters.expired += len(messages)

    def give_up(self, entry: Entry, reason: str) -> None:
        """Remove an entry that is out of the order: another replaces it, as there are too many, or as its value is
        newer.
        """
        if self._host.outcomes:
            note_dropped(self._host.outcomes, [entry.message], self._reference.name, durable=self._reference.durable)
        self._forget([entry.message], reason)
        self.counters.replaced += 1

    def give_up_least(self) -> None:
        """Remove the least ready entry: there are too many."""
        least = self.order.pop_least()
        try:
            self.give_up(least, REPLACED)
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
        if paged is not None:
            self.paged.record(paged, reason, by)
        self.has_left = True
        counters = self.counters
        counters.size_bytes -= size_bytes
        counters.durable_count -= durable_count
        counters.durable_size_bytes -= durable_size_bytes
        if self.last_values is not None:
            self.last_values.forget(messages)
        if self.delivery_attempts is not None:
            self.delivery_attempts.forget(messages)
        if self.leases is not None:
            self.leases.forget(messages)
        if self.ages is not None:
            self.ages.remove(messages)
        release(messages)
        if paged is not None:  # a page may go now, of which nothing is in memory any more
            self.paged.forget(paged)

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
            entry = None if self.pending is None else self.pending.at(sequence)
            if entry is not None and entry.message.id == message_id:
                entry.sequence = sequence
                self.take_from_pending(entry)
                expired.append(entry)
            elif message_id in self.held_back:
                held = self.scheduled[message_id]
                self.take_from_aside(held)
                expired.append(held)
        return expired, looked

    def unwatch(self, count_max: int) -> int:
        """Nothing that could expire is left: forget up to ``count_max`` watched places. Returns how many."""
        return self.expiry.forget(count_max)
