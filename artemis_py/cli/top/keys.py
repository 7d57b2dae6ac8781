"""Single keys from a terminal, as they are pressed."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final


@final
class Keys:
    """The keys of a terminal that hands them on at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def wait(self, seconds: float) -> str | None:
        """The next key, None if none is pressed in time. At the end of the input it is ``q``."""
        ready, _, _ = select.select([self._descriptor], [], [], max(seconds, 0.0))
        if not ready:
            return None
        data = os.read(self._descriptor, 16)
        if not data:
            return "q"
        return "" if data.startswith(b"\x1b") else data.decode("ascii", "replace")[0]


@contextmanager
def raw_keys() -> Iterator[Keys]:
    """The terminal of standard input, without echo and line editing; as it was afterwards, whatever happens."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keys(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
