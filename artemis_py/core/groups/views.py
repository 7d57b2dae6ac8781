"""What consumers of a queue with groups are shown: the next entry that each of them may have.

Consumers that take any message share one view. Consumers that choose alike (by selector or no-local) share another.
The view's cursor passes each entry once. An entry that its reader may not have is parked. It is offered again, in the
order of the queue, to the owner of its group, or to every reader when the group has no owner. So the next entry for a
consumer is the least of three: the first one parked for it, the first one parked for everybody, and the cursor's.
"""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.groups.parking import Parking, View
from artemis_py.core.groups.rule import GroupRule
from artemis_py.core.groups.table import GroupTable
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import Cursor, Order


@final
class GroupViews:
    """Which view each consumer reads, and what is next in it."""

    __slots__ = ("_by_cursor", "_common", "_order", "_parking", "_rule", "_table", "_view_of", "passes_left")

    def __init__(self, rule: GroupRule, table: GroupTable, parking: Parking, order: Order) -> None:
        self._rule = rule
        self._table = table
        self._parking = parking
        self._order = order
        self.passes_left = 0
        """How many more entries ``next_for`` may pass before it gives up for this turn."""
        self._view_of: dict[int, View] = {}
        """By the consumer's id."""
        self._by_cursor: dict[Cursor, View] = {}
        """Views of consumers that choose. Those that want the same have one cursor, so one view."""
        self._common = parking.open(order.open_cursor())

    def attach(self, consumer: Consumer) -> None:
        """A consumer that takes messages attached. One that chooses has its cursor already."""
        cursor = consumer.cursor
        view = self._common
        if cursor is not None:
            known = self._by_cursor.get(cursor)
            view = self._by_cursor[cursor] = self._parking.open(cursor) if known is None else known
        view.readers.add(consumer.id)
        self._view_of[consumer.id] = view

    def serves(self, consumer: Consumer) -> bool:
        """Does the consumer read a view? A browser does not."""
        return consumer.id in self._view_of

    def detach(self, consumer: Consumer) -> None:
        """The consumer left. The queue closes the cursor of a consumer that chooses."""
        view = self._view_of.pop(consumer.id, None)
        if view is None:
            return
        view.own.pop(consumer.id, None)
        view.readers.discard(consumer.id)
        if view is not self._common and not view.readers:
            self._parking.close(view)
            del self._by_cursor[view.cursor]

    def close(self) -> None:
        """The queue needs no views any more."""
        self._order.close_cursor(self._common.cursor)

    def next_for(self, consumer: Consumer) -> Entry | None:
        """The next entry that the consumer may have; it stays in the order.

        None when there is none, or when ``passes_left`` is used up.
        """
        view = self._view_of[consumer.id]
        order, rule, table, parking = self._order, self._rule, self._table, self._parking
        while self.passes_left > 0:
            parked = parking.first_for(view, consumer)
            found = view.cursor.advance()
            if found is None:
                return None if parked is None else parking.take(parked)
            message = found.message
            if not consumer.wants(message):
                self.passes_left -= 1 + consumer.take_asked()
                continue
            group = rule.group_of(message)
            if parked is None:
                if table.admits(consumer, group):
                    return found
                parking.park(view, group, order.place_of(message, found.sequence))
                self.passes_left -= 1
                continue
            place = order.place_of(message, found.sequence)
            if place < parked.place and table.admits(consumer, group):
                return found
            parking.park(view, group, place)
            if parked.place < place:
                return parking.take(parked)
            self.passes_left -= 1
        return None
