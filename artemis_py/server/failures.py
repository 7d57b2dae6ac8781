"""Failures of connections: each ends its own connection only, is counted by step, and is logged a few times."""

from __future__ import annotations

import math
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, final, get_args

from artemis_py.core.broker import Broker
from artemis_py.errors import ArtemisError, StorageError
from artemis_py.log_codes import CONNECTION, OTHER
from artemis_py.server.turn_client import Recipient
from artemis_py.stomp.session.session import Session
from artemis_py.terminal_output import escaped, warn

# ---- rate-limited log ------------------------------------------------------------------------------------------------
#
# Lines of the log: a few of each kind in ten seconds, then one more for all that followed.
# Otherwise a failure of every client or every write would fill the disk with equal lines.


WINDOW_S: Final = 10.0
LINES_MAX: Final = 3
"""Lines of one kind per window."""
_KINDS_MAX: Final = 1_000
_Line = tuple[str, str, dict[str, str]]
"""What there is to say, the code, and who it is about."""


class _Window:
    """``held`` is the last line that was held back, with its code and fields; ``left_out`` counts those before it."""

    __slots__ = ("begun_s", "held", "left_out", "lines")

    def __init__(self, begun_s: float) -> None:
        self.begun_s = begun_s
        self.lines = 0
        self.left_out = -1
        self.held: _Line = ("", "", {})


class RateLimitedLog:
    """Writes lines to the log, or with ``write``, at most LINES_MAX of a kind per window. When the window is over, and
    somebody calls ``write_held`` now and then, the last line that was held back is written, and says how many before
    it were not. ``clock_s`` must never go back. Any thread may call ``write``.
    """

    def __init__(
        self, write: Callable[[str], None] | None = None, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock_s = clock_s
        self._windows: dict[str, _Window] = {}
        self._holding: list[_Window] = []
        """Windows in which a line was held back."""
        self._lock = threading.Lock()

    def write(self, line: str, kind: str | None = None, *, code: str = OTHER, **who: str) -> None:
        """Write a line, or hold it back if there were enough of its ``kind`` (None: of this same line). ``code`` and
        ``who`` are those of ``warn``.
        """
        with self._lock:
            lines = self._admit(kind or line, line, code, who)
        self._write_all(lines)

    def write_held(self) -> None:
        """Write what was held back in windows that are over."""
        with self._lock:
            lines = self._held_until(self._clock_s() - WINDOW_S)
        self._write_all(lines)

    def end(self) -> None:
        """Write all that was held back: nobody calls ``write_held`` any more."""
        with self._lock:
            lines = self._held_until(math.inf)
        self._write_all(lines)

    def _admit(self, kind: str, line: str, code: str, who: dict[str, str]) -> list[_Line]:
        now_s = self._clock_s()
        lines = self._held_until(now_s - WINDOW_S)
        window = self._windows.get(kind)
        if window is None:
            if len(self._windows) >= _KINDS_MAX:
                lines += self._held_until(math.inf)
                self._windows.clear()
            window = self._windows[kind] = _Window(now_s)
        elif now_s - window.begun_s >= WINDOW_S:
            window.begun_s, window.lines = now_s, 0
        if window.lines < LINES_MAX:
            window.lines += 1
            return [*lines, (line, code, who)]
        if window.left_out < 0:
            self._holding.append(window)
        window.held = line, code, who
        window.left_out += 1
        return lines

    def _held_until(self, begun_s: float) -> list[_Line]:
        """What was held back in windows that have begun until then. Its line is the first of the next window."""
        over = [window for window in self._holding if window.begun_s <= begun_s]
        if not over:
            return []
        self._holding = [window for window in self._holding if window.begun_s > begun_s]
        lines: list[_Line] = []
        for window in over:
            line, code, who = window.held
            if window.left_out:
                who = {**who, "not_written_before": str(window.left_out)}
            lines.append((line, code, who))
            window.left_out, window.lines, window.begun_s = -1, 1, self._clock_s()
        return lines

    def _write_all(self, lines: list[_Line]) -> None:
        for line, code, who in lines:
            if self._write is None:
                warn(line, code, **who)
            else:
                left_out = who.get("not_written_before")
                self._write(line if left_out is None else f"not_written_before={left_out} {line}")


# ---- faults ----------------------------------------------------------------------------------------------------------
#
# Failures in a connection's steps: counted by step, and logged in a few lines however many there are. The rule: no
# connection's failure leaves its own step of a turn. That connection ends; all others are served.


Step = Literal[
    "accept", "poll", "read", "lost", "unblock", "beat", "write", "flush", "room", "replay", "slow-consumer", "rights",
    "weigh", "answer", "end", "http", "take", "management", "loop",
]  # fmt: skip
"""The steps in which a connection can fail. ``answer``: what waits for a durable record; ``end``: closing its socket;
``take``: giving back or acknowledging a message that was taken over HTTP; ``management``: a management message;
``loop``: what the event loop called and caught itself.
"""
STEPS: Final[tuple[Step, ...]] = get_args(Step)
Fail = Callable[[Recipient, Step, Exception], None]
"""What a part of a turn calls when a step of a connection failed."""
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
    """``counts`` are the failures since the start, by step; the lines go through ``limited_log``."""

    def __init__(self, limited_log: RateLimitedLog | None = None) -> None:
        self.counts: dict[str, int] = dict.fromkeys(STEPS, 0)
        self._limited_log = limited_log or RateLimitedLog()

    def note(self, peer: str, step: Step, error: BaseException) -> None:
        """A step of the connection from ``peer`` (host:port, or empty) failed with ``error``."""
        self.counts[step] += 1
        who = f"connection {peer or '(address unknown)'}"
        line = f"warning: {who} is closed, its step {step} failed: {shown(error)}"
        self._limited_log.write(line, "a step of a connection failed", code=CONNECTION, step=step, from_=peer)

    def caught_by_loop(self, loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        """For ``loop.set_exception_handler``: logs and counts what no step caught in the same way."""
        owner = context.get("protocol")
        error = context.get("exception") or RuntimeError(str(context.get("message", "no message")))
        self.note(getattr(owner, "peer", ""), "loop", error)


# ---- isolation -------------------------------------------------------------------------------------------------------
#
# No connection's failure leaves its own step of a turn.


@final
class Isolation:
    """Ends the connection whose step failed, and logs and counts the failure. Errors of a failed disk pass: they
    concern all connections.
    """

    __slots__ = ("_broker", "_clock_ms", "_faults", "_schedule", "turn_ms")

    def __init__(
        self, broker: Broker, faults: Faults, clock_ms: Callable[[], int], schedule: Callable[[], None]
    ) -> None:
        self.turn_ms = 0
        """The date of the current turn, the same for all of its steps; 0 between turns."""
        self._broker = broker
        self._faults = faults
        self._clock_ms = clock_ms
        self._schedule = schedule

    def fail(self, connection: Recipient, step: Step, error: Exception) -> None:
        """A step of this connection failed: the connection ends, and the failure is logged and counted. Raises the
        error if the disk failed, which concerns all connections.
        """
        if isinstance(error, StorageError):
            raise error
        self._faults.note(connection.peer, step, error)
        now_ms = self.turn_ms or self._clock_ms()
        self._broker.step_broke_off(now_ms)
        connection.fail(now_ms)
        self._schedule()

    def end_session(self, session: Session, now_ms: int, *, failed: bool = True) -> None:
        """The client is gone: the session ends, even if a step of that fails; see ``Session.lost``."""
        try:
            session.lost(now_ms, failed=failed)
        except StorageError:
            raise
        except Exception as error:
            self._faults.note(session.state.address, "lost", error)
            self._broker.step_broke_off(now_ms)

    def end_socket(self, peer: str, *ways: Callable[[], None]) -> bool:
        """Close a socket by the first of these ways that works; False if none does."""
        for way in ways:
            try:
                way()
                return True
            except Exception as error:
                self._faults.note(peer, "end", error)
        return False

    def answer(self, call: Callable[[], None]) -> None:
        """Call a callback that waited for a durable record."""
        try:
            call()
        except Exception as error:
            self._faults.note("", "answer", error)
