"""Looks ahead for new rows of a query. A log has all addresses and events: most new records are not rows of a query,
and would make an empty batch each time.

It decodes new records as the tasks do, but only their offsets, and continues where it stopped: each byte of the log is
read once. It stops after the requested number of rows, and skips segments whose index excludes wanted rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.decode.record_walk import Piece, Walk, walk
from artemis_py.spark.log.log import GoneError, Listing, Log, Segment
from artemis_py.spark.read.batch import BATCHES
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import asked, can_answer
from artemis_py.spark.tables.reading import Names, Reading
from artemis_py.spark.tables.schema import arrow_schema

if TYPE_CHECKING:
    from artemis_py.storage.format.scan import Damage

_FIRST_BYTES: Final = 256 << 10
"""How many bytes to read first: if messages for a query keep arriving, they contain one."""
_NO_ROWS: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Place:
    """Everything up to an lsn ends at this byte of a segment."""

    lsn: int
    segment: int
    offset: int


class LookAhead:
    """One log. Rows are identified by offsets, which several rows may share."""

    def __init__(self, log: Log, options: ReadOptions) -> None:
        self._log = log
        self._options = options
        self._wanted = asked(options)
        self._schema = arrow_schema(options.table, ("offset",))
        self._from = 0
        self._looked = 0
        """Everything between these two is known: its rows are in ``_rows``."""
        self._rows = _NO_ROWS
        self._place: _Place | None = None
        """Where ``_looked`` is."""
        self._end: _Place | None = None
        """Where the log ended when it was last looked at: most batches end there."""

    def rows(self, listing: Listing, names: Names, begin: int, top: int, most: int) -> Numbers:
        """The offsets of at most the first ``most`` rows above ``begin``, up to ``top``, in order. Unreadable data
        counts as a row, so that its reader reports what is wrong. Raises PipelineError.
        """
        self._go_to(begin)
        if listing.segments:
            last = listing.segments[-1]
            self._end = _Place(last.last_lsn, last.number, last.size_bytes)
        if most == 1 and not len(self._rows):
            first = self._peeked(listing, names, top)
            if first is not None:
                return np.array([first])
        for segment in listing.segments:
            if self._known(top) >= most or self._looked >= top:
                break
            if segment.last_lsn > self._looked:
                self._take(segment, names, top, most)
        if self._known(top) < most and self._looked < top:  # the log says that it has more than is there
            self._note(np.array([self._looked + 1]))
            self._looked, self._place = top, None
        return self._rows[self._rows <= top][:most]

    def is_clear(self, begin: int, end: int) -> bool:
        """Is it certain that there is no row above ``begin`` up to ``end``?"""
        if not self._from <= begin or self._looked < end:
            return begin >= end
        return not ((self._rows > begin) & (self._rows <= end)).any()

    def count(self, top: int) -> int:
        """About how many rows there are up to ``top``. What was not looked at has as many as the rest, and one at
        least.
        """
        known = self._known(top)
        if self._looked >= top or not known:
            return known
        return known + max(1, known * (top - self._looked) // (self._looked - self._from))

    def _go_to(self, begin: int) -> None:
        """Forget what is behind a batch."""
        if self._from <= begin <= self._looked:
            self._rows = self._rows[self._rows > begin]
            self._from = begin
            return
        self._from = self._looked = begin
        self._rows = _NO_ROWS
        self._place = self._end if self._end is not None and self._end.lsn == begin else None

    def _known(self, top: int) -> int:
        return int((self._rows <= top).sum())

    def _note(self, rows: Numbers) -> None:
        self._rows = np.sort(np.concatenate([self._rows, rows]))

    def _peeked(self, listing: Listing, names: Names, top: int) -> int | None:
        """The offset of a row in the beginning of what is new, without taking note of it."""
        for segment in listing.segments:
            if segment.last_lsn <= self._looked or not self._can_answer(segment):
                continue
            begin, end, _ = next(self._pieces(segment))
            if segment.first_lsn > self._looked + 1 or end - begin <= _FIRST_BYTES:
                return None
            try:
                data = self._log.read(segment.number, begin, begin + _FIRST_BYTES)
            except GoneError:  # since it was listed; told when it is taken
                return None
            found = walk(Piece(f"segment {segment.number}", data, begin, None, is_last=True), [])
            rows = self._decoded(found, begin, segment, names)
            rows = rows[(rows > self._looked) & (rows <= top)]
            return int(rows.min()) if len(rows) else None
        return None

    def _take(self, segment: Segment, names: Names, top: int, most: int) -> None:
        """Look at one segment, as far as is needed."""
        if segment.first_lsn > self._looked + 1:
            self._note(np.array([self._looked + 1]))
            self._looked, self._place = segment.first_lsn - 1, None
        if not self._can_answer(segment):
            self._looked, self._place = segment.last_lsn, None
            return
        for begin, end, last_lsn in self._pieces(segment):
            if self._known(top) >= most or self._looked >= top:
                return
            rows = self._read(segment, begin, end, names)
            self._note(rows[rows > self._looked])
            self._looked = max(self._looked, last_lsn)
            self._place = _Place(self._looked, segment.number, end)

    def _can_answer(self, segment: Segment) -> bool:
        return can_answer(segment, self._wanted, of_messages=self._options.table == "messages")

    def _pieces(self, segment: Segment) -> Iterator[tuple[int, int, int]]:
        """What was not looked at, in parts that begin and end with a batch: where, and up to which lsn."""
        place = self._place
        known = place.offset if place is not None and place.segment == segment.number else 0
        starts = [(max(offset, known), low) for offset, low, _ in segment.blocks]
        ends = [*((offset, low - 1) for offset, low, _ in segment.blocks[1:]), (segment.size_bytes, segment.last_lsn)]
        found = False
        for (begin, _), (end, last_lsn) in zip(starts, ends, strict=True):
            if last_lsn > self._looked and begin < end:
                found = True
                yield begin, end, last_lsn
        if not found:
            yield segment.size_bytes, segment.size_bytes, segment.last_lsn

    def _read(self, segment: Segment, begin: int, end: int, names: Names) -> Numbers:
        """The offsets of the rows in some bytes; where these are not whole, the next offset besides."""
        damages: list[Damage] = []
        try:
            data = self._log.read(segment.number, begin, end)
        except GoneError:
            return np.array([self._looked + 1])
        found = walk(Piece(f"segment {segment.number}", data, begin, None, is_last=False), damages)
        rows = self._decoded(found, begin, segment, names)
        if damages or len(data) < end - begin:
            rows = np.append(rows, self._looked + 1)
        return rows

    def _decoded(self, found: Walk, begin: int, segment: Segment, names: Names) -> Numbers:
        reading = Reading(
            found,
            lambda places: places + begin,
            segment.number,
            self._log,
            names,
            self._wanted,
            self._schema,
            include_body=False,
            rows_max=1 << 40,
            fails_on_loss=True,
        )
        columns = [batch.column(0).to_numpy(zero_copy_only=False) for batch in BATCHES[self._options.table](reading)]
        return np.concatenate(columns).astype(np.int64) if columns else _NO_ROWS
