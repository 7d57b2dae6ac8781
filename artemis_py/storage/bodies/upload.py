"""Writes incoming large bodies to their files: one thread writes all data of a turn together.

As with the journal, one batch is written at a time while the next one gathers. A body is complete when all of it is
written and, if it must survive a crash, synced together with its file's name.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from artemis_py.message import LargeBody
from artemis_py.storage.disk.committer import Commit, Committer, Write
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.format.body_names import body_name
from artemis_py.uploads import IncomingBody

UNWRITTEN_BYTES_MAX: Final = 4 << 20
"""How many bytes of all bodies may wait for the disk; beyond that, their senders are not read."""
SYNC_EVERY_BYTES: Final = 16 << 20
"""How many bytes of one body may wait for a sync: one long sync at its end would delay all others."""


class LargeFile:
    """The file of a body in use. A complete ``durable`` one outlives the broker."""

    __slots__ = ("durable", "holders", "is_whole", "name", "number", "size_bytes")

    def __init__(self, number: int, size_bytes: int, *, durable: bool) -> None:
        self.number = number
        self.name = body_name(number, durable=durable)
        self.size_bytes = size_bytes
        self.durable = durable
        self.is_whole = True
        self.holders = 0


class Upload(IncomingBody):
    """One incoming body. ``append`` its data, then ``end``. ``body`` may be used once ``may_go_on``, unless there is a
    ``failure``: then the disk had no room, and the rest of the body is dropped.
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
        """Is the body completely written (and synced, if durable), or refused?"""
        return self.is_written

    def refuse(self, reason: str) -> None:
        """Refuse the body: there is no room for it."""
        self.failure = reason
        self._file.is_whole = False
        self._chunks.clear()
        self.is_written = self.has_all

    def append(self, data: bytes) -> None:
        """Add data of the body."""
        if self.failure is not None:
            return
        self._chunks.append(data)
        self.body.size_bytes += len(data)
        self.body.checksum = crc32(data, self.body.checksum)
        self._file.size_bytes += len(data)
        self._intake.came(self, len(data))

    def end(self) -> None:
        """The body is complete."""
        self.has_all = True
        if self.failure is not None:
            self.is_written = True
            return
        self._file.is_whole = True
        self._intake.came(self, 0)

    def next_write(self, disk: Disk, *, syncs: bool) -> Write:
        """The write of the data since the last one."""
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
    """Passes data of bodies to ``writer`` and tracks what is written. If ``syncs`` is false, nothing is synced."""

    def __init__(self, disk: Disk, writer: Committer, *, syncs: bool) -> None:
        self.unwritten_bytes = 0
        self.is_full = False
        """Is the disk full (``max-disk-usage``), so that bodies must not grow?"""
        self.refused = 0
        """Bodies refused since the start because there was no room."""
        self._disk = disk
        self._writer = writer
        self._syncs = syncs
        self.coming: dict[Upload, int] = {}
        """Bodies with new data since the last batch, and how many bytes."""
        self._before: list[Write] = []
        self._under_way: list[tuple[Upload, int, Write]] = []
        """The batch being written: uploads, bytes and writes."""

    @property
    def may_go_on(self) -> bool:
        """Does the disk keep up and have room, so that senders may be read?"""
        return self.unwritten_bytes < UNWRITTEN_BYTES_MAX and not self.is_full

    def came(self, upload: Upload, size_bytes: int) -> None:
        """Data of a body arrived (``size_bytes`` of it), or the body ended."""
        self.unwritten_bytes += size_bytes
        self.coming[upload] = self.coming.get(upload, 0) + size_bytes

    def poll(self) -> str | None:
        """Handle completed writes. If a write needed ``before`` failed, returns why: then all bodies of its batch are
        refused.
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
        """Is something not yet written?"""
        return bool(self.coming or self._under_way)

    @property
    def may_write(self) -> bool:
        """Is there something to write, and is the writer free?"""
        return bool(self.coming) and not self._writer.busy and self._writer.failure is None

    def write(self, before: list[Write]) -> None:
        """Submit new data, after the writes ``before``; only if ``may_write``."""
        coming, self.coming = self.coming, {}
        self._before = before
        self._under_way = [
            (upload, size_bytes, upload.next_write(self._disk, syncs=self._syncs))
            for upload, size_bytes in coming.items()
        ]
        self._writer.submit(Commit([*before, *(write for _, _, write in self._under_way)], 0))

    def _give_up(self, upload: Upload, reason: str) -> None:
        """Refuse a body because the disk had no room."""
        self.refused += 1
        self.unwritten_bytes -= self.coming.pop(upload, 0)
        upload.refuse(reason)
