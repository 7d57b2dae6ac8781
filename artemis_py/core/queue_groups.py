"""A queue and the groups of its messages: when it begins to look at them, which entry a consumer gets then, and who is
shown something while all must wait.

A queue that no message with a group ever came to does nothing of this; the first one opens the views
(:mod:`artemis_py.core.group_views`), and they go when the queue is empty and nobody reads it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.entry import Entry
from artemis_py.core.group_views import GroupViews
from artemis_py.core.queue_pages import QueuePages
from artemis_py.core.queue_work import SLICE_MAX
from artemis_py.message import Head, Message

_LOOKS_AT: Final = 1000
"""How many header blocks are searched at once: a restart may bring millions."""


class QueueGroups(QueuePages):
    """The part of a queue that keeps groups together."""

    @abstractmethod
    def _next_for(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry for a consumer, out of the order if it takes it away."""

    @abstractmethod
    def _deliver(self, consumer: Consumer, entry: Entry) -> None:
        """Give an entry to a consumer."""

    def look_for_groups(self, messages: list[Message]) -> None:
        """New messages come: one that names a group makes this a queue with groups."""
        rule = self.group_rule
        if rule is None or self.groups is not None:
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
                self._begin_groups()
                return

    def _begin_groups(self) -> None:
        rule = self.group_rule
        if rule is None or self.groups is not None:
            return
        groups = self.groups = GroupViews(rule, self.order, self.address.memory.holdings)
        for consumer in self.distribution.consumers:
            if consumer.destructive:
                groups.attach(consumer)

    def _attach_to_groups(self, consumer: Consumer) -> None:
        groups = self.groups
        if groups is None or not consumer.destructive:
            return
        groups.attach(consumer)
        if groups.rule.rebalances:
            groups.rebalance(held=self.tally.held_count > 0)
            if groups.pausing:
                self.gate.close_again()
            self._use_freed()

    def _detach_from_groups(self, consumer: Consumer) -> None:
        groups = self.groups
        if groups is None:
            return
        groups.detach(consumer)
        self._use_freed()
        if not self.consumer_count and not self.message_count:
            self.forget_groups()

    def forget_groups(self) -> None:
        """Nobody is here to have a group, and no message to be in one."""
        if self.groups is not None:
            self.groups.close()
            self.groups = None

    def _show(self, now_ms: int, floor: int) -> None:
        """Nothing may leave now, but whoever only looks may see it. With the budget spent the next one goes on."""
        consumers = self.distribution.consumers
        budget = self.host.budget
        start = self._shown_count % max(len(consumers), 1)
        for consumer in consumers[start:] + consumers[:start]:
            budget.spend(1)
            while consumer.browses and consumer.has_room:
                entry = self._next_for(consumer, now_ms)
                budget.spend(consumer.take_asked())
                if entry is not None:
                    self._deliver(consumer, entry)
                elif not self._was_cut:
                    break
                self._was_cut = False
                if budget.left <= floor:
                    self._note_ready()
                    return
            self._shown_count += 1
            if not consumer.has_room:
                self.distribution.rest(consumer)
            if budget.left <= floor and self._shown_count < len(consumers):
                self._note_ready()
                return
        self._shown_count = 0

    def _groups_wait(self) -> bool:
        """A dispatch begins: must it wait until what was sent before a rebalance is settled?"""
        groups = self.groups
        if groups is None:
            return False
        if groups.pausing and self.tally.held_count:
            return True
        groups.pausing = False
        return False

    def _is_grouped(self, consumer: Consumer) -> bool:
        return self.groups is not None and self.groups.serves(consumer)

    def _next_grouped(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry for a consumer, out of the order, with its group given to the consumer."""
        groups = self.groups
        assert groups is not None
        budget = self.host.budget
        while True:
            passes = min(SLICE_MAX, max(budget.left, 1))
            groups.passes_left = passes
            entry = groups.next_for(consumer)
            budget.spend(passes - groups.passes_left)
            if entry is None:
                if groups.passes_left <= 0:
                    self._was_cut = True
                elif self.backlogs and self._read_ahead(now_ms):
                    self.wake_dry()
                    continue
                return None
            self.order.remove(entry, entry.sequence)
            if 0 < self.expires_ms(entry.message) <= now_ms:
                self.expire([entry])
                continue
            groups.take(consumer, entry.message)
            self._use_freed()
            return entry

    def settle_groups(self, messages: list[Message]) -> None:
        """A consumer is done with messages, or they are back."""
        groups = self.groups
        if groups is None:
            return
        groups.settle(messages)
        self._use_freed()
        if groups.pausing and not self.tally.held_count:
            self._note_ready()
