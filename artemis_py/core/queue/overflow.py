"""What a full queue does: nothing, drop its least entries, refuse, make senders wait, or page.

Artemis' ring counts ready entries. Qpid's policies count the queue's depth: messages in every state, by number and by
encoded bytes (rows Q-51 to Q-61, tests/queues/rows.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil
from typing import final


@final
class Depth:
    """``max-depth-messages`` and ``max-depth-bytes``; -1: no limit. A limit of 0 is one: nothing fits."""

    __slots__ = ("bytes_max", "messages_max")

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self.messages_max = messages_max
        self.bytes_max = bytes_max

    def holds(self, count: int, size_bytes: int) -> bool:
        """Is this depth within the limits? Reaching them exactly is."""
        return not (0 <= self.messages_max < count or 0 <= self.bytes_max < size_bytes)

    def share(self, percent: float) -> Depth:
        """The depth at ``percent`` of the limits, rounded up (Qpid)."""
        shares = [ceil(limit * percent / 100) if limit >= 0 else -1 for limit in (self.messages_max, self.bytes_max)]
        return Depth(*shares)

    @property
    def is_nothing(self) -> bool:
        """Is there no room even for one message?"""
        return self.messages_max == 0 or self.bytes_max == 0

    def __str__(self) -> str:
        limits = [f"{self.messages_max} messages"] if self.messages_max >= 0 else []
        if self.bytes_max >= 0:
            limits.append(f"{self.bytes_max} bytes")
        return " and ".join(limits) or "no limit"


class Overflow(ABC):
    """The axis "overflow": how many of the least entries a full queue drops, or what it does instead."""

    def __init__(self, depth: Depth | None = None, *, keeps_none: bool = False) -> None:
        self.depth = depth
        """The limit on the queue's depth; None when the policy does not count depth."""
        self.keeps_none = keeps_none
        """True when no arrival stays, not even for a consumer that waits for one."""

    @property
    def sheds(self) -> bool:
        """Are the least entries dropped while the depth is beyond its limit?"""
        return False

    @property
    def sheds_bytes(self) -> bool:
        """Are entries dropped for their size, too? Then the order of arrival matters."""
        return self.sheds and self.depth is not None and self.depth.bytes_max >= 0

    @property
    def refuses(self) -> bool:
        """Is a message that does not fit refused?"""
        return False

    @property
    def resumes_at(self) -> Depth | None:
        """The depth at which waiting senders go on; None when senders never wait."""
        return None

    @property
    def pages(self) -> bool:
        """Does a message that does not fit go to pages?"""
        return False

    def excess(self, ready_count: int, added_count: int) -> int:
        """How many ready entries to drop, after ``added_count`` were added and ``ready_count`` are ready now."""
        return 0

    @abstractmethod
    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        """May one more message come from a page? ``ready_count`` entries are ready; ``memory_count`` and
        ``memory_bytes`` are everything that the queue has in memory.
        """


class Unbounded(Overflow):
    """No limit: keeps everything."""

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        return True


class Ring(Overflow):
    """Drops at most one entry for each one added. A ring made smaller does not purge, it only stops growing (seed).

    Only ready entries count. Messages in delivery or scheduled are neither counted nor dropped.
    """

    def __init__(self, size: int) -> None:
        super().__init__(keeps_none=size == 0)
        self.size = size

    def excess(self, ready_count: int, added_count: int) -> int:
        over = ready_count - self.size
        if over <= 0:
            return 0
        return min(over, added_count)

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        return ready_count < max(self.size, 1)  # paged messages were accepted, so they must come out


class DepthRing(Overflow):
    """RING: the least ready entries are dropped until the depth is within its limits. Messages in delivery count and
    stay. The last ready entry stays when it arrives, however large it is.
    """

    def __init__(self, depth: Depth) -> None:
        super().__init__(depth, keeps_none=depth.is_nothing)

    @property
    def sheds(self) -> bool:
        return True

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        assert self.depth is not None
        return not ready_count or self.depth.holds(memory_count + 1, memory_bytes + 1)


class Reject(Overflow):
    """REJECT: a message that does not fit is refused, for every queue that it would have come to."""

    @property
    def refuses(self) -> bool:
        return True

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        return True


class FlowControl(Overflow):
    """PRODUCER_FLOW_CONTROL: the message that breaches the limit is taken. Senders of later ones wait until the depth
    has fallen to ``percent`` of the limits.
    """

    def __init__(self, depth: Depth, percent: float) -> None:
        super().__init__(depth)
        self._resumes_at = depth.share(percent)

    @property
    def resumes_at(self) -> Depth | None:
        return self._resumes_at

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        return True


class FlowToDisk(Overflow):
    """FLOW_TO_DISK: messages that do not fit into memory go to pages, and come back as the head is taken. Messages that
    consumers hold count, but never keep the next one from them.
    """

    @property
    def pages(self) -> bool:
        return True

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        assert self.depth is not None
        return not ready_count or self.depth.holds(memory_count + 1, memory_bytes + 1)
