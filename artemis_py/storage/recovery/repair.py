"""Makes a clean journal from the remains of a damaged one. Nothing is deleted: the old files go to a folder inside it.

The new files are written completely, in a folder of their own. Then one small file lists the moves, and they are
carried out. If a repair is interrupted, the next call continues with the moves, and no broker starts before that.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from artemis_py.atomic_files import sync_path
from artemis_py.storage.disk.disk import DiskError, FileDisk
from artemis_py.storage.disk.group_commit import Commit, Committer, write_commit
from artemis_py.storage.disk.permissions import make_private, replace_private
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.format.records import RECORD_HEADER_BYTES
from artemis_py.storage.journal.bindings_copy import NAME as COPY_NAME
from artemis_py.storage.journal.extent import NAMES as EXTENT_NAMES
from artemis_py.storage.journal.index import Index
from artemis_py.storage.journal.index_files import beside_segment
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings, JournalStart, SegmentCare
from artemis_py.storage.recovery.examination import MOVES_NAME, REPAIRED_NAME, Examined, examine

_NEW: Final = "repaired.part"
_PER_BATCH: Final = 1000
_BATCH_SHARE: Final = 2
"""A file ends with a complete batch: it can be longer than wanted, but hardly twice as long."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair: the number of messages in the new journal, and the folder with the old files."""

    messages: int
    folder: Path


def repair(directory: Path, file_bytes: int) -> Repaired:
    """Write a journal of everything readable. Nothing else may use the directory. Raises DiskError, and VersionError
    for files of another version, which stay as they are.
    """
    try:
        if not (directory / MOVES_NAME).exists():
            _prepare(directory, file_bytes)
        return _carry_out(directory)
    except OSError as error:
        raise DiskError(f"{error.filename or directory}: {error.strerror or error}") from None


def _prepare(directory: Path, file_bytes: int) -> None:
    """Write the new files, and then the list of moves."""
    disk = FileDisk(directory)
    examined = examine(disk)
    shutil.rmtree(directory / _NEW, ignore_errors=True)  # of an interrupted repair: only copies
    new_disk = FileDisk(directory / _NEW)
    with closing(new_disk):
        count = _write(new_disk, examined, file_bytes, _last_number(disk, examined))
    moves = {
        "folder": f"lost+found-{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        "old": [name for name in disk.names() if _is_of_journal(name)],
        "new": new_disk.names(),
        "messages": count,
    }
    replace_private(directory / REPAIRED_NAME, b"")
    replace_private(directory / MOVES_NAME, json.dumps(moves).encode())


def _last_number(disk: FileDisk, examined: Examined) -> int:
    """The number of the last file, as far as known."""
    extent = examined.stored.extent
    named = [segment_number(name) or 0 for name in disk.names()]
    return max([0 if extent is None else extent.last, *named, *(one.segment.number for one in examined.readings)])


def _numbers_gone(examined: Examined, file_bytes: int, last_number: int) -> int:
    """How many numbers may have been used by records lost after the last one: a file's worth for the rest of its file,
    and for each later file. Readers of the log, and clients, have seen them, so they are not reused.
    """
    segments = examined.segments
    files = last_number - segments[-1].number + 1 if segments else last_number
    size_bytes = max([file_bytes, *(reading.size_bytes for reading in examined.readings)])
    return files * _BATCH_SHARE * size_bytes // RECORD_HEADER_BYTES


def _is_of_journal(name: str) -> bool:
    return segment_number(beside_segment(name) or name) is not None or name in (*EXTENT_NAMES, COPY_NAME)


def _write(disk: FileDisk, examined: Examined, file_bytes: int, last_number: int) -> int:
    """Write everything that lives, in files after the one with this number. Returns the number of messages."""
    found = examined.index
    found.drop_orphans()
    index = Index()
    index.addresses, index.queues, index.cursors = found.addresses, found.queues, found.cursors
    index.duplicate_ids, index.pages = found.duplicate_ids, found.pages
    gone = _numbers_gone(examined, file_bytes, last_number)
    index.message_id_max, index.queue_id_max = found.message_id_max + gone, found.queue_id_max
    committer = _AtOnce()
    settings = JournalSettings(file_bytes=file_bytes, compact_files_min=0, files_min=0)
    start = JournalStart(
        index=index,
        next_lsn=examined.next_lsn + gone,
        batch_number=examined.batch_number,
        segment_number=last_number + 1,
    )
    journal = Journal(disk, committer, settings, start=start, care=SegmentCare(retire=lambda _name: None))
    journal.write_bindings()
    count = 0
    living = (kept for segment in examined.segments for kept in list(segment.live.values()))
    while messages := list(islice(living, _PER_BATCH)):
        count += len(messages)
        journal.write_again(messages)
        _make_durable(journal, committer)
    _make_durable(journal, committer)
    journal.finish()
    return count


def _make_durable(journal: Journal, committer: Committer) -> None:
    while journal.has_pending:
        journal.poll()
        journal.seal()
        if committer.failure is not None:
            raise committer.failure
    journal.poll()


class _AtOnce(Committer):
    """Carries out everything before returning."""

    def submit(self, commit: Commit) -> None:
        self.busy = True
        try:
            write_commit(commit)
            self._done = commit
        except DiskError as error:
            self.failure = error

    def run_now(self, commit: Commit) -> None:
        self.submit(commit)

    def later(self, work: Callable[[], None]) -> None:
        try:
            work()
        except DiskError as error:
            self.failure = error

    def stop(self) -> None:
        """There is nothing to finish."""


def _carry_out(directory: Path) -> Repaired:
    """Do the remaining moves: first all old files, then the new ones into their places."""
    moves = json.loads((directory / MOVES_NAME).read_bytes())
    folder = directory / moves["folder"]
    make_private(folder)
    for name in moves["old"]:
        if not (folder / name).exists():
            os.rename(directory / name, folder / name)
    sync_path(folder)
    sync_path(directory)
    for name in moves["new"]:
        if (directory / _NEW / name).exists():
            os.rename(directory / _NEW / name, directory / name)
    sync_path(directory)
    (directory / MOVES_NAME).unlink()
    sync_path(directory)
    shutil.rmtree(directory / _NEW, ignore_errors=True)
    return Repaired(moves["messages"], folder)
