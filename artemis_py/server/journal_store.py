"""The files of a broker with a journal, and the thread that surveys its closed segments."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import RetentionConfig
from artemis_py.log_codes import STORAGE
from artemis_py.record_log import RecoveredState
from artemis_py.server.log_cursors import LogCursors
from artemis_py.server.log_view import LogView
from artemis_py.server.store import Store
from artemis_py.storage.disk.disk import DiskError, FileDisk
from artemis_py.storage.disk.group_commit import ThreadCommitter
from artemis_py.storage.disk.lock import ACTIVE, STOPPED, DirectoryLock
from artemis_py.storage.disk.permissions import open_to_others
from artemis_py.storage.disk.space import SpaceReserve, is_full, space_of
from artemis_py.storage.format.address_index import places_name
from artemis_py.storage.journal.index_files import index_beside
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.log_id import LogId, log_id
from artemis_py.storage.open import Disks, OpenStore, StoreSettings, Workers, open_files
from artemis_py.storage.reclaim import SpaceReclaim, make_room, reserves_of
from artemis_py.storage.recovery.accept_journal import Recovered, examine_or_refuse
from artemis_py.storage.recovery.damage_report import damage_lines
from artemis_py.storage.recovery.missing_files import DataDirectories
from artemis_py.storage.replay import RetainedFiles, RetainedReplayLog
from artemis_py.storage.retention.cursors import Cursors
from artemis_py.storage.retention.retention import RetainedLog, RetentionSettings, RetireCallbacks, wall_clock_ms
from artemis_py.storage.retention.survey import Survey
from artemis_py.terminal_output import many, warn, warn_made

# ---- surveyor --------------------------------------------------------------------------------------------------------
#
# The thread that surveys closed segments of a retained log, so that readers need not read all of it. It works briefly
# and rests four times as long, and it waits while the broker is busy: turns go first. The thread that retires
# segments writes the results, so a segment is never moved or removed while a file is added to it.


_RECORDS: Final = 256
_REST: Final = 4
"""How many records are read at a time, and how many times longer the thread then rests."""
_WAIT_S: Final = 0.05
"""How long to wait before asking a busy broker again."""
Found = Callable[[int, dict[str, Any], bytes], None]


class Surveyor:
    """``find`` returns where a segment is now, or None if it is gone. ``found`` takes a segment's number, the fields of
    its index and its file of places. Both are called in the surveyor's thread.
    """

    def __init__(self, find: Callable[[int], Path | None], found: Found) -> None:
        self._find = find
        self._found = found
        self._numbers: SimpleQueue[int | None] = SimpleQueue()
        self._is_busy: Callable[[], bool] = lambda: False
        self._is_stopping = False
        self._worker = threading.Thread(target=self._run, name="surveyor", daemon=True)
        self._worker.start()

    def add(self, number: int) -> None:
        """A segment was closed. One already surveyed is skipped."""
        self._numbers.put(number)

    def give_way(self, is_busy: Callable[[], bool]) -> None:
        """Wait from now on while the broker is busy; ``is_busy`` is called in the surveyor's thread."""
        self._is_busy = is_busy

    def stop(self) -> None:
        """End the thread. The next start surveys the rest, as far as it is still in the journal."""
        self._is_stopping = True
        self._numbers.put(None)
        self._worker.join()

    def _run(self) -> None:
        while (number := self._numbers.get()) is not None and not self._is_stopping:
            with suppress(Exception):  # it moved twice, is damaged or has unexpected content: readers read all of it
                self._survey(number)

    def _begun(self, number: int) -> Survey | None:
        """A survey of the segment. None if it is gone, or has one."""
        for _ in range(2):  # it may move between being found and being read
            path = self._find(number)
            if path is None:
                return None
            with suppress(FileNotFoundError):
                fields = index_beside(path)
                if "places" in fields and path.with_name(places_name(path.name)).exists():
                    return None
                return Survey(path.read_bytes(), fields["bytes"])
        return None

    def _survey(self, number: int) -> None:
        survey = self._begun(number)
        if survey is None:
            return
        is_more = True
        while is_more:
            if self._is_stopping:
                return
            if self._is_busy():
                time.sleep(_WAIT_S)
                continue
            began_s = time.perf_counter()
            is_more = survey.step(_RECORDS)
            time.sleep(_REST * (time.perf_counter() - began_s))
        self._found(number, survey.fields(), survey.places())


# ---- journal store ---------------------------------------------------------------------------------------------------
#
# The files of a broker with persistence: their directories, threads and locks, and what a start reports.
# ``storage/open.py`` decides in which order they are opened.


_PROGRESS_AFTER_S: Final = 1.0
_CLOSE_S: Final = 10.0
_RELEASED_S: Final = 5.0
"""How long the locks of a broker that died may take to be released, after the first of them."""
_PAGES_BYTES: Final = 12 << 20
"""The share of pages in the reserve for a full disk: a little more than they may have accepted and not written. The
reserve also has room for two journal files: one for acknowledgements, one for compaction.
"""


class JournalStore(Store):
    """Opens the directories of journal, pages and large bodies, each for one broker at a time.

    Raises DiskError or LockedError if they cannot be opened, and LossError if too much is lost. Until then, nothing is
    created or changed, except for the lock in the journal directory.

    The broker of a pair has waited for the lock of the journal directory and gives it: ``lock``. It is released with
    the others.
    """

    def __init__(
        self,
        config: BrokerConfig,
        wake: Callable[[], None],
        check_disk: Callable[[], None],
        open_files_max: int,
        make_disk: Callable[..., FileDisk] = FileDisk,
        lock: DirectoryLock | None = None,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        directory = Path(config.journal_directory)
        open_disk = partial(make_disk, data_only=config.journal_datasync, open_files_max=open_files_max)
        with ExitStack() as opened:
            self._main_lock = lock or lock_journal(config)
            self._locks: dict[Path, DirectoryLock] = {self._main_lock.directory: self._main_lock}
            opened.callback(self._main_lock.release)
            self._is_pair = lock is not None
            self._main_lock.claim()
            self._disk = open_disk(directory)
            opened.callback(self._disk.close)
            recovered = examine_or_refuse(self._disk, _Progress(progress), data_directories(config))
            self._body_disk = open_disk(Path(config.large_messages_directory))
            self._page_disk = open_disk(Path(config.paging_directory))
            self._disks = (self._disk, self._body_disk, self._page_disk)
            for disk in (self._body_disk, self._page_disk):
                opened.callback(disk.close)
                self._lock(disk.directory, opened)
            self.reserves = reserves_of(self._disks, check_disk, 2 * config.journal_file_size + _PAGES_BYTES)
            self._disk.draws = self._page_disk.draws = True
            self._open(config, wake, opened, recovered)
            self._opened = opened.pop_all()
        hands_over = config.shared_store is not None and config.shared_store.failover_on_shutdown
        self._main_lock.leaves(ACTIVE if hands_over else STOPPED)

    def _lock(self, directory: Path, opened: ExitStack) -> None:
        """Lock a directory, unless this broker has already locked it. Raises LockedError or DiskError."""
        place = directory.resolve()
        if place not in self._locks:
            lock = self._locks[place] = DirectoryLock.soon(place, _RELEASED_S if self._is_pair else 0.0)
            opened.callback(lock.release)

    def _open(self, config: BrokerConfig, wake: Callable[[], None], opened: ExitStack, recovered: Recovered) -> None:
        self.report = [note for lock in self._locks.values() for note in lock.notes]
        self.report += _without_reserve(self.reserves) + _report(recovered, self._disk.directory)
        self._watched: list[FileDisk] = []
        """Directories that are written to by path and must stay where they are."""
        self._retained: RetainedLog | None = None
        cursors: Cursors | None = None
        if config.journal_retention is not None:
            cursors = _cursors(config, config.journal_retention, recovered)
            self._retained = self._open_retained(config.journal_retention, cursors)
        self._committer = _thread(wake, "committer", opened)
        workers = Workers(
            committer=self._committer,
            page_reader=_thread(wake, "page reader", opened),
            body_writer=_thread(wake, "body writer", opened),
            body_reader=_thread(wake, "body reader", opened),
        )
        self._surveyor: Surveyor | None = None
        retire_callbacks: RetireCallbacks | None = None
        if self._retained is not None:
            self._surveyor = Surveyor(self._retained.path_of, partial(self._surveyed, self._retained))
            opened.callback(self._surveyor.stop)
            retire_callbacks = self._retained.retire_callbacks(self._surveyor.add)
            for segment in recovered.segments:
                self._surveyor.add(segment.number)
        disks = Disks(journal=self._disk, pages=self._page_disk, bodies=self._body_disk)
        settings = StoreSettings(journal=_journal_settings(config), syncs_bodies=config.large_message_sync)
        files = open_files(recovered, disks, workers, settings, say=_say, retire_callbacks=retire_callbacks)
        self._files, self.pages, self.large = files, files.pages, files.large
        self.log, self.durability = files.journal.records, files.journal
        retention = None if self._retained is None else self._retained.retention
        SpaceReclaim(self._disk, files.journal, retention, lambda: self._committer.is_here, _say).offer(self.reserves)
        directories = [self._disk.directory] + ([] if retention is None else [retention.directory])
        identity = log_id(directories)
        files.journal.damaged_places += len(identity.faults)
        self._tell(files, directories, identity)
        body_directories = [self._body_disk.directory, *directories]
        self.log_view = LogView(files.journal, self._disk.directory, identity.text, body_directories, retention)
        opened.callback(self.log_view.stop)
        self.cursors = LogCursors(files.journal, retention, cursors, wall_clock_ms)
        if retention is not None:
            self.log.has_past = True
            self.replay_log = RetainedReplayLog(
                files.journal,
                RetainedFiles(self._disk.directory, retention),
                files.large,
                _thread(wake, "log reader", opened),
                _thread(wake, "log tail reader", opened),
                _say,
            )

    def _open_retained(self, kept: RetentionConfig, cursors: Cursors) -> RetainedLog:
        settings = RetentionSettings(Path(kept.directory), kept.period_ms, kept.storage_limit)
        retained = RetainedLog(self._disk, self._body_disk, settings, cursors)
        self._watched.append(FileDisk(settings.directory))
        return retained

    def _tell(self, files: OpenStore, directories: Sequence[Path], identity: LogId) -> None:
        """Add lines to the report about what the opening found."""
        found = files.findings
        self.report += [f"warning: {self._disk.directory}: {line}" for line in found.journal]
        self.report += [f"warning: {self._page_disk.directory}: {line}" for line in found.pages]
        self.report += open_to_others([*(disk.directory for disk in self._disks), *directories])
        self.report += [f"warning: {fault}" for fault in identity.faults]
        self.report += [f"warning: {self._body_disk.directory}: {line}" for line in found.bodies]

    def recovered_state(self) -> RecoveredState:
        return self._files.recovered_state()

    def directories(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(disk.directory) for disk in self._disks))

    def open_files(self) -> int:
        return sum(disk.open_files for disk in self._disks)

    def make_room(self) -> None:
        self._committer.later(self._make_room)

    def _make_room(self) -> None:
        """Runs in the committer's thread."""
        make_room(self.reserves)
        for line in _without_reserve(self.reserves):
            _say(line)

    def give_way(self, is_busy: Callable[[], bool]) -> None:
        if self._surveyor is not None:
            self._surveyor.give_way(is_busy)

    def check_directories(self) -> None:
        self._committer.later(self._check_directories)

    def _check_directories(self) -> None:
        self._disk.confirm_again()
        for disk in (self._body_disk, self._page_disk, *self._watched):
            disk.confirm_directory()
        for lock in self._locks.values():
            warning = lock.confirm()
            if warning is not None:
                _say(warning)

    def _surveyed(self, retained: RetainedLog, number: int, fields: dict[str, Any], places: bytes) -> None:
        """Runs in the surveyor's thread."""
        self._committer.later(partial(retained.put_beside, number, fields, places))

    def hand_over(self) -> None:
        self._main_lock.leaves(ACTIVE)

    def close(self) -> None:
        with self._opened:
            self._write_out()

    def _write_out(self) -> None:
        deadline = time.monotonic() + _CLOSE_S
        while self._files.has_pending and time.monotonic() <= deadline:
            self._files.seal()
            time.sleep(0.001)
        self._files.journal.finish()
        if self._files.journal.failure is not None:
            self.hand_over()


def lock_journal(config: BrokerConfig) -> DirectoryLock:
    """The lock of the journal directory, which is created if it may be. Raises LockedError and DiskError."""
    directory = Path(config.journal_directory)
    if not config.create_journal_dir and not os.path.isdir(directory):
        raise DiskError(f"{directory} does not exist or cannot be looked at, and create-journal-dir is false")
    FileDisk(directory).close()  # creates it
    return DirectoryLock(directory.resolve())


def _thread(wake: Callable[[], None], name: str, opened: ExitStack) -> ThreadCommitter:
    worker = ThreadCommitter(wake, name)
    opened.callback(worker.stop)
    return worker


def _cursors(config: BrokerConfig, kept: RetentionConfig, recovered: Recovered) -> Cursors:
    disk_is_full = partial(_disk_is_full, config, kept.directory)
    return Cursors(recovered.index.cursors, wall_clock_ms, disk_is_full, _say, kept.cursor_ttl_s)


def data_directories(config: BrokerConfig) -> DataDirectories:
    """The directories of large bodies and pages of a broker with a journal."""
    return DataDirectories([Path(config.large_messages_directory)], [Path(config.paging_directory)])


def _without_reserve(rooms: Sequence[SpaceReserve]) -> list[str]:
    """A line for each reserve that cannot be created."""
    return [
        f"warning: {fault}; nothing is kept in reserve, so a full disk would stop the broker: make it possible to"
        " create the file, then restart"
        for room in rooms
        if (fault := room.take_fault())
    ]


def _journal_settings(config: BrokerConfig) -> JournalSettings:
    return JournalSettings(
        file_bytes=config.journal_file_size,
        compact_files_min=config.journal_compact_min_files,
        compact_percentage=config.journal_compact_percentage,
        sync_transactional=config.journal_sync_transactional,
        sync_non_transactional=config.journal_sync_non_transactional,
        duplicate_ids_kept=config.id_cache_size,
        retains=config.journal_retention is not None,
        files_min=config.journal_min_files,
        broker_name=config.name,
    )


def _report(recovered: Recovered, directory: Path) -> list[str]:
    """Lines for people about the recovery."""
    lines = damage_lines(recovered, str(directory))
    if recovered.segments:
        index = recovered.index
        pages = index.pages.pages()
        in_pages = f" and {sum(map(index.pages.left, pages)):,} in {many(len(pages), 'page')}" if pages else ""
        records, files = many(recovered.record_count, "record"), many(len(recovered.segments), "journal file")
        lines.append(f"recovered {many(len(index.home), 'message')}{in_pages} from {records} in {files}")
    return lines


def _disk_is_full(config: BrokerConfig, directory: str) -> bool:
    """Is the disk of the retained log too full for cursors to hold files back?"""
    return is_full(config.max_disk_usage, config.min_disk_free, space_of(directory))


def _say(line: str) -> None:
    warn(line, STORAGE)


class _Progress:
    """Reports the progress of a long recovery: on a terminal one line that is overwritten, elsewhere ten lines.
    ``told`` hears of every file.
    """

    def __init__(self, told: Callable[[int, int], None]) -> None:
        self._tell = told
        self._started = time.monotonic()
        self._told = -1

    def __call__(self, done: int, total: int) -> None:
        self._tell(done, total)
        if time.monotonic() - self._started < _PROGRESS_AFTER_S:
            return
        tenths = done * 10 // total
        if sys.stderr.isatty():
            warn_made(f"\rrecovering: {done} of {total} journal files", end="\n" if done == total else "")
        elif tenths != self._told:
            self._told = tenths
            warn(f"recovering: {done} of {total} journal files", STORAGE)


# ---- accepted losses -------------------------------------------------------------------------------------------------
#
# ``--accept-loss``: repairs a journal that would refuse a start, and gives up what other directories lack.


def accept_losses(config: BrokerConfig, held: DirectoryLock | None = None) -> list[str]:
    """Repair the journal if needed, and note which other files a start does without; returns lines about it. ``held``
    is the directory's lock, if the broker already has it. Raises DiskError, LockedError and VersionError.
    """
    from artemis_py.storage.recovery.damage_report import orphan_lines, what_is_left
    from artemis_py.storage.recovery.examination import examine
    from artemis_py.storage.recovery.missing_files import missing_files, note_given_up, read_given_up
    from artemis_py.storage.recovery.repair import repair

    directory = Path(config.journal_directory)
    if not os.path.isdir(directory):
        return []
    lock = held or DirectoryLock(directory)
    try:
        disk = FileDisk(directory)
        examined = examine(disk)
        examined.absent = missing_files(examined.index, data_directories(config), read_given_up(disk).names)
        lines = [f"warning: accepted: {loss}" for loss in examined.losses]
        left = what_is_left(examined)
        if examined.reasons:
            repaired = repair(directory, config.journal_file_size)
            lines += orphan_lines(examined)
            lines.append(f"warning: {directory} was repaired: {left}. The old files are in {repaired.folder}")
        if examined.absent:
            with closing(disk):
                note_given_up(disk, [name for one in examined.absent for name in one.names])
        return lines
    finally:
        if held is None:
            lock.release()
