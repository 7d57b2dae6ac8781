"""A barrier on its way to all consumers (AMPS, row A-51, tests/queues/rows.py)."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.distribution import Distribution

_LOOKS_PER_UNIT: Final = 8
_LOOKS_MAX: Final = 1024


@final
class Broadcast:
    """Which consumers have one barrier, and which are still to get it. It moves no entry.

    Every consumer that is served and wants the message gets it, also one that comes meanwhile. One whose connection
    takes nothing now is waited for.
    """

    __slots__ = (
        "_got",
        "_lacking",
        "_passed_over",
        "_place",
        "_unsent",
        "_with_room",
        "entry",
        "is_out",
        "was_written",
    )

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.is_out = False
        """Has a consumer got it, so that it counts as in delivery?"""
        self.was_written = False
        """Was it written to a consumer? Then it is done when nobody is left to get it."""
        self._got: set[int] = set()
        """Ids of consumers that got it."""
        self._passed_over: set[int] = set()
        """Ids of consumers that do not want it."""
        self._place = 0
        """Where in the list of consumers the next one is looked for."""
        self._lacking: dict[int, Consumer] = {}
        """Consumers without room, by id."""
        self._with_room: dict[int, Consumer] = {}
        """Those of them that may have room again."""
        self._unsent: set[int] = set()
        """Ids of consumers that have it in their outbox."""

    # ---- who is next -----------------------------------------------------------------------------

    def next_consumer(self, distribution: Distribution, budget: Budget) -> Consumer | None:
        """A consumer that must be asked; None when none was found so far (see ``has_asked_all``)."""
        if self._with_room:
            _, consumer = self._with_room.popitem()
            del self._lacking[consumer.id]
            return consumer
        consumers = distribution.consumers
        start = self._place
        end = min(len(consumers), start + _LOOKS_MAX)
        found: Consumer | None = None
        while found is None and self._place < end:
            consumer = consumers[self._place]
            self._place += 1
            known = consumer.id in self._got or consumer.id in self._passed_over or consumer.id in self._lacking
            if not known and not consumer.browses and distribution.is_served(consumer):
                found = consumer
        budget.spend((self._place - start) // _LOOKS_PER_UNIT)
        return found

    def has_asked_all(self, distribution: Distribution) -> bool:
        """Was every consumer asked that there is now?"""
        return self._place >= len(distribution.consumers) and not self._with_room

    def is_over(self, distribution: Distribution) -> bool:
        """Is nobody left to get it, or to be sent it?"""
        return self.has_asked_all(distribution) and not self._lacking and not self._unsent

    def ask_nobody(self, distribution: Distribution) -> None:
        """All that are left only look."""
        self._place = len(distribution.consumers)

    @property
    def awaited_count(self) -> int:
        """How many consumers are still to get it, of those that were asked: their connections take nothing now."""
        return len(self._lacking) + len(self._unsent)

    # ---- what became of the question -------------------------------------------------------------

    def pass_over(self, consumer: Consumer) -> None:
        """The consumer does not want it."""
        self._passed_over.add(consumer.id)

    def wait_for(self, consumer: Consumer) -> None:
        """The consumer's connection takes nothing now."""
        self._lacking[consumer.id] = consumer

    def give(self, consumer: Consumer) -> None:
        """The consumer has it in its outbox."""
        self._got.add(consumer.id)
        self._unsent.add(consumer.id)

    # ---- what happens to consumers ---------------------------------------------------------------

    def note_room(self, consumer: Consumer) -> None:
        """The consumer may have room again."""
        if consumer.id in self._lacking:
            self._with_room[consumer.id] = consumer

    def note_written(self, consumer: Consumer) -> None:
        """It was written to the consumer."""
        self._unsent.discard(consumer.id)
        self.was_written = True

    def note_changed(self, consumer: Consumer) -> None:
        """The consumer wants other messages now. Unless it has the barrier, it is asked again."""
        self._passed_over.discard(consumer.id)
        self._forget(consumer)

    def note_left(self, consumer: Consumer) -> None:
        """The consumer leaves. Another one may be served in its place, so all are looked at again."""
        self._unsent.discard(consumer.id)
        self._forget(consumer)

    def _forget(self, consumer: Consumer) -> None:
        """Wait for the consumer no more, and look at all again."""
        self._lacking.pop(consumer.id, None)
        self._with_room.pop(consumer.id, None)
        self._place = 0
