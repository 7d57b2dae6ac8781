"""From an address to its queues: expiry settings, duplicates, diverts, and which queue gets which message."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.address import MULTICAST, Plan
from artemis_py.core.addresses.bindings import Bindings
from artemis_py.core.addresses.route import Route
from artemis_py.core.destinations.resolver import Resolver
from artemis_py.core.events import ORPHANED
from artemis_py.core.host import Host
from artemis_py.core.placing.batch import Batch
from artemis_py.core.placing.enqueuer import Enqueuer
from artemis_py.core.placing.recording import Share
from artemis_py.core.placing.verdicts import Verdicts
from artemis_py.core.queue.queue import Queue
from artemis_py.core.routing.duplicates import Duplicates
from artemis_py.core.routing.forwards import Forwards
from artemis_py.core.routing.targets import deal, every_target, offer, only_target
from artemis_py.message import Message

_NAME_MAX: Final = 200


@final
class Router:
    """Decides who gets the messages that were admitted to an address. It holds no queue and gives nothing to
    consumers; a queue may, when messages arrive.
    """

    __slots__ = ("_bindings", "_duplicates", "_enqueuer", "_events", "_forwards", "_log", "_outcomes", "_resolver")

    def __init__(
        self,
        host: Host,
        bindings: Bindings,
        resolver: Resolver,
        duplicates: Duplicates,
        forwards: Forwards,
        enqueuer: Enqueuer,
    ) -> None:
        self._log = host.log
        self._events = host.events
        self._outcomes = host.outcomes
        self._bindings = bindings
        self._resolver = resolver
        self._duplicates = duplicates
        self._forwards = forwards
        self._enqueuer = enqueuer

    def publish(self, batch: Batch) -> None:
        """Route messages in order. All of them are taken."""
        address = batch.route.address
        if address.changes_expiry:
            batch.plain = False
            for message in batch.messages:
                message.expires_ms = address.expiry_of(message.expires_ms, batch.now_ms)
        if not (batch.plain or batch.distinct) and any(one.head.duplicate_id is not None for one in batch.messages):
            self._log.begin_group()
            messages = self._duplicates.leave_out(address, batch.messages)
            batch.narrow(messages)
            self._publish_distinct(batch)
            self._duplicates.write(address, messages)
            self._log.end_group()
        else:
            self._publish_distinct(batch)

    def _publish_distinct(self, batch: Batch) -> None:
        plan = self._bindings.plan_of(batch.route)
        diverted: set[int] | None = None
        if plan.cost.programs and batch.verdicts is None and len(batch.messages) == 1:
            message = batch.messages[0]
            batch.verdicts = {message: Verdicts(message)}
        if plan.has_diverts and (batch.route.queue is None or plan.exclusive_diverts):
            diverted = self._forwards.divert(plan, batch)
        if batch.messages:
            self._route(batch, plan, diverted)

    def _route(self, batch: Batch, plan: Plan, diverted: set[int] | None) -> None:
        route, messages = batch.route, batch.messages
        only = only_target(route, plan)
        if only is not None and only.accepts_all:
            address = route.address
            address.routed_message_count += len(messages)
            if batch.paged or (address.spread is not None and address.is_spreading):
                self._enqueuer.enqueue(batch, [(only, messages)])
            else:
                self._enqueuer.enqueue_on_one(batch, only)
            return
        shares = offer(every_target(route, plan), batch)
        if route.queue is None and plan.anycast and route.routing_type != MULTICAST:
            shares.extend(deal(plan.anycast, batch))
        self._count_routed(batch, plan, shares, diverted)
        if shares:
            self._enqueuer.enqueue(batch, shares)
        elif not batch.plain:
            self._enqueuer.recording.record_unrouted(batch)

    def _count_routed(self, batch: Batch, plan: Plan, shares: list[Share], diverted: set[int] | None) -> None:
        """Count what reached a queue or a divert; the rest goes to the dead-letter address if settings say so."""
        address, messages = batch.route.address, batch.messages
        if any(taken is messages for _, taken in shares):
            address.routed_message_count += len(messages)
            return
        reached = {message.id for _, taken in shares for message in taken}
        if diverted:
            reached.update(diverted)
        missed = [message for message in messages if message.id not in reached]
        if missed:
            lost = _not_awaited(missed, batch, plan)
            if self._outcomes:
                self._note_missed(missed, lost, batch.route, plan)
            missed = lost
        address.routed_message_count += len(messages) - len(missed)
        address.unrouted_message_count += len(missed)
        if missed and address.deleted:
            self._events.note(ORPHANED, "", {"address": address.name[:_NAME_MAX]}, count=len(missed))
        settings = address.settings
        target = settings.dead_letter_address
        if missed and settings.send_to_dla_on_no_route and target and target != address.name:
            self._resolver.obtain_resources(address, target, dead=True)
            for message in missed:
                self._forwards.add_unrouted(target, address, message, batch.hops)

    def _note_missed(self, missed: list[Message], lost: list[Message], route: Route, plan: Plan) -> None:
        """Some publishers wait to know that no queue took their messages, now or ever."""
        for message in missed:
            outcome = self._outcomes.get(message.id)
            if outcome is None:
                continue
            if message in lost:
                outcome.has_targets = bool(_possible_targets(route, plan))
                outcome.unrouted_because = _why_unrouted(route, plan)
            else:
                outcome.is_awaited = True


def _possible_targets(route: Route, plan: Plan) -> list[Queue]:
    """Every queue that some message on this route may come to."""
    queues = every_target(route, plan)
    if route.queue is None and route.routing_type != MULTICAST:
        queues = [*queues, *plan.anycast]
    return queues


def _why_unrouted(route: Route, plan: Plan) -> str:
    queues, name = _possible_targets(route, plan), route.address.name
    if not queues:
        kind = "" if route.routing_type is None else f"{route.routing_type} "
        return f"address {name} has no {kind}queue that would take it"
    whose = f"queue {queues[0].name}" if len(queues) == 1 else f"each of the {len(queues)} queues of address {name}"
    return f"{whose} is disabled, or has a filter that does not match it"


def _not_awaited(messages: list[Message], batch: Batch, plan: Plan) -> list[Message]:
    """Those of the messages that no queue will find in the log, either."""
    for queue in _possible_targets(batch.route, plan):
        if queue.filling is not None:
            messages = [
                message
                for message in messages
                if not message.head.persistent or not batch.verdicts_of(message).of(queue.selector)
            ]
    return messages
