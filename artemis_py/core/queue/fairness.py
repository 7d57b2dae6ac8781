"""Fairness models of AMPS: of the consumers with room, the first, or the one with the smallest share of its backlog in
use.

The awake consumers of one rank stand together in a bucket, and the buckets in a heap. So a pick costs the same with one
consumer and with a thousand. A number in a bucket that no longer holds is dropped when it is met, and all are when they
outnumber the others.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.distribution import Distribution

_VOID_MIN: Final = 16
_GONE: Final = -1.0
"""The rank of a bucket that was emptied."""

_Key = tuple[int, float]
"""Negative consumer priority, and rank: the smallest is next."""


class _Bucket:
    """Consumers with the same key, by number, the next one last. They are put in order when they are asked."""

    __slots__ = ("above", "is_sorted", "key", "numbers", "rank")

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.rank = key[1]
        self.numbers: list[int] = []
        self.is_sorted = False
        self.above: _Bucket | None = None
        """Where the last consumer went that left this bucket for another."""

    def close(self) -> None:
        """Nobody stands here any more, or ever will."""
        self.rank = _GONE
        self.above = None


class Ranked(Distribution):
    """The axis "which consumer", for models that rank consumers. Consumer priority counts first, then the rank, then
    the order of attachment (AMPS: the first found).
    """

    def __init__(self, live_max: int = 0, *, by_load: bool) -> None:
        super().__init__(live_max)
        self._by_load = by_load
        """Is the rank of a consumer the share of its backlog in use? Otherwise all rank the same."""
        self._buckets: dict[_Key, _Bucket] = {}
        self._heap: list[_Key] = []
        """The keys of all buckets."""
        self._numbers: dict[int, int] = {}
        """The number of each consumer, by consumer id: the later it attached, the lower."""
        self._by_number: dict[int, Consumer] = {}
        self._stands: dict[int, _Bucket] = {}
        """Where each awake consumer stands, by number. It stands nowhere else, whatever other buckets have of it."""
        self._stood_count = 0
        """How many numbers are in buckets at most."""
        self._last_number = 0
        self._eased: list[Consumer] = []
        """Consumers that have let something go since the last pick: they may stand too low."""

    def add(self, consumer: Consumer) -> None:
        self._number(consumer)
        if self._by_load:
            consumer.eased = self._eased
        super().add(consumer)

    def _number(self, consumer: Consumer) -> None:
        self._last_number -= 1
        self._numbers[consumer.id] = self._last_number
        self._by_number[self._last_number] = consumer

    def put_last(self, consumers: Iterable[Consumer]) -> None:
        for consumer in consumers:
            number = self._numbers[consumer.id]
            del self._by_number[number]
            self._stands.pop(number, None)
            self._number(consumer)
            if not consumer.parked:
                self._stand(consumer)

    def remove(self, consumer: Consumer) -> None:
        super().remove(consumer)
        consumer.eased = None
        number = self._numbers.pop(consumer.id)
        del self._by_number[number]
        self._stands.pop(number, None)

    def wake(self, consumer: Consumer) -> None:
        if consumer.parked and self.is_served(consumer):
            consumer.parked = False
            self._stand(consumer)

    def _rank_of(self, consumer: Consumer) -> float:
        return len(consumer.held) / consumer.backlog_max if self._by_load else 0.0

    def _stand(self, consumer: Consumer) -> None:
        """Put an awake consumer at its rank."""
        number = self._numbers[consumer.id]
        self._put(number, (-consumer.priority, self._rank_of(consumer)))
        if self._stood_count > 2 * len(self._stands) + _VOID_MIN:
            self._drop_void()

    def _put(self, number: int, key: _Key) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(key)
            heappush(self._heap, key)
        if self._stands.get(number) is bucket:
            return bucket
        self._stands[number] = bucket
        self._stood_count += 1
        if bucket.is_sorted:
            insort(bucket.numbers, number)
        else:
            bucket.numbers.append(number)
        return bucket

    def _drop_void(self) -> None:
        """Drop all numbers that no longer hold."""
        stands, self._stands = self._stands, {}
        for bucket in self._buckets.values():
            bucket.close()
        self._buckets.clear()
        self._heap.clear()
        self._stood_count = 0
        for number, bucket in stands.items():
            self._put(number, bucket.key)

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
        heap, buckets, stands, by_load = self._heap, self._buckets, self._stands, self._by_load
        while heap:
            bucket = buckets[heap[0]]
            numbers = bucket.numbers
            if not numbers:
                bucket.close()
                del buckets[heappop(heap)]
                continue
            if not bucket.is_sorted:
                numbers.sort()
                bucket.is_sorted = True
            number = numbers[-1]
            if stands.get(number) is bucket:
                consumer = self._by_number[number]
                held_count, backlog_max = len(consumer.held), consumer.backlog_max
                if held_count < backlog_max and consumer.room_bytes > 0 and consumer.credit_bytes > 0:  # it has room
                    rank = held_count / backlog_max if by_load else 0.0
                    if rank == bucket.rank:
                        return consumer
                    self._put(number, (bucket.key[0], rank))
                else:
                    self.rest(consumer)
            numbers.pop()
            self._stood_count -= 1
        return None

    def offer(self, count_max: int) -> list[Consumer]:
        first = self.pick()
        if first is None or first.cursor is not None:
            return []
        offered = [first]
        if self._by_load and count_max > 1 and not first.settles:
            stands, by_number = self._stands, self._by_number
            bucket = self._buckets[self._heap[0]]
            rank = bucket.rank
            for number in bucket.numbers[-2 : -count_max - 1 : -1]:
                if stands.get(number) is not bucket:
                    break
                consumer = by_number[number]
                if len(consumer.held) / consumer.backlog_max != rank or consumer.settles or consumer.cursor is not None:
                    break
                if consumer.room_bytes <= 0 or consumer.credit_bytes <= 0:
                    break
                if consumer is offered[-1]:  # it rested, came back, and stands here twice
                    break
                offered.append(consumer)
        return offered

    def taken(self, offered: list[Consumer]) -> None:
        if len(offered) < 2:
            return  # it is looked at when the next one is picked
        stands = self._stands
        bucket = self._buckets[self._heap[0]]
        numbers, above = bucket.numbers, bucket.above
        for consumer in offered:
            number = numbers.pop()
            rank = len(consumer.held) / consumer.backlog_max
            if above is None or above.rank != rank or above.is_sorted:
                above = bucket.above = self._put(number, (bucket.key[0], rank))
            else:
                stands[number] = above
                above.numbers.append(number)
                self._stood_count += 1
        self._stood_count -= len(offered)

    def stays_with(self, consumer: Consumer) -> bool:
        return not self._by_load or len(self._stands) == 1

    def park(self, consumer: Consumer) -> None:
        self.rest(consumer)

    def rest(self, consumer: Consumer) -> None:
        consumer.parked = True
        self._stands.pop(self._numbers[consumer.id], None)
