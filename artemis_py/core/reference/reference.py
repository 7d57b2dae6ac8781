"""The reference by which pages, timers and copies know a queue."""

from __future__ import annotations

from typing import final

from artemis_py.core.reference.home import Home
from artemis_py.core.reference.rules import MessageRules


@final
class QueueReference:
    """A queue's number, its name, and what never changes about it. To hold a reference is not to hold the queue."""

    __slots__ = ("address", "deleted", "durable", "id", "is_distant", "name", "noted_ready", "rules")

    def __init__(
        self, id: int, name: str, address: Home, *, durable: bool, rules: MessageRules, is_view: bool = False
    ) -> None:
        self.id = id
        """The queue's number in the log."""
        self.name = name
        self.address = address
        self.durable = durable
        self.rules = rules
        self.is_distant = is_view or address.is_wildcard
        """Does the queue get messages of other addresses, too?"""
        self.deleted = False
        self.noted_ready = False
        """Is it on the list of queues that may have something to dispatch?"""
