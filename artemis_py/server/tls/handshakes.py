"""Handshakes under way: their steps run in threads, because signing with a key takes milliseconds; their number is
limited, because strangers begin them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol, final

from artemis_py.server.tls.records import Records

THREADS: Final = 2
UNDER_WAY_MAX: Final = 1_000
"""One more, and the oldest is closed: a client that shakes hands at all does so in milliseconds."""


class Shaking(Protocol):
    """A connection whose handshake is not complete."""

    def give_up(self, result: str, reason: str) -> None:
        """Close the connection."""


@final
class Handshakes:
    """For the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way: dict[Shaking, None] = {}
        self._threads = ThreadPoolExecutor(THREADS, "TLS handshake")

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, link: Shaking) -> None:
        """A connection was accepted."""
        if len(self._under_way) >= UNDER_WAY_MAX:
            oldest = next(iter(self._under_way))
            oldest.give_up("crowded", f"{UNDER_WAY_MAX} handshakes are under way, and this one is the oldest")
        self._under_way[link] = None

    def end(self, link: Shaking) -> None:
        """Its handshake is complete, or it is gone; may be called twice."""
        self._under_way.pop(link, None)

    def step(self, records: Records, done: Callable[[Future[bool]], None]) -> None:
        """Take a step in a thread, then call ``done`` in the event loop's thread with what ``Records.shake`` said."""

        def tell(future: Future[bool]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(done, future)

        self._threads.submit(records.shake).add_done_callback(tell)

    def stop(self) -> None:
        """Close all, and end the threads."""
        for link in list(self._under_way):
            link.give_up("left", "the broker stops")
        self._threads.shutdown(wait=False, cancel_futures=True)
