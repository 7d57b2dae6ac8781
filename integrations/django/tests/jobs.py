"""Tasks of the tests."""

from __future__ import annotations

import sys
import threading
from typing import Any

from django.tasks import TaskContext, task

seen: list[Any] = []
began = threading.Event()
go_on = threading.Event()


@task
def note(what: Any, **more: Any) -> Any:
    """Done at once."""
    seen.append(what)
    return {"noted": what, **more}


@task
async def anote(what: str) -> str:
    """A coroutine."""
    seen.append(what)
    return what


@task
def fail(kind: str) -> None:
    """Never done."""
    seen.append(kind)
    if kind == "exit":
        sys.exit(3)
    if kind == "no JSON":
        return object()  # type: ignore[return-value]
    raise ValueError(kind)


@task(takes_context=True)
def try_twice(context: TaskContext[Any, Any]) -> list[str]:
    """Done at the second attempt."""
    if context.attempt < 2:
        raise RuntimeError("not yet")
    return context.task_result.worker_ids


@task
def last_long() -> None:
    """Done when a test says so."""
    began.set()
    assert go_on.wait(20)


NO_TASK = 1
