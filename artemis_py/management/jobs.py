"""Background jobs: works that go on after their operation was answered. A restart forgets them, not what they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from artemis_py.errors import LimitError
from artemis_py.management.listing import EPOCH_MS, NUMBER, TEXT, Field, Kind

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
        """What was left, and why, once it is over."""

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
        """End a job. ``remark`` is what was left, and why."""
        job.ended_ms = now_ms
        job.remark = remark
        if job.is_running:
            job.state = DONE


JOBS: Final[Kind[Job]] = Kind(
    "job",
    "jobs",
    [
        Field("id", NUMBER, "The job's number", lambda it: it.id, is_brief=True),
        Field("what", TEXT, "What it does", lambda it: it.what, is_brief=True),
        Field("queue", TEXT, "The queue whose messages it is about", lambda it: it.queue, is_brief=True),
        Field("state", TEXT, "running, done or stopped", lambda it: it.state, is_brief=True),
        Field("done", NUMBER, "How many messages it has done", lambda it: it.done(), "messages", is_brief=True),
        Field(
            "planned", NUMBER, "How many there were when it began", lambda it: it.planned_count, "messages",
            is_brief=True,
        ),
        Field("rate", NUMBER, "How many it does in a second at most", lambda it: it.rate, "messages"),
        Field("began", NUMBER, "When it began", lambda it: it.begun_ms, EPOCH_MS),
        Field("ended", NUMBER, "When it ended; 0: it runs", lambda it: it.ended_ms, EPOCH_MS),
        Field("remark", TEXT, "What else there is to say; null: nothing", lambda it: it.remark or None, is_brief=True),
    ],
)  # fmt: skip
