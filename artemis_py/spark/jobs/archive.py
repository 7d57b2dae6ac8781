"""Archives the logs of brokers as Parquet or as Delta tables; a broker may then drop its log."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.errors import UsageError
from artemis_py.spark.jobs.archive_parquet import ParquetArchive
from artemis_py.spark.jobs.archived import DELTA, PARQUET, layout_of
from artemis_py.spark.jobs.result import BYTES, COUNT, Column, Result, Table
from artemis_py.spark.jobs.source import JobError, LogTables, Source, Span, is_url
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.log.log import (
    AwayError,
    Identity,
    Mark,
    difference,
    is_renamed,
    keys_of,
    mark_of,
    warn_of_new_name,
)
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.archive_store import Archive
    from artemis_py.spark.log.log import Log

TABLES: Final = ("messages", "events")
_UPKEEP_EVERY_S: Final = 3600
LAYOUTS: Final = {"parquet": PARQUET, "delta": DELTA}
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
    """Its name. The archive knows the log by a key (``log/log.py``): the first name that it had."""
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


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What is done to an archive after new rows came, of a run that goes on each hour: what is older than
    ``compact_before_ms`` is compacted (None: nothing), and files are removed that no reader needs.
    """

    compact_before_ms: Callable[[], int] | None = None
    vacuums: bool = False


@dataclass(frozen=True, slots=True)
class Following:
    """A run that goes on, with a round each ``every_s``, until ``stop`` is set; then the step under way is the last. A
    broker that does not answer is no error: ``tell`` names it, and it is asked again.
    """

    stop: Event
    every_s: float
    tell: Callable[[str], None]


def archive(
    spark: SparkSession,
    feeds: Sequence[Feed],
    place: Path | str,
    *,
    tables: Sequence[str] = TABLES,
    layout: str | None = None,
    storage: Mapping[str, str] | None = None,
    upkeep: Upkeep = Upkeep(),
    following: Following | None = None,
    on_step: Callable[[str], None] = lambda _text: None,
) -> Result:
    """Adds the durable part of each log to the archive, step by step, and does its upkeep; ``following``, again and
    again. Each step is archived completely and exactly once, even if the job is killed and restarted; the broker
    learns of a step when its files are synced. Driver and executors must see the place.

    ``layout`` is ``parquet`` or ``delta`` (None: that of the archive there, for a new one Parquet, and Delta in an
    object store, for which ``storage`` are options of deltalake).

    Raises JobError if another process archives into the place.
    """
    with archive_at(place, layout, storage or {}) as target, _configured(spark):
        logs = [Identity(feed.broker, feed.log_id) for feed in feeds]
        keys = keys_of(logs, target.known())
        for key, log in zip(keys, logs, strict=True):
            if is_renamed(key, log):
                warn_of_new_name(key, log)
        runs = [_Run(spark, target, key, feed, tables) for key, feed in zip(keys, feeds, strict=True)]
        compacted = removed = 0
        upkeep_at_s = time.monotonic()
        while True:
            for run in runs:
                run.round(on_step, following)
            if time.monotonic() >= upkeep_at_s:
                upkeep_at_s += _UPKEEP_EVERY_S
                if upkeep.compact_before_ms is not None:
                    compacted += target.compact(spark, tables, upkeep.compact_before_ms(), on_step)
                if upkeep.vacuums:
                    on_step("removing files that no reader needs")
                    removed += target.vacuum(tables)
            if following is None or following.stop.wait(following.every_s):
                break
        size_bytes = target.size_bytes(tables)
    columns = (
        Column("broker", "broker"), Column("from", "archived before, to lsn", COUNT), Column("to", "now", COUNT),
        Column("steps", "steps", COUNT), Column("messages", "messages", COUNT), Column("events", "events", COUNT),
    )  # fmt: skip
    facts = [
        (Column("compacted", "compacted directories", COUNT), compacted),
        (Column("bytes", "size", BYTES), size_bytes),
    ]
    if upkeep.vacuums:
        facts.append((Column("removed", "removed files", COUNT), removed))
    rows = [run.row() for run in runs]
    return Result("archive", f"Archive {place}", facts, [Table("brokers", "What was added", columns, rows)])


def archive_at(place: Path | str, layout: str | None, storage: Mapping[str, str]) -> Archive:
    """The archive there, or a new one. Raises JobError if it has another layout, or if its place cannot have this."""
    there = layout_of(place)
    wanted = there or PARQUET if layout is None else LAYOUTS[layout]
    if is_url(place) and wanted != DELTA:
        raise JobError(f"{place} is in an object store, where an archive needs Delta tables; give --table-format delta")
    if there in LAYOUTS.values() and wanted != there:
        [name] = [name for name, one in LAYOUTS.items() if one == there]
        raise JobError(f"{place} is an archive as {name}; leave out --table-format, or name another directory")
    if wanted == DELTA:
        from artemis_py.spark.jobs.archive_delta import DeltaArchive
        from artemis_py.spark.jobs.delta import require_delta

        require_delta()
        return DeltaArchive(str(place if is_url(place) else Path(place).absolute()), storage)
    return ParquetArchive(Path(place))


@dataclass(slots=True)
class _Run:
    """What one run of the job does with one log."""

    spark: SparkSession
    target: Archive
    key: str
    feed: Feed
    tables: Sequence[str]
    began: int = field(init=False)
    steps: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    is_away: bool = False

    def __post_init__(self) -> None:
        self.began = self.target.archived_lsn(self.key)

    def row(self) -> tuple[str, int, int, int, int, int]:
        """As the job shows it."""
        archived = self.target.archived_lsn(self.key)
        return self.key, self.began, archived, self.steps, self.counts["messages"], self.counts["events"]

    def round(self, on_step: Callable[[str], None], following: Following | None) -> None:
        """All of the log that is durable now; a broker that is away has its turn in a later round."""
        try:
            self._steps(on_step, following)
        except Exception as problem:
            if following is None or not _tells_of_absence(problem):
                raise
            if not self.is_away:
                following.tell(f"{self.key} does not answer; it is asked again")
            self.is_away = True
        else:
            if self.is_away and following is not None:
                following.tell(f"{self.key} answers again")
            self.is_away = False

    def _steps(self, on_step: Callable[[str], None], following: Following | None) -> None:
        archived = self.target.archived_lsn(self.key)
        self.feed.check(archived, self.target.mark(self.key))
        self.feed.confirm(archived)
        ends = self.feed.step_ends(archived)
        for number, end in enumerate(ends, 1):
            on_step(f"{self.key}: step {number} of {len(ends)}, up to lsn {end}")
            self._step(end)
            self.feed.confirm(end)
            if following is not None and following.stop.is_set():
                break

    def _step(self, end: int) -> None:
        """Rows are read from a log that may be replaced meanwhile: so before the step counts the log is looked at
        again.
        """
        after, before = self.target.archived_lsn(self.key), self.target.mark(self.key)
        mark = self.feed.mark(end)

        def check() -> None:
            self.feed.check(after, before)
            self.feed.check(end, mark)

        def rows(table: str, after_lsn: int) -> DataFrame:
            frame = self.feed.frame(self.spark, table, after_lsn, end)
            return frame if self.key == self.feed.broker else frame.withColumn("broker", F.lit(self.key))

        for name, count in self.target.add(self.key, end, self.tables, rows, mark, check).items():
            self.counts[name] += count
        self.steps += 1


def _tells_of_absence(problem: Exception) -> bool:
    """Does a broker not answer? What a task said is in Spark's text."""
    return isinstance(problem, AwayError) or f".{AwayError.__name__}: " in str(problem)


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
    """A feed for each broker of a source. Raises UsageError if the source is not a whole log."""
    if not isinstance(source, LogTables):
        raise UsageError("an archive is made from a log; give --journal DIR or --url URL")
    if source.span != Span() or "subscribe" in source.options:
        raise UsageError(
            "an archive needs the whole log, because the broker drops what is archived. Leave out --from, --to and "
            "--addresses, and give them to the jobs that read the archive"
        )
    logs = opened(read_options(source.options))
    return [LogFeed(log, source.options, cursor, accepts_gap=accepts_gap) for _, log in logs.values()]
