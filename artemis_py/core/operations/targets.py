"""Where an operator's copies go: to a queue, or to an address that routes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, final

from artemis_py.core.addresses.address import ANYCAST, Address
from artemis_py.core.addresses.batch import Batch, FilterResults
from artemis_py.core.addresses.enqueue import Enqueuer
from artemis_py.core.addresses.full_policy import why_refused
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.dead_letters import Origin
from artemis_py.core.destinations.auto_create import Resolver
from artemis_py.core.publish.publish import Publisher, takers
from artemis_py.core.queue.overflow import Ring
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import NotFoundError
from artemis_py.message import Message
from artemis_py.terminal_output import many

# ---- targets ---------------------------------------------------------------------------------------------------------
#
# Where an operator has messages moved or copied to: a queue, which gets them whatever its filter says, or an address,
# which routes them as if a client had sent them.


_SEPARATOR: Final = "::"


class Target(ABC):
    """One target. Copies are made of originals; what is asked first is whether there is room for them."""

    @property
    @abstractmethod
    def address(self) -> Address:
        """The address that has the copies."""

    @abstractmethod
    def is_gone(self) -> bool:
        """Does it exist no more?"""

    @abstractmethod
    def fault(self, copy: Message) -> str:
        """Why this copy may not come, so that its original must stay; empty: it may."""

    @abstractmethod
    def full_because(self, copy: Message) -> str:
        """Why there is no room for the copy; empty: there is."""

    @property
    @abstractmethod
    def takers(self) -> list[Queue]:
        """The queues that get the copy that was asked about last (``fault``)."""

    @abstractmethod
    def put(self, copy: Message, now_ms: int, due_ms: int) -> None:
        """Put a copy there. ``due_ms`` above 0 schedules it."""

    @property
    def is_behind(self) -> bool:
        """Must copies wait, because the disk is behind with the pages of the address?"""
        stream = self.address.stream
        return stream is not None and stream.active and stream.is_behind


@final
class QueueTarget(Target):
    """One queue."""

    def __init__(self, queue: Queue, bindings: Bindings, enqueuer: Enqueuer) -> None:
        self.queue = queue
        self._address = bindings.address_of(queue)
        self._enqueuer = enqueuer

    @property
    def address(self) -> Address:
        return self._address

    def is_gone(self) -> bool:
        return self.queue.deleted

    def fault(self, copy: Message) -> str:
        return "" if self.queue.enabled else f"queue {self.queue.name} is disabled"

    def full_because(self, copy: Message) -> str:
        flow = self.queue.flow
        if self._address.refusal is None and flow.limits_senders and not flow.admits(copy.size_bytes):
            return flow.why_full(1, copy.size_bytes)
        return why_refused(self._address)

    @property
    def takers(self) -> list[Queue]:
        return [self.queue]

    def put(self, copy: Message, now_ms: int, due_ms: int) -> None:
        self._enqueuer.enqueue_copies(self._address, self.queue, [copy], now_ms, due_ms)


@final
class AddressTarget(Target):
    """An address with all its queues and diverts."""

    def __init__(self, address: Address, bindings: Bindings, publisher: Publisher) -> None:
        self._address = address
        self._bindings = bindings
        self._publisher = publisher
        self._full = ""
        self._takers: list[Queue] = []

    @property
    def address(self) -> Address:
        return self._address

    def is_gone(self) -> bool:
        return self._bindings.addresses.get(self._address.name) is not self._address

    def fault(self, copy: Message) -> str:
        self._full = ""
        route = self._bindings.route_to(self._address, None, copy.head.routing_type)
        plan = self._bindings.plan_of(route)
        filter_results = FilterResults(copy)
        queues = self._takers = takers(self._address, plan, None, copy.head.routing_type, filter_results)
        if any(filter_results.of(divert.selector) for divert in (*plan.exclusive_diverts, *plan.diverts)):
            return ""
        for queue in queues:
            if queue.flow.limits_senders and not queue.flow.admits(copy.size_bytes):
                self._full = queue.flow.why_full(1, copy.size_bytes)
        return "" if queues else f"no queue of address {self._address.name} takes it"

    def full_because(self, copy: Message) -> str:
        return why_refused(self._address) or self._full

    @property
    def takers(self) -> list[Queue]:
        return self._takers

    def put(self, copy: Message, now_ms: int, due_ms: int) -> None:
        route = self._bindings.route_to(self._address, None, copy.head.routing_type)
        copy.head = route.head_of(copy.head)
        batch = Batch(route, [copy], copy.size_bytes, now_ms, plain=False, due_ms=due_ms)
        batch.hops = 1
        self._publisher.publish(batch, admitted=True)


def why_gone(queue: Queue) -> str:
    """Why a queue gives messages up when others come, as words that follow its name."""
    overflow = queue.flow.overflow
    reasons: list[str] = []
    if isinstance(overflow, Ring):
        reasons.append(f"which keeps {many(overflow.size, 'message')} (ring-size)")
    elif overflow.sheds:
        reasons.append(f"which keeps {overflow.depth} (max-depth, overflow-policy RING)")
    if queue.contents.last_values is not None:
        reasons.append("where newer ones have the same last-value-key")
    return ", or ".join(reasons)


@final
class Targets:
    """Finds targets by their names."""

    def __init__(self, bindings: Bindings, resolver: Resolver, enqueuer: Enqueuer, publisher: Publisher) -> None:
        self.bindings = bindings
        self._resolver = resolver
        self._enqueuer = enqueuer
        self._publisher = publisher

    def queue(self, queue: Queue) -> QueueTarget:
        """This queue as a target."""
        return QueueTarget(queue, self.bindings, self._enqueuer)

    def address(self, address: Address) -> AddressTarget:
        """This address as a target."""
        return AddressTarget(address, self.bindings, self._publisher)

    def find(self, name: str) -> Target:
        """The queue of this name (also ``address::queue``), or else the address. Raises NotFoundError."""
        address_name, separator, queue_name = name.partition(_SEPARATOR)
        queue = self.bindings.queues.get(queue_name if separator else name)
        if queue is not None and (not separator or queue.address.name == address_name):
            return self.queue(queue)
        address = None if separator else self.bindings.addresses.get(name)
        if address is None:
            raise NotFoundError(f"there is no queue or address {name!r} to put messages on")
        return self.address(address)

    def of_origin(self, origin: Origin, routing_type: str | None) -> Target:
        """Where a message came from: its queue, and an anycast queue that is gone is created again, as a SEND to it
        would. Never the address: all other subscriptions would get the message once more. What came from no queue (no
        route) goes to its address, as a SEND. Raises BrokerError if there is nothing to send it to.
        """
        name = origin.address or ""
        if origin.queue is None:
            return self.address(self._resolver.route(name, None, routing_type).address)
        queue = self.bindings.queues.get(origin.queue)
        if queue is None and set(self._resolver.types_of(name, routing_type)) != {ANYCAST}:
            raise NotFoundError(
                f"its queue {origin.queue} of address {name} is gone and was no anycast queue, and other subscriptions"
                " must not get it again; create the queue, or move the message"
            )
        return self.queue(queue or self._resolver.obtain_queue(name, origin.queue, ANYCAST))
