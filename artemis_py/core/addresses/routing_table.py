"""Which addresses and queues exist, and which queues get what is sent to an address: its own, and those of wildcard
addresses and views.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.tables.views import View
from artemis_py.config.wildcards import WildcardIndex
from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import ANYCAST, PLAIN, Address, Plan, PlanCost
from artemis_py.core.queue.messages import DeletedQueueCounters
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Head, Message
from artemis_py.security.rights import Decider

# ---- route -----------------------------------------------------------------------------------------------------------
#
# A destination, resolved.


@final
class Route:
    """An address, or one queue of it. ``losses`` and ``distant_losses`` count queues that were deleted, of the
    address and elsewhere (``Bindings.distant_losses``), up to when the route was made. When they have grown, it is out
    of date.
    """

    __slots__ = ("address", "decider", "distant_losses", "in_full", "losses", "queue", "routing_type", "view")

    def __init__(
        self, address: Address, queue: Queue | None, routing_type: str | None, distant_losses: int = 0
    ) -> None:
        self.address = address
        self.queue = queue
        self.routing_type = routing_type
        self.losses = address.losses
        self.distant_losses = distant_losses
        self.decider: Decider | None = None
        """Which security-setting decides about sending here; None until somebody with permissions has sent."""
        self.view: Queue | None = None
        """The view that the sender named; the address is the one on which its messages are published."""
        self.in_full = False
        """Did the sender name the view in full, as ``address::queue``?"""

    @property
    def asked_address(self) -> str:
        """The address that the sender named."""
        return self.address.name if self.view is None else self.view.address.name

    @property
    def asked_queue(self) -> str | None:
        """The queue that the sender named; None if it named only an address."""
        if self.view is not None:
            return self.view.name if self.in_full else None
        return None if self.queue is None else self.queue.name

    def head_of(self, head: Head) -> Head:
        """The head of a message on this route. What was sent to a view belongs to the address on which it is published,
        in memory, in the log, and for selectors; its destination stays as the sender wrote it.
        """
        return head if self.view is None else head.at(self.address.name)

    def take_over(self, messages: list[Message]) -> None:
        """Give messages that were sent to a view the head that they have on the address (``head_of``)."""
        before = after = messages[0].head
        for place, message in enumerate(messages):
            if not place or message.head is not before:
                before = message.head
                after = self.head_of(before)
            message.head = after


# ---- walk ------------------------------------------------------------------------------------------------------------
#
# A walk over all queues, or all addresses, that may last many turns while some are added and removed.


Item = TypeVar("Item")


@final
class RoundCursor(Generic[Item]):
    """All items in a circle, each with a mark. A step shows the first item and moves it to the end. So a walk needs no
    copy, and a step costs the same however many items there are. When an item is removed during a walk, the walk may
    show another one twice.
    """

    __slots__ = ("_left", "_marks")

    def __init__(self) -> None:
        self._marks: OrderedDict[Item, int] = OrderedDict()
        self._left = 0

    def add(self, item: Item) -> None:
        """Add an item; its mark is 0."""
        self._marks[item] = 0

    def discard(self, item: Item) -> None:
        """Remove an item."""
        self._marks.pop(item, None)

    def begin(self) -> None:
        """Begin a walk over all present items."""
        self._left = len(self._marks)

    def take(self) -> Item | None:
        """The next item; None when all were shown."""
        if self._left <= 0 or not self._marks:
            return None
        self._left -= 1
        item = next(iter(self._marks))
        self._marks.move_to_end(item)
        return item

    def mark_of(self, item: Item) -> int:
        """The mark of an item."""
        return self._marks[item]

    def mark(self, item: Item, number: int) -> None:
        """Set the mark of an item."""
        self._marks[item] = number


# ---- wildcards -------------------------------------------------------------------------------------------------------
#
# Addresses that are patterns: which of them match an address.


@final
class WildcardAddresses:
    """Finds wildcard addresses by the words of an address. The cost does not depend on how many addresses there are."""

    __slots__ = ("_addresses", "_index")

    def __init__(self, syntax: WildcardSyntax) -> None:
        self._index = WildcardIndex(syntax)
        self._addresses: dict[str, Address] = {}

    def add(self, address: Address) -> None:
        """A wildcard address was created."""
        self._index.add(address.name)
        self._addresses[address.name] = address

    def remove(self, address: Address) -> None:
        """A wildcard address was deleted. Raises KeyError when it is not here."""
        self._index.remove(address.name)
        del self._addresses[address.name]

    def matching(self, name: str) -> list[Address]:
        """The wildcard addresses whose queues get messages sent to this address, ordered by name."""
        addresses = self._addresses
        if not addresses or not self._index.syntax.routing_enabled:
            return []
        return [addresses[pattern] for pattern in self._index.matching(name)]


# ---- views -----------------------------------------------------------------------------------------------------------
#
# Which views get the messages of an address: queues with an ``underlying-address`` that matches it.


_NONE: Final[list[Queue]] = []


@final
class Views:
    """Finds views by the words of an address. The cost does not depend on how many views other addresses have."""

    __slots__ = ("_by_pattern", "_index", "syntax")

    def __init__(self, syntax: WildcardSyntax) -> None:
        self.syntax = syntax
        self._index = WildcardIndex(syntax)
        self._by_pattern: dict[str, dict[int, Queue]] = {}

    def add(self, queue: Queue, view: View) -> None:
        """A view was created."""
        for pattern in view.underlying:
            self._index.add(pattern)
            self._by_pattern.setdefault(pattern, {})[queue.id] = queue

    def remove(self, queue: Queue, view: View) -> None:
        """A view was deleted."""
        for pattern in view.underlying:
            queues = self._by_pattern[pattern]
            del queues[queue.id]
            if not queues:
                del self._by_pattern[pattern]
                self._index.remove(pattern)

    def over(self, name: str) -> list[Queue]:
        """The views that get messages sent to this address, each once, the oldest first."""
        by_pattern = self._by_pattern
        if not by_pattern:
            return _NONE
        patterns = self._index.matching(name)
        if not patterns:
            return _NONE
        found: dict[int, Queue] = {}
        for pattern in patterns:
            found.update(by_pattern[pattern])
        return [found[number] for number in sorted(found)]


# ---- bindings --------------------------------------------------------------------------------------------------------
#
# Which addresses and queues exist, and which queues get what is sent to an address.


_MIXED_MAX: Final = 4096
"""How many addresses keep a plan with distant queues. Without a limit, a subscriber of ``#`` would stand in as many
plans as there are addresses.
"""


@final
class Bindings:
    """Finds addresses and queues by name and by number, and keeps the plan of each address.

    It creates and deletes nothing; the registry does, and tells it. *Distant* queues get messages of other addresses
    than their own: those on wildcard addresses, and views. Whoever derives something from them remembers the counts
    here, and looks again when they have grown. So a distant queue comes and goes at the same cost, however many
    addresses it reads.
    """

    __slots__ = (
        "_mixed", "address_walk", "addresses", "by_id", "departed", "distant_changes", "distant_losses", "queue_walk",
        "queues", "views", "wildcards",
    )  # fmt: skip

    def __init__(self, syntax: WildcardSyntax) -> None:
        self.addresses: dict[str, Address] = {}
        self.queues: dict[str, Queue] = {}
        self.by_id: dict[int, Queue] = {}
        """All queues, by number."""
        self.departed = DeletedQueueCounters()
        self.wildcards = WildcardAddresses(syntax)
        self.views = Views(syntax)
        self.distant_changes = 0
        """Grows with every wildcard address and every distant queue that comes or goes."""
        self.distant_losses = 0
        """Grows with every anycast queue on a wildcard address that goes, because an address may have lost the only
        queue that took its messages; and with every view that comes or goes, because what is sent to its own address
        goes elsewhere.
        """
        self.address_walk: RoundCursor[Address] = RoundCursor()
        """All addresses, for the reaper."""
        self.queue_walk: RoundCursor[Queue] = RoundCursor()
        """All queues, for the reaper."""
        self._mixed: OrderedDict[str, Address] = OrderedDict()
        """Addresses whose plan has distant queues, too, by name. The oldest plan is first."""

    # ---- what comes and goes ---------------------------------------------------------------------

    def add_address(self, address: Address) -> None:
        """An address was created."""
        self.addresses[address.name] = address
        self.address_walk.add(address)
        if address.is_wildcard:
            self.wildcards.add(address)
            self.distant_changes += 1

    def remove_address(self, address: Address) -> None:
        """An address without queues was deleted."""
        del self.addresses[address.name]
        self._mixed.pop(address.name, None)
        self.address_walk.discard(address)
        if address.is_wildcard:
            self.wildcards.remove(address)
            self.distant_changes += 1

    def bind(self, queue: Queue) -> Address:
        """A queue was created on its address. Returns its address."""
        self.queues[queue.name] = queue
        self.by_id[queue.id] = queue
        self.queue_walk.add(queue)
        address = self.address_of(queue)
        address.bind(queue)
        if address.is_wildcard:
            self.distant_changes += 1
        if queue.view is not None:
            self.views.add(queue, queue.view)
            self._note_view()
        return address

    def _note_view(self) -> None:
        self.distant_changes += 1
        self.distant_losses += 1

    def unbind(self, queue: Queue, steady_ms: int) -> Address:
        """A queue was deleted, at this steady time. Returns its address."""
        del self.queues[queue.name]
        del self.by_id[queue.id]
        self.queue_walk.discard(queue)
        self.departed.add(queue.contents.counters)
        address = self.address_of(queue)
        address.unbind(queue, steady_ms)
        if address.is_wildcard:
            self.distant_changes += 1
            self.distant_losses += queue.routing_type == ANYCAST
        if queue.view is not None:
            self.views.remove(queue, queue.view)
            self._note_view()
        return address

    def queue_changed(self, queue: Queue, routing_type: str | None = None) -> None:
        """A queue gets other messages from now on, or in another way: its filter or its limits have changed, or its
        routing type, which is this now (None: as it was).
        """
        address = self.address_of(queue)
        address.rebind(queue, routing_type or queue.routing_type)
        if address.is_wildcard or queue.view is not None:
            self._note_view()
        if queue.view is not None:  # a plan sees which views it has, and not how they changed
            for each in self._mixed.values():
                each.plan = None
            self._mixed.clear()

    # ---- addresses -------------------------------------------------------------------------------

    def address_of(self, queue: Queue) -> Address:
        """The address that a queue is on."""
        return self.addresses[queue.address.name]

    def source_of(self, message: Message, queue: QueueReference) -> Address:
        """The address that a message was sent to, whose settings count. If it is gone, the address of the queue."""
        found = self.addresses.get(message.head.address) or self.addresses.get(queue.address.name)
        return Address(queue.address.name, queue.address.settings) if found is None else found

    def has_queues(self, address: Address) -> bool:
        """Does some queue get what is sent to the address?"""
        return (
            bool(address.queues)
            or any(each.queues for each in self._wildcards_for(address))
            or bool(self.views_over(address))
        )

    def will_have_queues(self, name: str) -> bool:
        """Does some queue get what is sent to an address of this name, which does not exist yet?"""
        return any(each.queues for each in self.wildcards.matching(name)) or bool(self.views.over(name))

    def has_anycast(self, address: Address) -> bool:
        """Does some queue get what is sent to the address as anycast?"""
        return (
            address.anycast_count > 0
            or any(each.anycast_count for each in self._wildcards_for(address))
            or bool(self.views_over(address))
        )

    def _wildcards_for(self, address: Address) -> list[Address]:
        """The wildcard addresses whose queues get what is sent to the address, too."""
        return [] if _is_private(address) else self.wildcards.matching(address.name)

    def views_over(self, address: Address) -> list[Queue]:
        """The views that get what is sent to the address."""
        return [] if _is_private(address) else self.views.over(address.name)

    # ---- routes and plans ------------------------------------------------------------------------

    def route_to(self, address: Address, queue: Queue | None, routing_type: str | None) -> Route:
        """A route as things are now."""
        return Route(address, queue, routing_type, self.distant_losses)

    def is_current(self, route: Route) -> bool:
        """Would resolving the route's destination give the same again?"""
        return route.losses == route.address.losses and route.distant_losses == self.distant_losses

    def plan_of(self, route: Route) -> Plan:
        """The plan of a route's address. A route to one queue asks it for exclusive diverts only: such a plan may still
        name queues that are gone.
        """
        address = route.address
        plan = address.plan
        if plan is None:
            return self.plan_for(address)
        if plan.losses != address.losses or plan.distant_changes != self.distant_changes:
            return plan if route.queue is not None else self.plan_for(address)
        return plan

    def plan_for(self, address: Address) -> Plan:
        """Where messages to the address go now: to its own queues and diverts, to the queues of wildcard addresses that
        match it, and to the views over it.
        """
        plan = address.plan
        wildcards, views = self._wildcards_for(address), self.views_over(address)
        if plan is not None and plan.losses == address.losses and plan.has_sources(wildcards, views):
            plan.distant_changes = self.distant_changes
            return plan
        plan = address.plan = Plan(address, wildcards, views, self.distant_changes)
        if wildcards or views:
            self._mixed[address.name] = address
            self._mixed.move_to_end(address.name)
            if len(self._mixed) > _MIXED_MAX:
                _, oldest = self._mixed.popitem(last=False)
                oldest.plan = None
        return plan

    def cost_of(self, route: Route) -> PlanCost:
        """What a message on this route costs, in units of a turn."""
        queue = route.queue
        if queue is None:
            return self.plan_of(route).cost
        diverts, expression = route.address.diverts, queue.contents.order.expression
        if queue.selector is None and expression is None and not diverts:
            return PLAIN
        cost = PlanCost()
        cost.add(queue.selector, expression)
        for divert in diverts:
            if divert.exclusive:
                cost.add(divert.selector)
        return cost


def _is_private(address: Address) -> bool:
    """Do only its own queues get what is sent to the address?"""
    return address.is_wildcard or address.temporary or retroactive.is_internal(address.name)
