"""What operators ask for, carried out inside turns, a little in each: so no list and no change makes a turn long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from time import perf_counter_ns
from typing import Any, Final, final

from artemis_py.errors import StorageError
from artemis_py.management.managed import WAIT, Awaited, Step

Steps = Generator[Step, None, Any]
_SLICE_NS: Final = 2_000_000
"""For how long steps are made in a turn. A step takes less than that."""


@final
class Calls:
    """The works that are under way. Each turn gives some time to the first, and then it is the next one's turn.

    ``when_durable`` calls a function when everything that was recorded so far survives a crash: the answer to a change
    waits for that. ``schedule`` has a turn run soon.
    """

    __slots__ = ("_loop", "_schedule", "_when_durable", "_works")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        schedule: Callable[[], None],
        when_durable: Callable[[Callable[[], None]], None],
    ) -> None:
        self._loop = loop
        self._schedule = schedule
        self._when_durable = when_durable
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
            if perf_counter_ns() >= until_ns:
                return

    def _goes_on(self, work: Steps, future: asyncio.Future[Any], until_ns: int, *, changes: bool) -> bool:
        if future.done() and not changes:
            work.close()
            return False
        try:
            step: Step = None
            while step is not WAIT and perf_counter_ns() < until_ns:
                step = next(work)
                if step is not None and not isinstance(step, bool):
                    self._sleep(work, future, step, changes=changes)
                    return False
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

    def _sleep(self, work: Steps, future: asyncio.Future[Any], awaited: Awaited, *, changes: bool) -> None:
        """Go on with a work when something is there."""

        def wake(_: object) -> None:
            self._works.append((work, future, changes))
            self._schedule()

        awaited.add_done_callback(wake)


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():  # the client may have left
        future.set_result(result)
