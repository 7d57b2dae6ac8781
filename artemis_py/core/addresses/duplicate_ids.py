"""The duplicate ids that one address has seen."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

from artemis_py.core.holdings import ID_BYTES, IDS, Holdings

_FORGOTTEN_AT_ONCE: Final = 2
"""A table that was made smaller shrinks by one id with each that comes: there may be very many."""


@final
class DuplicateIds:
    """The last N duplicate ids that an address has seen (Artemis manual, "Duplicate Message Detection")."""

    def __init__(self, size: int, holdings: Holdings) -> None:
        self._size = size
        self._holdings = holdings
        self._seen: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, duplicate_id: str) -> bool:
        return duplicate_id in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, duplicate_id: str) -> None:
        """Remember an id; beyond the size the oldest is forgotten."""
        if self._size <= 0:
            return
        if duplicate_id not in self._seen:
            self._holdings.move(IDS, ID_BYTES + len(duplicate_id))
        self._seen[duplicate_id] = None
        for _ in range(min(len(self._seen) - self._size, _FORGOTTEN_AT_ONCE)):
            oldest, _ = self._seen.popitem(last=False)
            self._holdings.move(IDS, -ID_BYTES - len(oldest))

    def discard(self, duplicate_id: str) -> None:
        """Forget one id, if it is there."""
        if duplicate_id in self._seen:
            del self._seen[duplicate_id]
            self._holdings.move(IDS, -ID_BYTES - len(duplicate_id))

    def resize(self, size: int) -> None:
        """Remember so many ids from now on. Those beyond a smaller size are forgotten as others come."""
        self._size = size

    def forget(self) -> None:
        """The address is gone."""
        self._holdings.move(IDS, -sum(ID_BYTES + len(each) for each in self._seen))
        self._seen.clear()
