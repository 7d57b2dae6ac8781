"""A broker's files on a simulated disk, opened as a broker opens them, with threads that work when they are told to."""

from __future__ import annotations

from functools import partial
from typing import Any

from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.journal.journal import AuditTrail, Journal
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.open import Disks, Parts, StoreSettings, Workers, open_files
from artemis_py.storage.recovery.accept_journal import examine_or_refuse
from artemis_py.storage.replay import RetainedReplayLog
from artemis_py.storage.retention.retention import RetireCallbacks
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.archived import ArchiveFiles
from tests.kit.crash.paging import WitnessedPages
from tests.kit.crash.retained import Archive
from tests.kit.crash.witness import WitnessedRecords, WitnessedStory
from tests.kit.disk import SimDisk


def _journal(disk: Disk, *told: Any, pages: WitnessedPages, **named: Any) -> Journal:
    journal = Journal(disk, *told, pages=pages, make_records=partial(WitnessedRecords, pages, disk), **named)
    records = journal.records
    assert isinstance(records, WitnessedRecords)
    if isinstance(records.audit, AuditTrail):
        records.audit = WitnessedStory(records, "")
        records.audit.witness = records
    return journal


class SimStore:
    """Everything on one disk. ``archive`` gets the segments that retire."""

    def __init__(self, disk: SimDisk, settings: JournalSettings, archive: Archive | None = None) -> None:
        self.disk = disk
        self.told: list[str] = []
        self.threads = [SteppedCommitter() for _ in range(6)]
        self.committer, self.reader, *bodies, log_reader, tail_reader = self.threads
        self.bodies = bodies
        """What writes large bodies, and what reads them."""
        self.recovered = examine_or_refuse(disk)
        self.files = open_files(
            self.recovered,
            Disks(journal=disk, pages=disk, bodies=disk),
            Workers(committer=self.committer, page_reader=self.reader, body_writer=bodies[0], body_reader=bodies[1]),
            StoreSettings(journal=settings),
            say=self.told.append,
            retire_callbacks=None if archive is None else RetireCallbacks(retire_segment=partial(archive.retire, disk)),
            parts=Parts(journal=_journal, pages=WitnessedPages),
        )
        records = self.files.journal.records
        assert isinstance(records, WitnessedRecords)
        self.records = records
        self.replay_log: RetainedReplayLog | None = None
        """The log for replays; None without an archive."""
        self.log_files = None if archive is None else ArchiveFiles(disk, archive)
        if self.log_files is not None:
            records.has_past = True
            self.replay_log = RetainedReplayLog(
                self.files.journal, self.log_files, self.files.large, log_reader, tail_reader, self.told.append
            )
