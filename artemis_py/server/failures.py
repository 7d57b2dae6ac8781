"""Failures of connections: counted by step, and told in a few lines of each kind."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from artemis_py.errors import ArtemisError
from artemis_py.log_codes import CONNECTION, OTHER
from artemis_py.shown import escaped, warn

# ---- complaints ------------------------------------------------------------------------------------------------------
#
# Lines about failures on standard error: a few of each kind in ten seconds, then only their number. Otherwise a
# failure of every client or every write would fill the disk with equal lines.


WINDOW_S: Final = 10.0
LINES_MAX: Final = 3
"""Lines of one kind per window."""
_KINDS_MAX: Final = 1_000


class _Window:
    __slots__ = ("begun_s", "left_out", "lines")

    def __init__(self, begun_s: float) -> None:
        self.begun_s = begun_s
        self.lines = 0
        self.left_out = 0


class Complaints:
    """Writes lines to the log, or with ``write``, at most LINES_MAX of a kind per window. The next written line says
    how many were omitted. ``clock_s`` must never go back. Any thread may call ``tell``.
    """

    def __init__(
        self, write: Callable[[str], None] | None = None, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock_s = clock_s
        self._windows: dict[str, _Window] = {}

    def tell(self, line: str, kind: str | None = None, *, code: str = OTHER, **who: str) -> None:
        """Write a line, unless there were enough of its ``kind`` (None: of this same line). ``code`` and ``who`` are
        those of ``warn``.
        """
        if self._may_write(kind or line):
            text = line + self._left_out(kind or line)
            if self._write is None:
                warn(text, code, **who)
            else:
                self._write(text)

    def _may_write(self, kind: str) -> bool:
        now_s = self._clock_s()
        window = self._windows.get(kind)
        if window is None:
            if len(self._windows) >= _KINDS_MAX:
                self._windows.clear()
            window = self._windows[kind] = _Window(now_s)
        elif now_s - window.begun_s >= WINDOW_S:
            window.begun_s = now_s
            window.lines = 0
        if window.lines >= LINES_MAX:
            window.left_out += 1
            return False
        window.lines += 1
        return True

    def _left_out(self, kind: str) -> str:
        window = self._windows[kind]
        left_out, window.left_out = window.left_out, 0
        return f" ({left_out:,} similar lines before this one were not written)" if left_out else ""


# ---- faults ----------------------------------------------------------------------------------------------------------
#
# Failures in a connection's steps: counted by step, and logged in a few lines however many there are. The rule: no
# connection's failure leaves its own step of a turn. That connection ends; all others are served.


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
