"""Why the broker is slow: turns, syncs, consumers, disks and memory, ranked by how much they weigh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import messages
from artemis_py.management.why.question import (
    LINES_MAX,
    Findings,
    Question,
    connections,
    full_disk,
    listed,
    some_at_a_time,
)

_NS_PER_MS: Final = 1_000_000
_PERCENTILE: Final = 0.99
_TURN_SLOW_S: Final = 0.025
_TURN_LONG_NS: Final = 50 * _NS_PER_MS
_SYNC_SLOW_S: Final = 0.025
_NEARLY: Final = 80
"""From so many percent of a limit on, its use is reported."""
_HEADROOM_BYTES: Final = 1 << 30
_LOOKS_PER_QUEUE: Final = 200
_FULL: Final = 100


def slow(question: Question) -> Findings:
    """What makes the broker slow now, or has since the start, the worst first."""
    weights: list[int] = []

    def add(weight: int, code: str, text: str, **numbers: Any) -> None:
        question.add(code, text, **numbers)
        weights.append(weight)

    health, broker = question.managed.health, question.broker
    _about_times(question, add)
    yield None
    if broker.memory.disk_full:
        text, figures = full_disk(question)
        add(_FULL, "disk", f"{text}; new messages meet the disk-full-policy of their address", **figures)
    else:
        headroom = health.headroom_bytes()
        if headroom is not None and headroom < _HEADROOM_BYTES:
            text = f"{max(headroom, 0)} bytes may be written until a disk counts as full"
            add(_NEARLY, "disk", text, used=max(headroom, 0), unit="bytes")
    yield None
    holdings = broker.holdings
    if holdings.bytes_max > 0 and holdings.total_bytes * 100 >= _NEARLY * holdings.bytes_max:
        text = f"{holdings.total_bytes:,} of {holdings.bytes_max:,} bytes are held for clients"
        text += f"; {holdings.refused_count:,} requests refused, {holdings.cut_off_count:,} connections closed"
        percent = holdings.total_bytes * 100 // holdings.bytes_max
        add(percent, "memory", text, used=holdings.total_bytes, limit=holdings.bytes_max, unit="bytes")
    awaited = list(health.awaited())
    waiting = sum([count for _, count in awaited])
    if waiting:
        names = [one if isinstance(one, str) else one.name for one, _ in awaited]
        waited_s = health.blocked_ns() / 1e9
        text = f"{connections(waiting)} for room ({listed(names)}); senders have waited {waited_s:.1f} s altogether"
        add(_NEARLY, "senders-wait", text, used=waiting, unit="connections")
    if health.is_busy:
        add(_NEARLY // 2, "readers-wait", "turns take most of the time, so log downloads and compaction give way")
    yield None
    yield from _about_queues(question, weights)
    if not question.findings:
        question.add("nothing-slow", _all_well(question))
        return
    ranked = sorted(range(len(weights)), key=lambda place: -weights[place])
    question.findings = [question.findings[place] for place in ranked]


def _about_times(question: Question, add: Callable[..., None]) -> None:
    health = question.managed.health
    turn_s = percentile(health.turn_bounds_s, health.turn_buckets)
    if turn_s > _TURN_SLOW_S or health.turn_ns_max > _TURN_LONG_NS:
        text = f"{health.turns:,} turns: 99 of 100 end within {turn_s * 1000:g} ms, the longest took "
        text += f"{health.turn_ns_max / _NS_PER_MS:.1f} ms"
        weight = min(round(turn_s * 1000), 99) if turn_s > _TURN_SLOW_S else 1
        add(weight, "turns", text, used=health.turn_ns_max // _NS_PER_MS, unit="ms")
    syncs = health.sync_times
    if syncs is None or not sum(syncs.counts):
        return
    sync_s = percentile([bound / syncs.unit for bound in syncs.bounds], syncs.counts)
    if sync_s > _SYNC_SLOW_S:
        mean_ms = 1000 * syncs.sum / syncs.unit / sum(syncs.counts)
        text = f"{sum(syncs.counts):,} syncs: 99 of 100 end within {sync_s * 1000:g} ms, on average {mean_ms:.1f} ms"
        add(min(round(sync_s * 1000), 99), "syncs", text, used=round(sync_s * 1000), unit="ms")


def percentile(bounds: Sequence[float], counts: Sequence[int]) -> float:
    """The bound below which 99 of 100 values are; for those above all bounds, twice the last."""
    needed = sum(counts) * _PERCENTILE
    counted = 0
    for bound, count in zip(bounds, counts, strict=False):
        counted += count
        if counted >= needed:
            return bound
    return 2 * bounds[-1] if bounds else 0.0


def _about_queues(question: Question, weights: list[int]) -> Findings:
    """Queues with consumers that take nothing, and addresses that page."""
    stuck: list[tuple[int, Queue]] = []
    paging = 0
    first: Queue | None = None
    for some in some_at_a_time(list(question.broker.queues.values())):
        for queue in some:
            if queue.contents.order.count and queue.taker_count:
                # a sample of many consumers: it is about queues, not about each consumer
                consumers = queue.distribution.consumers[:_LOOKS_PER_QUEUE]
                count = len([one for one in consumers if not one.browses and not one.has_room])
                if count:
                    stuck.append((count, queue))
                    yield None
            if queue.contents.paged.count:
                paging += 1
                first = first or queue
        yield None
    stuck.sort(key=lambda one: -one[0])
    for count, queue in stuck[:LINES_MAX]:
        ready = queue.contents.order.count
        text = f"{count:,} of {queue.taker_count:,} consumers have no room for more, and {messages(ready)} are ready"
        question.add(
            "slow-consumers", text, about=f"queue {queue.name}", used=count, limit=queue.taker_count, unit="consumers",
            queue=queue, help=f"artemis-py why not-delivered {queue.name} says what holds each of them.",
        )  # fmt: skip
        weights.append(min(count, 60))
    if first is not None:
        have = "queue has" if paging == 1 else "queues have"
        text = f"{paging:,} {have} messages in pages, such as {first.name}"
        question.add("paging", text, used=paging, unit="queues", queue=first)
        weights.append(10)


def _all_well(question: Question) -> str:
    health = question.managed.health
    turn_s = percentile(health.turn_bounds_s, health.turn_buckets)
    text = f"99 of 100 turns end within {turn_s * 1000:g} ms (longest {health.turn_ns_max / _NS_PER_MS:.1f} ms)"
    syncs = health.sync_times
    if syncs is not None and any(syncs.counts):
        sync_s = percentile([bound / syncs.unit for bound in syncs.bounds], syncs.counts)
        text += f", and 99 of 100 syncs within {sync_s * 1000:g} ms"
    return text
