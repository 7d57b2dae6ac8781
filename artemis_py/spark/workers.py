"""Hides a harmless traceback of Spark's Python workers. Spark leaves one when it has what it wants: a plan, or enough
rows for ``show()`` and ``limit()``. The worker then writes to a closed connection, and Spark prints a traceback of it.
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any, Final

_DAEMON: Final = "pyspark.daemon"
_GONE: Final = (BrokenPipeError, ConnectionResetError)
_print_exc = traceback.print_exc


def let_readers_go() -> None:
    """Let this process, if it is a Spark worker, end silently when its rows are no longer read."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == _DAEMON:
        traceback.print_exc = _print_exc_but_for_readers


def _print_exc_but_for_readers(*arguments: Any, **named: Any) -> None:
    error = sys.exc_info()[1]
    if not (isinstance(error, _GONE) and _is_spark_s_own(error.__traceback__)):
        _print_exc(*arguments, **named)


def _is_spark_s_own(at: TracebackType | None) -> bool:
    """Was it raised where Spark's daemon hands over what is left, and in nothing that it called?"""
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__spec__") is sys.modules["__main__"].__spec__
