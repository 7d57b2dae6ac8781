"""A consumer sees a MESSAGE only when it is synced: what the medium has of the log at the moment of each delivery."""

from __future__ import annotations

from collections.abc import Collection

from artemis_py.storage.format.names import segment_number
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES, CodecError, Record, decode_record
from tests.kit.crash.projection import Operation
from tests.kit.crash.witness import WitnessedRecords
from tests.kit.disk import SimDisk


class TooEarly(AssertionError):
    """A client got a persistent message that a crash would lose."""


class Medium:
    """The records that the medium has, read from it by the format alone: the journal is not asked."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self._ends: dict[str, int] = {}
        """How far each file was read."""
        self._last_lsn = 0

    def has(self, lsn: int) -> bool:
        """Would a crash leave the record of that lsn?"""
        if lsn > self._last_lsn:
            self._read_on()
        return lsn <= self._last_lsn

    def _read_on(self) -> None:
        for name, file in self._disk.files.items():
            if segment_number(name) is not None:
                self._ends[name] = self._read_file(file.durable, self._ends.get(name, FILE_HEADER_BYTES))

    def _read_file(self, durable: bytearray, offset: int) -> int:
        data = bytes(durable)
        while (record := _record_at(data, offset)) is not None:
            if record.type_code != BATCH:  # its lsn is above those of its records, which may be torn
                self._last_lsn = max(self._last_lsn, record.lsn)
            offset = record.end
        return offset


def _record_at(data: bytes, offset: int) -> Record | None:
    try:
        return decode_record(data, offset)
    except CodecError:
        return None


class Deliveries:
    """Checks the messages that clients get. ``recovered_ids`` are those that were there at the start."""

    def __init__(self, records: WitnessedRecords, disk: SimDisk, recovered_ids: Collection[int]) -> None:
        self.fresh = 0
        """How many were published in this life."""
        self._operations = records.operations
        self._recovered_ids = recovered_ids
        self._medium = Medium(disk)
        self._noted = 0
        self._lsns: dict[int, int] = {}
        """Of each message that was published in this life."""

    def check(self, message_id: int) -> None:
        """A client just got a persistent message from a durable queue. Raises TooEarly."""
        while self._noted < len(self._operations):
            lsn, operation = self._operations[self._noted]
            self._note(lsn, operation)
            self._noted += 1
        lsn = self._lsns.get(message_id, 0)
        self.fresh += lsn > 0
        if not (self._medium.has(lsn) if lsn else message_id in self._recovered_ids):
            raise TooEarly(f"a client got message {message_id}, whose record {lsn} is not on the medium")

    def _note(self, lsn: int, operation: Operation) -> None:
        name, *arguments = operation
        if name == "group":
            for inner in arguments[0]:
                self._note(lsn, inner)
        elif name in {"published", "recalled"}:
            self._lsns.setdefault(arguments[0][0], lsn)
