"""Rows that the planner of a stream holds, and its tasks only hand on.

Spark repeats a batch that it has planned with the same offsets, and a sink that has it takes nothing of it again. So a
planned batch has to have its rows, whatever happens to their broker. Where a query may go on without a broker, they are
fetched before they are planned, if they are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from artemis_py.spark.read.batch import read_share
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Share

BYTES_MAX: Final = 16 << 20
"""Of log, and of rows, in one batch: they pass through the driver."""


class HeldRows(InputPartition):
    """The rows of one task."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        super().__init__(None)
        self.batches = batches


class Hold:
    """What is held of one batch."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._log_bytes = self._row_bytes = 0

    def fetch(self, shares: Sequence[Share]) -> list[HeldRows] | None:
        """The rows of tasks; None: they are too many. Raises PipelineError as the tasks would."""
        self._log_bytes += sum(one.end - one.begin for share in shares for one in share.ranges)
        if self._log_bytes > BYTES_MAX:
            return None
        found: list[HeldRows] = []
        for share in shares:
            batches: list[pa.RecordBatch] = []
            for batch in read_share(share, self._options):
                self._row_bytes += batch.nbytes
                if self._row_bytes > BYTES_MAX:
                    return None
                batches.append(batch)
            found.append(HeldRows(batches))
        return found
