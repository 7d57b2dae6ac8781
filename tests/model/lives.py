"""A journal on a disk in memory that knows what it promised, and what it gives back to the next life."""

from __future__ import annotations

from functools import partial
from typing import Final

from artemis_py.message import Message
from artemis_py.record_log import Actor
from artemis_py.storage.journal.index_files import delete_segment
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.record_writer import RecordWriter
from artemis_py.storage.journal.settings import JournalSettings, SegmentCare
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.committer import SteppedCommitter
from tests.kit.disk import SimDisk

_SETTINGS: Final = JournalSettings(file_bytes=8192, compact_files_min=2)


class StrictRecords(RecordWriter):
    """Knows which durable messages a recovery would find, and in which queues (by number)."""

    live: set[tuple[int, int]]
    disk: SimDisk
    journal: Journal
    committer: SteppedCommitter

    @staticmethod
    def on(disk: SimDisk) -> StrictRecords:
        """The records of a journal that goes on with what is on the disk."""
        found = recover(disk)
        committer = SteppedCommitter(lambda: None)
        care = SegmentCare(retire=partial(delete_segment, disk))
        journal = Journal(disk, committer, _SETTINGS, start=found.start, care=care, make_records=StrictRecords)
        records = journal.records
        assert isinstance(records, StrictRecords)
        records.disk, records.journal, records.committer = disk, journal, committer
        records.live = {
            (survivor.message.id, queue_id)
            for queue_id, survivors in found.index.recovered_state().messages.items()
            for survivor in survivors
        }
        return records

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        self._enter([message], queue_ids)
        return super().published(message, queue_ids, due_ms)

    def published_run(self, messages: list[Message], queue_id: int, due_ms: int) -> None:
        before = len(self.live)
        super().published_run(messages, queue_id, due_ms)
        if len(self.live) == before:  # it did not call ``published`` for each
            self._enter(messages, [queue_id])

    def _enter(self, messages: list[Message], queue_ids: list[int]) -> None:
        for place in [(message.id, queue_id) for message in messages for queue_id in queue_ids]:
            assert place not in self.live, f"message {place[0]} was published to {place[1]} twice"
            self.live.add(place)

    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        for message in messages:
            assert (message.id, queue_id) in self.live, f"message {message.id} was settled in {queue_id} twice"
            self.live.remove((message.id, queue_id))
        return super().settled(queue_id, messages, reason, consumer)
