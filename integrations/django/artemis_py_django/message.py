"""A task as a message, and back."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from artemis_py_tasks import Delivery
from django.tasks.base import Task, TaskResult, TaskResultStatus
from django.utils.module_loading import import_string


class UnknownTaskError(Exception):
    """A message is no task of this project."""


def body_of(result: TaskResult[..., Any]) -> bytes:
    """The body of its message, in JSON."""
    task = result.task
    assert result.enqueued_at is not None
    fields = {
        "task": task.module_path,
        "args": result.args,
        "kwargs": result.kwargs,
        "queue_name": task.queue_name,
        "priority": task.priority,
        "run_after": task.run_after and task.run_after.isoformat(),
        "enqueued_at": result.enqueued_at.isoformat(),
    }
    return json.dumps(fields).encode()


def result_of(delivery: Delivery, backend: str) -> TaskResult[..., Any]:
    """The task that has come, ready to be run. Raises UnknownTaskError."""
    try:
        fields = json.loads(delivery.body)
        path = fields["task"]
        task = import_string(path)
        if not isinstance(task, Task):
            raise UnknownTaskError(f"{path} is no task (django.tasks.task makes one)")
        task = task.using(
            priority=fields["priority"],
            queue_name=fields["queue_name"],
            run_after=fields["run_after"] and datetime.fromisoformat(fields["run_after"]),
            backend=backend,
        )
        return TaskResult(
            task=task,
            id=delivery.task_id,
            status=TaskResultStatus.READY,
            enqueued_at=datetime.fromisoformat(fields["enqueued_at"]),
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=fields["args"],
            kwargs=fields["kwargs"],
            backend=backend,
            errors=[],
            worker_ids=[],
        )
    except UnknownTaskError:
        raise
    except Exception as error:  # whatever the project's own modules raise
        raise UnknownTaskError(f"{delivery.headers.get('task', 'a message that is no task')}: {error!r}") from error


def priority_of(priority: int) -> int:
    """A priority of Django (-100 to 100, usually 0) as one of STOMP (0 to 9, usually 4)."""
    return 4 + -(-priority // 20) if priority >= 0 else 4 + priority // 25
