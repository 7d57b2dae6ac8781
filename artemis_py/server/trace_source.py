"""The broker's own log as traces see it: the durable part of it as it is now, read by another thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from artemis_py.server.log_view import NotInLogError, Segments
from artemis_py.storage.format.reader import entries_of
from artemis_py.tracing.source import Beginning, LogSource, Part, cuts

Opening = Callable[[], tuple[int, int]]


class OwnLog(LogSource):
    """Segments with the fields of their indexes, from ``LogView.segments``. No file stays open between two parts."""

    def __init__(self, segments: Segments) -> None:
        super().__init__()
        self._segments = segments
        self._skipped_lsn = 0
        self._part: Part | None = None
        self.read_bytes = 0
        """How much was read so far."""
        self.began_ms = 0
        """When the log began (epoch ms); 0: not known yet."""

    @property
    def read_lsn(self) -> int:
        """How far it was read."""
        return max(self._skipped_lsn, self._part.last_lsn if self._part is not None else 0)

    def begin(self, after_lsn: int, from_ms: int) -> Beginning:
        """Names no queues: the parts do, so that no index is read before it is needed."""
        del after_lsn, from_ms
        return Beginning("", "", ())

    def parts(self) -> Iterator[Part]:
        for fields, opening in self._segments:
            if "bytes" not in fields:
                self.lost += 1
                continue
            self.began_ms = self.began_ms or fields["first_ms"] or 0
            ids = fields.get("ids")
            yield Part(fields["name"], iter(()), begins_segment=True, queues=fields["queues"])
            if self.may_be_among(None if ids is None else [(low, high) for low, high in ids]):
                yield from self._parts_of(fields, opening)
            self._skipped_lsn = fields["last_lsn"]

    def _parts_of(self, fields: dict[str, Any], opening: Opening) -> Iterator[Part]:
        for begin, end in cuts(fields["blocks"], fields["bytes"]):
            try:
                data = _read(opening, begin, end)
            except (NotInLogError, OSError):
                self.lost += 1
                return
            self.read_bytes += len(data)
            entries = entries_of(fields["name"], data, self.damages, is_last=False, begin=0)
            self._part = Part(fields["name"], entries, begins_segment=False)
            yield self._part

    def close(self) -> None:
        return


def _read(opening: Opening, begin: int, end: int) -> bytes:
    """A part of a segment. Raises NotInLogError and OSError."""
    descriptor, size_bytes = opening()
    try:
        pieces, end = [], min(end, size_bytes)
        while begin < end and (piece := os.pread(descriptor, end - begin, begin)):
            pieces.append(piece)
            begin += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        os.close(descriptor)
