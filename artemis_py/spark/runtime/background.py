"""A Spark on this machine lets others go first: its reading is the work that can wait.

Its threads run when nobody else wants the processor, and by inheritance so does all that they start. That costs nothing
while nobody does. Beside a busy broker it is not enough: a thread that wakes up where no processor is idle comes late,
whoever it finds there. So a busy broker also sends its log slowly to readers on its machine (``server/http/files.py``).

Only where threads can be listed (Linux); elsewhere nothing is done. The process of the driver itself stays as it is.
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
    """Let Spark's threads run when nobody else does."""
    if sys.platform != "linux":
        return
    assert spark.sparkContext._jvm is not None
    process_id = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    for thread in Path(f"/proc/{process_id}/task").glob("*"):
        with suppress(OSError):  # it has ended meanwhile
            os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))
