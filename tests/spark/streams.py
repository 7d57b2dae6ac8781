"""Streaming queries in the Spark of all tests, and what they wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.kit.process import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

WAIT_S: Final = 120


@dataclass
class Sink:
    """What a query wrote, by batch. A batch that runs again, as it may after a stop, has to be the same again.
    ``meanwhile`` is called when a batch with rows is there.
    """

    meanwhile: Callable[[int], object] = lambda _: None
    by_id: dict[int, list[Any]] = field(default_factory=dict)
    """Rows in order; of batches without rows, too."""
    before: Callable[[], None] = lambda: None
    """Done once, when the next batch is planned, before its rows are read."""

    def __call__(self, frame: Any, batch_id: int) -> None:
        before, self.before = self.before, lambda: None
        before()
        rows = sorted(frame.collect(), key=lambda row: int(row.offset))
        assert self.by_id.setdefault(batch_id, rows) == rows
        if rows:
            self.meanwhile(batch_id)

    @property
    def batches(self) -> list[list[Any]]:
        """Those with rows, in order."""
        return [rows for _, rows in sorted(self.by_id.copy().items()) if rows]

    @property
    def values(self) -> list[str]:
        """The bodies."""
        return [bytes(row.value).decode().strip() for rows in self.batches for row in rows]

    def await_values(self, count: int) -> None:
        """As many as these, at least."""
        eventually("rows in the sink", lambda: self.count, lambda seen: seen >= count, WAIT_S)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.batches))


@dataclass
class Streams:
    """Starts queries that are stopped with the test."""

    spark: SparkSession
    folder: Path
    queries: list[StreamingQuery] = field(default_factory=list)

    def start(
        self,
        sink: Callable[[Any, int], None],
        *,
        checkpoint: str = "checkpoint",
        trigger: dict[str, Any] | None = None,
        frame: Any = None,
        **options: object,
    ) -> StreamingQuery:
        """A query of the source with these options, or of another ``frame``."""
        if frame is None:
            texts = {name: str(value) for name, value in options.items()}
            frame = self.spark.readStream.format("artemis").options(**texts).load()
        writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(self.folder / checkpoint))
        query: StreamingQuery = writer.trigger(**(trigger or {"processingTime": "100 milliseconds"})).start()
        self.queries.append(query)
        return query

    def run(self, sink: Callable[[Any, int], None], **options: Any) -> StreamingQuery:
        """Everything there is now, then the end."""
        query = self.start(sink, trigger={"availableNow": True}, **options)
        query.awaitTermination(WAIT_S)
        assert not query.isActive
        return query

    def stop(self) -> None:
        """All of them."""
        while self.queries:
            self.queries.pop().stop()


def await_progress(query: StreamingQuery) -> Any:
    """Its last one, as soon as there is one: the query has been planned by then."""
    return eventually("planned", lambda: query.lastProgress, lambda seen: seen is not None, WAIT_S)
