"""Publishes copies for other addresses: of diverted, dead, expired and unrouted messages."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.bindings import Bindings
from artemis_py.core.addresses.route import Route
from artemis_py.core.destinations.resolver import Resolver
from artemis_py.core.events import DEAD, DISCARDED, NOT_ROUTED
from artemis_py.core.faults import give_up
from artemis_py.core.host import Host
from artemis_py.core.placing.batch import Batch
from artemis_py.core.placing.enqueuer import Enqueuer
from artemis_py.core.reference.reference import QueueReference
from artemis_py.core.routing.admission import Admission
from artemis_py.core.routing.forward import Forward
from artemis_py.core.routing.forwards import Forwards
from artemis_py.errors import NotFoundError
from artemis_py.message import HeaderName, Message

_ROUNDS_MAX: Final = 32
_ACTUAL_EXPIRY: Final = HeaderName("_AMQ_ACTUAL_EXPIRY")


@final
class Forwarding:
    """Makes the copies of dead and expired messages, which queues note in ``Copies``. Publishes them, and the copies of
    diverted and unrouted messages. A SEND and a COMMIT publish theirs at once; the rest follows the dispatch of a turn.
    """

    __slots__ = ("_admission", "_bindings", "_enqueuer", "_forwards", "_host", "_resolver")

    def __init__(
        self,
        host: Host,
        bindings: Bindings,
        resolver: Resolver,
        forwards: Forwards,
        admission: Admission,
        enqueuer: Enqueuer,
    ) -> None:
        self._enqueuer = enqueuer
        self._host = host
        self._bindings = bindings
        self._resolver = resolver
        self._forwards = forwards
        self._admission = admission

    @property
    def is_due(self) -> bool:
        """Is there something to copy or to publish?"""
        copies = self._host.copies
        return copies.is_open or bool(copies.dead or copies.expired or self._forwards.waiting)

    def flush(self, now_ms: int) -> None:
        """Publish all copies. Bounded: what a loop of addresses still wants after that waits for the next turn."""
        for _ in range(_ROUNDS_MAX):
            self._make_copies(now_ms)
            forwards = self._forwards.take()
            if not forwards:
                break
            for forward in forwards:
                try:
                    self._publish(forward, now_ms)
                except Exception as error:
                    give_up(self._host, "", f"copy to {forward.address}", error)
                    if forward.source is not None:
                        self._put_back(*forward.source, now_ms)
        self._host.copies.close()

    def _make_copies(self, now_ms: int) -> None:
        copies = self._host.copies
        dead, copies.dead = copies.dead, []
        for queue, message, reason in dead:
            try:
                self._copy_dead(queue, message, reason)
            except Exception as error:
                give_up(self._host, queue.name, "dead letter", error)
                self._put_back(queue, message, now_ms)
        expired, copies.expired = copies.expired, []
        if expired and self._host.notices.is_heard:
            self._host.notices.note_expired(expired)
        for queue, message, reason in expired:
            try:
                self._copy_expired(queue, message, reason, now_ms)
            except Exception as error:
                give_up(self._host, queue.name, "expiry", error)
                self._put_back(queue, message, now_ms)

    def _put_back(self, reference: QueueReference, message: Message, now_ms: int) -> None:
        """The copy of a dead or expired message could not be made or published: a copy goes to the queue that it has
        left, which is paused, so that it does not die again at once.
        """
        queue = self._bindings.by_id.get(reference.id)
        if queue is None or queue.deleted:
            return
        queue.pause()
        address = self._bindings.address_of(queue)
        number = self._host.next_message_id()
        again = Message(message.head, message.body, number, now_ms, 0, address.account, message.origin)
        self._enqueuer.give(address, queue, [again], now_ms)

    def _copy_dead(self, queue: QueueReference, message: Message, reason: str) -> None:
        source = self._bindings.source_of(message, queue)
        target = _dead_letter_address(queue, source.settings.dead_letter_address)
        if target:
            self._resolver.obtain_resources(source, target, dead=True)
            self._forwards.add_dead(target, source, queue, message, reason)
        self._tell_dead(queue, message, target, reason)

    def _copy_expired(self, queue: QueueReference, message: Message, reason: str, now_ms: int) -> None:
        source = self._bindings.source_of(message, queue)
        settings = source.settings
        target = _expiry_address(queue, settings.expiry_address, settings.dead_letter_address)
        if target and not (target == source.name and message.head.first(_ACTUAL_EXPIRY) is not None):
            self._resolver.obtain_resources(source, target, dead=False)
            self._forwards.add_expired(target, source, queue, message, reason, now_ms)

    def _tell_dead(self, queue: QueueReference, message: Message, target: str | None, reason: str) -> None:
        """Tell the operational log what became of a message after its last attempt, and which limit it reached."""
        fields: dict[str, str | int] = {"message": message.id, "reason": reason}
        if target:
            fields["dead_letter_address"] = target
        address = self._bindings.addresses.get(target) if target else None
        reached = address is not None and (bool(address.diverts) or self._bindings.has_queues(address))
        code = DEAD if reached else NOT_ROUTED if target else DISCARDED
        self._host.note_event(code, queue, fields, kind=reason)

    def _publish(self, forward: Forward, now_ms: int) -> None:
        outcome = forward.outcome
        if outcome is not None:
            outcome.publish_copy()
        route = self._route_of(forward)
        if route is None:
            return
        account = route.address.account
        number = self._host.next_message_id()
        if outcome is not None:
            outcome.watch(number)
        head = route.head_of(forward.head)
        message = Message(head, forward.body, number, now_ms, forward.expires_ms, account, forward.origin)
        batch = Batch(
            route,
            [message],
            message.size_bytes,
            now_ms,
            plain=False,
            due_ms=forward.due_ms,
            hops=forward.hops,
            distinct=forward.as_it_is,
            passed=forward.passed,
        )
        self._admission.publish(batch, admitted=True)

    def _route_of(self, forward: Forward) -> Route | None:
        """Where a copy goes. The target of a divert comes into being as for a sender. Dead and expired copies whose
        address does not exist are dropped.
        """
        if forward.creates:
            try:
                return self._resolver.route(forward.address, None, forward.head.routing_type)
            except NotFoundError:
                return None
        address = self._bindings.addresses.get(forward.address)
        if address is None:
            return None
        if address.view is None:
            return self._bindings.route_to(address, None, forward.head.routing_type)
        try:
            return self._resolver.route_through(address.view)
        except NotFoundError:
            return None


def _dead_letter_address(queue: QueueReference, of_address: str | None) -> str | None:
    """Where dead messages of a queue go; what the queue says itself counts before the address-setting."""
    own = queue.rules.dead_letter_address
    return of_address if own is None else own


def _expiry_address(queue: QueueReference, of_address: str | None, dead_of_address: str | None) -> str | None:
    """Where expired messages of a queue go (``expiry-policy``; Qpid's alternate is the dead-letter address)."""
    if queue.rules.expiry_policy == "DELETE":
        return None
    if not of_address and queue.rules.expiry_policy == "ROUTE_TO_ALTERNATE":
        return _dead_letter_address(queue, dead_of_address)
    return of_address
