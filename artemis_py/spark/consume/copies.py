"""Finds messages that are older than the log: retention has removed their publication, but they are on the queue still.
The journal has them as copies, which compaction makes (docs/journal-format.md, "MESSAGE").
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.decode.published import copies
from artemis_py.spark.decode.walk import Piece, walk
from artemis_py.spark.log.log import GoneError, Listing, Log, Segment
from artemis_py.spark.read.plan import ranges
from artemis_py.spark.tables.reading import Wanted

_NONE: Final = np.empty((0, 2), np.int64)


class Copies:
    """The copies in a log. A closed segment is read once; what is in the current one is read again each time."""

    def __init__(self) -> None:
        self._known: dict[int, Numbers] = {}
        """For each closed segment the lsns of publications and of their copies."""

    def find(self, log: Log, listing: Listing, bookmarks: Numbers) -> dict[int, int]:
        """The lsn of the last copy of each message, by its bookmark, as far as there is one."""
        found: dict[int, int] = {}
        for segment in reversed(listing.segments):
            if len(found) == len(bookmarks):
                break
            is_closed = segment is not listing.segments[-1]
            pairs = self._known.get(segment.number) if is_closed else None
            if pairs is None:
                pairs = _copies_in(log, segment)
            if is_closed:
                self._known[segment.number] = pairs
            for publication, copy in pairs[np.isin(pairs[:, 0], bookmarks)][::-1].tolist():
                found.setdefault(publication, copy)
        self._forget(listing)
        return found

    def _forget(self, listing: Listing) -> None:
        numbers = {segment.number for segment in listing.segments}
        self._known = {number: pairs for number, pairs in self._known.items() if number in numbers}


def _copies_in(log: Log, segment: Segment) -> Numbers:
    pairs = [_NONE]
    damages: list[Any] = []
    for one in ranges(segment, Wanted()):
        try:
            data = log.read(one.segment, one.begin, one.end, one.name)
        except GoneError:  # retention is faster; what it takes has no copy that is needed
            return _NONE
        found = walk(Piece(f"segment {one.segment}", data, one.begin, one.time_ms, is_last=False), damages)
        pairs.append(copies(found))
    return np.concatenate(pairs)
