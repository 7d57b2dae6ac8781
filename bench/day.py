"""Scenario ``day``: what questions about a day of log cost, by what is read for them; without a JVM."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from artemis_py.errors import PipelineError
from bench.part import Extent, Part, Say, Table

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from bench.day_log import DayLog

SEGMENTS: Final = 5_000
_HEAD: Final = ("question", "rows", "segments read", "MB read", "seconds", "of all")
_MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question cost. ``plan_s`` is the part of ``seconds`` in which the indexes were read."""

    question: str
    rows: int
    segments: int
    size_bytes: int
    seconds: float
    plan_s: float


@dataclass
class Day(Part):
    """What was measured of one log."""

    segments: int = 0
    messages: int = 0
    log_bytes: int = 0
    beside_bytes: int = 0
    answers: list[Answer] = field(default_factory=list)
    greedy: list[str] = field(default_factory=list)
    """Questions that read more than belongs to what they return."""

    @property
    def missed(self) -> list[str]:
        """The same."""
        return self.greedy

    def tables(self) -> list[Table]:
        """One row for each question."""
        whole = max((one.size_bytes for one in self.answers), default=0) or 1
        rows: list[tuple[str, ...]] = [_HEAD]
        for one in self.answers:
            seconds = f"{one.seconds:.2f} ({one.plan_s:.2f} to plan)"
            share = f"{100 * one.size_bytes / whole:.2f} %"
            read_mb = f"{one.size_bytes / _MB:,.2f}"
            rows.append((one.question, f"{one.rows:,}", f"{one.segments:,}", read_mb, seconds, share))
        return [Table(rows)]

    def told(self) -> str:
        """Of which log."""
        log_mb, beside_mb = self.log_bytes / _MB, self.beside_bytes / _MB
        sizes = f"{log_mb:,.0f} MB of log; indexes and places beside it {beside_mb:,.0f} MB"
        return f"{self.segments:,} segments, {self.messages:,} messages, {sizes}"

    def notes(self) -> list[str]:
        """Of which log."""
        return [f"{self.told()}."]

    def as_json(self) -> dict[str, object]:
        """Everything."""
        names = Answer.__slots__
        return {"log": self.told(), "answers": [{name: getattr(one, name) for name in names} for one in self.answers]}


def measure_day(extent: Extent, say: Say) -> Day:
    """Writes the log and asks. Raises PipelineError when an answer lacks rows."""
    segments = extent.segments or (SEGMENTS // 10 if extent.quick else SEGMENTS)
    from bench.day_log import DayLog

    with tempfile.TemporaryDirectory(prefix="bench-day-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        log = DayLog(home, segments)
        log.write(lambda number: say(f"day: {number:,} of {segments:,} segments are written"))
        files = [path for path in home.glob("*/artemis-journal-*") if path.is_file()]
        day = Day(segments, log.messages)
        day.log_bytes = sum(path.stat().st_size for path in files if path.suffix == ".log")
        day.beside_bytes = sum(path.stat().st_size for path in files if path.suffix != ".log")
        for question, expected, share, options, filters in _questions(log):
            say(f"day: {question}")
            answer = _asked(home, question, options, filters)
            day.answers.append(answer)
            if expected is not None and answer.rows != expected:
                raise PipelineError(f"{question}: {answer.rows:,} rows instead of {expected:,}")
            if answer.segments > max(8, share * segments):
                day.greedy.append(question)
    return day


_Question = tuple[str, int | None, float, dict[str, str], list["Filter"]]


def _questions(log: DayLog) -> list[_Question]:
    """Question, its rows where they are known, the share of the segments that it may read, options and filters."""
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, IsNotNull, LessThan, StringStartsWith

    from bench.day_log import ADDRESSES, BEGIN_MS, DAY_MS, RARE_EVERY

    wanted = log.messages // 2
    noon = BEGIN_MS + DAY_MS // 2
    begin, end = (datetime.fromtimestamp((noon + hour * DAY_MS // 24) / 1000, UTC) for hour in (0, 1))
    hour: list[Filter] = [GreaterThanOrEqual(("publishedAt",), begin), LessThan(("publishedAt",), end)]
    orders = (log.messages - log.dead - log.rare) // ADDRESSES
    seldom = 1.1 / RARE_EVERY
    return [
        ("all messages", log.messages, 1.1, {}, []),
        ("one address of ten", orders, 1.1, {}, [EqualTo(("address",), "orders.3")]),
        ("a rare address", log.rare, seldom, {}, [EqualTo(("address",), "rare")]),
        ("address LIKE 'ra%'", log.rare, seldom, {}, [StringStartsWith(("address",), "ra")]),
        ("dead letters", log.dead, seldom, {}, [IsNotNull(("reason",))]),
        ("one message", 1, 0, {}, [EqualTo(("messageId",), wanted)]),
        ("what happened to it", 4, 0, {"table": "events"}, [EqualTo(("messageId",), wanted)]),
        ("one hour", None, 1.1 / 24, {}, hour),
        ("queues, now", ADDRESSES + 2, 0, {"table": "queues"}, []),
        ("queues, at noon", ADDRESSES + 2, 0, {"table": "queues", "asOf": str(noon)}, []),
    ]


def _asked(home: Path, question: str, options: dict[str, str], filters: list[Filter]) -> Answer:
    """As Spark's workers do it, one task behind the other."""
    from artemis_py.spark.log.directory import DirectoryLog
    from artemis_py.spark.read.batch import reader
    from artemis_py.spark.read.options import read_options

    seen: set[int] = set()
    size_bytes = 0
    true_read = DirectoryLog.read

    def read(log: DirectoryLog, segment: int, *given: Any) -> bytes:
        nonlocal size_bytes
        data = true_read(log, segment, *given)
        size_bytes += len(data)
        seen.add(segment)
        return data

    given = {"journal": f"{home / 'retained'},{home / 'journal'}", "includeBody": "false", **options}
    asked = reader(read_options(given))
    began_s = time.perf_counter()
    if filters:
        list(asked.pushFilters(filters))
    DirectoryLog.read = read  # type: ignore[method-assign, assignment]
    try:
        shares = asked.partitions()
        planned_s = time.perf_counter()
        rows = sum(batch.num_rows for share in shares for batch in asked.read(share))  # type: ignore[union-attr]
    finally:
        DirectoryLog.read = true_read  # type: ignore[method-assign]
    return Answer(question, rows, len(seen), size_bytes, time.perf_counter() - began_s, planned_s - began_s)
