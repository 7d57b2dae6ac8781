"""Consumers of one queue that want the same messages share one cursor.

An entry that the cursor has passed was given to one of them, or none of them wants it. So the others need not look at
it again. A consumer that only looks must see every message, so it has a cursor of its own.
"""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.order import Cursor, Order
from artemis_py.selector import Program

_Wish = tuple[Program | None, int]
"""Which messages a consumer wants: its selector's program, and the connection that no-local excludes."""


@final
class SharedCursors:
    """The cursors of one queue by what their readers want, and how many consumers share each."""

    __slots__ = ("_by_wish",)

    def __init__(self) -> None:
        self._by_wish: dict[_Wish, tuple[Cursor, int]] = {}

    def open(self, consumer: Consumer, order: Order) -> Cursor:
        """The cursor for a consumer that attaches."""
        if not _shares(consumer):
            return order.open_cursor()
        wish = _wish_of(consumer)
        known = self._by_wish.get(wish)
        cursor, count = (order.open_cursor(), 0) if known is None else known
        self._by_wish[wish] = cursor, count + 1
        return cursor

    def close(self, consumer: Consumer, cursor: Cursor, order: Order) -> None:
        """A consumer with a cursor left. The last reader of a cursor closes it."""
        if _shares(consumer):
            wish = _wish_of(consumer)
            _, count = self._by_wish[wish]
            if count > 1:
                self._by_wish[wish] = cursor, count - 1
                return
            del self._by_wish[wish]
        order.close_cursor(cursor)


def _shares(consumer: Consumer) -> bool:
    """May it share a cursor? It may if it takes messages away and has no replay period."""
    return consumer.destructive and not consumer.since_ms


def _wish_of(consumer: Consumer) -> _Wish:
    selector = consumer.selector
    return None if selector is None else selector.program, consumer.no_local
