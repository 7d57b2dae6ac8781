"""What operators ask for, carried out inside turns, a little in each: so no list and no change makes a turn long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from time import perf_counter_ns
from typing import Any, Final, final

from artemis_py.errors import StorageError
from artemis_py.management.managed import WAIT, Pause

Steps = Generator[bool | Pause | None, None, Any]
_SLICE_NS: Final = 2_000_000
"""For how long steps are made in a turn. A step takes less than that."""


@final
class Calls:
    """The works that are under way. Each turn gives some time to the first, and then it is the next one's turn.

    ``when_durable`` calls a function when everything that was recorded so far survives a crash: the answer to a change
    waits for that. ``schedule`` has a turn run soon.
    """

    __slots__ = ("_loop", "_rest_ms", "_schedule", "_when_durable", "_works")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        schedule: Callable[[], None],
        when_durable: Callable[[Callable[[], None]], None],
    ) -> None:
        self._loop = loop
        self._schedule = schedule
        self._when_durable = when_durable
        self._rest_ms = 0
        """How long the work that made the last step is to rest; 0: not at all."""
        self._works: deque[tuple[Steps, asyncio.Future[Any], bool]] = deque()

    def __len__(self) -> int:
        return len(self._works)

    def begin(self, work: Steps, *, changes: bool) -> asyncio.Future[Any]:
        """Returns what will have the result, or what the work raises. If nobody waits for it any more, a work that
        changes nothing is given up.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        self._works.append((work, future, changes))
        self._schedule()
        return future

    def run(self) -> None:
        """The share of a turn. Raises StorageError."""
        until_ns = perf_counter_ns() + _SLICE_NS
        for _ in range(len(self._works)):
            work, future, changes = self._works.popleft()
            if self._goes_on(work, future, until_ns, changes=changes):
                self._works.append((work, future, changes))
            elif self._rest_ms:
                self._loop.call_later(self._rest_ms / 1000, self._go_on_later, (work, future, changes))
            if perf_counter_ns() >= until_ns:
                return

    def _go_on_later(self, one: tuple[Steps, asyncio.Future[Any], bool]) -> None:
        self._works.append(one)
        self._schedule()

    def _goes_on(self, work: Steps, future: asyncio.Future[Any], until_ns: int, *, changes: bool) -> bool:
        self._rest_ms = 0
        if future.done() and not changes:
            work.close()
            return False
        try:
            while (step := next(work)) is not WAIT:
                if isinstance(step, Pause):
                    self._rest_ms = step.span_ms
                    return False
                if perf_counter_ns() >= until_ns:
                    break
        except StopIteration as ended:
            result = ended.value
            if changes:
                self._when_durable(lambda: _settle(future, result))
            else:
                _settle(future, result)
            return False
        except StorageError:
            raise
        except Exception as error:
            if not future.done():
                future.set_exception(error)
            return False
        return True


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():  # the client may have left
        future.set_result(result)
