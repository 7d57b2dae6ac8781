"""A queue's part of keeping last values: what leaves when a newer value comes."""

from __future__ import annotations

from artemis_py.core.entry import REPLACED, Entry
from artemis_py.core.queue_alerts import QueueAlerts


class QueueValues(QueueAlerts):
    """The part of a queue that replaces older values by newer ones, where ``last_values`` is there."""

    def _append_values(self, entries: list[Entry], now_ms: int) -> None:
        """Append new messages, each instead of the value before it."""
        order = self.order
        for entry in entries:
            message = entry.message
            self._enter_new_value(entry, now_ms)
            order.extend([entry])
            entry.sequence = order.last_sequence(message)
            if self.expires_ms(message):
                self.watch_expiry(entry)

    def _enter_new_value(self, entry: Entry, now_ms: int) -> None:
        """A new message becomes the newest value of its key. A consumer with room takes the one before first: what it
        gets must not depend on how many messages came at once.
        """
        values = self.last_values
        assert values is not None
        order = self.order
        older = values.older(entry.message)
        if older is not None and order.at(order.level_of(older.message), older.sequence) is older:
            self.wake_dry()
            self.offer_first(now_ms)
        self.enter_value(entry)

    def enter_value(self, entry: Entry) -> None:
        """From now on this is the newest value of its key. The one before goes, unless a consumer has it: then it goes
        when it comes back.
        """
        values = self.last_values
        assert values is not None
        older = values.older(entry.message)
        if older is not None and (self.order.remove(older, older.sequence) or self._take_from_aside(older)):
            self.give_up(older)
        values.enter(entry)

    def _enter_value_of_page(self, entry: Entry) -> bool:
        """The same for a message out of a page, which may have been fetched out of turn; False when it is not the
        newest one, and gone.
        """
        if self.last_values is None:
            return True
        known = self.last_values.older(entry.message)
        if known is not None and known.sequence > entry.sequence:
            self.give_up(entry)
            return False
        self.enter_value(entry)
        return True

    def enter_values_due(self, entries: list[Entry]) -> list[Entry]:
        """Scheduled messages, the earliest first, become values now, a redelivery is one already; returns those that no
        later one replaced.
        """
        for entry in entries:
            if not entry.attempts:
                self.enter_value(entry)
        return [entry for entry in entries if entry.message.id in self.scheduled]

    def is_outdated(self, entry: Entry) -> bool:
        """Did a newer value come while a consumer had this one? Then it is gone now."""
        if self.last_values is None or not self.last_values.is_outdated(entry):
            return False
        self.give_up(entry)
        return True

    def _take_from_aside(self, entry: Entry) -> bool:
        if self.scheduled.get(entry.message.id) is not entry:
            return False
        del self.scheduled[entry.message.id]
        self.held_back.discard(entry.message.id)
        self.tally.leave_scheduled(entry.message)
        self.left_aside(entry)
        return True

    def give_up(self, entry: Entry) -> None:
        """An entry that is out of the order already was given up for another."""
        self.tally.replaced += 1
        self._forget([entry.message], REPLACED)
