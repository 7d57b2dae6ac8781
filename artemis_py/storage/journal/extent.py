"""Records which journal files must exist, because the remaining files cannot show that one is missing.

Two small files store the same: the number of the first valid journal file and of the last one written, and its end if
an orderly stop recorded it. The first number is raised, durably, before a file is deleted: so files below it may
reappear after a crash and are ignored, and any other absent file is missing. One of the two copies may be damaged; the
newer valid one counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Final

from artemis_py.storage.disk.disk import Disk, DiskError, NoSpaceError
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.records import CodecError

NAMES: Final = ("journal-extent-1", "journal-extent-2")
_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class JournalExtent:
    """Journal files ``first`` to ``last`` are valid. ``end_lsn`` is the last lsn (ignoring BATCH records) recorded by
    an orderly stop; 0: unknown, because the file is being written or the broker was killed.
    """

    first: int
    last: int
    end_lsn: int = 0


@dataclass(frozen=True, slots=True)
class StoredExtent:
    """What the two files contain. ``faults`` names those that are damaged, or missing although the other exists."""

    extent: JournalExtent | None
    generation: int
    faults: tuple[str, ...]


def read_extent(disk: Disk) -> StoredExtent:
    """Read a journal's extent files. Raises DiskError."""
    names = set(disk.names())
    found: list[tuple[int, JournalExtent]] = []
    faults: list[str] = []
    for name in NAMES:
        if name not in names:
            faults.append(f"{name} is missing")
            continue
        try:
            record = records.decode_record(disk.read(name), 0)
            if record is None:
                raise CodecError("it is empty")
            found.append((record.lsn, JournalExtent(**codec.decode_fields(record.payload))))
        except (CodecError, TypeError, ValueError) as error:
            faults.append(f"{name} is DAMAGED: {error}")
    if not found:
        stored = faults if len(faults) != sum(fault.endswith("is missing") for fault in faults) else ()
        return StoredExtent(None, 0, tuple(stored))
    generation, extent = max(found, key=lambda one: one[0])
    return StoredExtent(extent, generation, tuple(faults))


class ExtentFiles:
    """Writes the two files. For one thread at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        stored = read_extent(disk)
        self._generation = stored.generation
        self._extent = stored.extent
        self._unsure: JournalExtent | None = None
        """What a write may have put there although the disk refused it."""
        self._made = set(disk.names()).intersection(NAMES)

    def save(self, extent: JournalExtent) -> None:
        """Store this in both files, durably. Raises DiskError."""
        self._extent = extent
        self._write(NAMES)
        self._unsure = None

    def reach(self, number: int, first: int) -> None:
        """A journal file was written for the first time; ``first`` is used if there was none before. Only one copy is
        updated: if it is lost, the other is also true. Raises DiskError.
        """
        former = self._extent
        try:
            if former is None:
                self.save(JournalExtent(first, number))
            elif number > former.last:
                self._extent = JournalExtent(former.first, number)
                self._write(NAMES[:1])
        except NoSpaceError:  # the next file records it
            self._unsure, self._extent = self._extent, former

    def begin_at(self, number: int) -> None:
        """Files with lower numbers are no longer valid and may be deleted. Raises DiskError."""
        former = self._extent
        stored = former or self._unsure
        if stored is None or number <= stored.first:
            return
        try:
            self._save_or_correct(replace(stored, first=number))
        except DiskError:
            self._extent = former
            raise

    def note_deleted(self) -> None:
        """A file that ``begin_at`` let go is deleted. Where a full disk never took an extent, that has to be durable:
        the file may not come back while a later one, deleted too, does not. Raises DiskError.
        """
        if not self._made:
            self._disk.sync_names()

    def _save_or_correct(self, extent: JournalExtent) -> None:
        """Store this in both files, or without room for a new one in those that are there: a file is to go, and that
        makes room.
        """
        try:
            self.save(extent)
        except NoSpaceError:
            if len(self._made) == len(NAMES):
                raise
            self._write(tuple(name for name in NAMES if name in self._made))
            self._unsure = None

    def end_at(self, lsn: int) -> None:
        """Nothing more will be written. If the disk refuses this note, that does not matter."""
        if self._extent is not None:
            try:
                self.save(replace(self._extent, end_lsn=lsn))
            except DiskError:
                return

    def _write(self, names: tuple[str, ...]) -> None:
        assert self._extent is not None
        self._generation += 1
        record = records.encode_record(records.EXTENT, self._generation, codec.encode_fields(asdict(self._extent)))
        for name in names:
            if name not in self._made:
                self._disk.create(name, _BYTES)
                self._made.add(name)
            self._disk.write(name, 0, record + bytes(_BYTES - len(record)))
            self._disk.sync(name)
