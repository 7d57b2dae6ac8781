"""An address: where messages are sent, with its queues, diverts and known duplicate ids, and what a message costs."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, final

from artemis_py.config.settings import AddressSettings, Origin
from artemis_py.core.addresses.full_policy import LimitedAddress
from artemis_py.core.memory import ID_BYTES, IDS, Holdings, Memory
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import TaskLine
from artemis_py.message import Message
from artemis_py.selector import Expression, Program, Selector
from artemis_py.units import date_after

# ---- duplicate ids ---------------------------------------------------------------------------------------------------
#
# The duplicate ids that one address has seen.


_FORGOTTEN_AT_ONCE: Final = 2
"""A table that was made smaller forgets this many ids with each new one, because there may be very many."""


@final
class DuplicateIds:
    """The last N duplicate ids that an address has seen (Artemis manual, "Duplicate Message Detection")."""

    def __init__(self, size: int, holdings: Holdings) -> None:
        self._size = size
        self._holdings = holdings
        self._seen: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, duplicate_id: str) -> bool:
        return duplicate_id in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, duplicate_id: str) -> None:
        """Remember an id; beyond the size the oldest is forgotten."""
        if self._size <= 0:
            return
        if duplicate_id not in self._seen:
            self._holdings.move(IDS, ID_BYTES + len(duplicate_id))
        self._seen[duplicate_id] = None
        for _ in range(min(len(self._seen) - self._size, _FORGOTTEN_AT_ONCE)):
            oldest, _ = self._seen.popitem(last=False)
            self._holdings.move(IDS, -ID_BYTES - len(oldest))

    def discard(self, duplicate_id: str) -> None:
        """Forget one id, if it is there."""
        if duplicate_id in self._seen:
            del self._seen[duplicate_id]
            self._holdings.move(IDS, -ID_BYTES - len(duplicate_id))

    def resize(self, size: int) -> None:
        """Remember so many ids from now on. Those beyond a smaller size are forgotten as others come."""
        self._size = size

    def forget(self) -> None:
        """The address is gone."""
        self._holdings.move(IDS, -sum(ID_BYTES + len(each) for each in self._seen))
        self._seen.clear()


# ---- plan cost -------------------------------------------------------------------------------------------------------
#
# What one message to a destination costs, in units of the budget.


_PLACES_PER_UNIT: Final = 8
"""How many places cost a unit for each message but the first of a batch. The first costs a unit for each queue, which
is found and asked for it. The others only join its list.
"""
_HEADERS_UNITS_PER_KB: Final = 2
"""The cost of decoding headers for the first selector, in units for each 1,024 bytes."""


@final
class PlanCost:
    """The cost of a plan: a unit for each queue and divert, for each different selector what it costs, and for each
    queue what it evaluates to find the place of a message.
    """

    __slots__ = ("_asked", "_order_units", "place_count", "programs", "units", "units_per_kb", "units_saved")

    def __init__(self) -> None:
        self.place_count = 0
        """Queues and diverts together."""
        self._asked: set[Program] = set()
        self._order_units = 0
        """What it costs each message to find its place on queues, besides selectors and the search for queues."""
        self.programs: list[Program] = []
        """The programs of all selectors, each once. It grows at its end."""
        self.units = 1
        """Units for a message without headers. 1: the plan is a single queue without a selector."""
        self.units_per_kb = 0
        """Units for each 1,024 bytes of headers and body."""
        self.units_saved = 0
        """Units that each message but the first saves when several are published together."""

    def add(self, selector: Selector | None, expression: Expression | None = None) -> None:
        """Add a queue or divert, with its selector if it has one, and with the expression that orders it."""
        self.place_count += 1
        if self.place_count > 1:
            self.units += 1
            self.units_saved = self.place_count - 1 - (self.place_count - 1) // _PLACES_PER_UNIT
        if expression is not None:
            self._order_units += expression.units
            self.units += expression.units
            self.units_per_kb += expression.units_per_kb
        if selector is None or selector.program in self._asked:
            return
        if not self._asked:
            self.units_per_kb += _HEADERS_UNITS_PER_KB
        program = selector.program
        self._asked.add(program)
        self.programs.append(program)
        self.units += program.units
        self.units_per_kb += program.units_per_kb

    def of(self, size_bytes: int) -> int:
        """Units for one message of this encoded size."""
        return self.units + (self.units_per_kb * size_bytes >> 10)

    def places_of(self, count: int) -> int:
        """Units for ``count`` messages published together, when all selectors have been asked before. A queue with a
        selector only looks up what it said of each message.
        """
        order_units = self._order_units * count
        if self.programs:
            return self.place_count * count + order_units
        return self.place_count + self.place_count * (count - 1) // _PLACES_PER_UNIT + order_units

    def of_all(self, messages: list[Message]) -> int:
        """Units for several messages published together."""
        count = len(messages)
        saved = self.units_saved * (count - 1)
        if not self.units_per_kb:
            return self.units * count - saved
        return sum([self.of(message.head.size_bytes) for message in messages]) - saved

    def affordable(self, units: int, sizes_bytes: Iterator[int], count: int) -> int:
        """How many of ``count`` messages, published together, ``units`` are enough for. ``sizes_bytes`` is read only
        where sizes matter.
        """
        each = self.units - self.units_saved
        units -= self.units_saved
        if not self.units_per_kb:
            return min(max(units // each, 0), count)
        for affordable, size_bytes in enumerate(sizes_bytes):
            units -= each + (self.units_per_kb * size_bytes >> 10)
            if units < 0:
                return affordable
        return count


PLAIN: Final = PlanCost()
"""The cost of one queue without a selector."""


# ---- address ---------------------------------------------------------------------------------------------------------
#
# An address: where messages are sent, and the queues and diverts that hang on it. Its limits are in ``full_policy.py``.


ANYCAST: Final = "ANYCAST"
MULTICAST: Final = "MULTICAST"


class Divert:
    """Copies (or moves, when exclusive) messages on their way through an address to others."""

    __slots__ = ("exclusive", "forwarding_addresses", "name", "origin", "routing_name", "routing_type", "selector")

    def __init__(
        self,
        name: str,
        routing_name: str,
        forwarding_addresses: tuple[str, ...],
        *,
        exclusive: bool,
        selector: Selector | None,
        routing_type: str,
        origin: Origin | None = None,
    ) -> None:
        self.name = name
        self.routing_name = routing_name
        self.forwarding_addresses = forwarding_addresses
        self.exclusive = exclusive
        self.selector = selector
        self.routing_type = routing_type
        """STRIP, PASS, ANYCAST or MULTICAST."""
        self.origin = origin
        """Where the file declares it; None: an operator made it, or it is the broker's own."""


_NONE: Final[list[Queue]] = []
_NO_DIVERTS: Final[list[Divert]] = []
_NO_NUMBERS: Final[set[int]] = set()
_NO_TYPES: Final[frozenset[str]] = frozenset()
_TYPES: Final = {
    types: types for types in (frozenset({ANYCAST}), frozenset({MULTICAST}), frozenset({ANYCAST, MULTICAST}))
}
"""All sets of routing types, shared, because there are many addresses."""


@final
class Plan:
    """Where messages to one address go, worked out once.

    A new queue is added to it. Other changes make it out of date, and the next message notices: the plan remembers the
    counts of the address (``losses``) and of distant queues (``distant_changes``), the wildcard addresses whose queues
    it has, each with its count (``sources``), and the views over the address (``views``).
    """

    __slots__ = (
        "anycast", "cost", "distant_changes", "diverts", "exclusive_diverts", "has_diverts", "limited", "losses",
        "multicast", "only_queue", "retention", "sources", "views",
    )  # fmt: skip

    def __init__(self, address: Address, wildcards: list[Address], views: list[Queue], distant_changes: int) -> None:
        self.anycast = _NONE
        """Queues that share out anycast messages."""
        self.multicast = _NONE
        """Queues that get every message that is not sent as anycast; views are among them."""
        self.views = views
        """Queues that get every message, however it is sent."""
        self.limited = _NONE
        """Queues that may refuse a message, make its sender wait, or have it put into a page."""
        self.only_queue: Queue | None = None
        diverts = address.diverts
        self.exclusive_diverts = [one for one in diverts if one.exclusive] if diverts else _NO_DIVERTS
        self.diverts = [one for one in diverts if not one.exclusive] if diverts else _NO_DIVERTS
        self.retention = address.retention
        self.has_diverts = bool(diverts) or address.retention is not None
        self.cost = PLAIN
        """What one message costs; most addresses have but one queue without a filter."""
        if diverts:
            self.cost = PlanCost()
            for divert in diverts:
                self.cost.add(divert.selector)
        self.losses = address.losses
        self.distant_changes = distant_changes
        self.sources = [(each, each.changes) for each in wildcards] if wildcards else None
        far = {queue.id for queue in views} if views else _NO_NUMBERS
        for each in (address, *wildcards):
            for queue in each.queues.values():
                if queue.id not in far:
                    self.add(queue)
        for queue in views:
            self._count(queue)
            self.multicast = _with(self.multicast, queue)

    def add(self, queue: Queue) -> None:
        """One queue more gets messages."""
        self._count(queue)
        if queue.routing_type == ANYCAST:
            self.anycast = _with(self.anycast, queue)
        else:
            self.multicast = _with(self.multicast, queue)

    def _count(self, queue: Queue) -> None:
        """Add what a queue costs, and whether it limits senders."""
        is_first = not (self.anycast or self.multicast)
        self.only_queue = queue if is_first else None
        expression = queue.contents.order.expression
        if self.cost is PLAIN and not (is_first and queue.selector is None and expression is None):
            self.cost = PlanCost()
            if not is_first:
                self.cost.add(None)
        if self.cost is not PLAIN:
            self.cost.add(queue.selector, expression)
        if queue.flow.limits_senders:
            self.limited = _with(self.limited, queue)

    def forget(self) -> None:
        """A queue was deleted; the next message finds out which are left. Until then the plan keeps none alive."""
        self.losses = -1
        self.cost = PLAIN
        self.only_queue = None
        self.anycast = self.multicast = self.limited = self.views = _NONE

    def has_sources(self, wildcards: list[Address], views: list[Queue]) -> bool:
        """Are these the wildcard addresses that it has queues of, with the same queues as then, and the same views?"""
        if views != self.views:
            return False
        sources = self.sources
        if sources is None:
            return not wildcards
        return sources == [(each, each.changes) for each in wildcards]


def _with(queues: list[Queue], queue: Queue) -> list[Queue]:
    """The list with one more queue. All empty lists are one shared object, because most addresses have one queue."""
    if not queues:
        return [queue]
    queues.append(queue)
    return queues


@final
class Address(LimitedAddress):
    """One address. The router decides where its messages go."""

    __slots__ = (
        "_sent_before", "anycast_count", "anycast_turn", "auto_created", "changes", "changes_expiry", "diverts",
        "dropped_message_count", "duplicate_ids", "duplicate_message_count", "empty_since_ms", "fan_outs",
        "had_binding", "losses", "may_forward", "origin", "plan", "queues", "retention", "routed_message_count",
        "routing_types", "unrouted_message_count", "view", "was_asked_for",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: AddressSettings,
        *,
        auto_created: bool = False,
        temporary: bool = False,
        memory: Memory | None = None,
        can_page: bool = False,
        is_wildcard: bool = False,
    ) -> None:
        super().__init__(
            name, settings, memory or Memory(), can_page=can_page, temporary=temporary, is_wildcard=is_wildcard
        )
        self.routing_types = _NO_TYPES
        self.queues: dict[int, Queue] = {}
        """By number, in the order in which they came."""
        self.anycast_count = 0
        """How many of its own queues are anycast."""
        self.losses = 0
        """Grows with every queue that goes, and with its own end: what was worked out before may be wrong."""
        self.changes = 0
        """Grows with every queue that comes or goes."""
        self.diverts = _NO_DIVERTS
        self.retention: Divert | None = None
        """What copies messages for queues that are created later; None on an address that is not retroactive."""
        self.plan: Plan | None = None
        self.anycast_turn = 0
        """Which anycast queue is next, where there are several."""
        self.may_forward = False
        """Can a message sent here bring forth copies for other addresses at once?"""
        self.view: Queue | None = None
        """The queue that is a view of other addresses, and passes on to one of them what is sent here."""
        self.fan_outs: TaskLine | None = None
        """The last publication that was larger than a turn. It may be on all of its queues by now."""
        self.auto_created = auto_created
        self.origin: Origin | None = None
        """Where the file declares it; None: nowhere."""
        self.had_binding = False
        self.was_asked_for = False
        """Has a client asked for it? What it sent may have been refused."""
        self.empty_since_ms = 0
        """The steady time since which nobody uses it, if it has no queue."""
        self._sent_before = 0
        """What ``sent_count`` was when somebody looked last."""
        self.duplicate_ids: DuplicateIds | None = None
        self.routed_message_count = 0
        self.unrouted_message_count = 0
        self.dropped_message_count = 0
        self.duplicate_message_count = 0
        self.use_settings(settings)

    def add_routing_types(self, routing_types: Iterable[str]) -> None:
        """The address has these routing types, too."""
        known = self.routing_types
        added = known.union(routing_types)
        if added != known:
            self.routing_types = _TYPES.get(added, added)

    def add_divert(self, divert: Divert) -> None:
        """Add a divert, which copies or moves what is sent here."""
        self.use_diverts([*self.diverts, divert])
        self.had_binding = True

    def use_diverts(self, diverts: list[Divert]) -> None:
        """These are its diverts from now on."""
        self.diverts = diverts
        self.plan = None
        self._note_copies()

    def use_retention(self, divert: Divert | None) -> None:
        """This divert copies messages for later queues from now on; None: nothing does."""
        self.retention = divert
        self.plan = None
        self._note_copies()

    def bind(self, queue: Queue) -> None:
        """A queue was created here."""
        self.queues[queue.id] = queue
        self.add_routing_types((queue.routing_type,))
        self.had_binding = True
        self.changes += 1
        if queue.routing_type == ANYCAST:
            self.anycast_count += 1
        if queue.passes_on:
            self.view = queue
        if self.plan is not None and self.plan.losses == self.losses:
            self.plan.add(queue)

    def rebind(self, queue: Queue, routing_type: str) -> None:
        """One of its queues gets other messages from now on: its filter, its limit or its routing type has changed."""
        if routing_type != queue.routing_type:
            self.anycast_count += 1 if routing_type == ANYCAST else -1
            queue.routing_type = routing_type
            self.add_routing_types((routing_type,))
        self.changes += 1
        self.losses += 1
        if self.plan is not None:
            self.plan.forget()

    def unbind(self, queue: Queue, steady_ms: int) -> None:
        """A queue was deleted, at this steady time in ms."""
        del self.queues[queue.id]
        self.changes += 1
        self.losses += 1
        if queue.routing_type == ANYCAST:
            self.anycast_count -= 1
        if self.view is queue:
            self.view = None
        if self.plan is not None:
            self.plan.forget()
        if not self.queues:
            self.empty_since_ms = steady_ms

    @property
    def sent_count(self) -> int:
        """How many messages clients sent to the address, whatever became of them."""
        return self.routed_message_count + self.unrouted_message_count + self.duplicate_message_count

    def note_sent(self, steady_ms: int) -> bool:
        """Somebody looks whether it is used: have clients sent to it since the last look?"""
        count = self.sent_count
        if count == self._sent_before:
            return False
        self._sent_before = count
        self.empty_since_ms = steady_ms
        return True

    def end(self) -> None:
        """The address is deleted. Routes to it are no longer current."""
        self.deleted = True
        self.losses += 1
        self.plan = None

    def use_settings(self, settings: AddressSettings) -> None:
        """These settings count from now on. What the address holds stays, also where a limit is lower now."""
        self.settings = settings
        self.use_limits(settings)
        self.changes_expiry = (
            settings.no_expiry or max(settings.expiry_delay, settings.min_expiry_delay, settings.max_expiry_delay) >= 0
        )
        self._note_copies()
        if self.stream is not None:
            self.stream.page_bytes = settings.page_size_bytes

    def _note_copies(self) -> None:
        self.may_forward = bool(self.diverts) or self.retention is not None or self.settings.send_to_dla_on_no_route

    @property
    def is_fanning_out(self) -> bool:
        """Is something published here that is not on all of its queues yet?"""
        return self.fan_outs is not None and not self.fan_outs.may_go_on

    def expiry_of(self, expires_ms: int, now_ms: int) -> int:
        """The expiry that the settings give a message which asks for ``expires_ms`` (0: none). Artemis manual, "Message
        Expiry".
        """
        settings = self.settings
        if settings.no_expiry:
            return 0
        if settings.expiry_delay >= 0:
            return expires_ms or date_after(now_ms, settings.expiry_delay)
        shortest, longest = settings.min_expiry_delay, settings.max_expiry_delay
        if not expires_ms:
            delay = longest if longest >= 0 else shortest
            return date_after(now_ms, delay) if delay >= 0 else 0
        if longest >= 0 and expires_ms > now_ms + longest:
            return date_after(now_ms, longest)
        if shortest >= 0 and expires_ms < now_ms + shortest:
            return date_after(now_ms, shortest)
        return expires_ms


# ---- temporary addresses ---------------------------------------------------------------------------------------------
#
# The names of the addresses behind temporary destinations (``stomp/temporaries.py``).


_TEMPORARY: Final = re.compile(r"temp-(?:queue|topic)\.[0-9a-f]{32}(?:\..*)?", re.ASCII | re.DOTALL)


def names_temporary(address: str) -> bool:
    """Is this the address of a temporary destination? Nobody can guess one, and none comes back when its client has
    gone.
    """
    return address.startswith("temp-") and _TEMPORARY.fullmatch(address) is not None
