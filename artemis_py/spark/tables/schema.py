"""The tables and their columns. Columns that Spark's Kafka source also has use its names and types.

All columns may be null. Times are UTC. docs/pipeline.md says what each column means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import types as spark

from artemis_py.spark.decode.columns import TIMESTAMP

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS: Final = pa.list_(pa.field("element", _HEADER))
TEXTS: Final = pa.list_(pa.field("element", pa.string()))

_STRING, _LONG, _INT, _BINARY = pa.string(), pa.int64(), pa.int32(), pa.binary()

MESSAGES: Final[dict[str, pa.DataType]] = {
    "key": _BINARY,
    "value": _BINARY,
    "topic": _STRING,
    "partition": _INT,
    "offset": _LONG,
    "timestamp": TIMESTAMP,
    "timestampType": _INT,
    "headers": HEADERS,
    "address": _STRING,
    "messageId": _LONG,
    "queues": TEXTS,
    "routingType": _STRING,
    "priority": _INT,
    "expiration": TIMESTAMP,
    "deliverAt": TIMESTAMP,
    "publishedAt": TIMESTAMP,
    "bodyBytes": _LONG,
    "origin": _STRING,
    "user": _STRING,
    "transaction": _LONG,
    "originalAddress": _STRING,
    "originalQueue": _STRING,
    "originalMessageId": _STRING,
    "reason": _STRING,
    "broker": _STRING,
    "segment": _LONG,
    "position": _LONG,
}
"""One row for each published message."""

EVENTS: Final[dict[str, pa.DataType]] = {
    "offset": _LONG,
    "timestamp": TIMESTAMP,
    "event": _STRING,
    "messageId": _LONG,
    "address": _STRING,
    "queue": _STRING,
    "consumer": _STRING,
    "origin": _STRING,
    "reason": _STRING,
    "attempts": _INT,
    "count": _LONG,
    "bytes": _LONG,
    "transaction": _LONG,
    "broker": _STRING,
    "segment": _LONG,
}
"""One row for each message and event."""

QUEUES: Final[dict[str, pa.DataType]] = {
    "broker": _STRING,
    "address": _STRING,
    "queue": _STRING,
    "routingType": _STRING,
    "durable": pa.bool_(),
    "filter": _STRING,
    "messageCount": _LONG,
    "persistentBytes": _LONG,
    "deliveringCount": _LONG,
    "scheduledCount": _LONG,
    "oldest": TIMESTAMP,
    "added": _LONG,
    "acked": _LONG,
    "expired": _LONG,
    "killed": _LONG,
    "replaced": _LONG,
    "asOf": TIMESTAMP,
}
"""One row for each queue that existed at a time."""

PAGES: Final[dict[str, pa.DataType]] = {
    "broker": _STRING,
    "address": _STRING,
    "stream": _LONG,
    "page": _LONG,
    "messages": _LONG,
    "bytes": _LONG,
    "state": _STRING,
    "firstPlace": _LONG,
    "openedAt": TIMESTAMP,
    "droppedAt": TIMESTAMP,
}
"""One row for each page file in the log."""

METRICS: Final[dict[str, pa.DataType]] = {
    "broker": _STRING,
    "address": _STRING,
    "queue": _STRING,
    "bucket": TIMESTAMP,
    "published": _LONG,
    "delivered": _LONG,
    "acked": _LONG,
    "expired": _LONG,
    "dead": _LONG,
    "replaced": _LONG,
    "depthEnd": _LONG,
    "depthMax": _LONG,
    "bytesIn": _LONG,
}
"""One row for each queue and each interval with events."""

ADDRESSES: Final[dict[str, pa.DataType]] = {"broker": _STRING, "address": _STRING}
"""One row for each address with a message or a queue in the log."""

SPANS: Final[dict[str, pa.DataType]] = {"broker": _STRING, "span": _LONG, "digest": _BINARY}
"""One row for each span of a log, from which ``spans`` makes the tables ``queues`` and ``pages``."""

TABLES: Final = {
    "messages": MESSAGES,
    "events": EVENTS,
    "queues": QUEUES,
    "pages": PAGES,
    "metrics": METRICS,
    "addresses": ADDRESSES,
    "queue-spans": SPANS,
    "page-spans": SPANS,
}

_SPARK_TYPES: Final[dict[pa.DataType, spark.DataType]] = {
    _STRING: spark.StringType(),
    _LONG: spark.LongType(),
    _INT: spark.IntegerType(),
    _BINARY: spark.BinaryType(),
    pa.bool_(): spark.BooleanType(),
    TIMESTAMP: spark.TimestampType(),
    TEXTS: spark.ArrayType(spark.StringType()),
    HEADERS: spark.ArrayType(
        spark.StructType([spark.StructField("key", spark.StringType()), spark.StructField("value", spark.BinaryType())])
    ),
}


def spark_schema(table: str, columns: Sequence[str]) -> spark.StructType:
    """The columns as Spark declares them."""
    kinds = TABLES[table]
    return spark.StructType([spark.StructField(name, _SPARK_TYPES[kinds[name]]) for name in columns])


def arrow_schema(table: str, columns: Sequence[str]) -> pa.Schema:
    """The same columns as Spark wants them in Arrow batches."""
    kinds = TABLES[table]
    return pa.schema([pa.field(name, kinds[name]) for name in columns])
