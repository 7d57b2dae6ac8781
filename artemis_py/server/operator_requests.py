"""Operators' requests, carried out inside turns, a little in each: no list and no change makes a turn long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final, cast, final

from artemis_py.core.budget import Budget
from artemis_py.core.clock import Clock
from artemis_py.core.tasks import Agenda, AnySteps, Awaited, Coming, Task, Until

_SLICE_UNITS: Final = 2_000
"""What the calls of a turn may spend, in units of a microsecond. A step takes less than that."""
_UNIT_NS: Final = 1_000


@final
class _OperatorRequest(Task):
    """One request: a generator that is advanced a little in each turn, the future for its result, and whether it
    changes something. It leaves the agenda while it has to wait.
    """

    def __init__(
        self, calls: OperatorRequests, number: int, steps: AnySteps, future: asyncio.Future[Any], *, changes: bool
    ) -> None:
        self._calls = calls
        self.number = number
        self._steps = steps
        self.future = future
        self.changes = changes

    @property
    def is_vain(self) -> bool:
        """Does nobody wait for it any more?"""
        return self.future.done() and not self.changes

    def work(self, budget: Budget, now_ms: int) -> bool:
        if self.is_vain:
            self._steps.close()
            return True
        began_ns = perf_counter_ns()
        until_ns = began_ns + budget.left * _UNIT_NS
        try:
            while (step := next(self._steps)) is None and perf_counter_ns() < until_ns:
                pass
        except StopIteration as ended:
            self._calls.note_result(self, ended.value)
            return True
        finally:
            budget.spend((perf_counter_ns() - began_ns) // _UNIT_NS)
        if step is None or isinstance(step, bool):
            return False
        self._calls.put_off(self, step)
        return True


@final
class OperatorRequests:
    """Operators' requests that run, on an agenda of their own, and those that wait.

    ``when_durable`` calls a function when everything that was recorded so far survives a crash: the answer to a change
    waits for that. ``schedule`` has a turn run soon.
    """

    __slots__ = ("_agenda", "_budget", "_loop", "_number", "_resting", "_schedule", "_waiting", "_when_durable",
                 "alarms", "is_due")  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        schedule: Callable[[], None],
        when_durable: Callable[[Callable[[], None]], None],
    ) -> None:
        self.is_due = False
        """Is there a call that may go on in the next turn? One that waits for a time, or for a thread, is not due."""
        self._loop = loop
        self._schedule = schedule
        self._when_durable = when_durable
        self._agenda = Agenda()
        self._budget = Budget()
        self._waiting: list[tuple[Awaited, _OperatorRequest]] = []
        """Those that wait for something that each turn looks at."""
        self._number = 0
        self._resting: dict[int, _OperatorRequest] = {}
        """Those that wait for a time, by number."""
        self.alarms = clock.alarms()
        """The times."""

    def __len__(self) -> int:
        return len(self._agenda) + len(self._waiting) + len(self._resting)

    @property
    def have_ready(self) -> bool:
        """Is there a call that can go on? The clock tells when a time has come."""
        return bool(self._agenda.tasks) or any(call.is_vain or awaited.may_go_on for awaited, call in self._waiting)

    def begin(self, steps: AnySteps, *, changes: bool) -> asyncio.Future[Any]:
        """Returns what will have the result, or the exception. If nobody waits for it any more, a request that
        changes nothing is cancelled.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        self._number += 1
        call = _OperatorRequest(self, self._number, steps, future, changes=changes)
        if not changes:
            future.add_done_callback(lambda _: self._give_up(call))
        self._go_on_with(call)
        return future

    def _go_on_with(self, call: _OperatorRequest) -> None:
        self._agenda.add(call)
        self.is_due = True
        self._schedule()

    def _give_up(self, call: _OperatorRequest) -> None:
        """The client of a request that changes nothing has left: end it now, not when what it waits for is there."""
        if call.future.cancelled():
            self.alarms.clear(call.number)
            if self._resting.pop(call.number, None) is not None:
                self._agenda.add(call)
            self.is_due = True
            self._schedule()

    def run(self, steady_ms: int) -> None:
        """The share of a turn at this steady time. Raises StorageError."""
        while self.alarms.due:
            rested = self._resting.pop(self.alarms.take(), None)
            if rested is not None:
                self._agenda.add(rested)
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for awaited, call in waiting:
                if awaited.may_go_on or call.is_vain:
                    self._agenda.add(call)
                else:
                    self._waiting.append((awaited, call))
        self._budget.refill(_SLICE_UNITS)
        self._agenda.run(self._budget, steady_ms)
        while self._agenda.broken:
            broken = self._agenda.broken.pop()
            assert isinstance(broken.task, _OperatorRequest)
            if not broken.task.future.done():
                broken.task.future.set_exception(broken.error)
        self.is_due = bool(self._agenda.tasks or self._waiting)

    def put_off(self, call: _OperatorRequest, step: Until | Awaited | Coming) -> None:
        """A request waits for a time, or for something."""
        if isinstance(step, Until):
            self._resting[call.number] = call
            self.alarms.set(call.number, step.steady_ms)
        elif hasattr(step, "add_done_callback"):
            coming = cast(Coming, step)
            if not call.changes:
                call.future.add_done_callback(lambda _: coming.cancel())
            coming.add_done_callback(lambda _: self._go_on_with(call))
        else:
            self._waiting.append((step, call))

    def note_result(self, call: _OperatorRequest, result: Any) -> None:
        """A request has ended: answer it, a change when it is durable."""
        if call.changes:
            self._when_durable(lambda: _settle(call.future, result))
        else:
            _settle(call.future, result)


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():  # the client may have left
        future.set_result(result)
