"""One look at everything on a queue, in its order, a few messages at a time.

Nothing is taken out, and nobody waits for it: between two looks the queue goes on. A message that was there at the
beginning, and that no consumer takes meanwhile, is seen exactly once; one that a consumer takes is seen once or not at
all. One that comes later is not seen. Messages in pages are read for the round alone and stay in their pages.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import Final, NamedTuple, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.handling.numbers import Numbers
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import LOWEST, Cursor
from artemis_py.core.pages.backlog import Backlog
from artemis_py.core.pages.stream import PageReader
from artemis_py.core.queue.dates import RUN_LENGTH
from artemis_py.core.queue.page_reading import READ_UNITS
from artemis_py.core.queue.parts import QueueParts
from artemis_py.message import Message
from artemis_py.records import PagedEntry

DELIVERING: Final = "delivering"
READY: Final = "ready"
BEHIND: Final = "behind"
PAGED: Final = "paged"
SCHEDULED: Final = "scheduled"
STATES: Final = (DELIVERING, READY, BEHIND, PAGED, SCHEDULED)
"""In which a message on a queue can be, in the order in which a round looks: with a consumer, waiting for one, behind a
barrier or a target depth, in a page and not in memory, waiting for its time.
"""
UNHELD: Final = (READY, BEHIND, PAGED, SCHEDULED)
"""The states of messages that no consumer has."""
_LOOK_UNITS: Final = 2
_PAGE_LOOKS: Final = 64
_COPIED_PER_UNIT: Final = 128


class Sight(NamedTuple):
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


_Look = Sight | None
"""None: there is something to wait for."""


@final
class Round:
    """Looks at the messages of one queue that are in one of ``states``. ``ids``: only these are wanted, so those that
    can be found by their number are found at once.

    Whoever begins it must ``close`` it.
    """

    def __init__(self, parts: QueueParts, states: Collection[str] = STATES, ids: Collection[int] = ()) -> None:
        self.looked_count = 0
        """How many messages it has shown."""
        self.is_done = False
        self._parts = parts
        self._states = states
        self._ids = ids
        self._last_id = parts.host.message_id
        self._shown = Numbers()
        self._cursor: Cursor | None = None
        self._readers: dict[int, PageReader] = {}
        self._ends: dict[int, int] = {
            number: backlog.stream.next_place for number, backlog in parts.contents.paged.backlogs.items()
        }
        """The first place behind what was in each stream at the beginning."""
        self._budget = Budget()
        self._looks = self._all()

    def next(self, budget: Budget) -> Sight | None:
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
            elif isinstance(found, Sight) and found.entry.message.id <= last_id and self._shown.add(found.message.id):
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
            self._parts.contents.order.close_cursor(self._cursor)
            self._cursor = None
        self._readers.clear()

    @property
    def is_waiting(self) -> bool:
        """Does it wait for the disk?"""
        return any(reader.waits for reader in self._readers.values())

    # ---- in order --------------------------------------------------------------------------------

    def _all(self) -> Generator[_Look, None, None]:
        states = self._states
        if self._ids:
            yield from self._by_number()
        elif DELIVERING in states:
            yield from self._held()
        if READY in states or PAGED in states:
            yield from self._standing()
        if BEHIND in states:
            yield from self._behind()
        if SCHEDULED in states and not self._ids:
            yield from self._aside()
        if self._cursor is not None:
            yield from self._ready(self._cursor)  # what has become ready, or came back, since it was looked at

    def _by_number(self) -> Generator[_Look, None, None]:
        """Those of the wanted messages that are put aside or with a consumer."""
        contents, states = self._parts.contents, self._states
        for message_id in self._ids:
            entry = contents.scheduled.get(message_id)
            if entry is not None and SCHEDULED in states:
                yield Sight(SCHEDULED, entry)
        if DELIVERING not in states:
            return
        for consumer in list(self._parts.distribution.consumers):
            if consumer.destructive and not consumer.settles:
                for message_id in self._ids:
                    entry = consumer.held.get(message_id)
                    if entry is not None:
                        yield Sight(DELIVERING, entry, consumer)
                yield None

    def _held(self) -> Generator[_Look, None, None]:
        """What consumers have: in the order in which they got it."""
        for consumer in list(self._parts.distribution.consumers):
            if not consumer.destructive or consumer.settles:
                continue  # its messages are on the queue all the same, or gone
            entries = list(consumer.held.values())
            self._budget.spend(len(entries) // _COPIED_PER_UNIT)
            for entry in entries:
                if consumer.held.get(entry.message.id) is entry:
                    yield Sight(DELIVERING, entry, consumer)
            yield None

    def _behind(self) -> Generator[_Look, None, None]:
        contents = self._parts.contents
        sequence = LOWEST
        while contents.behind is not None:
            entry = contents.behind.next_from(sequence)
            if entry is None:
                return
            sequence = entry.sequence + 1
            yield None if contents.is_aside(entry) else Sight(BEHIND, entry)

    def _aside(self) -> Generator[_Look, None, None]:
        """What waits for its time: in the order in which it was put aside."""
        contents = self._parts.contents
        walk = contents.waits_until.walk()
        while ids := walk.take(RUN_LENGTH):
            self._budget.spend(len(ids) // _COPIED_PER_UNIT)
            for message_id in ids:
                entry = contents.scheduled.get(message_id)
                if entry is not None:
                    yield Sight(SCHEDULED, entry)

    # ---- ready, and in pages ---------------------------------------------------------------------

    def _standing(self) -> Generator[_Look, None, None]:
        """Everything ready, and behind it everything in pages. What is read ahead meanwhile is seen in one of the two
        places.
        """
        contents = self._parts.contents
        cursor = self._cursor = contents.order.open_cursor()
        yield from self._ready(cursor)
        if PAGED not in self._states:
            return
        for number in list(self._ends):
            yield from self._paged(number, cursor)

    def _ready(self, cursor: Cursor) -> Generator[_Look, None, None]:
        is_wanted = READY in self._states
        while (entry := cursor.advance()) is not None:
            yield Sight(READY, entry) if is_wanted else None

    def _paged(self, number: int, cursor: Cursor) -> Generator[_Look, None, None]:
        """What is in the pages of one stream. Where places tell the order, the cursor passes what was seen here."""
        contents = self._parts.contents
        backlog = contents.paged.backlogs.get(number)
        end = self._ends[number]
        while backlog is not None and contents.paged.backlogs.get(number) is backlog:
            reader = self._readers[number] = backlog.lead(self._readers.get(number), None, takes=True)
            if backlog.shared_order:
                contents.order.reserve(backlog.end_sequence)
            looked = reader.looked
            found = backlog.next_for(reader, _PAGE_LOOKS)
            self._budget.spend((READ_UNITS - _LOOK_UNITS) * (reader.looked - looked))
            if found is None:
                if not reader.waits and reader.looked == looked:
                    return
                yield None
            elif found.message.place >= end:
                return
            else:
                if backlog.shared_order:
                    cursor.skip_to(backlog.sequence(found.message) + 1)
                yield Sight(PAGED, self._parts.pages.entry_of(backlog, found), None, backlog, found)
            yield from self._ready(cursor)
