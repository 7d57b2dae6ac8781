"""Logs made without a broker: a journal at work with a clock of its own, or segments written one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import BatchHeader, Kept
from artemis_py.storage.format.records import (
    BATCH,
    KIND_JOURNAL,
    MESSAGE,
    QUEUE,
    FileHeader,
    encode_file_header,
    encode_record,
)
from artemis_py.storage.format.segment_index import encode_index, index_name, index_of
from artemis_py.storage.journal.index_files import index_beside, write_survey
from artemis_py.storage.retention.survey import Survey

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


@dataclass
class MadeLog:
    """Segments of one queue ``q`` (number 3); each batch is written at once and at a time of its own."""

    folder: Path
    with_index: bool = True
    number: int = 0
    lsn: int = 1
    messages: int = 0
    batches: int = 0
    _path: Path = field(default_factory=Path, init=False)
    _data: bytes = field(default=b"", init=False)

    def segment(self, now_ms: int, count: int = 0) -> Path:
        """Begin the next one, which tells of the queue, with so many messages."""
        self.close()
        self.number += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path = self.folder / f"artemis-journal-{self.number:012}.log"
        self._data = encode_file_header(FileHeader(KIND_JOURNAL, self.number, self.lsn, now_ms))
        queue = codec.encode_fields({"id": 3, "name": "q", "address": "orders"})
        self.batch(now_ms, lambda: self.record(QUEUE, queue))
        if count:
            self.publish(now_ms, count)
        return self._path

    def record(self, kind: int, payload: bytes) -> bytes:
        """One record with the next lsn."""
        record = encode_record(kind, self.lsn, payload)
        self.lsn += 1
        return record

    def sent(self, now_ms: int, count: int = 1, address: str = "orders", body: bytes = b"") -> bytes:
        """Some persistent messages with numbers as bodies."""
        block = encode_headers([("destination", address), ("persistent", "true")])
        found = b""
        for _ in range(count):
            self.messages += 1
            head = Head(block, address, 4, True, False, "ANYCAST")
            one = Message(head, body or b"%d" % self.messages, self.messages, now_ms, 0, Account(), 0)
            found += self.record(MESSAGE, codec.encode_message(Kept(one, self.lsn, [3])))
        return found

    def batch(self, now_ms: int, *steps: Callable[[], bytes]) -> None:
        """What is written at once."""
        self.batches += 1
        records = b"".join(step() for step in steps)
        head = self.record(BATCH, codec.encode_batch(BatchHeader(self.batches, now_ms, self.messages, 3)))
        self._data += head + records
        self._path.write_bytes(self._data + bytes(1000))

    def publish(self, now_ms: int, count: int = 1, address: str = "orders", body: bytes = b"") -> None:
        """A batch of messages."""
        self.batch(now_ms, lambda: self.sent(now_ms, count, address, body))

    def close(self) -> None:
        """No more comes to this segment."""
        if self._data and self.with_index:
            index = index_of(self._data, self._path.name)
            self._path.with_name(index_name(self._path.name)).write_bytes(encode_index(index.fields()))
        self._data = b""


def survey(folder: Path) -> None:
    """Put beside each segment, also in folders below, what the broker puts there when it closes one."""
    for path in sorted(folder.rglob("artemis-journal-*.log")):
        found = Survey(path.read_bytes(), index_beside(path)["bytes"])
        while found.step(100):
            pass
        write_survey(path, found.fields(), found.places())


def day_of_segments(folder: Path, *, per_hour: int = 4, messages: int = 50) -> MadeLog:
    """A day of traffic: four segments in each hour, each with a batch in every minute of it."""
    log = MadeLog(folder)
    for quarter in range(24 * per_hour):
        begin_ms = START_MS + quarter * HOUR_MS // per_hour
        log.segment(begin_ms)
        for step in range(5):
            log.publish(begin_ms + step * 60_000, messages // 5, address=f"orders.{quarter % 3}")
    log.close()
    return log
