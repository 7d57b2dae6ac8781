"""The memory of all addresses together, and its limits."""

from __future__ import annotations

from typing import final

from artemis_py.core.holdings import Holdings
from artemis_py.message import Account


@final
class Memory:
    """What all addresses hold in memory together, and its limits: ``global-max-size`` in bytes and
    ``global-max-messages``; -1: no limit. As in Artemis the number of messages counts only where bytes are limited.

    ``holdings`` counts what clients make the broker hold besides messages. When that leaves no room, every address is
    full, too.
    """

    __slots__ = ("account", "bytes_max", "disk_full", "holdings", "messages_max")

    def __init__(self, bytes_max: int = -1, messages_max: int = -1) -> None:
        self.account = Account()
        self.holdings = Holdings(self.account)
        self.disk_full = False
        """Is the disk too full for more messages? Then every address is full, and ``disk-full-policy`` says what that
        means.
        """
        self.bytes_max = bytes_max
        self.messages_max = messages_max if bytes_max > 0 else -1

    @property
    def is_full(self) -> bool:
        """Is a limit reached?"""
        account = self.account
        if 0 < self.bytes_max <= account.size_bytes or 0 < self.messages_max <= account.message_count:
            return True
        return self.holdings.leaves_no_room

    def has_room_for(self, count: int, size_bytes: int) -> bool:
        """Would ``count`` messages of ``size_bytes`` together stay within the limits?"""
        account = self.account
        if 0 < self.bytes_max < account.size_bytes + size_bytes:
            return False
        if self.holdings.bytes_max > 0 and self.holdings.leaves_no_room:
            return False
        return not 0 < self.messages_max < account.message_count + count
