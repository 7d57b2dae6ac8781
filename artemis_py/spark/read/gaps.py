"""Checks that the log has no gaps: each segment begins where the previous one ends. Otherwise a segment, or the end of
one, is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from artemis_py.errors import PipelineError
from artemis_py.spark.log.log import Listing, Segment
from artemis_py.spark.tables.reading import Wanted

_logger = logging.getLogger(__name__)


def check_gaps(broker: str, listing: Listing, wanted: Wanted, *, fails_on_loss: bool) -> None:
    """Raises PipelineError for a gap in the wanted range, or logs it if losses are allowed."""
    for first, last, where in _gaps(listing, wanted):
        problem = f"the log of broker {broker} no longer has the offsets {first} to {last}: {where}"
        if fails_on_loss:
            raise PipelineError(
                f"{problem}. Restore the segment (it may be in a backup), or skip it with failOnDataLoss=false"
            )
        _logger.warning("%s; they are skipped", problem)


def _gaps(listing: Listing, wanted: Wanted) -> Iterator[tuple[int, int, str]]:
    """The first and last offset of each gap, and its place. Segments removed by retention are not gaps: it removes the
    oldest.
    """
    top = listing.end_lsn if wanted.lsn_max is None else min(wanted.lsn_max, listing.end_lsn)
    before: Segment | None = None
    expected = wanted.lsn_min if wanted.lsn_min > listing.first_lsn else None
    for segment in listing.segments:
        if expected is not None and segment.first_lsn > expected:
            first, last = max(expected, wanted.lsn_min), min(segment.first_lsn - 1, top)
            if first <= last and _is_wanted(before, segment, wanted):
                yield first, last, _between(before, segment)
        expected, before = max(expected or 0, segment.last_lsn + 1), segment
    if expected is not None and max(expected, wanted.lsn_min) <= top and _is_wanted(before, None, wanted):
        behind = "before" if before is None else f"after segment {before.number}"
        yield max(expected, wanted.lsn_min), top, f"there is nothing {behind}, but the log ended at {listing.end_lsn}"


def _between(before: Segment | None, behind: Segment) -> str:
    if before is None:
        return f"a segment before {behind.number} is missing"
    if behind.number == before.number + 1:
        return f"the end of segment {before.number} is missing"
    return f"the log between segments {before.number} and {behind.number} is missing"


def _is_wanted(before: Segment | None, behind: Segment | None, wanted: Wanted) -> bool:
    """May the missing part be in the wanted time range?"""
    low, high = wanted.time_ms_min, wanted.time_ms_max
    if low is not None and behind is not None and behind.first_ms is not None and behind.first_ms < low:
        return False
    return not (high is not None and before is not None and before.last_ms is not None and before.last_ms > high)
