"""The command line: one module per command, found through the table in ``main``. Here is what must be there before a
command is imported: Ctrl-C during imports would print a traceback.
"""

from __future__ import annotations

import os
import signal
import sys

PROGRAM = "artemis-py"
EXIT_INTERRUPTED = 130


def end_at_once() -> None:
    """Make Ctrl-C end the process with one line. Raises ValueError outside the main thread."""
    signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os.write(sys.stderr.fileno(), f"{PROGRAM}: interrupted\n".encode())
    os._exit(EXIT_INTERRUPTED)
