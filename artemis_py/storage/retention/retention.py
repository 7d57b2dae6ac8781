"""Retention: closed journal files move to their own directory instead of being deleted, and are removed by age and
size.

A retained file's name has its number and the time of its last write, so that a listing sorts by both:
``artemis-journal-000000000012-20260131T235959.999Z.log``. Files are removed strictly oldest first, so the kept log has
no holes. Large bodies are kept as long as a journal file that may refer to them. A file that a reader still needs
(``RetentionHolds``), and all later ones, stay until the disk is too full.

The kept files are remembered, so adding one costs the same however many there are.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from artemis_py.atomic_files import sync_path
from artemis_py.log_codes import STORAGE
from artemis_py.storage.bodies import RetiredBodies
from artemis_py.storage.disk.disk import Disk, DiskError, FileDisk, no_room_or
from artemis_py.storage.disk.permissions import begin_private, make_private
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.address_index import PLACES_SUFFIX, places_name
from artemis_py.storage.format.codec import BatchHeader
from artemis_py.storage.format.names import RETAINED_FOLDER, read_name, segment_name, start_of
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.scan import Damage, LogFile, is_log_name, log_file, log_files, whole_records
from artemis_py.storage.format.segment_index import INDEX_SUFFIX, decode_index, index_name
from artemis_py.storage.journal.index_files import write_survey
from artemis_py.terminal_output import warn

_UNFINISHED: Final = ".part"
_LSN_MAX: Final = (1 << 64) - 1
_INDEX_HEAD_BYTES: Final = 256
_LAST_MS: Final = re.compile(rb'"last_ms":(\d+),')


def wall_clock_ms() -> int:
    """The time of day in epoch milliseconds."""
    return int(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """``journal-retention-directory`` with ``period`` and ``storage-limit``; None: no such limit."""

    directory: Path
    period_ms: int | None
    bytes_max: int | None


class RetentionHolds(ABC):
    """The readers that still need the retained log. Called in the committer's thread."""

    @abstractmethod
    def held_from(self) -> int | None:
        """The lowest lsn still unread by a reader; None: nothing is held back."""

    @abstractmethod
    def is_crowded(self) -> bool:
        """Is the disk too full for anything to be held back?"""

    @abstractmethod
    def overrun(self, file_name: str, size_bytes: int, last_lsn: int) -> None:
        """A file was removed although a reader held it back."""


@dataclass(frozen=True, slots=True)
class RetainedFile:
    """A retained file. ``first_lsn`` and ``begun_ms`` are from its header, 0 if that is damaged. ``last_ms``, the
    latest time of a batch in it, is from its index, None without one: clocks are set back, so no other file says it.
    """

    file: LogFile
    first_lsn: int
    begun_ms: int
    size_bytes: int
    last_ms: int | None


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of the retained log: a new journal begins after it, so that no number is reused."""

    number: int
    lsn: int
    batch: BatchHeader


class Retention:
    """Keeps the files that the journal in ``journal_directory`` retires. ``bodies`` are kept with them and count
    towards the limit. ``holds`` can prevent the removal of files. Every method may raise DiskError.
    """

    def __init__(
        self,
        disk: Disk,
        journal_directory: Path,
        settings: RetentionSettings,
        clock_ms: Callable[[], int] = wall_clock_ms,
        bodies: RetainedBodies | None = None,
        holds: RetentionHolds | None = None,
    ) -> None:
        self.files: tuple[RetainedFile, ...] = ()
        """The retained files, oldest first. Other threads may read it: it is replaced, never changed."""
        self.size_bytes = 0
        """The size of all retained files."""
        self._arriving: LogFile | None = None
        """The file being moved, or moved last: it is in ``kept`` before the next one is."""
        self._disk = disk
        self._journal_directory = journal_directory
        self._settings = settings
        self._clock_ms = clock_ms
        self._bodies = bodies
        self._holds = holds
        self.directory = settings.directory
        self._stamp = _DirectoryStamp(self.directory)
        self._journal_begun_ms: dict[str, int] = {}
        """When the journal's files were begun, by name."""
        try:
            make_private(self.directory)
            for path in self.directory.glob(f"*{_UNFINISHED}"):
                path.unlink()
            for suffix in (INDEX_SUFFIX, PLACES_SUFFIX):
                for path in self.directory.glob(f"*{suffix}"):
                    if not path.with_suffix(".log").exists():
                        path.unlink()
        except OSError as error:
            raise self._failed(error) from None
        self.purge()

    def retire(self, name: str) -> None:
        """Take over a segment that the journal no longer needs. Its sidecar files move first, so that they are there
        when the segment is.
        """
        source = self._journal_directory / name
        try:
            self._list_if_changed()
            closed_ms = source.stat().st_mtime_ns // 1_000_000
            target = self.directory / retained_name(name, closed_ms)
            self._arriving = log_file(target)
            for named in (places_name, index_name):
                beside = self._journal_directory / named(name)
                if beside.exists():
                    move(beside, target.with_name(named(target.name)))
            move(source, target)
            self._add(target)
        except OSError as error:
            raise self._failed(error) from None
        self._disk.delete(places_name(name))
        self._disk.delete(index_name(name))
        self._disk.delete(name)
        self.purge()

    def put_beside(self, path: Path, fields: dict[str, Any], places: bytes) -> None:
        """Write a survey next to a retained file. Raises OSError, and CodecError if its index is incomplete."""
        self._list_if_changed()
        write_survey(path, fields, places)
        self._stamp.note()

    def since(self, lsn: int) -> tuple[RetainedFile, ...]:
        """All retained files with records after an lsn, oldest first. For any thread."""
        kept = self.files
        for place in range(len(kept) - 1, -1, -1):
            if 0 < kept[place].first_lsn <= lsn + 1:
                return kept[place:]
        return kept

    def find(self, number: int) -> RetainedFile | None:
        """The retained file of a segment, or None. For any thread."""
        kept = self.files
        place = bisect_left(kept, number, key=_number)
        return kept[place] if place < len(kept) and kept[place].file.number == number else None

    def path_of(self, number: int) -> Path | None:
        """Where a segment is that left the journal; None if it was removed. For any thread: a file is known here before
        it is moved.
        """
        arriving = self._arriving  # first, so that a segment is always arriving or kept
        if arriving is not None and arriving.number == number:
            return arriving.path
        kept = self.find(number)
        return None if kept is None else kept.file.path

    def purge(self) -> None:
        """Delete files that are too old, and the oldest ones beyond the size limit."""
        try:
            self._list_if_changed()
            while self.files and self._is_too_old(self.files[0].file) and self._may_remove():
                self._remove_oldest()
            self._purge_bodies()
            if self._settings.bytes_max is not None:
                self._purge_to(self._settings.bytes_max)
        except OSError as error:
            raise self._failed(error) from None

    def give_up_oldest(self) -> str | None:
        """Remove the oldest file, even if a reader holds it: the journal has no room on the same file system. If no
        segment is left, remove the oldest body. Returns its name, or None if there is none.
        """
        try:
            self._list_if_changed()
            if not self.files:
                return None if self._bodies is None else self._bodies.give_up_oldest()
            oldest = self.files[0]
            held_from = None if self._holds is None else self._holds.held_from()
            if self._holds is not None and held_from is not None and held_from <= _last_lsn(self.files):
                self._holds.overrun(oldest.file.path.name, oldest.size_bytes, _last_lsn(self.files))
            self._remove_oldest()
            self._purge_bodies()
            sync_path(self.directory)  # some file systems free the room no sooner
        except OSError as error:
            raise self._failed(error) from None
        return oldest.file.path.name

    def _is_too_old(self, file: LogFile) -> bool:
        period_ms = self._settings.period_ms
        return period_ms is not None and (file.closed_ms or 0) < self._clock_ms() - period_ms

    def _purge_to(self, bytes_max: int) -> None:
        body_bytes = 0 if self._bodies is None else self._bodies.size_bytes
        while self.files and self.size_bytes + body_bytes > bytes_max:
            if not self._may_remove():
                return
            self._remove_oldest()
            body_bytes = self._purge_bodies()
        if self._bodies is not None and body_bytes > bytes_max:
            self._bodies.purge_to(bytes_max, self._bodies_held_from())

    def _bodies_held_from(self) -> int | None:
        """The lowest lsn whose body a reader still needs, where only the journal's files refer to bodies; None: none,
        or the disk is too full.
        """
        held_from = None if self._holds is None else self._holds.held_from()
        return None if self._holds is None or held_from is None or self._holds.is_crowded() else held_from

    def _may_remove(self) -> bool:
        """May the oldest be removed? Calls ``overrun`` if a reader held it back."""
        if self._holds is None:
            return True
        held_from = self._holds.held_from()
        if held_from is None:
            return True
        last_lsn = _last_lsn(self.files)
        if last_lsn < held_from:
            return True
        if not self._holds.is_crowded():
            return False
        self._holds.overrun(self.files[0].file.path.name, self.files[0].size_bytes, last_lsn)
        return True

    def _remove_oldest(self) -> None:
        oldest = self.files[0]
        self.size_bytes -= oldest.size_bytes
        self.files = self.files[1:]  # before the file is removed: no reader is sent to a missing file
        path = oldest.file.path
        path.unlink(missing_ok=True)
        path.with_name(index_name(path.name)).unlink(missing_ok=True)
        path.with_name(places_name(path.name)).unlink(missing_ok=True)
        self._stamp.note()

    def _purge_bodies(self) -> int:
        """Delete bodies that no remaining file can refer to; returns the size of the others."""
        if self._bodies is None:
            return 0
        if self.files:
            self._bodies.purge_before(self._first_begun_ms())
        elif self._settings.period_ms is not None:
            self._bodies.purge_before(self._clock_ms() - self._settings.period_ms, self._bodies_held_from())
        return self._bodies.size_bytes

    def _first_begun_ms(self) -> int:
        """Every remaining file was begun at this time or later, also those of the journal: clocks are set back. 0 if
        the oldest does not say when; later ones that do not are left out, otherwise nothing would go for long.
        """
        if not self.files[0].begun_ms:
            return 0
        names = list(filter(is_log_name, os.listdir(self._journal_directory)))
        known = self._journal_begun_ms
        self._journal_begun_ms = {name: known.get(name) or _begun_ms(self._journal_directory / name) for name in names}
        retained_ms = [one.begun_ms for one in self.files]
        return min(filter(None, retained_ms + list(self._journal_begun_ms.values())))

    def _list_if_changed(self) -> None:
        """List the directory again if others changed it."""
        if self._stamp.is_foreign():
            self._list()

    def _list(self) -> None:
        """Known files are not read again, unless they had no index."""
        self._stamp.note()  # before the listing, so that later changes are noticed
        known = {one.file.path: one for one in self.files if one.last_ms is not None}
        self.files = tuple(known.get(file.path) or _retained_file(file) for file in self._listed_files())
        self.size_bytes = sum(one.size_bytes for one in self.files)

    def _add(self, path: Path) -> None:
        """Add a file."""
        file = log_file(path)
        if file is None or (
            self.files and file.number <= self.files[-1].file.number
        ):  # a crash left it in both directories
            self._list()
            return
        new = _retained_file(file)
        self._stamp.note()
        self.size_bytes += new.size_bytes
        self.files = (*self.files, new)

    def log_end(self) -> LogEnd | None:
        """The end of the retained files; None if there are none."""
        try:
            files = self._listed_files()
            if not files:
                return None
            data = files[-1].path.read_bytes()
        except OSError as error:
            raise self._failed(error) from None
        lsn, batch = 0, BatchHeader(0, 0, 0, 0)
        damages: list[Damage] = []
        for record in whole_records(files[-1].path.name, data, damages, is_last=False):
            lsn = max(lsn, record.lsn)
            if record.type_code == records.BATCH:
                batch = codec.decode_batch(record.payload)
        return LogEnd(files[-1].number, lsn, batch)

    def _listed_files(self) -> list[LogFile]:
        return [file for file in log_files([self.directory]) if file.closed_ms is not None]

    def _failed(self, error: OSError) -> DiskError:
        return no_room_or(error, error.filename or self.directory)


def _retained_file(file: LogFile) -> RetainedFile:
    size_bytes = file.path.stat().st_size
    with file.path.open("rb") as stream:
        try:
            header = records.decode_file_header(stream.read(records.FILE_HEADER_BYTES))
        except CodecError:
            return RetainedFile(file, 0, 0, size_bytes, None)
    return RetainedFile(file, header.first_lsn, header.created_ms, size_bytes, _last_ms(file.path))


def _last_ms(path: Path) -> int | None:
    """From the beginning of the index beside a segment: all of it may be long, and a start reads as many as there are
    files.
    """
    try:
        with path.with_name(index_name(path.name)).open("rb") as stream:
            found = _LAST_MS.search(stream.read(_INDEX_HEAD_BYTES))
    except OSError:
        return None
    return None if found is None else int(found[1])


def _number(kept: RetainedFile) -> int:
    return kept.file.number


def _last_lsn(kept: Sequence[RetainedFile]) -> int:
    """The highest lsn in the oldest file, from the beginning of the next one; a single file has it in its index."""
    for following in kept[1:]:
        if following.first_lsn:
            return following.first_lsn - 1
    path = kept[0].file.path
    try:
        last_lsn = decode_index(path.with_name(index_name(path.name)).read_bytes())["last_lsn"]
    except (OSError, CodecError, KeyError):
        return _LSN_MAX
    return int(last_lsn)


def retained_name(name: str, closed_ms: int) -> str:
    """The name of a segment when it is retained."""
    file = log_file(Path(name))
    if file is None:
        raise DiskError(f"{name} is not the name of a journal file")
    return f"{Path(name).stem}-{_shown_time(closed_ms)}.log"


# ---- retire callbacks ------------------------------------------------------------------------------------------------
#
# What becomes of files that the broker no longer needs: deleted, or taken over by the retained log.


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireCallbacks:
    """Callables that take over files that are retired. Without arguments: the files are deleted."""

    retire_segment: Callable[[str], None] | None = None
    """Takes over a segment, by name, and what is beside it. In the committer's thread."""
    retire_body: Callable[[str, int], None] | None = None
    """Takes over a large body, by name, and up to which lsn records refer to it. In the body writer's thread."""
    regular_tasks: Callable[[], None] | None = None
    """Removes what is too old. In the committer's thread."""
    indexed: Callable[[int], None] | None = None
    """Takes the number of a segment that was closed and has its index beside it. In the committer's thread."""
    log_end: Callable[[], LogEnd | None] | None = None
    """Returns how far the files reach that were taken over. Asked when the journal has no file itself."""
    bodies: RetiredBodies | None = None
    """The bodies that ``retire_body`` takes over."""
    body_start_min: int = 1
    """The lowest number of a start whose large bodies cannot be among those that were taken over."""


# ---- retained log ----------------------------------------------------------------------------------------------------
#
# The retained log of a broker as a whole: its segments, its large bodies, and surveys next to segments for readers. A
# segment is in the journal's directory first. It moves to that of retention when the journal no longer needs it.


class RetainedLog:
    """Keeps segments that the journal on ``disk`` no longer needs, and bodies from ``body_disk``. ``holds`` are the
    readers that may prevent a removal. Raises DiskError.
    """

    def __init__(self, disk: FileDisk, body_disk: FileDisk, settings: RetentionSettings, holds: RetentionHolds) -> None:
        self._disk = disk
        self._bodies = RetainedBodies(body_disk, body_disk.directory, disk.directory, settings.directory, wall_clock_ms)
        self.retention = Retention(disk, disk.directory, settings, bodies=self._bodies, holds=holds)

    def retire_callbacks(self, indexed: Callable[[int], None]) -> RetireCallbacks:
        """What takes over files that the broker no longer needs. ``indexed`` gets the number of each segment that can
        be surveyed, in the committer's thread.
        """
        return RetireCallbacks(
            retire_segment=self.retention.retire,
            retire_body=self._bodies.retire,
            regular_tasks=self.retention.purge,
            indexed=indexed,
            log_end=self.retention.log_end,
            bodies=self._bodies,
            body_start_min=self._bodies.start_min,
        )

    def path_of(self, number: int) -> Path | None:
        """Where a segment is, in the journal or retained; None if it was removed. For any thread."""
        path = self._disk.directory / segment_name(number)
        return path if path.exists() else self.retention.path_of(number)

    def put_beside(self, number: int, fields: dict[str, Any], places: bytes) -> None:
        """Write a survey next to a closed segment. Call it in the committer's thread, which alone moves segments. The
        survey is optional: a failure of the disk is ignored.
        """
        if not self._disk.has_room:
            return
        with suppress(OSError, CodecError):
            kept = self.retention.find(number)
            if kept is not None:
                self.retention.put_beside(kept.file.path, fields, places)
            elif (path := self._disk.directory / segment_name(number)).exists():
                write_survey(path, fields, places)


# ---- retained bodies -------------------------------------------------------------------------------------------------
#
# They move to their own folder when no queue needs them any more. A retained body's name ends with the time of the
# move: ``0000000100000002-20260131T235959.999Z.body``. Every record that refers to it is in a segment that existed by
# then. Clocks are set back, so the time is never before the beginning of the newest
# segment: that one stays as long as any with such a record. The bodies are remembered, so adding one costs the same
# however many there are.


@dataclass(frozen=True, slots=True, order=True)
class _Body:
    """A retained body. Bodies sort by the time of retirement, which is in the name as text."""

    retired: str
    path: Path
    size_bytes: int
    number: int


class RetainedBodies(RetiredBodies):
    """Keeps bodies of ``body_directory``, which records in ``journal_directory`` refer to, below the directory of the
    retained log. The thread that writes bodies retires them; the journal's thread purges them. Every method may raise
    DiskError.

    Any thread may hold a body. While it is held, it is removed only from a full disk.
    """

    def __init__(
        self,
        disk: Disk,
        body_directory: Path,
        journal_directory: Path,
        log_directory: Path,
        clock_ms: Callable[[], int],
    ) -> None:
        self._disk = disk
        self._body_directory = body_directory
        self._journal_directory = journal_directory
        self._directory = log_directory / RETAINED_FOLDER
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._kept: list[_Body] = []
        self._kept_bytes = 0
        self._by_number: dict[int, _Body] = {}
        self._holders: dict[int, int] = {}
        self._moving: dict[int, Path] = {}
        """Bodies that are being taken over: they are still where they were, or here already."""
        self._lsns: dict[int, int] = {}
        """Up to where every record is that refers to a body; of those missing here, up to ``_first_lsn``."""
        self._first_lsn = 0
        """The first lsn that was given since the start; 0: none yet."""
        self._hold_lock = threading.Lock()
        """For what begins with ``_by_number``. Nobody works on files while having it."""
        self._stamp = _DirectoryStamp(self._directory)
        try:
            make_private(self._directory)
            for path in self._directory.glob(f"*{_UNFINISHED}"):
                path.unlink()
        except OSError as error:
            raise self._failed(error) from None

    def retire(self, name: str, lsn: int) -> None:
        """Take over a body that only the log needs, in records up to an lsn (0: unknown). If it is gone, that is
        reported, but no message needs it.
        """
        source = self._body_directory / name
        if self._body_directory.is_dir() and not source.exists():
            warn(f"warning: {source} was removed by someone else and is not retained", STORAGE)
            return
        stem, dot, kind = name.partition(".")
        with self._listed():
            moved_ms = max(self._clock_ms(), self._newest_begun_ms())
        target = self._directory / f"{stem}-{_shown_time(moved_ms)}{dot}{kind}"
        body_file = read_name(name)
        number = 0 if body_file is None else body_file.number
        with self._hold_lock:
            self._moving[number] = target
            if lsn:
                self._lsns[number] = lsn
                self._first_lsn = self._first_lsn or lsn
        try:
            move(source, target)  # a copy may take long, but nothing waits for it
            self._add(target)
        except OSError as error:
            raise self._failed(error) from None
        finally:
            with self._hold_lock:
                del self._moving[number]
        self._disk.delete(name)

    def _newest_begun_ms(self) -> int:
        """When the newest segment was begun whose header can be read: the journal may just be making one."""
        for directory in (self._journal_directory, self._directory.parent):
            for name in sorted(filter(is_log_name, os.listdir(directory)), reverse=True):
                begun = _begun_ms(directory / name)
                if begun:
                    return begun
        return 0

    def _add(self, path: Path) -> None:
        """Add a body. The other thread may have listed it already."""
        body = _body(path)
        assert body is not None
        with self._lock:
            self._stamp.note()
            place = bisect_left(self._kept, body)
            if self._kept[place : place + 1] != [body]:
                self._kept.insert(place, body)
                self._kept_bytes += body.size_bytes
                with self._hold_lock:
                    self._by_number[body.number] = body

    # ---- holders ---------------------------------------------------------------------------------

    def hold_if_known(self, number: int) -> bool:
        with self._hold_lock:
            if number not in self._by_number:
                return False
            self._holders[number] = self._holders.get(number, 0) + 1
        return True

    def is_whole(self, number: int, size_bytes: int) -> bool:
        with self._listed(), self._hold_lock:
            body = self._by_number.get(number)
        return body is not None and body.size_bytes >= size_bytes

    def hold(self, number: int, size_bytes: int) -> None:
        """Add a holder of a body that is here or on its way."""
        with self._hold_lock:
            self._holders[number] = self._holders.get(number, 0) + 1

    def release(self, number: int) -> None:
        with self._hold_lock:
            left = self._holders[number] - 1
            if left:
                self._holders[number] = left
            else:
                del self._holders[number]

    def read(self, number: int, offset: int, size_bytes: int) -> bytes:
        with self._hold_lock:
            body = self._by_number.get(number)
            path = self._moving.get(number) if body is None else body.path
        if path is None:
            raise DiskError(f"the body {number:016x} was removed from the retained log")
        try:
            with path.open("rb", buffering=0) as file:
                file.seek(offset)
                return file.read(size_bytes)
        except OSError as error:
            raise self._failed(error) from None

    # ---- removal ---------------------------------------------------------------------------------

    @property
    def start_min(self) -> int:
        """The lowest start number above those of all retained bodies."""
        with self._listed() as kept:
            return max((start_of(body.path.name) or 0 for body in kept), default=0) + 1

    @property
    def size_bytes(self) -> int:
        """The size of all bodies."""
        with self._listed():
            return self._kept_bytes

    def purge_before(self, time_ms: int, held_from: int | None = None) -> None:
        """Delete bodies retired before a time, but none that a record may need from the lsn ``held_from`` on."""
        limit = _shown_time(time_ms)
        with self._listed() as kept:
            place = 0
            while place < len(kept) and kept[place].retired < limit:
                place += not self._remove(place, held_from)

    def purge_to(self, bytes_max: int, held_from: int | None = None) -> None:
        """Delete the oldest until the rest is no larger than this, but none that a record may need from the lsn
        ``held_from`` on.
        """
        with self._listed() as kept:
            place = 0
            while place < len(kept) and self._kept_bytes > bytes_max:
                place += not self._remove(place, held_from)

    def give_up_oldest(self) -> str | None:
        """Delete the oldest to free its room; returns its name, or None if there is none."""
        with self._listed() as kept:
            if not kept:
                return None
            name = kept[0].path.name
            self._remove(0, None, even_if_held=True)
            sync_path(self._directory)
        return name

    def _remove(self, place: int, held_from: int | None, *, even_if_held: bool = False) -> bool:
        """Delete a body, unless somebody holds it; returns whether it is gone."""
        body = self._kept[place]
        with self._hold_lock:
            if body.number in self._holders and not even_if_held:
                return False
            last_lsn = self._lsns.get(body.number, self._first_lsn)
            if held_from is not None and not 0 < last_lsn < held_from:
                return False
            self._by_number.pop(body.number, None)
            self._lsns.pop(body.number, None)
        del self._kept[place]
        self._kept_bytes -= body.size_bytes
        body.path.unlink(missing_ok=True)
        self._stamp.note()
        return True

    @contextmanager
    def _listed(self) -> Iterator[list[_Body]]:
        """All bodies, oldest first, for one thread; the directory is listed again if others changed it."""
        try:
            with self._lock:
                if self._stamp.is_foreign():
                    self._stamp.note()  # before the listing, so that later changes are noticed
                    self._kept = sorted(filter(None, map(_body, self._directory.iterdir())))
                    self._kept_bytes = sum(body.size_bytes for body in self._kept)
                    with self._hold_lock:
                        self._by_number = {body.number: body for body in self._kept}
                yield self._kept
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> DiskError:
        return no_room_or(error, error.filename or self._directory)


def _body(path: Path) -> _Body | None:
    """None for other files."""
    name = read_name(path.name)
    if name is None or name.retired is None:
        return None
    return _Body(name.retired, path, path.stat().st_size, name.number)


# ---- directories and names -------------------------------------------------------------------------------------------


class _DirectoryStamp:
    """Detects whether others added or removed files, so that our own directory need not be listed again. A listing is
    slow: a day of traffic can be ten thousand files. A file system stamps a directory with the time of its last change.
    A change by others at the moment of one of our own is not detected, so a remembered listing may name a file that is
    gone. Both methods raise OSError.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changed_ns = -1

    def is_foreign(self) -> bool:
        """Has the directory changed since ``note``? True at first."""
        return self._directory.stat().st_mtime_ns != self._changed_ns

    def note(self) -> None:
        """All changes so far were ours, or have been listed."""
        self._changed_ns = self._directory.stat().st_mtime_ns


def _begun_ms(path: Path) -> int:
    """When a segment was begun, by its header; 0 if that is damaged, or the file is gone. Raises OSError."""
    try:
        with path.open("rb", buffering=0) as stream:
            return records.decode_file_header(stream.read(records.FILE_HEADER_BYTES)).created_ms
    except (CodecError, FileNotFoundError):
        return 0


def _shown_time(time_ms: int) -> str:
    """A time as in file names: 20260131T235959.999Z."""
    whole, part = divmod(max(time_ms, 0), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y%m%dT%H%M%S}.{part:03}Z"


def move(source: Path, target: Path) -> None:
    """Rename durably, or copy if the target is on another file system. A crash in between leaves both, which is
    harmless: the file is moved again. Raises OSError.
    """
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        unfinished = target.with_name(target.name + _UNFINISHED)
        try:
            begin_private(unfinished)
            shutil.copyfile(source, unfinished)
            sync_path(unfinished)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        os.rename(unfinished, target)
    sync_path(target.parent)
