"""Handshakes under way: their steps run in threads, because signing with a key takes milliseconds; their number is
limited, because strangers begin them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol, final

THREADS: Final = 2
UNDER_WAY_MAX: Final = 1_000
"""One more, and the oldest of the peer with the most is closed: who shakes hands at all does so in milliseconds, and a
peer that opens very many delays only its own.
"""


class HandshakingConnection(Protocol):
    """A connection whose handshake is not complete. ``network`` is its peer (``network_of``)."""

    network: str

    def give_up(self, result: str, reason: str) -> None:
        """Close the connection."""


@final
class Handshakes:
    """For the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way: dict[str, dict[HandshakingConnection, None]] = {}
        """By network, the oldest first."""
        self._count = 0
        self._threads = ThreadPoolExecutor(THREADS, "TLS handshake")

    def __len__(self) -> int:
        return self._count

    def begin(self, link: HandshakingConnection) -> None:
        """A connection was accepted."""
        if self._count >= UNDER_WAY_MAX:
            self.end_oldest(f"{UNDER_WAY_MAX} handshakes are under way, most of them with this peer")
        self._under_way.setdefault(link.network, {})[link] = None
        self._count += 1

    def end_oldest(self, reason: str) -> bool:
        """Close the oldest of the peer with the most; False if none is under way."""
        if not self._under_way:
            return False
        most = max(self._under_way, key=lambda network: len(self._under_way[network]))
        next(iter(self._under_way[most])).give_up("crowded", reason)
        return True

    def end(self, link: HandshakingConnection) -> None:
        """Its handshake is complete, or it is gone; may be called twice."""
        links = self._under_way.get(link.network, {})
        if link in links:
            self._count -= 1
            del links[link]
            if not links:
                del self._under_way[link.network]

    def step(self, shake: Callable[[], bool], done: Callable[[Future[bool]], None]) -> None:
        """Call ``shake`` in a thread, then ``done`` in the event loop's thread with its result."""

        def tell(future: Future[bool]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(done, future)

        self._threads.submit(shake).add_done_callback(tell)

    def stop(self) -> None:
        """Close all, and end the threads."""
        for link in [link for links in self._under_way.values() for link in links]:
            link.give_up("left", "the broker stops")
        self._threads.shutdown(wait=False, cancel_futures=True)
