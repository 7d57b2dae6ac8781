"""Do the queues let a message in? Asked before anything happens to it: one refusal is one for all of its queues.

Only addresses of which a queue limits its senders ask (``Plan.limited``); on all others this costs nothing.
"""

from __future__ import annotations

from artemis_py.core.address import ANYCAST, MULTICAST, Address, Divert, Plan
from artemis_py.core.queue import Queue
from artemis_py.message import Message


def passes(divert: Divert, message: Message) -> bool:
    """Does the divert want the message?"""
    return divert.selector is None or divert.selector.matches(message.lookup)


def next_in_turn(address: Address, queues: list[Queue], message: Message) -> int:
    """Which of several anycast queues is to get the message: the next that accepts it and admits it, or else the next
    that accepts it; -1 when none does.
    """
    accepting = -1
    for step in range(len(queues)):
        place = (address.anycast_turn + step) % len(queues)
        queue = queues[place]
        if queue.accepts(message):
            if queue.admits(message.size_bytes):
                return place
            if accepting < 0:
                accepting = place
    return accepting


def deal(address: Address, queues: list[Queue], messages: list[Message]) -> list[tuple[Queue, list[Message]]]:
    """Share messages out among anycast queues, in turn, passing over queues that do not accept one."""
    if len(queues) == 1 and queues[0].accepts_all:
        return [(queues[0], messages)]
    dealt: dict[str, tuple[Queue, list[Message]]] = {}
    for message in messages:
        place = next_in_turn(address, queues, message)
        if place >= 0:
            address.anycast_turn = (place + 1) % len(queues)
            queue = queues[place]
            dealt.setdefault(queue.name, (queue, []))[1].append(message)
    return list(dealt.values())


def takers(
    address: Address, plan: Plan, named: Queue | None, routing_type: str | None, message: Message
) -> list[Queue]:
    """The queues that the message would come to; ``named`` is the one of a fully qualified destination."""
    if any(passes(divert, message) for divert in plan.exclusive_diverts):
        return []
    if named is not None:
        return [named] if named.accepts(message) else []
    found = [queue for queue in plan.multicast if queue.accepts(message)] if routing_type != ANYCAST else []
    if plan.anycast and routing_type != MULTICAST:
        place = next_in_turn(address, plan.anycast, message)
        if place >= 0:
            found.append(plan.anycast[place])
    return found


def obstacle(queues: list[Queue], size_bytes: int, now_ms: int) -> Queue | None:
    """The queue that does not let the message in now. Consumers with room get their chance first: what they take makes
    room.
    """
    for queue in queues:
        if not queue.admits(size_bytes):
            queue.dispatch(now_ms)
            if not queue.admits(size_bytes):
                return queue
    return None


def must_page(address: Address, queues: list[Queue], size_bytes: int, now_ms: int) -> bool:
    """Does one of the queues want the message in a page? Then it goes there for all of them: a message stands in a page
    once.
    """
    if not address.can_page:
        return False
    for queue in queues:
        if queue.overflow.pages and not queue.fits(1, size_bytes):
            queue.dispatch(now_ms)
            if not queue.fits(1, size_bytes):
                return True
    return False
