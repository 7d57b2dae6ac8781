"""Single keys from a terminal, as they are pressed."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])?")


@final
class Keys:
    """The keys of a terminal that hands them on at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pressed = ""
        """Keys that were pressed and not taken yet."""

    def wait(self, seconds: float) -> str | None:
        """The next key, None if none is pressed in time. At the end of the input it is ``q``. Keys that send more than
        a character, such as arrows, are no key.
        """
        if not self._pressed:
            ready, _, _ = select.select([self._descriptor], [], [], max(seconds, 0.0))
            if not ready:
                return None
            data = os.read(self._descriptor, 64)
            self._pressed = _SEQUENCES.sub("", data.decode("ascii", "replace")) if data else "q"
        key, self._pressed = self._pressed[:1], self._pressed[1:]
        return key


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
