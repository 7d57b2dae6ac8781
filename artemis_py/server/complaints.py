"""Lines about failures on standard error: a few of each kind in ten seconds, then only their number.

Otherwise a failure of every client or every write would fill the disk with equal lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from artemis_py.log_codes import OTHER
from artemis_py.shown import warn

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
