"""Releases messages that a queue no longer needs."""

from __future__ import annotations

from artemis_py.message import Account, Message
from artemis_py.paged import PagedMessage


def release(messages: list[Message]) -> None:
    """Drop one queue's reference to each message. Messages that no queue refers to leave the address' memory."""
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
