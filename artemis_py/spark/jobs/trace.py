"""The history of one message: who sent it, where it went, who got it when, and what happened to its copies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from artemis_py.spark.jobs import names
from artemis_py.spark.jobs.result import COUNT, TIME, Column, Result, Table, Text, in_utc
from artemis_py.spark.jobs.source import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_MESSAGE_COLUMNS: Final = (
    "broker", "messageId", "offset", "address", "publishedAt", "bodyBytes", "priority", "expiration", "deliverAt",
    "origin", "user", "transaction", "originalMessageId", "originalQueue", "reason", "segment",
)  # fmt: skip
_EVENT_COLUMNS: Final = (
    "broker", "messageId", "offset", "timestamp", "event", "queue", "consumer", "reason", "attempts",
)  # fmt: skip
_RELATIVES_MAX: Final = 1_000
"""The maximum number of related copies to follow."""
_EVENTS_MAX: Final = 100_000
_ID: Final = re.compile(r"(?:\d+-)?(?P<number>\d+)", re.ASCII)


@dataclass(slots=True)
class _Story:
    """One message: its row, and its events in order."""

    message: dict[str, Any]
    events: list[dict[str, Any]] = field(default_factory=list)
    copies: list[_Story] = field(default_factory=list)


def message_number(text: str) -> int:
    """The number of a message from the ``message-id`` of a MESSAGE frame (``12-345``, of consumer 12) or from the log
    (``345``). Raises JobError for anything else.
    """
    found = _ID.fullmatch(text.strip())
    if found is None:
        raise JobError(
            f"{text!r} is not a message id; give the one of a MESSAGE frame, such as 12-345, or of the log, such as 345"
        )
    return int(found["number"])


def trace(spark: SparkSession, source: Source, message_id: str, *, broker: str | None = None) -> Result:
    """The history of a message, its original and its copies. Raises JobError if the log does not have it, or if several
    brokers do and ``broker`` does not choose one.
    """
    number = message_number(message_id)
    family, events = _found(spark, source, number, broker)
    roots = _stories(family, events)
    picture = "\n\n".join(picture_of(root) for root in roots)
    columns = (
        Column("timestamp", "time", TIME), Column("messageId", "message"), Column("event", "event"),
        Column("queue", "queue"), Column("consumer", "consumer"), Column("reason", "reason"),
        Column("attempts", "attempts", COUNT), Column("offset", "lsn", COUNT),
    )  # fmt: skip
    rows = [tuple(event[column.name] for column in columns) for event in events]
    frame = spark.createDataFrame(
        [tuple(event[name] for name in _EVENT_COLUMNS) for event in events],
        "broker string, messageId long, offset long, timestamp timestamp, event string, queue string, "
        "consumer string, reason string, attempts int",
    )
    return Result(
        "trace",
        f"Message {number}",
        texts=[Text("story", "Biography", picture)],
        tables=[Table("events", "Events", columns, rows)],
        frames={"trace_events": frame},
    )


def _found(
    spark: SparkSession, source: Source, number: int, broker: str | None
) -> tuple[dict[int, dict[str, Any]], list[dict[str, Any]]]:
    """The message and its relatives by number, and what happened to them."""
    family = _family(lambda: source.table(spark, "messages", _MESSAGE_COLUMNS), number, broker)
    if not family:
        raise JobError(f"message {number} is not in the log; look in an archive, or widen --from and --to")
    named = next(iter(family.values()))["broker"]
    return family, _events(source.table(spark, "events", _EVENT_COLUMNS), named, family)


def _family(table: Callable[[], DataFrame], number: int, broker: str | None) -> dict[int, dict[str, Any]]:
    """The message, what it is a copy of and what are copies of it, by number. Each generation asks for numbers alone,
    of messages and of what they are copies of, so that a log need only be read where it speaks of them.
    """
    known: dict[int, dict[str, Any]] = {}
    asked: set[int] = set()
    frontier = {number}
    while frontier and len(known) < _RELATIVES_MAX:
        asked |= frontier
        numbers = sorted(frontier)
        # Two tables: of one and the same Spark gives the reader the conditions of one branch for both.
        own = table().where(F.col("messageId").isin(numbers))
        copies = table().where(F.col("originalMessageId").isin([str(each) for each in numbers]))
        both = own.unionByName(copies)
        if broker is not None:
            both = both.where(F.col("broker") == broker)
        found = [in_utc(row) for row in both.take(_RELATIVES_MAX)]
        if not known:
            broker = _only_broker(found, number)
        known |= {row["messageId"]: row for row in found}
        frontier = (set(known) | _originals(known)) - asked
    return known


def _originals(known: dict[int, dict[str, Any]]) -> set[int]:
    return {number for number in map(_original, known.values()) if number is not None}


def _original(row: dict[str, Any]) -> int | None:
    """The number of what a message is a copy of. A client may have written anything there."""
    text = row["originalMessageId"]
    return int(text) if text and text.isdecimal() else None


def _only_broker(found: list[dict[str, Any]], number: int) -> str:
    """Numbers are unique in one broker's log only."""
    brokers = sorted({row["broker"] for row in found})
    if len(brokers) > 1:
        raise JobError(f"message {number} is in the logs of {', '.join(brokers)}; choose one with --broker")
    return brokers[0] if brokers else ""


def _events(events: DataFrame, broker: str, family: Iterable[int]) -> list[dict[str, Any]]:
    wanted = (F.col("broker") == broker) & F.col("messageId").isin(sorted(family))
    rows = [in_utc(row) for row in events.where(wanted).take(_EVENTS_MAX)]
    return sorted(rows, key=lambda row: (row["offset"], row["event"] != names.PUBLISHED, row["queue"] or ""))


def _stories(family: dict[int, dict[str, Any]], events: list[dict[str, Any]]) -> list[_Story]:
    """Those that are no copy of another one here, with their copies below them."""
    stories = {number: _Story(family[number]) for number in sorted(family)}
    for event in events:
        stories[event["messageId"]].events.append(event)
    roots: list[_Story] = []
    for story in stories.values():
        number = _original(story.message)
        original = None if number is None else stories.get(number)
        (roots if original is None else original.copies).append(story)
    return roots


# ---- the picture ---------------------------------------------------------------------------------


def picture_of(story: _Story) -> str:
    """The history as a tree of lines: first the message, then each queue with its events."""
    return "\n".join(_picture(story, story.message["publishedAt"]))


def _picture(story: _Story, began: datetime) -> list[str]:
    message = story.message
    lines = [_headline(message)]
    facts = [f"{_clock(message['publishedAt'])} published"]
    if message["origin"]:
        facts.append(f"by {message['origin']}" + (f", user {message['user']}" if message["user"] else ""))
    facts.append(f"at lsn {message['offset']} in segment {message['segment']}")
    if message["transaction"]:
        facts.append(f"in the transaction of lsn {message['transaction']}")
    lines.append("│  " + " ".join(facts))
    if message["expiration"]:
        lines.append(f"│ expires at {_clock(message['expiration'])}")
    if message["deliverAt"]:
        lines.append(f"│  not before {_clock(message['deliverAt'])}")
    queues: dict[str, list[dict[str, Any]]] = {}
    for event in story.events:
        if event["queue"]:
            queues.setdefault(event["queue"], []).append(event)
    branches = [_branch(queue, events, story.copies, began) for queue, events in queues.items()]
    shown = {id(copy) for queue in queues for copy in story.copies if copy.message["originalQueue"] == queue}
    rest = [copy for copy in story.copies if id(copy) not in shown]
    branches += [[f"copied as {lines_of[0]}", *lines_of[1:]] for lines_of in (_picture(copy, began) for copy in rest)]
    if not branches:
        lines.append("└─ no durable queue got it")
    for place, branch in enumerate(branches):
        is_last = place == len(branches) - 1
        lines.append("│")
        lines.append(("└─ " if is_last else "├─ ") + branch[0])
        lines += [("   " if is_last else "│  ") + line for line in branch[1:]]
    return lines


def _headline(message: dict[str, Any]) -> str:
    what = f"{message['bodyBytes']} bytes, priority {message['priority']}"
    return f"message {message['messageId']} to {message['address']}: {what}"


def _branch(queue: str, events: list[dict[str, Any]], copies: list[_Story], began: datetime) -> list[str]:
    lines = [f"queue {queue}"]
    for event in events:
        lines.append(f"  {_later(event['timestamp'] - began)}  {_told(event)}")
    if not any(event["event"] in names.ENDS for event in events):
        lines.append(f"  {'':>12}  still in the queue at the end of this log")
    for copy in copies:
        if copy.message["originalQueue"] == queue:
            first, *more = _picture(copy, began)
            lines.append(f"  └─ continued as {first}")
            lines += [f"     {line}" for line in more]
    return lines


def _told(event: dict[str, Any]) -> str:
    kind = event["event"]
    who = f" {event['consumer']}" if event["consumer"] else ""
    reason = f" ({event['reason']})" if event["reason"] and event["reason"] != kind else ""
    told = {
        names.ROUTED: "arrived in the queue",
        names.SCHEDULED: "arrived in the queue, scheduled",
        names.RECALLED: "put in the queue, from the log",
        names.DUE: "became due",
        names.DELIVERED: f"delivered to{who or ' a consumer'}",
        names.ATTEMPTED: f"returned: failed delivery {event['attempts']}",
        names.ACKED: f"acknowledged{f' by{who}' if who else ''}",
        names.MOVED: "moved by an operator",
    }
    return f"{told.get(kind) or f'{kind}: {names.LOSSES.get(kind, kind)}'}{reason}"


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"


def _later(delay: Any) -> str:
    """How long after the beginning of the story, in twelve characters."""
    milliseconds = round(delay.total_seconds() * 1000)
    if abs(milliseconds) < 10_000:
        return f"{f'+{milliseconds} ms':>12}"
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{f'+{hours}:{minutes:02}:{seconds:02}.{rest:03}':>12}"
