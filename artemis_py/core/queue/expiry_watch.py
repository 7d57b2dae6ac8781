"""When to look at which place for an expired message."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from artemis_py.core.host import Host
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import Order
from artemis_py.core.queue.behind import Behind
from artemis_py.core.reference.lifetime import Lifetime
from artemis_py.core.timing.schedule import drop_void
from artemis_py.message import Message

_VOID_MIN: Final = 1024
_LOOKS: Final = 4
"""How many watched messages each new one makes the queue check, once more than ``_VOID_MIN`` of them, and more than are
on the queue, are gone.
"""


@final
class ExpiryWatch:
    """Places of one queue where a message expires. It holds no entry: a message acknowledged long before its expiry
    must not stay in memory until then.
    """

    __slots__ = ("_aside", "_behind", "_host", "_looked_at", "_order", "_queue_id", "_watched", "lifetime")

    def __init__(
        self,
        queue_id: int,
        host: Host,
        order: Order,
        lifetime: Lifetime | None,
        aside: dict[int, Entry],
        behind: Behind | None = None,
    ) -> None:
        self._queue_id = queue_id
        self._host = host
        self._order = order
        self._aside = aside
        """Entries put aside, by message id."""
        self._behind = behind
        """Entries that are not active."""
        self.lifetime = lifetime
        """The queue's own bounds on how long messages live; None without any."""
        self._watched: list[tuple[int, int, int, int]] = []
        """(epoch ms, level, sequence, message id), as a heap."""
        self._looked_at = 0
        """Where the search for watched messages that are gone goes on."""

    def __len__(self) -> int:
        return len(self._watched)

    def expires_ms(self, message: Message) -> int:
        """When the message expires on this queue, in epoch ms; 0: never."""
        return message.expires_ms if self.lifetime is None else self.lifetime.expires_ms(message)

    @property
    def next_ms(self) -> int:
        """When the next watched message expires, in epoch ms; 0: never."""
        return self._watched[0][0] if self._watched else 0

    def add(self, entry: Entry, message_count: int) -> None:
        """Watch an entry that has its place and expires. ``message_count`` is the number of messages on the queue."""
        message = entry.message
        watched = self._watched
        expires_ms = self.expires_ms(message)
        if self.lifetime is not None and not (watched and watched[0][0] <= expires_ms):
            self._host.timers.note_alarm(expires_ms, self._queue_id)
        heappush(watched, (expires_ms, self._order.level_of(message), entry.sequence, message.id))
        if len(watched) > 2 * message_count + _VOID_MIN:
            self._looked_at = drop_void(watched, self._looked_at, _LOOKS, self._is_void)

    def _is_void(self, watched: tuple[int, int, int, int]) -> bool:
        """Is a watched message gone? It is here while it is ready, put aside, or not active. One that a consumer holds
        is watched again when it comes back.
        """
        _, level, sequence, message_id = watched
        entry = self._order.at(level, sequence)
        if entry is None and self._behind is not None:
            entry = self._behind.at(sequence)
        return (entry is None or entry.message.id != message_id) and message_id not in self._aside

    def pop(self, now_ms: int) -> tuple[int, int, int] | None:
        """Where the next expired message was, as (level, sequence, message id). None when none expires by
        ``now_ms``.
        """
        watched = self._watched
        if not watched or watched[0][0] > now_ms:
            return None
        _, level, sequence, message_id = heappop(watched)
        return level, sequence, message_id

    def set_alarm(self) -> None:
        """Set an alarm for the next expiry, on a queue with its own bounds on time."""
        if self._watched and self.lifetime is not None:
            self._host.timers.note_alarm(self._watched[0][0], self._queue_id)

    def forget(self, count_max: int) -> int:
        """Nothing that could expire is left: forget up to ``count_max`` watched places. Returns how many."""
        count = min(count_max, len(self._watched))
        del self._watched[len(self._watched) - count :]  # the rest of a heap is a heap
        return count
