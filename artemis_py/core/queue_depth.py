"""A queue's part of keeping to its depth: giving up the least, making senders wait, or saying that it is full."""

from __future__ import annotations

from abc import abstractmethod

from artemis_py.core.budget import OVERDRAFT_UNITS
from artemis_py.core.entry import Entry
from artemis_py.core.events import DROPPED, OVERFULL, UNDERFULL
from artemis_py.core.queue_state import QueueState


class QueueDepth(QueueState):
    """The part of a queue that counts its depth, where the overflow policy has one."""

    @abstractmethod
    def dispatch(self, now_ms: int, floor: int = 0) -> None:
        """Offer ready entries to consumers, until the turn's budget has come down to ``floor``."""

    def offer_first(self, now_ms: int) -> None:
        """Before anything is refused or given up, offer ready entries to consumers, also when the budget is spent."""
        self.dispatch(now_ms, -OVERDRAFT_UNITS)

    @abstractmethod
    def give_up(self, entry: Entry) -> None:
        """An entry that is out of the order already was given up."""

    @property
    def limits_senders(self) -> bool:
        """Does it depend on the queue's depth what becomes of a message before it is on the queue?"""
        overflow = self.overflow
        return overflow.refuses or overflow.pages or overflow.resumes_at is not None

    @property
    def size_bytes(self) -> int:
        """Encoded size of everything on the queue; what was picked for a consumer that settles on send is not."""
        return self.tally.size_bytes - self._picked_bytes

    @property
    def memory_count(self) -> int:
        """Ready, in delivery and scheduled: what is not in pages."""
        return self.order.count + self.tally.held_count + len(self.scheduled)

    @property
    def memory_bytes(self) -> int:
        """Encoded size of these."""
        return self.size_bytes - self.paged_size_bytes

    def fits(self, count: int, size_bytes: int) -> bool:
        """Would so many messages more, of so many bytes together, stay within the depth?"""
        depth = self.overflow.depth
        if depth is None:
            return True
        if self.overflow.pages or self.overflow.sheds:
            return depth.holds(self.memory_count + count, self.memory_bytes + size_bytes)
        return depth.holds(self.message_count + count, self.size_bytes + size_bytes)

    def admits(self, size_bytes: int) -> bool:
        """May a message of so many bytes come now? Not if it would be refused, or its sender has to wait."""
        return not self.flow_stopped and (not self.overflow.refuses or self.fits(1, size_bytes))

    @property
    def may_go_on(self) -> bool:
        """May a sender that was made to wait go on?"""
        return self.deleted or not self.flow_stopped

    def stays_stopped(self, now_ms: int) -> bool:
        """Do senders have to wait, also after consumers have had their chance?"""
        if self.flow_stopped:
            self.offer_first(now_ms)
        return not self.may_go_on

    def why_full(self, count: int, size_bytes: int) -> str:
        """What a sender is told of whom so many messages, of so many bytes together, were refused (Qpid tells the same
        numbers).
        """
        depth = self.overflow.depth
        what = f"a message of {size_bytes} bytes" if count == 1 else f"{count} messages of {size_bytes} bytes at once"
        if depth is not None and not depth.holds(count, size_bytes):
            return (
                f"Queue {self.name} can never take {what}: its limit is {depth}; send less at once, or give the queue "
                "a greater max-depth"
            )
        return (
            f"Queue {self.name} is full: it has {self.message_count} messages of {self.size_bytes} bytes together, its "
            f"limit is {depth}, and there is no room for {what}; retry when consumers have taken some"
        )

    def is_too_deep(self) -> bool:
        depth = self.overflow.depth
        if depth is None:
            return False
        if self.overflow.sheds:
            return not depth.holds(self.memory_count, self.memory_bytes)
        return not depth.holds(self.message_count, self.size_bytes)

    def _shed(self, *, arriving: bool) -> None:
        """Give up the least ready entries until the depth fits. What is in delivery counts and stays, so everything may
        have to go; but the last one stays when it has just arrived (Qpid does not take the newcomer for it).
        """
        last = 1 if arriving and not self.overflow.keeps_none else 0
        dropped = 0
        while self.order.count > last and self.is_too_deep():
            self.give_up(self.order.pop_least())
            dropped += 1
        self.note_dropped(dropped)

    def note_dropped(self, count: int) -> None:
        if count:
            fields: dict[str, str | int] = {"messages": self.message_count, "bytes": self.tally.size_bytes}
            self.host.note_event(DROPPED, self._own, fields, count=count)

    def stop_flow(self) -> None:
        """The depth was breached: from now on senders wait."""
        if self.overflow.resumes_at is not None and not self.flow_stopped and self.is_too_deep():
            self.flow_stopped = True
            self.host.note_event(OVERFULL, self._own, self._depth_fields(str(self.overflow.depth)))

    def _resume_flow(self) -> None:
        """Something left: senders go on when it was enough."""
        level = self.overflow.resumes_at
        if self.flow_stopped and (level is None or level.holds(self.message_count, self.size_bytes)):
            self.flow_stopped = False
            self.host.note_event(UNDERFULL, self._own, self._depth_fields(str(level)))

    def _depth_fields(self, limit: str) -> dict[str, str | int]:
        return {"messages": self.message_count, "bytes": self.size_bytes, "limit": limit}
