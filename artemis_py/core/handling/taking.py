"""Takes a message that an operator has chosen from where it stands, and puts it back."""

from __future__ import annotations

from artemis_py.core.handling.round import BEHIND, PAGED, READY, SCHEDULED, Sight
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.parts import QueueParts


def take(parts: QueueParts, sight: Sight) -> Entry | None:
    """Take the message out; None if it is not there any more, or not free. Its end follows, or ``put_back``."""
    contents, entry = parts.contents, sight.entry
    if contents.is_deleted:
        return None
    if sight.state == READY:
        return entry if contents.order.remove(entry, entry.sequence) else None
    if sight.state == SCHEDULED:
        if not contents.is_aside(entry):
            return None
        contents.end_waiting(entry)
        return entry
    if sight.state == BEHIND:
        behind = contents.behind
        if behind is None or not behind.has(entry):
            return None
        contents.take_from_behind(entry)
        return entry
    backlog, found = sight.backlog, sight.found
    if sight.state != PAGED or backlog is None or found is None:
        return None
    if contents.deferred is not None and contents.deferred.knows(entry.message.lsn):
        return None  # a client has settled it already
    return parts.pages.enter(backlog, found)


def put_back(parts: QueueParts, sight: Sight, entry: Entry, due_ms: int) -> None:
    """Undo ``take``: nothing could be done with the message. ``due_ms`` is what a scheduled one waits for."""
    contents = parts.contents
    if sight.state == SCHEDULED:
        contents.put_aside(entry, due_ms)
    elif sight.state == BEHIND and contents.behind is not None:
        contents.behind.add(entry)
    else:
        contents.put_back(entry)
    parts.note_ready()
