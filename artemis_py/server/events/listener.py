"""One client that listens over HTTP: what waits for it, and what had to be left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, final

from artemis_py.server.stream import Stream

WAITING_BYTES_MAX: Final = 256 * 1024
"""So much waits for one listener at most."""
_PIECE_BYTES: Final = 32 * 1024
_BEAT: Final = b":\n\n"


@final
class Listener(Stream):
    """Events for one client, in order. ``types`` are the notifications that it wants; empty: all. ``left`` is called
    once, when the client has gone; ``count`` when more bytes wait, or fewer. ``expires_ms`` is the date at which the
    client's login ends; 0: never.
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

    def notify(self, type: str, told: bytes) -> None:
        """A notification, which is left out if too much waits."""
        if self._types and type not in self._types:
            return
        if self._waiting_bytes + len(told) > WAITING_BYTES_MAX:
            self._lost += 1
        else:
            self._put(told)

    def note_lost(self, count: int) -> None:
        """Notifications were left out; -1: nobody knows how many."""
        if count < 0:
            self._is_lost_unknown = True
        else:
            self._lost += count
        self.wake()

    def put(self, told: bytes) -> bool:
        """Another event; False if too much waits, and it was left out."""
        if self._waiting_bytes and self._waiting_bytes + len(told) > WAITING_BYTES_MAX:
            return False
        self._put(told)
        return True

    def _put(self, told: bytes) -> None:
        self._tell_lost()
        self._add(told)
        self.wake()

    def _tell_lost(self) -> None:
        if self._lost or self._is_lost_unknown:
            self._add(b'event: lost\ndata: {"count": %d}\n\n' % (-1 if self._is_lost_unknown else self._lost))
            self._lost = 0
            self._is_lost_unknown = False

    def _add(self, told: bytes) -> None:
        self._waiting.append(told)
        self._waiting_bytes += len(told)
        self._count(len(told))
        self._is_quiet = False

    def beat(self, now_ms: int) -> None:
        """If nothing was told since the last beat, tell that the broker is there; end if the login has ended."""
        if 0 < self._expires_ms <= now_ms:
            self.is_over = True
            self.wake()
        if self._is_quiet and not self._waiting:
            self._put(_BEAT)
        self._is_quiet = True

    def take(self) -> bytes:
        if not self._waiting:
            self._tell_lost()
        taken: list[bytes] = []
        size_bytes = 0
        while self._waiting and size_bytes < _PIECE_BYTES:
            told = self._waiting.popleft()
            taken.append(told)
            size_bytes += len(told)
        self._waiting_bytes -= size_bytes
        self._count(-size_bytes)
        return b"".join(taken)

    def close(self) -> None:
        if not self.is_closed:
            super().close()
            self._left(self)
            self._waiting.clear()
            self._count(-self._waiting_bytes)
            self._waiting_bytes = 0
