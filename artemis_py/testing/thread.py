"""A thread with an event loop of its own, and calls into it from other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar, final

from artemis_py.testing.errors import BrokerDownError

Value = TypeVar("Value")

CALL_S: Final = 30.0
"""Within this time the loop answers. It never waits for a client, so only a machine that stands still takes longer."""


@final
class LoopThread:
    """Runs an event loop from now until ``end``. The thread is a daemon: it does not keep the process alive."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.loop = loop
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], Value]) -> Value:
        """Call a function in the loop's thread; returns what it returns, and raises what it raises."""
        if threading.current_thread() is self._thread:
            return function()
        future: Future[Value] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._tell(run)
        return self._answer(future)

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine on the loop, and return its result."""
        try:
            return self._answer(asyncio.run_coroutine_threadsafe(coroutine, self.loop))
        except RuntimeError:
            coroutine.close()
            raise

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            self.loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed
            raise BrokerDownError("the broker of this test has ended; start a new one") from None

    def _answer(self, future: Future[Value]) -> Value:
        try:
            return future.result(CALL_S)
        except TimeoutError:
            if future.done():
                raise  # it was the call that raised it
            raise BrokerDownError(
                f"the thread {self._thread.name!r} of the broker has not answered for {CALL_S:g} s"
            ) from None

    def end(self) -> None:
        """Stop the loop, end its tasks and threads, and close it. Raises BrokerDownError if it does not end."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CALL_S)
        if self._thread.is_alive():
            raise BrokerDownError(f"the thread {self._thread.name!r} of the broker does not end")

    def _run(self) -> None:
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def is_on_a_loop() -> bool:
    """Does an event loop run in the caller's thread?"""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
