"""Server-sent events: the clients that listen, and what waits for each of them."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

from artemis_py.core.memory import HTTP, Holdings
from artemis_py.core.notifications import Notification, Notifications
from artemis_py.management.notifications import json_of
from artemis_py.server.http.requests import Stream

# ---- messages --------------------------------------------------------------------------------------------------------
#
# Server-sent events as bytes.


def event(kind: str, data: str, id: str = "") -> bytes:
    """An event; ``data`` is JSON, in one line."""
    number = f"id: {id}\n" if id else ""
    return f"{number}event: {kind}\ndata: {data}\n\n".encode()


def as_json(value: object) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False)


# ---- listener --------------------------------------------------------------------------------------------------------
#
# One client that listens over HTTP: what waits for it, and what had to be left out.


WAITING_BYTES_MAX: Final = 256 * 1024
"""So much waits for one listener at most."""
_PIECE_BYTES: Final = 32 * 1024
_BEAT: Final = b":\n\n"


@final
class Listener(Stream):
    """Events for one client, in order. ``types`` are the notifications that it wants; empty: all. ``left`` is called
    once, when the client has gone or gets nothing more; ``count`` when more bytes wait, or fewer. ``expires_ms`` is
    the date at which the client's login ends; 0: never.
    """

    def __init__(
        self,
        types: frozenset[str],
        left: Callable[[Listener], None],
        count: Callable[[int], None] = lambda _: None,
        expires_ms: int = 0,
    ) -> None:
        super().__init__()
        self._types = types
        self._left = left
        self._count = count
        self._expires_ms = expires_ms
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        self._is_lost_unknown = False
        self._is_quiet = False

    def notify(self, type: str, data: bytes) -> None:
        """A notification, which is left out if too much waits."""
        if self.is_over or (self._types and type not in self._types):
            return
        if self._waiting_bytes + len(data) > WAITING_BYTES_MAX:
            self._lost += 1
        else:
            self._put(data)

    def note_lost(self, count: int) -> None:
        """Notifications were left out; -1: nobody knows how many."""
        if count < 0:
            self._is_lost_unknown = True
        else:
            self._lost += count
        self.wake()

    def put(self, data: bytes) -> bool:
        """Another event; False if too much waits, and it was left out. None comes behind the end."""
        if self.is_over:
            return True
        if self._waiting_bytes and self._waiting_bytes + len(data) > WAITING_BYTES_MAX:
            return False
        self._put(data)
        return True

    def _put(self, data: bytes) -> None:
        self._tell_lost()
        self._add(data)
        self.wake()

    def _tell_lost(self) -> None:
        if not self.is_over and (self._lost or self._is_lost_unknown):
            self._add(b'event: lost\ndata: {"count": %d}\n\n' % (-1 if self._is_lost_unknown else self._lost))
            self._lost = 0
            self._is_lost_unknown = False

    def _add(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self._count(len(data))
        self._is_quiet = False

    def beat(self, now_ms: int) -> None:
        """Send a comment if nothing was sent since the last beat; end if the login has ended."""
        if 0 < self._expires_ms <= now_ms:
            self.end("the login has ended: log in again")
        if self.is_over:
            return
        if self._is_quiet and not self._waiting:
            self._put(_BEAT)
        self._is_quiet = True

    def take(self) -> bytes:
        if not self._waiting:
            self._tell_lost()
        taken: list[bytes] = []
        size_bytes = 0
        while self._waiting and size_bytes < _PIECE_BYTES:
            data = self._waiting.popleft()
            taken.append(data)
            size_bytes += len(data)
        self._waiting_bytes -= size_bytes
        self._count(-size_bytes)
        return b"".join(taken)

    def end(self, why: str) -> None:
        """A problem is the last event; what still waits for the client is dropped: it may have lost the right to it."""
        if not self.is_over:
            self._drop()
            self._add(event("problem", as_json({"error": why})))
            super().end(why)
            self._left(self)

    def _drop(self) -> None:
        self._waiting.clear()
        self._count(-self._waiting_bytes)
        self._waiting_bytes = 0
        self._lost, self._is_lost_unknown = 0, False

    def close(self) -> None:
        if not self.is_closed:
            super().close()
            if not self.is_over:
                self._left(self)
            self._drop()


# ---- hub -------------------------------------------------------------------------------------------------------------
#
# The listeners of HTTP: each gets the same bytes, as far as it reads them.


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
        self,
        notifications: Notifications,
        loop: asyncio.AbstractEventLoop,
        holdings: Holdings,
        date_ms: Callable[[], int],
    ) -> None:
        self.listeners: set[Listener] = set()
        self.date_ms = date_ms
        self._notifications = notifications
        self._loop = loop
        self._holdings = holdings
        self._is_beating = False
        self._epoch = secrets.token_hex(4)
        """Other numbers than those of another run of the broker."""
        self._number = 0
        self._kept: deque[tuple[int, str, bytes]] = deque(maxlen=KEPT_MAX)
        self._times_empty = 0
        """How often the last listener has left."""

    def send(self, notifications: Sequence[Notification], now_ms: int) -> None:
        """Something happened."""
        for notification in notifications:
            self._number += 1
            data = event("notification", json_of(notification, now_ms), f"{self._epoch}-{self._number}")
            self._kept.append((self._number, notification.type, data))
            for listener in self.listeners:
                listener.notify(notification.type, data)

    def join(self, listener: Listener, last_id: str) -> None:
        """A client listens from now on; ``last_id`` is that of the last notification it has had, or empty."""
        if last_id:
            self._resume(listener, last_id)
        self.listeners.add(listener)
        if not self._is_beating:
            self._is_beating = True
            self._loop.call_later(BEAT_S, self._beat)
        self._notifications.is_listened_to = True

    def _resume(self, listener: Listener, last_id: str) -> None:
        epoch, _, number = last_id.rpartition("-")
        if epoch != self._epoch or _NUMBER.fullmatch(number) is None or not self._notifications.is_listened_to:
            listener.note_lost(-1)
            return
        first = self._kept[0][0] if self._kept else self._number + 1
        missing = max(first - 1 - int(number), 0)
        if missing:
            listener.note_lost(missing)
        for kept, type, data in self._kept:
            if kept > int(number):
                listener.notify(type, data)

    def leave(self, listener: Listener) -> None:
        """A client listens no more, if it did."""
        if listener not in self.listeners:
            return
        self.listeners.discard(listener)
        if not self.listeners:
            self._times_empty += 1
            times_empty = self._times_empty
            self._loop.call_later(LINGER_S, lambda: self._rest(times_empty))

    def _rest(self, times_empty: int) -> None:
        """No listener has joined since then: note nothing more."""
        if not self.listeners and times_empty == self._times_empty:
            self._notifications.is_listened_to = False
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
        for listener in list(self.listeners):
            listener.beat(now_ms)
