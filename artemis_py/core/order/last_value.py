"""Last value: of the messages with one key a queue keeps the newest.

This is laid over an order and is not one itself. The order says where a message stands, this says which one stays. It
holds no queue and only tells which messages must go.
"""

from __future__ import annotations

from artemis_py.core.order.entry import Entry
from artemis_py.message import HeaderName, Message


class LastValues:
    """The newest value of each key, wherever it is: ready, put aside after a failed delivery, or with a consumer.

    A message without the key replaces nothing, and nothing replaces it. A scheduled message counts from the time it is
    due.
    """

    __slots__ = ("_key", "_newest", "_outdated", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._key = HeaderName(key)
        self._newest: dict[str, Entry] = {}
        self._outdated: set[int] = set()
        """Ids of messages that consumers held when a newer value came."""

    def older(self, message: Message) -> Entry | None:
        """The value that a new message replaces; None when there is none."""
        key = message.head.first(self._key)
        return None if key is None else self._newest.get(key)

    def enter(self, entry: Entry) -> None:
        """Make the entry the newest value of its key. The one before, if it was not forgotten, is with a consumer and
        is outdated now.
        """
        key = entry.message.head.first(self._key)
        if key is not None:
            older = self._newest.get(key)
            if older is not None:
                self._outdated.add(older.message.id)
            self._newest[key] = entry

    def is_outdated(self, entry: Entry) -> bool:
        """Did a newer value come while this entry was away? Then the entry must not come back."""
        return entry.message.id in self._outdated

    def forget(self, messages: list[Message]) -> None:
        """Forget messages that have left the queue."""
        for message in messages:
            key = message.head.first(self._key)
            if key is None:
                continue
            newest = self._newest.get(key)
            if newest is not None and newest.message is message:
                del self._newest[key]
            else:
                self._outdated.discard(message.id)
