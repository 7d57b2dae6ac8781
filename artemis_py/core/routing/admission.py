"""The way into an address: is there room for what a client or the broker publishes?

A message is refused before anything happens to it, and then none of the queues gets it. A queue that limits its senders
first lets its consumers take what they have room for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

from artemis_py.core.addresses.address import Address, Plan
from artemis_py.core.addresses.bindings import Bindings
from artemis_py.core.addresses.route import Route
from artemis_py.core.host import Host
from artemis_py.core.placing.batch import Batch
from artemis_py.core.placing.verdicts import Verdicts
from artemis_py.core.queue.queue import Queue
from artemis_py.core.routing.duplicates import Duplicates
from artemis_py.core.routing.router import Router
from artemis_py.core.routing.targets import takers
from artemis_py.message import Message

_NONE: Final[list[Queue]] = []


@final
class Admission:
    """Takes batches as far as the address and its queues have room, and hands them to the router."""

    __slots__ = ("_bindings", "_duplicates", "_host", "_router")

    def __init__(self, host: Host, bindings: Bindings, duplicates: Duplicates, router: Router) -> None:
        self._host = host
        self._bindings = bindings
        self._duplicates = duplicates
        self._router = router

    def publish(self, batch: Batch, *, admitted: bool = False) -> int:
        """Publish messages in order; returns how many the address took.

        Fewer than given are taken only when the address is full (or its pages are) and the policy is FAIL or BLOCK, or
        when a queue has no room. ``admitted`` says that nobody is there to be blocked or told any more (a commit, a
        copy made by the broker): then only DROP still applies.
        """
        route = batch.route
        plan = self._bindings.plan_of(route)
        cost = plan.cost if route.queue is None else self._bindings.cost_of(route)
        asked = batch.verdicts is not None
        self._host.budget.spend(cost.places_of(len(batch.messages)) if asked else cost.of_all(batch.messages))
        limited = _limited(route, plan)
        batch.limited = len(limited) > 0
        if route.address.spread is not None and not admitted and _must_wait(batch, limited):
            return 0
        if limited and not _have_room(limited, batch):
            return self._publish_to_limited(batch, plan, admitted)
        return self._publish_admitted(batch, admitted)

    def is_limited(self, route: Route) -> bool:
        """Is there a queue at the route's end whose depth may stand against a message?"""
        return len(_limited(route, self._bindings.plan_of(route))) > 0

    def limited_takers(self, route: Route, verdicts: Verdicts) -> list[Queue]:
        """Of the queues that a message would come to, those whose depth may stand against it."""
        plan = self._bindings.plan_of(route)
        if not _limited(route, plan):
            return []
        queues = takers(route.address, plan, route.queue, route.routing_type, verdicts)
        return [queue for queue in queues if queue.flow.limits_senders]

    def _publish_to_limited(self, batch: Batch, plan: Plan, admitted: bool) -> int:
        """One by one, because a queue may take some of the messages and not all."""
        route, now_ms = batch.route, batch.now_ms
        address = route.address
        for index, message in enumerate(batch.messages):
            size_bytes = message.size_bytes
            queues = takers(address, plan, route.queue, route.routing_type, batch.verdicts_of(message))
            # A repeated message is confirmed: it is there, or was.
            refusing: Queue | None = None
            if not admitted and not self._duplicates.has_seen(address, message):
                refusing = make_room(queues, size_bytes, now_ms)
            if refusing is not None:
                batch.refused_by = refusing
                batch.refused_bytes = size_bytes
                if refusing.flow.overflow.refuses:
                    self._host.log.story.refused(address.name, "reject", message)
                return index
            one = replace(batch, messages=[message], size_bytes=size_bytes)
            if (
                not address.is_paging
                and address.refusal is None
                and make_room_or_page(address, queues, size_bytes, now_ms)
            ):
                one.paged = True
                self._router.publish(one)
            elif not self._publish_admitted(one, admitted):
                return index
        return len(batch.messages)

    def _publish_admitted(self, batch: Batch, admitted: bool) -> int:
        """No queue stands against it; the address may."""
        count = len(batch.messages)
        if batch.route.address.has_room_for(count, batch.memory_bytes):
            self._router.publish(batch)
            return count
        return self._publish_while_room(batch, admitted)

    def _publish_while_room(self, batch: Batch, admitted: bool) -> int:
        address = batch.route.address
        messages = batch.messages
        story = self._host.log.story
        for index, message in enumerate(messages):
            refusal = address.refusal
            if refusal == "DROP":
                address.routed_message_count += 1
                address.dropped_message_count += 1
                story.refused(address.name, "drop", message)
                outcome = self._host.outcomes.get(message.id)
                if outcome is not None:
                    outcome.full_address = address.name
            elif refusal is not None and not admitted and not self._duplicates.has_seen(address, message):
                if refusal == "FAIL":
                    story.refused(address.name, "fail", message)
                return index
            elif address.must_page and not address.has_page_limit:
                self._publish_rest(batch, messages[index:])
                break
            else:
                one = replace(batch, messages=[message], size_bytes=message.size_bytes, paged=address.must_page)
                self._router.publish(one)
        return len(messages)

    def _publish_rest(self, batch: Batch, messages: list[Message]) -> None:
        """From here on nothing in the batch can be refused one by one: it goes to pages."""
        rest = replace(batch, paged=True)
        rest.narrow(messages)
        self._router.publish(rest)


def make_room(queues: list[Queue], size_bytes: int, now_ms: int) -> Queue | None:
    """Let consumers take messages from each queue that has no room for one more of this size. Returns the first queue
    that still has none, and None when the message may come.
    """
    for queue in queues:
        if not queue.flow.admits(size_bytes):
            queue.offer_first(now_ms)
            if not queue.flow.admits(size_bytes):
                return queue
    return None


def make_room_or_page(address: Address, queues: list[Queue], size_bytes: int, now_ms: int) -> bool:
    """Let consumers take messages from full queues whose ``overflow-policy`` is PAGE. True when one of them still has
    no room: then the message goes to a page for all of its queues, because it stands in a page once.
    """
    if not address.can_page:
        return False
    for queue in queues:
        if queue.flow.overflow.pages and not queue.flow.fits(1, size_bytes):
            queue.offer_first(now_ms)
            if not queue.flow.fits(1, size_bytes):
                return True
    return False


def _must_wait(batch: Batch, limited: list[Queue]) -> bool:
    """Is an earlier publication still being put on the address' queues? What may go to a page waits until that is done,
    because it stands behind it there.
    """
    address = batch.route.address
    if not address.is_spreading:
        return False
    pages = any(queue.flow.overflow.pages for queue in limited)
    if pages or not address.has_room_for(len(batch.messages), batch.memory_bytes):
        batch.behind = address.spread
    return batch.behind is not None


def _limited(route: Route, plan: Plan) -> list[Queue]:
    """The queues whose depth may stand against a message that takes this route."""
    queue = route.queue
    if queue is None:
        return plan.limited
    return [queue] if queue.flow.limits_senders else _NONE


def _have_room(queues: list[Queue], batch: Batch) -> bool:
    return all(queue.flow.fits(len(batch.messages), batch.size_bytes) and not queue.flow.stopped for queue in queues)
