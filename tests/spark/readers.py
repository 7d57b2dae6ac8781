"""Rows as Spark's tasks make them, one after the other; no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.stream.reader import LogStreamReader


def rows_read(given: Mapping[str, str], *, streaming: bool = False) -> list[dict[str, Any]]:
    """Of one batch query, or of a streaming one from where it begins up to what there is."""
    if streaming:
        stream = LogStreamReader(read_options(given, streaming=True))
        at = stream.initialOffset()
        shares = stream.partitions(at, stream.latestOffset(at, ReadAllAvailable()))
        found = [batch for share in shares for batch in stream.read(share)]
    else:
        reader = RowReader(read_options(given))
        found = [batch for share in reader.partitions() for batch in reader.read(share)]
    return [row for batch in found for row in batch.to_pylist()]


class Query:
    """One streaming query, with what its checkpoint keeps."""

    def __init__(self, at: dict[str, Any] | None = None, **options: str) -> None:
        given = {"columns": "value", "startingOffsets": "earliest", **options}
        self.reader = LogStreamReader(read_options(given, streaming=True))
        self.at = self.reader.initialOffset() if at is None else at

    def trigger(self) -> list[int]:
        """The rows of a batch; none when none is due."""
        end = self.reader.latestOffset(json.loads(json.dumps(self.at)), self.reader.getDefaultReadLimit())
        if end == self.at:
            return []
        rows = self.read(self.reader.partitions(self.at, end))
        self.at = end
        self.reader.commit(end)
        return rows

    def read(self, shares: Iterable[InputPartition]) -> list[int]:
        """The rows of tasks."""
        batches = [batch for share in shares for batch in self.reader.read(share)]
        return sorted(int(row["value"]) for batch in batches for row in batch.to_pylist())

    def progress(self) -> dict[str, Any]:
        """As Spark tells it."""
        latest = json.dumps(self.reader.reportLatestOffset())
        return {"sources": [{"endOffset": json.dumps(self.at), "latestOffset": latest}]}
