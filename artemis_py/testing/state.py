"""The state of a queue at one moment, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, final

from artemis_py.core.queue.why import messages

if TYPE_CHECKING:
    from artemis_py.core.queue.queue import Queue


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """All of it was true in the same turn. A queue that does not exist has 0 of everything."""

    exists: bool = False
    count: int = 0
    """Messages that are ready, in delivery, scheduled or in pages."""
    ready: int = 0
    delivering: int = 0
    """Sent to a consumer, and not settled."""
    scheduled: int = 0
    """Not before their time: scheduled messages, and redeliveries that are delayed."""
    paged: int = 0
    """In pages, and not in memory."""
    consumers: int = 0
    """Without browsers."""
    added: int = 0
    """All that ever came. This and the next four count since the queue was created, or the broker started."""
    acknowledged: int = 0
    expired: int = 0
    killed: int = 0
    """Dead letters, and what was purged or dropped."""
    replaced: int = 0
    """Given up for a newer value of the same key."""

    def differences(self, wanted: dict[str, int]) -> list[str]:
        """What is not as wanted, in words. Raises TypeError for a name that is no field."""
        unknown = wanted.keys() - {field.name for field in fields(self)}
        if unknown:
            names = ", ".join(field.name for field in fields(self))
            raise TypeError(f"a queue has no {', '.join(sorted(unknown))}; it has {names}")
        return [
            f"{name} is {getattr(self, name)}, not {value}"
            for name, value in wanted.items()
            if getattr(self, name) != value
        ]

    def __str__(self) -> str:
        if not self.exists:
            return "does not exist"
        now = [(self.ready, "ready"), (self.delivering, "in delivery"), (self.scheduled, "scheduled")]
        now += [(self.paged, "in pages")]
        before = [(self.acknowledged, "acknowledged"), (self.expired, "expired"), (self.killed, "killed")]
        before += [(self.replaced, "replaced")]
        held = messages(self.count)
        shown = ", ".join(f"{count} {what}" for count, what in now if count)
        gone = ", ".join(f"{count} {what}" for count, what in before if count)
        parts = [f"{held} ({shown})" if shown else held]
        if self.added != self.count or gone:
            parts.append(f"{self.added} came" + (f", {gone}" if gone else ""))
        return "; ".join(parts)


def state_of(queue: Queue | None) -> QueueState:
    """Look at a queue; only in the thread of the broker."""
    if queue is None:
        return QueueState()
    contents, counters = queue.contents, queue.contents.counters
    return QueueState(
        exists=True,
        count=contents.message_count,
        ready=contents.order.count,
        delivering=contents.delivering_count,
        scheduled=len(contents.scheduled),
        paged=contents.paged.count,
        consumers=queue.taker_count,
        added=counters.added,
        acknowledged=counters.acknowledged,
        expired=counters.expired,
        killed=counters.killed,
        replaced=counters.replaced,
    )
