"""What a journal needs to know when it opens: where the files before it ended, and who looks after its segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artemis_py.storage.journal.index import Index, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStart:
    """Where a journal goes on. Without arguments: nothing was written before."""

    index: Index = field(default_factory=Index)
    """What lives. The journal keeps it up to date from now on."""
    segments: list[Segment] = field(default_factory=list)
    """Those with something in them, in order. The journal adds to this list."""
    next_lsn: int = 1
    batch_number: int = 0
    """Of the last batch."""
    segment_number: int = 1
    """The number of the first segment if there is none yet."""
    damaged_places: int = 0
    """What was wrong with the files."""
    lost_records: int = 0
    """How many records that cost at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCare:
    """Who looks after segments. All of these are called in the committer's thread."""

    retire: Callable[[str], None]
    """Takes the name of a segment that the journal needs no longer, and deletes or retains the file."""
    closed: Callable[[Segment], None] | None = None
    """Takes a segment to which nothing more will be written, before ``retire`` has it."""
    chores: Callable[[], None] | None = None
    """Is called every ten seconds or so, for what ages."""
