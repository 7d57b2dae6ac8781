"""The events of messages in a piece of the log, as columns: one item per message and event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from artemis_py.spark.decode.columns import Mask, Numbers, field_numbers, gather, runs
from artemis_py.spark.decode.published import Published, originals, recalled
from artemis_py.spark.decode.walk import Walk
from artemis_py.storage.format import codec, page_codec
from artemis_py.storage.format.codec import RECORD_HEADER_BYTES

PUBLISHED, ROUTED, SCHEDULED, RECALLED, DUE, DELIVERED, ATTEMPTED, REFUSED = range(8)
SETTLED: Final = 8
"""Followed by the index of the reason in the codec's table."""
KINDS: Final = (
    "published", "routed", "scheduled", "recalled", "due", "delivered", "attempted", "refused", *codec.REASONS
)  # fmt: skip
ARRIVALS: Final = (ROUTED, SCHEDULED, RECALLED)
"""A message came to a queue."""
_UNKNOWN: Final = -1
_ID: Final = np.dtype("<u8")


@dataclass(frozen=True, slots=True)
class _Ids:
    """The layout of a record that names many messages of one queue."""

    kind: int
    header: np.dtype[Any]
    skips: int
    """How many numbers per message precede the ids: for a page, its places."""
    event: int


_IDS: Final = np.dtype([("queue", "<u4"), ("count", "<u4")])
_SETTLED: Final = np.dtype([("queue", "<u4"), ("reason", "u1"), ("count", "<u4")])
_PAGE_SETTLED: Final = np.dtype(
    [("queue", "<u4"), ("stream", "<u4"), ("page", "<u4"), ("reason", "u1"), ("count", "<u4"), ("bytes", "<u8")]
)
_LISTING: Final = (
    _Ids(codec.DUE, _IDS, 0, DUE),
    _Ids(codec.DELIVERED, _IDS, 0, DELIVERED),
    _Ids(codec.SETTLED, _SETTLED, 0, SETTLED),
    _Ids(codec.PAGE_SETTLED, _PAGE_SETTLED, 1, SETTLED),
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
    """The events of the wanted records, in log order. Raises CodecError for truncated records."""
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
    records = originals(found)
    records = records[wanted[records]]
    published = Published(found, records)
    yield _part(records, PUBLISHED, message=published.number("id"), size_bytes=published.size_bytes)
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
    records = found.of_kind(one.kind, one.header.itemsize)
    records = records[wanted[records]]
    begins = found.places[records] + RECORD_HEADER_BYTES
    headers = gather(found.data, begins, one.header)
    counts = field_numbers(headers["count"])
    ids = begins + one.header.itemsize + one.skips * 8 * counts
    behind = ids + 8 * counts
    trailing = found.ends[records] - behind >= 8
    consumers = np.zeros(len(records), np.int64)
    consumers[trailing] = field_numbers(gather(found.data, behind[trailing], _ID))
    owner, place = runs(counts)
    kinds: Numbers | int = one.event
    if one.event == SETTLED:
        kinds = (SETTLED + np.minimum(field_numbers(headers["reason"]), len(codec.REASONS) - 1))[owner]
    return _part(
        records[owner], kinds, message=field_numbers(gather(found.data, ids[owner] + 8 * place, _ID)),
        queue=field_numbers(headers["queue"])[owner], consumer=consumers[owner],
    )  # fmt: skip


def _of_single(found: Walk, wanted: Mask, notes: dict[int, dict[str, Any]]) -> list[_Part]:
    """Records that are rare and tell of one thing each."""
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
    one = page_codec.decode_page_attempted(payload)
    if not one.message_id:  # it only repeats
        return None
    columns = {
        "queue": one.queue_id, "message": one.message_id, "attempts": one.attempts, "consumer": one.consumer
    }  # fmt: skip
    return ATTEMPTED, columns, {"reason": one.cause}


def _page_purged(payload: bytes) -> _Told:
    one = page_codec.decode_page_purged(payload)
    columns = {"queue": one.queue_id, "count": one.count, "size_bytes": one.size_bytes}
    return SETTLED + codec.REASONS.index(one.reason), columns, {"purged": one}


def _refused(payload: bytes) -> _Told:
    fields = codec.decode_fields(payload)
    note = {"address": fields["address"], "reason": fields["policy"], "session": fields["session"]}
    return REFUSED, {"count": fields["count"], "size_bytes": fields["bytes"]}, note


_SINGLE: Final = {
    codec.ATTEMPTED: _attempted,
    codec.PAGE_ATTEMPTED: _page_attempted,
    codec.PAGE_PURGED: _page_purged,
    codec.REFUSED: _refused,
}
