"""What breaks off in a connection's step: counted by step, and told in a few lines however often it happens.

The rule: no connection's failure leaves its own step of a turn. The connection ends, all others are served.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from pathlib import Path
from typing import Any, Final

from artemis_py.errors import ArtemisError
from artemis_py.server.complaints import Complaints
from artemis_py.shown import escaped

STEPS: Final = (
    "accept", "poll", "read", "lost", "unblock", "beat", "write", "flush", "room", "weigh", "answer", "end",
    "http", "loop",
)  # fmt: skip
"""What a connection can break off in. ``answer``: what waits for a record to be durable; ``end``: closing its socket;
``loop``: whatever the event loop called and caught itself.
"""
_TEXT_MAX: Final = 300


class TurnError(ArtemisError):
    """A step of a turn that belongs to no single connection or queue broke off: the broker cannot say what it has
    promised, and stops.
    """


def shown(error: BaseException) -> str:
    """An error in one line: its kind, its text without control characters, and the place where it was raised."""
    text = escaped(str(error)[:_TEXT_MAX])
    traceback = error.__traceback__
    if traceback is None:
        return f"{type(error).__name__}: {text}"
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {text} ({Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno})"


class Faults:
    """``counts`` are steps that broke off since the start, by step; the lines go through ``complaints``."""

    def __init__(self, complaints: Complaints | None = None) -> None:
        self.counts = dict.fromkeys(STEPS, 0)
        self._complaints = complaints or Complaints()

    def note(self, peer: str, step: str, error: BaseException) -> None:
        """A step of the connection from ``peer`` (host:port, empty for unknown) broke off with ``error``."""
        self.counts[step] += 1
        who = f"connection {peer or '(address unknown)'}"
        line = f"warning: {who} is closed, its step {step} failed: {shown(error)}"
        self._complaints.tell(line, "a step of a connection failed")

    def caught_by_loop(self, loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        """For ``loop.set_exception_handler``: what no step caught is told and counted the same way."""
        owner = context.get("protocol")
        error = context.get("exception") or RuntimeError(str(context.get("message", "no message")))
        self.note(getattr(owner, "peer", ""), "loop", error)
