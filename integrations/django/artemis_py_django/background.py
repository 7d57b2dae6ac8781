"""The thread with the event loop in which this process talks to brokers. A process that was forked gets another one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from artemis_py_tasks import Options, Sender

T = TypeVar("T")


class Background:
    """The thread, which begins when something is to be done."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may come while its thread has it
        self._loop: asyncio.AbstractEventLoop | None = None
        self._senders: dict[str, Sender] = {}

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Let the thread do this."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop())

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the thread do this, and wait until it is done."""
        return self.submit(work).result()

    def soon(self, what: Callable[[], None]) -> None:
        """Let the thread do this, and go on."""
        self._running_loop().call_soon_threadsafe(what)

    async def sender_for(self, key: str, options: Options) -> Sender:
        """The sender with these options, which all threads of the process share."""
        if key not in self._senders:
            self._senders[key] = Sender(options)
            self._senders[key].open()
        return self._senders[key]

    def forget(self) -> None:
        """After a fork: the thread, its loop and its sockets are the parent's."""
        self._lock, self._loop = threading.RLock(), None
        self._senders = {}

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="artemis_py_django", daemon=True).start()
            return self._loop


background = Background()
os.register_at_fork(after_in_child=background.forget)
