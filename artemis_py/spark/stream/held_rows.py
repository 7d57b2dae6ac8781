"""Rows that the planner of a stream holds, and its tasks only hand on.

Spark repeats a batch that it has planned with the same offsets, and a sink that has it takes nothing of it again. So a
planned batch has to have its rows, whatever happens to their broker. Where a query may go on without a broker, its
batches are small (``pace.py``), and their rows are fetched before they are planned.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from artemis_py.spark.read.batch import read_share
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Share
from artemis_py.spark.stream.pace import HELD_BYTES_MAX


class HeldRows(InputPartition):
    """The rows of one task."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        super().__init__(None)
        self.batches = batches


class Hold:
    """What is held of one batch. ``log_bytes_max``: of a batch with more log nothing is fetched; None: how much there
    is was limited before, but for the blocks at both ends.
    """

    def __init__(self, options: ReadOptions, log_bytes_max: int | None) -> None:
        self._options = options
        self._log_bytes_max = log_bytes_max
        self._log_bytes = self._row_bytes = 0

    def fetch(self, shares: Sequence[Share]) -> list[HeldRows] | None:
        """The rows of tasks; None: they are too many beside the others. Raises PipelineError as the tasks would."""
        log_bytes = self._log_bytes + sum(one.end - one.begin for share in shares for one in share.ranges)
        if self._log_bytes_max is not None and log_bytes > self._log_bytes_max:
            return None
        row_bytes = self._row_bytes
        found: list[HeldRows] = []
        for share in shares:
            batches: list[pa.RecordBatch] = []
            for batch in read_share(share, self._options):
                row_bytes += batch.nbytes
                if row_bytes > HELD_BYTES_MAX:
                    return None
                batches.append(batch)
            found.append(HeldRows(batches))
        self._log_bytes, self._row_bytes = log_bytes, row_bytes
        return found
