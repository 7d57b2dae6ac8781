"""The input of a job: logs of brokers, an archive of them, or anything with the same columns; and its time range."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TIME_COLUMNS: Final = {"messages": "publishedAt", "events": "timestamp"}
"""The column by which a table is limited to a time range: the time of the broker's turn."""
BODY_COLUMNS: Final = frozenset({"value"})
HEADER_COLUMNS: Final = frozenset({"headers"})


class JobError(PipelineError):
    """A job cannot run as requested; the text says what to do instead."""


def is_url(place: Path | str) -> bool:
    """Is a place in an object store, such as ``s3://bucket/archive``?"""
    return "://" in str(place)


class Source(ABC):
    """A description of rows: picklable, cheap, and without its own session."""

    @abstractmethod
    def table(self, spark: SparkSession, name: str, columns: Sequence[str]) -> DataFrame:
        """These columns of ``messages`` or ``events``, as docs/pipeline.md describes them. Bodies and headers are read
        only if ``value`` and ``headers`` are among the columns. Raises JobError if there is no such table.
        """

    @abstractmethod
    def check(self) -> None:
        """Checks, before Spark starts, that there is something to read. Raises PipelineError."""

    def log_ids(self) -> Mapping[str, str | None]:
        """By what each log is known, whatever its broker is called now; without what is known by its broker's name."""
        return {}

    def extent(self) -> str:
        """Describes the available data, for a user who got no results."""
        return "what was read"

    def caveats(self) -> list[str]:
        """Caveats for interpreting any result."""
        return []


@dataclass(frozen=True, slots=True)
class Span:
    """A time range: start (inclusive) and end (exclusive), epoch ms; None: no bound."""

    from_ms: int | None = None
    to_ms: int | None = None

    def cut(self, frame: DataFrame, column: str) -> DataFrame:
        """The rows whose timestamp in this column is in the span."""
        from pyspark.sql import functions as F

        if self.from_ms is not None:
            frame = frame.where(F.col(column) >= F.lit(datetime.fromtimestamp(self.from_ms / 1000, UTC)))
        if self.to_ms is not None:
            frame = frame.where(F.col(column) < F.lit(datetime.fromtimestamp(self.to_ms / 1000, UTC)))
        return frame


@dataclass(frozen=True, slots=True)
class LogTables(Source):
    """The log itself: ``options`` as of ``spark.read.format("artemis")`` (``journal`` or ``url``, and so on)."""

    options: dict[str, str]
    span: Span = field(default_factory=Span)

    def check(self) -> None:
        """Opens the logs."""
        from artemis_py.spark.read.options import read_options
        from artemis_py.spark.read.plan import opened

        for _, log in opened(read_options(self.options)).values():
            log.listing()
            log.close()

    def log_ids(self) -> Mapping[str, str | None]:
        """As the logs say."""
        from artemis_py.spark.read.options import read_options
        from artemis_py.spark.read.plan import opened

        return {broker: log.identity().log_id for broker, (_, log) in opened(read_options(self.options)).items()}

    def extent(self) -> str:
        """The times of the first and last record in the logs."""
        from artemis_py.spark.read.options import read_options
        from artemis_py.spark.read.plan import opened

        segments = [one for _, log in opened(read_options(self.options)).values() for one in log.listing().segments]
        times_ms = [at_ms for one in segments for at_ms in (one.first_ms, one.last_ms) if at_ms is not None]
        if not times_ms:
            return "the log, which is empty"
        first, last = (datetime.fromtimestamp(at_ms // 1000, UTC) for at_ms in (min(times_ms), max(times_ms)))
        return f"the log, which goes from {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC"

    def caveats(self) -> list[str]:
        """Names logs without deliveries and settled messages."""
        from artemis_py.spark.read.addresses import unknown
        from artemis_py.spark.read.options import read_options
        from artemis_py.spark.read.plan import is_retained, opened

        options = read_options(self.options)
        listings = {broker: (log, log.listing()) for broker, (_, log) in opened(options).items()}
        return [
            f"the log of {broker} is kept without journal-retention-directory: it has only what the broker still "
            "needs, not the deliveries"
            for broker, (log, listing) in listings.items()
            if not is_retained(log, listing)
        ] + unknown(options, [listing for _, listing in listings.values()])

    def table(self, spark: SparkSession, name: str, columns: Sequence[str]) -> DataFrame:
        """Reads with the data source ``artemis``, which skips segments outside the time span."""
        wanted = set(columns) | {TIME_COLUMNS[name]}
        options = {
            **self.options,
            "table": name,
            "columns": ",".join(sorted(wanted)),
            "includeBody": str(bool(wanted & BODY_COLUMNS)).lower(),
            "includeHeaders": str(bool(wanted & HEADER_COLUMNS)).lower(),
        }
        frame = spark.read.format("artemis").options(**options).load()
        return self.span.cut(frame, TIME_COLUMNS[name]).select(*columns)


# ---- points in time --------------------------------------------------------------------------------------------------
#
# Parses points in time on a command line.


_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN: Final = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>ms|s|min|m|h|d)", re.ASCII)
_EPOCH_MS: Final = re.compile(r"\d{12,14}", re.ASCII)
FORMS: Final = "2026-01-31T10:00, 2026-01-31, 10:00 (today), 2h (before now) or epoch milliseconds; UTC unless it says"


_DATE_MIN_MS: Final = -62_135_596_800_000
DATE_MAX_MS: Final = 253_402_300_799_999
"""The years 1 to 9999 in UTC: ``datetime`` has no others."""


def moment_ms(text: str, now_ms: int) -> int:
    """The epoch milliseconds of a text in one of these forms. Raises ValueError for others, and for what is not in the
    years 1 to 9999.
    """
    text = text.strip()
    try:
        at_ms = _moment_ms(text, now_ms)
    except OverflowError:
        at_ms = None
    if at_ms is None or not _DATE_MIN_MS <= at_ms <= DATE_MAX_MS:
        raise ValueError(f"{text!r} is not in the years 1 to 9999 (UTC)")
    return at_ms


def _moment_ms(text: str, now_ms: int) -> int:
    ago = _SPAN.fullmatch(text)
    if ago is not None:
        return now_ms - _span_ms(ago)
    if text == "now":
        return now_ms
    if _EPOCH_MS.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
            moment = datetime.combine(today, time.fromisoformat(text))
        except ValueError:
            raise ValueError(f"{text!r} is not a time; write {FORMS}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _span_ms(found: re.Match[str]) -> int:
    return round(float(found["count"]) * _UNITS_MS[found["unit"]])


@dataclass(frozen=True, slots=True)
class Call:
    """The common arguments of a job's call."""

    spark: SparkSession
    source: Source
    say: Callable[[str], None]
    """Shows progress on a terminal."""
    tell: Callable[[str], None]
    """Prints something that the user needs to keep."""


# ---- conditions ------------------------------------------------------------------------------------------------------
#
# Conditions and expressions over the table ``messages``, as users write them for a job.


COLUMNS_ADVICE: Final = "The columns are those of the table messages, header['name'] and text (docs/pipeline.md)"


def selected(messages: DataFrame, where: str | None) -> DataFrame:
    """The rows that meet a condition, with two columns more: ``header``, of each name the first value, and ``text``,
    the body, where ``headers`` and ``value`` are there. Raises JobError for a condition that Spark refuses.
    """
    from pyspark.sql import functions as F

    def first_value(name: Column) -> Column:
        same = F.filter("headers", lambda header: header["key"] == name)
        return F.element_at(same, 1)["value"].cast("string")

    if "headers" in messages.columns:
        names = F.array_distinct(F.transform("headers", lambda header: header["key"]))
        messages = messages.withColumn("header", F.map_from_arrays(names, F.transform(names, first_value)))
    if "value" in messages.columns:
        messages = messages.withColumn("text", F.col("value").cast("string"))
    if where is None:
        return messages
    with refused("condition", where, COLUMNS_ADVICE):
        return messages.where(where)


@contextmanager
def refused(what: str, text: str, advice: str) -> Iterator[None]:
    """Raises JobError for what Spark refuses."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as problem:
        line = str(problem).strip().splitlines()[0]
        raise JobError(f"the {what} {text!r} is not valid: {line}. {advice}") from None
