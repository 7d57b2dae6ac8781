"""The logs of brokers, split into steps for an archive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from artemis_py.spark.jobs.archive import Feed
from artemis_py.spark.jobs.source import JobError, LogTables, Source, Span
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.log.identity import Mark, difference, mark_of
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.log.log import Log

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
        self._log_id: str | None = None
        """The log's id at the first look."""

    def check(self, lsn: int, mark: Mark | None) -> None:
        """Raises JobError if the log was replaced before or during this run, or restored from an older copy."""
        listing = self._log.listing(max(0, lsn - 1))
        self._log_id = self._log_id or listing.log_id
        if listing.log_id != self._log_id:
            raise JobError(
                f"the log of {self.broker} was replaced while it was archived: its id is {listing.log_id} and was "
                f"{self._log_id}. The archive has the old log; archive the new log into another directory"
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
