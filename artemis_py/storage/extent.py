"""Which journal files there have to be: what nobody could tell from the files that are left when one is missing.

Two small files say the same: the number of the first journal file that counts and of the last one that was written to,
and where that ends, if an orderly stop has told. The first is moved, durably, before a file is deleted: so what stands
below it may be there again after a crash and means nothing, and whatever lacks from there on is missing. Of two copies
one may be damaged; the newer whole one counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Final

from artemis_py.storage import codec
from artemis_py.storage.codec import CodecError
from artemis_py.storage.disk import Disk, DiskError, NoSpaceError

NAMES: Final = ("journal-extent-1", "journal-extent-2")
_BYTES: Final = 512
_TYPE: Final = 200
"""Of the one record in such a file; its lsn counts how often the extent was written."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Journal files ``first`` to ``last`` count. ``end_lsn``: the last of them ends with the record of this lsn (BATCH
    records aside), as an orderly stop has left it; 0: nobody knows, it is being written to or the broker was killed.
    """

    first: int
    last: int
    end_lsn: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What the two files say. ``faults`` names those that are damaged or missing although the other is there."""

    extent: Extent | None
    generation: int
    faults: tuple[str, ...]


def read_extent(disk: Disk) -> Told:
    """What the files of a journal say of it. Raises DiskError."""
    names = set(disk.names())
    found: list[tuple[int, Extent]] = []
    faults: list[str] = []
    for name in NAMES:
        if name not in names:
            faults.append(f"{name} is missing")
            continue
        try:
            record = codec.decode_record(disk.read(name), 0)
            if record is None:
                raise CodecError("it is empty")
            found.append((record.lsn, Extent(**codec.decode_fields(record.payload))))
        except (CodecError, TypeError, ValueError) as error:
            faults.append(f"{name} is DAMAGED: {error}")
    if not found:
        told = faults if len(faults) != sum(fault.endswith("is missing") for fault in faults) else ()
        return Told(None, 0, tuple(told))
    generation, extent = max(found, key=lambda one: one[0])
    return Told(extent, generation, tuple(faults))


class ExtentFiles:
    """Writes the two files. In use by one thread at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        told = read_extent(disk)
        self._generation = told.generation
        self._extent = told.extent
        self._made = set(disk.names()).intersection(NAMES)

    def save(self, extent: Extent) -> None:
        """Both say this from now on, durably. Raises DiskError."""
        self._extent = extent
        self._write(NAMES)

    def reach(self, number: int, first: int) -> None:
        """A journal file was written to for the first time; ``first`` counts when there was none before. Only one copy
        says so: if that is lost, what the other says is true as well. Raises DiskError.
        """
        former = self._extent
        try:
            if former is None:
                self.save(Extent(first, number))
            elif number > former.last:
                self._extent = Extent(former.first, number)
                self._write(NAMES[:1])
        except NoSpaceError:  # the next file will tell
            self._extent = former

    def begin_at(self, number: int) -> None:
        """Files with lower numbers no longer count and may go. Raises DiskError."""
        former = self._extent
        if former is not None and number > former.first:
            try:
                self.save(replace(former, first=number))
            except DiskError:
                self._extent = former
                raise

    def end_at(self, lsn: int) -> None:
        """Nothing more will be written. A disk that does not take that is no reason to complain at the end."""
        if self._extent is not None:
            try:
                self.save(replace(self._extent, end_lsn=lsn))
            except DiskError:
                return

    def _write(self, names: tuple[str, ...]) -> None:
        assert self._extent is not None
        self._generation += 1
        record = codec.encode_record(_TYPE, self._generation, codec.encode_fields(asdict(self._extent)))
        for name in names:
            if name not in self._made:
                self._disk.create(name, _BYTES)
                self._made.add(name)
            self._disk.write(name, 0, record + bytes(_BYTES - len(record)))
            self._disk.sync(name)
