"""What the whole log adds up to: which messages each queue holds, and how many came and went.

Pieces are taken in order. Within a piece first what came is taken in, then what went: a message never comes back to a
queue that is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from artemis_py.paged import Page
from artemis_py.records import Depth
from artemis_py.spark.columns import Mask, Numbers, field_numbers
from artemis_py.spark.facts import ATTEMPTED, DELIVERED, DUE, ROUTED, SCHEDULED, SETTLED, Facts, facts_of
from artemis_py.spark.published import MESSAGE_FIELDS, Published
from artemis_py.spark.walk import Walk
from artemis_py.storage import codec, page_codec

ACKED, REPLACED, EXPIRED, SUPERSEDED = (
    SETTLED + codec.REASONS.index(name) for name in ("acked", "replaced", "expired", "superseded")
)
_ID_BITS: Final = 44
_OF_PAGES: Final = (
    codec.PAGE_OPENED, codec.PAGE_GREW, codec.PAGE_SETTLED, codec.PAGE_PURGED, codec.PAGE_PLACES, codec.PAGE_DROPPED
)  # fmt: skip
_TOLD: Final = (codec.QUEUE, codec.QUEUE_DELETED, codec.CONSUMER, codec.BROKER)


@dataclass(slots=True)
class Counts:
    """What came to a queue and went, since the log begins."""

    added: int = 0
    acked: int = 0
    expired: int = 0
    replaced: int = 0
    killed: int = 0
    """For all other reasons."""


@dataclass(slots=True)
class PageState:
    """One page file, as the log knows it."""

    address: str
    stream: int
    number: int
    first_place: int
    opened_ms: int
    messages: int = 0
    size_bytes: int = 0
    dropped_ms: int | None = None
    shares: dict[int, tuple[int, int]] = field(default_factory=dict)
    """What it holds for each durable queue: messages and bytes."""


@dataclass(slots=True)
class Held:
    """What a queue holds of persistent messages."""

    count: int = 0
    size_bytes: int = 0
    delivering: int = 0
    scheduled: int = 0
    oldest_ms: int | None = None


class Fold:
    """Takes in one broker's log, piece by piece."""

    def __init__(self) -> None:
        self.queues: dict[int, dict[str, Any]] = {}
        """Those that there are: the fields of their QUEUE records."""
        self.pages: dict[tuple[int, int], PageState] = {}
        self.counts: dict[int, Counts] = {}
        self._live: dict[int, tuple[int, int]] = {}
        """By queue and message its timestamp and size."""
        self._due: dict[int, int] = {}
        self._delivering: dict[int, int] = {}
        """By queue and message the consumer that has it."""
        self._places: dict[int, dict[int, int]] = {}
        """By queue, for what lives in pages, the key of the message at each place."""
        self._page_settled: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._retains = False
        self.deleted: set[int] = set()
        """Queues that were deleted and not made again."""
        self.is_exact = False
        """Did the log once tell just the depths that were added up? From then on they are what the queues hold."""
        self._is_unsure = False
        """Was something purged of which only an earlier segment tells what it was?"""

    # ---- pieces ----------------------------------------------------------------------------------

    def take(self, found: Walk, wanted: Mask) -> None:
        """The wanted records of the next piece."""
        self._take_copies(found, wanted)
        facts = facts_of(found, wanted)
        self._take_arrivals(found, facts)
        self._take_deliveries(facts)
        self._take_departures(facts)
        for record in np.flatnonzero(wanted & np.isin(found.kinds, _OF_PAGES)).tolist():
            self._take_page(found.payload(record), int(found.kinds[record]), int(found.times_ms[record]))
        for record in np.flatnonzero(wanted & np.isin(found.kinds, _TOLD)).tolist():
            self._take_told(codec.decode_fields(found.payload(record)), int(found.kinds[record]))

    def _take_copies(self, found: Walk, wanted: Mask) -> None:
        """A message that compaction wrote again, whose publication is not in the log any more."""
        messages = found.of_kind(codec.MESSAGE, MESSAGE_FIELDS.itemsize)
        messages = messages[wanted[messages]]
        published = Published(found, messages)
        copies = published.narrowed(published.number("lsn") != found.lsns[messages])
        if not len(copies):
            return
        owner, states = copies.states
        keys = _keys(field_numbers(states["queue"]), copies.number("id")[owner])
        values = zip(copies.number("timestamp_ms")[owner].tolist(), copies.size_bytes[owner].tolist(), strict=True)
        due_ms = field_numbers(states["due_ms"]).tolist()
        for key, value, due in zip(keys.tolist(), values, due_ms, strict=True):
            if key not in self._live:
                self._live[key] = value
                if due:
                    self._due[key] = due

    def _take_arrivals(self, found: Walk, facts: Facts) -> None:
        came = facts.chosen((facts.kind == ROUTED) | (facts.kind == SCHEDULED))
        if not len(came):
            return
        records, places = np.unique(came.record, return_inverse=True)
        published = Published(found, records)
        stamps = published.number("timestamp_ms")[places]
        keys = _keys(came.queue, came.message)
        values = zip(stamps.tolist(), came.size_bytes.tolist(), strict=True)
        self._live.update(zip(keys.tolist(), values, strict=True))
        _count_arrivals(came, self.counts)
        _, states = published.states
        due_ms = field_numbers(states["due_ms"])
        later = np.flatnonzero(due_ms)
        self._due.update(zip(keys[later].tolist(), due_ms[later].tolist(), strict=True))
        paged = (published.number("flags") & codec.FLAG_PAGED > 0)[places]
        for key, queue, place in zip(
            keys[paged].tolist(), came.queue[paged].tolist(), states["order"][paged].tolist(), strict=True
        ):
            self._places.setdefault(queue, {})[place] = key

    def _take_deliveries(self, facts: Facts) -> None:
        """The last thing said of a message counts: it is with a consumer, or came back."""
        moved = facts.chosen((facts.kind == DELIVERED) | (facts.kind == ATTEMPTED))
        keys = _keys(moved.queue, moved.message)
        holders = np.where(moved.kind == DELIVERED, moved.consumer, -1)
        self._delivering.update(zip(keys.tolist(), holders.tolist(), strict=True))
        due = facts.chosen(facts.kind == DUE)
        for key in _keys(due.queue, due.message).tolist():
            self._due.pop(key, None)

    def _take_departures(self, facts: Facts) -> None:
        gone = facts.chosen(facts.kind >= SETTLED)
        _count_departures(gone, self.counts)
        for key in _keys(gone.queue, gone.message).tolist():
            self._forget(key)

    def _forget(self, key: int) -> None:
        self._live.pop(key, None)
        self._due.pop(key, None)
        self._delivering.pop(key, None)

    # ---- what is told beside messages ------------------------------------------------------------

    def _take_page(self, payload: bytes, kind: int, time_ms: int) -> None:
        if kind == codec.PAGE_OPENED:
            told = codec.decode_fields(payload)
            at = told["stream"], told["page"]
            self.pages.setdefault(at, PageState(told["address"], *at, told["first_place"], time_ms))
        elif kind == codec.PAGE_GREW:
            self._grow(page_codec.decode_grew(payload))
        elif kind == codec.PAGE_SETTLED:
            one = page_codec.decode_page_settled(payload)
            at_queue = one.queue_id, one.stream, one.page
            count, size = self._page_settled.get(at_queue, (0, 0))
            self._page_settled[at_queue] = count + len(one.message_ids), size + one.size_bytes
        elif kind == codec.PAGE_PURGED:
            self._purge(page_codec.decode_page_purged(payload))
        elif kind == codec.PAGE_PLACES:
            queue, stream, number, _, count, size, _ = page_codec.decode_places(payload)
            self._page_settled[queue, stream, number] = count, size
        else:
            page = self.pages.get(page_codec.decode_page_dropped(payload))
            if page is not None:
                page.dropped_ms = time_ms

    def _grow(self, grown: Page) -> None:
        page = self.pages.get((grown.stream, grown.number))
        if page is not None:
            page.messages, page.size_bytes = grown.kept_count, grown.kept_bytes
            page.shares = {queue: (share.count, share.size_bytes) for queue, share in grown.durable.items()}

    def _purge(self, purged: page_codec.PagePurged) -> None:
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

    def _take_told(self, fields: dict[str, Any], kind: int) -> None:
        if kind == codec.QUEUE:
            self.queues[fields["id"]] = fields
            self.deleted.discard(fields["id"])
        elif kind == codec.QUEUE_DELETED:
            self.queues.pop(fields["id"], None)
            self.deleted.add(fields["id"])
        elif kind == codec.BROKER:
            self._retains = True
            self._release(lambda consumer: consumer < fields["start"])
        elif fields.get("closed"):
            self._release(lambda consumer: consumer == fields["id"])

    def _release(self, is_gone: Callable[[int], bool]) -> None:
        """What consumers held that are gone went back to its queues."""
        self._delivering = {key: one for key, one in self._delivering.items() if one >= 0 and not is_gone(one)}

    # ---- what there is ---------------------------------------------------------------------------

    def compare(self, depths: Sequence[Depth]) -> None:
        """The log tells how deep the queues are after everything that was taken in, and what may stand before it."""
        if self.is_exact or self._is_unsure or len(self._live) != sum(one.count for one in depths):
            return
        told = {one.queue_id: (one.count, one.size_bytes, one.delivering_count, one.scheduled_count) for one in depths}
        added_up = {
            queue: (one.count, one.size_bytes, one.delivering, one.scheduled) for queue, one in self.held().items()
        }
        self.is_exact = told == added_up

    def held(self) -> dict[int, Held]:
        """What each queue holds now."""
        found: dict[int, Held] = {}
        for key, (timestamp_ms, size) in self._live.items():
            one = found.setdefault(key >> _ID_BITS, Held())
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


def _keys(queues: Numbers, messages: Numbers) -> Numbers:
    """One number for a message in a queue."""
    return (queues << _ID_BITS) | messages


def _totals(queues: Numbers, counts: Numbers) -> Iterator[tuple[int, int]]:
    unique, places = np.unique(queues, return_inverse=True)
    totals = np.bincount(places, weights=counts).astype(np.int64)
    yield from zip(unique.tolist(), totals.tolist(), strict=True)


def counted(found: Walk, wanted: Mask, counts: dict[int, Counts]) -> None:
    """Add what came and went in a piece, and nothing else."""
    facts = facts_of(found, wanted)
    _count_arrivals(facts.chosen((facts.kind == ROUTED) | (facts.kind == SCHEDULED)), counts)
    _count_departures(facts.chosen(facts.kind >= SETTLED), counts)


def _count_arrivals(came: Facts, counts: dict[int, Counts]) -> None:
    for queue, count in _totals(came.queue, came.count):
        counts.setdefault(queue, Counts()).added += count


def _count_departures(gone: Facts, counts: dict[int, Counts]) -> None:
    for kind in np.unique(gone.kind).tolist():
        these = gone.chosen(gone.kind == kind)
        for queue, count in _totals(these.queue, these.count):
            _count(counts.setdefault(queue, Counts()), kind, count)


def _count(counts: Counts, kind: int, count: int) -> None:
    if kind == ACKED:
        counts.acked += count
    elif kind == EXPIRED:
        counts.expired += count
    elif kind in (REPLACED, SUPERSEDED):
        counts.replaced += count
    else:
        counts.killed += count
