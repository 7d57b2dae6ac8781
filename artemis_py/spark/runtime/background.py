"""Gives a Spark on this machine a low priority, because its reading can wait.

Its threads, and everything they start, run only when no other process needs the processor. On an idle machine that
costs nothing. Next to a busy broker it is not enough: a thread that wakes up while no processor is idle is delayed in
any case. So a busy broker also sends its log slowly to readers on its machine (``server/http/file_sender.py``).

It works only where threads can be listed (Linux). The driver's own process is not changed.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def step_back(spark: SparkSession) -> None:
    """Give Spark's threads the lowest priority."""
    if sys.platform != "linux":
        return
    assert spark.sparkContext._jvm is not None
    process_id = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    for thread in Path(f"/proc/{process_id}/task").glob("*"):
        with suppress(OSError):  # it has ended meanwhile
            os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))
