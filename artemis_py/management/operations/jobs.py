"""Background jobs: their fields, and the operations that list and stop them."""

from __future__ import annotations

from typing import Final

from artemis_py.errors import NotFoundError
from artemis_py.management.listing import EPOCH_MS, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import STOPPED, Arguments, Job, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows

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


def _list(managed: Managed, arguments: Arguments) -> Steps:
    return select_rows(JOBS, list(managed.jobs.by_id.values()), arguments)


def _stop(managed: Managed, arguments: Arguments) -> Steps:
    job = managed.jobs.by_id.get(arguments["job"])
    if job is None:
        raise NotFoundError(f"there is no job {arguments['job']}")
    if job.is_running:
        job.state = STOPPED
    return at_once(JOBS.row(job))


JOB_OPERATIONS: Final = (
    listing("listJobs", "/api/jobs", "job ls", JOBS, "Background jobs.", _list),
    Operation(
        name="stopJob",
        right=EDIT,
        method="DELETE",
        path="/api/jobs/{job}",
        command="job stop",
        sentence="Stop a job. What it has done is not undone.",
        result="the fields of the job",
        destroys="job {job}, but what it has done is not undone",
        arguments=(Argument("job", NUMBER, "the number of the job"),),
        shows=JOBS,
        work=_stop,
        no_mbean="Artemis has no jobs.",
    ),
)
