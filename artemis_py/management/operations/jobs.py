"""Operations that list and stop background jobs."""

from __future__ import annotations

from typing import Final

from artemis_py.errors import NotFoundError
from artemis_py.management.jobs import JOBS, STOPPED
from artemis_py.management.listing import NUMBER
from artemis_py.management.managed import Arguments, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows


def _list(managed: Managed, arguments: Arguments) -> Steps:
    return select_rows(JOBS, list(managed.jobs.by_id.values()), arguments)


def _stop(managed: Managed, arguments: Arguments) -> Steps:
    job = managed.jobs.by_id.get(arguments["job"])
    if job is None:
        raise NotFoundError(f"there is no job {arguments['job']}")
    if job.is_running:
        job.state = STOPPED
    return at_once(JOBS.row(job))


_NO_JOBS: Final = "Artemis has no jobs."

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
        no_mbean=_NO_JOBS,
    ),
)
