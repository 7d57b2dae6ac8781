"""What a full queue does: nothing, give up its least entries, refuse, make senders wait, or let pages take what comes.

Artemis' ring counts what is ready. Qpid's policies count the depth of a queue: everything on it, in whatever state, in
messages and in encoded bytes (rows Q-51 to Q-61, tests/queues/rows.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil
from typing import final


@final
class Depth:
    """``max-depth-messages`` and ``max-depth-bytes``; -1: no such limit. A limit of 0 is one: nothing fits."""

    __slots__ = ("bytes_max", "messages_max")

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self.messages_max = messages_max
        self.bytes_max = bytes_max

    def holds(self, count: int, size_bytes: int) -> bool:
        """Is this depth within the limits? Filling them exactly is."""
        return not (0 <= self.messages_max < count or 0 <= self.bytes_max < size_bytes)

    def share(self, percent: float) -> Depth:
        """The depth at this share of the limits, rounded up (Qpid)."""
        shares = [ceil(limit * percent / 100) if limit >= 0 else -1 for limit in (self.messages_max, self.bytes_max)]
        return Depth(*shares)

    @property
    def is_nothing(self) -> bool:
        """Does not even one message fit?"""
        return self.messages_max == 0 or self.bytes_max == 0

    def __str__(self) -> str:
        limits = [f"{self.messages_max} messages"] if self.messages_max >= 0 else []
        if self.bytes_max >= 0:
            limits.append(f"{self.bytes_max} bytes")
        return " and ".join(limits) or "no limit"


class Overflow(ABC):
    """The axis "overflow": how many of the least entries must go, or what else happens at the depth's limit."""

    def __init__(self, depth: Depth | None = None, *, keeps_none: bool = False) -> None:
        self.depth = depth
        """What the queue may hold, where its policy counts that."""
        self.keeps_none = keeps_none
        """True when no arrival stays, not even for a consumer that waits for one."""

    @property
    def sheds(self) -> bool:
        """Do the least entries go while the depth is beyond its limit?"""
        return False

    @property
    def sheds_bytes(self) -> bool:
        """Do they go for their size, too? Then it matters in which order messages came."""
        return self.sheds and self.depth is not None and self.depth.bytes_max >= 0

    @property
    def refuses(self) -> bool:
        """Is a message refused that does not fit?"""
        return False

    @property
    def resumes_at(self) -> Depth | None:
        """Where senders wait beyond the limit: the depth at which they go on."""
        return None

    @property
    def pages(self) -> bool:
        """Does what does not fit go to pages?"""
        return False

    def excess(self, ready_count: int, added_count: int) -> int:
        """How many ready entries to give up after ``added_count`` entries were put on the queue, ``ready_count`` now
        ready.
        """
        return 0

    @abstractmethod
    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        """May one more come from a page, with so many ready, and so many and so much of the queue in memory at all?"""


class Unbounded(Overflow):
    """Keeps everything."""

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        return True


class Ring(Overflow):
    """Gives up at most one entry for each one added (seed: a ring made smaller does not purge, it only stops growing).

    Only ready entries count: what is in delivery or scheduled is neither counted nor given up.
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
        return ready_count < max(self.size, 1)  # what is in pages was taken in, so it has to come out


class DepthRing(Overflow):
    """RING: the least ready entries go until the depth is within its limits. What is in delivery counts and stays; the
    last ready entry stays when it arrives, however large it is.
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
    """REJECT: a message that does not fit is refused, for all queues that it would have come to."""

    @property
    def refuses(self) -> bool:
        return True

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        return True


class FlowControl(Overflow):
    """PRODUCER_FLOW_CONTROL: the message that breaches the limit is taken; what comes after it waits until the depth
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
    """FLOW_TO_DISK: what does not fit into memory goes to pages and comes back as the head is taken. What consumers
    hold counts, but never keeps the next one from them.
    """

    @property
    def pages(self) -> bool:
        return True

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        assert self.depth is not None
        return not ready_count or self.depth.holds(memory_count + 1, memory_bytes + 1)
