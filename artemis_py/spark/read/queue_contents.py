"""Works out the content of queues from as little of the log as possible.

Each segment of a log with retention records the queue depths at its beginning (DEPTHS). A sum from some segment on can
only miss earlier messages, never contain too many. So if the sum is as deep as recorded, it is exact, and nothing
before that segment matters. Earlier counts are in the indexes of surveyed segments; other segments are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from artemis_py.spark.decode.aggregate import Aggregate
from artemis_py.spark.decode.digest import Counts, Digest, counted, digest_of, joined, nothing, told_counts
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.spark.log.log import Listing, Segment
from artemis_py.spark.read.plan import Range, Share
from artemis_py.spark.tables.reading import Wanted
from artemis_py.storage.format import codec, records

_FIRST: Final = 2
_TIMES: Final = 4
"""How many segments to sum up at first, and by what factor to extend if they are not enough."""
Read = Callable[[Range], Walk | None]


@dataclass(frozen=True, slots=True)
class Known:
    """What a segment's index provides, so that it need not be read. ``counts`` None: the counts must be read."""

    number: int
    last_ms: int
    counts: Mapping[str, Sequence[int]] | None
    queues: Sequence[Mapping[str, Any]]


class QueueShare(Share):
    """The input of the table ``queues``."""

    def __init__(self, share: Share, known: list[Known], *, may_begin_later: bool) -> None:
        super().__init__(share.location, share.ranges, share.wanted, share.packs)
        self.known = known
        self.may_begin_later = may_begin_later

    def bytes_from(self, begin: int) -> int:
        """How many bytes there are to read from one of its segments on."""
        return sum(one.end - one.begin for one in _ranges(self, self.known[begin:]))


def queue_share(share: Share, listing: Listing) -> QueueShare:
    """A share with the data of its segments' indexes. If a clock was set back or a segment is missing, there is no
    reliable order: then everything is summed up.
    """
    numbers = {one.segment for one in share.ranges}
    segments = [segment for segment in listing.segments if segment.number in numbers]
    first, last = segments[0].number, segments[-1].number
    is_plain = last - first + 1 == len(segments) and all(_is_whole(one, share.wanted) for one in segments[:-1])
    known = [
        Known(
            one.number, one.last_ms or 0, one.counts if _is_whole(one, share.wanted) and is_plain else None, one.queues
        )
        for one in segments
    ]
    return QueueShare(share, known, may_begin_later=is_plain)


def _is_whole(segment: Segment, wanted: Wanted) -> bool:
    """Is everything in it wanted?"""
    lsn_max, time_ms_max = wanted.lsn_max, wanted.time_ms_max
    if wanted.lsn_min > segment.first_lsn or (lsn_max is not None and segment.last_lsn > lsn_max):
        return False
    return time_ms_max is None or (segment.last_ms is not None and segment.last_ms <= time_ms_max)


def held(share: QueueShare, read: Read) -> tuple[Aggregate, int]:
    """The content of the queues at the end of the wanted range, and its time."""
    found = told_from(share, read, None)
    assert found is not None
    fold, last_ms, begin = found
    before = told_before(share, begin, read)
    early = Aggregate()
    early.take(before)
    early.queues = {number: fields for number, fields in early.queues.items() if number not in fold.deleted}
    fold.queues = early.queues | fold.queues
    for queue, counts in early.counts.items():
        fold.counts[queue] = counts.and_those(fold.counts.get(queue))
    return fold, max(last_ms, before.last_ms)


def told_from(share: QueueShare, read: Read, bytes_max: int | None) -> tuple[Aggregate, int, int] | None:
    """What was added up from the first of the last segments that tell what the queues hold, the highest time, and which
    of the share's segments that is; 0 when nothing less than all of them does. None when more than ``bytes_max`` would
    have to be read.
    """
    count = len(share.known)
    begin = max(0, count - _FIRST) if share.may_begin_later else 0
    while bytes_max is None or share.bytes_from(begin) <= bytes_max:
        fold = Aggregate()
        last_ms = _add_up(share, begin, fold, read)
        if fold.is_exact or not begin:
            return fold, last_ms, begin
        taken = (count - begin) * _TIMES
        begin = 0 if taken * _TIMES > count else count - taken
    return None


def told_before(share: QueueShare, begin: int, read: Read) -> Digest:
    """Which queues the log named before one of the segments, and what came to them and went. What the indexes
    do not have of that is read.
    """
    before = share.known[:begin]
    parts = [nothing()]
    for one in _ranges(share, [known for known in before if known.counts is None]):
        found = read(one)
        if found is not None:
            parts.append(counted(found, share.wanted.records(found)))
    whole = joined(parts)
    last: object = None
    for known in before:
        whole.last_ms = max(whole.last_ms, known.last_ms)
        for queue, counts in told_counts(known.counts or {}):
            whole.counts.setdefault(queue, Counts()).add(counts)
        if known.queues is not last:  # as most segments tell of the same ones
            whole.queues += [_told(fields) for fields in known.queues]
        last = known.queues
    return whole


def _told(fields: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Of a queue, and was it deleted?"""
    return {name: value for name, value in fields.items() if name != "deleted"}, bool(fields.get("deleted"))


def _ranges(share: QueueShare, known: Sequence[Known]) -> Iterator[Range]:
    numbers = {one.number for one in known}
    return (one for one in share.ranges if one.segment in numbers)


def _add_up(share: QueueShare, begin: int, fold: Aggregate, read: Read) -> int:
    """Take in the segments from one on; returns the highest time."""
    last_ms = 0
    for one in _ranges(share, share.known[begin:]):
        found = read(one)
        if found is None:
            continue
        wanted = share.wanted.records(found)
        last_ms = max(last_ms, int(found.times_ms[wanted].max(initial=0)))
        order = np.arange(len(found.places))
        taken = 0
        for record in np.flatnonzero(wanted & (found.kinds == records.DEPTHS)).tolist():
            if begin:  # where all is added up, nobody asks whether that is exact
                fold.take(digest_of(found, wanted & (order >= taken) & (order <= record)))
                fold.compare(codec.decode_depths(found.payload(record)))
                taken = record + 1
        fold.take(digest_of(found, wanted & (order >= taken)))
    return last_ms
