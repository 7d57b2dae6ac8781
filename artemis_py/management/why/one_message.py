"""Why one message is not delivered: where it is, what stands before it, and who may have it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import (
    EXCLUSIVE,
    GROUPS,
    HELD,
    UNWANTED,
    messages,
    span,
    why_closed,
    why_no_room,
    why_nobody,
    why_pending,
)
from artemis_py.management.why.asking import LINES_MAX, LOOKS_PER_STEP, Asking, Findings, listed, some_at_a_time
from artemis_py.management.why.waiting import first_due_ms

_READY_MAX: Final = 100_000
"""Among so many ready messages it is looked for."""
_CONSUMERS_MAX: Final = 1_000
_OF_TAKERS: Final = {UNWANTED: "do not want it", EXCLUSIVE: "want it and are in reserve"}
"""What is said of consumers, by the word of the reason."""


def about_message(asking: Asking, queue: Queue, message_id: int) -> Findings:
    """Why the message with this number is not delivered."""
    if message_id in queue.contents.scheduled:
        yield from _scheduled(asking, queue, message_id)
        return
    holder = yield from _holder(queue, message_id)
    if holder is not None:
        came_ms = holder.held[message_id].message.timestamp_ms
        since = f"; it came {span(asking.now_ms - came_ms)} ago" if came_ms else ""
        asking.add(
            HELD, f"{asking.shown(holder)} has it and did not acknowledge{since}", connection=holder.reader.connection
        )  # fmt: skip
        return
    entry, before = yield from _ready(queue, message_id)
    if entry is None:
        _not_found(asking, queue, before)
        return
    closed = why_closed(queue.state, asking.now_ms, is_held=queue.is_held)
    asking.add_reason(closed)
    asking.add_reason(why_nobody(queue.state))
    if before:
        asking.add("behind", f"{messages(before)} before it", used=before, unit="messages")
    _about_group(asking, queue, entry)
    yield from _about_takers(asking, queue, entry)
    if not asking.found:
        asking.add("due", "nothing holds it back: it goes out with the next turn that has room")


def _scheduled(asking: Asking, queue: Queue, message_id: int) -> Findings:
    entry = queue.contents.scheduled[message_id]
    due_ms = yield from first_due_ms(asking, queue, message_id)
    until = "" if due_ms is None else f", which is in {span(due_ms - asking.now_ms)}"
    if entry.attempts:
        text = f"{entry.attempts} deliveries have failed, and it waits for the next attempt{until}"
        asking.add("redelivery-delay", text, used=entry.attempts, unit="attempts")
    else:
        asking.add("scheduled", f"it waits for its time{until}")


def _holder(queue: Queue, message_id: int) -> Generator[None, None, Consumer | None]:
    for some in some_at_a_time(queue.distribution.consumers):
        for consumer in some:
            if message_id in consumer.held and not consumer.browses:
                return consumer
        yield None
    return None


def _ready(queue: Queue, message_id: int) -> Generator[None, None, tuple[Entry | None, int]]:
    """The ready message, and how many stand before it; without it, how many were looked at."""
    order = queue.contents.order
    cursor = order.open_cursor()
    before = 0
    try:
        while before < _READY_MAX and (entry := cursor.advance()) is not None:
            if entry.message.id == message_id:
                return entry, before
            before += 1
            if not before % LOOKS_PER_STEP:
                yield None
                if queue.deleted:
                    break
    finally:
        order.close_cursor(cursor)
    return None, before


def _not_found(asking: Asking, queue: Queue, looked: int) -> None:
    pending = why_pending(queue.state)
    paged = queue.contents.paged.count
    if pending is not None:
        asking.add_reason(pending)
    elif paged:
        text = f"it is none of the {looked:,} ready in memory; {messages(paged)} of the queue are in pages"
        asking.add("in-pages", text, used=paged, unit="messages")
    else:
        asking.add("not-there", f"it is none of the {looked:,} ready, and nobody holds it")


def _about_group(asking: Asking, queue: Queue, entry: Entry) -> None:
    groups = queue.grouping.groups
    key = None if groups is None else groups.rule.group_of(entry.message)
    group = None if groups is None or key is None else groups.table.groups.get(key)
    if group is None:
        return
    if group.aside:
        asking.add("group-waits", f"its group {key} waits for another attempt at {messages(group.aside)}")
    elif group.owner is not None and not group.owner.has_room:
        who = asking.shown(group.owner)
        text = f"its group {key} belongs to {who}, which holds {messages(len(group.owner.held))} and has no room"
        asking.add(GROUPS, text, connection=group.owner.reader.connection)


def _about_takers(asking: Asking, queue: Queue, entry: Entry) -> Findings:
    """Which consumers want it, and have they room?"""
    takers = [one for one in queue.distribution.consumers[:_CONSUMERS_MAX] if not one.browses]
    found: dict[str, list[Consumer]] = {UNWANTED: []}
    for start in range(0, len(takers), LINES_MAX):
        for consumer in takers[start : start + LINES_MAX]:
            reason = why_no_room(queue.state, consumer, asking.now_ms, queue.consumer_defaults.backlog_max)
            if not consumer.wants(entry.message):
                found[UNWANTED].append(consumer)
            elif reason is not None:
                found.setdefault(reason.kind, []).append(consumer)
            elif not queue.distribution.is_served(consumer):
                found.setdefault(EXCLUSIVE, []).append(consumer)
            consumer.take_asked()
        yield None
    count = len(takers)
    for kind, some in found.items():
        if not some:
            continue
        what = _OF_TAKERS.get(kind, "want it and have no room")
        who = listed([f"consumer {one.id}" for one in some])
        asking.add(
            kind, f"{len(some):,} of {count:,} consumers {what}: {who}", used=len(some), limit=count, unit="consumers"
        )  # fmt: skip
