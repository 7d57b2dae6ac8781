"""``--accept-loss``: repairs a journal that would refuse a start, and gives up what other directories lack."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from artemis_py.config.settings import BrokerConfig
from artemis_py.server.journal_store import data_directories
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.recovery.damage_report import orphan_lines, what_is_left
from artemis_py.storage.recovery.examination import examine
from artemis_py.storage.recovery.missing_files import missing_files, note_given_up, read_given_up
from artemis_py.storage.recovery.repair import repair


def accept_losses(config: BrokerConfig, held: DirectoryLock | None = None) -> list[str]:
    """Repair the journal if needed, and note which other files a start does without; returns lines about it. ``held``
    is the directory's lock, if the broker already has it. Raises DiskError, LockedError and VersionError.
    """
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
