"""What a queue knows of its address."""

from __future__ import annotations

from artemis_py.config.settings import AddressSettings
from artemis_py.core.memory import Memory


class Home:
    """The part of an address that its queues see. The address knows its queues; they do not see what else belongs to
    it.
    """

    __slots__ = ("is_wildcard", "memory", "name", "paused", "settings", "temporary")

    def __init__(
        self,
        name: str,
        settings: AddressSettings,
        memory: Memory,
        *,
        temporary: bool = False,
        is_wildcard: bool = False,
    ) -> None:
        self.name = name
        self.settings = settings
        self.memory = memory
        self.temporary = temporary
        self.paused = False
        """Do none of its queues dispatch, until an operator resumes it?"""
        self.is_wildcard = is_wildcard
        """Do its queues get messages of other addresses, too?"""
