"""Tables ``queues`` and ``pages``: the sum of a broker's whole log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from artemis_py.spark.decode.digest import Counts
from artemis_py.spark.decode.fold import Fold, Held

Row = dict[str, Any]
_US_PER_MS: Final = 1000


def queue_rows(fold: Fold, broker: str, as_of_ms: int) -> Iterator[Row]:
    """One row for each existing queue."""
    held = fold.held()
    for number, fields in sorted(fold.queues.items(), key=lambda item: (item[1]["address"], item[1]["name"])):
        now = held.get(number, Held())
        counts = fold.counts.get(number, Counts())
        yield {
            "broker": broker,
            "address": fields["address"],
            "queue": fields["name"],
            "routingType": fields.get("routing_type"),
            "durable": True,
            "filter": fields.get("filter"),
            "messageCount": now.count,
            "persistentBytes": now.size_bytes,
            "deliveringCount": now.delivering,
            "scheduledCount": now.scheduled,
            "oldest": _time(now.oldest_ms),
            "added": counts.added,
            "acked": counts.acked,
            "expired": counts.expired,
            "killed": counts.killed,
            "replaced": counts.replaced,
            "asOf": _time(as_of_ms),
        }


def page_rows(fold: Fold, broker: str, _as_of_ms: int) -> Iterator[Row]:
    """One row for each page in the log."""
    newest = {stream: max(number for one, number in fold.pages if one == stream) for stream, _ in fold.pages}
    for (stream, number), page in sorted(fold.pages.items()):
        state = "full" if number < newest[stream] else "open"
        yield {
            "broker": broker,
            "address": page.address,
            "stream": stream,
            "page": number,
            "messages": page.messages,
            "bytes": page.size_bytes,
            "state": state if page.dropped_ms is None else "dropped",
            "firstPlace": page.first_place,
            "openedAt": _time(page.opened_ms),
            "droppedAt": _time(page.dropped_ms),
        }


def _time(value_ms: int | None) -> int | None:
    """As Arrow counts: microseconds."""
    return None if value_ms is None else value_ms * _US_PER_MS


ROWS: Final[dict[str, Callable[[Fold, str, int], Iterator[Row]]]] = {"queues": queue_rows, "pages": page_rows}


def state_batch(
    table: str, fold: Fold, broker: str, as_of_ms: int, schema: pa.Schema, takes: Callable[[str], bool]
) -> pa.RecordBatch:
    """The rows of one of the tables whose addresses are wanted."""
    rows = [row for row in ROWS[table](fold, broker, as_of_ms) if takes(row["address"])]
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
