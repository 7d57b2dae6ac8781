"""What happens to a queue when one of its steps raises an exception."""

from __future__ import annotations

from artemis_py.core.events import SET_ASIDE, described
from artemis_py.core.host import Host
from artemis_py.core.queue.queue import Queue


def set_aside(host: Host, queue: Queue, step: str, error: Exception) -> None:
    """Pause a queue, because one of its own steps raised ``error``. It is paused until somebody resumes it or the
    broker starts again; all other queues go on. Raises the error again when the disk failed, which is no queue's fault.
    """
    fields = described(step, error)
    queue.pause()
    host.note_event(SET_ASIDE, queue.reference, fields, kind=step)
