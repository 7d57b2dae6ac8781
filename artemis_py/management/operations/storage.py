"""What the broker stores: the operations on disks, the journal, segments of the log, and cursors of its readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from artemis_py.core.tasks import WAIT
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.management.listing import EPOCH_MS, FLAG, NUMBER, TEXT, Field, Kind, Value
from artemis_py.management.managed import Arguments, LogCursor, Managed, Space, Steps, Stored, at_once
from artemis_py.management.operation import EDIT, VIEW, Argument, Operation, listing, select_rows

_NO_LOG: Final = "Artemis has no log that others read"

DISKS: Final[Kind[Space]] = Kind(
    "directory",
    "directories",
    [
        Field("directory", TEXT, "A directory that the broker writes to", lambda it: it.directory, is_brief=True),
        Field("total", NUMBER, "The size of its file system", lambda it: it.total_bytes, "bytes", is_brief=True),
        Field("free", NUMBER, "What is free there", lambda it: it.free_bytes, "bytes", is_brief=True),
        Field("usedPercent", NUMBER, "What is used there", lambda it: it.used_percent, "percent", is_brief=True),
        Field(
            "left",
            NUMBER,
            "What may be written until max-disk-usage or min-disk-free is reached",
            lambda it: it.left_bytes,
            "bytes",
            is_brief=True,
        ),
    ],
)


class LogSegment(NamedTuple):
    """A file of the log as its index describes it."""

    fields: dict[str, Any]

    def number(self, name: str) -> int:
        """A number of the index; 0 if there is none."""
        return int(self.fields.get(name) or 0)

    def said(self, name: str) -> Value:
        """Another field of the index; None if it has none."""
        value: Value = self.fields.get(name)
        return value


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


def _list_disks(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from select_rows(DISKS, [] if managed.stored is None else managed.stored.spaces(), arguments))


def _stored_of(managed: Managed) -> Stored:
    """The files of the broker. Raises BrokerError if it has none."""
    if managed.stored is None:
        raise BrokerError("this broker has no journal: persistence-enabled is false")
    return managed.stored


def _show_journal(managed: Managed, arguments: Arguments) -> Steps:
    stored = _stored_of(managed)
    return at_once({"id": stored.node_id, **stored.figures()})


def _compact(managed: Managed, arguments: Arguments) -> Steps:
    stored = _stored_of(managed)
    before = stored.figures()
    stored.compact()
    while stored.is_compacting:
        yield WAIT
    after = stored.figures()
    return {
        "filesBefore": before["files"],
        "filesAfter": after["files"],
        "bytesBefore": before["bytes"],
        "bytesAfter": after["bytes"],
    }


def _list_segments(managed: Managed, arguments: Arguments) -> Steps:
    reading = _stored_of(managed).read_segments()
    yield reading
    return (yield from select_rows(SEGMENTS, [LogSegment(index) for index in reading.result()], arguments))


def _list_cursors(managed: Managed, arguments: Arguments) -> Steps:
    reading = _stored_of(managed).read_cursors()
    yield reading
    return (yield from select_rows(CURSORS, reading.result(), arguments))


def _remove_cursor(managed: Managed, arguments: Arguments) -> Steps:
    name = arguments["cursor"]
    if not _stored_of(managed).remove_cursor(name):
        raise NotFoundError(f"there is no cursor {name[:128]!r}")
    return at_once({"removed": name})


STORAGE_OPERATIONS: Final = (
    listing(
        "listDisks",
        "/api/disks",
        "broker disks",
        DISKS,
        "The directories that the broker writes to; none without persistence.",
        _list_disks,
    ),
    Operation(
        name="getJournal",
        right=VIEW,
        method="GET",
        path="/api/journal",
        command="broker journal",
        sentence="Sizes of the journal and of the retained log.",
        result="id (of the log), and figures: records, batches, syncs, files, bytes, live_bytes, damaged_places,"
        " lost_records, retained_files, retained_bytes, overrun_files, overrun_bytes, cursors",
        work=_show_journal,
        no_mbean="Artemis' journal has other figures",
    ),
    Operation(
        name="compact",
        right=EDIT,
        method="POST",
        path="/api/journal/compact",
        command="broker compact",
        sentence="Rewrite what is still needed of the journal, and remove all files but the newest. The broker does"
        " this by itself when it pays.",
        result="filesBefore, filesAfter, bytesBefore and bytesAfter",
        work=_compact,
        no_mbean="Artemis has it in its command line only",
    ),
    replace(
        listing("listLogSegments", "/api/log/segments", "log ls", SEGMENTS, "", _list_segments),
        sentence="The files of the journal and of the retained log, in their order.",
        mbean=(),
        no_mbean=_NO_LOG,
        is_watchable=False,
    ),
    replace(
        listing("listLogCursors", "/api/cursors", "cursor ls", CURSORS, "", _list_cursors),
        sentence="The cursors in the log, which say how far each reader has read, by name.",
        mbean=(),
        no_mbean=_NO_LOG,
    ),
    Operation(
        name="removeLogCursor",
        right=EDIT,
        method="DELETE",
        path="/api/cursors/{cursor}",
        command="cursor delete",
        sentence="Remove a cursor. It no longer keeps files from being removed.",
        result="removed: the name of the cursor",
        destroys="cursor {cursor}, and with it perhaps files that its reader has not read",
        arguments=(Argument("cursor", TEXT, "the name of the cursor"),),
        work=_remove_cursor,
        no_mbean=_NO_LOG,
    ),
)
