"""Operations on the log: its segments, and the cursors of those who read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from artemis_py.errors import NotFoundError
from artemis_py.management.lists.field import TEXT
from artemis_py.management.lists.log import CURSORS, SEGMENTS, LogSegment
from artemis_py.management.managed import Given, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation
from artemis_py.management.operations.listing import listing, selected
from artemis_py.management.operations.places import stored_of

_NONE: Final = "Artemis has no log that others read"


def _list_segments(managed: Managed, given: Given) -> Steps:
    reading = stored_of(managed).read_segments()
    yield reading
    return (yield from selected(SEGMENTS, [LogSegment(index) for index in reading.result()], given))


def _list_cursors(managed: Managed, given: Given) -> Steps:
    reading = stored_of(managed).read_cursors()
    yield reading
    return (yield from selected(CURSORS, reading.result(), given))


def _remove_cursor(managed: Managed, given: Given) -> Steps:
    name = given["cursor"]
    if not stored_of(managed).remove_cursor(name):
        raise NotFoundError(f"there is no cursor {name[:128]!r}")
    return at_once({"removed": name})


LOG_OPERATIONS: Final = (
    replace(
        listing("listLogSegments", "/api/log/segments", "log ls", SEGMENTS, "", _list_segments),
        sentence="The files of the journal and of the retained log, in their order.",
        mbean=(),
        no_mbean=_NONE,
        is_watchable=False,
    ),
    replace(
        listing("listLogCursors", "/api/cursors", "cursor ls", CURSORS, "", _list_cursors),
        sentence="The cursors in the log, which say how far each reader has read, by name.",
        mbean=(),
        no_mbean=_NONE,
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
        no_mbean=_NONE,
    ),
)
