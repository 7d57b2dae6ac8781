"""Conditions that tests wait for: looked at after each turn of the broker, never by the clock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import final

from artemis_py.testing.errors import BrokerDownError, NotReachedError, WouldBlockError
from artemis_py.testing.thread import LoopThread, is_on_a_loop


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
