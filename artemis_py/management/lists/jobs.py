"""The fields of a job in lists."""

from __future__ import annotations

from typing import Final

from artemis_py.management.jobs import Job
from artemis_py.management.lists.field import EPOCH_MS, NUMBER, TEXT, Field, Kind

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
