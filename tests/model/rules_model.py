"""What a queue's settings mean for one letter: when it is over, when it may be delivered, which group it is in."""

from __future__ import annotations

from zlib import crc32

from tests.model.plans import FALLBACK, SHARED, QueuePlan
from tests.model.reader_model import Letter


def value_of(letter: Letter) -> int:
    """What a queue is ordered by that is ordered by a value; see ``plans.BY_VALUE``."""
    return max(letter.priority % 5 * 4 - 3, 0)


def expires_ms(plan: QueuePlan, letter: Letter) -> int:
    """When a letter is over here: it may live longer than it asks, and no longer than the queue says; 0: never."""
    times = [letter.arrived_ms + plan.ttl_max] if plan.ttl_max else []
    own_ms = letter.expires_ms or (letter.arrived_ms + plan.ttl_usual if plan.ttl_usual else 0)
    if own_ms:
        times.append(max(own_ms, letter.arrived_ms + plan.ttl_min))
    return min(times, default=0)


def is_over(plan: QueuePlan, letter: Letter, now_ms: int) -> bool:
    """Has its time come? (Expired when now is at or after it.)"""
    return 0 < expires_ms(plan, letter) <= now_ms


def valid_ms(plan: QueuePlan, letter: Letter, now_ms: int) -> int:
    """From when on a letter that comes now may be delivered: when the time in it is past; 0: at once."""
    return letter.held_until_ms + 1 if plan.holds and letter.held_until_ms >= now_ms else 0


def group_of(plan: QueuePlan, letter: Letter) -> str | None:
    """The group of a letter, None when it is in none. With buckets, the bucket stands for all groups in it."""
    if not plan.is_grouped:
        return None
    if plan.groups == SHARED:
        return letter.group or FALLBACK
    if letter.group is not None and plan.buckets > 0:
        return f"bucket {crc32(letter.group.encode()) % plan.buckets}"
    return letter.group
