"""Sums up a stretch of the log: the messages that arrived and are still queued at its end, events of earlier messages,
and counts.

Two consecutive stretches can be joined; messages that arrived in the first and left in the second drop out. So parts of
a log can be summed up separately and then joined in order: each is as large as the queues' content at its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from artemis_py.spark.decode.columns import Mask, Numbers, field_numbers
from artemis_py.spark.decode.event_columns import (
    ARRIVALS,
    ATTEMPTED,
    DELIVERED,
    DUE,
    RECALLED,
    SETTLED,
    Facts,
    facts_of,
)
from artemis_py.spark.decode.published import Published, messages_of
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.storage.format import codec, records

ACKED, REPLACED, EXPIRED, SUPERSEDED, MOVED = (
    SETTLED + records.REASONS.index(name) for name in ("acked", "replaced", "expired", "superseded", "moved")
)
ID_BITS: Final = 44
"""The key of a message in a queue: the queue's number, followed by this many bits of the message's number."""
NO_PLACE: Final = -1
_OF_PAGES: Final = (
    records.PAGE_OPENED, records.PAGE_GREW, records.PAGE_SETTLED, records.PAGE_PURGED, records.PAGE_PLACES,
    records.PAGE_DROPPED,
)  # fmt: skip
_TOLD: Final = (records.QUEUE, records.QUEUE_DELETED, records.CONSUMER, records.BROKER)
_BACK: Final = -1
_ARRIVED: Final = ("key", "timestamp_ms", "size_bytes", "due_ms", "place")
_MOVED: Final = ("key", "consumer")
_Columns = dict[str, Numbers]


@dataclass(slots=True)
class Counts:
    """Counts of messages that entered and left a queue."""

    added: int = 0
    acked: int = 0
    expired: int = 0
    replaced: int = 0
    killed: int = 0
    """Removed for any other reason."""

    def add(self, other: Counts) -> None:
        """Both together."""
        self.added += other.added
        self.acked += other.acked
        self.expired += other.expired
        self.replaced += other.replaced
        self.killed += other.killed

    def and_those(self, others: Counts | None) -> Counts:
        """The same with others."""
        if others is not None:
            self.add(others)
        return self


@dataclass(slots=True)
class Digest:
    """Columns of numbers. Each is in log order, but not relative to the others: first all arrivals, then moves, then
    departures.
    """

    copies: _Columns
    """Messages rewritten by compaction: they count unless an earlier arrival is known."""
    arrived: _Columns
    moved: _Columns
    """The last consumer that got it; -1: it returned."""
    fell_due: Numbers
    gone: Numbers
    """Departures of messages that arrived before, or may have: one that was recalled was perhaps there before, too. One
    that came back after it is none.
    """
    recalled: Numbers
    """Arrivals of messages of the past. The queue may have had the message before."""
    counts: dict[int, Counts]
    pages: list[tuple[bytes, int, int]]
    """Records of pages: payload, kind and time."""
    queues: list[tuple[dict[str, Any], bool]]
    """Fields of records about queues, and whether the queue was deleted."""
    closed: Numbers
    """Consumers that are gone: no consumer holds their earlier messages any more."""
    start: int = -1
    """All consumers with lower numbers are gone, because the broker restarted; -1: it did not."""
    last_ms: int = 0

    def opened_pages(self) -> list[tuple[int, int]]:
        """Stream and number of each opened page."""
        told = (codec.decode_fields(payload) for payload, kind, _ in self.pages if kind == records.PAGE_OPENED)
        return [(fields["stream"], fields["page"]) for fields in told]

    def dropped_pages(self) -> list[tuple[int, int]]:
        """Stream and number of each dropped page."""
        dropped = (payload for payload, kind, _ in self.pages if kind == records.PAGE_DROPPED)
        return [codec.decode_page_dropped(payload) for payload in dropped]


def digest_of(found: Walk, wanted: Mask) -> Digest:
    """The digest of the wanted records of a piece."""
    facts = facts_of(found, wanted)
    moved = facts.chosen(np.isin(facts.kind, (DELIVERED, ATTEMPTED, RECALLED)))
    due = facts.chosen(facts.kind == DUE)
    gone = facts.chosen(facts.kind >= SETTLED)
    counts: dict[int, Counts] = {}
    arrived = _arrived(found, facts, counts)
    _count_departures(gone, counts)
    one = pages_of(found, wanted)
    one.copies, one.arrived, one.counts = _copies(found, wanted), arrived, counts
    again = facts.chosen(facts.kind == RECALLED)
    one.recalled = _keys(again.queue, again.message)
    one.fell_due, one.gone = _keys(due.queue, due.message), _departed(gone, again)
    for record in np.flatnonzero(wanted & np.isin(found.kinds, _TOLD)).tolist():
        _take_told(one, codec.decode_fields(found.payload(record)), int(found.kinds[record]))
    holders = released(np.where(moved.kind == DELIVERED, moved.consumer, _BACK), one)
    one.moved = {"key": _keys(moved.queue, moved.message), "consumer": holders}
    return joined([one])


def _take_told(one: Digest, fields: dict[str, Any], kind: int) -> None:
    if kind == records.BROKER:
        one.start = max(one.start, fields["start"])
    elif kind != records.CONSUMER:
        one.queues.append((fields, kind == records.QUEUE_DELETED))
    elif fields.get("closed"):
        one.closed = np.append(one.closed, fields["id"])


def released(holders: Numbers, by: Digest) -> Numbers:
    """The holders of messages, without consumers that are gone."""
    is_gone = (holders < by.start) | np.isin(holders, by.closed)
    kept: Numbers = np.where(is_gone, _BACK, holders)
    return kept


def pages_of(found: Walk, wanted: Mask) -> Digest:
    """The digest of pages only."""
    one = nothing()
    one.last_ms = int(found.times_ms[wanted].max(initial=0))
    for record in np.flatnonzero(wanted & np.isin(found.kinds, _OF_PAGES)).tolist():
        one.pages.append((found.payload(record), int(found.kinds[record]), int(found.times_ms[record])))
    return one


def nothing() -> Digest:
    """The digest of an empty stretch."""
    none = np.zeros(0, np.int64)
    copies, arrived, moved = (dict.fromkeys(names, none) for names in (_ARRIVED, _ARRIVED, _MOVED))
    return Digest(copies, arrived, moved, none, none, none, {}, [], [], none)


def joined(parts: Sequence[Digest]) -> Digest:
    """The digest of consecutive stretches."""
    copies, arrived = (_laid([getattr(one, name) for one in parts]) for name in ("copies", "arrived"))
    moved = nothing().moved
    for one in parts:
        before = {"key": moved["key"], "consumer": released(moved["consumer"], one)}
        moved = _laid([before, one.moved])
    gone = np.concatenate([_still_gone(one.gone, parts[place + 1 :]) for place, one in enumerate(parts)])
    fell_due = np.unique(np.concatenate([one.fell_due for one in parts]))
    went = np.unique(gone)
    copies = _where(copies, ~np.isin(copies["key"], went) & ~np.isin(copies["key"], arrived["key"]))
    moved = _where(moved, _is_last(moved["key"]) & ~np.isin(moved["key"], went))
    whole = nothing()
    whole.copies, whole.moved, whole.fell_due = copies, moved, fell_due[~np.isin(fell_due, went)]
    whole.recalled = np.concatenate([one.recalled for one in parts])
    whole.gone = went[~np.isin(went, arrived["key"]) | np.isin(went, whole.recalled)]
    whole.arrived = _where(arrived, ~np.isin(arrived["key"], went))
    for one in parts:
        for queue, counts in one.counts.items():
            whole.counts.setdefault(queue, Counts()).add(counts)
        whole.pages += one.pages
        whole.queues += one.queues
        whole.closed = np.concatenate([whole.closed, one.closed])
        whole.start = max(whole.start, one.start)
        whole.last_ms = max(whole.last_ms, one.last_ms)
    return whole


def _departed(gone: Facts, again: Facts) -> Numbers:
    """The departures, without those of messages that were recalled after it."""
    keys = _keys(gone.queue, gone.message)
    if not len(again):
        return keys
    last = dict(zip(_keys(again.queue, again.message).tolist(), again.record.tolist(), strict=True))
    stays = [last.get(key, -1) < record for key, record in zip(keys.tolist(), gone.record.tolist(), strict=True)]
    return keys[np.array(stays, np.bool_)]


def _still_gone(gone: Numbers, later: Sequence[Digest]) -> Numbers:
    """The departures, without those of messages that were recalled in a later stretch."""
    again = [one.recalled for one in later if len(one.recalled)]
    return gone[~np.isin(gone, np.concatenate(again))] if again else gone


def _laid(parts: Sequence[_Columns]) -> _Columns:
    return {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}


def _where(columns: _Columns, which: Mask) -> _Columns:
    return {name: values[which] for name, values in columns.items()}


def _is_last(keys: Numbers) -> Mask:
    """Of each key the last one."""
    mask = np.zeros(len(keys), np.bool_)
    mask[len(keys) - 1 - np.unique(keys[::-1], return_index=True)[1]] = True
    return mask


def _keys(queues: Numbers, messages: Numbers) -> Numbers:
    """One number for a message in a queue."""
    return (queues << ID_BITS) | messages


def _copies(found: Walk, wanted: Mask) -> _Columns:
    messages = messages_of(found)
    messages = messages[wanted[messages]]
    published = Published(found, messages)
    is_recalled = published.number("flags") & records.FLAG_RECALLED > 0
    copies = published.narrowed((published.number("lsn") != found.lsns[messages]) & ~is_recalled)
    owner, states = copies.states
    return _columns(copies, owner, states, np.zeros(len(owner), np.bool_))


def _arrived(found: Walk, facts: Facts, counts: dict[int, Counts]) -> _Columns:
    arrived = facts.chosen(np.isin(facts.kind, ARRIVALS))
    for queue, count in _totals(arrived.queue, arrived.count):
        counts.setdefault(queue, Counts()).added += count
    published = Published(found, np.unique(arrived.record))
    owner, states = published.states
    paged = (published.number("flags") & records.FLAG_PAGED > 0)[owner]
    return _columns(published, owner, states, paged)


def _columns(published: Published, owner: Numbers, states: NDArray[Any], paged: Mask) -> _Columns:
    """One item for each message and queue."""
    return {
        "key": _keys(field_numbers(states["queue"]), published.number("id")[owner]),
        "timestamp_ms": published.number("timestamp_ms")[owner],
        "size_bytes": published.size_bytes[owner],
        "due_ms": field_numbers(states["due_ms"]),
        "place": np.where(paged, field_numbers(states["order"]), NO_PLACE),
    }


def counted(found: Walk, wanted: Mask) -> Digest:
    """What arrived and left in a piece, and nothing else."""
    facts = facts_of(found, wanted)
    one = nothing()
    arrived = facts.chosen(np.isin(facts.kind, ARRIVALS))
    for queue, count in _totals(arrived.queue, arrived.count):
        one.counts.setdefault(queue, Counts()).added += count
    _count_departures(facts.chosen(facts.kind >= SETTLED), one.counts)
    return one


def told_counts(counts: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, Counts]]:
    """The same as the index of a segment tells it, by queue."""
    for queue, (added, acked, replaced, expired, killed) in counts.items():
        yield int(queue), Counts(added, acked, expired, replaced, killed)


def _totals(queues: Numbers, counts: Numbers) -> Iterator[tuple[int, int]]:
    unique, places = np.unique(queues, return_inverse=True)
    totals = np.bincount(places, weights=counts).astype(np.int64)
    yield from zip(unique.tolist(), totals.tolist(), strict=True)


def _count_departures(gone: Facts, counts: dict[int, Counts]) -> None:
    for kind in np.unique(gone.kind).tolist():
        these = gone.chosen(gone.kind == kind)
        for queue, count in _totals(these.queue, these.count):
            _count(counts.setdefault(queue, Counts()), kind, count)


def _count(counts: Counts, kind: int, count: int) -> None:
    if kind in (ACKED, MOVED):
        counts.acked += count
    elif kind == EXPIRED:
        counts.expired += count
    elif kind in (REPLACED, SUPERSEDED):
        counts.replaced += count
    else:
        counts.killed += count
