"""Large bodies on their way into their files: what came during a turn is written together, by one thread.

As with the journal, one batch is written at a time, and while it is under way the next one gathers. A body is there
when all of it is written and, where it has to outlive a crash, synced together with its file's name.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from artemis_py.message import LargeBody
from artemis_py.storage.body_names import body_name
from artemis_py.storage.committer import Commit, Committer, Write
from artemis_py.storage.disk import Disk
from artemis_py.uploads import IncomingBody

UNWRITTEN_BYTES_MAX: Final = 4 << 20
"""How much may wait for the disk, of all bodies together; beyond it their senders are not read."""
SYNC_EVERY_BYTES: Final = 16 << 20
"""How much of one body may wait for a sync: one long sync at its end would hold up all others."""


class LargeFile:
    """The file of a body in use. A ``durable`` one outlives the broker, if it is whole."""

    __slots__ = ("durable", "holders", "is_whole", "name", "size_bytes")

    def __init__(self, number: int, size_bytes: int, *, durable: bool) -> None:
        self.name = body_name(number, durable=durable)
        self.size_bytes = size_bytes
        self.durable = durable
        self.is_whole = True
        self.holders = 0


class Upload(IncomingBody):
    """One body that comes in. ``append`` what comes, then ``end``; ``body`` may be used once ``may_go_on``, unless
    there is a ``failure``: then the disk had no room for it, and what still comes of it is dropped.
    """

    __slots__ = ("_chunks", "_file", "_intake", "_unsynced_bytes", "_written_bytes", "has_all", "is_written")

    def __init__(self, intake: Intake, file: LargeFile, body: LargeBody) -> None:
        self.body = body
        self.has_all = False
        self.is_written = False
        self.failure = None
        self._intake = intake
        self._file = file
        file.is_whole = False
        self._chunks: list[bytes] = []
        self._written_bytes = 0
        self._unsynced_bytes = 0

    @property
    def may_go_on(self) -> bool:
        """Is everything where it has to be?"""
        return self.is_written

    def refuse(self, reason: str) -> None:
        """There is no room for this body."""
        self.failure = reason
        self._file.is_whole = False
        self._chunks.clear()
        self.is_written = self.has_all

    def append(self, data: bytes) -> None:
        """More of the body."""
        if self.failure is not None:
            return
        self._chunks.append(data)
        self.body.size_bytes += len(data)
        self.body.checksum = crc32(data, self.body.checksum)
        self._file.size_bytes += len(data)
        self._intake.came(self, len(data))

    def end(self) -> None:
        """That was all."""
        self.has_all = True
        if self.failure is not None:
            self.is_written = True
            return
        self._file.is_whole = True
        self._intake.came(self, 0)

    def next_write(self, disk: Disk, *, syncs: bool) -> Write:
        """What came since the last one."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        offset = self._written_bytes
        self._written_bytes += len(data)
        self._unsynced_bytes += len(data)
        sync = syncs and self._file.durable and (self.has_all or self._unsynced_bytes >= SYNC_EVERY_BYTES)
        if sync:
            self._unsynced_bytes = 0
        return Write(disk, self._file.name, offset, data, sync, begins=not offset, ends=self.has_all, may_fail=True)


class Intake:
    """Hands what comes of bodies to ``writer`` and notes what is written. With ``syncs`` false nothing is synced."""

    def __init__(self, disk: Disk, writer: Committer, *, syncs: bool) -> None:
        self.unwritten_bytes = 0
        self.is_full = False
        """Must bodies not grow, because the disk is full (``max-disk-usage``)?"""
        self.refused = 0
        """Bodies that were given up since the start, because there was no room for them."""
        self._disk = disk
        self._writer = writer
        self._syncs = syncs
        self._coming: dict[Upload, int] = {}
        """Bodies of which something came since the last batch, with how much."""
        self._before: list[Write] = []
        self._under_way: list[tuple[Upload, int, Write]] = []
        """The batch that is being written: whose, and how much."""

    @property
    def may_go_on(self) -> bool:
        """Does the disk keep up, and has it room, so that senders may be read?"""
        return self.unwritten_bytes < UNWRITTEN_BYTES_MAX and not self.is_full

    def came(self, upload: Upload, size_bytes: int) -> None:
        """Something of a body came, or its end."""
        self.unwritten_bytes += size_bytes
        self._coming[upload] = self._coming.get(upload, 0) + size_bytes

    def poll(self) -> str | None:
        """Take note of what has been written. Returns why that did not go that had to be there ``before``, if so: then
        all that came with it is given up.
        """
        if self._writer.finished() is None:
            return None
        missing = next((write.failure for write in self._before if write.failure is not None), None)
        for upload, size_bytes, write in self._under_way:
            self.unwritten_bytes -= size_bytes
            failure = write.failure or missing
            if failure is not None:
                self._give_up(upload, failure)
            elif upload.failure is None:
                upload.is_written = write.ends
        self._under_way = []
        return missing

    @property
    def has_pending(self) -> bool:
        """Is something not written yet?"""
        return bool(self._coming or self._under_way)

    @property
    def may_write(self) -> bool:
        """Is there something to write, and nobody in the way?"""
        return bool(self._coming) and not self._writer.busy and self._writer.failure is None

    def write(self, before: list[Write]) -> None:
        """Hand over what came, behind the writes ``before``; only when ``may_write``."""
        coming, self._coming = self._coming, {}
        self._before = before
        self._under_way = [
            (upload, size_bytes, upload.next_write(self._disk, syncs=self._syncs))
            for upload, size_bytes in coming.items()
        ]
        self._writer.submit(Commit([*before, *(write for _, _, write in self._under_way)], 0))

    def _give_up(self, upload: Upload, reason: str) -> None:
        """The disk had no room for a body."""
        self.refused += 1
        self.unwritten_bytes -= self._coming.pop(upload, 0)
        upload.refuse(reason)
