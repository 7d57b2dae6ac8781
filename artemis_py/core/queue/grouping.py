"""A queue and the groups of its messages: when it begins to look at them, and what they make it wait for.

A queue that no message with a group ever came to does nothing of this; the first one opens the views
(:mod:`artemis_py.core.groups.views`), and they go when the queue is empty and nobody reads it.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.groups.rule import GroupRule
from artemis_py.core.groups.views import GroupViews
from artemis_py.core.holdings import Holdings
from artemis_py.core.order.order import Order
from artemis_py.core.queue.consumer import Consumer
from artemis_py.core.queue.distribution import Distribution
from artemis_py.core.queue.entry import Entry
from artemis_py.message import Head, Message

_LOOKS_AT: Final = 1000
"""How many header blocks are searched at once: a restart may bring millions."""


@final
class Grouping:
    """The groups of one queue. ``views`` says which consumer has which group, from the first message with a group on;
    ``rule`` how messages are grouped, None when they are not.
    """

    __slots__ = ("_distribution", "_holdings", "_order", "rule", "views")

    def __init__(self, rule: GroupRule | None, order: Order, distribution: Distribution, holdings: Holdings) -> None:
        self.rule = rule
        self.views: GroupViews | None = None
        self._order = order
        self._distribution = distribution
        self._holdings = holdings

    # ---- messages --------------------------------------------------------------------------------

    def look_for(self, messages: list[Message]) -> None:
        """New messages come: one that names a group makes this a queue with groups."""
        rule = self.rule
        if rule is None or self.views is not None:
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
        """Look at groups from now on, where the queue has any."""
        rule = self.rule
        if rule is None or self.views is not None:
            return
        views = self.views = GroupViews(rule, self._order, self._holdings)
        for consumer in self._distribution.consumers:
            if consumer.destructive:
                views.attach(consumer)

    def keeps_place(self, entry: Entry) -> bool:
        """Does an entry that is put aside go to its own place when it is due, and not to the head?"""
        if not entry.attempts or self.views is None:
            return False
        return self.views.rule.group_of(entry.message) is not None

    def put_aside(self, entry: Entry) -> None:
        """An entry waits; its group waits with it, where that is for another attempt."""
        if self.views is not None and entry.attempts:
            self.views.put_aside(entry.message)

    def leave_aside(self, entry: Entry) -> None:
        """Such an entry is ready, or gone."""
        if self.views is not None and entry.attempts:
            self.views.leave_aside(entry.message)

    def settle(self, messages: list[Message]) -> None:
        """A consumer is done with messages, or they are back."""
        if self.views is not None:
            self.views.settle(messages)

    @property
    def parked_count(self) -> int:
        """How much of what is ready waits for its group, at most."""
        return 0 if self.views is None else min(self.views.parked_count, self._order.count)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, *, held: bool) -> bool:
        """A consumer comes; ``held``: something is not settled. True when dispatch is to pause for a rebalance."""
        views = self.views
        if views is None or not consumer.destructive:
            return False
        views.attach(consumer)
        if views.rule.rebalances:
            views.rebalance(held=held)
            return views.pausing
        return False

    def detach(self, consumer: Consumer) -> None:
        """A consumer is gone, and what it had is back."""
        if self.views is not None:
            self.views.detach(consumer)

    def forget(self) -> None:
        """Nobody is here to have a group, and no message to be in one."""
        if self.views is not None:
            self.views.close()
            self.views = None

    def serves(self, consumer: Consumer) -> bool:
        """Do groups concern this consumer?"""
        return self.views is not None and self.views.serves(consumer)

    def must_wait(self, *, held: bool) -> bool:
        """A dispatch begins: must it wait until what was sent before a rebalance is settled?"""
        views = self.views
        if views is None:
            return False
        if views.pausing and held:
            return True
        views.pausing = False
        return False

    def takes_freed(self) -> bool:
        """Is a group with nobody since somebody asked last? Then consumers that found nothing may find something."""
        views = self.views
        if views is None or not views.freed:
            return False
        views.freed = False
        return True
