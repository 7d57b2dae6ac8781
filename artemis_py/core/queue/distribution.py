"""Which consumer gets the next entry.

A strategy keeps awake consumers apart from parked ones, so a pick costs the same with one consumer and with a thousand.
It holds no queue and moves no entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from itertools import islice
from sys import maxsize
from typing import Final

from artemis_py.core.consumer import Consumer

_FEW: Final = 8
"""So many consumers are looked for one by one where they stand; more are filtered out in one pass."""
_NOBODY: Final[dict[int, None]] = {}
_NONE: Final[deque[Consumer]] = deque()


class Distribution(ABC):
    """The axis "which consumer".

    With ``live_max`` above 0 only that many consumers are offered entries, in order of attachment. When one leaves, the
    next in line takes its place (Qpid's maximum of live consumers; 1 is Artemis' exclusive queue). While the live ones
    are busy nobody gets anything. Browsers take nothing away, so they are not counted and never wait in line.
    """

    def __init__(self, live_max: int = 0) -> None:
        self.consumers: list[Consumer] = []
        self.taker_count = 0
        """How many consumers are not browsers."""
        self._live_max = live_max
        self._live: dict[int, None] = {} if live_max > 0 else _NOBODY

    def add(self, consumer: Consumer) -> None:
        """A consumer attached. It is parked until it is woken."""
        self.consumers.append(consumer)
        self.taker_count += not consumer.browses
        self._fill_live()

    def remove(self, consumer: Consumer) -> None:
        """A consumer left."""
        self.consumers.remove(consumer)
        self.taker_count -= not consumer.browses
        self.rest(consumer)
        if consumer.id in self._live:
            del self._live[consumer.id]
            self._fill_live()

    @property
    def live_max(self) -> int:
        """How many consumers are offered entries at once; 0: all."""
        return self._live_max

    def _fill_live(self) -> None:
        """Make the first in line live while there is a free place."""
        if len(self._live) >= self._live_max:
            return
        for consumer in self.consumers:
            if not consumer.browses and consumer.id not in self._live:
                self._live[consumer.id] = None
                if len(self._live) >= self._live_max:
                    return

    def set_live_max(self, live_max: int) -> None:
        """So many consumers are offered entries from now on; 0: all. The first in line stay live."""
        if live_max == self._live_max:
            return
        self._live_max = live_max
        self._live = {} if live_max > 0 else _NOBODY
        self._fill_live()
        for consumer in self.consumers:
            if not self.is_served(consumer):
                self.rest(consumer)

    def is_served(self, consumer: Consumer) -> bool:
        """Is the consumer one of those that are offered entries?"""
        return self._live_max <= 0 or consumer.browses or consumer.id in self._live

    @abstractmethod
    def wake(self, consumer: Consumer) -> None:
        """A parked consumer may take entries again."""

    def wake_all(self, start: int = 0, end: int = maxsize) -> None:
        """Something new is ready: wake the consumers from ``start`` to ``end`` that have room."""
        some = self.consumers if end - start >= len(self.consumers) else self.consumers[start:end]
        idle = [consumer for consumer in some if consumer.parked and consumer.has_room]
        if len(idle) > 1:
            idle.sort(key=_passed_over, reverse=True)
        for consumer in idle:
            self.wake(consumer)

    @abstractmethod
    def pick(self) -> Consumer | None:
        """The consumer that the next entry is offered to; None when all are parked."""

    @abstractmethod
    def offer(self, count_max: int) -> list[Consumer]:
        """The consumers that ``pick`` would return if each of them took one entry, the first first; at most so many,
        and none from the first on that does not take any entry (it has a cursor). ``taken`` must follow.
        """

    @abstractmethod
    def taken(self, offered: list[Consumer]) -> None:
        """These have taken an entry each: the first of those that were offered one."""

    @abstractmethod
    def stays_with(self, consumer: Consumer) -> bool:
        """Will ``pick`` return the same consumer again while it has room?"""

    @abstractmethod
    def park(self, consumer: Consumer) -> None:
        """Park the consumer just picked: nothing matched."""

    @abstractmethod
    def put_last(self, consumers: Iterable[Consumer]) -> None:
        """From now on others of their priority are asked before these consumers, where all else is equal."""

    @abstractmethod
    def rest(self, consumer: Consumer) -> None:
        """Park a consumer that was served out of turn and has no room left. It must be woken when it has."""


def _passed_over(consumer: Consumer) -> int:
    return consumer.passed_over


class RoundRobin(Distribution):
    """Consumers of the highest consumer priority that have room take turns (Artemis' consumer priority). A consumer for
    which nothing matched keeps its turn: it is first when something does.
    """

    def __init__(self, live_max: int = 0) -> None:
        super().__init__(live_max)
        self._open: dict[int, deque[Consumer]] = {}
        self._priorities: list[int] = []
        self._counts: dict[int, int] = {}
        """Consumers by priority."""
        self._passed_count = 0
        self._offered = _NONE
        """The consumers of which some were offered entries."""

    def add(self, consumer: Consumer) -> None:
        super().add(consumer)
        if consumer.priority not in self._open:
            self._open[consumer.priority] = deque()
            self._priorities = sorted(self._open, reverse=True)
        self._counts[consumer.priority] = self._counts.get(consumer.priority, 0) + 1

    def rest(self, consumer: Consumer) -> None:
        if not consumer.parked:
            self._open[consumer.priority].remove(consumer)
            consumer.parked = True

    def put_last(self, consumers: Iterable[Consumer]) -> None:
        awake: dict[int, dict[Consumer, None]] = {}
        for consumer in consumers:
            consumer.passed_over = 0
            if not consumer.parked:
                awake.setdefault(consumer.priority, {})[consumer] = None
        for priority, some in awake.items():
            candidates = self._open[priority]
            if len(some) <= _FEW:
                for consumer in some:
                    candidates.remove(consumer)
            else:
                candidates = deque([consumer for consumer in candidates if consumer not in some])
                self._open[priority] = candidates
            candidates.extend(some)

    def remove(self, consumer: Consumer) -> None:
        super().remove(consumer)
        self._counts[consumer.priority] -= 1
        if not self._counts[consumer.priority]:
            del self._counts[consumer.priority], self._open[consumer.priority]
            self._priorities.remove(consumer.priority)

    def wake(self, consumer: Consumer) -> None:
        if consumer.parked and self.is_served(consumer):
            consumer.parked = False
            if consumer.passed_over:
                consumer.passed_over = 0
                self._open[consumer.priority].appendleft(consumer)
            else:
                self._open[consumer.priority].append(consumer)

    def pick(self) -> Consumer | None:
        for priority in self._priorities:
            candidates = self._open[priority]
            while candidates:
                consumer = candidates[0]
                if consumer.has_room:
                    candidates.rotate(-1)
                    return consumer
                consumer.parked = True
                candidates.popleft()
        return None

    def offer(self, count_max: int) -> list[Consumer]:
        first = self.pick()
        if first is None:
            return []
        candidates = self._offered = self._open[first.priority]
        candidates.rotate(1)
        offered = list(islice(candidates, count_max))
        for index, consumer in enumerate(offered):
            if not consumer.has_room or consumer.cursor is not None:
                return offered[:index]
        return offered

    def taken(self, offered: list[Consumer]) -> None:
        self._offered.rotate(-len(offered))

    def stays_with(self, consumer: Consumer) -> bool:
        return len(self._open[consumer.priority]) == 1

    def park(self, consumer: Consumer) -> None:
        consumer.parked = True
        self._passed_count += 1
        consumer.passed_over = self._passed_count
        self._open[consumer.priority].pop()
