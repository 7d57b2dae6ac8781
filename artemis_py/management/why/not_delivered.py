"""Why a queue, or one of its messages, is not delivered: asked of its gate, consumers and counters, a little in each
step.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import Final

from artemis_py.config.problems import nearest
from artemis_py.core.addresses.address import Address
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import (
    BACKLOG,
    DUE,
    EXCLUSIVE,
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
from artemis_py.management.why.losses import about_losses, sent_count
from artemis_py.management.why.question import (
    LINES_MAX,
    LOOKS_PER_STEP,
    NOWHERE,
    Findings,
    Place,
    Question,
    address_of,
    listed,
    of_acceptor,
    some_at_a_time,
)

LOOKS_MAX: Final = 10_000
"""So many ready messages are compared with what consumers want."""
_CHOOSERS_MAX: Final = 32
"""For so many consumers the ready messages are compared with what they want."""
_SYNC_TURNS: Final = 2
_EXAMPLES: Final = 3
_WINDOW_SIZE: Final = "stompConsumerWindowSize"
_OF_GROUPS: Final = (GROUPS, GROUP_WAITS)


def not_delivered(question: Question, queue: Queue) -> Findings:
    """The reasons, the first the most important; none if the queue has nothing to deliver and lost nothing."""
    contents, now_ms = queue.contents, question.now_ms
    waits = contents.order.count > 0 or contents.paged.count > 0
    pending = why_pending(queue.state)
    if waits or pending is not None or (queue.is_held and queue.message_count):
        is_closed = _about_gate(question, queue, now_ms)
        yield None
        if waits:
            yield from _about_consumers(question, queue, is_closed=is_closed)
        elif pending is not None:
            question.add_reason(why_nobody(queue.state))
        question.add_reason(why_pending(queue.state))
    yield from _about_delivery(question, queue)
    yield from _about_scheduled(question, queue)
    if queue.filling is not None:
        question.add("filling", "the queue is being filled from the log; what is published meanwhile comes after that")
    if not queue.message_count:
        yield from _about_nothing(question, queue)
    elif not queue.enabled:
        question.add("disabled", "the queue is not enabled: no further messages come to it")
    about_losses(question, queue)
    if queue.contents.delivering_count:
        yield from _about_sync(question)


def _about_gate(question: Question, queue: Queue, now_ms: int) -> bool:
    """What keeps the whole queue closed. Returns whether anything does."""
    basis = queue.state
    before = len(question.findings)
    question.add_reason(why_closed(basis, now_ms, is_held=queue.is_held))
    if queue.gate.paused:  # to resume the queue would not be enough
        question.add_reason(why_address_paused(basis))
    groups, held = queue.grouping.groups, queue.contents.counters.held_count
    if groups is not None and groups.owners.pausing and held:
        text = f"groups are handed out anew, which waits for {messages(held)} in delivery"
        question.add("rebalance", text, used=held, unit="messages")
    return len(question.findings) > before


# ---- consumers -----------------------------------------------------------------------------------


def _about_bridges(question: Question, queue: Queue) -> bool:
    """Bridges that would consume the queue if they were connected. Returns whether there are any."""
    before = len(question.findings)
    for bridge in question.managed.bridges().values():
        if bridge.config.queue_name.rpartition("::")[2] == queue.name and not bridge.connected_count:
            text = f"bridge {bridge.name} to {bridge.config.places} is {bridge.state}"
            text += f": {bridge.reason}" if bridge.reason else ""
            place = Place("queue-name", bridge.config.queue_name, f"{bridge.config.origin} (bridge {bridge.name})")
            question.add("bridge", text, place=place)
    return len(question.findings) > before


def _about_consumers(question: Question, queue: Queue, *, is_closed: bool) -> Findings:
    is_for_bridge = _about_bridges(question, queue)
    nobody = why_nobody(queue.state)
    if nobody is not None:
        if queue.address.name in queue.host.dead_letter_addresses:
            question.add("dead-letters", "messages that could not be delivered, or expired, wait here for an operator")
        elif queue.keeps_messages:
            question.add("kept", f"{nobody.text}, and none is needed: the queue keeps its messages")
        elif not is_for_bridge:
            question.add_reason(nobody)
        return
    reasons: list[tuple[Consumer, Reason]] = []
    choosers: list[Consumer] = []
    others = 0
    takers = [one for one in queue.distribution.consumers if not one.browses]
    for some in some_at_a_time(takers):
        for consumer in some:
            reason = _why_no_room(queue, consumer, question)
            if reason is not None:
                reasons += [] if is_closed and reason.kind == DUE else [(consumer, reason)]
            elif len(choosers) < _CHOOSERS_MAX:
                choosers.append(consumer)
            else:
                others += 1
        yield None
    looks = {one: ReadyLook() for one in choosers}
    yield from _check_ready(queue, looks)
    lacking = False
    for consumer, look in looks.items():
        own_reasons = why_passed_over(queue.state, consumer, look)
        if look.takes > 0:
            own_reasons = own_reasons or _why_not_yet(queue, consumer, looks, is_closed=is_closed)
        elif queue.distribution.is_served(consumer) and queue.contents.paged.count:
            reads_itself = queue.pages.search.reads_itself(consumer)
            lacking = lacking or not reads_itself
            own_reasons += _why_none_in_pages(queue, consumer, is_closed=is_closed) if reads_itself else []
        reasons += [(consumer, reason) for reason in own_reasons]
    order = {consumer.id: place for place, consumer in enumerate(takers)}
    reasons.sort(key=lambda pair: order[pair[0].id])
    yield None
    if len(takers) <= LINES_MAX:
        for consumer, reason in reasons:
            _add(question, queue, consumer, reason)
            yield None
    else:
        _add_together(question, queue, reasons, len(takers))
    if others:
        text = f"{others:,} more consumers have room, and it was not looked at what they want"
        question.add("more-consumers", text, used=others, unit="consumers")
    _about_pages(question, queue, lacking=lacking, is_closed=is_closed)


def _why_no_room(queue: Queue, consumer: Consumer, question: Question) -> Reason | None:
    reason = why_no_room(queue.state, consumer, question.now_ms, queue.consumer_defaults.backlog_max)
    if reason is None or reason.kind != DUE:
        return reason
    client = question.managed.health.client_of(consumer.owner)
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


def _check_ready(queue: Queue, looks: dict[Consumer, ReadyLook]) -> Findings:
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


def _about_pages(question: Question, queue: Queue, *, lacking: bool, is_closed: bool) -> None:
    """Why nothing comes from pages. ``lacking``: a consumer with room finds nothing in memory that it may have."""
    paged, reading = queue.contents.paged, queue.pages.reading
    text = f"{messages(paged.count)} {'is' if paged.count == 1 else 'are'} in pages"
    needs = lacking or (paged.count > 0 and not queue.contents.order.count and _some_take_any(queue))
    is_read = needs and any(backlog.reader.waits for backlog in paged.backlogs.values())
    if is_read or _waits_for_earlier(queue):
        question.add("page", f"{text}, and a page is being read from the disk", used=paged.count, unit="messages")
    elif needs and (limit := why_not_read(queue.state, reading)) is not None:
        question.add_reason(limit, more=f"; {text}", setting=str(limit.fields["setting"]))
    elif lacking and not is_closed:
        question.add("page", f"{text}, and the next turn reads them", used=paged.count, unit="messages")


def _some_take_any(queue: Queue) -> bool:
    """Does a consumer get messages from pages through the queue, and not by itself?"""
    search = queue.pages.search
    return any(not one.browses and not search.reads_itself(one) for one in queue.distribution.consumers)


def _add(question: Question, queue: Queue, consumer: Consumer, reason: Reason) -> None:
    more = _owners(question, queue, consumer) if reason.kind in _OF_GROUPS else ""
    is_default = reason.kind == UNWANTED and consumer.selector is queue.consumer_defaults.selector
    question.add_reason(
        reason, about=question.describe(consumer), connection=consumer.reader.connection, more=more,
        setting="consumer-selector" if is_default and consumer.selector is not None else "",
        place=_place_of(question, queue, consumer, reason),
    )  # fmt: skip


def _place_of(question: Question, queue: Queue, consumer: Consumer, reason: Reason) -> Place | None:
    """What set the limit of one consumer; None: a setting of the reason's cause."""
    if reason.kind == BACKLOG and consumer.backlog_max < queue.consumer_defaults.backlog_max:
        return NOWHERE  # its SUBSCRIBE
    return _window_of(question, consumer) if reason.kind == WINDOW else None


def _window_of(question: Question, consumer: Consumer) -> Place | None:
    """The parameter of the acceptor that gave a consumer its window; None: its SUBSCRIBE did."""
    client = question.managed.health.client_of(consumer.owner)
    if client is None:
        return None
    place = of_acceptor(client.acceptor, _WINDOW_SIZE)
    return place if place.value == str(consumer.window_bytes) else None


def _add_together(question: Question, queue: Queue, reasons: list[tuple[Consumer, Reason]], count: int) -> None:
    """With many consumers: how many there are for each reason, and which."""
    kinds: dict[str, list[tuple[Consumer, Reason]]] = {}
    for consumer, reason in reasons:
        kinds.setdefault(reason.kind, []).append((consumer, reason))
    for kind, some in sorted(kinds.items(), key=lambda item: -len(item[1])):
        who = listed([question.describe(consumer) for consumer, _ in some[:_EXAMPLES]])
        if len(some) > _EXAMPLES:
            who += f" and {len(some) - _EXAMPLES} more"
        text = some[0][1].text
        if kind == UNWANTED:
            text = f"their selectors exclude what is ready; the first: {text}"
        more = _owners(question, queue, some[0][0]) if kind in _OF_GROUPS else ""
        question.add(
            kind, f"{text}{more} ({who})", about=f"{len(some):,} of {count:,} consumers", used=len(some), limit=count,
            unit="consumers",
        )  # fmt: skip


def _owners(question: Question, queue: Queue, consumer: Consumer) -> str:
    """Who has the groups of the first ready messages."""
    groups = queue.grouping.groups
    if groups is None:
        return ""
    by_group: dict[str, str] = {}
    cursor = queue.contents.order.open_cursor()
    try:
        for _ in range(LINES_MAX):
            entry = cursor.advance()
            if entry is None:
                break
            key = groups.rule.group_of(entry.message)
            group = None if key is None else groups.table.groups.get(key)
            if group is None or key is None or key in by_group:
                continue
            if group.aside:
                by_group[key] = f"group {key} waits for another attempt at one of its messages"
            elif group.owner is not None and group.owner is not consumer:
                by_group[key] = f"group {key} belongs to {question.describe(group.owner)}"
    finally:
        queue.contents.order.close_cursor(cursor)
    return "".join(f"; {text}" for text in list(by_group.values())[:_EXAMPLES])


# ---- what is out ---------------------------------------------------------------------------------


def _about_delivery(question: Question, queue: Queue) -> Findings:
    """Who holds messages without an acknowledgement, and when leases end."""
    basis, now_ms = queue.state, question.now_ms
    holders: list[tuple[Consumer, Reason]] = []
    more = 0
    if queue.contents.delivering_count or queue.gate.unconfirmed_count:
        for some in some_at_a_time(queue.distribution.consumers):
            for consumer in some:
                reason = what_it_holds(basis, consumer, now_ms)
                if reason is not None and len(holders) < LINES_MAX:
                    holders.append((consumer, reason))
                elif reason is not None:
                    more += 1
            yield None
    for consumer, reason in holders:
        oldest_ms = 0
        held = next(iter(consumer.held.values()), None)
        if held is not None and "oldest_ms" not in reason.fields and held.message.timestamp_ms:
            oldest_ms = max(now_ms - held.message.timestamp_ms, 0)
        late = f"; the oldest came {span(oldest_ms)} ago" if oldest_ms else ""
        question.add(
            HELD, f"{question.describe(consumer)} {reason.text}{late}", connection=consumer.reader.connection,
            used=len(consumer.held), unit="messages",
        )  # fmt: skip
    if more:
        question.add(HELD, f"… and {more} more consumers have messages", used=more, unit="consumers")
    leased = what_is_leased(basis, now_ms)
    if leased is not None:
        question.add_reason(leased)


def _about_sync(question: Question) -> Findings:
    """Is the disk behind by more than a turn?"""
    broker, health = question.broker, question.managed.health
    lsn = broker.log.last_lsn
    for _ in range(_SYNC_TURNS):
        if health.durable_lsn >= lsn:
            return
        yield WAIT
    if health.durable_lsn < lsn:
        question.add(
            "sync", f"{lsn - health.durable_lsn} records are not on the disk yet, and what depends on them waits",
            used=lsn - health.durable_lsn, unit="records",
        )  # fmt: skip


def _about_scheduled(question: Question, queue: Queue) -> Findings:
    scheduled = queue.contents.scheduled
    if not scheduled:
        return
    tried = 0
    for some in some_at_a_time(list(islice(scheduled, LOOKS_MAX))):
        tried += sum(1 for message_id in some if (one := scheduled.get(message_id)) is not None and one.attempts)
        yield None
    count = len(scheduled)
    looked = min(count, LOOKS_MAX)
    due_ms = yield from _first_due_ms(question, queue)
    of_all = "" if looked == count else f", of the first {looked:,} of {count:,},"
    until = "" if due_ms is None else f": the first is due in {span(due_ms - question.now_ms)}"
    if tried:
        text = f"{messages(tried)}{of_all} must wait for another attempt after a failed delivery{until}"
        question.add("redelivery-delay", text, used=tried, unit="messages")
    if looked > tried:
        text = f"{messages(looked - tried)}{of_all} must wait for their time{until}"
        question.add("scheduled", text, used=looked - tried, unit="messages")


# ---- one message ---------------------------------------------------------------------------------


_ITEMS_MAX: Final = 200_000


def _first_due_ms(question: Question, queue: Queue, message_id: int = 0) -> Generator[None, None, int | None]:
    """The date at which the first scheduled message of a queue is due, or the one with this number; None if it was not
    among the items that were looked at.
    """
    broker, first_ms = question.broker, -1
    schedule = broker.timers.schedules.get(queue.id)
    start = 0
    while schedule is not None and start < min(len(schedule), _ITEMS_MAX):
        for due_ms, id in schedule.some(start, LOOKS_PER_STEP, broker.clock.shift_ms):
            if id not in queue.contents.scheduled or message_id not in (0, id):
                continue
            if first_ms < 0 or due_ms < first_ms:
                first_ms = due_ms
            if message_id:
                return first_ms
        start += LOOKS_PER_STEP
        yield None
    return first_ms if first_ms >= 0 else None


_READY_MAX: Final = 100_000
"""The message is searched for among so many ready ones."""
_CONSUMERS_MAX: Final = 1_000
_OF_TAKERS: Final = {UNWANTED: "do not want it", EXCLUSIVE: "want it and are in reserve"}
"""What is said of consumers, by the word of the reason."""


def about_message(question: Question, queue: Queue, message_id: int) -> Findings:
    """Why the message with this number is not delivered."""
    if message_id in queue.contents.scheduled:
        yield from _scheduled(question, queue, message_id)
        return
    holder = yield from _holder(queue, message_id)
    if holder is not None:
        came_ms = holder.held[message_id].message.timestamp_ms
        since = f"; it came {span(question.now_ms - came_ms)} ago" if came_ms else ""
        text = f"{question.describe(holder)} has it and did not acknowledge{since}"
        question.add(HELD, text, connection=holder.reader.connection)
        return
    entry, before = yield from _ready(queue, message_id)
    if entry is None:
        _not_found(question, queue, before)
        return
    closed = why_closed(queue.state, question.now_ms, is_held=queue.is_held)
    question.add_reason(closed)
    question.add_reason(why_nobody(queue.state))
    if before:
        question.add("behind", f"{messages(before)} before it", used=before, unit="messages")
    _about_group(question, queue, entry)
    yield from _about_takers(question, queue, entry)
    if not question.findings:
        question.add("due", "nothing holds it back: it goes out with the next turn that has room")


def _scheduled(question: Question, queue: Queue, message_id: int) -> Findings:
    entry = queue.contents.scheduled[message_id]
    due_ms = yield from _first_due_ms(question, queue, message_id)
    until = "" if due_ms is None else f", which is in {span(due_ms - question.now_ms)}"
    if entry.attempts:
        text = f"{entry.attempts} deliveries have failed, and it waits for the next attempt{until}"
        question.add("redelivery-delay", text, used=entry.attempts, unit="attempts")
    else:
        question.add("scheduled", f"it waits for its time{until}")


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


def _not_found(question: Question, queue: Queue, looked: int) -> None:
    pending = why_pending(queue.state)
    paged = queue.contents.paged.count
    if pending is not None:
        question.add_reason(pending)
    elif paged:
        text = f"it is not among the {looked:,} ready in memory; {messages(paged)} of the queue are in pages"
        question.add("in-pages", text, used=paged, unit="messages")
    else:
        question.add("not-there", f"it is not among the {looked:,} ready, and nobody holds it")


def _about_group(question: Question, queue: Queue, entry: Entry) -> None:
    groups = queue.grouping.groups
    key = None if groups is None else groups.rule.group_of(entry.message)
    group = None if groups is None or key is None else groups.table.groups.get(key)
    if group is None:
        return
    if group.aside:
        question.add("group-waits", f"its group {key} waits for another attempt at {messages(group.aside)}")
    elif group.owner is not None and not group.owner.has_room:
        who = question.describe(group.owner)
        text = f"its group {key} belongs to {who}, which holds {messages(len(group.owner.held))} and has no room"
        question.add(GROUPS, text, connection=group.owner.reader.connection)


def _about_takers(question: Question, queue: Queue, entry: Entry) -> Findings:
    """Which consumers want it, and have they room?"""
    takers = [one for one in queue.distribution.consumers[:_CONSUMERS_MAX] if not one.browses]
    by_reason: dict[str, list[Consumer]] = {UNWANTED: []}
    for start in range(0, len(takers), LINES_MAX):
        for consumer in takers[start : start + LINES_MAX]:
            reason = why_no_room(queue.state, consumer, question.now_ms, queue.consumer_defaults.backlog_max)
            if not consumer.wants(entry.message):
                by_reason[UNWANTED].append(consumer)
            elif reason is not None:
                by_reason.setdefault(reason.kind, []).append(consumer)
            elif not queue.distribution.is_served(consumer):
                by_reason.setdefault(EXCLUSIVE, []).append(consumer)
            consumer.take_asked()
        yield None
    count = len(takers)
    for kind, some in by_reason.items():
        if not some:
            continue
        what = _OF_TAKERS.get(kind, "want it and have no room")
        who = listed([f"consumer {one.id}" for one in some])
        question.add(
            kind, f"{len(some):,} of {count:,} consumers {what}: {who}", used=len(some), limit=count, unit="consumers"
        )  # fmt: skip


# ---- an empty queue ------------------------------------------------------------------------------


def _about_nothing(question: Question, queue: Queue) -> Findings:
    """Why nothing came to an empty queue, or comes any more."""
    came = queue.contents.counters.added > 0
    if not queue.enabled:
        text = "nothing comes any more" if came else "nothing came"
        question.add("disabled", f"{text}: the queue is not enabled")
    if came or not queue.enabled:
        return
    address = address_of(queue)
    sent = sent_count(address)
    diverts = [one for one in address.diverts if one.exclusive]
    for divert in diverts:
        which = "all messages" if divert.selector is None else f"messages that match {divert.selector.text}"
        question.add(
            "diverted", f"the exclusive divert {divert.name} takes {which} for {address.name}",
            place=NOWHERE if divert.origin is None else Place("exclusive", "true", str(divert.origin)),
        )  # fmt: skip
    if queue.purge_on_no_consumers and not queue.taker_count:
        question.add("purge-on-no-consumers", "the queue takes messages only while a consumer is attached")
    elif sent and queue.selector is not None:
        text = f"nothing came: none of {messages(sent)} for {address.name} entered the queue, and its filter is"
        question.add("filtered", f"{text} {queue.selector.text}", used=sent, unit="messages")
    elif not diverts:
        yield from _about_other_addresses(question, address, sent)


def _about_other_addresses(question: Question, address: Address, sent: int) -> Findings:
    """Nothing prevents messages: were they sent elsewhere?"""
    question.add(
        "nothing-waits",
        f"nothing came; {messages(sent)} for {address.name} did not come to this queue" if sent else "nothing came",
    )
    others: list[str] = []
    for some in some_at_a_time(list(question.broker.addresses.values())):
        others += [f"{one.name} ({sent_count(one)})" for one in some if one is not address and sent_count(one)]
        yield None
    where = "any other address" if sent else "any address"
    text = f"messages were sent to {listed(others)}" if others else f"nothing was sent to {where}"
    question.add("nothing-waits", text)


def about_no_queue(broker: Broker, name: str) -> list[str]:
    """Sentences about a queue that does not exist."""
    sentences = [f"there is no queue {name}"]
    guess = nearest(name, broker.queues)
    if guess is not None:
        sentences[0] += f"; did you mean {guess}?"
    address = broker.addresses.get(name)
    if address is not None and address.queues:
        queues = listed([one.name for one in address.queues.values()])
        sentences.append(f"the address {name} exists; its queues are {queues}")
    elif address is not None:
        lost = messages(address.unrouted_message_count)
        sentences.append(f"the address {name} exists and has no queue: {lost} sent there reached nobody")
    else:
        sentences.append(f"the queues are {listed(sorted(broker.queues))}")
    return sentences
