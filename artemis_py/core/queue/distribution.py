"""Which consumer gets the next entry: round-robin, by priority, exclusive, fast or proportional."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import islice
from sys import maxsize
from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer

# ---- distribution ----------------------------------------------------------------------------------------------------
#
# Which consumer gets the next entry. A strategy keeps awake consumers apart from parked ones, so a pick costs the
# same with one consumer and with a thousand. It holds no queue and moves no entry.


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
        self.park_served(consumer)
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
                self.park_served(consumer)

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
    def park_served(self, consumer: Consumer) -> None:
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

    def park_served(self, consumer: Consumer) -> None:
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


# ---- fairness --------------------------------------------------------------------------------------------------------
#
# Fairness models of AMPS: of the consumers with room, the first, or the one with the smallest share of its backlog in
# use. The awake consumers of one rank stand together in a bucket, and the buckets in a heap. So a pick costs the same
# with one consumer and with a thousand. A number in a bucket that no longer holds is dropped when it is met, and all
# are when they outnumber the others.


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
        if not self._numbers:
            self._eased.clear()  # perhaps nobody picks for long

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
                    self.park_served(consumer)
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
        self.park_served(consumer)

    def park_served(self, consumer: Consumer) -> None:
        consumer.parked = True
        self._stands.pop(self._numbers[consumer.id], None)


# ---- wake-ups --------------------------------------------------------------------------------------------------------
#
# Which consumers of a queue must look again, and when.


WOKEN_AT_ONCE: Final = 512
"""How many consumers are woken before the budget is checked again."""
_WOKEN_PER_UNIT: Final = 8


@final
class WakeUps:
    """Wakes consumers that found nothing when something arrives. If there are very many, each dispatch wakes some."""

    __slots__ = ("_budget", "_distribution", "_place", "_tired", "dry", "has_lost_one", "left")

    def __init__(self, distribution: Distribution, budget: Budget) -> None:
        self._distribution = distribution
        self._budget = budget
        self.dry = False
        """Was a consumer parked because nothing matched? Arrivals wake it."""
        self.left = 0
        """How many of very many consumers must still be woken."""
        self._place = 0
        """The position in the list of consumers from which waking goes on."""
        self.has_lost_one = False
        """Has a consumer left since the last dispatch? The next one may have to take over."""
        self._tired: list[Consumer] = []
        """Consumers that have looked at as many paged messages as one turn allows."""

    def wake(self, consumer: Consumer) -> bool:
        """Wake a consumer that may have room or credit again. Returns False when it has none."""
        if consumer.has_room and not consumer.closed:
            self._distribution.wake(consumer)
            return True
        return False

    def wake_dry(self) -> None:
        """Something new is ready: wake consumers that found nothing."""
        if self.dry:
            self.dry = False
            self._wake_others()

    def _wake_others(self) -> None:
        """Wake every consumer that has room: at once or, if there are very many, some in each dispatch."""
        count = len(self._distribution.consumers)
        if count <= WOKEN_AT_ONCE:
            self.left = 0
            self._distribution.wake_all()
        else:
            self.left = count

    def wake_some(self) -> None:
        """Wake the next consumers of very many."""
        count = len(self._distribution.consumers)
        start = self._place if self._place < count else 0
        end = min(start + min(self.left, WOKEN_AT_ONCE), count)
        self.left = 0 if end <= start else self.left - (end - start)
        self._place = end
        self._budget.spend(1 + (end - start) // _WOKEN_PER_UNIT)
        self._distribution.wake_all(start, end)

    def park_served(self, consumer: Consumer) -> None:
        """Let a consumer go on with the next dispatch: it has looked at as much as one turn allows."""
        self._tired.append(consumer)

    @property
    def is_due(self) -> bool:
        """Must a consumer be woken when a dispatch begins?"""
        return len(self._tired) > 0 or self.has_lost_one or self.left > 0

    def begin(self) -> None:
        """A dispatch begins. Wake consumers that have looked at as much as one turn allows, and those that may take
        over from one that left.
        """
        if self.has_lost_one:
            self.has_lost_one = False
            self.dry = False
            self._wake_others()
        tired, self._tired = self._tired, []
        for consumer in tired:
            consumer.passed_over = 0  # behind consumers that have not had their turn
            self.wake(consumer)
        if self.left:
            self.wake_some()
