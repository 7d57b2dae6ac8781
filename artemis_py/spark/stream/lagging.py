"""How far behind a streaming query is. Spark's Python sources have no metrics of their own (as of 4.3: their
``MicroBatchStream`` does not report any), but what they report as latest offset stands in each progress of a query, so
lag is there, for listeners and for this.
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


@dataclass(frozen=True, slots=True)
class Lag:
    """Of one broker's log, at the time of a query's last progress."""

    offset: int
    """Everything up to it is in a batch that was planned; what follows it may be known to be of others."""
    latest: int | None
    """Where the log ends; None: the broker did not answer, or is not in the options any more."""
    offsets: int | None
    """How many offsets are behind the batch, 0 where nothing in them is for the query; None as above."""
    size_bytes: int | None
    """About so many bytes of log these are."""
    lost: int
    """So many offsets retention took before they were read, with ``failOnDataLoss=false``."""

    @property
    def is_away(self) -> bool:
        """Was the broker missing?"""
        return self.latest is None


def lag(progress: StreamingQuery | StreamingQueryProgress | Mapping[str, Any]) -> dict[str, Lag]:
    """By broker, from a query, from the progress that a ``StreamingQueryListener`` is given, or from its JSON; of all
    sources ``artemis`` of the query together. Empty before the first progress. With Spark Connect, too.
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
                int(end.get(_LOST, {}).get(broker, 0)),
            )  # fmt: skip
    return found


def _sources(progress: Any) -> list[Mapping[str, Any]]:
    said = progress if isinstance(progress, Mapping) else progress.lastProgress
    sources = [] if said is None else said["sources"]
    return [one if isinstance(one, Mapping) else json.loads(one.json) for one in sources]


def _offset(text: Any) -> dict[str, Any]:
    found = json.loads(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else {}
