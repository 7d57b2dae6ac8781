"""Segments on a simulated disk and in an archive, as replays read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from artemis_py.storage.format.names import segment_name, segment_number
from artemis_py.storage.format.records import decode_file_header
from artemis_py.storage.format.scan import LogFile
from artemis_py.storage.format.segment_index import index_of
from artemis_py.storage.replay import SegmentFiles
from artemis_py.storage.retention.retention import RetainedFile
from tests.kit.crash.retained import Archive
from tests.kit.disk import SimDisk


@dataclass
class ArchiveFiles(SegmentFiles):
    """A segment is on the disk or in the archive, without anything beside it."""

    disk: SimDisk
    archive: Archive
    read_bytes: int = 0
    """How many bytes were read."""

    def kept(self) -> Sequence[RetainedFile]:
        found: list[RetainedFile] = []
        for name, data in sorted(self.archive.retired.items()):
            header, number = decode_file_header(data), segment_number(name)
            assert number is not None
            file = LogFile(Path(name), number, header.created_ms)
            last_ms = index_of(data).last_ms
            found.append(RetainedFile(file, header.first_lsn, header.created_ms, len(data), last_ms))
        return found

    def _data(self, number: int) -> bytes:
        name = segment_name(number)
        if name in self.disk.names():
            return self.disk.read(name)
        if name not in self.archive.retired:
            raise FileNotFoundError(name)
        return self.archive.retired[name]

    def read(self, number: int, offset: int, size_bytes: int) -> bytes:
        data = self._data(number)[offset : offset + size_bytes]
        self.read_bytes += len(data)
        return data

    def size_of(self, number: int) -> int:
        return len(self._data(number))

    def beside(self, number: int, named: Callable[[str], str]) -> bytes:
        return b""
