"""What goes wrong."""

from __future__ import annotations

from stompman import ErrorFrame


class TasksError(Exception):
    """Base of the errors of this package."""


class SendError(TasksError):
    """A task was not sent."""


class RefusedError(SendError):
    """The broker has refused a task or a consumer, and said why. The same again is refused again."""


class UnconfirmedError(SendError):
    """The broker has not confirmed a task in time. If it was reached, the task may have arrived."""


def reason_of(frame: ErrorFrame | None) -> str:
    """What the broker says in an ERROR frame."""
    if frame is None:
        return "it does not say why"
    return frame.headers.get("message") or frame.body.decode(errors="replace").strip() or "it does not say why"
