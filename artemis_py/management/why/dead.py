"""Why messages are dead: dead letters by origin and cause, as far as their headers say, and what a queue has lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Final

from artemis_py.core.order.entry import DEAD
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import messages, span
from artemis_py.errors import NotFoundError
from artemis_py.management.why.causes import CAUSES
from artemis_py.management.why.question import LOOKS_PER_STEP, Findings, Question
from artemis_py.message import HeaderName, Message

LOOKS_MAX: Final = 10_000
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
        raise NotFoundError(f"the first {LOOKS_MAX} messages of {queue.name} have no dead letter {message_id}")
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
        while looked < LOOKS_MAX and (entry := cursor.advance()) is not None:
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
