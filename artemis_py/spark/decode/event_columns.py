"""The events of messages in a piece of the log, as columns: one item per message and event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from artemis_py.spark.decode.columns import Mask, Numbers, dtype_of, field_numbers, gather, runs
from artemis_py.spark.decode.published import Published, originals, recalled
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.records import REASONS, RECORD_HEADER_BYTES, Layout

PUBLISHED, ROUTED, SCHEDULED, RECALLED, DUE, DELIVERED, ATTEMPTED, REFUSED = range(8)
SETTLED: Final = 8
"""Followed by the index of the reason in the codec's table."""
KINDS: Final = (
    "published", "routed", "scheduled", "recalled", "due", "delivered", "attempted", "refused", *REASONS
)  # fmt: skip
ARRIVALS: Final = (ROUTED, SCHEDULED, RECALLED)
"""A message came to a queue."""
_UNKNOWN: Final = -1
_ID: Final = dtype_of(records.MESSAGE_ID)
_CONSUMER: Final = dtype_of(records.CONSUMER_ID)


@dataclass(frozen=True, slots=True)
class _Ids:
    """A kind of record that names many messages of one queue."""

    kind: int
    layout: Layout
    skips: int
    """How many numbers per message precede the ids: for a page, its places."""
    event: int


_LISTING: Final = (
    _Ids(records.DUE, records.IDS_FIELDS, 0, DUE),
    _Ids(records.DELIVERED, records.IDS_FIELDS, 0, DELIVERED),
    _Ids(records.SETTLED, records.SETTLED_FIELDS, 0, SETTLED),
    _Ids(records.PAGE_SETTLED, records.PAGE_SETTLED_FIELDS, 1, SETTLED),
)


@dataclass
class Facts:
    """Columns of equal length. ``record`` is the index of the record in the walk; ``queue`` and ``consumer`` are the
    log's numbers, 0 for none. -1 means unknown attempts or bytes.
    """

    notes: dict[int, dict[str, Any]]
    """Values without a column, by record: the cause of a failure, the session that an address refused."""
    record: Numbers
    kind: Numbers
    message: Numbers
    queue: Numbers
    consumer: Numbers
    attempts: Numbers
    count: Numbers
    size_bytes: Numbers

    def __len__(self) -> int:
        return len(self.record)

    def chosen(self, which: Mask | Numbers) -> Facts:
        """Some of the items, or all in another order."""
        return Facts(self.notes, *(getattr(self, name)[which] for name in _COLUMNS))


_COLUMNS: Final = ("record", "kind", "message", "queue", "consumer", "attempts", "count", "size_bytes")


def facts_of(found: Walk, wanted: Mask) -> Facts:
    """The events of the wanted rows, in log order. Raises CodecError for truncated rows."""
    notes: dict[int, dict[str, Any]] = {}
    parts = [*_of_messages(found, wanted)]
    parts += [_of_ids(found, wanted, one) for one in _LISTING]
    parts += _of_single(found, wanted, notes)
    columns = [np.concatenate([part[place] for part in parts]) for place in range(len(_COLUMNS))]
    facts = Facts(notes, *columns)
    return facts.chosen(np.argsort(facts.record, kind="stable"))


_Part = tuple[Numbers, ...]


def _part(record: Numbers, kind: Numbers | int, **columns: Numbers | int) -> _Part:
    given: dict[str, Numbers | int] = {"message": 0, "queue": 0, "consumer": 0, "attempts": _UNKNOWN, "count": 1}
    given |= {"size_bytes": _UNKNOWN, **columns, "record": record, "kind": kind}
    return tuple(np.broadcast_to(np.asarray(given[name], np.int64), record.shape) for name in _COLUMNS)


def _of_messages(found: Walk, wanted: Mask) -> Iterator[_Part]:
    """Each message is published, and routed to each of its queues or scheduled there. Some are recalled later."""
    rows = originals(found)
    rows = rows[wanted[rows]]
    published = Published(found, rows)
    yield _part(rows, PUBLISHED, message=published.number("id"), size_bytes=published.size_bytes)
    yield _on_queues(published, np.where(published.states[1]["due_ms"] > 0, SCHEDULED, ROUTED))
    later = recalled(found)
    yield _on_queues(Published(found, later[wanted[later]]), RECALLED)


def _on_queues(published: Published, kinds: Numbers | int) -> _Part:
    owner, states = published.states
    return _part(
        published.records[owner], kinds, message=published.number("id")[owner], queue=field_numbers(states["queue"]),
        size_bytes=published.size_bytes[owner],
    )  # fmt: skip


def _of_ids(found: Walk, wanted: Mask, one: _Ids) -> _Part:
    rows = found.of_kind(one.kind, one.layout.size_bytes)
    rows = rows[wanted[rows]]
    begins = found.places[rows] + RECORD_HEADER_BYTES
    headers = gather(found.data, begins, dtype_of(one.layout))
    counts = field_numbers(headers["count"])
    ids = begins + one.layout.size_bytes + one.skips * _ID.itemsize * counts
    behind = ids + _ID.itemsize * counts
    trailing = found.ends[rows] - behind >= _CONSUMER.itemsize
    consumers = np.zeros(len(rows), np.int64)
    consumers[trailing] = field_numbers(gather(found.data, behind[trailing], _CONSUMER)["consumer"])
    owner, place = runs(counts)
    kinds: Numbers | int = one.event
    if one.event == SETTLED:
        kinds = (SETTLED + np.minimum(field_numbers(headers["reason"]), len(REASONS) - 1))[owner]
    messages = gather(found.data, ids[owner] + _ID.itemsize * place, _ID)["message_id"]
    return _part(
        rows[owner], kinds, message=field_numbers(messages),
        queue=field_numbers(headers["queue"])[owner], consumer=consumers[owner],
    )  # fmt: skip


def _of_single(found: Walk, wanted: Mask, notes: dict[int, dict[str, Any]]) -> list[_Part]:
    """Rare records, one fact each."""
    parts: list[_Part] = []
    for record in np.flatnonzero(wanted & np.isin(found.kinds, list(_SINGLE))).tolist():
        told = _SINGLE[int(found.kinds[record])](found.payload(record))
        if told is not None:
            kind, columns, note = told
            notes[record] = note
            parts.append(_part(np.array([record]), kind, **columns))
    return parts


_Told = tuple[int, dict[str, int], dict[str, Any]]


def _attempted(payload: bytes) -> _Told:
    queue, message, attempts, _, consumer, cause = codec.decode_attempted(payload)
    columns = {"queue": queue, "message": message, "attempts": attempts, "consumer": consumer}
    return ATTEMPTED, columns, {"reason": cause}


def _page_attempted(payload: bytes) -> _Told | None:
    one = codec.decode_page_attempted(payload)
    if not one.message_id:  # it only repeats
        return None
    columns = {
        "queue": one.queue_id, "message": one.message_id, "attempts": one.attempts, "consumer": one.consumer
    }  # fmt: skip
    return ATTEMPTED, columns, {"reason": one.cause}


def _page_purged(payload: bytes) -> _Told:
    one = codec.decode_page_purged(payload)
    columns = {"queue": one.queue_id, "count": one.count, "size_bytes": one.size_bytes}
    return SETTLED + REASONS.index(one.reason), columns, {"purged": one}


def _refused(payload: bytes) -> _Told:
    fields = codec.decode_fields(payload)
    note = {"address": fields["address"], "reason": fields["policy"], "session": fields["session"]}
    return REFUSED, {"count": fields["count"], "size_bytes": fields["bytes"]}, note


_SINGLE: Final = {
    records.ATTEMPTED: _attempted,
    records.PAGE_ATTEMPTED: _page_attempted,
    records.PAGE_PURGED: _page_purged,
    records.REFUSED: _refused,
}
