"""Sums up the tables ``queues`` and ``pages`` with many tasks: each makes a digest of a span of the log, and one per
broker joins them.

The tasks of a data source are independent (as of Spark 4.3), so a table that sums up a log needs one task per log. Here
Spark groups the results of many tasks.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from artemis_py.spark.decode.aggregate import Aggregate, state_batch
from artemis_py.spark.decode.digest import Digest, digest_of, joined, nothing, pages_of
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import Range, Share, asked
from artemis_py.spark.read.queue_contents import QueueShare, Read, told_before, told_from
from artemis_py.spark.tables.schema import arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPANS: Final = {"queue-spans": "queues", "page-spans": "pages"}
"""Tables of digests, and the tables made from them."""


class Span(Share):
    """The part of one log that a task reads, and the task's number. ``early`` describes the log before it."""

    def __init__(self, share: Share, ranges: list[Range], number: int, early: Digest) -> None:
        super().__init__(share.location, ranges, share.wanted, share.packs)
        self.number = number
        self.early = early


def spans_of(share: Share, read: Read, share_bytes: int) -> list[Span]:
    """The tasks that read one log. If the end of the log and the indexes determine the content of the queues, they read
    only that; the search goes back as far as one task would read.
    """
    begin, early = 0, nothing()
    if isinstance(share, QueueShare):
        found = told_from(share, read, share_bytes)
        if found is not None and all(one.counts is not None for one in share.known[: found[2]]):
            begin = found[2]
            early = told_before(share, begin, read)
        first = share.known[begin].number
        ranges = [one for one in share.ranges if one.segment >= first]
    else:
        ranges = share.ranges
    spans: list[Span] = []
    taken: list[Range] = []
    for place, one in enumerate(ranges):
        taken.append(one)
        if sum(part.end - part.begin for part in taken) >= share_bytes or place == len(ranges) - 1:
            spans.append(Span(share, taken, len(spans), early))
            taken, early = [], nothing()
    return spans


def span_batch(span: Span, table: str, broker: str, read: Read, schema: pa.Schema) -> pa.RecordBatch:
    """The row of one span. Where a restarted broker gives the numbers of dropped pages again, another digest begins:
    in one alone nobody could tell whose messages a page had when it was purged.
    """
    make = digest_of if SPANS[table] == "queues" else pages_of
    parts = [span.early]
    dropped: set[tuple[int, int]] = set()
    for one in span.ranges:
        found = read(one)
        if found is None:
            continue
        more = make(found, span.wanted.records(found))
        if dropped.isdisjoint(more.opened_pages()):
            parts[-1] = joined([parts[-1], more])
        else:
            parts.append(more)
            dropped.clear()
        dropped.update(more.dropped_pages())
    row = {"broker": broker, "span": span.number, "digest": pickle.dumps(parts, pickle.HIGHEST_PROTOCOL)}
    return pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names}], schema=schema)


def added_up(spark: SparkSession, table: str, given: Mapping[str, str]) -> DataFrame:
    """One of the tables, in two steps of Spark. Raises PipelineError for invalid options."""
    options = {**given, "table": table}
    columns = read_options(options).columns
    spans = next(name for name, of in SPANS.items() if of == table)
    rest = {name: text for name, text in given.items() if name.lower() not in ("table", "columns")}
    rows = spark.read.format("artemis").options(**rest, table=spans).load()

    def made(found: pa.Table) -> pa.Table:
        return rows_of_broker(options, found)

    return rows.groupBy("broker").applyInArrow(made, spark_schema(table, columns))


def rows_of_broker(given: Mapping[str, str], rows: pa.Table) -> pa.Table:
    """The rows of one broker from the rows of its spans."""
    options = read_options(given)
    fold, last_ms = Aggregate(), 0
    for one in _digests(rows):
        fold.take(one)
        last_ms = max(last_ms, one.last_ms)
    schema = arrow_schema(options.table, options.columns)
    broker: str = rows["broker"][0].as_py()
    batch = state_batch(options.table, fold, broker, options.as_of_ms or last_ms, schema, asked(options).takes)
    return pa.Table.from_batches([batch])


def _digests(rows: pa.Table) -> Iterator[Digest]:
    numbers: list[int] = rows["span"].to_pylist()
    for place in sorted(range(len(numbers)), key=numbers.__getitem__):
        yield from pickle.loads(rows["digest"][place].as_py())
