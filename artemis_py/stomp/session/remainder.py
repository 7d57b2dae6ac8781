"""What the RECEIPT of an ACK with bookmarks tells."""

from __future__ import annotations

from typing import final

from artemis_py.core.queue.queue import Queue


@final
class Remainder:
    """What a queue still has when a client has settled bookmarks: the RECEIPT tells it, once all work is done."""

    __slots__ = ("_bookmarks", "_queue")

    def __init__(self, queue: Queue, bookmarks: list[int]) -> None:
        self._queue = queue
        self._bookmarks = bookmarks

    def headers(self) -> list[tuple[str, str]]:
        """``kept``: the bookmarks that are on the queue all the same; ``ready``: how many messages nobody has."""
        contents = self._queue.contents
        kept = ",".join(map(str, self._queue.still_there(self._bookmarks)))
        return [("kept", kept), ("ready", str(contents.order.count + contents.paged.count))]
