"""What all clients watch: each thing is looked at once a second, however many watch it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, final

from artemis_py.errors import LimitError
from artemis_py.management.managed import Managed
from artemis_py.server.calls import Calls
from artemis_py.server.events.listener import Listener
from artemis_py.server.events.topic import Topic
from artemis_py.server.events.watch import Watch

PERIOD_S: Final = 1.0
WATCHES_MAX: Final = 200
"""So many different things are watched at most."""


@final
class Watches:
    """By their topics. ``calls`` looks at them inside turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop, managed: Managed, calls: Calls) -> None:
        self._loop = loop
        self._managed = managed
        self._calls = calls
        self._by_text: dict[str, Watch] = {}
        self._is_ticking = False

    def __len__(self) -> int:
        return len(self._by_text)

    def check(self, topics: Sequence[Topic]) -> None:
        """Raises LimitError if these would be too many."""
        if len(self._by_text.keys() | {topic.text for topic in topics}) > WATCHES_MAX:
            raise LimitError(f"clients watch {len(self._by_text)} different things, and may watch {WATCHES_MAX}")

    def join(self, listener: Listener, topics: Sequence[Topic]) -> None:
        """A client watches these, each from the next look on, which begins now."""
        for topic in topics:
            watch = self._by_text.setdefault(topic.text, Watch(topic, self._managed))
            watch.join(listener)
            self._look(watch)
        if topics and not self._is_ticking:
            self._is_ticking = True
            self._loop.call_later(PERIOD_S, self._tick)

    def leave(self, listener: Listener) -> None:
        """A client watches no more."""
        for text, watch in list(self._by_text.items()):
            watch.leave(listener)
            if not watch:
                del self._by_text[text]

    def _tick(self) -> None:
        self._is_ticking = bool(self._by_text)
        if self._is_ticking:
            self._loop.call_later(PERIOD_S, self._tick)
            for watch in self._by_text.values():
                self._look(watch)

    def _look(self, watch: Watch) -> None:
        """Begin a look, unless one is under way."""
        if not watch.is_looking:
            watch.is_looking = True
            self._calls.begin(watch.look(), changes=False)
