"""What an operator changes while the broker runs."""

from __future__ import annotations

from typing import final

from artemis_py.config.tables.fields import RING
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.events import OPERATION
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.attributes import set_ring_size
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.tasks import Task
from artemis_py.errors import BrokerError, NotFoundError


@final
class QueueOperations:
    """Changes to queues by name. They survive a restart, and are in the operational log."""

    __slots__ = ("_host", "_registry")

    def __init__(self, host: QueueHost, registry: Registry) -> None:
        self._host = host
        self._registry = registry

    def set_ring_size(self, queue_name: str, ring_size: int) -> None:
        """Change a ring while it runs; -1: it is no ring; 0 keeps nothing. A smaller ring purges nothing: it stops
        growing. Raises NotFoundError for an unknown queue, BrokerError for a size below -1 and for a queue that may not
        be a ring.
        """
        queue = self._queue(queue_name)
        if not RING.accepts(ring_size):
            raise BrokerError(f"ring-size must be {RING.allowed}, not {ring_size}")
        set_ring_size(queue, ring_size)
        self._note(queue, f"set ring-size to {ring_size}", "ring-size")

    def pause(self, queue_name: str) -> None:
        """Stop a queue's dispatch; arrivals go on. Raises NotFoundError."""
        queue = self._queue(queue_name)
        queue.pause()
        self._note(queue, "pause", "pause")

    def resume(self, queue_name: str) -> None:
        """Let a paused queue dispatch again. Raises NotFoundError."""
        queue = self._queue(queue_name)
        queue.resume()
        self._note(queue, "resume", "resume")

    def purge(self, queue_name: str, now_ms: int) -> tuple[int, Task | None]:
        """Remove every message that nobody has. Returns how many that are, and the work that is left. Raises
        NotFoundError.
        """
        queue = self._queue(queue_name)
        count = queue.unheld_count
        unfinished = queue.purge(PURGED, now_ms)
        self._tell(queue, "purge", "purge")
        return count, unfinished

    def delete(self, queue_name: str, now_ms: int) -> tuple[int, Task | None]:
        """Delete a queue that nobody consumes, with its messages. Returns how many these are, and the work that is
        left. Raises NotFoundError, BrokerError while it has consumers.
        """
        queue = self._queue(queue_name)
        if queue.consumer_count:
            count = queue.consumer_count
            who = "1 consumer; close its connection" if count == 1 else f"{count} consumers; close their connections"
            raise BrokerError(f"Queue {queue_name} has {who} first")
        count = queue.message_count
        self._tell(queue, "delete", "delete")
        return count, self._registry.delete_queue(queue, now_ms)

    def _note(self, queue: Queue, operation: str, kind: str) -> None:
        self._registry.note_queue(queue)
        self._tell(queue, operation, kind)

    def _tell(self, queue: Queue, operation: str, kind: str) -> None:
        self._host.note_event(OPERATION, queue.reference, {"operation": operation}, kind=kind)

    def _queue(self, name: str) -> Queue:
        queue = self._registry.bindings.queues.get(name)
        if queue is None:
            raise NotFoundError(f"Queue {name} does not exist")
        return queue
