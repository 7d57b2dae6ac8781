"""Which consumer gets the next entry.

A strategy keeps the consumers that can take something apart from the parked ones, so that a pick costs the same with
one consumer and with a thousand. It holds no queue and moves no entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

from artemis_py.core.consumer import Consumer


class Distribution(ABC):
    """The axis "which consumer"."""

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """A consumer attached; it is parked until it is woken."""
        self.consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """A consumer left."""
        self.consumers.remove(consumer)

    @abstractmethod
    def wake(self, consumer: Consumer) -> None:
        """A parked consumer may take entries again."""

    def wake_all(self) -> None:
        """Something new stands on the queue: whoever has room may want it."""
        for consumer in self.consumers:
            if consumer.parked and consumer.has_room:
                self.wake(consumer)

    @abstractmethod
    def pick(self) -> Consumer | None:
        """The consumer that the next entry is offered to, or None when all are parked."""

    @abstractmethod
    def stays_with(self, consumer: Consumer) -> bool:
        """Will ``pick`` give the consumer just picked again, as long as it has room?"""

    @abstractmethod
    def park(self, consumer: Consumer) -> None:
        """The consumer just picked found nothing that it wants."""


class RoundRobin(Distribution):
    """Turn by turn among the consumers of the highest consumer priority that can take something (Artemis' consumer
    priority).
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, deque[Consumer]] = {}
        self._priorities: list[int] = []

    def add(self, consumer: Consumer) -> None:
        super().add(consumer)
        if consumer.priority not in self._open:
            self._open[consumer.priority] = deque()
            self._priorities = sorted(self._open, reverse=True)

    def remove(self, consumer: Consumer) -> None:
        super().remove(consumer)
        if not consumer.parked:
            self._open[consumer.priority].remove(consumer)
            consumer.parked = True
        if all(other.priority != consumer.priority for other in self.consumers):
            del self._open[consumer.priority]
            self._priorities.remove(consumer.priority)

    def wake(self, consumer: Consumer) -> None:
        if consumer.parked:
            consumer.parked = False
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

    def stays_with(self, consumer: Consumer) -> bool:
        return len(self._open[consumer.priority]) == 1

    def park(self, consumer: Consumer) -> None:
        consumer.parked = True
        self._open[consumer.priority].pop()


class Exclusive(Distribution):
    """All entries go to the consumer that attached first; when it is busy, nobody gets any (Artemis' exclusive queue).

    Browsers take nothing from anybody: they are offered entries beside the owner, and never own the queue.
    """

    def wake(self, consumer: Consumer) -> None:
        consumer.parked = False

    def pick(self) -> Consumer | None:
        owner_seen = False
        for consumer in self.consumers:
            if not consumer.browses:
                if owner_seen:
                    continue
                owner_seen = True
            if not consumer.parked:
                if consumer.has_room:
                    return consumer
                consumer.parked = True
        return None

    def stays_with(self, consumer: Consumer) -> bool:
        return not consumer.browses

    def park(self, consumer: Consumer) -> None:
        consumer.parked = True
