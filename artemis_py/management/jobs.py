"""Background jobs: they go on after their operation was answered. A restart forgets them; what they did stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from artemis_py.errors import LimitError

RUNNING: Final = "running"
DONE: Final = "done"
STOPPED: Final = "stopped"
KEPT_MAX: Final = 100
"""So many jobs that are over are remembered."""
RUNNING_MAX: Final = 20
"""So many jobs may run at the same time."""


@final
class Job:
    """One work: what it does, on which queue, when it began (epoch ms), and how far it is."""

    def __init__(self, id: int, what: str, queue: str, begun_ms: int, planned_count: int, rate: int) -> None:
        self.id = id
        self.what = what
        self.queue = queue
        self.begun_ms = begun_ms
        self.planned_count = planned_count
        """How many messages it is about."""
        self.rate = rate
        """How many messages it does in a second, at most."""
        self.ended_ms = 0
        self.state = RUNNING
        self.done: Callable[[], int] = lambda: 0
        """How many messages it has done."""
        self.remark = ""
        """What else there is to say when it is over."""

    @property
    def is_running(self) -> bool:
        """Is it not over?"""
        return self.state == RUNNING

    def was_stopped(self) -> bool:
        """Has an operator stopped it?"""
        return self.state == STOPPED


@final
class Jobs:
    """The jobs since the start: those that run, and the last ones that are over."""

    def __init__(self) -> None:
        self.by_id: dict[int, Job] = {}
        self._last_id = 0

    def begin(self, what: str, queue: str, begun_ms: int, planned_count: int, rate: int) -> Job:
        """A new job. Raises LimitError if too many run."""
        over = [job for job in self.by_id.values() if not job.is_running]
        if len(self.by_id) - len(over) >= RUNNING_MAX:
            raise LimitError(f"{RUNNING_MAX} jobs run already; wait until one is over, or stop one")
        for job in over[: max(len(over) - KEPT_MAX + 1, 0)]:
            del self.by_id[job.id]
        self._last_id += 1
        job = self.by_id[self._last_id] = Job(self._last_id, what, queue, begun_ms, planned_count, rate)
        return job

    def end(self, job: Job, now_ms: int, remark: str) -> None:
        """A job is over. ``remark`` is what else there is to say."""
        job.ended_ms = now_ms
        job.remark = remark
        if job.is_running:
            job.state = DONE
