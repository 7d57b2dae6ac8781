"""What Ctrl-C does while nothing has begun: a KeyboardInterrupt in the middle of imports would be a traceback."""

from __future__ import annotations

import os
import signal
import sys

PROGRAM = "artemis-py"
EXIT_INTERRUPTED = 130


def end_at_once() -> None:
    """From now on Ctrl-C ends the process with one line. Raises ValueError outside of the main thread."""
    signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os.write(sys.stderr.fileno(), f"{PROGRAM}: interrupted\n".encode())
    os._exit(EXIT_INTERRUPTED)
