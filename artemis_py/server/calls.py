"""What operators ask for, carried out inside turns, a little in each: so no list and no change makes a turn long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from time import perf_counter_ns
from typing import Any, Final, final

from artemis_py.errors import StorageError
from artemis_py.management.managed import WAIT, Until

Steps = Generator[bool | Until | None, None, Any]
_SLICE_NS: Final = 2_000_000
"""For how long steps are made in a turn. A step takes less than that."""


_Begun = tuple[Steps, asyncio.Future[Any], bool]


@final
class Calls:
    """The works that are under way. Each turn gives some time to the first, and then it is the next one's turn.

    ``when_durable`` calls a function when everything that was recorded so far survives a crash: the answer to a change
    waits for that. ``schedule`` has a turn run soon.
    """

    __slots__ = ("_loop", "_schedule", "_sleeping", "_when_durable", "_works")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        schedule: Callable[[], None],
        when_durable: Callable[[Callable[[], None]], None],
    ) -> None:
        self._loop = loop
        self._schedule = schedule
        self._when_durable = when_durable
        self._works: deque[_Begun] = deque()
        self._sleeping: list[tuple[int, _Begun]] = []
        """Works that wait for a time (steady ms)."""

    def next_due_ms(self) -> int | None:
        """The steady time at which the first of those that wait goes on; None: none waits for a time."""
        return min((due_ms for due_ms, _ in self._sleeping), default=None)

    @property
    def has_some(self) -> bool:
        """Is there a work that goes on now, or at some time?"""
        return bool(self._works or self._sleeping)

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

    def run(self, steady_ms: int = 0) -> None:
        """The share of a turn at this steady time. Raises StorageError."""
        if self._sleeping:
            self._works.extend(begun for due_ms, begun in self._sleeping if due_ms <= steady_ms)
            self._sleeping = [each for each in self._sleeping if each[0] > steady_ms]
        until_ns = perf_counter_ns() + _SLICE_NS
        for _ in range(len(self._works)):
            begun = self._works.popleft()
            self._go_on(begun, until_ns)
            if perf_counter_ns() >= until_ns:
                return

    def _go_on(self, begun: _Begun, until_ns: int) -> None:
        work, future, changes = begun
        if future.done() and not changes:
            work.close()
            return
        try:
            while (said := next(work)) is not WAIT and not isinstance(said, Until) and perf_counter_ns() < until_ns:
                pass
            if isinstance(said, Until):
                self._sleeping.append((said.steady_ms, begun))
            else:
                self._works.append(begun)
        except StopIteration as ended:
            result = ended.value
            if changes:
                self._when_durable(lambda: _settle(future, result))
            else:
                _settle(future, result)
        except StorageError:
            raise
        except Exception as error:
            if not future.done():
                future.set_exception(error)


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():  # the client may have left
        future.set_result(result)
