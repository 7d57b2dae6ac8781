"""Why a queue delivers nothing (more): asked of its own gate, consumers and counters, a little in each step."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import (
    BACKLOG,
    DUE,
    GROUP_WAITS,
    GROUPS,
    HELD,
    PRIORITY,
    UNWANTED,
    WINDOW,
    ReadyLook,
    Reason,
    messages,
    span,
    what_is_leased,
    what_it_holds,
    why_address_paused,
    why_closed,
    why_no_room,
    why_nobody,
    why_none_in_pages,
    why_not_read,
    why_passed_over,
    why_pending,
)
from artemis_py.core.tasks import WAIT
from artemis_py.management.why.asking import LINES_MAX, LOOKS_PER_STEP, Asking, Findings, listed, some_at_a_time
from artemis_py.management.why.nothing import about_losses, about_nothing
from artemis_py.management.why.places import NOWHERE, Place, of_acceptor
from artemis_py.management.why.waiting import first_due_ms

LOOKS_MAX: Final = 10_000
"""Of so many ready messages it is looked at whether a consumer wants them."""
CHOOSERS_MAX: Final = 32
"""For so many consumers it is looked at which messages they want."""
_SYNC_TURNS: Final = 2
_EXAMPLES: Final = 3
_WINDOW_SIZE: Final = "stompConsumerWindowSize"
_OF_GROUPS: Final = (GROUPS, GROUP_WAITS)


def not_delivered(asking: Asking, queue: Queue) -> Findings:
    """The reasons, the first the most important; none if the queue has nothing to deliver and lost nothing."""
    contents, now_ms = queue.contents, asking.now_ms
    waits = contents.order.count > 0 or contents.paged.count > 0
    pending = why_pending(queue.state)
    if waits or pending is not None or (queue.is_held and queue.message_count):
        is_closed = _about_gate(asking, queue, now_ms)
        yield None
        if waits:
            yield from _about_consumers(asking, queue, is_closed=is_closed)
        elif pending is not None:
            asking.add_reason(why_nobody(queue.state))
        asking.add_reason(why_pending(queue.state))
    yield from _about_delivery(asking, queue)
    yield from _about_scheduled(asking, queue)
    if queue.filling is not None:
        asking.add("filling", "the queue is being filled from the log; what is published meanwhile comes after that")
    if not queue.message_count:
        yield from about_nothing(asking, queue)
    elif not queue.enabled:
        asking.add("disabled", "the queue is not enabled: no further messages come to it")
    about_losses(asking, queue)
    if queue.contents.delivering_count:
        yield from about_sync(asking)


def _about_gate(asking: Asking, queue: Queue, now_ms: int) -> bool:
    """What keeps the whole queue closed. Returns whether anything does."""
    basis = queue.state
    before = len(asking.found)
    asking.add_reason(why_closed(basis, now_ms, is_held=queue.is_held))
    if queue.gate.paused:  # to resume the queue would not be enough
        asking.add_reason(why_address_paused(basis))
    groups, held = queue.grouping.groups, queue.contents.counters.held_count
    if groups is not None and groups.owners.pausing and held:
        text = f"groups are handed out anew, which waits for {messages(held)} in delivery"
        asking.add("rebalance", text, used=held, unit="messages")
    return len(asking.found) > before


# ---- consumers -----------------------------------------------------------------------------------


def _about_consumers(asking: Asking, queue: Queue, *, is_closed: bool) -> Findings:
    nobody = why_nobody(queue.state)
    if nobody is not None:
        asking.add_reason(nobody)
        if queue.address.name in queue.host.dead_letter_addresses:
            asking.add("dead-letters", "messages that could not be delivered, or expired, wait here for an operator")
        return
    reasons: list[tuple[Consumer, Reason]] = []
    choosers: list[Consumer] = []
    others = 0
    takers = [one for one in queue.distribution.consumers if not one.browses]
    for some in some_at_a_time(takers):
        for consumer in some:
            reason = _why_no_room(queue, consumer, asking)
            if reason is not None:
                reasons += [] if is_closed and reason.kind == DUE else [(consumer, reason)]
            elif len(choosers) < CHOOSERS_MAX:
                choosers.append(consumer)
            else:
                others += 1
        yield None
    looks = {one: ReadyLook() for one in choosers}
    yield from _look(queue, looks)
    lacking = False
    for consumer, look in looks.items():
        found = why_passed_over(queue.state, consumer, look)
        if look.takes > 0:
            found = found or _why_not_yet(queue, consumer, looks, is_closed=is_closed)
        elif queue.distribution.is_served(consumer) and queue.contents.paged.count:
            reads_itself = queue.pages.search.reads_itself(consumer)
            lacking = lacking or not reads_itself
            found += _why_none_in_pages(queue, consumer, is_closed=is_closed) if reads_itself else []
        reasons += [(consumer, reason) for reason in found]
    order = {consumer.id: place for place, consumer in enumerate(takers)}
    reasons.sort(key=lambda found: order[found[0].id])
    yield None
    if len(takers) <= LINES_MAX:
        for consumer, reason in reasons:
            _add(asking, queue, consumer, reason)
            yield None
    else:
        _add_together(asking, queue, reasons, len(takers))
    if others:
        text = f"{others:,} more consumers have room, and it was not looked at what they want"
        asking.add("more-consumers", text, used=others, unit="consumers")
    _about_pages(asking, queue, lacking=lacking, is_closed=is_closed)


def _why_no_room(queue: Queue, consumer: Consumer, asking: Asking) -> Reason | None:
    reason = why_no_room(queue.state, consumer, asking.now_ms, queue.consumer_defaults.backlog_max)
    if reason is None or reason.kind != DUE:
        return reason
    client = asking.managed.health.client_of(consumer.owner)
    if client is not None and client.state == "stalled":
        return Reason("not-reading", "its client does not read from its socket")
    return reason


def _why_not_yet(
    queue: Queue, consumer: Consumer, looks: dict[Consumer, ReadyLook], *, is_closed: bool
) -> list[Reason]:
    """Why a consumer did not get yet what it may have; empty where a reason holds for all consumers."""
    if is_closed or _waits_for_earlier(queue):
        return []
    is_served = queue.distribution.is_served
    before = [one for one, look in looks.items() if one.priority > consumer.priority and look.takes > 0]
    if any(is_served(one) for one in before):
        some = "a consumer" if len(before) == 1 else f"{len(before)} consumers"
        text = f"its consumer-priority is {consumer.priority}, and {some} with a higher one may take the messages"
        return [Reason(PRIORITY, text)]
    return [Reason(DUE, "it takes messages; a turn of the broker is due")]


def _waits_for_earlier(queue: Queue) -> bool:
    """Must messages that are ready wait for earlier ones, which are being read from pages?"""
    backlogs = queue.contents.paged.backlogs.values()
    return any(backlog.has_early and backlog.reader.waits for backlog in backlogs)


def _look(queue: Queue, looks: dict[Consumer, ReadyLook]) -> Findings:
    """Look at the ready messages for each consumer."""
    if not looks:
        return
    order, groups = queue.contents.order, queue.grouping.groups
    cursor = order.open_cursor()
    looked = spent = 0
    try:
        while looked < LOOKS_MAX and (entry := cursor.advance()) is not None:
            looked += 1
            key = None if groups is None else groups.rule.group_of(entry.message)
            group = None if groups is None or key is None else groups.table.groups.get(key)
            for consumer, look in looks.items():
                look.looked += 1
                if not consumer.wants(entry.message):
                    look.unwanted += 1
                elif group is not None and queue.grouping.serves(consumer):
                    look.aside += group.aside > 0
                    look.owned += not group.aside and group.owner is not None and group.owner is not consumer
                spent += 1 + consumer.take_asked()
            if spent >= LOOKS_PER_STEP:
                spent = 0
                yield None
                if queue.deleted:
                    return
    finally:
        order.close_cursor(cursor)
    for consumer, look in looks.items():
        if not consumer.destructive and look.takes > 0 and not (yield from _has_news(queue, consumer)):
            look.shown = look.takes


def _has_news(queue: Queue, consumer: Consumer) -> Generator[None, None, bool]:
    """Is something ready that a consumer of a non-destructive queue was not shown yet?"""
    cursor, order = consumer.cursor, queue.contents.order
    if cursor is None or cursor.has_returns:
        return True
    ahead = order.open_cursor(cursor.point)
    looked = 0
    try:
        while looked < LOOKS_MAX and (entry := ahead.advance()) is not None:
            looked += 1
            if consumer.wants(entry.message):
                return True
            if not looked % LOOKS_PER_STEP:
                consumer.take_asked()
                yield None
    finally:
        consumer.take_asked()
        order.close_cursor(ahead)
    return looked == LOOKS_MAX


def _why_none_in_pages(queue: Queue, consumer: Consumer, *, is_closed: bool) -> list[Reason]:
    """Why a consumer that reads pages itself gets nothing from there."""
    search, count = queue.pages.search, queue.contents.paged.count
    readers = [search.reader_of(consumer, backlog) for backlog in queue.contents.paged.backlogs.values()]
    if any(reader is not None and reader.waits for reader in readers):
        return [Reason("page", f"it looks through {messages(count)} in pages, and a page is being read from the disk")]
    if all(reader is not None and reader.is_at_end for reader in readers):
        return [why_none_in_pages(consumer, count)]
    if is_closed:
        return []
    return [Reason(DUE, f"it looks through {messages(count)} in pages; a turn of the broker is due")]


def _about_pages(asking: Asking, queue: Queue, *, lacking: bool, is_closed: bool) -> None:
    """Why nothing comes from pages. ``lacking``: a consumer with room finds nothing in memory that it may have."""
    paged, reading = queue.contents.paged, queue.pages.reading
    text = f"{messages(paged.count)} {'is' if paged.count == 1 else 'are'} in pages"
    needs = lacking or (paged.count > 0 and not queue.contents.order.count and _some_take_any(queue))
    is_read = needs and any(backlog.reader.waits for backlog in paged.backlogs.values())
    if is_read or _waits_for_earlier(queue):
        asking.add("page", f"{text}, and a page is being read from the disk", used=paged.count, unit="messages")
    elif needs and (limit := why_not_read(queue.state, reading)) is not None:
        asking.add_reason(limit, more=f"; {text}", setting=str(limit.fields["setting"]))
    elif lacking and not is_closed:
        asking.add("page", f"{text}, and the next turn reads them", used=paged.count, unit="messages")


def _some_take_any(queue: Queue) -> bool:
    """Does a consumer get messages from pages through the queue, and not by itself?"""
    search = queue.pages.search
    return any(not one.browses and not search.reads_itself(one) for one in queue.distribution.consumers)


def _add(asking: Asking, queue: Queue, consumer: Consumer, reason: Reason) -> None:
    more = _owners(asking, queue, consumer) if reason.kind in _OF_GROUPS else ""
    is_default = reason.kind == UNWANTED and consumer.selector is queue.consumer_defaults.selector
    asking.add_reason(
        reason, about=asking.shown(consumer), connection=consumer.reader.connection, more=more,
        setting="consumer-selector" if is_default and consumer.selector is not None else "",
        place=_place_of(asking, queue, consumer, reason),
    )  # fmt: skip


def _place_of(asking: Asking, queue: Queue, consumer: Consumer, reason: Reason) -> Place | None:
    """What set the limit of one consumer; None: a setting of the reason's cause."""
    if reason.kind == BACKLOG and consumer.backlog_max < queue.consumer_defaults.backlog_max:
        return NOWHERE  # its SUBSCRIBE
    return _window_of(asking, consumer) if reason.kind == WINDOW else None


def _window_of(asking: Asking, consumer: Consumer) -> Place | None:
    """The parameter of the acceptor that gave a consumer its window; None: its SUBSCRIBE did."""
    client = asking.managed.health.client_of(consumer.owner)
    if client is None:
        return None
    place = of_acceptor(client.acceptor, _WINDOW_SIZE)
    return place if place.value == str(consumer.window_bytes) else None


def _add_together(asking: Asking, queue: Queue, reasons: list[tuple[Consumer, Reason]], count: int) -> None:
    """With many consumers: how many there are for each reason, and which."""
    kinds: dict[str, list[tuple[Consumer, Reason]]] = {}
    for consumer, reason in reasons:
        kinds.setdefault(reason.kind, []).append((consumer, reason))
    for kind, some in sorted(kinds.items(), key=lambda item: -len(item[1])):
        who = listed([asking.shown(consumer) for consumer, _ in some[:_EXAMPLES]])
        if len(some) > _EXAMPLES:
            who += f" and {len(some) - _EXAMPLES} more"
        text = some[0][1].text
        if kind == UNWANTED:
            text = f"their selectors exclude what is ready; the first: {text}"
        more = _owners(asking, queue, some[0][0]) if kind in _OF_GROUPS else ""
        asking.add(
            kind, f"{text}{more} ({who})", about=f"{len(some):,} of {count:,} consumers", used=len(some), limit=count,
            unit="consumers",
        )  # fmt: skip


def _owners(asking: Asking, queue: Queue, consumer: Consumer) -> str:
    """Who has the groups of the first ready messages."""
    groups = queue.grouping.groups
    if groups is None:
        return ""
    told: dict[str, str] = {}
    cursor = queue.contents.order.open_cursor()
    try:
        for _ in range(LINES_MAX):
            entry = cursor.advance()
            if entry is None:
                break
            key = groups.rule.group_of(entry.message)
            group = None if key is None else groups.table.groups.get(key)
            if group is None or key is None or key in told:
                continue
            if group.aside:
                told[key] = f"group {key} waits for another attempt at one of its messages"
            elif group.owner is not None and group.owner is not consumer:
                told[key] = f"group {key} belongs to {asking.shown(group.owner)}"
    finally:
        queue.contents.order.close_cursor(cursor)
    return "".join(f"; {text}" for text in list(told.values())[:_EXAMPLES])


# ---- what is out ---------------------------------------------------------------------------------


def _about_delivery(asking: Asking, queue: Queue) -> Findings:
    """Who holds messages without an acknowledgement, and when leases end."""
    basis, now_ms = queue.state, asking.now_ms
    found: list[tuple[Consumer, Reason]] = []
    more = 0
    if queue.contents.delivering_count or queue.gate.unconfirmed_count:
        for some in some_at_a_time(queue.distribution.consumers):
            for consumer in some:
                reason = what_it_holds(basis, consumer, now_ms)
                if reason is not None and len(found) < LINES_MAX:
                    found.append((consumer, reason))
                elif reason is not None:
                    more += 1
            yield None
    for consumer, reason in found:
        oldest_ms = 0
        held = next(iter(consumer.held.values()), None)
        if held is not None and "oldest_ms" not in reason.fields and held.message.timestamp_ms:
            oldest_ms = max(now_ms - held.message.timestamp_ms, 0)
        late = f"; the oldest came {span(oldest_ms)} ago" if oldest_ms else ""
        asking.add(
            HELD, f"{asking.shown(consumer)} {reason.text}{late}", connection=consumer.reader.connection,
            used=len(consumer.held), unit="messages",
        )  # fmt: skip
    if more:
        asking.add(HELD, f"… and {more} more consumers have messages", used=more, unit="consumers")
    leased = what_is_leased(basis, now_ms)
    if leased is not None:
        asking.add_reason(leased)


def about_sync(asking: Asking) -> Findings:
    """Is the disk behind by more than a turn?"""
    broker, health = asking.broker, asking.managed.health
    lsn = broker.log.last_lsn
    for _ in range(_SYNC_TURNS):
        if health.durable_lsn >= lsn:
            return
        yield WAIT
    if health.durable_lsn < lsn:
        asking.add(
            "sync", f"{lsn - health.durable_lsn} records are not on the disk yet, and what depends on them waits",
            used=lsn - health.durable_lsn, unit="records",
        )  # fmt: skip


def _about_scheduled(asking: Asking, queue: Queue) -> Findings:
    scheduled = queue.contents.scheduled
    if not scheduled:
        return
    tried = 0
    for some in some_at_a_time(list(islice(scheduled, LOOKS_MAX))):
        tried += sum(1 for message_id in some if (one := scheduled.get(message_id)) is not None and one.attempts)
        yield None
    count = len(scheduled)
    looked = min(count, LOOKS_MAX)
    due_ms = yield from first_due_ms(asking, queue)
    of_all = "" if looked == count else f", of the first {looked:,} of {count:,},"
    until = "" if due_ms is None else f": the first is due in {span(due_ms - asking.now_ms)}"
    if tried:
        text = f"{messages(tried)}{of_all} must wait for another attempt after a failed delivery{until}"
        asking.add("redelivery-delay", text, used=tried, unit="messages")
    if looked > tried:
        text = f"{messages(looked - tried)}{of_all} must wait for their time{until}"
        asking.add("scheduled", text, used=looked - tried, unit="messages")
