"""Records whose operations are noted as they are asked for, for the projection to repeat."""

from __future__ import annotations

import copy
from typing import Any

from artemis_py.message import Message
from artemis_py.paged_messages import Page, PagedMessage
from artemis_py.record_log import Actor
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.journal.audit import AuditTrail
from artemis_py.storage.journal.record_writer import RecordWriter
from tests.kit.crash.paging import WitnessedPages
from tests.kit.crash.projection import Operation, identity


class WitnessedStory(AuditTrail):
    """The story of such records: what it tells of messages in pages is noted with them."""

    witness: WitnessedRecords

    def published_in_page(self, message: Message, queue_ids: list[int], due_ms: int, place: int) -> int:
        lsn = super().published_in_page(message, queue_ids, due_ms, place)
        self.witness.note_in_page(lsn, message, due_ms)
        return lsn


class WitnessedRecords(RecordWriter):
    """The records themselves; ``operations`` has (lsn, operation) of everything since the journal was opened."""

    operations: list[tuple[int, Operation]]
    _inner: list[Operation] | None
    _depth: int
    _witnessed: WitnessedPages
    _disk: Disk

    def watch(self, pages: WitnessedPages, disk: Disk) -> None:
        """Begin to note; before the first operation."""
        self._witnessed = pages
        self._disk = disk
        self.operations = []
        self._inner = None
        self._depth = 0

    def note(self, lsn: int, *operation: Any) -> int:
        """Note an operation that has been written down."""
        if self._inner is not None:
            self._inner.append(operation)
        else:
            self.operations.append((lsn, operation))
        return lsn

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        targets = list(queue_ids)
        return self.note(
            super().published(message, queue_ids, due_ms), "published", identity(message, self._disk), targets, due_ms
        )

    def published_run(self, messages: list[Message], queue_id: int, due_ms: int) -> None:
        noted = len(self.operations if self._inner is None else self._inner)
        super().published_run(messages, queue_id, due_ms)
        if noted != len(self.operations if self._inner is None else self._inner):
            return  # it called ``published`` for each, which noted them
        for message in messages:
            self.note(message.lsn, "published", identity(message, self._disk), [queue_id], due_ms)

    def recalled(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        known = identity(message, self._disk)
        lsn = super().recalled(message, queue_ids, due_ms)
        return self.note(lsn, "recalled", known, list(queue_ids), due_ms, message.lsn)

    def cursor_changed(self, fields: dict[str, Any]) -> int:
        return self.note(super().cursor_changed(fields), "cursor_changed", copy.deepcopy(fields))

    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        message_ids = [message.id for message in messages]
        lsn = super().settled(queue_id, messages, reason, consumer)
        return self.note(lsn, "settled", queue_id, message_ids, reason)

    def attempted(
        self,
        queue_id: int,
        message: Message,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        lsn = super().attempted(queue_id, message, attempts, due_ms, consumer, cause)
        return self.note(lsn, "attempted", queue_id, message.id, attempts, due_ms)

    def fell_due(self, queue_id: int, messages: list[Message]) -> int:
        message_ids = [message.id for message in messages]
        return self.note(super().fell_due(queue_id, messages), "fell_due", queue_id, message_ids)

    def note_in_page(self, lsn: int, message: Message, due_ms: int) -> None:
        """A message was told that is in a page; for whom, ``paged`` tells."""
        self.note(lsn, "published", identity(message, self._disk), [], due_ms)

    def paged(self, page: Page) -> int:
        lsn = super().paged(page)
        for one, queue_ids, due_ms in self._witnessed.fresh.pop((page.stream, page.number), []):
            self.note(lsn, "published", one, [number for number in queue_ids if number in page.durable], due_ms)
        return lsn

    def page_settled(
        self, queue_id: int, messages: list[PagedMessage], reason: str, consumer: Actor | None = None
    ) -> int:
        message_ids = [message.id for message in messages]
        lsn = super().page_settled(queue_id, messages, reason, consumer)
        return self.note(lsn, "settled", queue_id, message_ids, reason)

    def page_purged(self, queue_id: int, page: Page, kept: list[PagedMessage], reason: str) -> int:
        kept_ids = {message.id for message in kept}
        gone = [number for number in self._witnessed.ids.get((page.stream, page.number), []) if number not in kept_ids]
        return self.note(super().page_purged(queue_id, page, kept, reason), "settled", queue_id, gone, reason)

    def page_attempted(
        self,
        queue_id: int,
        message: PagedMessage,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        lsn = super().page_attempted(queue_id, message, attempts, due_ms, consumer, cause)
        return self.note(lsn, "attempted", queue_id, message.id, attempts, due_ms)

    def address_changed(self, fields: dict[str, Any]) -> int:
        return self.note(super().address_changed(fields), "address_changed", copy.deepcopy(fields))

    def queue_changed(self, fields: dict[str, Any]) -> int:
        return self.note(super().queue_changed(fields), "queue_changed", copy.deepcopy(fields))

    def queue_deleted(self, queue_id: int) -> int:
        return self.note(super().queue_deleted(queue_id), "queue_deleted", queue_id)

    def duplicate_id(self, address: str, duplicate_id: str) -> int:
        return self.note(super().duplicate_id(address, duplicate_id), "duplicate_id", address, duplicate_id)

    def begin_group(self, *, transactional: bool = False) -> None:
        super().begin_group(transactional=transactional)
        self._depth += 1
        if self._inner is None:
            self._inner = []

    def end_group(self) -> int:
        lsn = super().end_group()
        self._depth -= 1
        if not self._depth:
            inner, self._inner = self._inner, None
            if inner:
                self.note(self.last_lsn, "group", inner)
        return lsn
