"""Splits the table ``metrics`` into time spans: each task makes the rows of its own intervals.

A task starts with a segment that begins before its first interval and records the queue depths, as each segment of a
log with retention does. So it needs nothing before that, and the segment in which two tasks meet is read by both.
"""

from __future__ import annotations

from itertools import pairwise

from artemis_py.spark.log.log import Listing, Log, Segment
from artemis_py.spark.read.plan import Share, depths_told_lsn


class TimeShare(Share):
    """The part of one log that a task reads, and its intervals: those that begin from ``begin_ms`` on and before
    ``end_ms``; None: no bound.
    """

    def __init__(self, share: Share, segments: list[Segment], begin_ms: int | None, end_ms: int | None) -> None:
        numbers = {one.number for one in segments}
        ranges = [one for one in share.ranges if one.segment in numbers]
        super().__init__(share.location, ranges, share.wanted, share.packs)
        self.begin_ms = begin_ms
        self.end_ms = end_ms


def time_shares(share: Share, log: Log, listing: Listing, interval_ms: int, share_bytes: int) -> list[TimeShare]:
    """The tasks that read one log; a single one if the segments' times are not in order."""
    numbers = {one.segment for one in share.ranges}
    segments = [one for one in listing.segments if one.number in numbers]
    if not all((one.last_ms or 0) <= (behind.first_ms or 0) for one, behind in pairwise(segments)):
        return [TimeShare(share, segments, None, None)]
    found: list[TimeShare] = []
    begin, begin_ms, filled = 0, None, 0
    for place, one in enumerate(segments):
        time_ms = (one.first_ms or 0) // interval_ms * interval_ms
        if filled >= share_bytes and (begin_ms is None or time_ms > begin_ms):
            meeting = _meeting(segments[begin:place], log, listing, time_ms)
            if meeting is not None:
                found.append(TimeShare(share, segments[begin : begin + meeting + 1], begin_ms, time_ms))
                begin, begin_ms = begin + meeting, time_ms
                filled = sum(before.size_bytes for before in segments[begin:place])
        filled += one.size_bytes
    found.append(TimeShare(share, segments[begin:], begin_ms, None))
    return found


def _meeting(segments: list[Segment], log: Log, listing: Listing, time_ms: int) -> int | None:
    """The last of the segments that begins before a time and tells how deep the queues are; None when it does not."""
    before = [place for place, one in enumerate(segments) if one.blocks[0][2] < time_ms]
    if not before or depths_told_lsn(log, listing, time_ms) != segments[before[-1]].first_lsn:
        return None
    return before[-1]
