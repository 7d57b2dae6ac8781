"""Turns what the core reports into records: numbers them, gathers them for the next batch, and updates the index."""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr

from artemis_py.message import LargeBody, Message
from artemis_py.paged_messages import Page, PagedMessage
from artemis_py.record_log import Actor, AuditLog, RecordLog
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.records import (
    ADDRESS,
    ATTEMPTED,
    BATCH,
    CONFIGURED,
    CURSOR,
    DUE,
    DUPLICATE,
    FLAG_RECALLED,
    GROUP,
    MESSAGE,
    ORIGIN,
    PAGE_ATTEMPTED,
    PAGE_DROPPED,
    PAGE_GREW,
    PAGE_OPENED,
    PAGE_PURGED,
    PAGE_SETTLED,
    QUEUE,
    QUEUE_DELETED,
    SETTLED,
    TRANSACTION,
    encode_record,
)
from artemis_py.storage.format.segment_index import Gathered
from artemis_py.storage.journal.bindings_copy import COPIED, BindingsCopy
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.settings import JournalSettings, JournalStart
from artemis_py.storage.pages import places_of


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordWriter(RecordLog):
    """Implements the core's view of storage. It does not know when anything becomes durable. ``segments`` are the
    journal's; the last one is written to. ``copy`` is the second copy of bindings.
    """

    def __init__(
        self, start: JournalStart, settings: JournalSettings, segments: list[Segment], copy: BindingsCopy
    ) -> None:
        self.now_ms = 0
        self.index = start.index
        self.message_id = start.index.message_id_max
        self.queue_id = start.index.queue_id_max
        self.audit = AuditLog()
        self.segments = segments
        self.next_lsn = start.next_lsn
        self.last_lsn = start.next_lsn - 1
        self.pending: list[bytes] = []
        """The records for the next batch, encoded."""
        self.gathered = Gathered()
        self._copy = copy
        self._duplicate_ids_kept = settings.duplicate_ids_kept
        self._origin = 0
        """The connection that a reader assumes to be the sender of the next message; 0: unknown."""
        self._grown: tuple[Page, bytes] | None = None
        """The last PAGE_GREW record. The next one of the same page replaces it."""
        self._group: list[bytes] | None = None
        self._group_depth = 0
        self._origin_outside = 0
        """The value of ``_origin`` before the group."""
        self._group_transactional = False

    # ---- records ---------------------------------------------------------------------------------

    def append(self, type_code: int, payload: bytes) -> int:
        """Add a record with the next lsn, and return the lsn."""
        record = self._number(type_code, payload)
        if self._group is not None:
            self._group.append(record)
        else:
            self.pending.append(record)
            self.gathered.is_non_transactional = True
        return self.last_lsn

    def _number(self, type_code: int, payload: bytes) -> bytes:
        lsn = self.next_lsn
        self.next_lsn = lsn + 1
        self.last_lsn = lsn
        return encode_record(type_code, lsn, payload)

    def append_fields(self, type_code: int, fields: dict[str, Any]) -> int:
        """Add a JSON record, which the segment's index may repeat."""
        lsn = self.append(type_code, codec.encode_fields(fields))
        self.gathered.told(type_code, lsn, fields)
        return lsn

    def _append_binding(self, type_code: int, fields: dict[str, Any]) -> int:
        self.segments[-1].has_bindings = True
        lsn = self.append_fields(type_code, fields)
        if type_code in COPIED:
            records = self.pending if self._group is None else self._group
            self._copy.note(records[-1])
        return lsn

    def sent_by(self, origin: int) -> None:
        """The following messages come from this connection."""
        if origin != self._origin:
            self.append(ORIGIN, codec.encode_origin(self.audit.session_number(origin)))
            self._origin = origin

    def take(self, batch: bytes) -> tuple[list[bytes], Gathered]:
        """Take everything gathered as a batch. ``batch`` is the payload of its BATCH record, which comes first."""
        records, gathered = [self._number(BATCH, batch), *self.pending], self.gathered
        self.pending = []
        self.gathered = Gathered()
        self._origin = 0
        return records, gathered

    # ---- what happens ----------------------------------------------------------------------------

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        if self.audit.is_enabled and message.origin != self._origin:
            self.sent_by(message.origin)
        kept = Kept(message, self.next_lsn, queue_ids)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        lsn = self.append(MESSAGE, codec.encode_message(kept))
        self.gathered.published(message.head.address, message.timestamp_ms, message.timestamp_ms)
        self.index.add(kept, self.segments[-1])
        return lsn

    def published_run(self, messages: list[Message], queue_id: int, due_ms: int) -> None:
        if due_ms or not messages or isinstance(messages[0].body, LargeBody):
            super().published_run(messages, queue_id, due_ms)
            return
        if self.audit.is_enabled and messages[0].origin != self._origin:  # a run comes from one connection
            self.sent_by(messages[0].origin)
        lsn = self.next_lsn
        queue_ids = [queue_id]  # one list for all: only messages on several queues ever change theirs
        published: list[Kept] = []
        for message in messages:
            published.append(Kept(message, lsn, queue_ids))
            message.lsn = lsn
            lsn += 1
        self.next_lsn = lsn
        self.last_lsn = lsn - 1
        if self._group is not None:
            self._group.extend(codec.encode_published(published))
        else:
            self.pending.extend(codec.encode_published(published))
            self.gathered.is_non_transactional = True
        first, last = messages[0], messages[-1]  # timestamps never decrease: a run is from one turn
        self.gathered.published(first.head.address, first.timestamp_ms, last.timestamp_ms, len(messages))
        self.index.add_run(published, self.segments[-1])

    def recalled(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        kept = Kept(message, message.lsn, queue_ids, FLAG_RECALLED)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        lsn = self.append(MESSAGE, codec.encode_message(kept))
        self.index.add(kept, self.segments[-1])
        return lsn

    def living(self, message_id: int) -> Message | None:
        kept = self.index.find(message_id)
        return None if kept is None else kept.message

    def has(self, queue_id: int, message_id: int) -> bool:
        kept = self.index.find(message_id)
        return kept is not None and queue_id in kept.queue_ids

    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        message_ids = [message.id for message in messages]
        number = 0 if consumer is None else consumer.named()
        payload = codec.encode_settled(queue_id, reason, message_ids, number)  # what may raise comes before the index
        self.index.settle_run(queue_id, message_ids)
        return self.append(SETTLED, payload)

    def attempted(
        self,
        queue_id: int,
        message: Message,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        number = 0 if consumer is None else consumer.named()
        payload = codec.encode_attempted(queue_id, message.id, attempts, due_ms, number, cause)
        self.index.attempt(queue_id, message.id, attempts, due_ms)
        return self.append(ATTEMPTED, payload)

    def fell_due(self, queue_id: int, messages: list[Message]) -> int:
        message_ids = [message.id for message in messages]
        self.index.put_at_head(self.next_lsn, queue_id, message_ids)
        return self.append(DUE, codec.encode_ids(queue_id, message_ids))

    def address_changed(self, fields: dict[str, Any]) -> int:
        self.index.set_address(fields)
        return self._append_binding(ADDRESS, fields)

    def queue_changed(self, fields: dict[str, Any]) -> int:
        self.index.set_queue(fields)
        return self._append_binding(QUEUE, fields)

    def queue_deleted(self, queue_id: int) -> int:
        fields = self.index.queues.get(queue_id, {})
        self.index.delete_queue(queue_id)
        gone = {"id": queue_id, "name": fields.get("name"), "address": fields.get("address")}
        return self._append_binding(QUEUE_DELETED, gone)

    def duplicate_id(self, address: str, duplicate_id: str) -> int:
        self.index.add_duplicate_id(address, duplicate_id, self._duplicate_ids_kept)
        return self._append_binding(DUPLICATE, {"address": address, "id": duplicate_id})

    def configured(self, fields: dict[str, Any]) -> int:
        self.index.set_configured(fields)
        return self._append_binding(CONFIGURED, fields)

    def cursor_changed(self, fields: dict[str, Any]) -> int:
        """A cursor was moved or (``deleted``) dropped (``retention/cursors.py``). Returns the record's lsn."""
        self.index.set_cursor(fields)
        return self._append_binding(CURSOR, fields)

    # ---- in pages --------------------------------------------------------------------------------

    def page_opened(self, page: Page, address: str) -> int:
        self.index.pages.open(page, address)
        return self._append_binding(PAGE_OPENED, codec.page_opened_fields(page, address))

    def paged(self, page: Page) -> int:
        page.kept_count, page.kept_bytes = page.count, page.size_bytes
        records = self.pending if self._group is None else self._group
        if self._grown is not None and records and self._grown[0] is page and records[-1] is self._grown[1]:
            records.pop()
            self.gathered.records -= 1
        self.segments[-1].has_bindings = True
        self.index.pages.note_queues(page)
        payload = codec.encode_page_grew(page, self.index.pages.address_of(page))
        lsn = self.append(PAGE_GREW, payload)
        self._grown = page, records[-1]
        return lsn

    def page_settled(
        self, queue_id: int, messages: list[PagedMessage], reason: str, consumer: Actor | None = None
    ) -> int:
        page = messages[0].page
        size_bytes = sum([message.size_bytes for message in messages])
        number = 0 if consumer is None else consumer.named()
        payload = codec.encode_page_settled(queue_id, messages, reason, number)
        self.index.pages.settle(queue_id, page, places_of(messages), size_bytes)
        self.segments[-1].has_bindings = True
        return self.append(PAGE_SETTLED, payload)

    def page_purged(self, queue_id: int, page: Page, kept: list[PagedMessage], reason: str) -> int:
        pages = self.index.pages
        kept_bytes = sum(message.size_bytes for message in kept)
        left = pages.share_left(queue_id, page)
        places = tuple(places_of(kept))
        pages.purge(queue_id, page, places, kept_bytes)
        self.segments[-1].has_bindings = True
        count, size_bytes = left.count - len(kept), left.size_bytes - kept_bytes
        purged = codec.PagePurged(queue_id, page.stream, page.number, places, kept_bytes, reason, count, size_bytes)
        return self.append(PAGE_PURGED, codec.encode_page_purged(purged))

    def page_attempted(
        self,
        queue_id: int,
        message: PagedMessage,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        page, place = message.page, message.place
        number = 0 if consumer is None else consumer.named()
        told = codec.PageAttempted(
            queue_id, page.stream, page.number, place, message.id, attempts, due_ms, number, cause
        )
        payload = codec.encode_page_attempted(told)
        self.index.pages.attempt(queue_id, page, place, attempts, due_ms)
        self.segments[-1].has_bindings = True
        return self.append(PAGE_ATTEMPTED, payload)

    def page_dropped(self, page: Page) -> int:
        self.index.pages.drop(page.stream, page.number)
        return self.append(PAGE_DROPPED, codec.encode_page_dropped(page.stream, page.number))

    # ---- groups ----------------------------------------------------------------------------------

    def begin_group(self, *, transactional: bool = False) -> None:
        self._group_depth += 1
        self._group_transactional = self._group_transactional or transactional
        if self._group is None:
            self._group = []
            self._origin_outside, self._origin = self._origin, 0

    def close_groups(self) -> None:
        if self._group is not None:
            self._group_depth = 1
            self.end_group()

    def end_group(self) -> int:
        self._group_depth -= 1
        if self._group_depth:
            return 0
        records, self._group = self._group, None
        transactional, self._group_transactional = self._group_transactional, False
        if not records:
            self._origin = self._origin_outside
            return 0
        self._origin = 0
        if transactional and self.audit.is_enabled:  # otherwise readers would take every group for a transaction
            records.append(self._number(TRANSACTION, b""))
        is_bare = len(records) == 1 and not self._origin_outside  # else readers would assume that sender for the next
        self.pending.append(records[0] if is_bare else self._number(GROUP, b"".join(records)))
        if transactional:
            self.gathered.is_transactional = True
        else:
            self.gathered.is_non_transactional = True
        return self.last_lsn
