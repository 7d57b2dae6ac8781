"""The journal while the broker runs: records gather during a turn and become durable together.

What becomes of its files is told in ``segments.py`` and ``compaction.py``. It does not read them: see ``recovery.py``.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from mypy_extensions import mypyc_attr

from artemis_py.message import LargeBody, Message
from artemis_py.paged import Page, PagedMessage
from artemis_py.records import Actor
from artemis_py.storage import codec, page_codec
from artemis_py.storage.actors import ActorLog
from artemis_py.storage.bindings_copy import COPIED, BindingsCopy
from artemis_py.storage.codec import Kept
from artemis_py.storage.committer import Commit, Committer, Write
from artemis_py.storage.compaction import Compaction
from artemis_py.storage.disk import Disk, DiskError
from artemis_py.storage.journal_settings import JournalSettings
from artemis_py.storage.journal_start import JournalStart, SegmentCare
from artemis_py.storage.living import binding_records, page_records
from artemis_py.storage.page_index import places_of
from artemis_py.storage.pages import PageFiles
from artemis_py.storage.segment_index import Gathered
from artemis_py.storage.segments import Segments

_INLINE_BYTES_MAX: Final = 65536
_CHORES_EVERY_MS: Final = 10_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal(ActorLog):
    """Implements the core's view of storage on segments of a disk."""

    def __init__(
        self,
        disk: Disk,
        committer: Committer,
        settings: JournalSettings,
        *,
        start: JournalStart,
        care: SegmentCare,
        pages: PageFiles | None = None,
    ) -> None:
        index, next_lsn = start.index, start.next_lsn
        super().__init__(settings.broker_name, next_lsn)
        self.durable_lsn = self.last_lsn = next_lsn - 1
        self.index = index
        self.files = Segments(disk, committer, settings, start, care)
        self.segments = self.files.all
        self.compaction = Compaction(disk, settings, index, self.files)
        self.batches = start.batch_number
        self.syncs = 0
        self.damaged_places = start.damaged_places
        self.lost_records = start.lost_records
        """What was wrong with the files at the start, and how many records it cost at most."""
        self.now_ms = 0
        self.message_id = index.message_id_max
        self.queue_id = index.queue_id_max
        self.inline = False
        """May the next batch be made durable before ``seal`` returns? Set by the turn when nobody else waits."""
        self.was_inline = False
        self._disk = disk
        self._committer = committer
        self._settings = settings
        self._chores = care.chores
        self._gathered = Gathered()
        self._pages = pages
        self._grown: tuple[Page, bytes] | None = None
        """The PAGE_GREW record written last, which the next one of the same page replaces."""
        self._chores_due_ms = 0
        self.retains = settings.retains
        self._next_lsn = next_lsn
        self._pending: list[bytes] = []
        self._group: list[bytes] | None = None
        self._group_depth = 0
        self._origin_outside = 0
        """``_origin`` before the group."""
        self._group_transactional = False
        self._transactional = self._non_transactional = False
        self._replaces = False
        """Was something gathered that stands in the place of what a file has that will go?"""
        self._syncing = False
        """Does the batch under way end in a sync?"""
        self._copy = BindingsCopy(disk, committer, index)
        if index.queues or index.addresses or index.cursors:
            self._copy.hand_over(self.last_lsn)
        for stream, number in index.pages.orphans:
            self._append(codec.PAGE_DROPPED, page_codec.encode_page_dropped(stream, number))
        index.pages.orphans.clear()

    # ---- records ---------------------------------------------------------------------------------

    def _append(self, type_code: int, payload: bytes) -> int:
        record = self._number(type_code, payload)
        if self._group is not None:
            self._group.append(record)
        else:
            self._pending.append(record)
            self._non_transactional = True
        return self.last_lsn

    def _number(self, type_code: int, payload: bytes) -> bytes:
        """A record with the next lsn."""
        lsn = self._next_lsn
        self._next_lsn = lsn + 1
        self.last_lsn = lsn
        return codec.encode_record(type_code, lsn, payload)

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        if self.retains and message.origin != self._origin:
            self._tell_origin(message.origin)
        kept = Kept(message, self._next_lsn, queue_ids)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        lsn = self._append(codec.MESSAGE, codec.encode_message(kept))
        self._gathered.published(message.head.address, message.timestamp_ms, message.timestamp_ms)
        self.index.add(kept, self.segments[-1])
        return lsn

    def published_run(self, messages: list[Message], queue_id: int, due_ms: int) -> None:
        if due_ms or not messages or messages[0].body.__class__ is LargeBody:
            super().published_run(messages, queue_id, due_ms)
            return
        if self.retains and messages[0].origin != self._origin:  # a run comes from one connection
            self._tell_origin(messages[0].origin)
        lsn = self._next_lsn
        queue_ids = [queue_id]  # one list for all: only a message on several queues ever loses one of them
        published: list[Kept] = []
        for message in messages:
            published.append(Kept(message, lsn, queue_ids))
            message.lsn = lsn
            lsn += 1
        self._next_lsn = lsn
        self.last_lsn = lsn - 1
        if self._group is not None:
            self._group.extend(codec.encode_published(published))
        else:
            self._pending.extend(codec.encode_published(published))
            self._non_transactional = True
        first, last = messages[0], messages[-1]  # their timestamps do not go down: a run is of one turn
        self._gathered.published(first.head.address, first.timestamp_ms, last.timestamp_ms, len(messages))
        self.index.add_run(published, self.segments[-1])

    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        message_ids = [message.id for message in messages]
        self.index.settle_run(queue_id, message_ids)
        number = 0 if consumer is None else self._named(consumer)
        return self._append(codec.SETTLED, codec.encode_settled(queue_id, reason, message_ids, number))

    def attempted(
        self,
        queue_id: int,
        message: Message,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        self.index.attempt(queue_id, message.id, attempts, due_ms)
        number = 0 if consumer is None else self._named(consumer)
        payload = codec.encode_attempted(queue_id, message.id, attempts, due_ms, number, cause)
        return self._append(codec.ATTEMPTED, payload)

    def fell_due(self, queue_id: int, messages: list[Message]) -> int:
        message_ids = [message.id for message in messages]
        self.index.fall_due(self._next_lsn, queue_id, message_ids)
        return self._append(codec.DUE, codec.encode_ids(queue_id, message_ids))

    def address_changed(self, fields: dict[str, Any]) -> int:
        self.index.set_address(fields)
        return self._append_binding(codec.ADDRESS, fields)

    def queue_changed(self, fields: dict[str, Any]) -> int:
        self.index.set_queue(fields)
        return self._append_binding(codec.QUEUE, fields)

    def queue_deleted(self, queue_id: int) -> int:
        fields = self.index.queues.get(queue_id, {})
        self.index.delete_queue(queue_id)
        gone = {"id": queue_id, "name": fields.get("name"), "address": fields.get("address")}
        return self._append_binding(codec.QUEUE_DELETED, gone)

    def duplicate_id(self, address: str, duplicate_id: str) -> int:
        self.index.add_duplicate_id(address, duplicate_id, self._settings.duplicate_ids_kept)
        return self._append_binding(codec.DUPLICATE, {"address": address, "id": duplicate_id})

    def cursor_changed(self, fields: dict[str, Any]) -> int:
        """A cursor in the log was moved or (``deleted``) dropped; see ``cursors.py``. Returns the record's lsn."""
        self.index.set_cursor(fields)
        return self._append_binding(codec.CURSOR, fields)

    # ---- records about pages ---------------------------------------------------------------------

    def published_in_page(self, message: Message, queue_ids: list[int], due_ms: int, place: int) -> int:
        if message.origin != self._origin:
            self._tell_origin(message.origin)
        kept = Kept(message, self._next_lsn, queue_ids, codec.FLAG_PAGED)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        self._gathered.published(message.head.address, message.timestamp_ms, message.timestamp_ms)
        return self._append(codec.MESSAGE, codec.encode_message(kept, place))

    def page_opened(self, page: Page, address: str) -> int:
        self.index.pages.open(page, address)
        return self._append_binding(codec.PAGE_OPENED, page_codec.opened_fields(page, address))

    def paged(self, page: Page) -> int:
        page.kept_count, page.kept_bytes = page.count, page.size_bytes
        records = self._pending if self._group is None else self._group
        if self._grown is not None and records and self._grown[0] is page and records[-1] is self._grown[1]:
            records.pop()
            self._gathered.records -= 1
        self.segments[-1].has_bindings = True
        self.index.pages.note_queues(page)
        payload = page_codec.encode_grew(page, self.index.pages.address_of(page))
        lsn = self._append(codec.PAGE_GREW, payload)
        self._grown = page, records[-1]
        return lsn

    def page_settled(
        self, queue_id: int, messages: list[PagedMessage], reason: str, consumer: Actor | None = None
    ) -> int:
        page = messages[0].page
        size_bytes = sum([message.size_bytes for message in messages])
        self.index.pages.settle(queue_id, page, places_of(messages), size_bytes)
        self.segments[-1].has_bindings = True
        number = 0 if consumer is None else self._named(consumer)
        payload = page_codec.encode_page_settled(queue_id, messages, reason, number)
        return self._append(codec.PAGE_SETTLED, payload)

    def page_purged(self, queue_id: int, page: Page, kept: list[PagedMessage], reason: str) -> int:
        pages = self.index.pages
        kept_bytes = sum(message.size_bytes for message in kept)
        left = pages.share_left(queue_id, page)
        places = tuple(places_of(kept))
        pages.purge(queue_id, page, places, kept_bytes)
        self.segments[-1].has_bindings = True
        count, size_bytes = left.count - len(kept), left.size_bytes - kept_bytes
        purged = page_codec.PagePurged(
            queue_id, page.stream, page.number, places, kept_bytes, reason, count, size_bytes
        )
        return self._append(codec.PAGE_PURGED, page_codec.encode_page_purged(purged))

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
        self.index.pages.attempt(queue_id, page, place, attempts, due_ms)
        self.segments[-1].has_bindings = True
        number = 0 if consumer is None else self._named(consumer)
        told = page_codec.PageAttempted(
            queue_id, page.stream, page.number, place, message.id, attempts, due_ms, number, cause
        )
        return self._append(codec.PAGE_ATTEMPTED, page_codec.encode_page_attempted(told))

    def page_dropped(self, page: Page) -> int:
        self.index.pages.drop(page.stream, page.number)
        return self._append(codec.PAGE_DROPPED, page_codec.encode_page_dropped(page.stream, page.number))

    def _append_binding(self, type_code: int, fields: dict[str, Any]) -> int:
        self.segments[-1].has_bindings = True
        lsn = self._append_fields(type_code, fields)
        if type_code in COPIED:
            records = self._pending if self._group is None else self._group
            self._copy.note(records[-1])
        return lsn

    def _append_fields(self, type_code: int, fields: dict[str, Any]) -> int:
        lsn = self._append(type_code, codec.encode_fields(fields))
        self._gathered.told(type_code, lsn, fields)
        return lsn

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
        if transactional and self.retains:  # or a reader would take every group for one
            records.append(self._number(codec.TRANSACTION, b""))
        is_bare = len(records) == 1 and not self._origin_outside  # or a reader would take a message for one from there
        self._pending.append(records[0] if is_bare else self._number(codec.GROUP, b"".join(records)))
        if transactional:
            self._transactional = True
        else:
            self._non_transactional = True
        return self.last_lsn

    # ---- becoming durable ------------------------------------------------------------------------

    @property
    def failure(self) -> DiskError | None:
        """Why nothing more becomes durable."""
        return self._committer.failure

    @property
    def has_pending(self) -> bool:
        """Is something gathered or on its way that is not durable yet?"""
        return bool(self._pending) or self._committer.busy or (self._pages is not None and self._pages.has_unwritten)

    def counts(self) -> dict[str, int]:
        return {
            "records": self.last_lsn,
            "batches": self.batches,
            "syncs": self.syncs,
            "files": len(self.segments),
            "bytes": self.files.written_bytes,
            "live_bytes": self.files.live_bytes,
            "damaged_places": self.damaged_places,
            "lost_records": self.lost_records,
        }

    def poll(self) -> None:
        """Take note of what has become durable."""
        done = self._committer.finished()
        if done is not None:
            self.durable_lsn = done.lsn
            self.syncs += self._syncing
            self.files.became_durable(synced=self._syncing)
            self.files.retire(self.durable_lsn)
            if self._pages is not None:
                self._pages.written()
                self._pages.delete_doomed(self.durable_lsn, self._committer.later)

    @property
    def wants_depths(self) -> bool:
        is_told = self._depths_segment == self.segments[-1].number
        return self.retains and not is_told and bool(self._pending)

    def seal(self) -> None:
        self.was_inline = False
        if self._leaving:
            self._forget_sessions()
        if self._committer.busy or self._committer.failure is not None:
            return
        if self._chores is not None and not 0 < self._chores_due_ms - self.now_ms <= _CHORES_EVERY_MS:
            self._chores_due_ms = self.now_ms + _CHORES_EVERY_MS
            self._committer.later(self._chores)
            self._committer.later(self.files.departure.retry)
        self.write_again(self.compaction.moved())
        self._let_empty_go()
        pages = self._pages
        writes: list[Write] = []
        if pages is not None:
            writes = pages.take_writes()
            pages.stamp_dropped(self._next_lsn if self._pending else self.last_lsn)
            pages.now_ms = self.now_ms
        if self._pending:
            commit = self._make_commit(writes)
        elif writes:
            commit = Commit(writes, self.durable_lsn)
            self._syncing = False
        else:
            self.files.retire(self.durable_lsn)
            if pages is not None:
                pages.delete_doomed(self.durable_lsn, self._committer.later)
            return
        if self.inline and commit.size_bytes <= _INLINE_BYTES_MAX:
            self._committer.run_now(commit)
            self.was_inline = True
            self.poll()
        else:
            self._committer.submit(commit)
        self._copy.hand_over(self.last_lsn)
        self.files.provide_spares()

    def _make_commit(self, writes: list[Write]) -> Commit:
        """A batch of everything gathered; ``writes`` come first: they are what its records speak of."""
        segment = self.segments[-1]
        self.batches += 1
        batch = codec.Batch(self.batches, self.now_ms, self.message_id, self.queue_id)
        parts = [codec.encode_record(codec.BATCH, self._next_lsn, codec.encode_batch(batch))]
        self.last_lsn = self._next_lsn
        self._next_lsn += 1
        file = self.files.new_file(self.now_ms)
        data = b"".join([file.header, *parts, *self._pending])
        settings = self._settings
        sync = (self._transactional and settings.sync_transactional) or (
            self._non_transactional and settings.sync_non_transactional
        )
        if not sync and (self._replaces or self.files.fills(len(data))):
            sync, self.inline = True, False  # what was synced must not hang on what was not; and it may take long
        self._syncing = sync
        write = Write(self._disk, segment.name, segment.written_bytes, data, sync, file.create_bytes, file.spare)
        gathered, self._gathered = self._gathered, Gathered()
        gathered.place(segment.written_bytes, len(data), self.last_lsn, self.now_ms, file.is_needed)
        self.files.wrote(len(data), self.last_lsn, gathered)
        self._pending = []
        self._origin = 0
        self._transactional = self._non_transactional = self._replaces = False
        return Commit([*writes, write], self.last_lsn)

    def finish(self) -> None:
        """Nothing more will be written."""
        if not self.files.is_under_way and self._committer.failure is None:
            self.files.finish(is_all_written=not self._pending)

    # ---- segments that go ------------------------------------------------------------------------

    def _let_empty_go(self) -> None:
        """Oldest segments in which nothing lives may go once everything written so far is durable."""
        while (segment := self.files.oldest_empty()) is not None:
            if segment.has_bindings:
                if not self.compaction.may_move_bindings:
                    return
                self.write_bindings()
            self.files.let_oldest_go(self._next_lsn if self._pending else self.last_lsn)

    def write_bindings(self) -> None:
        """Everything but messages, once more. What earlier files say of it counts no longer."""
        for segment in self.segments:
            segment.has_bindings = False
        self.segments[-1].has_bindings = True
        before = len(self._pending)
        for type_code, fields in binding_records(self.index, self._settings.duplicate_ids_kept):
            self._append_fields(type_code, fields)
        for type_code, payload in page_records(self.index):
            self._append(type_code, payload)
        self.compaction.bindings_bytes = sum(map(len, islice(self._pending, before, None)))
        self._replaces = True

    def write_again(self, messages: list[Kept]) -> None:
        """Messages that live, each with what was known of it; an earlier copy counts no longer."""
        current = self.segments[-1]
        for kept in messages:
            self._append(codec.MESSAGE, codec.encode_message(kept))
            self.index.add(kept, current)
            self._replaces = True
