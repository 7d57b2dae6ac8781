"""What happens when a step of a queue, or a task, raises an exception."""

from __future__ import annotations

from artemis_py.core.events import GIVEN_UP, SET_ASIDE, described
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost


def set_aside(host: QueueHost, queue: Queue, step: str, error: Exception) -> None:
    """Pause a queue, because one of its own steps raised ``error``. It is paused until somebody resumes it or the
    broker starts again; all other queues go on. Raises the error again when the disk failed, which is no queue's fault.
    """
    fields = described(step, error)
    queue.pause()
    queue.gate.failed_step = step
    host.note_event(SET_ASIDE, queue.reference, fields, kind=step)


def give_up(host: QueueHost, queue_name: str, step: str, error: Exception) -> None:
    """A copy or a task has failed and is given up: note it for the operational log. Raises the error when the disk
    failed.
    """
    host.events.note(GIVEN_UP, queue_name, described(step, error), kind=step)
