"""Sums up a log: the messages in each queue, and the counts of messages that entered and left. Digests are taken in
order. The tables ``queues`` and ``pages`` are made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from artemis_py.paged_messages import Page
from artemis_py.record_log import Depth
from artemis_py.spark.decode.digest import ID_BITS, NO_PLACE, Counts, Digest, released
from artemis_py.storage.format import codec, records


@dataclass(slots=True)
class PageState:
    """One page file, as the log describes it."""

    address: str
    stream: int
    number: int
    first_place: int
    opened_ms: int
    messages: int = 0
    size_bytes: int = 0
    dropped_ms: int | None = None
    shares: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Messages and bytes for each durable queue."""


@dataclass(slots=True)
class Held:
    """The persistent messages in a queue."""

    count: int = 0
    size_bytes: int = 0
    delivering: int = 0
    scheduled: int = 0
    oldest_ms: int | None = None


class Aggregate:
    """Sums up one broker's log, stretch by stretch."""

    def __init__(self) -> None:
        self.queues: dict[int, dict[str, Any]] = {}
        """Existing queues: the fields of their QUEUE records."""
        self.pages: dict[tuple[int, int], PageState] = {}
        self.counts: dict[int, Counts] = {}
        self._live: dict[int, tuple[int, int]] = {}
        """By queue and message its timestamp and size."""
        self._due: dict[int, int] = {}
        self._delivering: dict[int, int] = {}
        """By queue and message the consumer that has it."""
        self._places: dict[int, dict[int, int]] = {}
        """For messages in pages, by queue: the key of the message at each place."""
        self._page_settled: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._retains = False
        self.deleted: set[int] = set()
        """Queues that were deleted and not recreated."""
        self.is_exact = False
        """Did the recorded depths match the sum once? From then on the sum is exact."""
        self._is_unsure = False
        """Was something purged that only an earlier segment describes?"""

    # ---- stretches of the log --------------------------------------------------------------------

    def take(self, one: Digest) -> None:
        """Add the digest of the next stretch."""
        self._take_copies(one)
        self._take_arrivals(one)
        self._take_deliveries(one)
        for key in one.gone.tolist():
            self._forget(key)
        for queue, counts in one.counts.items():
            self.counts.setdefault(queue, Counts()).add(counts)
        for payload, kind, time_ms in one.pages:
            self._take_page(payload, kind, time_ms)
        for fields, is_deleted in one.queues:
            self._take_queue(fields, is_deleted=is_deleted)

    def _take_copies(self, one: Digest) -> None:
        """Messages that compaction wrote again, whose publication is not in the log any more."""
        names = ("key", "timestamp_ms", "size_bytes", "due_ms")
        for key, timestamp_ms, size_bytes, due_ms in zip(*(one.copies[name].tolist() for name in names), strict=True):
            if key not in self._live:
                self._live[key] = timestamp_ms, size_bytes
                if due_ms:
                    self._due[key] = due_ms

    def _take_arrivals(self, one: Digest) -> None:
        arrived = one.arrived
        values = zip(arrived["timestamp_ms"].tolist(), arrived["size_bytes"].tolist(), strict=True)
        self._live.update(zip(arrived["key"].tolist(), values, strict=True))
        later = np.flatnonzero(arrived["due_ms"])
        self._due.update(zip(arrived["key"][later].tolist(), arrived["due_ms"][later].tolist(), strict=True))
        paged = np.flatnonzero(arrived["place"] != NO_PLACE)
        for key, place in zip(arrived["key"][paged].tolist(), arrived["place"][paged].tolist(), strict=True):
            self._places.setdefault(key >> ID_BITS, {})[place] = key

    def _take_deliveries(self, one: Digest) -> None:
        """The last thing said of a message counts: it is with a consumer, or is back. What consumers held that are
        gone went back to its queues.
        """
        self._retains |= one.start >= 0
        if one.start >= 0 or len(one.closed):
            keys, holders = [*self._delivering], released(np.array([*self._delivering.values()], np.int64), one)
            self._delivering = {key: holder for key, holder in zip(keys, holders.tolist(), strict=True) if holder >= 0}
        self._delivering.update(zip(one.moved["key"].tolist(), one.moved["consumer"].tolist(), strict=True))
        for key in one.fell_due.tolist():
            self._due.pop(key, None)

    def _forget(self, key: int) -> None:
        self._live.pop(key, None)
        self._due.pop(key, None)
        self._delivering.pop(key, None)

    # ---- what is told beside messages ------------------------------------------------------------

    def _take_page(self, payload: bytes, kind: int, time_ms: int) -> None:
        if kind == records.PAGE_OPENED:
            self._open_page(codec.decode_fields(payload), time_ms)
        elif kind == records.PAGE_GREW:
            self._grow(codec.decode_page_grew(payload))
        elif kind == records.PAGE_SETTLED:
            one = codec.decode_page_settled(payload)
            at_queue = one.queue_id, one.stream, one.page
            count, size = self._page_settled.get(at_queue, (0, 0))
            self._page_settled[at_queue] = count + len(one.message_ids), size + one.size_bytes
        elif kind == records.PAGE_PURGED:
            self._purge(codec.decode_page_purged(payload))
        elif kind == records.PAGE_PLACES:
            queue, stream, number, _, count, size, _ = codec.decode_page_places(payload)
            self._page_settled[queue, stream, number] = count, size
        else:
            page = self.pages.get(codec.decode_page_dropped(payload))
            if page is not None:
                page.dropped_ms = time_ms

    def _open_page(self, told: dict[str, Any], time_ms: int) -> None:
        """A page is new, or recorded again. After a restart a number may be that of a page that was dropped."""
        at = told["stream"], told["page"]
        known = self.pages.get(at)
        if known is not None:
            if known.dropped_ms is None:
                return
            for queue in known.shares:
                self._page_settled.pop((queue, *at), None)
        self.pages[at] = PageState(told["address"], *at, told["first_place"], time_ms)

    def _grow(self, grown: Page) -> None:
        page = self.pages.get((grown.stream, grown.number))
        if page is not None:
            page.messages, page.size_bytes = grown.kept_count, grown.kept_bytes
            page.shares = {queue: (share.count, share.size_bytes) for queue, share in grown.durable.items()}

    def _purge(self, purged: codec.PagePurged) -> None:
        page = self.pages.get((purged.stream, purged.page))
        if page is None:
            self._is_unsure = True
            return
        kept = set(purged.kept_places)
        places = self._places.get(purged.queue_id, {})
        for place in range(page.first_place, page.first_place + page.messages):
            if place not in kept and place in places:
                self._forget(places.pop(place))
        page.shares[purged.queue_id] = len(kept), purged.kept_bytes
        self._page_settled.pop((purged.queue_id, purged.stream, purged.page), None)

    def _take_queue(self, fields: dict[str, Any], *, is_deleted: bool) -> None:
        if is_deleted:
            self.queues.pop(fields["id"], None)
            self.deleted.add(fields["id"])
        else:
            self.queues[fields["id"]] = fields
            self.deleted.discard(fields["id"])

    # ---- what there is ---------------------------------------------------------------------------

    def compare(self, depths: Sequence[Depth]) -> None:
        """Compare with the queue depths that the log records after everything taken so far."""
        if self.is_exact or self._is_unsure or len(self._live) != sum(one.count for one in depths):
            return
        told = {one.queue_id: (one.count, one.size_bytes, one.delivering_count, one.scheduled_count) for one in depths}
        added_up = {
            queue: (one.count, one.size_bytes, one.delivering, one.scheduled) for queue, one in self.held().items()
        }
        self.is_exact = told == added_up

    def held(self) -> dict[int, Held]:
        """The current content of each queue."""
        found: dict[int, Held] = {}
        for key, (timestamp_ms, size) in self._live.items():
            one = found.setdefault(key >> ID_BITS, Held())
            one.count += 1
            one.size_bytes += size
            one.delivering += self._delivering.get(key, -1) >= 0
            one.scheduled += key in self._due
            if one.oldest_ms is None or timestamp_ms < one.oldest_ms:
                one.oldest_ms = timestamp_ms
        if not self._retains:
            self._add_paged(found)
        return found

    def _add_paged(self, found: dict[int, Held]) -> None:
        """Without retention the log does not have the messages in pages, only how many they are."""
        for page in self.pages.values():
            if page.dropped_ms is not None:
                continue
            for queue, (count, size) in page.shares.items():
                gone, gone_bytes = self._page_settled.get((queue, page.stream, page.number), (0, 0))
                one = found.setdefault(queue, Held())
                one.count += count - gone
                one.size_bytes += size - gone_bytes


# ---- rows ------------------------------------------------------------------------------------------------------------
#
# Tables ``queues`` and ``pages``: the sum of a broker's whole log.


Row = dict[str, Any]
_US_PER_MS: Final = 1000


def queue_rows(fold: Aggregate, broker: str, as_of_ms: int) -> Iterator[Row]:
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


def page_rows(fold: Aggregate, broker: str, _as_of_ms: int) -> Iterator[Row]:
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


ROWS: Final[dict[str, Callable[[Aggregate, str, int], Iterator[Row]]]] = {"queues": queue_rows, "pages": page_rows}


def state_batch(
    table: str, fold: Aggregate, broker: str, as_of_ms: int, schema: pa.Schema, takes: Callable[[str], bool]
) -> pa.RecordBatch:
    """The rows of one of the tables whose addresses are wanted."""
    rows = [row for row in ROWS[table](fold, broker, as_of_ms) if takes(row["address"])]
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
