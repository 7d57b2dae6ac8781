"""Notices clients that disconnect while they wait for an answer: their sockets are not read then, so nothing else would
tell.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Final, NamedTuple, final

GRACE_S: Final = 1.0
"""How long an answer may take for a client that has closed its sending side. Such a client has nearly always
disconnected: only its reaction to an answer would show that it has not.
"""


@final
class _Watched(NamedTuple):
    left: Callable[[bool], None]
    is_sent_something: bool


@final
class DisconnectWatch:
    """Watches sockets on an event loop for the end of their connections. It ignores sockets that are only ready to be
    read: their clients have sent the next request already.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._watched: dict[int, _Watched] = {}
        loop.add_reader(self._epoll.fileno(), self._check)

    def watch(self, descriptor: int, left: Callable[[bool], None], *, is_sent_something: bool) -> None:
        """Watch a socket. ``left`` is called with False when the client sends no more, and with True when it is gone:
        at once after a reset, and also ``GRACE_S`` after it sends no more unless it ``is_sent_something``, which
        shows whether it is there. Raises OSError.
        """
        self._epoll.register(descriptor, select.EPOLLRDHUP | select.EPOLLONESHOT)
        self._watched[descriptor] = _Watched(left, is_sent_something)

    def forget(self, descriptor: int) -> None:
        """Watch a socket no longer. It is still open."""
        if self._watched.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _check(self) -> None:
        for descriptor, events in self._epoll.poll(0):
            watched = self._watched.get(descriptor)
            if watched is None:
                continue
            is_gone = bool(events & (select.EPOLLHUP | select.EPOLLERR))
            if not is_gone:
                self._epoll.modify(descriptor, select.EPOLLONESHOT)  # a reset is always told
                if not watched.is_sent_something:
                    self._loop.call_later(GRACE_S, self._grace_over, descriptor, watched)
            watched.left(is_gone)

    def _grace_over(self, descriptor: int, watched: _Watched) -> None:
        if self._watched.get(descriptor) is watched:  # and not a later request, or another client
            watched.left(True)

    def close(self) -> None:
        """Watch nothing any more; may be called twice."""
        if self._epoll.closed:
            return
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._watched.clear()
