"""A command in a pseudo-terminal, as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.kit.process import WAIT_S

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal(AbstractContextManager["Terminal"]):
    """The command's terminal: what it printed (since a test emptied that), and what is typed."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        columns: int = 120,
        lines: int = 30,
    ) -> None:
        self.printed = b""
        self.code: int | None = None
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:  # the child
            try:
                if folder is not None:
                    os.chdir(folder)
                given = {**os.environ, "TERM": "xterm", **(environment or {})}
                for name in ("COLUMNS", "LINES"):  # those of whoever runs the tests; the terminal knows its size
                    given.pop(name, None)
                os.execvpe(arguments[0], list(arguments), given)
            finally:
                os._exit(127)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __exit__(self, *_: object) -> None:
        if self.code is None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
        os.close(self._descriptor)

    @property
    def text(self) -> str:
        """All that was printed, without what moves the cursor."""
        return _CONTROL.sub("", self.printed.decode(errors="replace"))

    def type(self, text: str) -> None:
        """Keys are pressed."""
        os.write(self._descriptor, text.encode())

    def signal(self, number: int) -> None:
        """Send a signal to the command."""
        os.kill(self._pid, number)

    def await_text(self, wanted: str) -> None:
        """Wait until it is printed."""
        until_s = time.monotonic() + WAIT_S
        while wanted not in self.text:
            assert self._read(until_s), f"no {wanted!r} in …{self.text[-2000:]!r}"

    def await_end(self) -> int:
        """Wait until the command ends; returns its exit code."""
        until_s = time.monotonic() + WAIT_S
        while self._read(until_s):
            pass
        _, status = os.waitpid(self._pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def _read(self, until_s: float) -> bool:
        """Read some more; False at the end, or when it is too late."""
        left_s = until_s - time.monotonic()
        if left_s <= 0 or not select.select([self._descriptor], [], [], left_s)[0]:
            return False
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # Linux: the other side is closed
            return False
        self.printed += data
        return len(data) > 0
