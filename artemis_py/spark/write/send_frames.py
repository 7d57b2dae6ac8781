"""Turns Arrow batches into STOMP SEND frames: the meaning of columns, and many frames at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from artemis_py.errors import PipelineError, StompError
from artemis_py.spark.shared_options import hint
from artemis_py.spark.write.options import ROUTING_TYPES, SinkOptions
from artemis_py.spark.write.transactions import TRANSACTION
from artemis_py.stomp.client import header_line

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TEXT: Final = ("string", "binary")
_TIME: Final = ("timestamp", "bigint")
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_HEADERS: Final = (
    "map<string,string>", "map<string,binary>", "array<struct<key:string,value:binary>>",
    "array<struct<key:string,value:string>>",
)  # fmt: skip
COLUMNS: Final = {
    "value": _TEXT,
    "address": ("string",),
    "topic": ("string",),
    "key": _TEXT,
    "headers": _HEADERS,
    "priority": _WHOLE,
    "persistent": ("boolean",),
    "expiration": _TIME,
    "deliverAt": _TIME,
    "delay": _WHOLE,
    "routingType": ("string",),
}
"""The columns of a published row, with their allowed Spark types."""

HOP_HEADERS: Final = frozenset(
    {
        "destination", "transaction", "receipt", "content-length", "message-id", "subscription", "ack", "redelivered",
        "timestamp", "delivery-count", "amqMessageId", "ingress-timestamp",
    }
)  # fmt: skip
"""Headers of one frame or one delivery, not of the message: never taken from the column ``headers``. Rows from another
queue contain those of their last delivery.
"""
_SAID_BY: Final = {
    "key": ("JMSXGroupID", "_AMQ_GROUP_ID"),
    "priority": ("priority",),
    "expiration": ("expires",),
    "deliverAt": ("AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_DELAY"),
    "delay": ("AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_DELAY"),
    "routingType": ("destination-type",),
}
"""Which headers a column says, or the option of its name: who gives one does not mean what a row brings along."""
_ALWAYS_SAID: Final = "persistent"
"""The option has a default, so it always says something, also where that means no header."""


@dataclass(frozen=True, slots=True)
class SendPlan:
    """How rows of one schema become frames. The driver makes it and sends it to the tasks."""

    columns: tuple[str, ...]
    """The internal name of each column, in the order of the schema."""
    options: SinkOptions


def send_plan(schema: StructType, options: SinkOptions) -> SendPlan:
    """Check the columns. Raises PipelineError for unknown, duplicate or missing columns, and for wrong types."""
    by_lower = {name.lower(): name for name in COLUMNS}
    names: list[str] = []
    for field in schema.fields:
        name = by_lower.get(field.name.lower())
        if name is None:
            meant = hint(field.name, COLUMNS)
            raise PipelineError(f"The sink has no column {field.name}: {meant}; select the columns to publish")
        if name in names:
            raise PipelineError(f"The column {name} appears twice")
        found = field.dataType.simpleString()
        if found not in COLUMNS[name]:
            raise PipelineError(f"Column {name} has the type {found}; allowed: {' or '.join(COLUMNS[name])}")
        names.append(name)
    if "value" not in names:
        raise PipelineError("A message needs the column value (string or binary)")
    if "address" in names and "topic" in names:
        raise PipelineError("Columns address and topic both set the destination; drop one")
    if "deliverAt" in names and "delay" in names:
        raise PipelineError("Columns deliverAt and delay both set the delivery time; drop one")
    if not {"address", "topic"} & set(names) and options.address is None:
        raise PipelineError("Messages have no destination; set the option address, or add the column address")
    return SendPlan(tuple(names), options)


class FrameMaker:
    """Makes the frames of one task. Repeated pieces are made once."""

    def __init__(self, plan: SendPlan) -> None:
        self._options = plan.options
        self._places = {name: place for place, name in enumerate(plan.columns)}
        options = plan.options
        fixed = "" if options.priority is None or "priority" in self._places else f"priority:{options.priority}\n"
        if options.routing_type is not None and "routingType" not in self._places:
            fixed += f"destination-type:{options.routing_type}\n"
        if options.persistent and "persistent" not in self._places:
            fixed += "persistent:true\n"
        self._fixed = f"transaction:{TRANSACTION}\n{fixed}".encode()
        said = set(self._places)
        said |= {"priority"} if options.priority is not None else set()
        said |= {"routingType"} if options.routing_type is not None else set()
        self._left_out = HOP_HEADERS | {_ALWAYS_SAID} | {name for one in said for name in _SAID_BY.get(one, ())}
        """Headers of a row that its column ``headers`` has no say in."""

    def frames(self, batch: pa.RecordBatch) -> list[bytes]:
        """One frame for each row, in order. Raises PipelineError for an invalid row."""
        try:
            return self._frames(batch)
        except StompError as error:
            raise PipelineError(str(error)) from None

    def _frames(self, batch: pa.RecordBatch) -> list[bytes]:
        bodies = self._bodies(batch)
        pieces = self._pieces(batch)
        if not pieces:
            address = self._options.address
            assert address is not None
            start = b"SEND\n" + self._destination(address) + self._fixed + b"content-length:"
            return [b"%b%d\n\n%b\0" % (start, len(body), body) for body in bodies]
        fixed = self._fixed
        return [
            b"SEND\n%b%bcontent-length:%d\n\n%b\0" % (b"".join(row), fixed, len(body), body)
            for *row, body in zip(*pieces, bodies, strict=True)
        ]

    def _bodies(self, batch: pa.RecordBatch) -> list[bytes]:
        column = pc.fill_null(batch.column(self._places["value"]).cast(pa.binary()), b"")
        bodies: list[bytes] = column.to_pylist()
        return bodies

    def _pieces(self, batch: pa.RecordBatch) -> list[list[bytes]]:
        """A list for each column that makes header lines: the lines of each row."""
        makers: dict[str, Callable[[Any], bytes]] = {
            "address": self._destination,
            "topic": self._destination,
            "key": _key,
            "priority": _priority,
            "persistent": self._persistent,
            "expiration": lambda ms: _time("expires", ms),
            "deliverAt": lambda ms: _time("AMQ_SCHEDULED_TIME", ms),
            "delay": lambda ms: _time("AMQ_SCHEDULED_DELAY", ms),
            "routingType": self._routing_type,
        }
        pieces = [
            self._lines(name, _plain(batch.column(place)), makers[name])
            for name, place in self._places.items()
            if name not in ("value", "headers")
        ]
        if pieces and not {"address", "topic"} & self._places.keys():
            assert self._options.address is not None
            pieces.insert(0, [self._destination(self._options.address)] * batch.num_rows)
        if "headers" in self._places:
            pieces.append([self._header_lines(one) for one in batch.column(self._places["headers"]).to_pylist()])
            if len(pieces) == 1:
                assert self._options.address is not None
                pieces.insert(0, [self._destination(self._options.address)] * batch.num_rows)
        return pieces

    def _lines(self, name: str, column: pa.Array, make: Callable[[Any], bytes]) -> list[bytes]:
        """Each distinct value is made into lines once."""
        coded = column.dictionary_encode(null_encoding="encode")
        lines = [make(value) for value in coded.dictionary.to_pylist()]
        return [lines[index] for index in coded.indices.to_pylist()]

    def _destination(self, address: str | None) -> bytes:
        address = address or self._options.address
        if not address:
            raise PipelineError(
                "A row has no address; fill the column address, or set the option address for such rows"
            )
        return header_line("destination", address)

    def _header_lines(self, headers: Any) -> bytes:
        """Arrow gives a map as pairs, and an array of structs as dictionaries."""
        if not headers:
            return b""
        return b"".join(
            header_line(name, _text(f"header {name}", value))
            for name, value in _pairs(headers)
            if name not in self._left_out and value is not None
        )

    def _persistent(self, persistent: bool | None) -> bytes:
        wanted = self._options.persistent if persistent is None else persistent
        return b"persistent:true\n" if wanted else b""

    def _routing_type(self, routing_type: str | None) -> bytes:
        routing_type = routing_type or self._options.routing_type
        if routing_type is None:
            return b""
        if routing_type.upper() not in ROUTING_TYPES:
            raise PipelineError(f"A row has the routingType {routing_type!r}; allowed: {' or '.join(ROUTING_TYPES)}")
        return f"destination-type:{routing_type.upper()}\n".encode()


def _plain(column: pa.Array) -> pa.Array:
    """Timestamps as epoch milliseconds, the rest as it is."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False).cast(pa.int64())
    return column


def _key(key: str | bytes | None) -> bytes:
    return b"" if key is None else header_line("JMSXGroupID", _text("key", key))


def _priority(priority: int | None) -> bytes:
    if priority is None:
        return b""
    if not 0 <= priority <= 9:
        raise PipelineError(f"A row has the priority {priority}; allowed: 0 to 9")
    return b"priority:%d\n" % priority


def _time(header: str, ms: int | None) -> bytes:
    if ms is None:
        return b""
    if ms < 0:
        raise PipelineError(f"A row has {ms} ms for the header {header}, which must not be negative")
    return b"%b:%d\n" % (header.encode(), ms)


def _pairs(headers: list[Any]) -> Iterator[tuple[str, str | bytes | None]]:
    for one in headers:
        name, value = (one["key"], one["value"]) if isinstance(one, dict) else one
        if not name:
            raise PipelineError("A row has a header without a name")
        yield name, value


def _text(what: str, value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise PipelineError(f"A row has a {what} that is not UTF-8 text: {value[:40]!r}") from None
