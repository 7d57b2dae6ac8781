"""Records whose operations are noted as they are asked for, for the projection to repeat."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any

from artemis_py.message import Message
from artemis_py.paged_messages import Page, PagedMessage
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.journal.journal import AuditTrail
from artemis_py.storage.journal.record_writer import RecordWriter
from tests.kit.crash.paging import WitnessedPages
from tests.kit.crash.projection import Operation, identity


class WitnessedStory(AuditTrail):
    """The story of such records: what it tells of messages in pages is noted with them; for whom, ``paged`` tells."""

    witness: WitnessedRecords

    def published_in_page(self, message: Message, queue_ids: list[int], due_ms: int, place: int) -> int:
        lsn = super().published_in_page(message, queue_ids, due_ms, place)
        return self.witness.note(lsn, "published", identity(message, self.witness.disk), [], due_ms)


class WitnessedRecords(RecordWriter):
    """The records themselves; ``operations`` has (lsn, operation) of everything since the journal was opened."""

    def __init__(self, pages: WitnessedPages, disk: Disk, *told: Any) -> None:
        super().__init__(*told)
        self.disk = disk
        self.operations: list[tuple[int, Operation]] = []
        self._inner: list[Operation] | None = None
        """Those of the group that has begun."""
        self._witnessed = pages

    def note(self, lsn: int, *operation: Any) -> int:
        """Note an operation that has been written down."""
        if self._inner is not None:
            self._inner.append(operation)
        else:
            self.operations.append((lsn, operation))
        return lsn

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """What the operations of this name were given, also those in groups."""
        inner = [operation[1] if operation[0] == "group" else [operation] for _, operation in self.operations]
        return [tuple(given) for operations in inner for one, *given in operations if one == name]

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        targets = list(queue_ids)
        lsn = super().published(message, queue_ids, due_ms)
        return self.note(lsn, "published", identity(message, self.disk), targets, due_ms)

    def published_run(self, messages: list[Message], queue_id: int, due_ms: int) -> None:
        noted = len(self.operations if self._inner is None else self._inner)
        super().published_run(messages, queue_id, due_ms)
        if noted != len(self.operations if self._inner is None else self._inner):
            return  # it called ``published`` for each, which noted them
        for message in messages:
            self.note(message.lsn, "published", identity(message, self.disk), [queue_id], due_ms)

    def recalled(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        known = identity(message, self.disk)
        lsn = super().recalled(message, queue_ids, due_ms)
        return self.note(lsn, "recalled", known, list(queue_ids), due_ms, message.lsn)

    def paged(self, page: Page) -> int:
        lsn = super().paged(page)
        for one, queue_ids, due_ms in self._witnessed.fresh.pop((page.stream, page.number), []):
            self.note(lsn, "published", one, [number for number in queue_ids if number in page.durable], due_ms)
        return lsn

    def page_purged(self, queue_id: int, page: Page, kept: list[PagedMessage], reason: str) -> int:
        kept_ids = {message.id for message in kept}
        gone = [number for number in self._witnessed.ids.get((page.stream, page.number), []) if number not in kept_ids]
        return self.note(super().page_purged(queue_id, page, kept, reason), "settled", queue_id, gone, reason)

    def begin_group(self, *, transactional: bool = False) -> None:
        super().begin_group(transactional=transactional)
        if self._inner is None:
            self._inner = []

    def end_group(self) -> int:
        lsn = super().end_group()
        if not self._group_depth:
            inner, self._inner = self._inner, None
            if inner:
                self.note(self.last_lsn, "group", inner)
        return lsn


def _plain(argument: Any) -> Any:
    """What no broker changes any more: a copy, or the number of a message."""
    if isinstance(argument, list):
        return [_plain(one) for one in argument]
    return argument.id if isinstance(argument, Message) else marshal.loads(marshal.dumps(argument))


def _noted(name: str, operation: str, count: int) -> Callable[..., int]:
    """A method of the records that is noted with its first arguments."""
    write = getattr(RecordWriter, name)

    def noted(self: WitnessedRecords, *arguments: Any, **named: Any) -> int:
        told = [_plain(one) for one in (*arguments, *named.values())[:count]]
        return self.note(write(self, *arguments, **named), operation, *told)

    return noted


for _name, _operation, _count in (
    ("settled", "settled", 3),
    ("page_settled", "settled", 3),
    ("attempted", "attempted", 4),
    ("page_attempted", "attempted", 4),
    ("fell_due", "fell_due", 2),
    ("address_changed", "address_changed", 1),
    ("queue_changed", "queue_changed", 1),
    ("queue_deleted", "queue_deleted", 1),
    ("cursor_changed", "cursor_changed", 1),
    ("duplicate_id", "duplicate_id", 2),
):
    setattr(WitnessedRecords, _name, _noted(_name, _operation, _count))
