"""What a journal begins with: its settings, and what a start has found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artemis_py.storage.journal.index import Index, Segment

# ---- settings --------------------------------------------------------------------------------------------------------
#
# The settings of broker.xml that the journal needs.


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """The ``journal-*`` elements of broker.xml, and ``id-cache-size``. docs/configuration.md describes them."""

    file_bytes: int = 10485760
    compact_files_min: int = 10
    compact_percentage: int = 30
    sync_transactional: bool = True
    sync_non_transactional: bool = True
    duplicate_ids_kept: int = 20000
    retains: bool = False
    files_min: int = 2
    broker_name: str = ""
    """The broker's name, for readers of the retained log."""


# ---- start -----------------------------------------------------------------------------------------------------------
#
# What a journal needs when it opens: where the existing files end, and who looks after its segments.


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStart:
    """Where a journal continues. Without arguments: there is nothing before it."""

    index: Index = field(default_factory=Index)
    """What lives. The journal keeps it up to date."""
    segments: list[Segment] = field(default_factory=list)
    """The segments with content, in order. The journal adds to this list."""
    next_lsn: int = 1
    batch_number: int = 0
    """The number of the last batch."""
    segment_number: int = 1
    """The number of the first segment if there is none yet."""
    damaged_places: int = 0
    """The number of damaged places found in the files."""
    lost_records: int = 0
    """The number of records lost there at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCare:
    """Who looks after segments. All of these run in the committer's thread, and may raise DiskError."""

    retire: Callable[[str], None]
    """Gets the name of a segment that the journal no longer needs; deletes or retains its file."""
    closed: Callable[[Segment], None] | None = None
    """Gets a segment to which nothing more will be written, before ``retire`` gets it."""
    regular_tasks: Callable[[], None] | None = None
    """Called about every ten seconds, to remove what is too old."""
