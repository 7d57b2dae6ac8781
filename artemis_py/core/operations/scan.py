"""Goes through the messages of a queue, some at a time, from any place on; and filters those that an operator means."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from heapq import merge
from typing import Any, Final, NamedTuple, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.dead_letters import cause_of, comes_from
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import HIGHEST, LOWEST, Cursor, Point
from artemis_py.core.pages import Backlog, PageReader
from artemis_py.core.queue.depaging import READ_UNITS
from artemis_py.core.queue.messages import RUN_LENGTH
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Head, Message
from artemis_py.paged_messages import PagedMessage
from artemis_py.record_log import PagedEntry
from artemis_py.selector import Selector

# ---- filter ----------------------------------------------------------------------------------------------------------

_HEAD_UNITS: Final = 2
"""What it costs to look for a header."""
_PER_MESSAGE: Final = frozenset({"AMQTimestamp", "AMQExpiration", "AMQSize"})


@final
class MessageFilter:
    """Messages by their numbers; or those that a selector matches, and, of dead and expired ones, those that come from
    one queue or address (``origin``) or went for one ``cause``. What is not given chooses nothing out. A change
    ends when it is done with the first ``count_max`` of them (None: with all).
    """

    def __init__(
        self,
        selector: Selector | None = None,
        *,
        ids: Iterable[int] | None = None,
        origin: str | None = None,
        cause: str | None = None,
        count_max: int | None = None,
    ) -> None:
        self.count_max = count_max
        self.ids = None if ids is None else frozenset(ids)
        self._origin = origin
        self._cause = cause
        self._program = None if selector is None else selector.program
        self._head_only = selector is None or not (selector.identifiers & _PER_MESSAGE)
        self._head: Head | None = None
        self._last_match = False

    @property
    def is_all(self) -> bool:
        """Does it mean every message?"""
        return self.ids is None and self._program is None and self._origin is None and self._cause is None

    def matches(self, message: Message, budget: Budget) -> bool:
        """Is the message meant? The answer for a header block is kept for the next message with the same one."""
        if self.ids is not None:
            return message.id in self.ids
        head = message.head
        if self._head_only and head is self._head:
            return self._last_match
        self._head = head
        self._last_match = self._is_meant(message, head, budget)
        return self._last_match

    def _is_meant(self, message: Message, head: Head, budget: Budget) -> bool:
        if self._origin is not None:
            budget.spend(_HEAD_UNITS)
            if not comes_from(head, self._origin):
                return False
        if self._cause is not None:
            budget.spend(_HEAD_UNITS)
            if cause_of(head) != self._cause:
                return False
        program = self._program
        if program is None:
            return True
        budget.spend(program.units + (program.units_per_kb * head.size_bytes >> 10))
        return program.condition(message.lookup) is True


# ---- numbers ---------------------------------------------------------------------------------------------------------
#
# A set of the numbers of messages. Numbers that are close together take little memory.


_SHIFT: Final = 6
_MASK: Final = (1 << _SHIFT) - 1


@final
class Numbers:
    """Numbers from 0 on: a bit for each, in words of 64."""

    __slots__ = ("_words",)

    def __init__(self) -> None:
        self._words: dict[int, int] = {}

    def add(self, number: int) -> bool:
        """Add a number; False if it was there."""
        word, bit = number >> _SHIFT, 1 << (number & _MASK)
        bits = self._words.get(word, 0)
        if bits & bit:
            return False
        self._words[word] = bits | bit
        return True


# ---- cursor ----------------------------------------------------------------------------------------------------------
#
# How far a look at a queue has come, so that another look goes on there. It holds nothing of the queue.


class ScanCursor(NamedTuple):
    """The place behind the message that was shown last."""

    last_id: int
    """Messages with higher numbers came after the beginning."""
    stage: int
    """What it was looking at; see ``QueueScan``."""
    at: tuple[int, ...]
    """How far it was in that, as the stage tells it."""
    order: Point
    """How far it was among ready messages; empty: not begun."""
    limit: int
    """From this sequence on, ready messages come from pages, and have their turn there."""
    passed: tuple[int, int]
    """A stream of pages, and the first place there that was not passed, where sequences do not tell the places."""

    @staticmethod
    def of(values: list[Any]) -> ScanCursor:
        """The cursor that these values (of ``list(scan_cursor)``, through JSON) mean."""
        last_id, stage, at, order, limit, passed = values
        return ScanCursor(last_id, stage, tuple(at), tuple(order), limit, (passed[0], passed[1]))


# ---- scan ------------------------------------------------------------------------------------------------------------
#
# One look at everything on a queue, in its order, a few messages at a time. Nothing is taken out, and nobody waits
# for it: between two looks the queue goes on. A message that was there at the beginning, and that no consumer takes
# meanwhile, is seen exactly once; one that a consumer takes is seen once or not at all. One that comes later is not
# seen. Messages in pages are read for the scan alone and stay in their pages. A scan may end anywhere, and another
# one go on from its ``scan_cursor``, whatever was removed meanwhile: each stage is ordered by a key that a message
# keeps while it stays in its state, and the same key tells where a message from a page stands when it is read into
# memory. To go on costs the same at any depth, but for what one consumer holds and what waits for its time: these are
# found by going through them. A message whose time comes between two scans may be seen twice, or not at all.


DELIVERING: Final = "delivering"
READY: Final = "ready"
BEHIND: Final = "behind"
PAGED: Final = "paged"
SCHEDULED: Final = "scheduled"
STATES: Final = (DELIVERING, READY, BEHIND, PAGED, SCHEDULED)
"""In which a message on a queue can be, in the order in which a scan looks: with a consumer, waiting for one, behind a
barrier or a target depth, in a page and not in memory, waiting for its time.
"""
UNHELD: Final = (READY, BEHIND, PAGED, SCHEDULED)
"""The states of messages that no consumer has."""
_LOOK_UNITS: Final = 2
_PAGE_LOOKS: Final = 64
_SORTED_PER_STEP: Final = 4096
_SORTED_PER_UNIT: Final = 64
_HELD, _READY, _PAGED, _BEHIND, _ASIDE, _REST = range(6)
"""The stages of a scan, in their order. What became ready behind its back comes last."""


class LocatedMessage(NamedTuple):
    """A message where it is now. ``holder`` has it in delivery; ``backlog`` and ``found`` say where it is in a page."""

    state: str
    entry: Entry
    holder: Consumer | None = None
    backlog: Backlog | None = None
    found: PagedEntry | None = None

    @property
    def message(self) -> Message:
        """The message."""
        return self.entry.message


_Look = LocatedMessage | None
"""None: there is something to wait for."""


@final
class QueueScan:
    """Looks at the messages of one queue that are in one of ``states``. ``ids``: only these are wanted, so those that
    can be found by their number are found at once. ``start`` is the cursor of a scan with the same states that ended;
    it raises ValueError if the queue's order is another one since.

    Whoever begins it must ``close`` it.
    """

    def __init__(
        self,
        queue: Queue,
        states: Collection[str] = STATES,
        ids: Collection[int] = (),
        start: ScanCursor | None = None,
    ) -> None:
        self.looked_count = 0
        """How many messages it has shown."""
        self.is_done = False
        contents = queue.contents
        self._queue = queue
        self._states = states
        self._ids = ids
        self._shown = Numbers()
        self._readers: dict[int, PageReader] = {}
        self._ends: dict[int, int] = {
            number: backlog.stream.next_place for number, backlog in contents.paged.backlogs.items()
        }
        """The first place behind what was in each stream at the beginning."""
        self._is_resumed = start is not None
        if start is None:
            start = ScanCursor(queue.host.message_id, _HELD, (), (), self._limit_now(), (0, 0))
        self._last_id = start.last_id
        self._stage = start.stage
        self._at = start.at
        self._limit = start.limit
        self._passed = start.passed
        self._cursor: Cursor | None = None
        if READY in states or PAGED in states:
            self._cursor = contents.order.open_cursor(start.order or None)
            self._cursor.looks_back = not self._is_resumed  # what stands behind it was seen by an earlier scan
        self._budget = Budget()
        self._looks = self._all()

    def _limit_now(self) -> int:
        """The sequence of the first message that is still in a page, if sequences tell the order of pages."""
        if PAGED in self._states:
            for backlog in self._queue.contents.paged.backlogs.values():
                if backlog.shared_order:
                    return backlog.sequence_at(backlog.reader.place)
        return HIGHEST

    @property
    def scan_cursor(self) -> ScanCursor:
        """The place behind the message that was shown last."""
        order = () if self._cursor is None else self._cursor.point
        return ScanCursor(self._last_id, self._stage, self._at, order, self._limit, self._passed)

    def next(self, budget: Budget) -> LocatedMessage | None:
        """The next message. None when there is none (``is_done``), when it must be read first (``is_waiting``), or when
        the budget is spent.
        """
        self._budget = budget
        last_id = self._last_id
        while not self.is_done:
            found = next(self._looks, self)
            budget.spend(_LOOK_UNITS)
            if found is self:
                self.close()
            elif found is None:
                if self.is_waiting or budget.is_spent:
                    return None
            elif (
                isinstance(found, LocatedMessage)
                and found.entry.message.id <= last_id
                and self._shown.add(found.message.id)
            ):
                self.looked_count += 1
                return found
            elif budget.is_spent:
                return None
        return None

    def close(self) -> None:
        """Look no further."""
        self.is_done = True
        self._looks.close()
        if self._cursor is not None:
            self._queue.contents.order.close_cursor(self._cursor)
            self._cursor = None
        self._readers.clear()

    @property
    def is_waiting(self) -> bool:
        """Does it wait for the disk?"""
        return any(reader.waits for reader in self._readers.values())

    # ---- in order --------------------------------------------------------------------------------

    def _all(self) -> Generator[_Look, None, None]:
        states, cursor = self._states, self._cursor
        if self._ids:
            yield from self._by_number()
        elif DELIVERING in states and self._reaches(_HELD):
            yield from self._held()
        if cursor is not None and self._reaches(_READY):
            yield from self._ready(cursor)
        if cursor is not None and PAGED in states and self._reaches(_PAGED):
            yield from self._in_pages(cursor)
        if BEHIND in states and self._reaches(_BEHIND):
            yield from self._pending(cursor)
        if SCHEDULED in states and not self._ids and self._reaches(_ASIDE):
            yield from self._aside()
        if cursor is not None and self._reaches(_REST):
            yield from self._ready(cursor)  # what has become ready, or came back, since it was looked at

    def _reaches(self, stage: int) -> bool:
        """Come to a stage, unless it was left before."""
        if self._stage > stage:
            return False
        if self._stage < stage:
            self._stage, self._at = stage, ()
        return True

    def _by_number(self) -> Generator[_Look, None, None]:
        """Those of the wanted messages that are put aside or with a consumer."""
        contents, states = self._queue.contents, self._states
        for message_id in self._ids:
            entry = contents.scheduled.get(message_id)
            if entry is not None and SCHEDULED in states:
                yield LocatedMessage(SCHEDULED, entry)
        if DELIVERING not in states:
            return
        for consumer in list(self._queue.distribution.consumers):
            if consumer.destructive and not consumer.settles:
                for message_id in self._ids:
                    entry = consumer.held.get(message_id)
                    if entry is not None:
                        yield LocatedMessage(DELIVERING, entry, consumer)
                yield None

    def _held(self) -> Generator[_Look, None, None]:
        """What consumers have: of one after the other, by number."""
        first, pending = self._at or (0, 0)
        for consumer in sorted(self._queue.distribution.consumers, key=_id):
            if consumer.id < first or not consumer.destructive or consumer.settles:
                continue  # what it has is on the queue as well, or gone
            numbers = yield from self._numbers_in(consumer.held, pending if consumer.id == first else 0)
            for number in numbers:
                entry = consumer.held.get(number)
                if entry is not None:
                    self._at = (consumer.id, number)
                    yield LocatedMessage(DELIVERING, entry, consumer)
            yield None

    def _numbers_in(self, held: Mapping[int, Entry], pending: int) -> Generator[None, None, Iterable[int]]:
        """The numbers above one, in order: sorted in parts, which are merged as far as somebody asks."""
        numbers = list(held)
        parts: list[list[int]] = []
        for start in range(0, len(numbers), _SORTED_PER_STEP):
            some = numbers[start : start + _SORTED_PER_STEP]
            parts.append(sorted(number for number in some if number > pending))
            self._budget.spend(len(some) // _SORTED_PER_UNIT)
            yield None
        return merge(*parts)

    def _pending(self, cursor: Cursor | None) -> Generator[_Look, None, None]:
        """What is not active yet. What becomes active before it was seen here is seen among the ready ones."""
        contents = self._queue.contents
        sequence = self._at[0] if self._at else LOWEST
        while contents.pending is not None:
            if cursor is not None:
                yield from self._ready(cursor)
            entry = contents.pending.next_from(sequence)
            if entry is None or entry.sequence >= self._limit:
                return
            sequence = entry.sequence + 1
            self._at = (sequence,)
            if cursor is not None:
                cursor.skip_to(sequence)
            yield None if contents.is_aside(entry) else LocatedMessage(BEHIND, entry)

    def _aside(self) -> Generator[_Look, None, None]:
        """What waits for its time: in the order in which it was put aside, and of a run by number."""
        contents = self._queue.contents
        first, pending = self._at or (0, 0)
        walk = contents.scheduled_dates.open_cursor(first)
        while ids := walk.take(RUN_LENGTH):
            self._budget.spend(len(ids) // _SORTED_PER_UNIT)
            for message_id in sorted(ids):
                entry = contents.scheduled.get(message_id)
                if entry is not None and (walk.run > first or message_id > pending):
                    self._at = (walk.run, message_id)
                    yield LocatedMessage(SCHEDULED, entry)

    # ---- ready, and in pages ---------------------------------------------------------------------

    def _ready(self, cursor: Cursor) -> Generator[_Look, None, None]:
        """What is ready, as far as it is not seen with the pages."""
        is_wanted = READY in self._states
        limit = self._limit if self._is_resumed or self._stage < _PAGED else HIGHEST
        while (entry := cursor.advance()) is not None:
            is_seen_elsewhere = entry.sequence >= limit or self._has_passed(entry.message)
            yield LocatedMessage(READY, entry) if is_wanted and not is_seen_elsewhere else None

    def _has_passed(self, message: Message) -> bool:
        return isinstance(message, PagedMessage) and (message.page.stream, message.place) < self._passed

    def _in_pages(self, cursor: Cursor) -> Generator[_Look, None, None]:
        """Everything that was in pages, of one stream after the other."""
        for number in sorted({*self._ends, *self._at[:1]}):
            if self._at and number < self._at[0]:
                continue
            self._at = self._at if self._at[:1] == (number,) else (number,)
            backlog = self._queue.contents.paged.backlogs.get(number)
            if backlog is not None and not backlog.shared_order:
                yield from self._paged_apart(backlog, cursor)
            else:
                yield from self._paged_in_order(number, backlog)

    def _paged_apart(self, backlog: Backlog, cursor: Cursor) -> Generator[_Look, None, None]:
        """What is in the pages of a stream whose places do not tell the order. What is read into memory meanwhile
        becomes the last one there, so the cursor sees it.
        """
        number = backlog.stream.number
        _, period, end, *point = self._at if len(self._at) > 1 else (0, backlog.period, self._ends[number])
        reader = self._reader_of(backlog, point)
        while self._is_there(backlog) and backlog.period == period:
            yield from self._ready(cursor)
            backlog.lead(reader, None, takes=True)
            place = reader.place
            found = self._look_ahead(backlog, reader)
            if found is None and (reader.waits or reader.place != place):
                yield None
                continue
            if found is None or found.message.place >= end:
                return
            self._passed = (number, found.message.place + 1)
            self._at = (number, period, end, *reader.point)
            yield LocatedMessage(PAGED, self._queue.pages.entry_of(backlog, found), None, backlog, found)

    def _paged_in_order(self, number: int, backlog: Backlog | None) -> Generator[_Look, None, None]:
        """What is in the pages of a stream whose places tell the order, and what was read into memory since the
        beginning: by sequence, wherever it is now.
        """
        _, period, end, sequence, *point = self._at if len(self._at) > 1 else self._beginning(number, backlog)
        reader = None
        if backlog is not None and backlog.period == period:
            reader = self._reader_of(backlog, point)
        while reader is not None and backlog is not None and self._is_there(backlog):
            backlog.lead(reader, None, takes=True)
            self._queue.contents.order.reserve(backlog.end_sequence)
            point = list(reader.point)
            found = self._look_ahead(backlog, reader)
            if found is None and (reader.waits or reader.place != point[2]):
                yield None
                continue
            if found is None or found.message.place >= end:
                break
            own = backlog.sequence(found.message)
            yield from self._in_memory(sequence, own, (number, period, end), point)
            sequence = own
            if backlog.has(found.message):
                sequence = own + 1
                self._at = (number, period, end, sequence, *reader.point)
                yield LocatedMessage(PAGED, self._queue.pages.entry_of(backlog, found), None, backlog, found)
        yield from self._in_memory(sequence, HIGHEST, (number, period, end), point)

    def _beginning(self, number: int, backlog: Backlog | None) -> tuple[int, ...]:
        return number, -1 if backlog is None else backlog.period, self._ends.get(number, 0), self._limit

    def _reader_of(self, backlog: Backlog, point: Sequence[int]) -> PageReader:
        """A reader for this scan, at a point where one was before, or where the queue itself reads."""
        reader = self._readers[backlog.stream.number] = backlog.lead(None, None, takes=True)
        if point:
            reader.go_to((point[0], point[1], point[2]))
        return reader

    def _is_there(self, backlog: Backlog) -> bool:
        return self._queue.contents.paged.backlogs.get(backlog.stream.number) is backlog

    def _look_ahead(self, backlog: Backlog, reader: PageReader) -> PagedEntry | None:
        looked = reader.looked
        found = backlog.next_for(reader, _PAGE_LOOKS)
        self._budget.spend((READ_UNITS - _LOOK_UNITS) * (reader.looked - looked))
        return found

    def _in_memory(
        self, sequence: int, end: int, where: tuple[int, int, int], point: Sequence[int]
    ) -> Generator[_Look, None, None]:
        """What stands in memory from one sequence to another. ``where`` and ``point`` tell where the reader is."""
        contents = self._queue.contents
        while True:
            entry, state = contents.order.next_from(sequence), READY
            inactive = None if contents.pending is None else contents.pending.next_from(sequence)
            if inactive is not None and (entry is None or inactive.sequence < entry.sequence):
                entry, state = inactive, BEHIND
            if entry is None or entry.sequence >= end:
                return
            sequence = entry.sequence + 1
            self._at = (*where, sequence, *point)
            is_wanted = state in self._states and not (state == BEHIND and contents.is_aside(entry))
            yield LocatedMessage(state, entry) if is_wanted else None


def _id(consumer: Consumer) -> int:
    return consumer.id
