"""A consumer sees a MESSAGE only when it is synced: what the medium has of the log at the moment of each delivery."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from artemis_py.storage.format.names import segment_number
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES, CodecError, decode_record
from tests.kit.crash.witness import WitnessedRecords
from tests.kit.disk import SimDisk


class TooEarly(AssertionError):
    """A client got a persistent message that a crash would lose."""


@dataclass
class Medium:
    """The records that the medium has, read from it by the format alone: the journal is not asked."""

    disk: SimDisk
    _ends: dict[str, int] = field(default_factory=dict)
    """How far each file was read."""
    _last_lsn: int = 0

    def has(self, lsn: int) -> bool:
        """Would a crash leave the record of that lsn?"""
        for name, file in self.disk.files.items() if lsn > self._last_lsn else ():
            if segment_number(name) is None:
                continue
            data, offset = bytes(file.durable), self._ends.get(name, FILE_HEADER_BYTES)
            with suppress(CodecError):  # the rest was not written yet
                while (record := decode_record(data, offset)) is not None:
                    if record.type_code != BATCH:  # its lsn is above those of its records, which may be torn
                        self._last_lsn = max(self._last_lsn, record.lsn)
                    offset = record.end
            self._ends[name] = offset
        return lsn <= self._last_lsn


@dataclass
class Deliveries:
    """Checks the messages that clients get. ``recovered_ids`` are those that were there at the start."""

    records: WitnessedRecords
    medium: Medium
    recovered_ids: Collection[int]
    fresh: int = 0
    """How many were published in this life."""
    _noted: int = 0
    """How many operations were looked at."""
    _lsns: dict[int, int] = field(default_factory=dict)
    """Of each message that was published in this life."""

    def check(self, message_id: int) -> None:
        """A client just got a persistent message from a durable queue. Raises TooEarly."""
        for lsn, operation in self.records.operations[self._noted :]:
            for name, *arguments in operation[1] if operation[0] == "group" else [operation]:
                if name in {"published", "recalled"}:
                    self._lsns.setdefault(arguments[0][0], lsn)
        self._noted = len(self.records.operations)
        lsn = self._lsns.get(message_id, 0)
        self.fresh += lsn > 0
        if not (self.medium.has(lsn) if lsn else message_id in self.recovered_ids):
            raise TooEarly(f"a client got message {message_id}, whose record {lsn} is not on the medium")
