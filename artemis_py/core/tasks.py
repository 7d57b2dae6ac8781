"""Work that is larger than a turn: it goes on in later turns, with its share of the budget, its order and its end on
failure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, NamedTuple, Protocol, final

from mypy_extensions import mypyc_attr

from artemis_py.core.budget import Budget
from artemis_py.errors import BrokerError, StorageError

# ---- waiting ---------------------------------------------------------------------------------------------------------
#
# What a task waits for before it goes on. One that is written as a generator says so after each of its steps.


class Awaited(Protocol):
    """Something that is looked at in each turn; something else has a turn run then."""

    @property
    def may_go_on(self) -> bool:
        """Is the wait over?"""


class Coming(Protocol):
    """Something that comes from elsewhere, such as a thread, and costs nothing meanwhile."""

    def add_done_callback(self, call: Callable[[Any], object], /) -> object:
        """Have ``call`` called when it is there."""

    def cancel(self) -> object:
        """Nobody waits for it any more."""


class Until(NamedTuple):
    """A steady time, in ms."""

    steady_ms: int


WAIT: Final = True
"""Another turn."""
Step = bool | Until | Awaited | Coming | None
"""None: nothing, if the turn has time left."""
AnySteps = Generator[Step, None, Any]


def until_done(tasks: Iterable[Task | None]) -> Generator[bool, None, None]:
    """The steps that wait for tasks; None stands for one that is done. Raises BrokerError when one of them broke off:
    nobody hears that it was carried out.
    """
    waited = [task for task in tasks if task is not None]
    for task in waited:
        while not task.may_go_on:
            yield WAIT
    if any(task.failed for task in waited):
        raise BrokerError(
            "A step failed inside the broker, so only a part of this was done; its log says what failed (ART-1006). "
            "Look at what is left, and try again"
        )


# ---- tasks -----------------------------------------------------------------------------------------------------------


@mypyc_attr(allow_interpreted_subclasses=True)
class Task(ABC):
    """Work that was decided, and is carried out over as many turns as it takes: on the agenda, or in a line."""

    done: bool = False
    """Has it ended? Who asked for it may have to wait for that."""
    failed: bool = False
    """Has a step of it raised an exception? It was reported."""
    holds: bool = False
    """In a queue's line: is dispatch held back until it is done? While a task moves entries, no consumer may get one
    that stands behind another on its way back.
    """
    added_count: int = 0
    """How many entries it has put on its queue. The queue reacts to them when it is done."""

    @property
    def may_go_on(self) -> bool:
        """May who waits for it go on?"""
        return self.done

    @abstractmethod
    def work(self, budget: Budget, now_ms: int) -> bool:
        """Do some of it. Spend from ``budget`` and stop soon after that is spent, but get on by at least one step even
        when it is spent already. Returns True when everything is done. What raises in a step leaves what the step was
        about where it was.
        """

    def break_off(self, now_ms: int) -> bool:
        """A step has raised an exception. Returns True when there is more to do that does not depend on it. Otherwise
        the task ends: put back what it was still to do something with.
        """
        return False

    def fail(self, now_ms: int) -> None:
        """A step has raised an exception: go on behind it, or end. A task whose ``break_off`` raises has ended, too."""
        self.failed = self.done = True
        self.done = not self.break_off(now_ms)

    @property
    def title(self) -> str:
        """What the log calls it."""
        return type(self).__name__

    @property
    def queue_name(self) -> str:
        """The queue that it is about; empty: it is not about one alone."""
        return ""


@mypyc_attr(allow_interpreted_subclasses=True)
class TaskLine(Task):
    """Tasks that run one after the other, in order. The result is the same as if each had run at once. The line is on
    the agenda while one of them is unfinished.
    """

    def __init__(self) -> None:
        self._tasks: deque[Task] | None = None
        """None before the first of them: most queues never have any."""

    @property
    def may_go_on(self) -> bool:
        """Is no task unfinished?"""
        return not self._tasks

    @property
    def title(self) -> str:
        return self._tasks[0].title if self._tasks else super().title

    @property
    def unfinished(self) -> list[Task]:
        """The tasks in order; the first is under way."""
        return list(self._tasks or ())

    def add(self, task: Task) -> None:
        """Add a task behind all others."""
        if self._tasks is None:
            self._tasks = deque()
        self._tasks.append(task)

    def work(self, budget: Budget, now_ms: int) -> bool:
        tasks = self._tasks
        while tasks and (tasks[0].done or tasks[0].work(budget, now_ms)):
            self.end_first(tasks[0], now_ms)
            if budget.is_spent:
                break
        return not tasks

    def break_off(self, now_ms: int) -> bool:
        tasks = self._tasks
        assert tasks, "what broke off was under way"
        tasks[0].fail(now_ms)
        if tasks[0].done:
            self.end_first(tasks[0], now_ms)
        return bool(tasks)

    def end_first(self, task: Task, now_ms: int) -> None:
        """The first task has ended: the next one follows."""
        assert self._tasks, "something is under way"
        self._tasks.popleft()
        task.done = True


@final
class Broken:
    """A task that raised an exception, and its words at that time."""

    __slots__ = ("error", "queue_name", "task", "title")

    def __init__(self, task: Task, error: Exception) -> None:
        self.task = task
        self.title = task.title
        self.queue_name = task.queue_name
        self.error = error


@final
class Agenda:
    """The unfinished tasks. Each gets its share of a turn, so none holds up another."""

    __slots__ = ("_share", "broken", "tasks")

    def __init__(self) -> None:
        self.broken: list[Broken] = []
        """Tasks that raised an exception. Whoever reports them takes them out."""
        self.tasks: deque[Task] = deque()
        """Those that are not done."""
        self._share = Budget()

    def __len__(self) -> int:
        return len(self.tasks)

    def add(self, task: Task) -> None:
        """Have a task done, or done again, from the next ``run`` on."""
        task.done = False
        self.tasks.append(task)

    def run(self, budget: Budget, now_ms: int) -> None:
        """Go around the tasks once at most. The first task gets on in any case: a turn that others have used up must
        not put it off for ever.

        A task that raises an exception leaves the shares of the others alone. It is noted in ``broken`` and goes on if
        ``Task.break_off`` says so. StorageError passes: the disk failed.
        """
        tasks = self.tasks
        share = self._share
        for waiting in range(len(tasks), 0, -1):
            units = max(budget.left // waiting, 1)
            share.refill(units)
            task = tasks.popleft()
            self._work(task, share, now_ms)
            if not task.done:
                tasks.append(task)
            budget.spend(units - share.left)
            if budget.is_spent:
                break

    def complete(self, line: TaskLine, now_ms: int) -> None:
        """Carry out all tasks of a line at once: somebody else's step needs what they do. What raises in them is
        theirs, as in ``run``.
        """
        unlimited = Budget()
        while not line.may_go_on:
            self._work(line, unlimited, now_ms)

    def _work(self, task: Task, budget: Budget, now_ms: int) -> None:
        """Do some of a task."""
        try:
            task.done = task.work(budget, now_ms)
        except StorageError:
            raise
        except Exception as error:
            self.broken.append(Broken(task, error))
            self._fail(task, now_ms)

    def _fail(self, task: Task, now_ms: int) -> None:
        """A step of a task raised. What raises while it breaks off stays in the task, too."""
        try:
            task.fail(now_ms)
        except StorageError:
            raise
        except Exception as error:
            self.broken.append(Broken(task, error))
            task.done = task.may_go_on
