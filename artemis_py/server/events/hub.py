"""The listeners of HTTP: each gets the same bytes, as far as it reads them."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

from artemis_py.core.holdings import HTTP, Holdings
from artemis_py.core.notices import Notice, Notices
from artemis_py.management.notifications import json_of
from artemis_py.server.events.listener import Listener
from artemis_py.server.events.messages import event

KEPT_MAX: Final = 500
"""How many notifications are kept for clients that come again."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
LISTENERS_MAX: Final = 50
"""How many clients may listen."""
BEAT_S: Final = 10.0
LINGER_S: Final = 60.0
"""For how long notifications are noted after the last listener has left."""


@final
class Hub:
    """Hands notifications to the listeners, and keeps the last ones. ``date_ms`` is the date; what waits for listeners
    is counted in ``holdings``.
    """

    def __init__(
        self, notices: Notices, loop: asyncio.AbstractEventLoop, holdings: Holdings, date_ms: Callable[[], int]
    ) -> None:
        self.listeners: set[Listener] = set()
        self.date_ms = date_ms
        self._notices = notices
        self._loop = loop
        self._holdings = holdings
        self._is_beating = False
        self._epoch = secrets.token_hex(4)
        """Other numbers than those of another run of the broker."""
        self._number = 0
        self._kept: deque[tuple[int, str, bytes]] = deque(maxlen=KEPT_MAX)
        self._departures = 0

    def tell(self, taken: Sequence[Notice], now_ms: int) -> None:
        """Something happened."""
        for notice in taken:
            self._number += 1
            told = event("notification", json_of(notice, now_ms), f"{self._epoch}-{self._number}")
            self._kept.append((self._number, notice.type, told))
            for listener in self.listeners:
                listener.notify(notice.type, told)

    def join(self, listener: Listener, last_id: str) -> None:
        """A client listens from now on; ``last_id`` is that of the last notification it has had, or empty."""
        if last_id:
            self._resume(listener, last_id)
        self.listeners.add(listener)
        if not self._is_beating:
            self._is_beating = True
            self._loop.call_later(BEAT_S, self._beat)
        self._notices.is_listened_to = True

    def _resume(self, listener: Listener, last_id: str) -> None:
        epoch, _, number = last_id.rpartition("-")
        if epoch != self._epoch or _NUMBER.fullmatch(number) is None or not self._notices.is_listened_to:
            listener.note_lost(-1)
            return
        first = self._kept[0][0] if self._kept else self._number + 1
        missing = max(first - 1 - int(number), 0)
        if missing:
            listener.note_lost(missing)
        for kept, type, told in self._kept:
            if kept > int(number):
                listener.notify(type, told)

    def leave(self, listener: Listener) -> None:
        """A client listens no more, if it did."""
        if listener not in self.listeners:
            return
        self.listeners.discard(listener)
        if not self.listeners:
            self._departures += 1
            departure = self._departures
            self._loop.call_later(LINGER_S, lambda: self._rest(departure))

    def _rest(self, departure: int) -> None:
        """Nobody has come since then: note nothing more."""
        if not self.listeners and departure == self._departures:
            self._notices.is_listened_to = False
            self._kept.clear()

    def count(self, size_bytes: int) -> None:
        """So many bytes more wait for listeners."""
        self._holdings.move(HTTP, size_bytes)

    def _beat(self) -> None:
        """Send a comment to those who got nothing for a while, and end the streams of logins that are over."""
        self._is_beating = bool(self.listeners)
        if self._is_beating:
            self._loop.call_later(BEAT_S, self._beat)
        now_ms = self.date_ms()
        for listener in self.listeners:
            listener.beat(now_ms)
