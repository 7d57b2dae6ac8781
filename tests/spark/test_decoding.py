"""The decoder of pieces of the log finds what `storage.format.reader` finds, byte for byte, in every kind of file."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import IsNotNull

from artemis_py.message import COPIED, COPIED_QUEUE, COPIED_REASON, UNKNOWN, Account, Head, LargeBody
from artemis_py.spark.decode.record_walk import Piece, walk
from artemis_py.spark.tables.events import event_batches
from artemis_py.spark.tables.filters import HEADER_COLUMNS, Pushed
from artemis_py.spark.tables.messages import message_batches
from artemis_py.spark.tables.reading import Names, Reading, Wanted
from artemis_py.spark.tables.schema import EVENTS, MESSAGES, arrow_schema
from artemis_py.storage.format import codec, reader, records
from artemis_py.storage.format import log_events as log
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.scan import Damage, log_files
from artemis_py.storage.format.segment_index import index_of
from artemis_py.storage.retention.retention import RetentionSettings
from tests.kit.journal_story import Story
from tests.spark.raw_log import RawFile, damaged_files, files

Row = dict[str, Any]
SESSIONS: dict[Any, dict[str, str]] = {
    21: {"client": "host:1", "login": "ann"},
    22: {"client": "host:2"},
    5: {"client": "story"},
}
CONSUMERS = {11: {"session": 21, "subscription": "s"}, 12: {"session": 99, "subscription": "t"}}
QUEUES = {
    1: {"name": "q1", "address": "orders"},
    2: {"name": "q2", "address": "a2"},
    3: {"name": "q3", "address": "a3"},
}


LARGE: Any = SimpleNamespace(broker="b", body=lambda number, _size_bytes: b"large %d" % number)
"""A log whose large bodies tell their number."""


def rows_of(
    raw: bytes, table: str, *, is_last: bool = False, names: Names | None = None, wanted: Wanted | None = None
) -> tuple[list[Row], list[Damage]]:
    """What the decoder makes of a file."""
    damages: list[Damage] = []
    begun_ms = records.decode_file_header(raw).created_ms  # the time of its first BATCH, should that be damaged
    found = walk(Piece("f", raw[64:], 64, begun_ms, is_last), damages)
    columns = list(MESSAGES if table == "messages" else EVENTS)
    known = names or Names(QUEUES, SESSIONS, CONSUMERS)
    reading = Reading(
        found,
        lambda places: places + 64,
        7,
        LARGE,
        known,
        wanted or Wanted(),
        arrow_schema(table, columns),
        True,
        3,
        True,
    )
    batches = message_batches if table == "messages" else event_batches
    rows: list[Row] = []
    for batch in batches(reading):
        assert batch.schema == arrow_schema(table, columns)
        batch.validate(full=True)
        rows += batch.to_pylist()
    return rows, damages


def moment(value_ms: int) -> datetime | None:
    return datetime.fromtimestamp(value_ms / 1000, UTC) if value_ms else None


def broker_headers(head: Head) -> dict[str, str]:
    """The headers that the broker wrote; all of a message of an older log may be that."""
    if head.provenance == UNKNOWN:
        return head.properties
    told = head.provenance - COPIED
    names = {"_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_MESSAGE_ID"} if told >= 0 else set()
    names |= {"_AMQ_ORIG_QUEUE"} if told >= 0 and told & COPIED_QUEUE else set()
    names |= {"reason"} if told >= 0 and told & COPIED_REASON else set()
    return {name: value for name, value in head.properties.items() if name in names}


def message_row(event: log.Published) -> Row:
    kept, message = event.kept, event.kept.message
    properties, copied = message.head.properties, broker_headers(message.head)
    body = message.body
    session = SESSIONS.get(event.session, {})
    group = properties.get("JMSXGroupID", properties.get("_AMQ_GROUP_ID"))
    dues = [one.due_ms for one in (kept.details or {}).values()]
    return {
        "key": None if group is None else group.encode(),
        "value": b"large %d" % body.number if isinstance(body, LargeBody) else body,
        "topic": message.head.address,
        "partition": 0,
        "offset": event.lsn,
        "timestamp": moment(message.timestamp_ms),
        "timestampType": 0,
        "headers": [{"key": name, "value": value.encode()} for name, value in message.head.headers()],
        "address": message.head.address,
        "messageId": message.id,
        "queues": [QUEUES[number]["name"] if number in QUEUES else f"#{number}" for number in kept.queue_ids],
        "routingType": message.head.routing_type,
        "priority": message.head.priority,
        "expiration": moment(message.expires_ms),
        "deliverAt": moment(max(dues, default=0)),
        "publishedAt": moment(event.time_ms),
        "bodyBytes": len(body),
        "origin": session.get("client"),
        "user": session.get("login"),
        "transaction": event.group or None,
        "originalAddress": copied.get("_AMQ_ORIG_ADDRESS"),
        "originalQueue": copied.get("_AMQ_ORIG_QUEUE"),
        "originalMessageId": copied.get("_AMQ_ORIG_MESSAGE_ID"),
        "reason": copied.get("reason") if "_AMQ_ORIG_ADDRESS" in properties else None,
        "broker": "b",
        "segment": 7,
    }


def event_rows(event: log.Event) -> list[Row]:
    plain: Row = dict.fromkeys(EVENTS)
    plain |= {"offset": event.lsn, "timestamp": moment(event.time_ms), "count": 1, "broker": "b", "segment": 7}
    plain["transaction"] = event.group or None
    match event:
        case log.Published():
            message = event.kept.message
            one = {**plain, "messageId": message.id, "address": message.head.address, "bytes": message.size_bytes}
            rows = [{**one, "event": "published", "origin": SESSIONS.get(event.session, {}).get("client")}]
            for number in event.kept.queue_ids:
                detail = (event.kept.details or {}).get(number)
                kind = "scheduled" if detail is not None and detail.due_ms else "routed"
                rows.append({**one, "event": kind, **of_queue(number)})
            return rows
        case log.Recalled():
            message = event.kept.message
            one = {**plain, "event": "recalled", "messageId": message.id, "bytes": message.size_bytes}
            return [{**one, **of_queue(number)} for number in event.kept.queue_ids]
        case log.Settled() | log.Delivered():
            one = {**plain, "event": "delivered" if isinstance(event, log.Delivered) else event.reason}
            queue = of_queue(event.queue_id, event.consumer)
            return [{**one, "messageId": number, **queue} for number in event.message_ids]
        case log.ScheduledDue():
            one = {**plain, "event": "due", **of_queue(event.queue_id)}
            return [{**one, "messageId": number} for number in event.message_ids]
        case log.Attempted():
            told = {"messageId": event.message_id, "attempts": event.attempts, "reason": event.cause or None}
            return [{**plain, "event": "attempted", **told, **of_queue(event.queue_id, event.consumer)}]
        case log.Purged():
            told = {"count": event.count, "bytes": event.size_bytes}
            return [{**plain, "event": event.reason, **told, **of_queue(event.queue_id)}]
        case log.Refused():
            told = {"address": event.address, "reason": event.policy, "count": event.count, "bytes": event.size_bytes}
            return [{**plain, "event": "refused", **told, "origin": SESSIONS.get(event.session, {}).get("client")}]
    return []


def of_queue(number: int, consumer: int = 0) -> Row:
    """What a row says of a queue, and of one of its consumers."""
    queue = QUEUES.get(number, {"name": f"#{number}", "address": None})
    row = {"queue": queue["name"], "address": queue["address"]}
    if (known := CONSUMERS.get(consumer)) is not None:
        client = SESSIONS.get(known["session"], {}).get("client", "")
        row["consumer"] = f"{client}/{known['subscription']}"
    elif consumer:
        row["consumer"] = f"#{consumer}"
    return row


def compare(raw: bytes, *, is_last: bool) -> int:
    """What the decoder makes of a file is what the reader of the log makes of it. Returns how many messages it has."""
    damages: list[Damage] = []
    try:
        events = list(reader.events_of("f", raw, damages, is_last=is_last))
    except CodecError:
        return 0
    expected = {
        "messages": [message_row(event) for event in events if isinstance(event, log.Published)],
        "events": [row for event in events for row in event_rows(event)],
    }
    for table, rows in expected.items():
        found, found_damages = rows_of(raw, table, is_last=is_last)
        for row in found:
            position = row.pop("position", None)
            assert position is None or records.read_header(raw, position)[2] == row["offset"]
        assert found == rows, table
        assert found_damages == damages, table
    return len(expected["messages"])


@given(raw=files(), is_last=st.booleans())
def test_whole_files(raw: RawFile, is_last: bool) -> None:
    compare(raw.data, is_last=is_last)


@given(raw=damaged_files(), is_last=st.booleans())
def test_damaged_and_torn_files(raw: RawFile, is_last: bool) -> None:
    compare(raw.data, is_last=is_last)


@given(raw=files())
def test_asking_for_a_header_leaves_out_only_what_has_a_null(raw: RawFile) -> None:
    try:
        every, _ = rows_of(raw.data, "messages")
    except CodecError:
        return
    for column in HEADER_COLUMNS:
        pushed = Pushed("messages")
        pushed.narrow(IsNotNull((column,)))
        asked, _ = rows_of(raw.data, "messages", wanted=pushed.applied(Wanted(), "b"))
        assert len(asked) <= sum(row["originalAddress"] is not None or row[column] is not None for row in every)
        assert [row for row in asked if row[column] is not None] == [row for row in every if row[column] is not None]


def test_a_header_block_without_a_line() -> None:
    from artemis_py.spark.tables.messages import _headers

    assert _headers(b"\n") == []
    assert _headers(b"a:\nb:1\\n\n\n") == [{"key": "a", "value": b""}, {"key": "b", "value": b"1\n"}]


def test_a_journal_at_work(tmp_path: Path) -> None:
    story = Story(tmp_path / "journal", RetentionSettings(tmp_path / "retained", None, None))
    story.generate(random.Random(3), 150)
    files = log_files([tmp_path / "journal", tmp_path / "retained"])
    assert sum(compare(file.path.read_bytes(), is_last=False) for file in files) > 50


def test_names_come_from_the_index(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.turn(story.declare)
    story.turn(lambda: story.publish(1, [1, 3], b"x", origin=1))
    story.turn(lambda: story.deliver(1, [1]), lambda: story.settle(1, [1], "acked"))
    raw = log_files([tmp_path])[0].path.read_bytes()
    fields = index_of(raw, is_last=True).fields()
    names = Names()
    from artemis_py.spark.log.log import Segment

    names.learn(Segment.of(fields))
    row = rows_of(raw, "messages", names=names)[0][0]
    assert (row["queues"], row["origin"]) == (["q1", "q3"], "host:1")
    events = {row["event"]: row for row in rows_of(raw, "events", names=names)[0]}
    assert events["published"]["origin"] == "host:1"
    assert (events["acked"]["queue"], events["acked"]["consumer"]) == ("q1", "host:1/sub-1")


def test_a_large_body_makes_a_batch_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artemis_py.spark.tables.messages._BATCH_BYTES_MAX", 10)
    from artemis_py.message import Head, Message

    data = b""
    for lsn in range(1, 5):
        message = Message(Head(b"destination:a\n\n", "a"), LargeBody(lsn, 8), lsn, 1, 0, Account(), 0)
        data += records.encode_record(records.MESSAGE, lsn, codec.encode_message(codec.Kept(message, lsn, [])))
    data = records.encode_record(records.BATCH, 9, codec.encode_batch(codec.BatchHeader(1, 1, 1, 1))) + data
    found = walk(Piece("f", data, 64, None, is_last=False), [])
    reading = Reading(
        found,
        lambda places: places + 64,
        7,
        LARGE,
        Names(),
        Wanted(),
        arrow_schema("messages", ["value"]),
        True,
        100,
        True,
    )
    batches = [batch.to_pylist() for batch in message_batches(reading)]
    assert batches == [[{"value": b"large %d" % lsn}] for lsn in range(1, 5)]
