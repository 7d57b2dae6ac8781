"""Which consumer owns which group, and when a group changes hands.

A group goes to the consumer that gets its first message. It stays with that consumer until the consumer leaves, until a
message closes the group, or until groups are rebalanced. A shared group (``SHARED_GROUPS``) stays only until all of its
messages that the consumer holds are settled.
"""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.groups.parking import Parking
from artemis_py.core.groups.rule import GroupRule
from artemis_py.core.groups.table import Group, GroupTable
from artemis_py.message import Message


@final
class GroupOwners:
    """The owners of one queue's groups. It moves no entry; a group that changes hands has its parked entries offered
    again.
    """

    __slots__ = ("_leaving", "_parking", "_pins", "_rule", "_table", "freed", "pausing")

    def __init__(self, rule: GroupRule, table: GroupTable, parking: Parking) -> None:
        self._rule = rule
        self._table = table
        self._parking = parking
        self._pins: dict[int, set[str]] = {}
        """Names of the groups that a consumer owns, by the consumer's id."""
        self._leaving: list[tuple[int, set[str]]] = []
        """The same for those that are to be freed."""
        self.freed = False
        """A group lost its owner, or was unblocked, since the queue last asked. Consumers that found nothing may find
        something now.
        """
        self.pausing = False
        """Groups were rebalanced, and dispatch pauses until what was sent before is settled."""

    # ---- messages --------------------------------------------------------------------------------

    def take(self, consumer: Consumer, message: Message) -> None:
        """The consumer gets this message, and with it the message's group. A message that closes its group takes the
        group away instead.
        """
        key = self._rule.group_of(message)
        if key is None:
            return
        if self._rule.shared:
            group = self._table.of(key)
            group.held += 1
            if group.owner is None:
                self._pins.setdefault(consumer.id, set()).add(key)
            self._give(group, consumer)
        elif self._rule.closes(message):
            known = self._table.groups.get(key)
            if known is not None and known.owner is not None:
                self._pins[known.owner.id].discard(key)
                self._free(known)
        else:
            group = self._table.of(key)
            if group.owner is None:
                self._pins.setdefault(consumer.id, set()).add(key)
                if self._rule.first_key is not None:
                    consumer.firsts.add(message.id)
            self._give(group, consumer)

    def settle(self, messages: list[Message]) -> None:
        """A consumer settled these messages, or returned them. A shared group loses its owner with the last one."""
        if not self._rule.shared:
            return
        for message in messages:
            key = self._rule.group_of(message)
            group = None if key is None else self._table.groups.get(key)
            if group is not None and group.held:
                group.held -= 1
                if not group.held:
                    if group.owner is not None and group.owner.id in self._pins:
                        self._pins[group.owner.id].discard(group.key)
                    self._free(group)

    def put_aside(self, message: Message) -> None:
        """A message waits for another attempt. Its group is blocked until then."""
        key = self._rule.group_of(message)
        if key is not None:
            self._table.of(key).aside += 1

    def leave_aside(self, message: Message) -> None:
        """Such a message is ready again, or gone."""
        key = self._rule.group_of(message)
        group = None if key is None else self._table.groups.get(key)
        if group is not None and group.aside:
            group.aside -= 1
            if not group.aside:
                self._now_free(group)

    # ---- consumers -------------------------------------------------------------------------------

    def offer_again(self, consumer: Consumer) -> None:
        """The consumer reads another view from now on: offer it there what is parked of its groups."""
        for key in self._pins.get(consumer.id, ()):
            group = self._table.groups.get(key)
            if group is not None and group.owner is consumer:
                self._parking.offer_again(group)

    def release(self, consumer: Consumer) -> None:
        """The consumer left, and what it held is back: its groups are to be freed. Shared ones lose their owner with
        the last message, which may wait for the end of a transaction.
        """
        keys = self._pins.pop(consumer.id, None)
        if keys and not self._rule.shared:
            self._leaving.append((consumer.id, keys))

    def rebalance(self, *, held: bool) -> None:
        """A consumer came, so groups are handed out anew (``group-rebalance``): all are to be freed. ``held``: some
        messages are not settled.
        """
        pins, self._pins = self._pins, {}
        self._leaving += [(owner_id, keys) for owner_id, keys in pins.items() if keys]
        self.pausing = self._rule.pauses and held

    @property
    def is_freeing(self) -> bool:
        """Are there groups to be freed? Nothing may be dispatched before."""
        return bool(self._leaving)

    def free_some(self, count_max: int) -> int:
        """Free at most so many groups. Returns how many were looked at."""
        count = 0
        while self._leaving and count < count_max:
            owner_id, keys = self._leaving[-1]
            while keys and count < count_max:
                count += 1
                group = self._table.groups.get(keys.pop())
                if group is not None and group.owner is not None and group.owner.id == owner_id:
                    self._free(group)
            if not keys:
                self._leaving.pop()
        return count

    def reset(self, key: str) -> bool:
        """Take a group that is not shared away from its consumer. Returns whether one had it."""
        group = self._table.groups.get(key)
        if group is None or group.owner is None:
            return False
        self._pins.get(group.owner.id, set()).discard(key)
        self._free(group)
        return True

    def reset_some(self, count_max: int) -> int:
        """The same for at most so many groups. Returns how many; 0: no group has an owner."""
        count = 0
        for keys in self._pins.values():
            while keys and count < count_max:
                self._free(self._table.groups[keys.pop()])
                count += 1
        return count

    # ---- owners ----------------------------------------------------------------------------------

    def _give(self, group: Group, consumer: Consumer) -> None:
        if group.owner is not consumer:
            group.owner = consumer
            if group.parked:
                self._parking.offer_again(group)

    def _free(self, group: Group) -> None:
        group.owner = None
        self._now_free(group)

    def _now_free(self, group: Group) -> None:
        self.freed = True
        if group.parked:
            self._parking.offer_again(group)
        self._table.forget_idle(group)
