"""Which limits an address has reached, in words: for metrics, for the log, and for whoever asks why senders wait."""

from __future__ import annotations

from typing import Final

from artemis_py.core.addresses.address import Address
from artemis_py.core.consumer import Sender
from artemis_py.core.events import Events

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


def limits_reached(address: Address) -> list[str]:
    """The limits that keep the address from taking the next message, the decisive one first; empty: it takes it. A
    block by an operator stands before all of them.
    """
    return [OPERATOR, *_limits(address)] if address.blocked else _limits(address)


def note_full(events: Events, code: str, address: Address, sender: Sender | None = None, *, count: int = 1) -> None:
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


def _limits(address: Address) -> list[str]:
    if address.disk_full:
        return [DISK_FULL]
    if address.is_paging:
        return _of_pages(address)
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


def _of_pages(address: Address) -> list[str]:
    """It pages: what is taken goes to pages, unless their limits stand against it."""
    stream, settings = address.stream, address.settings
    assert stream is not None
    found = [PAGES_BEHIND] if stream.is_behind else []
    if not address.has_page_limit or address.pages_have_room(0):
        return found
    most = settings.page_limit_messages or -1
    if 0 < most <= max(stream.message_count.values(), default=0):
        found.append(PAGE_MESSAGES)
    limit = settings.page_limit_bytes or -1
    if limit > 0 and limit // settings.page_size_bytes < len(stream.pages):
        found.append(PAGE_BYTES)
    return found
