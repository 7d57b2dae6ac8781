"""What names a queue without holding it, and the rules that go with its name: lifetime, alerts, auto-delete, paused
address.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, NamedTuple, final

from artemis_py.config.settings import AddressSettings
from artemis_py.core.clock import drop_void
from artemis_py.core.memory import Memory
from artemis_py.message import Message
from artemis_py.units import DELAY_MAX_MS

# ---- address ---------------------------------------------------------------------------------------------------------
#
# What a queue knows of its address.


class QueueAddress:
    """The part of an address that its queues see. The address knows its queues; they do not see what else belongs to
    it.
    """

    __slots__ = ("is_wildcard", "memory", "name", "paused", "settings", "temporary")

    def __init__(
        self,
        name: str,
        settings: AddressSettings,
        memory: Memory,
        *,
        temporary: bool = False,
        is_wildcard: bool = False,
    ) -> None:
        self.name = name
        self.settings = settings
        self.memory = memory
        self.temporary = temporary
        self.paused = False
        """Do none of its queues dispatch, until an operator resumes it?"""
        self.is_wildcard = is_wildcard
        """Do its queues get messages of other addresses, too?"""


# ---- auto delete -----------------------------------------------------------------------------------------------------
#
# What a queue says itself of its deletion when nobody uses it any more.


@final
@dataclass(frozen=True, slots=True)
class AutoDelete:
    """``auto-delete``, ``auto-delete-delay`` (ms) and ``auto-delete-message-count`` (-1: any number) of a queue. What
    is None, the address-settings say.
    """

    is_wanted: bool | None = None
    delay_ms: int | None = None
    messages_max: int | None = None

    @property
    def says_nothing(self) -> bool:
        """Do the address-settings say everything?"""
        return self.is_wanted is None and self.delay_ms is None and self.messages_max is None

    def within(self, settings: AddressSettings, *, auto_created: bool) -> Deletion:
        """What counts for a queue on an address with these settings."""
        allowed = settings.auto_delete_queues if auto_created else settings.auto_delete_created_queues
        return Deletion(
            allowed if self.is_wanted is None else self.is_wanted,
            settings.auto_delete_queues_delay if self.delay_ms is None else self.delay_ms,
            settings.auto_delete_queues_message_count if self.messages_max is None else self.messages_max,
        )

    def fields(self) -> list[bool | int | None]:
        """What a restart must know."""
        return [self.is_wanted, self.delay_ms, self.messages_max]


class Deletion(NamedTuple):
    """Is a queue deleted when nobody uses it, after how many ms, and with how many messages at most (-1: any)?"""

    is_wanted: bool
    delay_ms: int
    messages_max: int


NOTHING_SAID: Final = AutoDelete()


def deletion_of(own: AutoDelete | None, settings: AddressSettings, *, auto_created: bool) -> Deletion:
    """The same for a queue that may say nothing itself."""
    return (own or NOTHING_SAID).within(settings, auto_created=auto_created)


# ---- lifetime --------------------------------------------------------------------------------------------------------
#
# How long a message lives on one queue: its own expiry, or the queue's, within the queue's bounds.


@final
class Lifetime:
    """``min-message-ttl``, ``max-message-ttl`` and ``expiration`` in ms from arrival; 0: not set.

    ``expiration`` is for messages without an expiry of their own (AMPS). Then Qpid's rules hold: the minimum for
    messages that expire, the maximum for all messages, and the maximum is
    applied last. The result is a function of the message, so nothing is written down. A message may live longer on one
    queue than on another, also after a restart.
    """

    __slots__ = ("longest_ms", "shortest_ms", "usual_ms")

    def __init__(self, shortest_ms: int, longest_ms: int, usual_ms: int = 0) -> None:
        self.shortest_ms = min(shortest_ms, DELAY_MAX_MS)
        self.longest_ms = min(longest_ms, DELAY_MAX_MS)
        self.usual_ms = usual_ms

    @property
    def gives_expiry(self) -> bool:
        """Do messages expire here that would not elsewhere?"""
        return self.longest_ms > 0 or self.usual_ms > 0

    def expires_ms(self, message: Message) -> int:
        """When the message expires on the queue, in epoch ms; 0: never."""
        expires_ms = message.expires_ms
        arrived_ms = message.timestamp_ms
        if not expires_ms and self.usual_ms:
            expires_ms = arrived_ms + self.usual_ms
        if expires_ms and self.shortest_ms:
            expires_ms = max(expires_ms, arrived_ms + self.shortest_ms)
        if self.longest_ms:
            latest_ms = arrived_ms + self.longest_ms
            expires_ms = min(expires_ms, latest_ms) if expires_ms else latest_ms
        return expires_ms


# ---- alerts ----------------------------------------------------------------------------------------------------------
#
# Alerts report that a queue is deep, or that its messages are large or old. They never refuse a message. Qpid's rules
# (docs/queues.md, Alerts): count and bytes alert at the threshold, age above it. Each kind is reported again only
# after the repeat gap, except size, which is reported for every message.


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
class MessageAges:
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
        self.ages = MessageAges(age_ms) if age_ms else None
        """Ages of messages in memory."""
        self.paged_ages = MessageAges(age_ms) if age_ms else None
        """Ages of paged messages that arrived since the start. A page that has not been read since a restart has none.
        """
        self.next_ms = 0
        """The date, in epoch ms, for which the queue has set its alarm; 0 for none."""
        self.repeat_gap_ms = repeat_gap_ms
        self._reported_ms: dict[str, int] = {}

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
        return [breach for breach in self._states(count, size_bytes, now_ms) if self._is_reported(breach[0], steady_ms)]

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

    def _is_reported(self, kind: str, steady_ms: int) -> bool:
        reported_ms = self._reported_ms.get(kind)
        if reported_ms is not None and steady_ms - reported_ms < self.repeat_gap_ms:
            return False
        self._reported_ms[kind] = steady_ms
        self.raised[kind] = self.raised.get(kind, 0) + 1
        return True

    def look_again_ms(self, count: int, size_bytes: int, now_ms: int, steady_ms: int) -> int:
        """The date, in epoch ms, of the next check without an arrival: a lasting state is reported again, or the oldest
        message gets too old. 0: never.
        """
        gap_ms = max(self.repeat_gap_ms, _LOOKS_AGAIN_MS) + now_ms - steady_ms
        times = [
            self._reported_ms.get(kind, steady_ms) + gap_ms for kind, _, _ in self._states(count, size_bytes, now_ms)
        ]
        oldest_ms = self._oldest_ms()
        if oldest_ms is not None and now_ms - oldest_ms <= self.age_ms:
            times.append(oldest_ms + self.age_ms + 1)
        return max(min(times), now_ms + 1) if times else 0


# ---- rules -----------------------------------------------------------------------------------------------------------
#
# A queue's own rules about how long its messages live and how they end.


@final
class MessageRules:
    """A queue's own rules. Without them the address-settings count.

    ``lifetime``: bounds on how long messages live. ``holds``: messages wait for the time in
    ``x-qpid-not-valid-before``. ``expiry_policy``: DELETE, ROUTE_TO_ALTERNATE, or None. ``dead_letter_address``: empty
    to discard dead messages, None for that of the address-setting. ``alerts``: thresholds of depth, size and age.
    """

    __slots__ = ("alerts", "dead_letter_address", "expiry_policy", "holds", "lifetime")

    def __init__(
        self,
        *,
        lifetime: Lifetime | None = None,
        holds: bool = False,
        expiry_policy: str | None = None,
        dead_letter_address: str | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        self.lifetime = lifetime
        self.holds = holds
        self.expiry_policy = expiry_policy
        self.dead_letter_address = dead_letter_address
        self.alerts = alerts


# ---- reference -------------------------------------------------------------------------------------------------------
#
# The reference by which pages, timers and copies know a queue.


@final
class QueueReference:
    """A queue's number, its name, and what never changes about it. To hold a reference is not to hold the queue."""

    __slots__ = ("address", "deleted", "durable", "id", "is_distant", "name", "noted_ready", "rules")

    def __init__(
        self, id: int, name: str, address: QueueAddress, *, durable: bool, rules: MessageRules, is_view: bool = False
    ) -> None:
        self.id = id
        """The queue's number in the log."""
        self.name = name
        self.address = address
        self.durable = durable
        self.rules = rules
        self.is_distant = is_view or address.is_wildcard
        """Does the queue get messages of other addresses, too?"""
        self.deleted = False
        self.noted_ready = False
        """Is it on the list of queues that may have something to dispatch?"""
