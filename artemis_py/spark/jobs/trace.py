"""The history of one message and its copies: who sent it, where it went, who got it when, and what became of it.

In the same words as ``artemis-py trace``, of rows instead of a log's events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from artemis_py.history import ENDS, PUBLISHED, RECALLED, THERE, arrival_words, copy_words, recall_words, words
from artemis_py.spark.jobs.result import COUNT, TIME, Column, Result, Table, in_utc
from artemis_py.spark.jobs.source import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from artemis_py.spark.jobs.source import Source

_MESSAGE_COLUMNS: Final = (
    "broker", "messageId", "address", "queues", "priority", "origin", "user", "originalMessageId", "originalAddress",
    "originalQueue", "reason",
)  # fmt: skip
_EVENT_COLUMNS: Final = (
    "broker", "messageId", "offset", "timestamp", "event", "queue", "consumer", "reason", "attempts", "bytes",
)  # fmt: skip
_SHOWN: Final = (
    Column("time", "time", TIME), Column("messageId", "message"), Column("what", "what"), Column("queue", "queue"),
    Column("text", "text"), Column("who", "who"), Column("offset", "lsn", COUNT),
)  # fmt: skip
_RELATIVES_MAX: Final = 1_000
"""The maximum number of related copies to follow."""
_EVENTS_MAX: Final = 100_000
_ID: Final = re.compile(r"(?:\d+-)?(?P<number>\d+)", re.ASCII)


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
    frame = spark.createDataFrame(
        [tuple(event[name] for name in _EVENT_COLUMNS) for event in events],
        "broker string, messageId long, offset long, timestamp timestamp, event string, queue string, "
        "consumer string, reason string, attempts int, bytes long",
    )
    rows = [*_told(family, events), *_still_there(family, events)]
    table = Table("events", "What happened", _SHOWN, rows, printed_max=None)
    return Result("trace", f"Message {number}", tables=[table], frames={"trace_events": frame})


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
    return sorted(rows, key=lambda row: (row["offset"], row["event"] != PUBLISHED, row["queue"] or ""))


def _told(family: dict[int, dict[str, Any]], events: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """A row for each event; that a message came to a queue is said with its publication."""
    for event in events:
        message, what, queue, who = family[event["messageId"]], event["event"], event["queue"] or "", event["consumer"]
        if what in ("routed", "scheduled"):
            continue
        if what == PUBLISHED:
            word, text = _published(family, message, event["bytes"])
            who = message["origin"] and message["origin"] + (f" (user {message['user']})" if message["user"] else "")
        elif what == RECALLED:
            word, text = recall_words([queue])
        else:
            word, text = words(what, event["reason"] or "", event["attempts"] or 0)
        yield event["timestamp"], message["messageId"], word, queue, text, who or "", event["offset"]


def _published(family: dict[int, dict[str, Any]], message: dict[str, Any], size_bytes: int) -> tuple[str, str]:
    original = _original(message)
    if original is None or (original not in family and message["reason"] is None):
        return arrival_words(message["address"], message["queues"], size_bytes, message["priority"])
    origin = message["originalQueue"] or message["originalAddress"] or ""
    return copy_words(original, origin, message["reason"] or "", message["address"], message["queues"], size_bytes)


def _still_there(family: dict[int, dict[str, Any]], events: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """A row for each queue that is not done with a message."""
    recalled = [(event["messageId"], event["queue"]) for event in events if event["event"] == RECALLED]
    ended = {(event["messageId"], event["queue"]) for event in events if event["event"] in ENDS}
    came = [(number, queue) for number, message in family.items() for queue in message["queues"]]
    for number, queue in dict.fromkeys([*came, *recalled]):
        if (number, queue) not in ended:
            yield None, number, THERE[0], queue, THERE[1], "", None
