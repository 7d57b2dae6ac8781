"""An address: where messages are sent, and the queues and diverts that hang on it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from artemis_py.config.settings import AddressSettings
from artemis_py.core.paging import PageStream
from artemis_py.core.queue import Queue
from artemis_py.message import Account
from artemis_py.selector import Selector

ANYCAST: Final = "ANYCAST"
MULTICAST: Final = "MULTICAST"


class Divert:
    """Copies (or moves, when exclusive) messages on their way through an address to others."""

    __slots__ = ("exclusive", "forwarding_addresses", "name", "routing_name", "routing_type", "selector")

    def __init__(
        self,
        name: str,
        routing_name: str,
        forwarding_addresses: tuple[str, ...],
        *,
        exclusive: bool,
        selector: Selector | None,
        routing_type: str,
    ) -> None:
        self.name = name
        self.routing_name = routing_name
        self.forwarding_addresses = forwarding_addresses
        self.exclusive = exclusive
        self.selector = selector
        self.routing_type = routing_type
        """STRIP, PASS, ANYCAST or MULTICAST."""


class Memory:
    """What all addresses hold in memory together, and may (``global-max-size``, ``global-max-messages``; -1: no
    limit). As in Artemis the number of messages counts only where there is a limit on bytes.
    """

    __slots__ = ("account", "bytes_max", "messages_max")

    def __init__(self, bytes_max: int = -1, messages_max: int = -1) -> None:
        self.account = Account()
        self.bytes_max = bytes_max
        self.messages_max = messages_max if bytes_max > 0 else -1

    @property
    def is_full(self) -> bool:
        """Is a limit reached?"""
        account = self.account
        return 0 < self.bytes_max <= account.size_bytes or 0 < self.messages_max <= account.message_count

    def has_room_for(self, count: int, size_bytes: int) -> bool:
        """Would ``count`` messages of ``size_bytes`` together stay under the limits?"""
        account = self.account
        if 0 < self.bytes_max < account.size_bytes + size_bytes:
            return False
        return not 0 < self.messages_max < account.message_count + count


class DuplicateIds:
    """The last N duplicate ids that an address has seen (Artemis manual, "Duplicate Message Detection")."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._seen: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, duplicate_id: str) -> bool:
        return duplicate_id in self._seen

    def add(self, duplicate_id: str) -> None:
        """Remember an id; beyond the size the oldest is forgotten."""
        if self._size <= 0:
            return
        self._seen[duplicate_id] = None
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)


class Plan:
    """Where messages to one address go, worked out once and kept until a binding changes."""

    __slots__ = (
        "anycast",
        "diverts",
        "exclusive_diverts",
        "has_diverts",
        "limited",
        "multicast",
        "only_queue",
        "retention",
    )

    def __init__(self, queues: list[Queue], diverts: list[Divert], retention: Divert | None = None) -> None:
        self.anycast = [queue for queue in queues if queue.routing_type == ANYCAST]
        self.multicast = [queue for queue in queues if queue.routing_type == MULTICAST]
        self.only_queue = queues[0] if len(queues) == 1 else None
        self.limited = [queue for queue in queues if queue.limits_senders]
        """Queues that may refuse a message, make its sender wait, or have it put into a page."""
        self.exclusive_diverts = [divert for divert in diverts if divert.exclusive]
        self.diverts = [divert for divert in diverts if not divert.exclusive]
        self.retention = retention
        self.has_diverts = bool(diverts) or retention is not None


class Address:
    """One address. It counts and limits what its messages hold in memory; the router decides where they go."""

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
        self.name = name
        self.settings = settings
        self.memory = memory or Memory()
        self.can_page = can_page
        """Are there files for pages? Without them the policy PAGE lets everything stay in memory."""
        self.is_wildcard = is_wildcard
        """Do its queues get messages of other addresses, too?"""
        self.routing_types: set[str] = set()
        self.queues: list[Queue] = []
        self.diverts: list[Divert] = []
        self.retention: Divert | None = None
        """What copies messages for queues that are created later; None on an address that is not retroactive."""
        self.plan: Plan | None = None
        self.anycast_turn = 0
        """Which anycast queue is next, where there are several."""
        self.account = Account(self.memory.account)
        self.stream: PageStream | None = None
        """Its pages; None while it never needed one."""
        self.auto_created = auto_created
        self.temporary = temporary
        self.deleted = False
        self.had_binding = False
        self.empty_since_ms = 0
        self.duplicate_ids: DuplicateIds | None = None
        self.routed_message_count = 0
        self.unrouted_message_count = 0
        self.dropped_message_count = 0
        self.disk_full = False
        self._apply(settings)

    def _apply(self, settings: AddressSettings) -> None:
        self.messages_max = settings.max_size_messages
        self.bytes_max = settings.max_size_bytes
        self._choose_policy()
        self.changes_expiry = (
            settings.no_expiry or max(settings.expiry_delay, settings.min_expiry_delay, settings.max_expiry_delay) >= 0
        )

    def keep_in_memory(self, settings: AddressSettings) -> None:
        """Nothing of this address goes to pages; it has settings of its own."""
        self.can_page = False
        self.settings = settings
        self._apply(settings)

    def set_disk_full(self, full: bool) -> None:
        """While the disk is full the address is full too, and ``disk-full-policy`` says what that means."""
        self.disk_full = full
        self._choose_policy()

    def _choose_policy(self) -> None:
        settings = self.settings
        own: str | None = settings.address_full_policy
        if own == "PAGE" and not self.can_page:
            own = None
        self.full_policy = settings.disk_full_policy if self.disk_full else own
        """What happens to messages when a limit is reached: PAGE, DROP, FAIL or BLOCK; None: they stay in memory."""
        self.has_page_limit = settings.page_full_policy is not None and settings.limits_pages

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
        """Fill level against ``max-size-bytes``, in percent; 0 without a limit."""
        return self.account.size_bytes * 100 // self.bytes_max if self.bytes_max > 0 else 0

    @property
    def number_of_pages(self) -> int:
        """Pages that some queue is not done with."""
        return 0 if self.stream is None else len(self.stream.pages)

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
        if self.disk_full or self.is_paging:
            return False
        if self.full_policy is None:
            return True
        account = self.account
        if self.messages_max >= 0 and account.message_count + count > self.messages_max:
            return False
        if self.bytes_max >= 0 and account.size_bytes + size_bytes > self.bytes_max:
            return False
        return self.memory.has_room_for(count, size_bytes)

    def expiry_of(self, expires_ms: int, now_ms: int) -> int:
        """The expiry that the settings give a message which asks for ``expires_ms`` (0: none). Artemis manual, "Message
        Expiry".
        """
        settings = self.settings
        if settings.no_expiry:
            return 0
        if settings.expiry_delay >= 0:
            return expires_ms or now_ms + settings.expiry_delay
        shortest, longest = settings.min_expiry_delay, settings.max_expiry_delay
        if not expires_ms:
            delay = longest if longest >= 0 else shortest
            return now_ms + delay if delay >= 0 else 0
        if longest >= 0 and expires_ms > now_ms + longest:
            return now_ms + longest
        if shortest >= 0 and expires_ms < now_ms + shortest:
            return now_ms + shortest
        return expires_ms
