"""When to look where for which message that expires."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from artemis_py.core.host import Host
from artemis_py.core.order.order import Order
from artemis_py.core.queue.entry import Entry
from artemis_py.core.queue.lifetime import Lifetime
from artemis_py.core.schedule import drop_void
from artemis_py.message import Message

_VOID_MIN: Final = 1024
_LOOKS: Final = 4
"""When more than so many watched messages, and more than stand on the queue, are gone, each new one makes the queue
look at so many of them.
"""


@final
class ExpiryWatch:
    """Places of one queue at which something expires. It holds no entry: what is acknowledged long before it would have
    expired must not stay in memory until then.
    """

    __slots__ = ("_aside", "_host", "_looked_at", "_order", "_queue_id", "_watched", "lifetime")

    def __init__(
        self, queue_id: int, host: Host, order: Order, lifetime: Lifetime | None, aside: dict[int, Entry]
    ) -> None:
        self._queue_id = queue_id
        self._host = host
        self._order = order
        self._aside = aside
        """What of the queue is put aside, by message id."""
        self.lifetime = lifetime
        """The queue's own bounds on how long messages live, if it has any."""
        self._watched: list[tuple[int, int, int, int]] = []
        """(epoch ms, level, sequence, message id), as a heap."""
        self._looked_at = 0
        """Where to go on looking for what is watched in vain."""

    def __len__(self) -> int:
        return len(self._watched)

    def expires_ms(self, message: Message) -> int:
        """When the message expires on this queue, in epoch ms; 0: never."""
        return message.expires_ms if self.lifetime is None else self.lifetime.expires_ms(message)

    @property
    def next_ms(self) -> int:
        """When to look for the next message that has expired; 0: never."""
        return self._watched[0][0] if self._watched else 0

    def add(self, entry: Entry, message_count: int) -> None:
        """An entry has its place, and its message expires. ``message_count`` is how many there are on the queue."""
        message = entry.message
        watched = self._watched
        expires_ms = self.expires_ms(message)
        if self.lifetime is not None and not (watched and watched[0][0] <= expires_ms):
            self._host.timers.note_alarm(expires_ms, self._queue_id)
        heappush(watched, (expires_ms, self._order.level_of(message), entry.sequence, message.id))
        if len(watched) > 2 * message_count + _VOID_MIN:
            self._looked_at = drop_void(watched, self._looked_at, _LOOKS, self._is_void)

    def _is_void(self, watched: tuple[int, int, int, int]) -> bool:
        """Is a message gone that was watched? It is not while it stands here, or waits. What a consumer holds is
        watched again when it comes back.
        """
        _, level, sequence, message_id = watched
        entry = self._order.at(level, sequence)
        return (entry is None or entry.message.id != message_id) and message_id not in self._aside

    def pop(self, now_ms: int) -> tuple[int, int, int] | None:
        """Where (level, sequence) the next message expires, and its id; None when none does by ``now_ms``."""
        watched = self._watched
        if not watched or watched[0][0] > now_ms:
            return None
        _, level, sequence, message_id = heappop(watched)
        return level, sequence, message_id

    def set_alarm(self) -> None:
        """Look again when the next message expires, where the queue gives messages their time."""
        if self._watched and self.lifetime is not None:
            self._host.timers.note_alarm(self._watched[0][0], self._queue_id)

    def forget(self, count_max: int) -> int:
        """Nothing is left that could expire: forget so much of what is watched; returns how much that was."""
        count = min(count_max, len(self._watched))
        del self._watched[len(self._watched) - count :]  # what is left of a heap is a heap
        return count
