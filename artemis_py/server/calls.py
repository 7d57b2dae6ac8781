"""What operators ask for, carried out inside turns, a little in each: so no list and no change makes a turn long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final, NamedTuple, cast, final

from artemis_py.core.clock import Clock
from artemis_py.errors import StorageError
from artemis_py.management.steps import AnySteps, Awaited, Coming, Step, Until

_SLICE_NS: Final = 2_000_000
"""For how long steps are made in a turn. A step takes less than that."""


class _Begun(NamedTuple):
    """A work, what will have its result, and whether it changes something."""

    work: AnySteps
    future: asyncio.Future[Any]
    changes: bool

    @property
    def is_vain(self) -> bool:
        """Does nobody wait for it any more?"""
        return self.future.done() and not self.changes


@final
class Calls:
    """The works that are under way. Each turn gives some time to the first, and then it is the next one's turn.

    ``when_durable`` calls a function when everything that was recorded so far survives a crash: the answer to a change
    waits for that. ``schedule`` has a turn run soon.
    """

    __slots__ = ("_awaiting", "_clock", "_loop", "_schedule", "_sleeping", "_when_durable", "_works", "is_due")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        schedule: Callable[[], None],
        when_durable: Callable[[Callable[[], None]], None],
    ) -> None:
        self.is_due = False
        """Is a work under way?"""
        self._loop = loop
        self._clock = clock
        self._schedule = schedule
        self._when_durable = when_durable
        self._works: deque[_Begun] = deque()
        """Those that can go on."""
        self._sleeping: list[tuple[int, _Begun]] = []
        """Those that wait for a time (steady ms)."""
        self._awaiting: list[tuple[Awaited, _Begun]] = []
        """Those that wait for something that each turn looks at."""

    def __len__(self) -> int:
        return len(self._works) + len(self._sleeping) + len(self._awaiting)

    @property
    def have_ready(self) -> bool:
        """Is there a work that can go on?"""
        return bool(self._works) or any(one.may_go_on or begun.is_vain for one, begun in self._awaiting)

    def next_due_ms(self) -> int | None:
        """The steady time at which the first of those that wait for one goes on; None: none does."""
        return min((due_ms for due_ms, _ in self._sleeping), default=None)

    def begin(self, work: AnySteps, *, changes: bool) -> asyncio.Future[Any]:
        """Returns what will have the result, or what the work raises. If nobody waits for it any more, a work that
        changes nothing is given up.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        if not changes:
            future.add_done_callback(self._given_up)
        self._go_on_with(_Begun(work, future, changes))
        return future

    def _go_on_with(self, begun: _Begun) -> None:
        self._works.append(begun)
        self.is_due = True
        self._schedule()

    def _given_up(self, future: asyncio.Future[Any]) -> None:
        """Nobody waits for a work that only looks: it ends now, and not when what it waits for is there."""
        if future.cancelled():
            self._schedule()

    def run(self, steady_ms: int) -> None:
        """The share of a turn at this steady time. Raises StorageError."""
        if self._sleeping:
            self._works += [begun for due_ms, begun in self._sleeping if due_ms <= steady_ms or begun.is_vain]
            self._sleeping = [one for one in self._sleeping if one[0] > steady_ms and not one[1].is_vain]
        if self._awaiting:
            waiting, self._awaiting = self._awaiting, []
            for awaited, begun in waiting:
                if awaited.may_go_on or begun.is_vain:
                    self._works.append(begun)
                else:
                    self._awaiting.append((awaited, begun))
        until_ns = perf_counter_ns() + _SLICE_NS
        for _ in range(len(self._works)):
            self._go_on(self._works.popleft(), until_ns)
            if perf_counter_ns() >= until_ns:
                break
        self.is_due = len(self) > 0

    def _go_on(self, begun: _Begun, until_ns: int) -> None:
        if begun.is_vain:
            begun.work.close()
            return
        try:
            while (step := next(begun.work)) is None and perf_counter_ns() < until_ns:
                pass
        except StopIteration as ended:
            result = ended.value
            if begun.changes:
                self._when_durable(lambda: _settle(begun.future, result))
            else:
                _settle(begun.future, result)
        except StorageError:
            raise
        except Exception as error:
            if not begun.future.done():
                begun.future.set_exception(error)
        else:
            self._put_off(begun, step)

    def _put_off(self, begun: _Begun, step: Step) -> None:
        if step is None or isinstance(step, bool):
            self._works.append(begun)
        elif isinstance(step, Until):
            self._sleeping.append((step.steady_ms, begun))
            self._clock.wait_until(step.steady_ms)
        elif hasattr(step, "add_done_callback"):
            coming = cast(Coming, step)
            if not begun.changes:
                begun.future.add_done_callback(lambda _: coming.cancel())
            coming.add_done_callback(lambda _: self._go_on_with(begun))
        else:
            self._awaiting.append((step, begun))


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():  # the client may have left
        future.set_result(result)
