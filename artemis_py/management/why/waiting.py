"""When messages are due that wait for their time: looked up in the queue's schedule, some items in each step."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from artemis_py.core.queue.queue import Queue
from artemis_py.management.why.asking import LOOKS_PER_STEP, Asking

_ITEMS_MAX: Final = 200_000


def first_due_ms(asking: Asking, queue: Queue, message_id: int = 0) -> Generator[None, None, int | None]:
    """The date at which the first scheduled message of a queue is due, or the one with this number; None if it was not
    among the items that were looked at.
    """
    broker, found = asking.broker, -1
    schedule = broker.timers.schedules.get(queue.id)
    start = 0
    while schedule is not None and start < min(len(schedule), _ITEMS_MAX):
        for due_ms, id in schedule.some(start, LOOKS_PER_STEP, broker.clock.shift_ms):
            if id not in queue.contents.scheduled or message_id not in (0, id):
                continue
            if found < 0 or due_ms < found:
                found = due_ms
            if message_id:
                return found
        start += LOOKS_PER_STEP
        yield None
    return found if found >= 0 else None
