"""The groups that a queue must remember, by name, and what they cost in memory."""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.holdings import GROUP_BYTES, GROUPS, Holdings
from artemis_py.core.order.order import Place


@final
class Group:
    """One group: the consumer that owns it, and which of its entries are parked."""

    __slots__ = ("aside", "held", "key", "owner", "parked")

    def __init__(self, key: str) -> None:
        self.key = key
        self.owner: Consumer | None = None
        self.held = 0
        """Shared groups only: how many messages the owner holds unsettled."""
        self.aside = 0
        """How many messages wait for another attempt. While one does, the group delivers nothing."""
        self.parked: dict[int, list[Place]] = {}
        """Places of parked entries: a heap for each view, by the view's number."""

    @property
    def is_idle(self) -> bool:
        """Is there nothing to remember about this group?"""
        return self.owner is None and not self.held and not self.aside and not self.parked


@final
class GroupTable:
    """Groups by name. A group is made when there is something to remember of it, and dropped when there is not.

    The account of ``Holdings`` moves with the table, under ``GROUPS``.
    """

    __slots__ = ("_holdings", "_size_bytes", "groups")

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._size_bytes = 0
        self.groups: dict[str, Group] = {}

    def of(self, key: str) -> Group:
        """The group with this name; a new one if there is none yet."""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key)
            self._count(GROUP_BYTES + len(key))
        return group

    def admits(self, consumer: Consumer, key: str | None) -> bool:
        """May the consumer get a message of this group now? ``key`` None is a message of no group."""
        group = None if key is None else self.groups.get(key)
        if group is None:
            return True
        return not group.aside and (group.owner is None or group.owner is consumer)

    def forget_idle(self, group: Group) -> None:
        """Drop the group if it is idle."""
        if group.is_idle and self.groups.pop(group.key, None) is not None:
            self._count(-GROUP_BYTES - len(group.key))

    def clear(self) -> dict[str, Group]:
        """Drop every group. Returns them, because to free them may take long."""
        self._count(-self._size_bytes)
        groups, self.groups = self.groups, {}
        return groups

    def _count(self, size_bytes: int) -> None:
        self._size_bytes += size_bytes
        self._holdings.move(GROUPS, size_bytes)
