"""``--accept-loss``: a journal that a broker must not start with is repaired before the broker starts."""

from __future__ import annotations

from pathlib import Path

from artemis_py.config.settings import BrokerConfig
from artemis_py.storage.disk import DirectoryLock, FileDisk
from artemis_py.storage.examination import examine
from artemis_py.storage.findings import orphan_lines, what_is_left
from artemis_py.storage.repair import repair


def accept_losses(config: BrokerConfig) -> list[str]:
    """Repair the journal if it needs that; returns lines that tell of it. Raises DiskError, LockedError, and
    VersionError.
    """
    directory = Path(config.journal_directory)
    if not directory.is_dir():
        return []
    lock = DirectoryLock(directory)
    try:
        examined = examine(FileDisk(directory))
        if not examined.reasons:
            return []
        left = what_is_left(examined)
        repaired = repair(directory, config.journal_file_size)
        return [
            *(f"warning: accepted: {reason}" for reason in examined.reasons),
            *orphan_lines(examined),
            f"warning: {directory} was repaired: {left}. The files as they were are in {repaired.folder}",
        ]
    finally:
        lock.release()
