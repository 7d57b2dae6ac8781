"""The broker's files: opening them at a start, with everything they give back, and closing them."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.records import Keepsake, MemoryLog, PageLog, RecordLog
from artemis_py.server.bodies import TransientBodies, TransientFolder, may_be_made, open_bodies, remove_leftovers
from artemis_py.server.cursor_desk import CursorDesk
from artemis_py.server.log_view import LogView
from artemis_py.server.surveyor import Surveyor
from artemis_py.shown import warn
from artemis_py.storage.absent import Places, missing_pages
from artemis_py.storage.body_recovery import take_over
from artemis_py.storage.codec import CodecError
from artemis_py.storage.committer import ThreadCommitter
from artemis_py.storage.cursors import Cursors
from artemis_py.storage.disk import OPEN_FILES_MAX, DirectoryLock, DiskError, FileDisk
from artemis_py.storage.examination import REPAIRED_NAME
from artemis_py.storage.findings import damage_lines
from artemis_py.storage.given_up import GivenUp, note_given_up, read_given_up
from artemis_py.storage.index import Index, Segment
from artemis_py.storage.journal import Journal, segment_name
from artemis_py.storage.journal_settings import JournalSettings
from artemis_py.storage.large import LargeStore
from artemis_py.storage.log_id import log_id
from artemis_py.storage.page_bodies import hold_bodies
from artemis_py.storage.page_codec import page_name
from artemis_py.storage.pages import PageFiles, delete_leftovers
from artemis_py.storage.private import open_to_others
from artemis_py.storage.recovery import Recovered, accept, weigh
from artemis_py.storage.retained_bodies import RetainedBodies
from artemis_py.storage.retention import Retention, RetentionSettings, wall_clock_ms
from artemis_py.storage.room import Room, is_full, space_of
from artemis_py.storage.sidecars import delete_orphans, delete_segment, write_index, write_survey
from artemis_py.storage.spill import SpillLog

_PROGRESS_AFTER_S: Final = 1.0
_CLOSE_S: Final = 10.0
_PAGES_BYTES: Final = 12 << 20
"""Of the reserve for a full disk: what pages may have taken in and not written, and a little more. Beside it there is
room for two journal files: one to acknowledge in, and one for compaction.
"""


class Store(ABC):
    """Where a broker's log, pages and large bodies go. What is None has no place: then memory has to do."""

    log: RecordLog
    pages: PageLog | None
    large: LargeStore | None
    log_view: LogView | None = None
    """What others may read of the log; None: there is none."""
    cursor_desk: CursorDesk | None = None
    """Their cursors in it."""
    report: list[str]
    """What a person should know of what was found."""
    rooms: tuple[Room, ...] = ()
    """One for each file system in use."""

    @abstractmethod
    def keepsake(self) -> Keepsake:
        """What the broker takes back. Nobody may keep it longer: it holds every message, and large ones their files."""

    def open_files(self) -> int:
        """How many files are open now."""
        return 0

    @abstractmethod
    def directories(self) -> tuple[str, ...]:
        """Where files grow."""

    @abstractmethod
    def make_room(self) -> None:
        """Files find no room: have done, by a thread, what can be done about it."""

    def give_way(self, is_busy: Callable[[], bool]) -> None:  # noqa: B027 - most stores do nothing that can wait
        """What can wait waits while the broker is busy, from now on."""

    @abstractmethod
    def look_after(self) -> None:
        """Have looked, by a thread, whether the directories and locks are still those that were opened; if not, the log
        fails.
        """

    @abstractmethod
    def close(self) -> None:
        """Make durable what is gathered, and let the files go."""


def open_store(
    config: BrokerConfig,
    wake: Callable[[], None],
    look: Callable[[], None] = lambda: None,
    open_files_max: int = OPEN_FILES_MAX,
) -> Store:
    """The store that a configuration asks for. ``wake`` is called by the disk's threads when something is done, and
    ``look`` when somebody should see how full the disks are. Raises DiskError or LockedError.
    """
    if config.persistence_enabled:
        return JournalStore(config, wake, look, open_files_max)
    return TransientStore(config, wake, look)


class JournalStore(Store):
    """The directories of journal, pages and large bodies in use; one broker at a time may have them.

    Raises DiskError or LockedError when they cannot be opened, and LossError when too much is lost: before that no file
    and no directory is made or changed but in the journal directory its lock.
    """

    def __init__(
        self, config: BrokerConfig, wake: Callable[[], None], look: Callable[[], None], open_files_max: int
    ) -> None:
        directory = Path(config.journal_directory)
        if not config.create_journal_dir and not directory.is_dir():
            raise DiskError(f"{directory} does not exist, and create-journal-dir is false")
        data_only = config.journal_datasync
        open_disk = partial(FileDisk, data_only=data_only, open_files_max=open_files_max)
        self._disk = open_disk(directory)
        self._watched: list[FileDisk] = []
        """Directories that others write to by their paths, and that have to stay where they are all the same."""
        self._retention: Retention | None = None
        self._surveyor: Surveyor | None = None
        with ExitStack() as opened:
            opened.callback(self._disk.close)
            self._locks: dict[Path, DirectoryLock] = {}
            self._lock(directory, opened)
            recovered = weigh(self._disk, _Progress(), places_of(config))
            self._body_disk = open_disk(Path(config.large_messages_directory))
            self._page_disk = open_disk(Path(config.paging_directory))
            self._disks = (self._disk, self._body_disk, self._page_disk)
            for disk in (self._body_disk, self._page_disk):
                opened.callback(disk.close)
                self._lock(disk.directory, opened)
            self.rooms = _rooms(self._disks, look, 2 * config.journal_file_size + _PAGES_BYTES)
            self._disk.draws = self._page_disk.draws = True
            self._open(config, wake, opened, recovered)
            self._opened = opened.pop_all()

    def _lock(self, directory: Path, opened: ExitStack) -> None:
        """Keep others out of a directory, which may be one that is locked already. Raises LockedError or DiskError."""
        place = directory.resolve()
        if place not in self._locks:
            lock = self._locks[place] = DirectoryLock(place)
            opened.callback(lock.release)

    def _open(self, config: BrokerConfig, wake: Callable[[], None], opened: ExitStack, recovered: Recovered) -> None:
        accept(self._disk, recovered)
        index = recovered.index
        given_up = read_given_up(self._disk)
        self._last_stream = given_up.stream
        self.report = _without_reserve(self.rooms) + _report(recovered, self._disk.directory)
        is_unsure = not recovered.tells_all or given_up.fault is not None
        if given_up.fault is not None:
            self.report.append(f"warning: {self._disk.directory}: {given_up.fault}")
        put_aside = delete_leftovers(self._page_disk, index.pages.pages(), keep=is_unsure, given_up=given_up.names)
        self.report += [f"warning: {self._page_disk.directory}: {line}" for line in put_aside]
        delete_orphans(self._disk)
        bodies = retention = cursors = None
        number_min = 1
        if config.journal_retention is not None:
            kept = config.journal_retention
            bodies = RetainedBodies(self._body_disk, self._body_disk.directory, Path(kept.directory), wall_clock_ms)
            settings = RetentionSettings(Path(kept.directory), kept.period_ms, kept.storage_limit)
            crowded = partial(_is_crowded, config, kept.directory)
            cursors = Cursors(index.cursors, wall_clock_ms, crowded, _say, kept.cursor_ttl_s)
            retention = Retention(self._disk, self._disk.directory, settings, bodies=bodies, holds=cursors)
            self._retention = retention
            self._watched.append(FileDisk(retention.directory))
            number_min = _begin_behind(recovered, retention)
        self._committer = ThreadCommitter(wake)
        opened.callback(self._committer.stop)
        if retention is not None:
            self._surveyor = Surveyor(self._closed_path, self._surveyed)
            opened.callback(self._surveyor.stop)
            for segment in recovered.segments:
                self._surveyor.add(segment.number)
        self._reader = ThreadCommitter(wake, "page reader")
        opened.callback(self._reader.stop)
        pages = PageFiles(self._page_disk, self._reader, _say)
        self.pages = pages
        self._journal = self.log = Journal(
            self._disk,
            self._committer,
            _journal_settings(config, number_min),
            index,
            recovered.segments,
            recovered.next_lsn,
            recovered.batch_number,
            partial(delete_segment, self._disk) if retention is None else retention.retire,
            None if retention is None else retention.purge,
            pages,
            self._write_index,
        )
        self._offer_room()
        self._bodies = self.large = open_bodies(
            self._body_disk,
            wake,
            syncs=config.large_message_sync,
            retire=None if bodies is None else bodies.retire,
            start_min=max(1 if bodies is None else bodies.start_min, given_up.start + 1),
        )
        opened.callback(self._bodies.close)
        directories = [self._disk.directory] + ([] if retention is None else [retention.directory])
        self.report += open_to_others([*(disk.directory for disk in self._disks), *directories])
        identity = log_id(directories)
        self.report += [f"warning: {fault}" for fault in identity.faults]
        self.log_view = LogView(
            self._journal,
            self._disk.directory,
            identity.text,
            [self._body_disk.directory, *directories],
            retention,
        )
        opened.callback(self.log_view.stop)
        self.cursor_desk = CursorDesk(self._journal, retention, cursors, wall_clock_ms)
        self._take_back(index, given_up, is_unsure=is_unsure)
        self._journal.damaged_places = sum(not damage.torn for damage in recovered.damages) + len(identity.faults)
        self._journal.lost_records = recovered.lost_records
        self._disk.delete(REPAIRED_NAME)

    def _take_back(self, index: Index, given_up: GivenUp, *, is_unsure: bool) -> None:
        """The large bodies that messages need are in use again, the others go. What is missing is noted before the
        journal says that nobody needs it.
        """
        told = hold_bodies(self._page_disk, index.pages, self._journal, self._bodies)
        missing = missing_pages(index, [self._page_disk.directory])
        is_unsure = is_unsure or any(
            page.has_large and (page.damaged or page_name(page.stream, page.number) in missing)
            for page in index.pages.pages()
        )
        told += take_over(index, self._journal, self._bodies, keep_unused=is_unsure, given_up=given_up.names)
        self.report += [f"warning: {self._body_disk.directory}: {line}" for line in told]
        note_given_up(self._disk, self._bodies.given_up.union(missing))

    def keepsake(self) -> Keepsake:
        return replace(self._journal.index.keepsake(), stream=self._last_stream)

    def directories(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(disk.directory) for disk in self._disks))

    def open_files(self) -> int:
        return sum(disk.open_files for disk in self._disks)

    def make_room(self) -> None:
        self._committer.later(self._make_room)

    def _make_room(self) -> None:
        """In the committer's thread. History goes before a message that somebody waits for cannot be acknowledged: also
        before the reserve is used up.
        """
        for each in self.rooms:
            each.refill()
            while each.is_short and each.give_up():
                each.refill()
        for line in _without_reserve(self.rooms):
            _say(line)

    def _offer_room(self) -> None:
        """What can go on each file system when a write that must not fail finds no room there."""
        retention = self._retention
        for each in self.rooms:
            if each is self._disk.room:
                each.sources.append(self._in_thread(self._journal.spares.give_up))
            if retention is not None and _file_system(retention.directory) == _file_system(each.directory):
                each.sources.append(self._in_thread(partial(self._give_up_history, retention, each)))
            if retention is not None and each is self._disk.room:
                each.sources.append(self._in_thread(partial(self._give_up_waiting, retention, each)))

    def _in_thread(self, source: Callable[[], bool]) -> Callable[[], bool]:
        """Files go in the committer's thread alone: a batch that finds no room outside is handed over to it."""
        return lambda: self._committer.is_here and source()

    @staticmethod
    def _give_up_history(retention: Retention, room: Room) -> bool:
        name = retention.give_up_oldest()
        if name is None:
            return False
        _say(f"warning: the disk of {room.directory} has no room: {name} was removed from the retained log")
        return True

    def _give_up_waiting(self, retention: Retention, room: Room) -> bool:
        """A segment that waits to be retained elsewhere: older ones go there, so that it finds room; else it goes."""
        departure = self._journal.departure
        if not departure.waits:
            return False
        if self._give_up_history(retention, room):
            departure.retry()
            return True
        name = departure.abandon(partial(delete_segment, self._disk))
        if name is not None:
            _say(f"warning: the disk of {room.directory} has no room: {name} was removed and is not retained")
        return name is not None

    def give_way(self, is_busy: Callable[[], bool]) -> None:
        if self._surveyor is not None:
            self._surveyor.give_way(is_busy)

    def look_after(self) -> None:
        self._committer.later(self._look_after)

    def _look_after(self) -> None:
        self._disk.confirm_again()
        for disk in (self._body_disk, self._page_disk, *self._watched):
            disk.confirm_directory()
        for lock in self._locks.values():
            lock.confirm()

    def _write_index(self, segment: Segment) -> None:
        """A segment was closed: its index need not stay in memory when it is on the disk."""
        if segment.index is not None and write_index(self._disk, segment.index):
            segment.index = None
            if self._surveyor is not None:
                self._surveyor.add(segment.number)

    def _closed_path(self, number: int) -> Path | None:
        """Where a segment is, in the journal or retained."""
        path = self._disk.directory / segment_name(number)
        return path if path.exists() or self._retention is None else self._retention.path_of(number)

    def _surveyed(self, number: int, fields: dict[str, Any], places: bytes) -> None:
        """In the surveyor's thread."""
        self._committer.later(partial(self._put_beside, number, fields, places))

    def _put_beside(self, number: int, fields: dict[str, Any], places: bytes) -> None:
        """In the committer's thread, which alone moves segments. Nobody needs it: a disk may refuse it."""
        if self._retention is None or not self._disk.has_room:
            return
        with suppress(OSError, CodecError):
            kept = self._retention.find(number)
            if kept is not None:
                self._retention.put_beside(kept.file.path, fields, places)
            elif (path := self._disk.directory / segment_name(number)).exists():
                write_survey(path, fields, places)

    def close(self) -> None:
        with self._opened:
            self._write_out()

    def _write_out(self) -> None:
        deadline = time.monotonic() + _CLOSE_S
        log, large = self._journal, self._bodies
        while log.has_pending or large.has_pending:
            if log.failure is not None or large.failure is not None or time.monotonic() > deadline:
                break
            log.poll()
            log.seal()
            large.poll()
            large.seal(log.last_lsn, log.durable_lsn)
            time.sleep(0.001)
        log.finish()


class TransientStore(Store):
    """What a broker without persistence needs of a disk: pages and large bodies, in folders that go with its process.
    Where none can be made, everything stays in memory; that is said, and is no reason not to start.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None], look: Callable[[], None]) -> None:
        with ExitStack() as opened:
            self._bodies = TransientBodies(config, wake, look)
            opened.callback(self._bodies.close)
            self.large = self._bodies.store
            self.report = list(self._bodies.report)
            self.pages = None
            self.log = MemoryLog()
            directory = Path(config.paging_directory)
            self._folder = TransientFolder(directory, look)
            opened.callback(self._folder.close)
            self.folders = self._folder, self._bodies.folder
            if may_be_made(directory):
                self._open_pages(directory, wake, opened)
            else:
                self.report.append(
                    f"warning: {directory} cannot be made: nothing is paged, all messages stay in memory"
                )
            self._opened = opened.pop_all()

    def _open_pages(self, directory: Path, wake: Callable[[], None], opened: ExitStack) -> None:
        remove_leftovers(directory)
        writer, reader = ThreadCommitter(wake, "page writer"), ThreadCommitter(wake, "page reader")
        for thread in (reader, writer):
            opened.callback(thread.stop)
        pages = PageFiles(self._folder, reader, _say)
        self.pages = pages
        self.log = SpillLog(writer, pages, _say)

    def keepsake(self) -> Keepsake:
        return Keepsake()

    def directories(self) -> tuple[str, ...]:
        """None before something was paged, or a large body came: what stays in memory needs no disk."""
        return tuple(str(folder.directory) for folder in self.folders if folder.is_made)

    def make_room(self) -> None:
        """Nothing to be done: pages wait until others were consumed, large bodies are refused."""

    def look_after(self) -> None:
        """Nothing to be done: what is here goes with the process."""

    def close(self) -> None:
        self._opened.close()


def places_of(config: BrokerConfig) -> Places:
    """Where large bodies and pages of a broker with a journal are."""
    return Places([Path(config.large_messages_directory)], [Path(config.paging_directory)])


def _file_system(directory: Path) -> int:
    try:
        return os.stat(directory).st_dev
    except OSError as error:
        raise DiskError(f"{directory}: {error.strerror}") from None


def _rooms(disks: Sequence[FileDisk], look: Callable[[], None], bytes_max: int) -> tuple[Room, ...]:
    """Give each disk the room of its file system. Raises DiskError."""
    rooms: dict[int, Room] = {}
    for disk in disks:
        number = _file_system(disk.directory)
        if number not in rooms:
            rooms[number] = Room(disk.directory, look, bytes_max)
        disk.room = rooms[number]
    return tuple(rooms.values())


def _without_reserve(rooms: Sequence[Room]) -> list[str]:
    """A line for each reserve that cannot be made."""
    return [
        f"warning: {fault}; nothing is kept in reserve, so a full disk would end the broker: see to it that the file"
        " can be made, then start again"
        for room in rooms
        if (fault := room.take_fault())
    ]


def _journal_settings(config: BrokerConfig, number_min: int) -> JournalSettings:
    return JournalSettings(
        file_bytes=config.journal_file_size,
        compact_files_min=config.journal_compact_min_files,
        compact_percentage=config.journal_compact_percentage,
        sync_transactional=config.journal_sync_transactional,
        sync_non_transactional=config.journal_sync_non_transactional,
        duplicate_ids_kept=config.id_cache_size,
        retains=config.journal_retention is not None,
        files_min=config.journal_min_files,
        number_min=number_min,
        broker_name=config.name,
    )


def _begin_behind(recovered: Recovered, retention: Retention) -> int:
    """With retained files and no journal, go on with their numbers; returns the number of the first segment."""
    mark = None if recovered.segments else retention.mark()
    if mark is None:
        return 1
    recovered.next_lsn = mark.lsn + 1
    recovered.batch_number = mark.batch.number
    recovered.index.message_id_max = mark.batch.message_id
    recovered.index.queue_id_max = mark.batch.queue_id
    return mark.number + 1


def _report(recovered: Recovered, directory: Path) -> list[str]:
    """What a person should know of the recovery."""
    lines = damage_lines(recovered, str(directory))
    if recovered.segments:
        index = recovered.index
        pages = index.pages.pages()
        in_pages = f" and {sum(map(index.pages.left, pages))} in {len(pages)} pages" if pages else ""
        lines.append(
            f"recovered {len(index.home)} messages{in_pages} from {recovered.record_count} records in"
            f" {len(recovered.segments)} journal files"
        )
    return lines


def _is_crowded(config: BrokerConfig, directory: str) -> bool:
    """Is the disk with the retained log so full that nobody may hold anything of it back?"""
    return is_full(config.max_disk_usage, config.min_disk_free, space_of(directory))


def _say(line: str) -> None:
    warn(line)


class _Progress:
    """Says how far a long recovery is: a line that rewrites itself on a terminal, one line per tenth elsewhere."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._told = -1

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._started < _PROGRESS_AFTER_S:
            return
        tenths = done * 10 // total
        if sys.stderr.isatty():
            end = os.linesep if done == total else ""
            print(f"\rrecovering: {done} of {total} journal files", end=end, file=sys.stderr, flush=True)
        elif tenths != self._told:
            self._told = tenths
            warn(f"recovering: {done} of {total} journal files")
