"""A Spark on this machine lets others go first: its reading is the work that can wait.

Its threads run when nobody else wants the processor, and by inheritance so does all that they start. That costs nothing
while nobody does. Beside a busy broker it is not enough: a thread that wakes up where no processor is idle comes late,
whoever it finds there. So Spark can be told to leave processors to others altogether.

Only where threads can be listed (Linux); elsewhere nothing is done. The process of the driver itself stays as it is.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from artemis_py.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def processors_left(leave: int) -> set[int]:
    """The processors of this process without the first ``leave``. Raises PipelineError when none is left."""
    if sys.platform != "linux":
        return set()
    every = sorted(os.sched_getaffinity(0))
    if not 0 <= leave < len(every):
        raise PipelineError(f"leave_processors is {leave}; of {len(every)} processors it may be 0 to {len(every) - 1}")
    return set(every[leave:])


def step_back(spark: SparkSession, processors: set[int]) -> None:
    """Let Spark's threads run on these processors, when nobody else does."""
    if sys.platform != "linux":
        return
    assert spark.sparkContext._jvm is not None
    process_id = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    for thread in Path(f"/proc/{process_id}/task").glob("*"):
        with suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), processors)
            os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))
