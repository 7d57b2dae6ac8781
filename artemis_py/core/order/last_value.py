"""Last value: of the messages with one key a queue keeps the newest.

This is laid over an order, not an order of its own: where a message stands, the order says; which one stays, this. It
holds no queue, and says what has to go.
"""

from __future__ import annotations

from artemis_py.core.queue.entry import Entry
from artemis_py.message import HeaderName, Message


class LastValues:
    """The newest value of each key, wherever it is: ready, put aside after a failed delivery, or with a consumer.

    A message without the key replaces nothing and is replaced by nothing. A scheduled message counts from when it is
    due.
    """

    __slots__ = ("_key", "_newest", "_outdated", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._key = HeaderName(key)
        self._newest: dict[str, Entry] = {}
        self._outdated: set[int] = set()
        """Ids of messages that are with consumers while a newer value came."""

    def older(self, message: Message) -> Entry | None:
        """The value that a new message replaces, if there is one."""
        key = message.head.first(self._key)
        return None if key is None else self._newest.get(key)

    def enter(self, entry: Entry) -> None:
        """A new value; the one before, if there is one and it was not forgotten, is with a consumer and outdated."""
        key = entry.message.head.first(self._key)
        if key is not None:
            older = self._newest.get(key)
            if older is not None:
                self._outdated.add(older.message.id)
            self._newest[key] = entry

    def is_outdated(self, entry: Entry) -> bool:
        """Did a newer value come while this entry was away? Then it must not come back."""
        return entry.message.id in self._outdated

    def forget(self, messages: list[Message]) -> None:
        """The queue no longer has these messages."""
        for message in messages:
            key = message.head.first(self._key)
            if key is None:
                continue
            newest = self._newest.get(key)
            if newest is not None and newest.message is message:
                del self._newest[key]
            else:
                self._outdated.discard(message.id)
