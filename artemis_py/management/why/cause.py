"""What a row of the table of reasons is, and which questions there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NOT_DELIVERED: Final = "not-delivered"
BLOCKED: Final = "blocked"
DROPPED: Final = "dropped"
DEAD: Final = "dead"
SLOW: Final = "slow"
GROWING: Final = "growing"

QUESTIONS: Final = {
    NOT_DELIVERED: "Why does a queue deliver nothing (more)?",
    BLOCKED: "Why do senders wait?",
    DROPPED: "Why are messages gone that nobody consumed?",
    DEAD: "Why are messages dead letters?",
    SLOW: "Why is the broker slow?",
    GROWING: "Why does a queue grow?",
}
"""What can be asked, by the word of the command."""

KILLED: Final = {
    "dead": "dead",
    "cancelled": "sent_by_operator",
    "purged": "purged",
    "deleted": "deleted",
    "abandoned": "purge-on-no-consumers",
    "damaged": "damaged",
}
"""The word for why messages were killed, by the reason in ``core/order/entry.py``."""

OF_QUEUE: Final = "queue"
OF_ADDRESS: Final = "address"
OF_BROKER: Final = "broker"
"""Where a setting is written: on a queue (or as its default in an address-setting), in an address-setting, or beside
them.
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason. ``settings`` may lead to it, the first one as a rule; ``scope`` says where they are written."""

    code: str
    question: str
    meaning: str
    remedy: str
    settings: tuple[str, ...] = ()
    scope: str = OF_QUEUE


def rows(question: str, *rows: tuple[str, str, str, tuple[str, ...], str]) -> list[Cause]:
    """The causes of one question: word, meaning, remedy, settings and scope of each."""
    return [Cause(code, question, meaning, remedy, settings, scope) for code, meaning, remedy, settings, scope in rows]
