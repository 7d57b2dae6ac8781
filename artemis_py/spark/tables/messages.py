"""Table ``messages``: one row for each published message."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artemis_py.errors import PipelineError
from artemis_py.message import COPIED_QUEUE, COPIED_REASON
from artemis_py.spark.decode.columns import (
    Mask,
    Numbers,
    by_number,
    constant,
    field_numbers,
    lists,
    looked_up,
    numbers,
    times,
)
from artemis_py.spark.decode.published import Published, header_values, messages_of, originals, unescaped
from artemis_py.spark.log.log import GoneError
from artemis_py.spark.tables.filters import HEADER_COLUMNS
from artemis_py.spark.tables.reading import Reading, unknown_name
from artemis_py.spark.tables.schema import HEADERS, TEXTS

_ROUTING_TYPES: Final = (None, "ANYCAST", "MULTICAST")
_GROUP: Final = (b"JMSXGroupID", b"_AMQ_GROUP_ID")
_BATCH_BYTES_MAX: Final = 16 << 20
_logger = logging.getLogger(__name__)


def message_batches(reading: Reading) -> Iterator[pa.RecordBatch]:
    """The rows of one piece, in order."""
    records = messages_of(reading.found) if reading.wanted.of_copies else originals(reading.found)
    records = records[reading.wanted.records(reading.found)[records]]
    published = reading.wanted.messages(Published(reading.found, records))
    reading.wanted.check_sample(published)
    for part in _parts(reading, published):
        yield reading.columns(_MAKERS, _Rows(reading, part))


def _parts(reading: Reading, published: Published) -> Iterator[Published]:
    """Some rows at a time: not too many, and not too many bytes where bodies come from files of their own."""
    for share in reading.shares(len(published)):
        part = Published(reading.found, published.records[share])
        if not reading.include_body or not part.is_large.any():
            yield part
            continue
        begin = 0
        filled = 0
        for row, size in enumerate(part.body_bytes.tolist()):
            if filled and filled + size > _BATCH_BYTES_MAX:
                yield Published(reading.found, part.records[begin:row])
                begin, filled = row, 0
            filled += size
        yield Published(reading.found, part.records[begin:])


@dataclass
class _Rows:
    """The columns of some messages."""

    reading: Reading
    messages: Published

    def __len__(self) -> int:
        return len(self.messages)

    def whole(self, values: Numbers, kind: pa.DataType | None = None) -> pa.Array:
        return numbers(values, kind or pa.int64())

    def time(self, values_ms: Numbers) -> pa.Array:
        """Zero stands for no time."""
        return times(values_ms, values_ms == 0)

    def constant(self, value: object, kind: pa.DataType) -> pa.Array:
        return constant(value, len(self), kind)

    @cached_property
    def address(self) -> pa.Array:
        codes, addresses = self.messages.addresses
        return looked_up(codes, addresses, pa.string())

    def header(self, *names: bytes) -> pa.Array:
        codes, blocks = self.messages.heads
        values = header_values(blocks, names)
        if all(value is None for value in values):
            return self.constant(None, pa.string())
        return looked_up(codes, values, pa.string())

    def original(self, column: str, part: int = 0) -> pa.Array:
        """A header where the broker wrote it; clients write such headers, too."""
        return _where(self.messages.copied(part), self.header(HEADER_COLUMNS[column]))

    def reason(self) -> pa.Array:
        """The header of this name, where the message is a copy that the broker made."""
        codes, blocks = self.messages.heads
        values = header_values(blocks, (b"reason",))
        origins = header_values(blocks, (HEADER_COLUMNS["reason"],))
        told = [None if origin is None else value for value, origin in zip(values, origins, strict=True)]
        return _where(self.messages.copied(COPIED_REASON), looked_up(codes, told, pa.string()))

    def headers(self) -> pa.Array:
        codes, blocks = self.messages.heads
        every = [_headers(block) for block in blocks.to_pylist()]
        return pa.array(every, HEADERS).take(pa.array(codes))

    def queues(self) -> pa.Array:
        _, states = self.messages.states
        names = by_number(field_numbers(states["queue"]), self.reading.names.queue_names(), pa.string(), unknown_name)
        return lists(self.messages.number("queues"), names, TEXTS)

    def deliver_at(self) -> pa.Array:
        owner, states = self.messages.states
        due_ms = np.zeros(len(self), np.int64)
        np.maximum.at(due_ms, owner, field_numbers(states["due_ms"]))
        return self.time(due_ms)

    def around(self, values: Numbers) -> Numbers:
        """What surrounds the record of each message in the log; 0 for a copy, whose publication is gone."""
        if self.reading.wanted.of_copies:
            return np.zeros(len(self), np.int64)
        return values[self.messages.records]

    def session(self, name: str) -> pa.Array:
        sessions = {number: fields.get(name) for number, fields in self.reading.names.sessions.items()}
        return by_number(self.around(self.reading.found.session_ids), sessions, pa.string())

    def user(self) -> pa.Array:
        sessions = self.reading.names.sessions.items()
        users = {number: fields.get("user") or fields.get("login") for number, fields in sessions}
        return by_number(self.around(self.reading.found.session_ids), users, pa.string())

    def transaction(self) -> pa.Array:
        lsns = self.around(self.reading.found.transaction_lsns)
        return numbers(lsns, pa.int64(), lsns == 0)

    def value(self) -> pa.Array:
        if not self.reading.include_body:
            return self.constant(None, pa.binary())
        bodies = self.messages.bodies()
        if not self.messages.is_large.any():
            return bodies
        large = [self._large_body(*one) for one in self.messages.large.tolist()]
        return pc.replace_with_mask(bodies, pa.array(self.messages.is_large), pa.array(large, pa.binary()))

    def _large_body(self, number: int, size_bytes: int) -> bytes | None:
        try:
            return self.reading.log.body(number, size_bytes)
        except GoneError as error:
            if self.reading.fails_on_loss:
                raise PipelineError(
                    f"{error}; failOnDataLoss=false makes its value null, and includeBody=false reads no bodies"
                ) from None
            _logger.warning("%s: its value is null", error)
            return None


def _where(mask: Mask, values: pa.Array) -> pa.Array:
    """Values, or null where the mask is false."""
    return values if mask.all() else pc.if_else(pa.array(mask), values, pa.scalar(None, values.type))


def _headers(block: bytes) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for line in block.rstrip(b"\n").split(b"\n"):
        name, colon, value = line.partition(b":")
        if not colon:  # a block without a line
            continue
        found.append({"key": unescaped(name), "value": unescaped(value).encode()})
    return found


_MAKERS: Final[dict[str, Callable[[_Rows], pa.Array]]] = {
    "key": lambda rows: rows.header(*_GROUP).cast(pa.binary()),
    "value": _Rows.value,
    "topic": lambda rows: rows.address,
    "partition": lambda rows: rows.constant(0, pa.int32()),
    "offset": lambda rows: rows.whole(rows.messages.number("lsn")),
    "timestamp": lambda rows: times(rows.messages.number("timestamp_ms")),
    "timestampType": lambda rows: rows.constant(0, pa.int32()),
    "headers": _Rows.headers,
    "address": lambda rows: rows.address,
    "messageId": lambda rows: rows.whole(rows.messages.number("id")),
    "queues": _Rows.queues,
    "routingType": lambda rows: looked_up(rows.messages.number("routing"), _ROUTING_TYPES, pa.string()),
    "priority": lambda rows: rows.whole(rows.messages.number("priority"), pa.int32()),
    "expiration": lambda rows: rows.time(rows.messages.number("expires_ms")),
    "deliverAt": _Rows.deliver_at,
    "publishedAt": lambda rows: rows.time(rows.around(rows.reading.found.times_ms)),
    "bodyBytes": lambda rows: rows.whole(rows.messages.body_bytes),
    "origin": lambda rows: rows.session("client"),
    "user": _Rows.user,
    "transaction": _Rows.transaction,
    "originalAddress": lambda rows: rows.original("originalAddress"),
    "originalQueue": lambda rows: rows.original("originalQueue", COPIED_QUEUE),
    "originalMessageId": lambda rows: rows.original("originalMessageId"),
    "reason": _Rows.reason,
    "broker": lambda rows: rows.constant(rows.reading.log.broker, pa.string()),
    "segment": lambda rows: rows.constant(rows.reading.segment, pa.int64()),
    "position": lambda rows: rows.whole(rows.reading.positions(rows.reading.found.places[rows.messages.records])),
}
