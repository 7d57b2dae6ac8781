"""Who still needs a message: every queue that has it, and a fan-out until it is finished.

A message counts in its address' memory while somebody needs it.
"""

from __future__ import annotations

from artemis_py.message import Account, Message
from artemis_py.paged import PagedMessage


def keep(message: Message) -> None:
    """Add one that needs the message. The first charges it to the address."""
    message.refs += 1
    if message.refs == 1:
        message.account.charge(1, message.memory_bytes)


def release(messages: list[Message]) -> None:
    """Remove one of those that need each message. What nobody needs any more leaves the address' memory."""
    account: Account | None = None
    count = size_bytes = 0
    for message in messages:
        message.refs -= 1
        if message.refs:
            continue
        if message.__class__ is PagedMessage:
            message.page.resident.pop(message.place, None)
        if message.account is not account:
            if account is not None:
                account.credit(count, size_bytes)
            account = message.account
            count = size_bytes = 0
        count += 1
        size_bytes += message.memory_bytes
    if account is not None:
        account.credit(count, size_bytes)
