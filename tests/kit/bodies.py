"""A store of large bodies whose disk works when a test says so."""

from __future__ import annotations

import random
from typing import Any

from artemis_py.message import LargeBody
from artemis_py.storage.bodies import LargeStore, Piece
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.format.names import read_name
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.opening import SimStore
from tests.kit.disk import SimDisk


class Bodies:
    """A store on a disk, by default one in memory, which may be that of a broker, with threads that work when told;
    ``options`` are what the store takes besides.
    """

    def __init__(self, disk: Disk | None = None, broker: SimStore | None = None, **options: Any) -> None:
        self.disk: Any = disk or SimDisk(random.Random(1))
        if broker is not None:
            self.store, self.writer, self.reader = broker.files.large, *broker.bodies
            return
        self.writer, self.reader = SteppedCommitter(), SteppedCommitter()
        self.store = LargeStore(self.disk, self.writer, self.reader, **options)

    def turn(self, last_lsn: int = 0, durable_lsn: int = 0) -> None:
        """A turn, and what it gives the disk to do."""
        self.store.poll()
        self.store.seal(last_lsn, durable_lsn)
        self.writer.stop()
        self.store.poll()

    def bring(self, data: bytes, *, durable: bool = True) -> LargeBody:
        """A body that is written."""
        upload = self.store.begin(durable=durable)
        upload.append(data)
        upload.end()
        self.turn()
        assert upload.may_go_on
        return upload.body

    def read(self, body: LargeBody, size_bytes: int) -> tuple[bytes, Piece]:
        """What an outflow reads of a body, part by part, up to the first part that fails; and the last part."""
        found, checksum = b"", 0
        for offset in range(0, body.size_bytes, size_bytes):
            piece = self.store.read(body, offset, min(size_bytes, body.size_bytes - offset), "me", checksum)
            self.reader.stop()
            found, checksum = found + (piece.data or b""), piece.checksum
            if piece.failure is not None:
                break
        return found, piece

    @property
    def files(self) -> list[str]:
        """The bodies on the disk."""
        return [name for name in self.disk.names() if read_name(name) is not None]
