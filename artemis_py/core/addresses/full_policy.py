"""What is too much for an address: its limits in memory and in pages, what happens at them, and the words for it."""

from __future__ import annotations

from typing import Final

from artemis_py.config.settings import AddressSettings
from artemis_py.core.consumer import Sender
from artemis_py.core.events import Events
from artemis_py.core.memory import Memory
from artemis_py.core.pages import PageStream
from artemis_py.core.queue_reference import QueueAddress
from artemis_py.message import Account

OPERATOR: Final = "address-blocked"
"""An operator blocked it."""
DISK_FULL: Final = "disk-full"
PAGES_BEHIND: Final = "pages-behind"
PAGE_MESSAGES: Final = "page-limit-messages"
PAGE_BYTES: Final = "page-limit-bytes"
SIZE: Final = "max-size"
MESSAGES: Final = "max-messages"
GLOBAL_SIZE: Final = "global-max-size"
GLOBAL_MESSAGES: Final = "global-max-messages"
HELD: Final = "held-memory"
QUEUE_DEPTH: Final = "queue-depth"
"""A queue of the address, not the address, is full."""

# ---- limits ----------------------------------------------------------------------------------------------------------
#
# An address counts what its messages hold in memory. At a limit its policy decides: senders wait, messages go to pages,
# or they are refused or dropped. Pages have limits of their own.


class LimitedAddress(QueueAddress):
    """The part of an address that says whether it has room. ``use_limits`` must follow its making."""

    __slots__ = (
        "_own_policy", "account", "blocked", "bytes_max", "can_page", "deleted", "has_page_limit", "messages_max",
        "stream",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: AddressSettings,
        memory: Memory,
        *,
        can_page: bool,
        temporary: bool,
        is_wildcard: bool,
    ) -> None:
        super().__init__(name, settings, memory, temporary=temporary, is_wildcard=is_wildcard)
        self.account = Account(memory.account)
        self.stream: PageStream | None = None
        """Its pages; None while it never needed one."""
        self.can_page = can_page
        """Are there files for pages? Without them the policy PAGE lets everything stay in memory."""
        self.blocked = False
        """Must senders wait until an operator unblocks it? A restart does."""
        self.deleted = False

    def use_limits(self, settings: AddressSettings) -> None:
        """These limits count from now on, and what these settings say of a full address."""
        self.messages_max = settings.max_size_messages
        self.bytes_max = settings.max_size_bytes
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
    def policy_in_force(self) -> tuple[str, str]:
        """The setting that decides about a message that finds no room now, and its value; "": it is taken anyway."""
        settings = self.settings
        if self.memory.disk_full:
            return "disk-full-policy", settings.disk_full_policy
        if self.is_paging:
            return "page-full-policy", settings.page_full_policy or ""
        return "address-full-policy", self._own_policy or ""

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
        return self._reaches_limit(0, 0) or self.memory.is_full

    def _reaches_limit(self, planned_count: int, planned_bytes: int) -> bool:
        """Is a limit of the address itself reached, after ``planned_count`` more messages of ``planned_bytes``?"""
        account = self.account
        return (
            0 <= self.messages_max <= account.message_count + planned_count
            or 0 <= self.bytes_max <= account.size_bytes + planned_bytes
        )

    def has_room_after(self, planned_count: int, planned_bytes: int) -> bool:
        """Would the next message of a transaction, after ``planned_count`` others of ``planned_bytes``, find room?"""
        if self.is_paging:
            return self.pages_have_room(planned_count)
        if self.full_policy != "FAIL":
            return True
        has_room = self.memory.has_room_for(planned_count + 1, planned_bytes)
        return has_room and not self._reaches_limit(planned_count, planned_bytes)

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
        return not self.has_page_limit or not self.page_limits_reached(planned_count)

    def page_limits_reached(self, planned_count: int) -> list[str]:
        """Which of the two do not, in words."""
        stream, settings = self.stream, self.settings
        if stream is None or not self.has_page_limit:
            return []
        messages_max, bytes_max = settings.page_limit_messages or -1, settings.page_limit_bytes or -1
        count = max(stream.message_count.values(), default=0) + planned_count
        limits = (
            (PAGE_MESSAGES, 0 < messages_max <= count),
            (PAGE_BYTES, 0 < bytes_max < len(stream.pages) * settings.page_size_bytes),
        )
        return [word for word, is_reached in limits if is_reached]

    @property
    def may_fail(self) -> bool:
        """Is a message that finds it full, or its pages, refused with an error?"""
        return self.full_policy == "FAIL" or self.settings.page_full_policy == "FAIL"

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


# ---- words -----------------------------------------------------------------------------------------------------------
#
# Which limits an address has reached: for metrics, for the log, and for whoever asks why senders wait.


def limits_reached(address: LimitedAddress) -> list[str]:
    """The limits that keep the address from taking the next message, the decisive one first; empty: it takes it. A
    block by an operator stands before all of them.
    """
    return [OPERATOR, *_limits(address)] if address.blocked else _limits(address)


def why_full(address: LimitedAddress) -> str:
    """Why the message of a client is refused, or has to wait."""
    return f"Address {address.name} is full"


def why_dropped(address: LimitedAddress) -> str:
    """Why it drops a message, as part of a sentence."""
    return f"address {address.name} is full, and drops messages ({address.policy_in_force[0]} DROP)"


def why_refused(address: LimitedAddress) -> str:
    """Why an operator cannot put a message there now, as part of a sentence; empty: one may come."""
    refusal = address.refusal
    if refusal is None:
        return ""
    return f"address {address.name} is full ({', '.join(limits_reached(address))}); its policy is {refusal}"


def note_full(
    events: Events, code: str, address: LimitedAddress, sender: Sender | None = None, *, count: int = 1
) -> None:
    """Note for the operational log what happens because an address is full: to ``count`` messages, of which sender."""
    account = address.account
    fields: dict[str, str | int] = {
        "address": address.name,
        "messages": account.message_count,
        "bytes": account.size_bytes,
        "limit": next(iter(limits_reached(address)), QUEUE_DEPTH),
    }
    if sender is not None:
        fields.update(sender.who)
    events.note(code, "", fields, kind=address.name, count=count)


def _limits(address: LimitedAddress) -> list[str]:
    if address.disk_full:
        return [DISK_FULL]
    stream = address.stream
    if stream is not None and stream.active:  # then only pages can refuse a message
        behind = [PAGES_BEHIND] if stream.is_behind else []
        return behind + address.page_limits_reached(0)
    if address.full_policy is None:
        return []
    account, memory = address.account, address.memory
    whole = memory.account
    limits = (
        (SIZE, 0 <= address.bytes_max <= account.size_bytes),
        (MESSAGES, 0 <= address.messages_max <= account.message_count),
        (GLOBAL_SIZE, 0 < memory.bytes_max <= whole.size_bytes),
        (GLOBAL_MESSAGES, 0 < memory.messages_max <= whole.message_count),
        (HELD, memory.holdings.leaves_no_room),
    )
    return [word for word, is_reached in limits if is_reached]
