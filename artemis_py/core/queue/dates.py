"""Until when messages of a queue wait that are put aside."""

from __future__ import annotations

from typing import Final, final

_NONE: Final[dict[int, int]] = {}
"""Most queues never need one of their own, and there are many queues."""


@final
class Dates:
    """Dates by message id, for operators who look. Nothing falls due by them (``timing/timers.py`` has what does)."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id = _NONE

    def note(self, message_id: int, date_ms: int) -> None:
        """A message waits until this date (epoch ms), if nobody sets the clock."""
        if self._by_id is _NONE:
            self._by_id = {}
        self._by_id[message_id] = date_ms

    def forget(self, message_id: int) -> None:
        """It waits no more."""
        self._by_id.pop(message_id, None)

    def of(self, message_id: int) -> int:
        """Until when it waits; 0: it does not."""
        return self._by_id.get(message_id, 0)

    def __len__(self) -> int:
        return len(self._by_id)
