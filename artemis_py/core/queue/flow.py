"""How a queue keeps to its depth: what fits, who must wait, how many entries are too many. It moves no entry."""

from __future__ import annotations

from typing import final

from artemis_py.core.events import DROPPED, OVERFULL, UNDERFULL
from artemis_py.core.host import Host
from artemis_py.core.queue.contents import Contents
from artemis_py.core.queue.overflow import Overflow
from artemis_py.core.reference.reference import QueueReference


@final
class Flow:
    """Applies a queue's overflow policy to its contents."""

    __slots__ = ("_contents", "_host", "_reference", "overflow", "stopped")

    def __init__(self, reference: QueueReference, host: Host, contents: Contents, overflow: Overflow) -> None:
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
        depth, name = self.overflow.depth, self._reference.name
        what = f"a message of {size_bytes} bytes" if count == 1 else f"{count} messages of {size_bytes} bytes at once"
        if depth is not None and not depth.holds(count, size_bytes):
            return (
                f"Queue {name} can never take {what}: its limit is {depth}; send less at once, or give the queue "
                "a greater max-depth"
            )
        return (
            f"Queue {name} is full (limit {depth}): it has {self._contents.message_count} messages of "
            f"{self._contents.size_bytes} bytes together, so {what} does not fit; retry when consumers have taken some"
        )

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

    def excess(self, added_count: int) -> int:
        """How many ready entries are too many, after ``added_count`` were added to a ring."""
        return self.overflow.excess(self._contents.order.count, added_count)

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
                "depth_bytes": self._contents.tally.size_bytes,
            }
            self._host.note_event(DROPPED, self._reference, fields, count=count)

    def stop(self) -> None:
        """Something arrived. If it breaches the depth, senders wait from now on."""
        if self.overflow.resumes_at is not None and not self.stopped and self.is_too_deep:
            self.stopped = True
            self._host.note_event(OVERFULL, self._reference, self._fields(str(self.overflow.depth)))

    def resume(self, picked_count: int = 0) -> None:
        """Something left. If it was enough, senders go on. ``picked_count``: see ``Aftermath.run``."""
        if not self.stopped:
            return
        level = self.overflow.resumes_at
        if level is None or level.holds(self._contents.message_count + picked_count, self._contents.size_bytes):
            self.stopped = False
            self._host.note_event(UNDERFULL, self._reference, self._fields(str(level)))

    def _fields(self, limit: str) -> dict[str, str | int]:
        return {"messages": self._contents.message_count, "bytes": self._contents.size_bytes, "limit": limit}
