"""When a queue begins to look at message groups, and what they make it wait for.

A queue has no groups (:mod:`artemis_py.core.groups.groups`) until the first message that names one. It drops them when
it is empty and has no consumers.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.agenda import Agenda
from artemis_py.core.consumer import Consumer
from artemis_py.core.disposal import dispose
from artemis_py.core.groups.groups import QueueGroups
from artemis_py.core.groups.rule import GroupRule
from artemis_py.core.holdings import Holdings
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import Order
from artemis_py.core.queue.distribution import Distribution
from artemis_py.message import Head, Message

_LOOKS_AT: Final = 1000
"""How many header blocks are searched at once: a restart may bring millions."""


@final
class Grouping:
    """The groups of one queue, once it has any.

    ``rule`` says how messages are grouped; None when they are not. ``groups`` is None until a message names a group.
    """

    __slots__ = ("_agenda", "_distribution", "_holdings", "_order", "groups", "rule")

    def __init__(
        self, rule: GroupRule | None, order: Order, distribution: Distribution, holdings: Holdings, agenda: Agenda
    ) -> None:
        self._agenda = agenda
        self.rule = rule
        self.groups: QueueGroups | None = None
        self._order = order
        self._distribution = distribution
        self._holdings = holdings

    # ---- messages --------------------------------------------------------------------------------

    def look_for(self, messages: list[Message]) -> None:
        """Messages arrived. If one of them names a group, this becomes a queue with groups. Until then, groups cost one
        search in each header block that differs from the one before.
        """
        rule = self.rule
        if rule is None or self.groups is not None:
            return
        if len(messages) == 1:
            if rule.may_name_group(messages[0].head.block):
                self.begin()
            return
        blocks: list[bytes] = []
        last_head: Head | None = None
        for message in messages:
            head = message.head
            if head is not last_head:
                last_head = head
                blocks.append(head.block)
        for start in range(0, len(blocks), _LOOKS_AT):
            if rule.may_name_group(b"".join(blocks[start : start + _LOOKS_AT])):
                self.begin()
                return

    def begin(self) -> None:
        """Look at groups from now on, if the queue has a rule for them."""
        rule = self.rule
        if rule is None or self.groups is not None:
            return
        groups = self.groups = QueueGroups(rule, self._order, self._holdings)
        for consumer in self._distribution.consumers:
            if consumer.destructive:
                groups.views.attach(consumer)

    def keeps_place(self, entry: Entry) -> bool:
        """Does an entry that is put aside go back to its own place when it is due, and not to the head?"""
        if not entry.attempts or self.groups is None:
            return False
        return self.groups.rule.group_of(entry.message) is not None

    def put_aside(self, entry: Entry) -> None:
        """An entry was put aside. If it waits for another attempt, its group waits with it."""
        if self.groups is not None and entry.attempts:
            self.groups.owners.put_aside(entry.message)

    def leave_aside(self, entry: Entry) -> None:
        """An entry that was put aside is ready again, or gone."""
        if self.groups is not None and entry.attempts:
            self.groups.owners.leave_aside(entry.message)

    def settle(self, messages: list[Message]) -> None:
        """A consumer settled these messages, or returned them."""
        if self.groups is not None:
            self.groups.owners.settle(messages)

    @property
    def parked_count(self) -> int:
        """How many ready entries wait for their group, at most."""
        return 0 if self.groups is None else min(self.groups.parking.count, self._order.count)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, *, held: bool) -> bool:
        """A consumer attached. ``held``: some messages are not settled. After a rebalance there are groups to be freed.

        Returns True when dispatch must pause for a rebalance.
        """
        groups = self.groups
        if groups is None or not consumer.destructive:
            return False
        groups.views.attach(consumer)
        if groups.rule.rebalances:
            groups.owners.rebalance(held=held)
            return groups.owners.pausing
        return False

    def detach(self, consumer: Consumer) -> None:
        """A consumer left, and what it held is back. Its groups are to be freed (``free_some``)."""
        if self.groups is not None:
            self.groups.detach(consumer)

    @property
    def is_freeing(self) -> bool:
        """Are there groups to be freed? Nothing may be dispatched before."""
        return self.groups is not None and self.groups.owners.is_freeing

    def free_some(self, count_max: int) -> int:
        """Free at most so many of them. Returns how many were looked at."""
        return 0 if self.groups is None else self.groups.owners.free_some(count_max)

    def take_out(self, consumer: Consumer) -> None:
        """The consumer is about to choose other messages. It keeps its groups; ``put_in`` must follow."""
        if self.groups is not None:
            self.groups.views.detach(consumer)

    def put_in(self, consumer: Consumer) -> None:
        """The consumer chooses other messages now."""
        if self.groups is not None and consumer.destructive:
            self.groups.views.attach(consumer)
            self.groups.owners.offer_again(consumer)

    def forget(self) -> None:
        """The queue is empty and has no consumers, so no group has anything to remember."""
        if self.groups is not None:
            dispose(self.groups.close(), self._agenda)
            self.groups = None

    def regroup(self, rule: GroupRule | None) -> None:
        """Group by another rule from now on (None: not at all), while no consumer holds a message. No group has an
        owner then.
        """
        self.forget()
        self.rule = rule
        if self._order.count:
            self.begin()

    def reset(self, group: str) -> bool:
        """Take a group, by its name, away from its consumer. Returns whether one had it."""
        groups = self.groups
        return groups is not None and groups.owners.reset(groups.rule.key_of(group))

    def reset_some(self, count_max: int) -> int:
        """Take groups away from their consumers, at most so many. Returns how many they were; 0: no group has one."""
        return 0 if self.groups is None else self.groups.owners.reset_some(count_max)

    def serves(self, consumer: Consumer) -> bool:
        """Is the consumer shown entries by group? A browser is not."""
        return self.groups is not None and self.groups.views.serves(consumer)

    def must_wait(self, *, held: bool) -> bool:
        """A dispatch begins. Must it wait until what was sent before a rebalance is settled?"""
        groups = self.groups
        if groups is None:
            return False
        owners = groups.owners
        if owners.pausing and held:
            return True
        owners.pausing = False
        return False

    def takes_freed(self) -> bool:
        """Has a group become free since this was last asked? Consumers that found nothing may find something then."""
        groups = self.groups
        if groups is None or not groups.owners.freed:
            return False
        groups.owners.freed = False
        return True
