"""A broker's files on a simulated disk, opened as a broker opens them, with threads that work when they are told to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.disk.group_commit import Committer
from artemis_py.storage.journal.audit import AuditTrail
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.open import Disks, Parts, StoreSettings, Workers, open_files
from artemis_py.storage.recovery.accept_journal import examine_or_refuse
from artemis_py.storage.replay.log import RetainedReplayLog
from artemis_py.storage.retention.retention import RetireCallbacks
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.archived import ArchiveFiles
from tests.kit.crash.paging import WitnessedPages
from tests.kit.crash.retained import Archive
from tests.kit.crash.witness import WitnessedRecords, WitnessedStory
from tests.kit.disk import SimDisk


def _pages(disk: Disk, reader: Committer, say: Callable[[str], None]) -> WitnessedPages:
    pages = WitnessedPages(disk, reader, say)
    pages.watch()
    return pages


def _journal(disk: Disk, *told: Any, pages: WitnessedPages, **named: Any) -> Journal:
    journal = Journal(disk, *told, pages=pages, make_records=WitnessedRecords, **named)
    records = journal.records
    assert isinstance(records, WitnessedRecords)
    records.watch(pages, disk)
    if isinstance(records.audit, AuditTrail):
        records.audit = WitnessedStory(records, "")
        records.audit.witness = records
    return journal


class SimStore:
    """Everything on one disk. ``archive`` gets the segments that retire. The threads call ``wake``."""

    def __init__(self, disk: SimDisk, settings: JournalSettings, archive: Archive | None = None) -> None:
        self.disk = disk
        self.wake: Callable[[], None] = lambda: None
        self.told: list[str] = []
        self.committer, self.reader = SteppedCommitter(self._wake), SteppedCommitter(self._wake)
        self.bodies = [SteppedCommitter(self._wake), SteppedCommitter(self._wake)]
        """What writes large bodies, and what reads them."""
        self.log_readers = [SteppedCommitter(self._wake), SteppedCommitter(self._wake)]
        """What reads the log for replays."""
        self.recovered = examine_or_refuse(disk)
        self.files = open_files(
            self.recovered,
            Disks(journal=disk, pages=disk, bodies=disk),
            Workers(
                committer=self.committer,
                page_reader=self.reader,
                body_writer=self.bodies[0],
                body_reader=self.bodies[1],
            ),
            StoreSettings(journal=settings),
            say=self.told.append,
            retire_callbacks=None if archive is None else RetireCallbacks(retire_segment=partial(archive.retire, disk)),
            parts=Parts(journal=_journal, pages=_pages),
        )

        self.replay_log: RetainedReplayLog | None = None
        """The log for replays; None without an archive."""
        self.log_files = None if archive is None else ArchiveFiles(disk, archive)
        if self.log_files is not None:
            self.records.has_past = True
            reader, tail_reader = self.log_readers
            self.replay_log = RetainedReplayLog(
                self.files.journal, self.log_files, self.files.large, reader, tail_reader, self.told.append
            )

    def _wake(self) -> None:
        self.wake()

    @property
    def records(self) -> WitnessedRecords:
        """The records, which note what they are told."""
        records = self.files.journal.records
        assert isinstance(records, WitnessedRecords)
        return records
