"""Why messages are gone that nobody consumed: counts since the start, by cause; and where dead letters come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from heapq import nlargest
from typing import Final

from artemis_py.core.addresses.address import Address
from artemis_py.core.order.entry import ABANDONED, CANCELLED, DAMAGED, DEAD, DELETED, PURGED
from artemis_py.core.queue.overflow import DepthRing, Ring
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import messages, span
from artemis_py.errors import NotFoundError
from artemis_py.management.why.causes import CAUSES, KILLED
from artemis_py.management.why.question import LOOKS_PER_STEP, Findings, Question, address_of, some_at_a_time
from artemis_py.message import HeaderName, Message

_QUEUES_MAX: Final = 50
"""So many queues are reported."""
_KILLED: Final = {
    DEAD: "died: deliveries failed, or consumers refused them, as often as they may",
    CANCELLED: "were sent to the dead letters by an operator",
    PURGED: "were removed by an operator",
    DELETED: "went with their queue",
    ABANDONED: "were lost with the last consumer",
    DAMAGED: "could not be read",
}


def dropped(question: Question, address: Address | None, queue: Queue | None) -> Findings:
    """The losses of an address with its queues, or of one queue. Of many queues, those that lost most are reported."""
    losers: list[tuple[int, int, Queue]] = []
    count = 0
    if address is not None:
        _of_address(question, address)
        yield None
        for some in some_at_a_time(list(address.queues.values())):
            losing = [(lost, one.id, one) for one in some if (lost := _lost(one))]
            count += len(losing)
            losers = nlargest(_QUEUES_MAX, losers + losing)
            yield None
    if queue is not None and (address is None or queue.id not in address.queues):
        losers.append((_lost(queue), queue.id, queue))
    for _, _, one in losers:
        _of_queue(question, one)
        yield None
    if count > _QUEUES_MAX:
        more = count - _QUEUES_MAX
        question.add("others", f"{more} more queues lost messages, fewer than these", used=more, unit="queues")
    if question.findings:
        question.findings.sort(key=lambda one: (one.code == "others", -one.used))
    else:
        name = queue.name if queue is not None else "" if address is None else address.name
        question.add("nothing-dropped", f"no message of {name} was lost since the start")


def _lost(queue: Queue) -> int:
    """How many messages of the queue are gone, or did not pass its filter."""
    counters = queue.contents.counters
    return counters.replaced + counters.expired + counters.killed + _missed(queue)


def _missed(queue: Queue) -> int:
    """How many messages of the address did not pass the filter of the queue, about."""
    if queue.selector is None or queue.routing_type != "MULTICAST":
        return 0
    return max(sent_count(address_of(queue)) - queue.contents.counters.added, 0)


def _of_address(question: Question, address: Address) -> None:
    settings = address.settings
    if address.dropped_message_count:
        text = f"{messages(address.dropped_message_count)} dropped by the full address"
        name = "address-full-policy" if settings.address_full_policy == "DROP" else ""
        if not name:
            name = "page-full-policy" if settings.page_full_policy == "DROP" else "disk-full-policy"
        question.add("policy-drop", text, used=address.dropped_message_count, unit="messages", setting=name)
    if address.unrouted_message_count:
        lost = messages(address.unrouted_message_count)
        why = "no queue took them" if address.queues else "there is no queue"
        if any(divert.exclusive for divert in address.diverts):
            why = "no queue took them, here or where a divert sends them"
        text = f"{lost} reached nobody: {why}"
        question.add("unrouted", text, used=address.unrouted_message_count, unit="messages")
    if address.duplicate_message_count:
        text = f"{messages(address.duplicate_message_count)} left out: the address had had the duplicate id before"
        question.add("duplicate", text, used=address.duplicate_message_count, unit="messages")


def _of_queue(question: Question, queue: Queue) -> None:
    counters, about = queue.contents.counters, f"queue {queue.name}"

    def add(code: str, count: int, text: str, setting: str = "") -> None:
        question.add(code, text, about=about, used=count, unit="messages", queue=queue, setting=setting)

    if counters.replaced:
        _replaced(question, queue, about)
    if counters.expired:
        target = queue.address.settings.expiry_address
        where = f"; they went to the address {target}" if target else "; there is no expiry-address, so they are gone"
        add("expired", counters.expired, f"{messages(counters.expired)} expired{where}")
    for reason, count in (counters.killed_by or {}).items():
        code, text = KILLED[reason], _KILLED[reason]
        if reason in (DEAD, CANCELLED):
            target = queue.address.settings.dead_letter_address
            text += f"; they went to the address {target}" if target else "; there is no dead-letter-address"
        add(code, count, f"{messages(count)} {text}")
    missed = _missed(queue)
    if missed and queue.selector is not None:
        text = f"about {messages(missed)} of the address did not pass its filter {queue.selector.text}"
        add("no-match", missed, text)


def _replaced(question: Question, queue: Queue, about: str) -> None:
    """A ring that is full, or a newer value: one of them, unless the queue is both."""
    count = queue.contents.counters.replaced
    overflow = queue.flow.overflow
    is_ring, has_values = isinstance(overflow, Ring | DepthRing), queue.contents.last_values is not None
    if is_ring:
        size = f"ring-size {overflow.size}" if isinstance(overflow, Ring) else f"limit {overflow.depth}"
        either = ", or had a newer value" if has_values else ""
        question.add(
            "ring", f"{messages(count)} dropped by the ring ({size}){either}", about=about, used=count,
            limit=overflow.size if isinstance(overflow, Ring) else -1, unit="messages", queue=queue,
            setting="ring-size" if isinstance(overflow, Ring) else "overflow-policy",
        )  # fmt: skip
    else:
        text = f"{messages(count)} replaced by a newer value of the same key"
        question.add("last-value", text, about=about, used=count, unit="messages", queue=queue)


def sent_count(address: Address) -> int:
    """How many messages were sent to an address since the start."""
    return address.routed_message_count + address.unrouted_message_count


def about_losses(question: Question, queue: Queue) -> None:
    """How many messages of the queue were killed or expired, and where they went."""
    counters, settings = queue.contents.counters, queue.address.settings
    losses = [(KILLED[reason], count, "killed") for reason, count in (counters.killed_by or {}).items()]
    for code, count, what in (*losses, ("expired", counters.expired, "expired")):
        letters = settings.dead_letter_address
        target = {"dead": letters, "sent_by_operator": letters, "expired": settings.expiry_address}.get(code)
        if count:
            text = f"{messages(count)} {what}" + (f"; see the address {target}" if target else "")
            question.add(code, text, used=count, unit="messages")


# ---- dead letters ----------------------------------------------------------------------------------------------------
#
# Why messages are dead: dead letters by origin and cause, as far as their headers say, and what a queue has lost.


_LOOKS_MAX: Final = 10_000
"""So many messages of a queue are read at most."""
_LINES_MAX: Final = 50
_ADDRESS: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_QUEUE: Final = HeaderName("_AMQ_ORIG_QUEUE")
_REASON: Final = HeaderName("reason")
_TEXTS: Final = {
    "max_deliveries": "their last delivery failed",
    "max_cancels": "consumers refused them too often",
    "no_route": "no queue took them",
    "time_limit": "they expired",
    "forced_expire": "a consumer or an operator had them expire",
    "sent_by_operator": "an operator sent them there",
    "bridge_loop": "they came back to a bridge that had forwarded them",
    "unknown": "no header says why",
}


def dead(question: Question, queue: Queue, message_id: int) -> Findings:
    """The dead letters on a queue, or one of them; for a queue without any, the dead letters that it has brought
    forth. Raises NotFoundError if the one is not there.
    """
    groups: Counter[tuple[str, str, str]] = Counter()
    oldest_ms: dict[tuple[str, str, str], int] = {}
    for message in (yield from _letters(queue, message_id)):
        key = _key(message)
        groups[key] += 1
        oldest_ms[key] = min(oldest_ms.get(key, message.timestamp_ms), message.timestamp_ms)
    yield None
    for key, count in groups.most_common(_LINES_MAX):
        address, origin, code = key
        source = question.broker.queues.get(origin)
        where = f"from queue {origin} of address {address}" if origin else f"from address {address}"
        text = (
            f"{messages(count)} {where}: {_TEXTS[code]}; the oldest came {span(question.now_ms - oldest_ms[key])} ago"
        )
        home = question.broker.addresses.get(address)
        question.add(code, text, about=origin or address, used=count, unit="messages", queue=source, address=home)
        yield None
    _brought_forth(question, queue)
    if message_id and not groups:
        raise NotFoundError(f"the first {_LOOKS_MAX} messages of {queue.name} have no dead letter {message_id}")
    if not question.findings:
        question.add(
            "no-dead-letters", f"{queue.name} has no dead letters, and none of its messages died since the start"
        )


def _letters(queue: Queue, message_id: int) -> Generator[None, None, list[Message]]:
    """Messages that are copies of dead or expired ones, in memory and ready; only the one with this number, if any."""
    order = queue.contents.order
    cursor = order.open_cursor()
    letters: list[Message] = []
    looked = 0
    try:
        while looked < _LOOKS_MAX and (entry := cursor.advance()) is not None:
            looked += 1
            message = entry.message
            if (not message_id or message.id == message_id) and message.head.first(_ADDRESS) is not None:
                letters.append(message)
            if not looked % (LOOKS_PER_STEP // 2):
                yield None
                if queue.deleted:
                    break
    finally:
        order.close_cursor(cursor)
    return letters


def _key(message: Message) -> tuple[str, str, str]:
    """Address and queue from which it came, and the word for why."""
    head = message.head
    code = head.first(_REASON) or ""
    known = code if code in _TEXTS and code in CAUSES else "unknown"
    return head.first(_ADDRESS) or "", head.first(_QUEUE) or "", known


def _brought_forth(question: Question, queue: Queue) -> None:
    """What has died on the queue itself since the start."""
    counters, settings = queue.contents.counters, queue.address.settings
    died = (counters.killed_by or {}).get(DEAD, 0)
    if died:
        attempts = queue.state.redelivery.attempts_max
        target = settings.dead_letter_address
        text = f"{messages(died)} of this queue died since the start"
        text += f" (max-delivery-attempts {attempts})" if attempts > 0 else ""
        question.add("dead", text, used=died, limit=attempts, unit="messages")
        home = None if not target else question.broker.addresses.get(target)
        if not target:
            question.add("no-dead-letter-address", "there is no dead-letter-address, so they are gone")
        elif home is None or not home.queues:
            question.add("no-dead-letter-address", f"the dead-letter-address {target} has no queue, so they are gone")
        else:
            names = ", ".join(one.name for one in list(home.queues.values())[:8])
            first = question.findings[-1]
            question.findings[-1] = first.saying(
                f"{first.sentence}; they went to the address {target} (queues {names})"
            )
    if counters.expired:
        text = f"{messages(counters.expired)} of this queue expired since the start"
        question.add("time_limit", text, used=counters.expired, unit="messages")
