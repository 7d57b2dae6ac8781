"""The fields of the log in lists: its segments, and the cursors of its readers."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from artemis_py.management.lists.field import EPOCH_MS, FLAG, NUMBER, TEXT, Field, Kind, Value


class LogSegment(NamedTuple):
    """A file of the log as its index describes it."""

    fields: dict[str, Any]

    def number(self, name: str) -> int:
        """A number of the index; 0 if there is none."""
        return int(self.fields.get(name) or 0)

    def said(self, name: str) -> Value:
        """Another field of the index; None if it has none."""
        found: Value = self.fields.get(name)
        return found


SEGMENTS: Final[Kind[LogSegment]] = Kind(
    "segment",
    "segments of the log",
    [
        Field("segment", NUMBER, "The segment's number", lambda it: it.number("segment"), "", True),
        Field("name", TEXT, "The name of its file", lambda it: it.said("name")),
        Field("firstLsn", NUMBER, "The lsn with which it begins", lambda it: it.number("first_lsn"), "", True),
        Field("lastLsn", NUMBER, "The last lsn in it", lambda it: it.number("last_lsn"), "", True),
        Field(
            "firstTime",
            NUMBER,
            "When its first batch was; 0: none",
            lambda it: it.number("first_ms"),
            EPOCH_MS,
            True,
        ),
        Field("lastTime", NUMBER, "When its last batch was; 0: none", lambda it: it.number("last_ms"), EPOCH_MS, True),
        Field("bytes", NUMBER, "What readers may have of it", lambda it: it.number("bytes"), "bytes", True),
        Field("records", NUMBER, "Records with an lsn", lambda it: it.number("records")),
        Field("messages", NUMBER, "Messages that were published", lambda it: it.number("messages"), "", True),
        Field("current", FLAG, "Is it the one that is written to?", lambda it: bool(it.said("is_current")), "", True),
        Field("error", TEXT, "Why it cannot be read; null: it can", lambda it: it.said("error")),
    ],
)

UNKNOWN: Final = -1


class LogCursor(NamedTuple):
    """A cursor, and how things stand. ``lag_bytes`` is ``UNKNOWN``, and ``is_overtaken`` None, where no broker runs."""

    name: str
    lsn: int
    owner: str
    moved_ms: int
    ttl_s: float
    holds: bool
    lag_bytes: int
    is_overtaken: bool | None


CURSORS: Final[Kind[LogCursor]] = Kind(
    "cursor",
    "cursors",
    [
        Field("name", TEXT, "The cursor's name", lambda it: it.name, is_brief=True),
        Field("lsn", NUMBER, "Up to here its reader has everything", lambda it: it.lsn, "", True),
        Field("lag", NUMBER, "What it has not read yet, about; -1: not known", lambda it: it.lag_bytes, "bytes", True),
        Field("holds", FLAG, "Does it keep files from being removed?", lambda it: it.holds, "", True),
        Field("overtaken", FLAG, "Is some of what it had not read gone?", lambda it: it.is_overtaken, "", True),
        Field("movedAt", NUMBER, "When it was moved last", lambda it: it.moved_ms, EPOCH_MS, True),
        Field(
            "lapsesAt",
            NUMBER,
            "When it holds nothing any more, if nobody moves it",
            lambda it: round(it.moved_ms + 1000 * it.ttl_s),
            EPOCH_MS,
        ),
        Field("owner", TEXT, "Who says that it is theirs", lambda it: it.owner, is_brief=True),
    ],
)
