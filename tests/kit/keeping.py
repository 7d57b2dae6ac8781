"""A retention directory beside those of a journal and of large bodies, with a clock that is set by hand."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.format import records
from artemis_py.storage.format.names import body_name, read_name, segment_name
from artemis_py.storage.format.scan import log_files
from artemis_py.storage.retention.retention import RetainedBodies, Retention, RetentionSettings
from tests.kit.journal_story import START_MS


class Keeping:
    """Segments and bodies of 1000 bytes each, which retention takes over when the test says so."""

    def __init__(self, root: Path, *, period_ms: int | None = None, bytes_max: int | None = None) -> None:
        self.root = root
        self.folder = root / "kept"
        self.now_ms = START_MS
        self.disk, self.body_disk = FileDisk(root / "journal"), FileDisk(root / "large")
        for disk in (self.disk, self.body_disk):
            weakref.finalize(self, disk.close)
        self._settings = RetentionSettings(self.folder, period_ms, bytes_max)
        self._number = 0
        self.start()

    def start(self) -> None:
        """As a broker starts on what is there."""
        root = self.root
        self.bodies = RetainedBodies(self.body_disk, root / "large", root / "journal", self.folder, lambda: self.now_ms)
        self.log = Retention(self.disk, root / "journal", self._settings, lambda: self.now_ms, self.bodies)

    def begin_segment(self, begun_ms: int, number: int = 0) -> int:
        """A journal file; returns its number, which is the next one unless it is given."""
        self._number = number or self._number + 1
        header = records.encode_file_header(records.FileHeader(records.KIND_JOURNAL, self._number, 1, begun_ms))
        path = self.root / "journal" / segment_name(self._number)
        path.write_bytes(header + bytes(1000 - len(header)))
        return self._number

    def retire_segment(self, number: int, closed_ms: int) -> None:
        """The journal does not need this file any more, which was written to for the last time at ``closed_ms``; it is
        made if it was not begun.
        """
        path = self.root / "journal" / segment_name(number)
        if not path.exists():
            self.begin_segment(closed_ms, number)
        os.utime(path, ns=(closed_ms * 1_000_000, closed_ms * 1_000_000))
        self.log.retire(path.name)
        assert not path.exists()

    def retire_body(self, number: int) -> None:
        """No message has this body any more."""
        name = body_name(number, durable=True)
        (self.root / "large" / name).write_bytes(bytes(1000))
        self.bodies.retire(name, 0)

    @property
    def kept_segments(self) -> list[int]:
        """The journal files that are kept."""
        return [file.number for file in log_files([self.folder])]

    @property
    def kept_bodies(self) -> list[int]:
        """The bodies that are kept."""
        found = [read_name(path.name) for path in sorted((self.folder / "large").iterdir())]
        return [body.number for body in found if body is not None]
