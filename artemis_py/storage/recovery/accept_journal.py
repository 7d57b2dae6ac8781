"""Accepts a journal at a start and cuts off its torn end, or refuses a journal that has lost too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from artemis_py.errors import ArtemisError
from artemis_py.storage.disk.disk import Disk, DiskError, keep_copy
from artemis_py.storage.format import records
from artemis_py.storage.format.records import FileHeader
from artemis_py.storage.journal.extent import ExtentFiles, JournalExtent
from artemis_py.storage.recovery.examination import Examined, Reading, examine, kept_extent
from artemis_py.storage.recovery.missing_files import DataDirectories, missing_files, read_given_up

if TYPE_CHECKING:
    from artemis_py.storage.recovery.examination import Examined


# ---- loss ------------------------------------------------------------------------------------------------------------
#
# The error of a start that would lose too much.


class LossError(ArtemisError):
    """The losses are too large for a start: journal files, queues, many records, all large bodies, or all pages.
    ``examined`` has the details.
    """

    def __init__(self, examined: Examined) -> None:
        super().__init__("; ".join(examined.losses))
        self.examined = examined


# ---- recovery --------------------------------------------------------------------------------------------------------
#
# Recovers from the journal's files (``examination``), or refuses if whole files or queues would be lost. Nothing is
# changed before everything was read and accepted (``examine_or_refuse``), which includes a check that large bodies and
# pages are in their places. Then the end of a torn write is cut off, damaged files are copied aside (quarantine), and
# reappeared deleted files are removed again.


Recovered = Examined
_NOWHERE: Final = DataDirectories()


def recover(disk: Disk) -> Recovered:
    """Read all segments and prepare them for the journal to continue. Raises DiskError, VersionError, and LossError,
    which leaves every file unchanged.
    """
    examined = examine_or_refuse(disk)
    accept(disk, examined)
    return examined


def examine_or_refuse(
    disk: Disk, progress: Callable[[int, int], None] | None = None, directories: DataDirectories = _NOWHERE
) -> Examined:
    """Read all segments, and check that the other files they refer to are in their ``directories``. Raises DiskError,
    VersionError and LossError. Nothing is changed in any directory.
    """
    examined = examine(disk, progress)
    examined.absent = missing_files(examined.index, directories, read_given_up(disk).names)
    if examined.losses:
        raise LossError(examined)
    return examined


def accept(disk: Disk, examined: Examined) -> None:
    """Repair what needs it. The extent is written when each file has a header, and before any file is removed. Raises
    DiskError.
    """
    for reading in examined.readings:
        if any(not damage.torn for damage in reading.damages):
            keep_copy(disk, reading.segment.name)
    _repair_segments(
        disk, [reading for reading in examined.readings if reading.header is None and not reading.is_empty]
    )
    extent = kept_extent(examined)
    if extent is not None:
        _save_extent(disk, extent, examined)
    _repair_segments(disk, [reading for reading in examined.readings if reading.header is not None or reading.is_empty])
    for name in examined.leftovers:
        disk.delete(name)
    examined.index.drop_orphans()


def _save_extent(disk: Disk, extent: JournalExtent, examined: Examined) -> None:
    """Write the extent. A disk that refuses it is only an error if the extent matters."""
    stored = examined.stored.extent
    if extent == stored and not examined.stored.faults:
        return
    try:
        ExtentFiles(disk).save(extent)
    except DiskError:
        if stored is None or (extent.first, extent.last) != (stored.first, stored.last):
            raise


def _repair_segments(disk: Disk, readings: list[Reading]) -> None:
    for reading in readings:
        _repair_segment(disk, reading)


def _repair_segment(disk: Disk, reading: Reading) -> None:
    """Remove what is invalid, and rewrite a damaged header."""
    segment = reading.segment
    if reading.is_empty:
        disk.delete(segment.name)
        return
    if reading.torn_from >= 0:
        disk.write(segment.name, reading.torn_from, bytes(max(reading.size_bytes - reading.torn_from, 0)))
    made_bytes = 0 if reading.header is None else reading.header.made_bytes
    if reading.size_bytes < made_bytes:
        disk.write(segment.name, reading.size_bytes, bytes(made_bytes - reading.size_bytes))
    if reading.header is None:
        header = FileHeader(
            records.KIND_JOURNAL, segment.number, segment.first_lsn, 0, reading.before_lsn, reading.size_bytes
        )
        disk.write(segment.name, 0, records.encode_file_header(header))
    if reading.damages:
        disk.sync(segment.name)
