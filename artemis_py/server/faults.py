"""Failures in a connection's steps: counted by step, and logged in a few lines however many there are.

The rule: no connection's failure leaves its own step of a turn. That connection ends; all others are served.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from pathlib import Path
from typing import Any, Final

from artemis_py.errors import ArtemisError
from artemis_py.log_codes import CONNECTION
from artemis_py.server.complaints import Complaints
from artemis_py.shown import escaped

STEPS: Final = (
    "accept", "poll", "read", "lost", "unblock", "beat", "write", "flush", "room", "weigh", "answer", "end",
    "http", "loop",
)  # fmt: skip
"""The steps in which a connection can fail. ``answer``: what waits for a durable record; ``end``: closing its socket;
``loop``: what the event loop called and caught itself.
"""
_TEXT_MAX: Final = 300


class TurnError(ArtemisError):
    """A step that belongs to no single connection or queue failed: the broker no longer knows what it has confirmed,
    and stops.
    """


def shown(error: BaseException) -> str:
    """An error in one line: its type, its text without control characters, and where it was raised."""
    text = escaped(str(error)[:_TEXT_MAX])
    traceback = error.__traceback__
    if traceback is None:
        return f"{type(error).__name__}: {text}"
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {text} ({Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno})"


class Faults:
    """``counts`` are the failures since the start, by step; the lines go through ``complaints``."""

    def __init__(self, complaints: Complaints | None = None) -> None:
        self.counts = dict.fromkeys(STEPS, 0)
        self._complaints = complaints or Complaints()

    def note(self, peer: str, step: str, error: BaseException) -> None:
        """A step of the connection from ``peer`` (host:port, or empty) failed with ``error``."""
        self.counts[step] += 1
        who = f"connection {peer or '(address unknown)'}"
        line = f"warning: {who} is closed, its step {step} failed: {shown(error)}"
        self._complaints.tell(line, "a step of a connection failed", code=CONNECTION, step=step, from_=peer)

    def caught_by_loop(self, loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        """For ``loop.set_exception_handler``: logs and counts what no step caught in the same way."""
        owner = context.get("protocol")
        error = context.get("exception") or RuntimeError(str(context.get("message", "no message")))
        self.note(getattr(owner, "peer", ""), "loop", error)
