"""A line on the terminal while a measurement runs; nothing if standard error is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

INTERVAL_S: Final = 0.2


class Progress:
    """Rewrites one line on ``stream``, at most five times a second."""

    __slots__ = ("_enabled", "_next", "_stream", "label")

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._enabled = self._stream.isatty()
        self._next = 0.0
        self.label = ""

    def show(self, text: Callable[[], str]) -> None:
        """Shows what ``text`` returns after the label; does not call it while the last line is fresh."""
        if not self._enabled or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + INTERVAL_S
        self._stream.write(f"\r\x1b[K{self.label}: {text()}"[:160])
        self._stream.flush()

    def clear(self) -> None:
        """Removes the line, so that the table begins on a clean one."""
        if self._enabled:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
