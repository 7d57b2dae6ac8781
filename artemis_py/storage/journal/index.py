"""The broker's durable state, which the journal's records add up to.

A running journal and recovery use the same class, so both agree on which messages live, and in which segment. It also
says when a segment may be removed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from artemis_py.paged_messages import Page, PlaceSet, SettledPlaces
from artemis_py.record_log import RecoveredState, Survivor
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.records import FLAG_PAGED, FLAG_RECALLED, RECORD_HEADER_BYTES, Record, inner_records
from artemis_py.storage.format.segment_index import SegmentIndex
from artemis_py.storage.pages import PageIndex

_NO_FIELDS: Final[dict[str, Any]] = {}
_OVERHEAD_BYTES: Final = RECORD_HEADER_BYTES + 64


class Segment:
    """One journal file: its number, its first lsn, its written length, and its living messages."""

    __slots__ = (
        "first_lsn", "has_bindings", "index", "last_lsn", "last_ms", "live", "live_bytes", "name", "number",
        "written_bytes",
    )  # fmt: skip

    def __init__(self, number: int, name: str, first_lsn: int) -> None:
        self.number = number
        self.name = name
        self.first_lsn = first_lsn
        self.last_ms = 0
        """The latest time of a batch in it, durable or not, in epoch milliseconds; 0 if it has none."""
        self.last_lsn = 0
        """The lsn of the last record so far, ignoring BATCH records; while there is none, that of the previous file."""
        self.written_bytes = 0
        self.has_bindings = False
        """Does it contain records about addresses, queues, duplicate ids or cursors that may still be valid?"""
        self.live: dict[int, Kept] = {}
        self.live_bytes = 0
        self.index: SegmentIndex | None = None
        """The index of its durable part, for readers; None if it is in a file next to the segment, or must be made from
        it.
        """


class Index:
    """Messages that a queue still needs, and the bindings."""

    def __init__(self) -> None:
        self.addresses: dict[str, dict[str, Any]] = {}
        self.queues: dict[int, dict[str, Any]] = {}
        self.duplicate_ids: dict[str, list[str]] = {}
        self.cursors: dict[str, dict[str, Any]] = {}
        self.configured: dict[tuple[str, str], dict[str, Any]] = {}
        """By kind and name."""
        self.home: dict[int, Segment] = {}
        """The segment of each living message."""
        self.pages = PageIndex()
        self.message_id_max = 0
        self.queue_id_max = 0

    # ---- messages --------------------------------------------------------------------------------

    def add(self, kept: Kept, segment: Segment) -> None:
        """A message was written to ``segment``, which replaces an earlier copy (compaction), unless it only adds queues
        (``FLAG_RECALLED``). A message that no queue needs, or that is in a page (written only for retention), does not
        live.
        """
        if not kept.queue_ids or kept.flags & FLAG_PAGED:
            return
        message_id = kept.message.id
        former = self.home.get(message_id)
        if kept.flags & FLAG_RECALLED:
            self._note_recalled(kept)
            if former is not None:  # as long as it lives there, its segment and all later ones stay
                _add_queues(former.live[message_id], kept)
                return
            kept.flags &= ~FLAG_RECALLED  # a copy by compaction is one like any other
        if former is not None:
            _remove(message_id, former)
        elif message_id > self.message_id_max:
            self.message_id_max = message_id
        self.home[message_id] = segment
        segment.live[message_id] = kept
        segment.live_bytes += kept.message.inline_bytes + _OVERHEAD_BYTES

    def _note_recalled(self, kept: Kept) -> None:
        """Queues that are filled from the log have got as far as this message. That lasts: the record stands behind
        those of the queues, and before these are removed they are written again.
        """
        for queue_id in kept.queue_ids:
            fields = self.queues.get(queue_id, _NO_FIELDS)
            recovery = fields.get("recovery", _NO_FIELDS)
            if kept.lsn > recovery.get("after", kept.lsn):  # others may have the fields as they were
                self.queues[queue_id] = {**fields, "recovery": {**recovery, "after": kept.lsn}}

    def add_run(self, published: list[Kept], segment: Segment) -> None:
        """New messages were written to ``segment``, in the order of their ids; each goes to a queue."""
        home, live = self.home, segment.live
        live_bytes = message_id = 0
        for kept in published:
            message = kept.message
            message_id = message.id
            home[message_id] = segment
            live[message_id] = kept
            live_bytes += message.head.size_bytes + len(message.body) + _OVERHEAD_BYTES
        segment.live_bytes += live_bytes
        self.message_id_max = max(self.message_id_max, message_id)

    def find(self, message_id: int) -> Kept | None:
        """A living message by id, or None."""
        segment = self.home.get(message_id)
        return None if segment is None else segment.live[message_id]

    def settle(self, queue_id: int, message_id: int) -> None:
        """A queue is done with a message; the message dies with its last queue. Unknown messages are ignored."""
        segment = self.home.get(message_id)
        if segment is None:
            return
        queue_ids = segment.live[message_id].queue_ids
        place = _place_of(queue_id, queue_ids)
        if place >= 0:
            if len(queue_ids) > 1:
                del queue_ids[place]
                return
            del self.home[message_id]
            _remove(message_id, segment)

    def settle_run(self, queue_id: int, message_ids: Iterable[int]) -> None:
        """A queue is done with several messages."""
        home = self.home
        for message_id in message_ids:
            segment = home.get(message_id)
            if segment is None:
                continue
            kept = segment.live[message_id]
            queue_ids = kept.queue_ids
            if len(queue_ids) > 1:
                self.settle(queue_id, message_id)
            elif queue_ids[0] == queue_id:
                del home[message_id]
                del segment.live[message_id]
                segment.live_bytes -= kept.message.inline_bytes + _OVERHEAD_BYTES

    def attempt(self, queue_id: int, message_id: int, attempts: int, due_ms: int) -> None:
        """A delivery failed; ``due_ms`` is when the next one may follow."""
        kept = self.find(message_id)
        if kept is not None:
            detail = kept.detail(queue_id)
            detail.attempts = attempts
            detail.due_ms = due_ms

    def put_at_head(self, lsn: int, queue_id: int, message_ids: Iterable[int]) -> None:
        """Scheduled messages took places at the head of the queue, in this order."""
        for place, message_id in enumerate(message_ids):
            kept = self.find(message_id)
            if kept is not None:
                detail = kept.detail(queue_id)
                detail.due_ms = 0
                detail.order = -(lsn << 20) + place

    def orphans(self) -> dict[int, list[int]]:
        """Messages of queues that do not exist: message ids by queue, 0 for one in a page."""
        queues = self.queues
        found: dict[int, list[int]] = {}
        for message_id, segment in self.home.items():
            for queue_id in segment.live[message_id].queue_ids:
                if queue_id not in queues:
                    found.setdefault(queue_id, []).append(message_id)
        for page in self.pages.pages():
            for queue_id in page.durable:
                left = 0 if queue_id in queues else self.pages.left_of(queue_id, page)
                if left > 0:
                    found.setdefault(queue_id, []).extend([0] * left)
        return found

    def drop_orphans(self) -> None:
        """Settle messages of queues that do not exist, and drop empty pages."""
        for queue_id, message_ids in self.orphans().items():
            for message_id in message_ids:
                self.settle(queue_id, message_id)
        for page in self.pages.pages():
            for queue_id in list(page.durable):
                if queue_id not in self.queues:
                    self.pages.delete_queue(queue_id)
        self.pages.drop_orphans()

    def recovered_state(self) -> RecoveredState:
        """What the broker recovers at a start: each queue's messages in their delivery order."""
        keyed: dict[int, list[tuple[int, Survivor]]] = {}
        for message_id, segment in self.home.items():
            kept = segment.live[message_id]
            kept.message.lsn = kept.lsn
            for queue_id in kept.queue_ids:
                detail = None if kept.details is None else kept.details.get(queue_id)
                if detail is None:
                    keyed.setdefault(queue_id, []).append((kept.lsn, Survivor(kept.message)))
                else:
                    survivor = Survivor(kept.message, detail.attempts, detail.due_ms)
                    keyed.setdefault(queue_id, []).append((detail.order or kept.lsn, survivor))
        return RecoveredState(
            {queue_id: [one[1] for one in sorted(found, key=itemgetter(0))] for queue_id, found in keyed.items()},
            list(self.queues.values()),
            list(self.addresses.values()),
            {address: list(seen) for address, seen in self.duplicate_ids.items()},
            self.pages.recovered_state(),
            self.message_id_max,
            self.queue_id_max,
            configured=list(self.configured.values()),
        )

    # ---- bindings --------------------------------------------------------------------------------

    def set_address(self, fields: dict[str, Any]) -> None:
        """An address was created, changed or (``deleted``) removed."""
        if fields.get("deleted"):
            self.addresses.pop(fields["name"], None)
            self.duplicate_ids.pop(fields["name"], None)
        else:
            self.addresses[fields["name"]] = fields

    def set_queue(self, fields: dict[str, Any]) -> None:
        """A queue was created or changed."""
        self.queues[fields["id"]] = fields
        self.queue_id_max = max(self.queue_id_max, fields["id"])

    def delete_queue(self, queue_id: int) -> None:
        """A queue was removed; its messages are settled after that, and no restart finds them."""
        self.queues.pop(queue_id, None)
        if self.pages:
            self.pages.delete_queue(queue_id)

    def set_cursor(self, fields: dict[str, Any]) -> None:
        """A cursor was moved or (``deleted``) dropped."""
        if fields.get("deleted"):
            self.cursors.pop(fields["name"], None)
        else:
            self.cursors[fields["name"]] = fields

    def set_configured(self, fields: dict[str, Any]) -> None:
        """An operator configured something besides addresses and queues, or (``deleted``) undid it."""
        key = fields["kind"], fields["name"]
        if fields.get("deleted"):
            self.configured.pop(key, None)
        else:
            self.configured[key] = fields

    def add_duplicate_id(self, address: str, duplicate_id: str, keep: int) -> None:
        """An address received a duplicate id; beyond twice ``keep`` the oldest are forgotten."""
        seen = self.duplicate_ids.setdefault(address, [])
        seen.append(duplicate_id)
        if len(seen) > 2 * keep:
            del seen[: len(seen) - keep]


def _remove(message_id: int, segment: Segment) -> None:
    kept = segment.live.pop(message_id)
    segment.live_bytes -= kept.message.inline_bytes + _OVERHEAD_BYTES


def _add_queues(known: Kept, more: Kept) -> None:
    """A living message is on more queues. A run shares its list of one queue, so a new list is made."""
    new = [queue_id for queue_id in more.queue_ids if _place_of(queue_id, known.queue_ids) < 0]
    known.queue_ids = [*known.queue_ids, *new]
    for queue_id in new:
        if known.details is not None:
            known.details.pop(queue_id, None)  # what is left of a former stay there
        state = None if more.details is None else more.details.get(queue_id)
        if state is not None:
            known.detail(queue_id).due_ms = state.due_ms


def _place_of(queue_id: int, queue_ids: list[int]) -> int:
    """The position of a number in a list, or -1. A message's queues are mostly in ascending order; then a search among
    a hundred thousand takes no longer than among ten.
    """
    place = bisect_left(queue_ids, queue_id)
    if place < len(queue_ids) and queue_ids[place] == queue_id:
        return place
    return queue_ids.index(queue_id) if queue_id in queue_ids else -1


# ---- replay ----------------------------------------------------------------------------------------------------------
#
# Applies records that were read: the one place where they change the index.


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
        index.put_at_head(record.lsn, queue_id, message_ids)
    elif kind == records.GROUP:
        for inner in inner_records(payload):
            apply(replayed, inner, segment)
    elif kind == records.BATCH:
        batch = codec.decode_batch(payload)
        replayed.batch_number = max(replayed.batch_number, batch.number)
        segment.last_ms = max(segment.last_ms, batch.now_ms)
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
        index.pages.restore_settled(queue_id, page, SettledPlaces(PlaceSet(first_place, bits), count, size_bytes))


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
