"""A listening socket that pauses before the process runs out of descriptors, and resumes when some are free.

New clients meanwhile wait in the system's queue. asyncio's own server would accept them until not even the journal gets
a descriptor, and would write a traceback every second.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from artemis_py.log_codes import ACCEPTOR
from artemis_py.server.descriptors import lowest_free
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.proxy_protocol import Proxied, ProxyError, ProxyHeaders
from artemis_py.server.transports import shown_address

_AT_ONCE: Final = 64
"""How many clients are accepted at once, before other work runs."""
_RETRY_S: Final = 0.1


class Listener:
    """Accepts on ``bound`` and gives each socket to a protocol made by ``connect``; with ``proxies`` after the header
    that says whose it is. While ``descriptor_max``
    descriptors are in use, it accepts no client, unless ``make_room`` says that there is still room for one with
    that number: it may have ended others. The ``stored`` files that storage has open are not counted, because the
    reserve is for them.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        bound: socket.socket,
        connect: Callable[[Proxied | None], asyncio.BaseProtocol],
        descriptor_max: int,
        limited_log: RateLimitedLog,
        stored: Callable[[], int] = lambda: 0,
        make_room: Callable[[int], bool] = lambda _: False,
        proxies: ProxyHeaders | None = None,
    ) -> None:
        self.is_paused = False
        """Is it waiting for descriptors?"""
        self.pauses = 0
        """How often it had to wait."""
        self._loop = loop
        self._name = name
        self._bound = bound
        self._connect = connect
        self._descriptor_max = descriptor_max
        self._limited_log = limited_log
        self._stored = stored
        self._make_room = make_room
        self._proxies = proxies
        self._retry: asyncio.TimerHandle | None = None
        self._making: set[asyncio.Task[None]] = set()
        self._is_open = False

    def open(self, backlog: int) -> None:
        """Start to listen."""
        self._bound.setblocking(False)
        self._bound.listen(backlog)
        self._is_open = True
        self._loop.add_reader(self._bound, self._accept)

    def close(self) -> None:
        """Stop accepting."""
        if self._is_open:
            self.give_up().close()

    def give_up(self) -> socket.socket:
        """Stop accepting, but keep the socket open, so that new clients wait in it for somebody else."""
        self._is_open = False
        self._loop.remove_reader(self._bound)
        if self._retry is not None:
            self._retry.cancel()
        for task in list(self._making):
            task.cancel()
        return self._bound

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, place = self._bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor or memory is left, in the whole system or for this process
                self._pause(error.strerror or str(error))
                return
            client.setblocking(False)
            task = self._loop.create_task(self._serve(client, place))
            self._making.add(task)
            task.add_done_callback(self._making.discard)
            if not self._may_take(client.fileno()):
                if not self._make_room(client.fileno()):
                    self._pause(f"{client.fileno() + 1} file descriptors are in use")
                return  # the descriptor of one that was ended is free in the next round

    async def _serve(self, client: socket.socket, place: tuple[Any, ...]) -> None:
        try:
            proxied = None
            if self._proxies is not None:
                proxied = await self._proxies.read(self._loop, client, place)
                if proxied is None:
                    client.close()
                    return
            await self._loop.connect_accepted_socket(partial(self._connect, proxied), client)
        except asyncio.CancelledError:
            client.close()
        except ProxyError as refusal:
            client.close()
            self._limited_log.write(
                f"warning: acceptor {self._name}: a connection was closed: {refusal}",
                f"{self._name} proxy",
                code=ACCEPTOR,
                acceptor=self._name,
                from_=shown_address(place),
            )
        except Exception as error:  # whatever failed concerns only this client
            client.close()
            self._limited_log.write(
                f"warning: acceptor {self._name}: a connection was not accepted: {error!r}",
                self._name,
                code=ACCEPTOR,
                acceptor=self._name,
            )

    def _may_take(self, descriptor: int) -> bool:
        """Is this number below the reserved descriptors?"""
        return descriptor - self._stored() < self._descriptor_max

    def _pause(self, why: str) -> None:
        self._loop.remove_reader(self._bound)
        if not self.is_paused:
            self.is_paused = True
            self.pauses += 1
            self._limited_log.write(
                f"warning: acceptor {self._name} accepts no connections until others are closed: {why}, the rest is "
                "kept for storage and HTTP; raise the limit on open files (ulimit -n)",
                f"{self._name} pauses",
                code=ACCEPTOR,
                acceptor=self._name,
            )
        self._retry = self._loop.call_later(_RETRY_S, self._check)

    def _check(self) -> None:
        """Resume when a lower number is free again."""
        self._retry = None
        try:
            free = lowest_free()
            has_room = self._may_take(free) or self._make_room(free)
        except OSError:
            has_room = False
        if has_room:
            self.is_paused = False
            self._loop.add_reader(self._bound, self._accept)
        else:
            self._retry = self._loop.call_later(_RETRY_S, self._check)
