"""How many messages each queue holds, for a retained log."""

from __future__ import annotations

from collections.abc import Iterable

from artemis_py.core.queue.queue import Queue
from artemis_py.records import Depth


def depths_of(queues: Iterable[Queue], coming: dict[int, list[int]]) -> list[Depth]:
    """The depths of durable queues that hold persistent messages. ``coming`` counts messages that are logged for a
    queue and not on it yet (``Placing.add_to``): for a reader of the log the queue has them.
    """
    if not coming:
        return [depth for queue in queues if (depth := queue.depth()) is not None]
    depths: list[Depth] = []
    for queue in queues:
        depth = queue.depth()
        more = coming.get(queue.id)
        if more is not None and not queue.temporary:
            count, size_bytes, scheduled_count = more
            here = depth or Depth(queue.id, 0, 0, 0, 0)
            depth = Depth(
                queue.id,
                here.count + count,
                here.size_bytes + size_bytes,
                here.delivering_count,
                here.scheduled_count + scheduled_count,
            )
        if depth is not None:
            depths.append(depth)
    return depths
