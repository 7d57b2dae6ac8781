"""An hour of the counters of queues, in memory, of a bounded size: so that whoever looks sees rates and curves at once.

A sample is four numbers of 32 bits. Each queue that has traffic keeps one of every ten seconds of the last five
minutes, and one of every minute of the last hour: 1,440 bytes. ``core/sampler.py`` takes them.
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple, final

PERIOD_MS: Final = 10_000
"""Rounds begin so far apart."""
_FINE_COUNT: Final = 30
_COARSE_EVERY: Final = 6
_COARSE_COUNT: Final = 60
_HOUR: Final = _COARSE_EVERY * _COARSE_COUNT
"""In rounds."""
_NUMBERS: Final = 4
_COARSE_FROM: Final = _NUMBERS * _FINE_COUNT
_EMPTY: Final = bytes(4 * _NUMBERS * (_FINE_COUNT + _COARSE_COUNT))
_MASK: Final = 0xFFFFFFFF
SAMPLED_MAX: Final = 3_000
"""So many queues have samples at most: 4.3 MB. Another one begins when one of them had no traffic for an hour."""


class Sample(NamedTuple):
    """Counters of a queue at a steady time, modulo 2**32."""

    at_ms: int
    added: int
    acknowledged: int
    depth: int
    scheduled: int


def grown(before: int, now: int) -> int:
    """By how much a counter has grown, of which one number or both are modulo 2**32; 0 if it was reset."""
    by = (now - before) & _MASK
    return by if by <= _MASK // 2 else 0


@final
class CounterHistory:
    """The samples of one queue, or of the broker. Rounds are counted from 1, and have their times in common."""

    __slots__ = ("_rounds", "acknowledged", "added", "changed", "first", "idle", "last", "settled", "values")

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds
        self.added = 0
        self.acknowledged = 0
        self.changed = self.settled = self.idle = rounds.number
        """The rounds that last found it with other counters, with more acknowledged, and with nothing that waits."""
        self.last = rounds.number
        self.first = 0
        """The round of the first sample."""
        self.values: array[int] | None = None

    def note(self, added: int, acknowledged: int, count: int, scheduled_count: int) -> None:
        """Its counters in this round."""
        rounds, number = self._rounds, self._rounds.number
        self.last = number
        if count <= scheduled_count:
            self.idle = number
        if added != self.added or acknowledged != self.acknowledged:
            if acknowledged != self.acknowledged:
                self.settled = number
            self.added, self.acknowledged, self.changed = added, acknowledged, number
            if self.values is None and rounds.sampled_count < SAMPLED_MAX:
                rounds.sampled_count += 1
                self.values, self.first = array("I", _EMPTY), number
        values = self.values
        if values is None:
            return
        if number - self.changed >= _HOUR:
            self.drop()
            return
        sample = array("I", (added & _MASK, acknowledged & _MASK, count & _MASK, scheduled_count & _MASK))
        place = number % _FINE_COUNT * _NUMBERS
        values[place : place + _NUMBERS] = sample
        if not number % _COARSE_EVERY:
            place = _COARSE_FROM + number // _COARSE_EVERY % _COARSE_COUNT * _NUMBERS
            values[place : place + _NUMBERS] = sample

    def drop(self) -> None:
        """Give its samples up."""
        if self.values is not None:
            self._rounds.sampled_count -= 1
            self.values = None

    def ends(self, rounds: int) -> tuple[Sample, Sample] | None:
        """The sample of so many rounds before the last, within five minutes, or the first one, and the one halfway from
        there; None: there is none.
        """
        if self.values is None:
            return None
        number = max(self.last - min(rounds, _FINE_COUNT - 1), self.first)
        return self._sample(number), self._sample((number + self.last) // 2)

    def samples(self, *, recent: bool = False) -> list[Sample]:
        """All samples, the oldest first; ``recent``: those of the last five minutes."""
        if self.values is None:
            return []
        fine_from = max(self.last - _FINE_COUNT + 1, self.first)
        numbers = list(range(fine_from, self.last + 1))
        if not recent:
            oldest = max(self.last - _HOUR + _COARSE_EVERY, self.first)
            coarse_from = oldest + -oldest % _COARSE_EVERY
            numbers = [*range(coarse_from, fine_from, _COARSE_EVERY), *numbers]
        return [self._sample(number) for number in numbers]

    def _sample(self, number: int) -> Sample:
        values = self.values
        assert values is not None
        if number > self.last - _FINE_COUNT:
            place = number % _FINE_COUNT * _NUMBERS
        else:
            place = _COARSE_FROM + number // _COARSE_EVERY % _COARSE_COUNT * _NUMBERS
        added, acknowledged, count, scheduled_count = values[place : place + _NUMBERS]
        return Sample(self._rounds.time_of(number), added, acknowledged, count, scheduled_count)


@final
class Rounds:
    """The rounds of samples, and the histories of queues by number, and of the broker."""

    __slots__ = ("_times_ms", "by_queue", "number", "sampled_count", "whole")

    def __init__(self) -> None:
        self.number = 0
        self._times_ms = array("q", bytes(8 * (_HOUR + 1)))
        self.sampled_count = 0
        self.by_queue: dict[int, CounterHistory] = {}
        self.whole = CounterHistory(self)
        """Of all queues together."""

    def begin(self, steady_ms: int) -> None:
        """The next round begins."""
        self.number += 1
        self._times_ms[self.number % len(self._times_ms)] = steady_ms

    def time_of(self, number: int) -> int:
        """When a round began, in steady ms."""
        return self._times_ms[number % len(self._times_ms)]

    def note(self, queue_id: int, added: int, acknowledged: int, count: int, scheduled_count: int) -> None:
        """The counters of a queue in this round."""
        history = self.by_queue.get(queue_id)
        if history is None:
            history = self.by_queue[queue_id] = CounterHistory(self)
        history.note(added, acknowledged, count, scheduled_count)

    def end(self) -> None:
        """The round has seen all queues: those that it has not are gone."""
        for queue_id in [one for one, history in self.by_queue.items() if history.last != self.number]:
            self.by_queue.pop(queue_id).drop()
