"""Rows as Spark's tasks make them, one after the other; no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from artemis_py.spark.jobs.archive_reader import ArchiveReader
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.batch import reader as reader_of
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import Share
from artemis_py.spark.stream.reader import LogStreamReader

Row = dict[str, Any]
Offset = dict[str, Any]


def rows_of(reader: DataSourceReader | DataSourceStreamReader, shares: Iterable[InputPartition]) -> list[Row]:
    """The rows of tasks."""
    batches: list[Any] = [batch for share in shares for batch in reader.read(share)]
    return [row for batch in batches for row in batch.to_pylist()]


def rows_read(given: Mapping[str, str], *, streaming: bool = False) -> list[Row]:
    """Of one batch query, or of a streaming one from where it begins up to what there is."""
    if streaming:
        query = Query(**given)
        return rows_of(query.reader, query.plan(ReadAllAvailable())[1])
    options = read_options(given)
    reader = reader_of(options) if options.archive is None else ArchiveReader(options)
    return rows_of(reader, reader.partitions())


def pushed(folder: Path, *filters: Filter, **options: str) -> RowReader:
    """A reader of the log of a broker ``b`` to which Spark has pushed conditions down."""
    reader = RowReader(read_options({"journal": str(folder), "broker": "b", **options}))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return reader


def segments(folder: Path, *filters: Filter, **options: str) -> list[int]:
    """Which of its segments are read at all."""
    planned = pushed(folder, *filters, **options).partitions()
    return [one.segment for share in planned if isinstance(share, Share) for one in share.ranges]


def rows_in(folder: Path, table: str = "messages", **options: str) -> list[Row]:
    """Of the log of a broker ``b`` in a directory."""
    return rows_read({"journal": str(folder), "broker": "b", "table": table, **options})


def numbers_of(rows: Iterable[Row]) -> list[Any]:
    """The messages' numbers, which are in their bodies; with their brokers' names where these two columns are read, and
    where there is no body the offsets.
    """
    numbers = ((row, int(row["value"].split()[0]) if "value" in row else row["offset"]) for row in rows)
    return [(row["broker"], number) if row.keys() == {"broker", "value"} else number for row, number in numbers]


class Query:
    """One streaming query, with what its checkpoint keeps."""

    def __init__(self, at: Offset | None = None, /, **options: str) -> None:
        beginning = {} if "startingTimestamp" in options else {"startingOffsets": "earliest"}
        given = {"columns": "value", **beginning, **options}
        self.reader = LogStreamReader(read_options(given, streaming=True))
        self.at: Offset = self.reader.initialOffset() if at is None else at

    def plan(self, limit: ReadLimit | None = None) -> tuple[Offset, list[InputPartition]]:
        """The end of the next batch, and its tasks; none when no batch is due."""
        begin = json.loads(json.dumps(self.at))
        end = self.reader.latestOffset(begin, limit or self.reader.getDefaultReadLimit())
        return end, [] if end == self.at else [*self.reader.partitions(self.at, end)]

    def trigger(self, limit: ReadLimit | None = None) -> list[Any] | None:
        """The numbers of a batch; None when none is due."""
        end, shares = self.plan(limit)
        if end == self.at:
            return None
        numbers = self.read(shares)
        self.reader.commit(end)
        self.at = end
        return numbers

    def read(self, shares: Iterable[InputPartition]) -> list[Any]:
        """The numbers of tasks."""
        return numbers_of(rows_of(self.reader, shares))

    def progress(self) -> dict[str, Any]:
        """As Spark tells it."""
        latest = json.dumps(self.reader.reportLatestOffset())
        return {"sources": [{"endOffset": json.dumps(self.at), "latestOffset": latest}]}


def stream(source: Mapping[str, str], start: Offset | None, **options: str) -> tuple[Offset, list[Any]]:
    """All that there is for a query that is new or goes on: the offset that its checkpoint keeps, and the numbers."""
    query = Query(start, **{**source, **options})
    numbers = query.trigger(ReadAllAvailable())
    return query.at, numbers or []
