"""A day of a broker's log, written without the broker: hours of wall clock would pass otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import BatchHeader, Kept
from artemis_py.storage.format.records import (
    BATCH,
    KIND_JOURNAL,
    ORIGIN,
    QUEUE,
    SESSION,
    FileHeader,
    encode_file_header,
    encode_record,
)
from artemis_py.storage.format.segment_index import encode_index, index_name, index_of

BEGIN_MS: Final = 1_700_000_000_000
HOUR_MS: Final = 3_600_000
HOURS: Final = 24
BODY_BYTES: Final = 100
_SEGMENT_BYTES: Final = 10 << 20
"""As the broker's own, ``journal-file-size``."""
_BATCH_MESSAGES: Final = 100
_BODY: Final = bytes(range(BODY_BYTES))
_QUEUE: Final = {"id": 3, "name": "orders", "address": "orders"}
_SESSION: Final = {"id": 7, "client": "10.0.0.1:50000", "user": "ann", "protocol": "1.2"}


def write_day(folder: Path, messages: int) -> None:
    """Messages of 100 bytes, evenly over a day, in segments with indexes: each batch has its time and its sender."""
    folder.mkdir(parents=True, exist_ok=True)
    day = _Day(messages)
    number = 0
    while day.sent < messages:
        number += 1
        parts = [encode_file_header(FileHeader(KIND_JOURNAL, number, day.lsn, day.now_ms))]
        size_bytes = len(parts[0])
        for records in day.batches():
            parts += records
            size_bytes += sum(map(len, records))
            if size_bytes >= _SEGMENT_BYTES:
                break
        data = b"".join(parts)
        path = folder / f"artemis-journal-{number:012}.log"
        path.write_bytes(data)
        path.with_name(index_name(path.name)).write_bytes(encode_index(index_of(data, path.name).fields()))


class _Day:
    """How far the day has gone."""

    def __init__(self, messages: int) -> None:
        self.sent = 0
        self.lsn = 1
        self._messages = messages
        self._number = 0
        block = encode_headers([("destination", "/queue/orders"), ("persistent", "true")])
        self._head = Head(block, "orders", 4, True, False, "ANYCAST")
        self._account = Account()

    @property
    def now_ms(self) -> int:
        """When the next message comes."""
        return BEGIN_MS + self.sent * HOURS * HOUR_MS // self._messages

    def batches(self) -> Iterator[list[bytes]]:
        """The records of one segment, a batch at a time; the first names the queue and the session, too."""
        yield [self._batch(), self._told(QUEUE, _QUEUE), self._told(SESSION, _SESSION)]
        while self.sent < self._messages:
            now_ms = self.now_ms
            records = [self._batch(), self._record(ORIGIN, codec.encode_origin(7))]
            published = [self._kept(now_ms) for _ in range(min(_BATCH_MESSAGES, self._messages - self.sent))]
            yield records + codec.encode_published(published)

    def _batch(self) -> bytes:
        self._number += 1
        return self._record(BATCH, codec.encode_batch(BatchHeader(self._number, self.now_ms, self.sent, 3)))

    def _told(self, kind: int, fields: dict[str, object]) -> bytes:
        return self._record(kind, codec.encode_fields(dict(fields)))

    def _record(self, kind: int, payload: bytes) -> bytes:
        record = encode_record(kind, self.lsn, payload)
        self.lsn += 1
        return record

    def _kept(self, now_ms: int) -> Kept:
        self.sent += 1
        kept = Kept(Message(self._head, _BODY, self.sent, now_ms, 0, self._account, 0), self.lsn, [3])
        self.lsn += 1
        return kept
