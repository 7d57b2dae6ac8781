"""Alerts report that a queue is deep, or that its messages are large or old. They never refuse a message.

Qpid's rules (docs/queues.md, Alerts): count and bytes alert at the threshold, age above it. Each kind is reported again
only after the repeat gap, except size, which is reported for every message.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final, final

from artemis_py.core.timing.schedule import drop_void
from artemis_py.message import Message

AGE: Final = "MESSAGE_AGE_ALERT"
SIZE: Final = "MESSAGE_SIZE_ALERT"
DEPTH_MESSAGES: Final = "MESSAGE_COUNT_ALERT"
DEPTH_BYTES: Final = "QUEUE_DEPTH_ALERT"
"""Alert names, as in Qpid."""

_LOOKS_AGAIN_MS: Final = 1000
"""The shortest time, in ms, after which a lasting state is reported again without an arrival. Arrivals report it each
time.
"""


_LOOKS: Final = 2


@final
class Ages:
    """Arrival times of a queue's messages, to within a hundredth of the age threshold. It counts messages by time and
    does not list them.
    """

    def __init__(self, threshold_ms: int) -> None:
        self._width_ms = max(threshold_ms // 100, 1)
        self._counts: dict[int, int] = {}
        self._numbers: list[int] = []
        self._looked_at = 0

    def add(self, messages: Iterable[Message]) -> None:
        """Messages arrived."""
        counts = self._counts
        for message in messages:
            number = message.timestamp_ms // self._width_ms
            if number in counts:
                counts[number] += 1
                continue
            counts[number] = 1
            heappush(self._numbers, number)
            self._looked_at = drop_void(self._numbers, self._looked_at, _LOOKS, self._is_over)

    def _is_over(self, number: int) -> bool:
        """Have all messages of that time left? If so it is forgotten, even when older messages are still here."""
        if self._counts[number]:
            return False
        del self._counts[number]
        return True

    def remove(self, messages: Iterable[Message]) -> None:
        """Messages left."""
        counts = self._counts
        for message in messages:
            number = message.timestamp_ms // self._width_ms
            if counts.get(number, 0) > 0:
                counts[number] -= 1

    def clear(self) -> None:
        """Forget every message."""
        self._counts.clear()
        self._numbers.clear()

    def oldest_ms(self) -> int | None:
        """The earliest time, in epoch ms, at which the oldest message can have arrived. None when there are no
        messages.
        """
        numbers = self._numbers
        while numbers and not self._counts[numbers[0]]:
            del self._counts[heappop(numbers)]
        return numbers[0] * self._width_ms if numbers else None


@final
class Alerts:
    """The thresholds of one queue (0: none), and when each kind was last reported. ``raised`` counts alerts by kind."""

    def __init__(
        self, *, age_ms: int = 0, size_bytes: int = 0, messages: int = 0, bytes: int = 0, repeat_gap_ms: int = 0
    ) -> None:
        self.age_ms = age_ms
        self.size_bytes = size_bytes
        self.messages = messages
        self.bytes = bytes
        self.raised: dict[str, int] = {}
        self.ages = Ages(age_ms) if age_ms else None
        """Ages of messages in memory."""
        self.paged_ages = Ages(age_ms) if age_ms else None
        """Ages of paged messages that arrived since the start. A page that has not been read since a restart has none.
        """
        self.next_ms = 0
        """The date, in epoch ms, for which the queue has set its alarm; 0 for none."""
        self.repeat_gap_ms = repeat_gap_ms
        self._told_ms: dict[str, int] = {}

    @property
    def raised_count(self) -> int:
        """Alerts of all kinds since the start."""
        return sum(self.raised.values())

    def large(self, messages: Iterable[Message]) -> list[Message]:
        """The messages that reach the size threshold. Each counts as an alert."""
        if not self.size_bytes:
            return []
        found = [message for message in messages if message.size_bytes >= self.size_bytes]
        if found:
            self.raised[SIZE] = self.raised.get(SIZE, 0) + len(found)
        return found

    def breaches(self, count: int, size_bytes: int, now_ms: int, steady_ms: int) -> list[tuple[str, int, int]]:
        """Alerts to report now, as (kind, value, threshold). ``count`` and ``size_bytes`` are the queue's depth.

        Age is measured by dates (``now_ms``), the repeat gap by steady time (``steady_ms``).
        """
        return [breach for breach in self._states(count, size_bytes, now_ms) if self._is_told(breach[0], steady_ms)]

    def _states(self, count: int, size_bytes: int, now_ms: int) -> list[tuple[str, int, int]]:
        """Every breached threshold."""
        found: list[tuple[str, int, int]] = []
        if 0 < self.messages <= count:
            found.append((DEPTH_MESSAGES, count, self.messages))
        if 0 < self.bytes <= size_bytes:
            found.append((DEPTH_BYTES, size_bytes, self.bytes))
        oldest_ms = self._oldest_ms()
        if oldest_ms is not None and now_ms - oldest_ms > self.age_ms:
            found.append((AGE, now_ms - oldest_ms, self.age_ms))
        return found

    def _oldest_ms(self) -> int | None:
        if self.ages is None or self.paged_ages is None:
            return None
        one, other = self.ages.oldest_ms(), self.paged_ages.oldest_ms()
        return other if one is None or (other is not None and other < one) else one

    def _is_told(self, kind: str, steady_ms: int) -> bool:
        told_ms = self._told_ms.get(kind)
        if told_ms is not None and steady_ms - told_ms < self.repeat_gap_ms:
            return False
        self._told_ms[kind] = steady_ms
        self.raised[kind] = self.raised.get(kind, 0) + 1
        return True

    def look_again_ms(self, count: int, size_bytes: int, now_ms: int, steady_ms: int) -> int:
        """The date, in epoch ms, of the next check without an arrival: a lasting state is reported again, or the oldest
        message gets too old. 0: never.
        """
        gap_ms = max(self.repeat_gap_ms, _LOOKS_AGAIN_MS) + now_ms - steady_ms
        times = [self._told_ms.get(kind, steady_ms) + gap_ms for kind, _, _ in self._states(count, size_bytes, now_ms)]
        oldest_ms = self._oldest_ms()
        if oldest_ms is not None and now_ms - oldest_ms <= self.age_ms:
            times.append(oldest_ms + self.age_ms + 1)
        return max(min(times), now_ms + 1) if times else 0
