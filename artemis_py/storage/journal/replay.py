"""Applies records to the durable state: the one place where records that were read change the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from artemis_py.paged import Page, PlaceSet, Settled
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.records import Record, inner_records
from artemis_py.storage.journal.index import Index, Segment


@dataclass(slots=True)
class Replayed:
    """The state that the records read so far add up to."""

    index: Index = field(default_factory=Index)
    next_lsn: int = 1
    batch_number: int = 0
    deleted: set[int] = field(default_factory=set)
    """Deleted queues: losing the rest of their messages is no loss."""
    _older: dict[str, list[str]] = field(default_factory=dict)
    """Duplicate ids known only from repetitions: older than all others of their address, the newest of them first."""
    _known: dict[str, set[str]] = field(default_factory=dict)
    """All duplicate ids of addresses with repeated ids."""

    def see(self, address: str, duplicate_id: str, *, again: bool) -> None:
        """An address received a duplicate id. ``again``: this is a repetition, from the newest to the oldest, so an
        unknown id is older than the known ones.
        """
        seen = self.index.duplicate_ids.setdefault(address, [])
        known = self._known.get(address)
        if not again:
            seen.append(duplicate_id)
            if known is not None:
                known.add(duplicate_id)
            return
        if known is None:
            known = self._known[address] = set(seen)
        if duplicate_id not in known:
            known.add(duplicate_id)
            self._older.setdefault(address, []).append(duplicate_id)

    def forget_duplicates(self, address: str) -> None:
        """Forget the duplicate ids of an address."""
        self.index.duplicate_ids.pop(address, None)
        self._older.pop(address, None)
        self._known.pop(address, None)

    def finish(self) -> None:
        """All records were read."""
        for address, older in self._older.items():
            self.index.duplicate_ids[address] = older[::-1] + self.index.duplicate_ids[address]
        self._older.clear()
        self._known.clear()


def apply(replayed: Replayed, record: Record, segment: Segment) -> None:
    """Apply a record that was read from ``segment``. Raises CodecError if a message or a group in it is truncated."""
    index = replayed.index
    if record.lsn >= replayed.next_lsn:
        replayed.next_lsn = record.lsn + 1
    kind = record.type_code
    payload = record.payload
    if kind == records.MESSAGE:
        index.add(codec.decode_message(payload), segment)
    elif kind == records.SETTLED:
        queue_id, _, message_ids, _ = codec.decode_settled(payload)
        for message_id in message_ids:
            index.settle(queue_id, message_id)
    elif kind == records.ATTEMPTED:
        queue_id, message_id, attempts, due_ms, _, _ = codec.decode_attempted(payload)
        index.attempt(queue_id, message_id, attempts, due_ms)
    elif kind == records.DUE:
        queue_id, message_ids, _ = codec.decode_ids(payload)
        index.fall_due(record.lsn, queue_id, message_ids)
    elif kind == records.GROUP:
        for inner in inner_records(payload):
            apply(replayed, inner, segment)
    elif kind == records.BATCH:
        batch = codec.decode_batch(payload)
        replayed.batch_number = max(replayed.batch_number, batch.number)
        index.message_id_max = max(index.message_id_max, batch.message_id)
        index.queue_id_max = max(index.queue_id_max, batch.queue_id)
    elif kind in _PAGE_RECORDS:
        segment.has_bindings = True
        _PAGE_RECORDS[kind](index, payload)
    elif kind in records.BINDINGS:  # all others are for readers of the log, or from a later version
        _apply_binding(replayed, kind, payload, segment)


def _page_opened(index: Index, payload: bytes) -> None:
    fields = codec.decode_fields(payload)
    index.pages.open(Page(fields["stream"], fields["page"], fields["first_place"]), fields["address"])


def _page_grew(index: Index, payload: bytes) -> None:
    told = codec.decode_page_grew(payload)
    if index.pages.find(told.stream, told.number) is None:  # its PAGE_OPENED record is damaged
        address = codec.page_grew_address(payload)
        if not address:
            return
        index.pages.open(Page(told.stream, told.number, told.first_place), address)
    index.pages.grow(told)


def _page_settled(index: Index, payload: bytes) -> None:
    told = codec.decode_page_settled(payload)
    page = index.pages.find(told.stream, told.page)
    if page is not None:
        index.pages.settle(told.queue_id, page, told.places, told.size_bytes)


def _page_purged(index: Index, payload: bytes) -> None:
    told = codec.decode_page_purged(payload)
    page = index.pages.find(told.stream, told.page)
    if page is not None:
        index.pages.purge(told.queue_id, page, told.kept_places, told.kept_bytes)


def _page_attempted(index: Index, payload: bytes) -> None:
    told = codec.decode_page_attempted(payload)
    page = index.pages.find(told.stream, told.page)
    if page is not None:
        index.pages.attempt(told.queue_id, page, told.place, told.attempts, told.due_ms)


def _page_places(index: Index, payload: bytes) -> None:
    queue_id, stream, number, first_place, count, size_bytes, bits = codec.decode_page_places(payload)
    page = index.pages.find(stream, number)
    if page is not None:
        index.pages.restore_settled(queue_id, page, Settled(PlaceSet(first_place, bits), count, size_bytes))


_PAGE_RECORDS: Final[dict[int, Callable[[Index, bytes], None]]] = {
    records.PAGE_OPENED: _page_opened,
    records.PAGE_GREW: _page_grew,
    records.PAGE_SETTLED: _page_settled,
    records.PAGE_PURGED: _page_purged,
    records.PAGE_ATTEMPTED: _page_attempted,
    records.PAGE_DROPPED: lambda index, payload: index.pages.drop(*codec.decode_page_dropped(payload)),
    records.PAGE_PLACES: _page_places,
}


def _apply_binding(replayed: Replayed, kind: int, payload: bytes, segment: Segment) -> None:
    index = replayed.index
    segment.has_bindings = True
    fields = codec.decode_fields(payload)
    if kind == records.ADDRESS:
        index.set_address(fields)
        if fields.get("deleted"):
            replayed.forget_duplicates(fields["name"])
    elif kind == records.QUEUE:
        index.set_queue(fields)
    elif kind == records.QUEUE_DELETED:
        index.delete_queue(fields["id"])
        replayed.deleted.add(fields["id"])
    elif kind == records.CURSOR:
        index.set_cursor(fields)
    elif kind == records.CONFIGURED:
        index.set_configured(fields)
    elif kind == records.DUPLICATE:
        replayed.see(fields["address"], fields["id"], again=fields.get("again", False))
    elif kind == records.DUPLICATES_CLEARED:
        replayed.forget_duplicates(fields["address"])
