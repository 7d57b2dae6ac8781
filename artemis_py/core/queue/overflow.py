"""What is too much for a queue, and what a full one does: drop entries, refuse, make senders wait, or page."""

from __future__ import annotations

from math import ceil
from typing import final

from artemis_py.core.events import DROPPED, OVERFULL, UNDERFULL
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import QueueReference
from artemis_py.terminal_output import many

# ---- overflow --------------------------------------------------------------------------------------------------------
#
# What a full queue does: nothing, drop its least entries, refuse, make senders wait, or page. Artemis' ring counts
# ready entries. Qpid's policies count the queue's depth: messages in every state, by number and by encoded bytes.


@final
class DepthLimit:
    """``max-depth-messages`` and ``max-depth-bytes``; -1: no limit. A limit of 0 is one: nothing fits."""

    __slots__ = ("bytes_max", "messages_max")

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self.messages_max = messages_max
        self.bytes_max = bytes_max

    def holds(self, count: int, size_bytes: int) -> bool:
        """Is this depth within the limits? Reaching them exactly is."""
        return not (0 <= self.messages_max < count or 0 <= self.bytes_max < size_bytes)

    def share(self, percent: float) -> DepthLimit:
        """The depth at ``percent`` of the limits, rounded up (Qpid)."""
        shares = [ceil(limit * percent / 100) if limit >= 0 else -1 for limit in (self.messages_max, self.bytes_max)]
        return DepthLimit(*shares)

    @property
    def is_nothing(self) -> bool:
        """Is there no room even for one message?"""
        return self.messages_max == 0 or self.bytes_max == 0

    def __str__(self) -> str:
        messages = "1 message" if self.messages_max == 1 else f"{self.messages_max} messages"
        limits = [messages] if self.messages_max >= 0 else []
        if self.bytes_max >= 0:
            limits.append("1 byte" if self.bytes_max == 1 else f"{self.bytes_max} bytes")
        return " and ".join(limits) or "no limit"


class Overflow:
    """The axis "overflow": how many of the least entries a full queue drops, or what it does instead."""

    def __init__(self, depth: DepthLimit | None = None, *, keeps_none: bool = False) -> None:
        self.depth = depth
        """The limit on the queue's depth; None when the policy does not count depth."""
        self.keeps_none = keeps_none
        """True when no arrival stays, not even for a consumer that waits for one."""
        self.is_ring = False
        """May arrivals be too many, by the number of ready entries (``excess``)?"""

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
    def resumes_at(self) -> DepthLimit | None:
        """The depth at which waiting senders go on; None when senders never wait."""
        return None

    @property
    def pages(self) -> bool:
        """Does a message that does not fit go to pages?"""
        return False

    def excess(self, ready_count: int, added_count: int) -> int:
        """How many ready entries to drop, after ``added_count`` were added and ``ready_count`` are ready now."""
        return 0

    def has_space(self, ready_count: int, memory_count: int, memory_bytes: int) -> bool:
        """May one more message come from a page? ``ready_count`` entries are ready; ``memory_count`` and
        ``memory_bytes`` are everything that the queue has in memory. True: any number of them; who limits what is in
        memory says otherwise.
        """
        return True


class Unbounded(Overflow):
    """No limit: keeps everything."""


class Ring(Overflow):
    """Drops at most one entry for each one added. A ring made smaller does not purge, it only stops growing (seed).

    Only ready entries count. Messages in delivery or scheduled are neither counted nor dropped.
    """

    def __init__(self, size: int) -> None:
        super().__init__(keeps_none=size == 0)
        self.is_ring = True
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

    def __init__(self, depth: DepthLimit) -> None:
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


class FlowControl(Overflow):
    """PRODUCER_FLOW_CONTROL: the message that breaches the limit is taken. Senders of later ones wait until the depth
    has fallen to ``percent`` of the limits.
    """

    def __init__(self, depth: DepthLimit, percent: float) -> None:
        super().__init__(depth)
        self._resumes_at = depth.share(percent)

    @property
    def resumes_at(self) -> DepthLimit | None:
        return self._resumes_at


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


# ---- flow ------------------------------------------------------------------------------------------------------------
#
# How a queue keeps to its limit: what fits, who must wait, which entries are too many.


@final
class Flow:
    """Applies a queue's overflow policy to its contents."""

    __slots__ = ("_contents", "_host", "_reference", "overflow", "stopped")

    def __init__(self, reference: QueueReference, host: QueueHost, contents: Contents, overflow: Overflow) -> None:
        self._reference = reference
        self._host = host
        self._contents = contents
        self.overflow = overflow
        self.stopped = False
        """Do senders wait for the depth to fall (PRODUCER_FLOW_CONTROL)?"""

    @property
    def limits_senders(self) -> bool:
        """Must the depth be checked before a message is put on the queue?"""
        overflow = self.overflow
        return overflow.refuses or overflow.pages or overflow.resumes_at is not None

    def fits(self, count: int, size_bytes: int) -> bool:
        """Would ``count`` more messages, of ``size_bytes`` together, stay within the depth?"""
        depth = self.overflow.depth
        if depth is None:
            return True
        contents = self._contents
        if self.overflow.pages or self.overflow.sheds:
            return depth.holds(contents.memory_count + count, contents.memory_bytes + size_bytes)
        return depth.holds(contents.message_count + count, contents.size_bytes + size_bytes)

    def admits(self, size_bytes: int) -> bool:
        """May a message of ``size_bytes`` come now? Not if it would be refused, or its sender must wait."""
        return not self.stopped and (not self.overflow.refuses or self.fits(1, size_bytes))

    @property
    def may_go_on(self) -> bool:
        """May a sender that was made to wait go on?"""
        return self._reference.deleted or not self.stopped

    def why_full(self, count: int, size_bytes: int) -> str:
        """The reason for refusing ``count`` messages of ``size_bytes`` together. Qpid gives the same numbers."""
        if self.stopped:
            return self.why_stopped
        depth, name = self.overflow.depth, self._reference.name
        what = f"a message of {size_bytes} bytes" if count == 1 else f"{count} messages of {size_bytes} bytes at once"
        if depth is not None and not depth.holds(count, size_bytes):
            return (
                f"Queue {name} can never take {what}: its limit is {depth}; send less at once, or give the queue "
                "a greater max-depth"
            )
        return f"{self._holds_now}, so {what} does not fit; retry when consumers have taken some"

    @property
    def why_stopped(self) -> str:
        """Why senders wait (PRODUCER_FLOW_CONTROL)."""
        return f"{self._holds_now}, and takes more when it is down to {self.overflow.resumes_at}"

    @property
    def _holds_now(self) -> str:
        has = f"{many(self._contents.message_count, 'message')} of {self._contents.size_bytes} bytes together"
        return f"Queue {self._reference.name} is full (limit {self.overflow.depth}): it has {has}"

    @property
    def is_too_deep(self) -> bool:
        """Is the depth beyond its limit?"""
        depth = self.overflow.depth
        if depth is None:
            return False
        contents = self._contents
        if self.overflow.sheds:
            return not depth.holds(contents.memory_count, contents.memory_bytes)
        return not depth.holds(contents.message_count, contents.size_bytes)

    def excess(self, added_count: int, *, arriving: bool) -> int:
        """How many of the least ready entries go at most after ``added_count`` were added: as long as it ``is_beyond``.

        Messages in delivery count towards a depth and stay, so every ready entry may have to go. But the last one stays
        when it is ``arriving`` (Qpid does not drop the newcomer).
        """
        overflow, ready_count = self.overflow, self._contents.order.count
        if not overflow.sheds:
            return overflow.excess(ready_count, added_count)
        return ready_count - 1 if arriving and not overflow.keeps_none else ready_count

    @property
    def is_beyond(self) -> bool:
        """Is one more of the ``excess`` to go? All of a ring's are; a depth may fit before."""
        return not self.overflow.sheds or self.is_too_deep

    def trim(self, added_count: int, *, arriving: bool) -> None:
        """Drop the least entries that are too many."""
        dropped, most = 0, self.excess(added_count, arriving=arriving)
        while dropped < most and self.is_beyond:
            self._contents.give_up_least()
            dropped += 1
        self.note_dropped(dropped)

    def has_space(self) -> bool:
        """Does the ring, or the depth, leave room in memory for one more message from a page?"""
        overflow, contents = self.overflow, self._contents
        if overflow.depth is None:
            return overflow.has_space(contents.ready_count, 0, 0)
        return overflow.has_space(contents.ready_count, contents.memory_count, contents.memory_bytes)

    def note_dropped(self, count: int) -> None:
        """Report ``count`` entries that a ring dropped."""
        if count:
            fields: dict[str, str | int] = {
                "depth_messages": self._contents.message_count,
                "depth_bytes": self._contents.counters.size_bytes,
            }
            self._host.note_event(DROPPED, self._reference, fields, count=count)

    def stop(self) -> None:
        """Something arrived. If it breaches the depth, senders wait from now on."""
        if self.overflow.resumes_at is not None and not self.stopped and self.is_too_deep:
            self.stopped = True
            self._host.note_event(OVERFULL, self._reference, self._fields(str(self.overflow.depth)))

    def resume(self, popped_count: int = 0) -> None:
        """Something left, and senders wait. If it was enough, they go on. ``popped_count``: see ``AfterRemoval``."""
        level = self.overflow.resumes_at
        if level is None or level.holds(self._contents.message_count + popped_count, self._contents.size_bytes):
            self.stopped = False
            self._host.note_event(UNDERFULL, self._reference, self._fields(str(level)))

    def _fields(self, limit: str) -> dict[str, str | int]:
        return {"messages": self._contents.message_count, "bytes": self._contents.size_bytes, "limit": limit}
