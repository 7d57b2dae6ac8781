"""Rows to SEND frames, and what is refused before a task starts; no JVM."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from artemis_py.errors import PipelineError
from artemis_py.spark.source import ArtemisDataSource
from artemis_py.spark.write.options import sink_options
from artemis_py.spark.write.send_frames import FrameMaker, send_plan
from artemis_py.spark.write.sink import _transactions

URL = {"url": "tcp://localhost:61613"}
HEADERS = t.MapType(t.StringType(), t.StringType())
PAIRS = t.ArrayType(t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())]))
PAIRS_ARROW = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def schema_of(**columns: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in columns.items()])


def frames_of(schema: t.StructType, columns: dict[str, Any], **options: str) -> list[tuple[list[str], bytes]]:
    """Header lines and body of each row's frame."""
    plan = send_plan(schema, sink_options({**URL, **options}))
    frames = FrameMaker(plan).frames(pa.record_batch(columns))
    found: list[tuple[list[str], bytes]] = []
    for frame in frames:
        assert frame.startswith(b"SEND\n")
        assert frame.endswith(b"\0")
        head, _, body = frame[5:-1].partition(b"\n\n")
        found.append((head.decode().split("\n"), body))
    return found


def test_value_alone() -> None:
    found = frames_of(schema_of(value=t.StringType()), {"value": ["é", "", None]}, address="a:b")
    assert [(lines[0], lines[-1], body) for lines, body in found] == [
        ("destination:a\\cb", "content-length:2", "é".encode()),
        ("destination:a\\cb", "content-length:0", b""),
        ("destination:a\\cb", "content-length:0", b""),
    ]
    assert "persistent:true" in found[0][0]
    assert "transaction:t" in found[0][0]


def test_a_binary_value_is_not_touched() -> None:
    [(lines, body)] = frames_of(schema_of(value=t.BinaryType()), {"value": [b"\0\xff\n"]}, address="a")
    assert (body, lines[-1]) == (b"\0\xff\n", "content-length:3")


@pytest.mark.parametrize("column", ["address", "topic"])
def test_the_address_of_a_row_goes_before_the_option(column: str) -> None:
    schema = schema_of(value=t.StringType(), **{column: t.StringType()})
    found = frames_of(schema, {"value": ["1", "2"], column: ["x", None]}, address="a")
    assert [lines[0] for lines, _ in found] == ["destination:x", "destination:a"]


@pytest.mark.parametrize(
    ("column", "kind", "values", "lines"),
    [
        ("key", t.StringType(), pa.array(["k:1", None]), ["JMSXGroupID:k\\c1", None]),
        ("key", t.BinaryType(), pa.array([b"k", None]), ["JMSXGroupID:k", None]),
        ("priority", t.IntegerType(), pa.array([9, None], pa.int32()), ["priority:9", None]),
        ("persistent", t.BooleanType(), pa.array([True, False]), ["persistent:true", None]),
        ("persistent", t.BooleanType(), pa.array([None, False]), ["persistent:true", None]),
        ("expiration", t.LongType(), pa.array([123, None]), ["expires:123", None]),
        ("deliverAt", t.LongType(), pa.array([5, None]), ["AMQ_SCHEDULED_TIME:5", None]),
        ("delay", t.IntegerType(), pa.array([7, None], pa.int32()), ["AMQ_SCHEDULED_DELAY:7", None]),
        ("routingType", t.StringType(), pa.array(["anycast", None]), ["destination-type:ANYCAST", None]),
    ],
)
def test_each_column(column: str, kind: t.DataType, values: pa.Array, lines: list[str | None]) -> None:
    schema = schema_of(value=t.StringType(), **{column: kind})
    found = frames_of(schema, {"value": ["1", "2"], column: values}, address="a")
    plain = {"destination:a", "transaction:t", "content-length:1"} | (
        set() if column == "persistent" else {"persistent:true"}
    )
    assert [set(found[row][0]) - plain for row in (0, 1)] == [{line} - {None} for line in lines]


@pytest.mark.parametrize("column", ["expiration", "deliverAt"])
def test_times_are_epoch_milliseconds(column: str) -> None:
    when = pa.array([datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)], pa.timestamp("us", tz="UTC"))
    schema = schema_of(value=t.StringType(), **{column: t.TimestampType()})
    [(lines, _)] = frames_of(schema, {"value": ["1"], column: when}, address="a")
    assert [line.partition(":")[2] for line in lines if line[0] in "eA"] == ["1767323045678"]


def test_headers_as_a_map_and_as_pairs() -> None:
    as_map = pa.array(
        [[("a", "1"), ("b:c", "x\ny"), ("none", None), ("receipt", "r")], None, []], pa.map_(pa.string(), pa.string())
    )
    found = frames_of(
        schema_of(value=t.StringType(), headers=HEADERS), {"value": ["1"] * 3, "headers": as_map}, address="q"
    )
    assert [lines[1 : lines.index("transaction:t")] for lines, _ in found] == [["a:1", "b\\cc:x\\ny"], [], []]
    as_pairs = pa.array([[{"key": "a", "value": "ü".encode()}]], PAIRS_ARROW)
    [(lines, _)] = frames_of(
        schema_of(value=t.StringType(), headers=PAIRS), {"value": ["1"], "headers": as_pairs}, address="q"
    )
    assert "a:ü" in lines


COPIED = [
    ("destination-type", "MULTICAST"), ("priority", "9"), ("persistent", "true"), ("JMSXGroupID", "other"),
    ("expires", "5"), ("AMQ_SCHEDULED_TIME", "5"), ("AMQ_SCHEDULED_DELAY", "5"), ("colour", "red"),
    ("message-id", "1-1"), ("subscription", "0"), ("ack", "1"), ("redelivered", "true"), ("timestamp", "1"),
    ("content-length", "99"), ("destination", "elsewhere"), ("delivery-count", "3"),
]  # fmt: skip
"""As a row has them that was a MESSAGE of another queue."""


@pytest.mark.parametrize("by", ["option", "column"])
def test_headers_that_a_row_brings_along_have_no_say_in_what_options_and_columns_say(by: str) -> None:
    headers = pa.array([COPIED], pa.map_(pa.string(), pa.string()))
    kinds: dict[str, t.DataType] = {"key": t.StringType(), "expiration": t.LongType(), "delay": t.IntegerType()}
    columns = {"key": ["g"], "expiration": [7], "delay": [8]}
    options = {"priority": "1", "persistent": "false", "routingType": "ANYCAST"}
    if by == "column":
        kinds |= {"priority": t.IntegerType(), "persistent": t.BooleanType(), "routingType": t.StringType()}
        columns |= {"priority": [1], "persistent": [False], "routingType": ["ANYCAST"]}
        options = {}
    schema = schema_of(value=t.StringType(), headers=HEADERS, **kinds)
    [(lines, _)] = frames_of(schema, {"value": ["1"], "headers": headers, **columns}, address="q", **options)
    assert sorted(lines) == [
        "AMQ_SCHEDULED_DELAY:8", "JMSXGroupID:g", "colour:red", "content-length:1", "destination-type:ANYCAST",
        "destination:q", "expires:7", "priority:1", "transaction:t",
    ]  # fmt: skip


def test_headers_stay_that_nothing_else_says() -> None:
    headers = pa.array([COPIED], pa.map_(pa.string(), pa.string()))
    schema = schema_of(value=t.StringType(), headers=HEADERS)
    [(lines, _)] = frames_of(schema, {"value": ["1"], "headers": headers}, address="q")
    assert {"destination-type:MULTICAST", "priority:9", "JMSXGroupID:other", "expires:5"} <= set(lines)
    assert [line for line in lines if line.startswith("persistent")] == ["persistent:true"]


def test_options_hold_for_every_row() -> None:
    options = {"priority": "7", "persistent": "false", "routingType": "multicast"}
    [(lines, _)] = frames_of(schema_of(value=t.StringType()), {"value": ["1"]}, address="a", **options)
    assert {"priority:7", "destination-type:MULTICAST"} <= set(lines)
    assert "persistent:true" not in lines


@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        (schema_of(key=t.StringType()), {"address": "a"}, "needs the column value"),
        (schema_of(value=t.StringType()), {}, "set the option address"),
        (
            schema_of(value=t.IntegerType()),
            {"address": "a"},
            "Column value has the type int; allowed: string or binary",
        ),
        (schema_of(value=t.StringType(), adress=t.StringType()), {}, "no column adress: did you mean address"),
        (schema_of(value=t.StringType(), offset=t.LongType()), {"address": "a"}, "no column offset"),
        (schema_of(value=t.StringType(), address=t.StringType(), topic=t.StringType()), {}, "drop one"),
        (schema_of(value=t.StringType(), delay=t.LongType(), deliverAt=t.LongType()), {"address": "a"}, "drop one"),
        (schema_of(value=t.StringType(), VALUE=t.StringType()), {"address": "a"}, "twice"),
        (
            schema_of(value=t.StringType(), priority=t.StringType()),
            {"address": "a"},
            "Column priority has the type string",
        ),
    ],
)
def test_columns_that_make_no_message(schema: t.StructType, options: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        send_plan(schema, sink_options({**URL, **options}))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"address": pa.array([None], pa.string())}, "no address"),
        ({"address": [""]}, "no address"),
        ({"address": ["a"], "priority": pa.array([10], pa.int32())}, "priority 10"),
        ({"address": ["a"], "routingType": ["BOTH"]}, "'BOTH'"),
        ({"address": ["a"], "delay": pa.array([-1], pa.int32())}, "-1 ms"),
        ({"address": ["a"], "key": pa.array([b"\xff"])}, "not UTF-8"),
        ({"address": ["a\0"]}, "NUL"),
    ],
)
def test_rows_that_make_no_message(columns: dict[str, Any], said: str) -> None:
    kinds = {
        "address": t.StringType(),
        "priority": t.IntegerType(),
        "routingType": t.StringType(),
        "delay": t.IntegerType(),
        "key": t.BinaryType(),
    }
    schema = schema_of(value=t.StringType(), **{name: kinds[name] for name in columns})
    with pytest.raises(PipelineError, match=said):
        frames_of(schema, {"value": ["1"], **columns})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs the option url"),
        ({"url": "http://host:8161"}, "name a STOMP acceptor"),
        ({"url": "amqp://host:5672"}, "stomps:// with TLS"),
        ({"url": "tcp://ann:secret@host:1"}, "must not contain a login"),
        ({**URL, "caFile": "/etc/ca.pem"}, "option caFile is about TLS"),
        ({"url": "ssl://host:1", "verify": "no"}, "whether to check the broker"),
        ({"url": "host"}, "Option url is 'host'"),
        ({"url": "host:99999"}, "Option url"),
        ({**URL, "adress": "a"}, "no option adress: did you mean address"),
        ({**URL, "topic": "a"}, "no option topic: option address sets"),
        ({"kafka.bootstrap.servers": "a:9092"}, "url names the broker: tcp://host:61613"),
        ({**URL, "priority": "10"}, "Option priority is '10'"),
        ({**URL, "persistent": "yes"}, "true or false"),
        ({**URL, "routingType": "x"}, "ANYCAST or MULTICAST"),
        ({**URL, "rowsPerTransaction": "0"}, "a number of rows"),
        ({**URL, "bytesPerTransaction": "much"}, "a size such as 8MiB"),
        ({**URL, "timeout": "soon"}, "a time to wait"),
    ],
)
def test_options_that_say_nothing(options: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        sink_options(options)


def test_what_was_sent_cannot_be_overwritten() -> None:
    source = ArtemisDataSource({**URL, "address": "a"})
    with pytest.raises(PipelineError, match="cannot be overwritten"):
        source.writer(schema_of(value=t.StringType()), overwrite=True)


def test_options_in_full() -> None:
    found = sink_options({
        "URL": "tcp://one:1, stomp://[::1]:2,three:3", "timeout": "2 minutes", "bytespertransaction": "1MiB",
        "checkpointLocation": "/c",
    })  # fmt: skip
    assert found.endpoints == (("one", 1, "tcp"), ("::1", 2, "stomp"), ("three", 3, "tcp"))
    assert (found.timeout_s, found.transaction_bytes_max, found.persistent) == (120.0, 1048576, True)
    assert [sink_options({**URL, "timeout": text}).timeout_s for text in ("500ms", "3", "1 h")] == [0.5, 3.0, 3600.0]


def chunks_of(rows: list[str], batch_rows: int, **options: str) -> list[tuple[str, str, int]]:
    """Id, digest and number of frames of each transaction."""
    plan = send_plan(schema_of(value=t.StringType()), sink_options({**URL, "address": "a", **options}))
    batches = [pa.record_batch({"value": rows[at : at + batch_rows]}) for at in range(0, len(rows), batch_rows)]
    found = list(_transactions(batches, plan, "q:0:1"))
    assert [rows for _, rows in found] == [one.sends.count(b"SEND\n") for one, _ in found]
    return [(one.commit_id, one.digest, rows) for one, rows in found]


def test_a_partition_that_fits_is_one_transaction() -> None:
    [(commit_id, digest, count)] = chunks_of(["x"] * 10, 3, rowsPerTransaction="10")
    assert (commit_id, digest[:6], count) == ("q:0:1:0", "whole:", 10)
    assert chunks_of([], 3) == []


def test_one_transaction_is_the_same_in_any_order_and_with_other_rows_another() -> None:
    digests = [
        chunks_of(rows, 2)[0][1] for rows in (["a", "b", "b"], ["b", "a", "b"], ["a", "a", "b"], ["d", "e", "f"])
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_its_division_depends_on_its_rows_alone() -> None:
    """Spark may cut Arrow batches elsewhere when it tries again."""
    rows = [f"row {number}" * (number % 7) for number in range(100)]
    for limit in ({"rowsPerTransaction": "13"}, {"bytesPerTransaction": "500"}):
        first = chunks_of(rows, 10, **limit)
        assert len(first) > 5
        assert first == chunks_of(rows, 33, **limit)
        assert [one[0] for one in first] == [f"q:0:1:{number}" for number in range(len(first))]
        assert sum(one[2] for one in first) == 100
        assert not any(one[1].startswith("whole") for one in first)


def test_another_order_gives_another_digest() -> None:
    rows = [str(number) for number in range(20)]
    other = [rows[1], rows[0], *rows[2:]]
    first, second = (chunks_of(one, 5, rowsPerTransaction="10") for one in (rows, other))
    assert first[0] != second[0]
    assert first[1] == second[1]
