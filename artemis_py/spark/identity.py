"""Is this the log that a query has read from? An lsn alone does not tell: a log that was replaced, or restored from an
older copy and written on, has the same numbers for other things.

A broker begins a new segment whenever it starts, and writes on in no old one. So two logs that have been one agree up
to the end of a segment that both have, and from there on differ in when their next segment begins. An offset therefore
comes with a *mark*: the id of the log, and the number and the beginning of the segment in which the offset lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.log import Listing, Segment
from artemis_py.storage.codec import FILE_HEADER_BYTES

ID: Final = "id"
SEGMENT: Final = "segment"
BEGUN: Final = "begunMs"
Mark = Mapping[str, Any]


def mark_of(listing: Listing, lsn: int, before: Mark | None = None) -> Mark:
    """The mark of an lsn; ``before`` where the listing does not have the segment."""
    for segment in listing.segments:
        begun_ms = _begun_ms(segment)
        if segment.first_lsn <= lsn <= segment.last_lsn and begun_ms is not None:
            return {ID: listing.log_id, SEGMENT: segment.number, BEGUN: begun_ms}
    return before or {ID: listing.log_id}


def check_same_log(broker: str, listing: Listing, lsn: int, mark: Mark | None) -> None:
    """Does the log have what was read up to ``lsn``? Raises PipelineError for a log that is another one, or an older
    copy, whatever losses are allowed: there is no saying which of its rows were read.
    """
    what = difference(listing, lsn, mark)
    if what is not None:
        raise _other(broker, what)


def difference(listing: Listing, lsn: int, mark: Mark | None) -> str | None:
    """What tells that the log is another one than that which was read up to ``lsn``; None when nothing does."""
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
