"""The end of the process that plans a query. Spark ends it with SIGTERM and calls no ``stop``, also when the query has
ended by itself. A connection that just breaks counts as a failed delivery of what is held, so the link leaves first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Final

from artemis_py.spark.consume.link import Link

_RUNNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"


_links: Final[list[Link]] = []


def leave_when_ended(link: Link) -> None:
    """Have a link leave when Spark ends this process. It does nothing in other processes, or where somebody else
    handles the signal.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or spec.name != _RUNNER or threading.current_thread() is not threading.main_thread():
        return
    if _links:
        _links[:] = [link]
    elif signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        _links.append(link)
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    for link in _links:
        link.close()
    os.kill(os.getpid(), number)
