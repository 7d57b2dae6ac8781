"""Reads the current segment of a log while a broker writes it: each step adds the new batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from artemis_py.spark.decode.columns import encoded, field_numbers, gather, slices
from artemis_py.spark.decode.published import MESSAGE_COLUMNS, address_places, originals
from artemis_py.spark.decode.walk import Piece, Walk, walk
from artemis_py.spark.log.log import Segment
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.records import FILE_HEADER_BYTES, CodecError
from artemis_py.storage.format.scan import Damage
from artemis_py.storage.format.segment_index import ADDRESSES_MAX, BLOCK_BYTES

_CHUNK_BYTES: Final = 1 << 20
_LISTS: Final = {
    records.QUEUE: "queues",
    records.QUEUE_DELETED: "queues",
    records.SESSION: "sessions",
    records.CONSUMER: "consumers",
}


class Tail:
    """A segment that may grow. ``advance`` returns its index up to the last complete batch."""

    def __init__(self, number: int, path: Path) -> None:
        self.number = number
        self.is_settled = False
        """Does the index cover the whole file?"""
        self._path = path
        self._end = 0
        self._fields: dict[str, Any] = {}
        self._addresses: set[str] | None = set()
        self._time_ms: int | None = None

    def advance(self, *, rested: bool) -> Segment | None:
        """Add new batches, including the last one if the file has ``rested``. None while there is no header. Raises
        FileNotFoundError if the file was moved.
        """
        if not self._end and not self._begin():
            return None
        found = self._read()
        whole = self._whole_batches(found, rested=rested)
        self.is_settled = whole == len(found.places)
        if whole:
            end = int(found.ends[:whole].max())
            self._take(found.first(whole))
            self._end += end
        self._fields["bytes"] = self._end
        self._fields["addresses"] = None if self._addresses is None else sorted(self._addresses)
        return Segment.of(self._fields)

    def _begin(self) -> bool:
        with self._path.open("rb") as stream:
            data = stream.read(FILE_HEADER_BYTES)
        try:
            header = records.decode_file_header(data)
        except CodecError:
            return False
        self._end = FILE_HEADER_BYTES
        self._fields = {
            "segment": header.number, "first_lsn": header.first_lsn, "last_lsn": header.first_lsn - 1, "first_ms": None,
            "last_ms": None, "oldest_ms": None, "newest_ms": None, "messages": 0, "queues": [], "sessions": [],
            "consumers": [], "blocks": [], "name": self._path.name,
        }  # fmt: skip
        return True

    def _read(self) -> Walk:
        """What follows. Most of it may be zeros not written yet, so the first look is a short one."""
        with self._path.open("rb") as stream:
            stream.seek(self._end)
            data = stream.read(_CHUNK_BYTES)
            damages: list[Damage] = []
            found = walk(Piece(self._path.name, data, self._end, self._time_ms, is_last=True), damages)
            if damages or (len(data) == _CHUNK_BYTES and any(data[-records.RECORD_HEADER_BYTES :])):
                data += stream.read()
                found = walk(Piece(self._path.name, data, self._end, self._time_ms, is_last=True), [])
        return found

    def _whole_batches(self, found: Walk, *, rested: bool) -> int:
        """How many records belong to batches that are there whole."""
        if rested:
            return len(found.places)
        batches = np.flatnonzero(found.kinds == records.BATCH)
        return int(batches[-1]) if len(batches) else 0

    def _take(self, found: Walk) -> None:
        fields = self._fields
        batches = np.flatnonzero(found.kinds == records.BATCH)
        if len(batches):
            times = found.times_ms[batches]
            low, high = int(times.min()), int(times.max())
            fields["first_ms"] = low if fields["first_ms"] is None else min(fields["first_ms"], low)
            fields["last_ms"] = high if fields["last_ms"] is None else max(fields["last_ms"], high)
            self._time_ms = int(times[-1])
        self._take_blocks(found, batches)
        fields["last_lsn"] = max(fields["last_lsn"], int(found.lsns.max()))
        for kind, name in _LISTS.items():
            for number in np.flatnonzero(found.kinds == kind).tolist():
                told = codec.decode_fields(found.payload(number))
                deleted = {"deleted": True} if kind == records.QUEUE_DELETED else {}
                fields[name].append({"lsn": int(found.lsns[number]), **told, **deleted})
        self._take_addresses(found)

    def _take_blocks(self, found: Walk, batches: Any) -> None:
        blocks = self._fields["blocks"]
        highest = np.maximum.accumulate(found.lsns)
        for number in batches.tolist():
            offset = self._end + int(found.places[number])
            if not blocks or offset - blocks[-1][0] >= BLOCK_BYTES:
                before = int(highest[number - 1]) if number else 0
                blocks.append((offset, max(self._fields["last_lsn"], before) + 1, int(found.times_ms[number])))

    def _take_addresses(self, found: Walk) -> None:
        messages = originals(found)
        self._fields["messages"] += len(messages)
        fields = gather(found.data, found.places[messages] + records.RECORD_HEADER_BYTES, MESSAGE_COLUMNS)
        if len(messages):
            stamps = field_numbers(fields["timestamp_ms"])
            oldest, newest = int(stamps.min()), int(stamps.max())
            told = self._fields
            told["oldest_ms"] = oldest if told["oldest_ms"] is None else min(told["oldest_ms"], oldest)
            told["newest_ms"] = newest if told["newest_ms"] is None else max(told["newest_ms"], newest)
        if self._addresses is not None:
            begins, ends = address_places(found.places[messages], fields)
            self._addresses.update(text.decode() for text in encoded(slices(found.data, begins, ends))[1])
            if len(self._addresses) > ADDRESSES_MAX:
                self._addresses = None
