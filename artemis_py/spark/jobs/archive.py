"""Archives the logs of brokers as Parquet, partitioned by date and address; a broker may then drop its log."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.spark.jobs.archive_store import Store
from artemis_py.spark.jobs.result import BYTES, COUNT, Column, Result, Table
from artemis_py.spark.jobs.source import TIME_COLUMNS, JobError, LogTables, Source, Span, archive_schema
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.log.identity import Identity, is_renamed, keys_of, warn_of_new_name
from artemis_py.spark.log.log import Mark, difference, mark_of
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.log.log import Log

TABLES: Final = ("messages", "events")
_ROWS_PER_FILE: Final = 5_000_000
_CONF: Final = {
    # Dates are those of UTC, whatever zone a session shows times in.
    "spark.sql.session.timeZone": "UTC",
    # Every reader of Parquet understands these; Spark's own default is a type of its past.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
}


class Feed(ABC):
    """The log of one broker, as input of an archive."""

    broker: str
    """Its name. The archive knows the log by a key (``log/identity.py``): the first name that it had."""
    log_id: str | None = None

    @abstractmethod
    def check(self, lsn: int, mark: Mark | None) -> None:
        """Check that this is the log archived up to ``lsn``. Raises JobError."""

    @abstractmethod
    def mark(self, lsn: int) -> Mark:
        """The mark that identifies the log at this lsn."""

    @abstractmethod
    def step_ends(self, after_lsn: int) -> list[int]:
        """The lsns at which to split the durable log after ``after_lsn`` into steps; the last is its end."""

    @abstractmethod
    def frame(self, spark: SparkSession, table: str, after_lsn: int, up_to_lsn: int) -> DataFrame:
        """All columns of the rows with ``after_lsn < offset <= up_to_lsn``: the same at every read."""

    @abstractmethod
    def confirm(self, lsn: int) -> None:
        """Tells the broker that everything up to here is archived. Also called with the state before the first step."""


def archive(
    spark: SparkSession,
    feeds: Sequence[Feed],
    directory: Path,
    *,
    tables: Sequence[str] = TABLES,
    compact_before: str | None = None,
    on_step: Callable[[str], None] = lambda _text: None,
) -> Result:
    """Adds the durable part of each log to the archive, step by step, then compacts dates before ``compact_before``
    (``2026-01-31``; None: none). Each step is archived completely and exactly once, even if the job is killed and
    restarted; the broker learns of a step when its files are synced. Driver and executors must see the directory.

    Raises JobError if another process archives into the directory.
    """
    rows: list[tuple[str, int, int, int, int, int]] = []
    with Store(directory) as store, _configured(spark):
        logs = [Identity(feed.broker, feed.log_id) for feed in feeds]
        for feed, log, key in zip(feeds, logs, keys_of(logs, store.known()), strict=True):
            if is_renamed(key, log):
                warn_of_new_name(key, log)
            began = store.archived_lsn(key)
            feed.check(began, store.mark(key))
            feed.confirm(began)
            counts = dict.fromkeys(TABLES, 0)
            ends = feed.step_ends(began)
            for number, end in enumerate(ends, 1):
                on_step(f"{key}: step {number} of {len(ends)}, up to lsn {end}")
                _archive_step(spark, store, key, feed, end, tables, counts)
                feed.confirm(end)
            archived = store.archived_lsn(key)
            rows.append((key, began, archived, len(ends), counts["messages"], counts["events"]))
        compacted = 0
        for table in tables if compact_before is not None else ():
            for date, partitions in store.small_partitions(table, compact_before).items():
                on_step(f"compacting {table} of {date}: {len(partitions)} addresses")
                store.compact(partitions, lambda into, which: _compact(spark, into, which))
                compacted += len(partitions)
    size_bytes = sum(path.stat().st_size for table in TABLES for path in (directory / table).rglob("*.parquet"))
    columns = (
        Column("broker", "broker"), Column("from", "archived before, to lsn", COUNT), Column("to", "now", COUNT),
        Column("steps", "steps", COUNT), Column("messages", "messages", COUNT), Column("events", "events", COUNT),
    )  # fmt: skip
    facts = [
        (Column("compacted", "compacted directories", COUNT), compacted),
        (Column("bytes", "size", BYTES), size_bytes),
    ]
    title = f"Archive {directory}"
    return Result("archive", title, facts, [Table("brokers", "What was added", columns, rows)])


@contextmanager
def _configured(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name) or value for name, value in _CONF.items()}
    try:
        for name, value in _CONF.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _archive_step(
    spark: SparkSession, store: Store, key: str, feed: Feed, end: int, tables: Sequence[str], counts: dict[str, int]
) -> None:
    """Rows are read from a log that may be replaced meanwhile: so before the step counts the log is looked at again."""
    after, before = store.archived_lsn(key), store.mark(key)
    mark = feed.mark(end)

    def write(staging: Path) -> None:
        for table in tables:
            frame = feed.frame(spark, table, after, end)
            if key != feed.broker:
                frame = frame.withColumn("broker", F.lit(key))
            dated = frame.withColumn("date", F.to_date(TIME_COLUMNS[table]))
            _write(dated, ["date", "address"], staging / table)
            counts[table] += _rows_in(staging / table)
        feed.check(after, before)
        feed.check(end, mark)

    store.add(key, end, write, mark)


def _write(frame: DataFrame, keys: list[str], where: Path) -> None:
    """One file for each partition, unless that would be a very long one; rows in the order of the log."""
    ordered = frame.repartition(*keys).sortWithinPartitions(*keys, "broker", "offset")
    ordered.write.option("maxRecordsPerFile", _ROWS_PER_FILE).partitionBy(*keys).parquet(str(where))


def _compact(spark: SparkSession, into: Path, partitions: Sequence[Path]) -> None:
    """One table and date: all batches of each partition into one."""
    table = partitions[0].parent.parent
    schema = archive_schema(spark, table)
    frame = spark.read.schema(schema).option("basePath", str(table)).parquet(*map(str, partitions))
    _write(frame.drop("batch", "date"), ["address"], into)


def _rows_in(where: Path) -> int:
    """As the files' own footers tell: so each was read once after it was written."""
    from pyarrow import parquet

    return sum(parquet.read_metadata(path).num_rows for path in where.rglob("*.parquet"))


# ---- feeds -----------------------------------------------------------------------------------------------------------
#
# The logs of brokers, split into steps for an archive.


STEP_BYTES: Final = 256 * 1024**2
"""How many bytes are archived at once, and repeated if the job is killed."""
CURSOR_TTL_S: Final = 7 * 86_400
"""How long an inactive archive holds back the broker's retention."""


class LogFeed(Feed):
    """One broker's log, in a directory or behind a URL."""

    def __init__(
        self, log: Log, options: dict[str, str], cursor: str, *, accepts_gap: bool = False, step_bytes: int = STEP_BYTES
    ) -> None:
        self.broker = log.broker
        self._log = log
        self._options = options
        self._cursor = cursor
        self._accepts_gap = accepts_gap
        self._step_bytes = step_bytes
        self.log_id = log.identity().log_id

    def check(self, lsn: int, mark: Mark | None) -> None:
        """Raises JobError if the log was replaced before or during this run, or restored from an older copy."""
        listing = self._log.listing(max(0, lsn - 1))
        self.log_id = self.log_id or listing.log_id
        if listing.log_id != self.log_id:
            raise JobError(
                f"the log of {self.broker} was replaced while it was archived: its id is {listing.log_id} and was "
                f"{self.log_id}. The archive has the old log; archive the new log into another directory"
            )
        what = difference(listing, lsn, mark)
        if what is not None:
            raise JobError(
                f"the log of {self.broker} is not the one in the archive, or an older copy of it: {what}. Archive it "
                "into another directory"
            )

    def mark(self, lsn: int) -> Mark:
        """The id of the log, and the segment of the lsn."""
        return mark_of(self._log.listing(max(0, lsn - 1)), lsn)

    def step_ends(self, after_lsn: int) -> list[int]:
        """The ends of segments and of the durable log. Raises JobError if retention has removed the next records."""
        listing = self._log.listing(after_lsn)
        if 0 < after_lsn < listing.first_lsn - 1 and not self._accepts_gap:
            raise JobError(
                f"the log of {self.broker} begins at lsn {listing.first_lsn}, but the archive ends at {after_lsn}: "
                "the log between them is gone. Run archive more often, or keep more of the log; --accept-gap "
                "continues without it"
            )
        ends: list[int] = []
        filled = 0
        for segment in listing.segments:
            filled += segment.size_bytes
            if filled >= self._step_bytes and after_lsn < segment.last_lsn < listing.end_lsn:
                ends.append(segment.last_lsn)
                filled = 0
        return [*ends, listing.end_lsn] if listing.end_lsn > after_lsn else []

    def frame(self, spark: SparkSession, table: str, after_lsn: int, up_to_lsn: int) -> DataFrame:
        """Reads with the data source, which skips other segments and other brokers."""
        options = {
            **self._options,
            "table": table,
            "includeHeaders": "true",
            "startingOffsets": json.dumps({self.broker: after_lsn}),
            "endingOffsets": json.dumps({self.broker: up_to_lsn}),
        }
        frame = spark.read.format("artemis").options(**options).load()
        return frame.where(frame["broker"] == self.broker)

    def confirm(self, lsn: int) -> None:
        """Moves the cursor, which then holds back retention. Directories have no cursor: only a broker keeps
        cursors.
        """
        if not isinstance(self._log, DirectoryLog):
            self._log.set_cursor(self._cursor, lsn, CURSOR_TTL_S)


def feeds_of(source: Source, cursor: str, *, accepts_gap: bool = False) -> list[LogFeed]:
    """A feed for each broker of a source. Raises JobError if the source is not a log."""
    if not isinstance(source, LogTables):
        raise JobError("an archive is made from a log; give --journal DIR or --url URL")
    if source.span != Span() or "subscribe" in source.options:
        raise JobError(
            "an archive needs the whole log, because the broker drops what is archived. Leave out --from, --to and "
            "--addresses, and give them to the jobs that read the archive"
        )
    logs = opened(read_options(source.options))
    return [LogFeed(log, source.options, cursor, accepts_gap=accepts_gap) for _, log in logs.values()]
