"""An address: where messages are sent, and the queues and diverts that hang on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from artemis_py.config.settings import AddressSettings, Origin
from artemis_py.core.addresses.duplicate_ids import DuplicateIds
from artemis_py.core.addresses.plan_cost import PLAIN, PlanCost
from artemis_py.core.addresses.spreading import Spread
from artemis_py.core.memory import Memory
from artemis_py.core.pages.stream import PageStream
from artemis_py.core.queue.queue import Queue
from artemis_py.core.reference.home import Home
from artemis_py.message import Account
from artemis_py.selector import Selector
from artemis_py.units import date_after

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
        """A queue went. Who is left is found when a message comes: until then the plan keeps nothing alive."""
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
class Address(Home):
    """One address. It counts and limits what its messages hold in memory; the router decides where they go."""

    __slots__ = (
        "_own_policy", "account", "anycast_count", "anycast_turn", "auto_created", "blocked", "bytes_max", "can_page",
        "changes", "changes_expiry", "deleted", "diverts", "dropped_message_count", "duplicate_ids",
        "duplicate_message_count", "empty_since_ms", "had_binding", "has_page_limit", "losses", "messages_max",
        "origin", "plan", "queues", "retention",
        "routed_message_count", "routing_types", "spread", "stream", "unrouted_message_count", "view",
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
        super().__init__(name, settings, memory or Memory(), temporary=temporary, is_wildcard=is_wildcard)
        self.can_page = can_page
        """Are there files for pages? Without them the policy PAGE lets everything stay in memory."""
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
        self.account = Account(self.memory.account)
        self.view: Queue | None = None
        """The queue that is a view of other addresses, and passes on to one of them what is sent here."""
        self.stream: PageStream | None = None
        """Its pages; None while it never needed one."""
        self.spread: Spread | None = None
        """The last publication that was larger than a turn. It may be on all of its queues by now."""
        self.auto_created = auto_created
        self.blocked = False
        """Must senders wait until an operator unblocks it? A restart does."""
        self.deleted = False
        self.origin: Origin | None = None
        """Where the file declares it; None: nowhere."""
        self.had_binding = False
        self.empty_since_ms = 0
        self.duplicate_ids: DuplicateIds | None = None
        self.routed_message_count = 0
        self.unrouted_message_count = 0
        self.dropped_message_count = 0
        self.duplicate_message_count = 0
        self._apply(settings)

    def add_routing_types(self, routing_types: Iterable[str]) -> None:
        """The address has these routing types, too."""
        known = self.routing_types
        added = known.union(routing_types)
        if added != known:
            self.routing_types = _TYPES.get(added, added)

    def add_divert(self, divert: Divert) -> None:
        """Add a divert, which copies or moves what is sent here."""
        self.diverts = [*self.diverts, divert]
        self.had_binding = True
        self.plan = None

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

    def end(self) -> None:
        """The address is deleted. Routes to it are no longer current."""
        self.deleted = True
        self.losses += 1
        self.plan = None

    def _apply(self, settings: AddressSettings) -> None:
        self.messages_max = settings.max_size_messages
        self.bytes_max = settings.max_size_bytes
        self._choose_policy()
        self.changes_expiry = (
            settings.no_expiry or max(settings.expiry_delay, settings.min_expiry_delay, settings.max_expiry_delay) >= 0
        )

    def use_settings(self, settings: AddressSettings) -> None:
        """These settings count from now on. What the address holds stays, also where a limit is lower now."""
        self.settings = settings
        self._apply(settings)
        if self.stream is not None:
            self.stream.page_bytes = settings.page_size_bytes

    def _choose_policy(self) -> None:
        settings = self.settings
        own: str | None = settings.address_full_policy
        if own == "PAGE" and not self.can_page:
            own = None
        self._own_policy = own
        self.has_page_limit = settings.page_full_policy is not None and settings.limits_pages

    @property
    def disk_full(self) -> bool:
        """Is the disk too full to take messages in?"""
        return self.memory.disk_full

    @property
    def full_policy(self) -> str | None:
        """What happens to messages when a limit is reached: PAGE, DROP, FAIL or BLOCK; None: they stay in memory."""
        return self.settings.disk_full_policy if self.memory.disk_full else self._own_policy

    @property
    def may_forward(self) -> bool:
        """Can a message sent here bring forth copies for other addresses at once?"""
        return bool(self.diverts) or self.retention is not None or self.settings.send_to_dla_on_no_route

    @property
    def size_bytes(self) -> int:
        """What the address' messages hold in memory."""
        return self.account.size_bytes

    @property
    def limit_percent(self) -> int:
        """Fill level against ``max-size-bytes`` or ``max-size-messages``, whichever is higher, in percent; 0 without
        either.
        """
        of_bytes = self.account.size_bytes * 100 // self.bytes_max if self.bytes_max > 0 else 0
        of_messages = self.account.message_count * 100 // self.messages_max if self.messages_max > 0 else 0
        return max(of_bytes, of_messages)

    @property
    def number_of_pages(self) -> int:
        """Pages that some queue is not done with."""
        return 0 if self.stream is None else len(self.stream.pages)

    @property
    def is_spreading(self) -> bool:
        """Is something published here that is not on all of its queues yet?"""
        return self.spread is not None and not self.spread.may_go_on

    @property
    def is_paging(self) -> bool:
        """Do arrivals go to pages?"""
        return self.stream is not None and self.stream.active

    @property
    def must_page(self) -> bool:
        """Does the next message that a queue takes go to a page? Paging begins with the first that finds the address
        full.
        """
        return self.is_paging or (self.full_policy == "PAGE" and self.is_full)

    @property
    def is_full(self) -> bool:
        """Is a limit that counts reached? A limit of N messages keeps exactly N."""
        if self.disk_full or self.full_policy is None:
            return self.disk_full
        account = self.account
        return (
            0 <= self.messages_max <= account.message_count
            or 0 <= self.bytes_max <= account.size_bytes
            or self.memory.is_full
        )

    @property
    def refusal(self) -> str | None:
        """What happens to a message that comes now: DROP, FAIL, BLOCK; None: it is taken, into memory or a page."""
        if self.blocked:
            return "BLOCK"
        stream = self.stream
        if stream is not None and stream.active and not self.disk_full:
            if stream.is_behind:
                return "BLOCK"
            return None if self.pages_have_room(0) else self.settings.page_full_policy
        if not self.is_full or self.full_policy == "PAGE":
            return None
        return self.full_policy

    def pages_have_room(self, planned_count: int) -> bool:
        """Do ``page-limit-messages`` (for the queue that has most) and ``page-limit-bytes`` (in whole pages) let one
        more in, after ``planned_count`` others? Both need a ``page-full-policy`` (Artemis manual, "Paging").
        """
        stream = self.stream
        if stream is None or not self.has_page_limit:
            return True
        settings = self.settings
        messages_max = settings.page_limit_messages or -1
        if 0 < messages_max <= max(stream.message_count.values(), default=0) + planned_count:
            return False
        bytes_max = settings.page_limit_bytes or -1
        return bytes_max < 0 or len(stream.pages) <= bytes_max // settings.page_size_bytes

    @property
    def may_go_on(self) -> bool:
        """May a sender that was made to wait go on?"""
        return self.deleted or self.refusal != "BLOCK"

    def has_room_for(self, count: int, size_bytes: int) -> bool:
        """Would none of ``count`` messages of ``size_bytes`` together find the address full, or paging?"""
        memory, stream = self.memory, self.stream
        if memory.disk_full or self.blocked or (stream is not None and stream.active):
            return False
        if self._own_policy is None:
            return True
        account = self.account
        if self.messages_max >= 0 and account.message_count + count > self.messages_max:
            return False
        if self.bytes_max >= 0 and account.size_bytes + size_bytes > self.bytes_max:
            return False
        return memory.has_room_for(count, size_bytes)

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
