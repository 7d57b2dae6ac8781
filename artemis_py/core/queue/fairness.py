"""Fairness models of AMPS: of the consumers with room, the first, or the one with the smallest share of its backlog in
use.

The awake consumers stand in a heap, so a pick costs the same with one consumer and, but for a logarithm, with a
thousand. An item in it that no longer holds is dropped when it is met, and all are when they outnumber the others.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.distribution import Distribution

_VOID_MIN: Final = 16

_Item = tuple[int, float, int]
"""Negative consumer priority, rank, and number in order of attachment: the smallest is next."""


class Ranked(Distribution):
    """The axis "which consumer", for models that rank consumers. Consumer priority counts first, then the rank, then
    the order of attachment (AMPS: the first found).
    """

    def __init__(self, live_max: int = 0, *, by_load: bool) -> None:
        super().__init__(live_max)
        self._by_load = by_load
        """Is the rank of a consumer the share of its backlog in use? Otherwise all rank the same."""
        self._heap: list[_Item] = []
        self._numbers: dict[int, int] = {}
        """The number of each consumer, by consumer id."""
        self._by_number: dict[int, Consumer] = {}
        self._ranks: dict[int, float] = {}
        """The rank at which each awake consumer stands, by number. Other items of it hold no longer."""
        self._last_number = 0
        self._eased: list[Consumer] = []
        """Consumers that have let something go since the last pick: they may stand too low."""

    def add(self, consumer: Consumer) -> None:
        self._number(consumer)
        if self._by_load:
            consumer.eased = self._eased
        super().add(consumer)

    def _number(self, consumer: Consumer) -> None:
        self._last_number += 1
        self._numbers[consumer.id] = self._last_number
        self._by_number[self._last_number] = consumer

    def put_last(self, consumer: Consumer) -> None:
        number = self._numbers[consumer.id]
        del self._by_number[number]
        self._ranks.pop(number, None)
        self._number(consumer)
        if not consumer.parked:
            self._stand(consumer)

    def remove(self, consumer: Consumer) -> None:
        super().remove(consumer)
        consumer.eased = None
        number = self._numbers.pop(consumer.id)
        del self._by_number[number]
        self._ranks.pop(number, None)

    def wake(self, consumer: Consumer) -> None:
        if consumer.parked and self.is_served(consumer):
            consumer.parked = False
            self._stand(consumer)

    def _rank_of(self, consumer: Consumer) -> float:
        return len(consumer.held) / consumer.backlog_max if self._by_load else 0.0

    def _stand(self, consumer: Consumer) -> None:
        """Put an awake consumer at its rank."""
        number = self._numbers[consumer.id]
        rank = self._rank_of(consumer)
        if self._ranks.get(number) != rank:
            self._ranks[number] = rank
            heappush(self._heap, (-consumer.priority, rank, number))
            if len(self._heap) > 2 * len(self._ranks) + _VOID_MIN:
                self._heap = [(-self._by_number[number].priority, rank, number) for number, rank in self._ranks.items()]
                heapify(self._heap)

    def _take_note_of_eased(self) -> None:
        for consumer in self._eased:
            if consumer.id in self._numbers:
                consumer.eased = self._eased
                if not consumer.parked:
                    self._stand(consumer)
        self._eased.clear()

    def pick(self) -> Consumer | None:
        if self._eased:
            self._take_note_of_eased()
        heap, ranks, by_load = self._heap, self._ranks, self._by_load
        while heap:
            negative_priority, rank, number = heap[0]
            if ranks.get(number) != rank:
                heappop(heap)
                continue
            consumer = self._by_number[number]
            held_count, backlog_max = len(consumer.held), consumer.backlog_max
            if held_count >= backlog_max or consumer.room_bytes <= 0 or consumer.credit_bytes <= 0:  # it has no room
                self.rest(consumer)
                continue
            if not by_load:
                return consumer
            rank_now = held_count / backlog_max
            if rank_now == rank:
                return consumer
            ranks[number] = rank_now
            heapreplace(heap, (negative_priority, rank_now, number))
        return None

    def stays_with(self, consumer: Consumer) -> bool:
        return not self._by_load or len(self._ranks) == 1

    def park(self, consumer: Consumer) -> None:
        self.rest(consumer)

    def rest(self, consumer: Consumer) -> None:
        consumer.parked = True
        self._ranks.pop(self._numbers[consumer.id], None)
