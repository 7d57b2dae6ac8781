"""A disk in memory that forgets and tears what was not synced, loses power at any operation, and fails when told."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from artemis_py.storage.disk.disk import Disk, DiskError, NoSpaceError

SECTOR_BYTES = 512


class PowerCut(BaseException):
    """The power went in the middle of an operation. No broker may catch it: it is no ``Exception``."""


@dataclass
class File:
    """``data`` is what a reader sees, ``durable`` what was there at the last sync, ``unsynced`` the writes since."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)
    named: bool = True
    """Would a crash leave the name?"""

    def write(self, offset: int, data: bytes) -> None:
        """Change what readers see; the medium may or may not follow."""
        _put(self.data, offset, data)
        self.unsynced.append((offset, data))

    def sync(self) -> None:
        """What readers see is what a crash leaves."""
        self.durable = bytearray(self.data)
        self.unsynced.clear()

    def crash(self, rng: random.Random) -> None:
        """Each write since the last sync is kept, lost or torn, independently of the others. Where one was written once
        more, whole sectors are: a disk does not have half of one, and here two halves could meet in it.
        """
        offsets = [offset for offset, _ in self.unsynced]
        for offset, data in self.unsynced:
            is_again = offsets.count(offset) > 1
            for start, end in _surviving(rng, offset, len(data)):
                if is_again:  # with what else stands in the sectors that it begins and ends in
                    first = max(start - (offset + start) % SECTOR_BYTES, 0)
                    last = min(end + -(offset + end) % SECTOR_BYTES, len(data))
                    _put(self.durable, offset + first, data[first:last])
                else:
                    _put(self.durable, offset + start, data[start:end])
        self.data = bytearray(self.durable)
        self.unsynced.clear()


@dataclass(frozen=True)
class Fault:
    """What goes wrong at the ``at``-th operation: ``error`` of the verb, or a write that then fails, and was ``short``
    or ``whole``.
    """

    at: int
    error: str = "Input/output error"
    short: bool = False
    whole: bool = False
    verbs: tuple[str, ...] = ("create", "begin", "write", "sync")
    names: tuple[str, ...] = ()
    """Of which files; none: of all."""

    def error_of(self, name: str) -> DiskError:
        """What is raised for a file."""
        kind = NoSpaceError if self.error.startswith("No space") else DiskError
        return kind(f"{name}: {self.error}")


@dataclass(eq=False)
class SimDisk(Disk):
    """One directory in memory.

    Every changing operation (create, begin, write, sync, rename, delete) has a number. ``cut_at`` cuts the power when
    that number is reached, before or after it takes effect; ``fault`` makes one fail with DiskError, and all later ones
    of the same verbs too (a full disk stays full).
    """

    has_room = True
    left_bytes = 1 << 40

    _rng: random.Random
    files: dict[str, File] = field(default_factory=dict)
    operations: int = 0
    cut_at: int | None = None
    fault: Fault | None = None
    faults_raised: int = 0
    _deleted: dict[str, bytes] = field(default_factory=dict)

    # ---- what goes wrong -------------------------------------------------------------------------

    def crash(self) -> None:
        """The power comes back: unsynced writes are kept, lost or torn; deleted files may be there again."""
        self.cut_at = None
        self.fault = None
        for name, data in self._deleted.items():
            if name not in self.files and self._rng.random() < 0.5:
                self.files[name] = File(bytearray(data), bytearray(data))
        self._deleted.clear()
        for name, file in list(self.files.items()):
            if not file.named and self._rng.random() < 0.5:
                del self.files[name]
            file.named = True
            file.crash(self._rng)

    def restart(self) -> None:
        """Only the process ended: what was written is there, and the disk works again."""
        self.cut_at = None
        self.fault = None
        self._deleted.clear()
        for file in self.files.values():
            file.sync()
            file.named = True

    def _begin(self, verb: str, name: str) -> bool:
        """Count an operation and let it fail; True when the power goes, for the caller to do some of it first."""
        self.operations += 1
        fault = self.fault
        concerns = fault is not None and verb in fault.verbs and (not fault.names or name in fault.names)
        if fault is not None and concerns and self.operations >= fault.at and not (fault.short or fault.whole):
            self.faults_raised += 1
            raise DiskError(f"{name}: {fault.error}") if verb == "sync" else fault.error_of(name)
        return self.cut_at is not None and self.operations >= self.cut_at

    # ---- the verbs -------------------------------------------------------------------------------

    def create(self, name: str, size: int) -> None:
        cut = self._begin("create", name)
        if cut:
            size = self._rng.choice((-1, 0, size // 2, size))
        if size >= 0:
            self.files[name] = File(bytearray(size), bytearray(size))
        if cut:
            raise PowerCut
        self.sync_names()

    def begin(self, name: str) -> None:
        cut = self._begin("begin", name)
        if not cut or self._rng.random() < 0.5:
            self.files[name] = File(named=False)
        if cut:
            raise PowerCut

    def finish(self, name: str) -> None:
        """Changes nothing."""

    def confirm(self, name: str) -> None:
        self._file(name)

    def sync_names(self) -> None:
        self._deleted.clear()
        for file in self.files.values():
            file.named = True

    def write(self, name: str, offset: int, data: bytes) -> None:
        cut = self._begin("write", name)
        file = self._file(name)
        fault = self.fault
        if fault is not None and (fault.short or fault.whole) and self.operations >= fault.at:
            self.faults_raised += 1
            file.write(offset, data if fault.whole else data[: self._rng.randrange(len(data))])
            raise fault.error_of(name)
        if not cut or self._rng.random() < 0.8:
            file.write(offset, data)
        if cut:
            raise PowerCut

    def sync(self, name: str) -> None:
        cut = self._begin("sync", name)
        file = self._file(name)
        if not cut or self._rng.random() < 0.2:
            file.sync()
        if cut:
            raise PowerCut
        if not file.named:
            self.sync_names()

    def rename(self, name: str, new_name: str) -> None:
        cut = self._begin("rename", name)
        if not cut or self._rng.random() < 0.5:
            self.files[new_name] = self._file(name)
            del self.files[name]
        if cut:
            raise PowerCut
        self.sync_names()

    def delete(self, name: str) -> None:
        cut = self._begin("delete", name)
        if not cut or self._rng.random() < 0.5:
            file = self.files.pop(name, None)
            if file is not None:
                self._deleted[name] = bytes(file.durable)
        if cut:
            raise PowerCut

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        data = self._file(name).data
        return bytes(data[offset:] if size < 0 else data[offset : offset + size])

    def names(self) -> list[str]:
        return sorted(self.files)

    def _file(self, name: str) -> File:
        file = self.files.get(name)
        if file is None:
            raise DiskError(f"{name}: No such file or directory")
        return file


def _put(target: bytearray, offset: int, data: bytes) -> None:
    if len(target) < offset:
        target.extend(bytes(offset - len(target)))
    target[offset : offset + len(data)] = data


def _surviving(rng: random.Random, offset: int, size: int) -> list[tuple[int, int]]:
    """Which parts of a write of ``size`` bytes at ``offset`` reach the medium, as (start, end) inside the write."""
    fate = rng.randrange(7)
    if fate == 0:
        return []
    if fate == 1:
        return [(0, size)]
    if fate <= 4:
        return [(0, rng.randrange(size + 1))]
    if fate == 5:
        start = rng.randrange(size + 1)
        return [(start, rng.randrange(start, size + 1))]
    parts: list[tuple[int, int]] = []
    start = 0
    while start < size:
        end = min(size, start + SECTOR_BYTES - (offset + start) % SECTOR_BYTES)
        if rng.random() < 0.5:
            parts.append((start, end))
        start = end
    return parts
