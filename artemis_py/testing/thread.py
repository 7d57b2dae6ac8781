"""A thread with an event loop of its own, calls into it from other threads, and conditions that they wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar, final

from artemis_py.testing.errors import BrokerDownError, NotReachedError, WouldBlockError

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


# ---- waits -----------------------------------------------------------------------------------------------------------
#
# Conditions are looked at after each turn of the broker, never by the clock.


@final
class Waits:
    """The conditions that threads wait for now. All conditions are asked in the thread of the loop."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._waiting: dict[Future[None], Callable[[], bool]] = {}

    @property
    def count(self) -> int:
        """How many threads wait."""
        return len(self._waiting)

    def end(self) -> None:
        """There is no broker any more: nothing that is waited for will happen."""
        while self._waiting:
            future, _ = self._waiting.popitem()
            future.set_exception(BrokerDownError("the broker was stopped while this waited for it"))

    def look(self) -> None:
        """Something may have changed: wake those whose condition holds."""
        for future, condition in list(self._waiting.items()):
            self._ask(future, condition)

    def _ask(self, future: Future[None], condition: Callable[[], bool]) -> None:
        try:
            if not condition():
                return
        except BaseException as error:
            self._waiting.pop(future, None)
            future.set_exception(error)
            return
        self._waiting.pop(future, None)
        future.set_result(None)

    def wait(self, condition: Callable[[], bool], explain: Callable[[], str], timeout_s: float, call: str) -> None:
        """Wait until the condition holds. Raises NotReachedError with the explanation, which is made in the thread of
        the loop, and WouldBlockError on an event loop, where ``call`` is what the caller wrote.
        """
        future: Future[None] = Future()

        def begin() -> None:
            self._waiting[future] = condition
            self._ask(future, condition)

        self._thread.call(begin)
        may_block = not is_on_a_loop()
        try:
            future.result(timeout_s if may_block else 0)
            return
        except TimeoutError:
            if future.done() and future.exception() is not None:
                raise  # it was the condition that raised it
        reached, why = self._thread.call(lambda: self._give_up(future, explain))
        if reached:
            return
        if not may_block and timeout_s > 0:
            raise WouldBlockError(
                f"{call}() has to wait, and would block the event loop of its caller, with all clients on it: "
                f"write  await asyncio.to_thread({call}, …)\n{why}"
            )
        raise NotReachedError(why)

    def _give_up(self, future: Future[None], explain: Callable[[], str]) -> tuple[bool, str]:
        """Wait no longer, unless the condition holds by now. Returns whether it does, else the explanation."""
        if self._waiting.pop(future, None) is None:
            return True, ""
        return False, explain()
