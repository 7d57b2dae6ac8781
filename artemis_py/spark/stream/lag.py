"""The lag of a streaming query. Spark's Python sources have no metrics (as of 4.3: their ``MicroBatchStream`` reports
none), but each progress of a query contains the latest offset that they report, so listeners and this module find the
lag there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

_LAG: Final = "#lag"
_LOST: Final = "#lost"
_LAPSED: Final = "#lapsed"


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag for one broker's log, at the time of a query's last progress."""

    offset: int
    """Everything up to it is in a planned batch; the following records may be known to be irrelevant. Of a stream that
    consumes a queue: the highest bookmark of a planned batch.
    """
    latest: int | None
    """The end of the log; None: the broker did not answer, or was removed from the options."""
    offsets: int | None
    """How many offsets follow the batch, 0 if none of them is for the query; None as above, and of a queue."""
    size_bytes: int | None
    """The approximate number of bytes of log in these offsets."""
    lost: int
    """How many offsets retention removed before they were read, with ``failOnDataLoss=false``."""
    messages: int | None = None
    """How many messages waited on the queue, with nobody to process them; None: the stream consumes none."""
    lapsed: int = 0
    """How many leases ended before the batch with their message was done, since the query started."""

    @property
    def is_away(self) -> bool:
        """Was the broker unavailable?"""
        return self.latest is None


def lag(progress: StreamingQuery | StreamingQueryProgress | Mapping[str, Any]) -> dict[str, Lag]:
    """The lag by broker, from a query, from the progress passed to a ``StreamingQueryListener``, or from its JSON, over
    all ``artemis`` sources of the query. Empty before the first progress. It works with Spark Connect, too.
    """
    found: dict[str, Lag] = {}
    for source in _sources(progress):
        end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
        if _LAG not in latest:
            continue
        for broker in {name for name in (*end, *latest) if not name.startswith("#")}:
            behind = latest[_LAG].get(broker, {})
            found[broker] = Lag(
                int(end.get(broker, 0)), latest.get(broker), behind.get("offsets"), behind.get("bytes"),
                int(end.get(_LOST, {}).get(broker, 0)), behind.get("messages"),
                int(latest.get(_LAPSED, {}).get(broker, 0)),
            )  # fmt: skip
    return found


def _sources(progress: Any) -> list[Mapping[str, Any]]:
    said = progress if isinstance(progress, Mapping) else progress.lastProgress
    sources = [] if said is None else said["sources"]
    return [one if isinstance(one, Mapping) else json.loads(one.json) for one in sources]


def _offset(text: Any) -> dict[str, Any]:
    found = json.loads(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else {}
