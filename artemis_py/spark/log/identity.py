"""Checks that a log is the one that a query has read. An lsn is not enough: a log that was replaced, or restored from
an older copy and continued, has the same numbers for different records.

A broker begins a new segment at every start and never continues an old one. So two logs with a common origin agree up
to the end of a common segment, and then differ in the time when their next segment begins. An offset therefore comes
with a *mark*: the id of the log, and the number and begin time of the offset's segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.log.log import Listing, Segment
from artemis_py.storage.format.records import FILE_HEADER_BYTES

ID: Final = "id"
SEGMENT: Final = "segment"
BEGUN: Final = "begunMs"
Mark = Mapping[str, Any]


def mark_of(listing: Listing, lsn: int, before: Mark | None = None) -> Mark:
    """The mark of an lsn; ``before`` if the listing lacks the segment."""
    for segment in listing.segments:
        begun_ms = _begun_ms(segment)
        if segment.first_lsn <= lsn <= segment.last_lsn and begun_ms is not None:
            return {ID: listing.log_id, SEGMENT: segment.number, BEGUN: begun_ms}
    return before or {ID: listing.log_id}


def check_same_log(broker: str, listing: Listing, lsn: int, mark: Mark | None) -> None:
    """Check that the log contains what was read up to ``lsn``. Raises PipelineError for another log or an older copy,
    even if losses are allowed: it is unknown which of its rows were read.
    """
    what = difference(listing, lsn, mark)
    if what is not None:
        raise _other(broker, what)


def difference(listing: Listing, lsn: int, mark: Mark | None) -> str | None:
    """Why the log is not the one that was read up to ``lsn``; None if it is."""
    if lsn > listing.end_lsn:
        return f"it ends at offset {listing.end_lsn}, but offset {lsn} was already read"
    if mark is None:
        return None
    known, found = mark.get(ID), listing.log_id
    if known is not None and found is not None and known != found:
        return f"its id is {found} and was {known}"
    for segment in listing.segments:
        begun_ms = _begun_ms(segment)
        if not segment.first_lsn <= lsn <= segment.last_lsn or begun_ms is None or SEGMENT not in mark:
            continue
        if (segment.number, begun_ms) != (mark[SEGMENT], mark[BEGUN]):
            return (
                f"its offset {lsn} is in segment {segment.number}, begun at {begun_ms} ms, but was in segment "
                f"{mark[SEGMENT]}, begun at {mark[BEGUN]} ms"
            )
    return None


def _begun_ms(segment: Segment) -> int | None:
    """The time of its first batch; None where that cannot be read."""
    if not segment.blocks or segment.blocks[0][0] != FILE_HEADER_BYTES:
        return None
    return segment.blocks[0][2]


def _other(broker: str, what: str) -> PipelineError:
    return PipelineError(
        f"the log of broker {broker} is not the one that this query has read, or an older copy of it: {what}. Offsets "
        "mean something else in it, so start with a new checkpoint; startingTimestamp sets the time to read from"
    )
