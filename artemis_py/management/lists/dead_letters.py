"""The fields of dead letters in lists: one row for those of one queue with the same origin and the same cause."""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.core.dead_letters import Origin, origin_of, retried_count
from artemis_py.management.lists.field import EPOCH_MS, NUMBER, TEXT, Field, Kind
from artemis_py.message import Message

GROUPS_MAX: Final = 10_000
"""So many rows; further origins share one row."""
_OTHERS: Final = Origin("(others)", "(others)", "(others)")


class DeadLetterKind(NamedTuple):
    """A kind of dead letters: on which queue they are, where they come from, and why."""

    queue: str
    origin: Origin


class Letters:
    """Dead letters of one kind."""

    def __init__(self, kind: DeadLetterKind) -> None:
        self.kind = kind
        self.count = 0
        self.size_bytes = 0
        self.retried_count = 0
        self.first_ms = 0
        self.last_ms = 0

    def add(self, message: Message) -> None:
        """One more."""
        self.count += 1
        self.size_bytes += message.size_bytes
        self.retried_count += retried_count(message.head) > 0
        self.first_ms = min(self.first_ms or message.timestamp_ms, message.timestamp_ms)
        self.last_ms = max(self.last_ms, message.timestamp_ms)


class DeadLetters:
    """All kinds of dead letters that were found."""

    def __init__(self) -> None:
        self.letters: dict[DeadLetterKind, Letters] = {}

    def add(self, queue_name: str, message: Message) -> None:
        """A dead letter was found."""
        kind = DeadLetterKind(queue_name, origin_of(message.head))
        letters = self.letters.get(kind)
        if letters is None:
            if len(self.letters) >= GROUPS_MAX:
                kind = DeadLetterKind(queue_name, _OTHERS)
            letters = self.letters.setdefault(kind, Letters(kind))
        letters.add(message)


DEAD_LETTERS: Final[Kind[Letters]] = Kind(
    "kind of dead letters",
    "kinds of dead letters",
    [
        Field("queue", TEXT, "The queue on which they are", lambda it: it.kind.queue, is_brief=True),
        Field("originalQueue", TEXT, "The queue on which they died", lambda it: it.kind.origin.queue, is_brief=True),
        Field(
            "originalAddress", TEXT, "The address to which they were sent", lambda it: it.kind.origin.address,
            is_brief=True,
        ),
        Field(
            "cause", TEXT, "Why: max_deliveries, max_cancels, time_limit, forced_expire, no_route, sent_by_operator;"
            " null: a client sent them", lambda it: it.kind.origin.cause, is_brief=True,
        ),
        Field("count", NUMBER, "How many there are", lambda it: it.count, "messages", is_brief=True),
        Field("size", NUMBER, "Their headers and bodies", lambda it: it.size_bytes, "bytes"),
        Field("retried", NUMBER, "How many of them were sent back before", lambda it: it.retried_count, "messages"),
        Field("first", NUMBER, "When the first of them came", lambda it: it.first_ms, EPOCH_MS),
        Field("last", NUMBER, "When the last of them came", lambda it: it.last_ms, EPOCH_MS, is_brief=True),
    ],
)  # fmt: skip
