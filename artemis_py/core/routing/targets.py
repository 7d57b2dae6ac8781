"""Which queues a message goes to: all multicast queues that accept it, one of the anycast queues, in turn, and all
views over the address.
"""

from __future__ import annotations

from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address, Plan
from artemis_py.core.addresses.route import Route
from artemis_py.core.placing.batch import Batch
from artemis_py.core.placing.verdicts import Verdicts
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Message


def accepts(queue: Queue, verdicts: Verdicts) -> bool:
    """Does the message enter the queue?"""
    return queue.is_open_to(verdicts.message) and verdicts.of(queue.selector)


def next_in_turn(address: Address, queues: list[Queue], verdicts: Verdicts) -> int:
    """Which of several anycast queues is to get the message: the next that accepts it and admits it, or else the next
    that accepts it; -1 when none does.
    """
    accepting = -1
    for step in range(len(queues)):
        place = (address.anycast_turn + step) % len(queues)
        queue = queues[place]
        if accepts(queue, verdicts):
            if queue.flow.admits(verdicts.message.size_bytes):
                return place
            if accepting < 0:
                accepting = place
    return accepting


def offer(queues: list[Queue], batch: Batch) -> list[tuple[Queue, list[Message]]]:
    """What each of the queues takes of a batch. Equal filters are asked once for each message."""
    messages = batch.messages
    shares: list[tuple[Queue, list[Message]]] = []
    asked: list[Verdicts] = []
    for queue in queues:
        taken = messages
        if not queue.accepts_all:
            if not asked:
                asked = [batch.verdicts_of(message) for message in messages]
            taken = [verdicts.message for verdicts in asked if accepts(queue, verdicts)]
        if taken:
            shares.append((queue, taken))
    return shares


def deal(queues: list[Queue], batch: Batch) -> list[tuple[Queue, list[Message]]]:
    """Share a batch out among anycast queues, in turn, passing over queues that do not accept a message."""
    address = batch.route.address
    if len(queues) == 1 and queues[0].accepts_all:
        return [(queues[0], batch.messages)]
    dealt: dict[str, tuple[Queue, list[Message]]] = {}
    for message in batch.messages:
        place = next_in_turn(address, queues, batch.verdicts_of(message))
        if place >= 0:
            address.anycast_turn = (place + 1) % len(queues)
            queue = queues[place]
            dealt.setdefault(queue.name, (queue, []))[1].append(message)
    return list(dealt.values())


def every_target(route: Route, plan: Plan) -> list[Queue]:
    """The queues that each get every message: the queue that was named, or all multicast queues and views."""
    if route.queue is not None:
        return [route.queue]
    return plan.multicast if route.routing_type != ANYCAST else plan.views


def only_target(route: Route, plan: Plan) -> Queue | None:
    """The queue that gets every message that it accepts, if there is no other."""
    if route.queue is not None:
        return route.queue
    only = plan.only_queue
    if only is None or route.routing_type is None or route.routing_type == only.routing_type or plan.views:
        return only
    return None


def takers(
    address: Address, plan: Plan, named: Queue | None, routing_type: str | None, verdicts: Verdicts
) -> list[Queue]:
    """The queues that the message would come to; ``named`` is the one of a fully qualified destination."""
    if any(verdicts.of(divert.selector) for divert in plan.exclusive_diverts):
        return []
    if named is not None:
        return [named] if accepts(named, verdicts) else []
    every = plan.multicast if routing_type != ANYCAST else plan.views
    found = [queue for queue in every if accepts(queue, verdicts)]
    if plan.anycast and routing_type != MULTICAST:
        place = next_in_turn(address, plan.anycast, verdicts)
        if place >= 0:
            found.append(plan.anycast[place])
    return found
