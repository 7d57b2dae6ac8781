"""When each user was let in last."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

USERS_MAX: Final = 10_000
"""Beyond it the one whose login is the oldest is forgotten: with tokens and directories, others choose the names."""
_NAME_MAX: Final = 256


@final
class LatestLogins:
    """The dates since the start, in epoch ms."""

    __slots__ = ("_dates",)

    def __init__(self) -> None:
        self._dates: OrderedDict[str, int] = OrderedDict()

    def note(self, user: str, date_ms: int) -> None:
        """The user was let in now. Very long names are not kept."""
        if len(user) > _NAME_MAX:
            return
        self._dates[user] = date_ms
        self._dates.move_to_end(user)
        if len(self._dates) > USERS_MAX:
            self._dates.popitem(last=False)

    def of(self, user: str) -> int:
        """The date of its last login; 0: none since the start."""
        return self._dates.get(user, 0)
