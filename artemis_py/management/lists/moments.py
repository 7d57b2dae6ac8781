"""The fields of the moments in the life of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from artemis_py.management.lists.field import EPOCH_MS, NUMBER, TEXT, Field, Kind, Value


def _at(name: str) -> Callable[[Mapping[str, Any]], Value]:
    return lambda moment: moment[name]


def _field(name: str, type: str, sentence: str, unit: str = "") -> Field[Mapping[str, Any]]:
    return Field(name, type, sentence, _at(name), unit, is_brief=name not in ("lsn", "original"))


MOMENTS: Final[Kind[Mapping[str, Any]]] = Kind(
    "moment",
    "moments",
    [
        _field("time", NUMBER, "When it happened; 0: it is so now", EPOCH_MS),
        _field("messageID", NUMBER, "The number of the message, or of its copy"),
        _field("what", TEXT, "What happened, in a word (docs/why.md)"),
        _field("queue", TEXT, "On which queue; empty: on none"),
        _field("who", TEXT, "The client that did it; empty: none did, or nobody knows"),
        _field("text", TEXT, "What happened, in words"),
        _field("original", NUMBER, "Of a copy: the number of the message that it was made of; 0: it is none"),
        _field("lsn", NUMBER, "Where the log has it"),
    ],
)
