"""Large bodies on their way into their files: what came during a turn is written together, by one thread.

As with the journal, one batch is written at a time, and while it is under way the next one gathers. A body is there
when all of it is written and, where it has to outlive a crash, synced together with its file's name.
"""

from __future__ import annotations

from typing import Final

from artemis_py.message import LargeBody
from artemis_py.storage.body_names import body_name
from artemis_py.storage.committer import Commit, Committer, Write
from artemis_py.storage.disk import Disk

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


class Upload:
    """One body that comes in. ``append`` what comes, then ``end``; ``body`` may be used once ``may_go_on``."""

    __slots__ = (
        "_chunks", "_file", "_intake", "_unsynced_bytes", "_written_bytes", "body", "has_all", "is_written",
    )  # fmt: skip

    def __init__(self, intake: Intake, file: LargeFile, body: LargeBody) -> None:
        self.body = body
        self.has_all = False
        self.is_written = False
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

    def append(self, data: bytes) -> None:
        """More of the body."""
        self._chunks.append(data)
        self.body.size_bytes += len(data)
        self._file.size_bytes += len(data)
        self._intake.came(self, len(data))

    def end(self) -> None:
        """That was all."""
        self.has_all = self._file.is_whole = True
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
        return Write(disk, self._file.name, offset, data, sync, begins=not offset, ends=self.has_all)


class Intake:
    """Hands what comes of bodies to ``writer`` and notes what is written. With ``syncs`` false nothing is synced."""

    def __init__(self, disk: Disk, writer: Committer, *, syncs: bool) -> None:
        self.unwritten_bytes = 0
        self._disk = disk
        self._writer = writer
        self._syncs = syncs
        self._coming: dict[Upload, int] = {}
        """Bodies of which something came since the last batch, with how much."""
        self._under_way: list[tuple[Upload, int, bool]] = []
        """The batch that is being written: whose, how much, and whether that is its end."""

    @property
    def may_go_on(self) -> bool:
        """Does the disk keep up, so that senders may be read?"""
        return self.unwritten_bytes < UNWRITTEN_BYTES_MAX

    def came(self, upload: Upload, size_bytes: int) -> None:
        """Something of a body came, or its end."""
        self.unwritten_bytes += size_bytes
        self._coming[upload] = self._coming.get(upload, 0) + size_bytes

    def poll(self) -> None:
        """Take note of what has been written."""
        if self._writer.finished() is None:
            return
        for upload, size_bytes, is_end in self._under_way:
            self.unwritten_bytes -= size_bytes
            upload.is_written = is_end
        self._under_way = []

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
        self._under_way = [(upload, size_bytes, upload.has_all) for upload, size_bytes in coming.items()]
        writes = [upload.next_write(self._disk, syncs=self._syncs) for upload in coming]
        self._writer.submit(Commit(before + writes, 0))
