"""A log in memory for tests of replays: slices arrive when the test says so, and the oldest segments can be removed."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from artemis_py.message import Account, Head, LargeBody, Message, encode_headers
from artemis_py.replay_log import AddressChoice, Logged, Place, ReplayLog, Slice, Spot

RECORD_BYTES = 1000
SEGMENT_RECORDS = 10
START_MS = 1_000_000


@dataclass
class Record:
    """A message: lsns have gaps, as in a log that has other records, too."""

    lsn: int
    time_ms: int
    address: str
    body: bytes = b""


class MadeSlice(Slice):
    """Some records of a segment. Scanning one costs a unit."""

    def __init__(self, begin: Spot, records: list[Record], end: Spot, last_lsn: int, *, reaches_end: bool) -> None:
        self.key = ""
        self.begin = begin
        self.end = end
        self.size_bytes = RECORD_BYTES * len(records)
        self.last_lsn = last_lsn
        self.reaches_end = reaches_end
        self.is_gone = False
        self.failure = ""
        self.bytes_needed = 0
        self.records = records
        self._unscanned = len(records)

    def scan(self, units: int) -> int:
        spent = min(units, self._unscanned)
        self._unscanned -= spent
        return spent

    def addresses(self) -> list[str]:
        return list({record.address: None for record in self.records})

    def select(self, choice: AddressChoice) -> list[int]:
        assert not self._unscanned
        return [index for index, record in enumerate(self.records) if choice.wants(record.address)]

    def first_after(self, selected: list[int], lsn: int) -> int:
        return bisect_right([self.records[index].lsn for index in selected], lsn)

    def get(self, index: int) -> Logged | None:
        record = self.records[index]
        block = encode_headers([("destination", f"/queue/{record.address}")])
        message = Message(Head(block, record.address), record.body, record.lsn, record.time_ms, 0, Account(), 0)
        message.lsn = record.lsn
        return Logged(message, record.time_ms)


@dataclass
class MadeLog(ReplayLog):
    """What is appended is durable at once, unless ``durable`` is set back."""

    records: list[Record] = field(default_factory=list)
    removed: int = 0
    """How many segments were removed."""
    durable: int = 0
    """How many records are durable."""
    requested: list[MadeSlice] = field(default_factory=list)
    reads: int = 0
    """How many slices were asked for."""

    def append(self, address: str, body: bytes = b"", gap: int = 1, time_ms: int = START_MS) -> Record:
        """A message, so many lsns after the one before."""
        record = Record(self.last_lsn + gap, time_ms, address, body)
        self.records.append(record)
        self.durable = len(self.records)
        return record

    @property
    def durable_lsn(self) -> int:
        return self.records[self.durable - 1].lsn if self.durable else 0

    @property
    def last_lsn(self) -> int:
        return self.records[-1].lsn if self.records else 0

    def first_lsn(self, segment: int = 0) -> int:
        first = max(segment, self.removed) * SEGMENT_RECORDS
        return self.records[first].lsn if first < len(self.records) else self.last_lsn + 1

    def _place(self, index: int) -> Place:
        return index // SEGMENT_RECORDS, index % SEGMENT_RECORDS * RECORD_BYTES

    def end(self) -> Place:
        return self._place(self.durable)

    def beginning(self) -> Spot:
        return Spot(self.removed, 0)

    def after(self, lsn: int) -> Spot | None:
        index = bisect_right([record.lsn for record in self.records], lsn)
        segment = index // SEGMENT_RECORDS
        return None if segment < self.removed else Spot(segment, 0)

    def since(self, time_ms: int) -> Spot:
        return self.beginning()

    def request(self, spot: Spot, choice: AddressChoice | None, size_bytes: int, *, follows: bool = False) -> None:
        self.reads += 1
        first = spot.segment * SEGMENT_RECORDS + spot.offset // RECORD_BYTES
        pending = min((spot.segment + 1) * SEGMENT_RECORDS, self.durable, first + max(size_bytes // RECORD_BYTES, 1))
        records = self.records[first:pending]
        end = Spot(*self._place(pending))
        reaches_end = pending == self.durable
        last_lsn = records[-1].lsn if records else 0
        made = MadeSlice(spot, records, end, last_lsn, reaches_end=reaches_end)
        made.key = "" if choice is None else choice.key
        made.is_gone = spot.segment < self.removed
        self.requested.append(made)

    def arrivals(self) -> list[Slice]:
        arrived: list[Slice] = list(self.requested)
        self.requested = []
        return arrived

    def body_of(self, message: Message) -> LargeBody | None:
        return None

    def session_number(self, origin: int) -> int:
        return 0
