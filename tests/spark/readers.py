"""Rows as Spark's tasks make them, one after the other; no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
