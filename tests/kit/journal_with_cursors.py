"""A broker's journal with small segments, what it retains, and cursors."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path

from artemis_py.server.log_cursors import LogCursors
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.index_files import write_index
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings, SegmentCare
from artemis_py.storage.recovery.accept_journal import recover
from artemis_py.storage.retention.cursors import Cursors
from artemis_py.storage.retention.retention import Retention, RetentionSettings
from tests.kit.committer import SteppedCommitter
from tests.kit.journal_story import START_MS, message

TTL_S = 3600
SETTINGS = JournalSettings(file_bytes=4096, compact_files_min=0, retains=True)


class JournalWithCursors:
    """A broker's journal with small segments, what it retains, and cursors; its clock and its disk are the test's."""

    def __init__(
        self,
        folder: Path,
        *,
        period_ms: int | None = None,
        bytes_max: int | None = 1,
        settings: JournalSettings = SETTINGS,
    ) -> None:
        self.folder = folder
        self.period_ms = period_ms
        self.bytes_max = bytes_max
        self.now_ms = START_MS
        self.crowded: Callable[[], bool] = lambda: False
        self.said: list[str] = []
        self.number = 0
        self.closed: list[Segment] = []
        """Whose index was written."""
        self._settings = settings
        self.start()

    def start(self) -> None:
        """As a broker starts on what is there."""
        self.disk = FileDisk(self.folder / "journal")
        weakref.finalize(self, self.disk.close)  # a disk opens again what somebody else still writes to
        recovered = recover(self.disk)
        self.cursors = Cursors(
            recovered.index.cursors, lambda: self.now_ms, lambda: self.crowded(), self.said.append, TTL_S
        )
        settings = RetentionSettings(self.folder / "kept", self.period_ms, self.bytes_max)
        self.retention = Retention(
            self.disk, self.folder / "journal", settings, lambda: self.now_ms, holds=self.cursors
        )
        self.journal = Journal(
            self.disk,
            SteppedCommitter(at_once=True),
            self._settings,
            start=recovered.start,
            care=SegmentCare(retire=self.retention.retire, closed=self._write_index),
        )
        self.desk = LogCursors(self.journal, self.retention, self.cursors, lambda: self.now_ms)

    def _write_index(self, segment: Segment) -> None:
        assert segment.index is not None
        assert write_index(self.disk, segment.index)
        self.closed.append(segment)

    def turn(self, now_ms: int | None = None) -> None:
        """What was written becomes durable, at a time of the test's clock."""
        self.now_ms = self.now_ms if now_ms is None else now_ms
        self.journal.records.now_ms = self.now_ms
        self.journal.poll()
        self.journal.seal()
        self.journal.poll()

    def put(self, name: str, lsn: int, **more: object) -> None:
        """Somebody has read up to here."""
        self.desk.put(name, {"lsn": lsn, **more})
        self.turn()

    def write(self, segments: int, queue_ids: tuple[int, ...] = ()) -> None:
        """Fill segments with messages for these queues; what no queue needs is retained."""
        until = self.journal.segments[-1].number + segments
        while self.journal.segments[-1].number < until:
            self.publish(bytes(500), queue_ids)
            self.turn()

    def publish(self, body: bytes = b"", queue_ids: tuple[int, ...] = (1,), address: str = "a") -> None:
        """The next message."""
        self.number += 1
        self.journal.records.published(message(self.number, body, address=address), [*queue_ids], 0)

    @property
    def numbers(self) -> list[int]:
        """What is kept."""
        return [one.file.number for one in self.retention.files]

    def last_lsn(self, number: int) -> int:
        """Of a retained segment."""
        kept = {one.file.number: one.first_lsn for one in self.retention.files}
        return kept[number + 1] - 1
