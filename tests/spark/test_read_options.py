"""Options of the source: what each says, and errors that name what is wrong and what may be said."""

from __future__ import annotations

import pytest

from artemis_py.errors import PipelineError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.read.options import read_options

HERE = {"journal": "/log"}


def test_defaults_are_kafkas() -> None:
    batch = read_options(HERE)
    assert (batch.table, batch.starting, batch.ending) == ("messages", "earliest", "latest")
    assert (batch.include_body, batch.fails_on_loss, batch.rows_max) == (True, True, 50_000)
    assert "headers" not in batch.columns
    assert "value" in batch.columns
    assert read_options(HERE, streaming=True).starting == "latest"


def test_every_option_is_taken() -> None:
    options = read_options(
        {
            "JOURNAL": "/log", "broker": "b", "table": "Messages", "columns": "offset, value", "includebody": "FALSE",
            "subscribe": "a, b", "subscribePattern": "c.#", "startingoffsets": '{"b": 7}', "endingOffsets": '{"b": 9}',
            "endingTimestamp": "1700000000000", "failOnDataLoss": "false", "rowsPerBatch": "9", "partitionBytes": "10",
            "minPartitions": "4",
        }
    )  # fmt: skip
    assert options.journal == "/log"
    assert options.columns == ("offset", "value")
    assert not options.include_body
    assert options.addresses == ("a", "b")
    assert options.pattern == "c.#"
    assert (options.starting, options.ending, options.ending_ms) == ({"b": 7}, {"b": 9}, 1_700_000_000_000)
    assert not options.fails_on_loss
    assert (options.rows_max, options.partition_bytes, options.partitions_min) == (9, 10, 4)
    remote = read_options({"url": "http://a:1, https://b:2", "user": "u", "password": "p", "brokerTimeoutSeconds": "5"})
    assert (remote.urls, remote.wait_s) == (("http://a:1", "https://b:2"), 5)
    assert (remote.login, remote.tls) == (ClientLogin("u", "p"), ClientTls())
    stream = read_options(
        {**HERE, "maxOffsetsPerTrigger": "5", "maxBytesPerTrigger": "6", "cursor": "c", "cursorTtlSeconds": "7"},
        streaming=True,
    )
    assert (stream.offsets_max, stream.bytes_max, stream.cursor, stream.cursor_ttl_s) == (5, 6, "c", 7)


def test_path_stands_for_journal() -> None:
    assert read_options({"path": "/log"}).journal == "/log"


def test_headers_come_when_they_are_asked_for() -> None:
    assert "headers" in read_options({**HERE, "includeHeaders": "true"}).columns
    assert read_options({**HERE, "columns": "headers"}).columns == ("headers",)


@pytest.mark.parametrize(
    ("text", "span_ms"),
    [("1 minute", 60_000), ("10 seconds", 10_000), ("2h", 7_200_000), ("500 ms", 500), ("1d", 86_400_000)],
)
def test_intervals(text: str, span_ms: int) -> None:
    assert read_options({**HERE, "table": "metrics", "interval": text}).interval_ms == span_ms


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
    ],
)
def test_times(text: str, time_ms: int) -> None:
    assert read_options({**HERE, "table": "queues", "asOf": text}).as_of_ms == time_ms


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"startingOffset": "earliest"}, "startingOffset is unknown: did you mean startingOffsets"),
        ({"table": "message"}, "did you mean messages"),
        ({"columns": "offset,valeu"}, "valeu, which table messages does not have: did you mean value"),
        ({"columns": "offset,offset"}, "each once"),
        ({"columns": ","}, "comma-separated columns"),
        ({"includeBody": "yes"}, "includeBody is 'yes'; allowed: true or false"),
        ({"startingOffsets": "first"}, 'earliest, latest or {"broker": lsn}'),
        ({"startingOffsets": '{"b": "7"}'}, 'earliest, latest or {"broker": lsn}'),
        ({"startingOffsets": "{}"}, 'earliest, latest or {"broker": lsn}'),
        ({"startingOffsets": "latest"}, "a batch would read nothing"),
        ({"endingOffsets": "earliest"}, "would read nothing"),
        ({"startingTimestamp": "yesterday"}, "epoch milliseconds"),
        ({"startingTimestamp": "1", "startingOffsets": "earliest"}, "both set the start"),
        ({"rowsPerBatch": "0"}, "a number of rows"),
        ({"minPartitions": "0"}, "minPartitions is '0'; allowed: a number of tasks"),
        ({"minPartitions": "2", "table": "queues"}, "minPartitions is for the tables messages and events"),
        ({"interval": "1 fortnight"}, "a span of time"),
        ({"interval": "0 s"}, "a span of time"),
        ({"asOf": "1"}, "asOf is for table queues"),
        ({"table": "queues", "asOf": "noon"}, "ISO 8601"),
        ({"maxOffsetsPerTrigger": "5"}, "for spark.readStream"),
        ({"cursor": "c"}, "for spark.readStream"),
        ({"url": "http://a"}, "both are given"),
        ({"kafka.bootstrap.servers": "a:9092"}, "is unknown: url names the broker: http://host:8161"),
        ({"startingOffsetsByTimestamp": "{}"}, "use startingTimestamp"),
        ({"startingTimestamp": "6", "endingTimestamp": "5"}, "startingTimestamp is later than endingTimestamp"),
        ({"startingTimestamp": "6", "endingTimestamp": '{"a": 5}'}, "startingTimestamp of a is later"),
        ({"startingTimestamp": '{"a": 6, "b": 4}', "endingTimestamp": '{"b": 5, "a": 5}'}, "startingTimestamp of a is"),
        ({"endingTimestamp": '{"a": -1}'}, 'epoch milliseconds, or {"address": epoch milliseconds}'),
        ({"endingTimestamp": '{"a": 1'}, 'epoch milliseconds, or {"address": epoch milliseconds}'),
        ({"endingTimestamp": "{}"}, 'epoch milliseconds, or {"address": epoch milliseconds}'),
        ({"endingTimestamp": '{"a": true}'}, 'epoch milliseconds, or {"address": epoch milliseconds}'),
        (
            {"subscribe": "orders", "endingTimestamp": '{"order": 5}'},
            "endingTimestamp names order, which is not in subscribe",
        ),
        (
            {"table": "queues", "endingTimestamp": '{"a": 5}'},
            "endingTimestamp with addresses is for the tables messages",
        ),
        ({"table": "metrics", "startingTimestamp": '{"a": 5}'}, "startingTimestamp with addresses is for the tables"),
        ({"endingOffsetsByTimestamp": "{}"}, 'use endingTimestamp, for all addresses or as {"address"'),
        ({"interval": "1 minute"}, "interval is for table metrics"),
        ({"table": "queues", "startingOffsets": '{"b": 7}'}, "from its beginning; leave out startingOffsets"),
        ({"table": "pages", "startingTimestamp": "5"}, "from its beginning; leave out startingTimestamp"),
    ],
)
def test_what_is_wrong_is_told(more: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError) as refused:
        read_options({**HERE, **more})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"table": "queues"}, "table queues cannot be streamed"),
        ({"table": "metrics"}, "table metrics cannot be streamed"),
        ({"endingOffsets": "latest"}, "a stream has no end"),
        ({"endingTimestamp": "5"}, "a stream has no end"),
        ({"endingTimestamp": '{"a": 5}'}, "a stream has no end"),
    ],
)
def test_what_is_wrong_of_a_stream_is_told(more: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError) as refused:
        read_options({**HERE, **more}, streaming=True)
    assert said in str(refused.value)


def test_some_place_has_to_be_named() -> None:
    with pytest.raises(PipelineError, match="none is given"):
        read_options({})


@pytest.mark.parametrize("url", ["tcp://a:61613", "a:8161", "http://", "http://:8161", "http://a:99999", "http://a:x"])
def test_what_is_no_url_of_a_broker(url: str) -> None:
    with pytest.raises(PipelineError, match=r"option url is .*http://host:8161"):
        read_options({"url": f"http://b:8161,{url}"})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"maxMessagesPerTrigger": "0"}, "maxMessagesPerTrigger is '0'; allowed: a number of messages"),
        ({"minOffsetsPerTrigger": "few"}, "minOffsetsPerTrigger is 'few'; allowed: a number of offsets"),
        ({"maxTriggerDelay": "1 fortnight", "minOffsetsPerTrigger": "5"}, "maxTriggerDelay is '1 fortnight'"),
        ({"maxTriggerDelay": "1 minute"}, "how long minOffsetsPerTrigger or minMessagesPerTrigger waits; give one"),
        ({"minMessagesPerTrigger": "5", "maxMessagesPerTrigger": "4"}, "no batch would ever be ready"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "no batch would ever be ready"),
        ({"table": "events", "maxMessagesPerTrigger": "4"}, "maxMessagesPerTrigger is for table messages"),
        ({"skipUnavailableBrokers": "yes"}, "skipUnavailableBrokers is 'yes'; allowed: true or false"),
        ({"keepRemovedBrokers": "1"}, "keepRemovedBrokers is '1'; allowed: true or false"),
        ({"startingTimestamp": '{"a": "noon"}'}, "startingTimestamp is"),
        ({"startingTimestamp": "{}"}, 'epoch milliseconds, or {"address": epoch milliseconds}'),
        ({"subscribe": "orders", "startingTimestamp": '{"order": 5}'}, "names order, which is not in subscribe"),
        ({"table": "addresses"}, "table addresses cannot be streamed"),
    ],
)
def test_what_is_wrong_of_limits_and_times_is_told(more: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError) as refused:
        read_options({**HERE, **more}, streaming=True)
    assert said in str(refused.value)


def test_limits_and_times() -> None:
    options = read_options(
        {
            **HERE, "maxMessagesPerTrigger": "9", "minMessagesPerTrigger": "3", "minOffsetsPerTrigger": "4",
            "maxTriggerDelay": "2m", "skipUnavailableBrokers": "true", "keepRemovedBrokers": "TRUE",
            "subscribe": "a,b", "startingTimestamp": '{"a": 7, "b": 5}', "serialization.format": "1",
        },
        streaming=True,
    )  # fmt: skip
    assert (options.messages_max, options.messages_min, options.offsets_min) == (9, 3, 4)
    assert (options.delay_max_ms, options.skips_unavailable, options.keeps_removed) == (120_000, True, True)
    assert (options.starting, options.starting_ms, options.starting_since) == ("earliest", 5, {"a": 7, "b": 5})
    assert read_options({**HERE, "startingTimestamp": '{"a": 7}'}).starting_ms is None
    ended = read_options({**HERE, "subscribe": "a,b", "endingTimestamp": '{"a": 7, "b": 5}'})
    assert (ended.ending_ms, ended.ending_until) == (7, {"a": 7, "b": 5})
    assert read_options({**HERE, "subscribe": "a,b", "endingTimestamp": '{"a": 7}'}).ending_ms is None
    assert read_options({"path": "file:/a%20b/log"}).journal == "/a b/log"


@pytest.mark.parametrize("name", ["maxMessagesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"])
def test_limits_are_for_streams(name: str) -> None:
    with pytest.raises(PipelineError, match=f"option {name} is for spark.readStream"):
        read_options({**HERE, name: "5 s" if name == "maxTriggerDelay" else "5"})
