"""Plans a query: which bytes of which segments to read, without a gap, and how to distribute them among tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from pyspark.sql.datasource import InputPartition

from artemis_py.errors import PipelineError
from artemis_py.spark.decode.record_walk import Piece, walk
from artemis_py.spark.log.directory import DirectoryLog, find_directories
from artemis_py.spark.log.http import Broker
from artemis_py.spark.log.log import (
    AwayError,
    Identity,
    Known,
    Listing,
    Log,
    LogLocation,
    Segment,
    check_distinct,
    keys_of,
)
from artemis_py.spark.read.options import EARLIEST, LATEST, Offsets, ReadOptions
from artemis_py.spark.tables.reading import Names, Wanted, packed, unpacked
from artemis_py.storage.format import records
from artemis_py.storage.format.segment_index import BLOCK_BYTES

_logger = logging.getLogger(__name__)
_PIECE_BYTES: Final = 16 << 20
"""How many bytes are read and decoded at once: some ten thousand rows."""
_PARTS_MAX: Final = 50
_FIRST_TURN_BYTES: Final = 1 << 20
"""How many bytes of a segment are searched for its first turn."""


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a segment that begins with a BATCH and ends at the end of a batch or of the segment."""

    segment: int
    begin: int
    end: int
    time_ms: int
    name: str = ""
    """The name of the segment's file at planning time."""
    places: bool = False
    """Is there a file of places?"""
    told: tuple[int, int, int, int] = (0, 0, 0, 0)
    """The segment's number, first and last lsn and size, which the file of places must match."""
    lsns: tuple[int, int] = (0, 0)
    """The lowest lsn in it, and the lowest behind it."""


class Share(InputPartition):
    """The part of one log that one task reads."""

    def __init__(self, location: LogLocation, ranges: list[Range], wanted: Wanted, packs: tuple[bytes, bytes]) -> None:
        super().__init__(None)
        self.location = location
        self.ranges = ranges
        self.wanted = wanted
        self.packs = packs

    @property
    def names(self) -> Names:
        """The names of the numbers in these ranges."""
        return unpacked(*self.packs)


def locations(options: ReadOptions) -> list[LogLocation]:
    """The logs that the options name. Raises PipelineError if there is none."""
    if options.journal is not None:
        return list(find_directories(options.journal, options.broker, fails_on_loss=options.fails_on_loss))
    return [Broker(url, options.login, options.tls, options.wait_s, options.fails_on_loss) for url in options.urls]


def opened(options: ReadOptions) -> dict[str, tuple[LogLocation, Log]]:
    """The logs by their keys, which are the brokers' names if these differ. Raises PipelineError for a log that is
    named twice, or if no directory has a file of a log: that is more often a wrong name than a broker that never
    started.
    """
    answered: list[Found] = []
    away: AwayError | None = None
    for location in locations(options):
        log = location.open()
        try:
            one = Found(location, log, log.identity())
        except AwayError as error:
            if not options.skips_unavailable:
                raise
            _logger.warning("%s; the rest is read without it (skipUnavailableBrokers)", error)
            away = error
            continue
        answered.append(one)
    if not answered and away is not None:
        raise away
    found = keyed(answered, {})
    check_files(found, options)
    return found


class Found(NamedTuple):
    """A log that answers, and what it says about itself."""

    location: LogLocation
    log: Log
    identity: Identity


def keyed(logs: Sequence[Found], known: Known, *, is_complete: bool = True) -> dict[str, tuple[LogLocation, Log]]:
    """The logs by their keys, as ``keys_of`` gives them; tasks get to know them. Raises PipelineError."""
    check_distinct([(one.location, one.identity) for one in logs])
    keys = keys_of([one.identity for one in logs], known, is_complete=is_complete)
    return {key: under(key, one) for key, one in zip(keys, logs, strict=True)}


def under(key: str, one: Found) -> tuple[LogLocation, Log]:
    """A log under this key."""
    here = one.location.known_as(key)
    if one.log.broker == key:
        return here, one.log
    one.log.close()
    return here, here.open()


def check_files(found: Mapping[str, tuple[LogLocation, Log]], options: ReadOptions) -> None:
    """Raises PipelineError if no directory has a file of a log."""
    logs = [log for _, log in found.values()]
    if not any(log.has_files() if isinstance(log, DirectoryLog) else True for log in logs):
        raise PipelineError(
            f"there is no log in {options.journal}. Name the parent of journal-directory and "
            "journal-retention-directory, or both of them separated by a comma; the broker's newest records are in "
            "journal-directory"
        )


def asked(options: ReadOptions) -> Wanted:
    """The rows that the options select from every log."""
    return Wanted(
        time_ms_min=options.starting_ms,
        time_ms_max=options.ending_ms,
        subscribed=frozenset(options.addresses) if options.subscribes else None,
        pattern=options.pattern,
        since=options.starting_since,
        until=options.ending_until,
    )


def bounded(wanted: Wanted, options: ReadOptions, broker: str, brokers: Sequence[str]) -> Wanted:
    """The selection limited to a batch's offsets for one broker."""
    lsn_min, lsn_max = wanted.lsn_min, wanted.lsn_max
    starting = lsn_of(options.starting, broker, brokers, "startingOffsets", skips=options.skips_unavailable)
    ending = lsn_of(options.ending, broker, brokers, "endingOffsets", skips=options.skips_unavailable)
    if starting is not None:
        lsn_min = max(lsn_min, starting + 1)
    if ending is not None:
        lsn_max = ending if lsn_max is None else min(lsn_max, ending)
    return replace(wanted, lsn_min=lsn_min, lsn_max=lsn_max)


def lsn_of(offsets: Offsets, broker: str, brokers: Sequence[str], option: str, *, skips: bool = False) -> int | None:
    """The lsn that an option names for a broker; None for earliest, latest, or a broker that it does not name. Raises
    PipelineError for a broker that is not read, unless brokers may be missing (``skips``).
    """
    if isinstance(offsets, str):
        return None
    for name in offsets:
        if name not in brokers and not skips:
            raise PipelineError(
                f"{option} names broker {name}, which is not read; the brokers are {', '.join(brokers)}"
            )
    return offsets.get(broker)


def settled_listing(log: Log, wanted: Wanted, options: ReadOptions) -> Listing:
    """The listing to read, including the last batch of a directory in use if it may be wanted. Raises PipelineError for
    gaps, and for offsets in the options past its end.
    """
    if isinstance(log, DirectoryLog) and wanted.lsn_max is None:
        log.settle()
    listing = log.listing()
    if isinstance(log, DirectoryLog) and wanted.lsn_max is not None and wanted.lsn_max > listing.end_lsn:
        log.settle()
        listing = log.listing()
    check_reach(log.broker, listing, options)
    check_gaps(log.broker, listing, wanted, fails_on_loss=options.fails_on_loss)
    return listing


def check_reach(broker: str, listing: Listing, options: ReadOptions) -> None:
    """Raises PipelineError for offsets in the options past the end of the log: they come from another log, or this one
    is an older copy. Also for offsets no longer in the log, which it only logs if losses are allowed.
    """
    begin = None if isinstance(options.starting, str) else options.starting.get(broker)
    if begin is not None and begin + 1 < listing.first_lsn:
        problem = (
            f"startingOffsets names offset {begin} of broker {broker}, but retention has removed the offsets "
            f"{begin + 1} to {listing.first_lsn - 1}"
        )
        if options.fails_on_loss:
            raise PipelineError(
                f"{problem}: name {listing.first_lsn - 1} or earliest, or continue without them with "
                "failOnDataLoss=false"
            )
        _logger.warning("%s; they are skipped", problem)
    for name, offsets in (("startingOffsets", options.starting), ("endingOffsets", options.ending)):
        lsn = None if isinstance(offsets, str) else offsets.get(broker)
        if lsn is None or lsn <= listing.end_lsn or (name == "endingOffsets" and not options.fails_on_loss):
            continue
        raise PipelineError(
            f"{name} names offset {lsn} of broker {broker}, whose log ends at {listing.end_lsn}. The offset is from "
            "another log, or from a newer copy of this one"
        )


def learn_queues(names: Names, listing: Listing) -> Names:
    """The queues in all segments' indexes, most of which name the same ones."""
    told: object = None
    for segment in listing.segments:
        if segment.queues is not told:
            names.learn_queues(segment)
        told = segment.queues
    return names


class Extract(NamedTuple):
    """The wanted part of one log, after ``check_gaps``."""

    location: LogLocation
    listing: Listing
    wanted: Wanted
    names: Names


def tasks(extracts: Sequence[Extract], options: ReadOptions, *, is_repeatable: bool) -> list[list[Share]]:
    """The tasks that read each log, with ``minPartitions`` at least so many for all of them.

    ``is_repeatable``: when the same offsets are planned again, each task has the same rows as before, although the log
    goes on and segments are closed.
    """
    of_messages = options.table == "messages"
    blocks: list[list[tuple[int, int]]] = [[] for _ in extracts]
    if options.partitions_min is not None:
        blocks = [list(_blocks(one, of_messages=of_messages, takes_all=is_repeatable)) for one in extracts]
    sizes = [sum(behind - low for low, behind in of_one) for of_one in blocks]
    counts = [1] * len(sizes)
    while sum(counts) < min(options.partitions_min or 0, sum(sizes)):  # to that with the most for each of its tasks
        counts[max(range(len(sizes)), key=lambda place: sizes[place] / counts[place])] += 1
    found: list[list[Share]] = []
    for one, of_one, size, count in zip(extracts, blocks, sizes, counts, strict=True):
        found.append([])
        begins = [one.wanted.lsn_min, *_cuts(of_one, size, count), _top(one.listing, one.wanted) + 1]
        for low, behind in pairwise(begins):
            part = one._replace(wanted=one.wanted.between(low, behind - 1))
            found[-1] += shares(*part, options.partition_bytes, of_messages=of_messages, is_repeatable=is_repeatable)
    return found


def _top(listing: Listing, wanted: Wanted) -> int:
    return listing.end_lsn if wanted.lsn_max is None else min(wanted.lsn_max, listing.end_lsn)


def _blocks(one: Extract, *, of_messages: bool, takes_all: bool) -> Iterator[tuple[int, int]]:
    """The lowest wanted offset in each block, and the lowest behind it."""
    top = _top(one.listing, one.wanted)
    for segment in one.listing.segments:
        if takes_all or can_answer(segment, one.wanted, of_messages=of_messages):
            for low, behind in pairwise([*(lsn for _, lsn, _ in segment.blocks), segment.last_lsn + 1]):
                first, end = max(low, one.wanted.lsn_min), min(behind, top + 1)
                if first < end:
                    yield first, end


def _cuts(blocks: Sequence[tuple[int, int]], size: int, count: int) -> list[int]:
    """The offsets at which the second of so many equal parts begins, the third and so on. Tasks read whole blocks:
    where one begins within an eighth of a part, so does the part.
    """
    found: list[int] = []
    before = 0
    nearby = size / count / 8
    for number, (low, behind) in enumerate(blocks):
        while len(found) + 1 < min(count, size):
            inside = size * (len(found) + 1) // count - before
            if inside >= behind - low:
                break
            if inside < nearby:
                inside = 0
            is_at_next = number + 1 < len(blocks) and behind - low - inside < nearby
            found.append(blocks[number + 1][0] if is_at_next else low + inside)
        before += behind - low
    return found


def shares(
    location: LogLocation,
    listing: Listing,
    wanted: Wanted,
    names: Names,
    share_bytes: int,
    *,
    of_messages: bool,
    is_repeatable: bool = False,
) -> list[Share]:
    """The tasks that read the wanted part of one log, after ``check_gaps``."""
    wanted = replace(wanted, lsn_max=_top(listing, wanted))
    queues = packed(names.queues)
    found: list[Share] = []
    taken: list[Range] = []
    actors = Names()
    filled = 0
    for segment in listing.segments:
        if not can_answer(segment, wanted, of_messages=of_messages):
            continue
        for one in ranges(segment, wanted):
            if not taken or taken[-1].segment != segment.number:
                actors.learn(segment)
            taken.append(one)
            filled += _work(one, segment, wanted, of_messages=of_messages and not is_repeatable)
            if filled >= share_bytes:
                found.append(Share(location, taken, wanted, (queues, packed(actors.sessions, actors.consumers))))
                taken, filled, actors = [], 0, Names()
    if taken:
        found.append(Share(location, taken, wanted, (queues, packed(actors.sessions, actors.consumers))))
    return found


def _work(one: Range, segment: Segment, wanted: Wanted, *, of_messages: bool) -> int:
    """About how many bytes of a part a task takes in: of a part with places those of the wanted addresses, and a
    fiftieth at least: to look into it costs so much. Places come later than the segment, and addresses to it.
    """
    size_bytes = one.end - one.begin
    if not of_messages or not one.places or segment.addresses is None or wanted.takes_all:
        return size_bytes
    wanted_count = sum(wanted.takes(address) for address in segment.addresses)
    return max(size_bytes * wanted_count // max(1, len(segment.addresses)), size_bytes // _PARTS_MAX)


def can_answer(segment: Segment, wanted: Wanted, *, of_messages: bool) -> bool:
    """May a segment have wanted rows? Timestamps and addresses of messages exclude only rows of their table."""
    if not wanted.has_between(segment.first_lsn, segment.last_lsn + 1):
        return False
    if segment.first_ms is None or segment.last_ms is None:
        return False
    if wanted.time_ms_min is not None and segment.last_ms < wanted.time_ms_min:
        return False
    if wanted.time_ms_max is not None and segment.first_ms > wanted.time_ms_max:
        return False
    for ids in (wanted.message_ids, wanted.original_ids):
        if ids is not None and not any(map(segment.may_have, ids)):
            return False
    if wanted.headers and segment.copies == 0:
        return False
    return not of_messages or _has_messages(segment, wanted)


def _has_messages(segment: Segment, wanted: Wanted) -> bool:
    low, high = wanted.timestamp_ms_min, wanted.timestamp_ms_max
    if low is not None and segment.newest_ms is not None and segment.newest_ms < low:
        return False
    if high is not None and segment.oldest_ms is not None and segment.oldest_ms > high:
        return False
    return segment.messages > 0 and _has_addresses(segment, wanted)


def _has_addresses(segment: Segment, wanted: Wanted) -> bool:
    if segment.addresses is None:
        return True
    span_ms = segment.first_ms or 0, segment.last_ms or 0
    return any(wanted.takes(address) and wanted.takes_of(address, *span_ms) for address in segment.addresses)


def ranges(segment: Segment, wanted: Wanted) -> Iterator[Range]:
    """The blocks with wanted lsns, in pieces of suitable size."""
    blocks = list(segment.blocks)
    if not blocks:
        return
    ends = [(offset, lsn) for offset, lsn, _ in blocks[1:]] + [(segment.size_bytes, segment.last_lsn + 1)]
    begun: tuple[int, int, int] | None = None
    last_end = last_behind = 0
    told = segment.number, segment.first_lsn, segment.last_lsn, segment.size_bytes
    of_segment = segment.name, segment.places_bytes > 0, told
    for (offset, lsn, time_ms), (end, behind_lsn) in zip(blocks, ends, strict=True):
        is_wanted = wanted.has_between(lsn, behind_lsn)
        is_full = begun is not None and offset + BLOCK_BYTES - begun[0] > _PIECE_BYTES  # its end may still move
        if begun is not None and (not is_wanted or is_full):
            yield Range(segment.number, begun[0], last_end, begun[1], *of_segment, (begun[2], last_behind))
            begun = None
        if is_wanted and begun is None:
            begun = offset, time_ms, lsn
        last_end, last_behind = end, behind_lsn
    if begun is not None:
        yield Range(segment.number, begun[0], last_end, begun[1], *of_segment, (begun[2], last_behind))


def start_lsn(log: Log, options: ReadOptions, brokers: Sequence[str]) -> int:
    """The offset at which a new query begins: everything up to it is skipped."""
    listing = log.listing()
    check_reach(log.broker, listing, options)
    if options.starting_ms is not None:
        return before_time(listing, options.starting_ms)
    if options.starting == EARLIEST:  # also where addresses have times of their own, and some have none
        return listing.first_lsn - 1
    named = None
    if options.starting != LATEST:
        skips = options.skips_unavailable
        named = lsn_of(options.starting, log.broker, brokers, "startingOffsets", skips=skips)
    if named is not None:
        return named
    return listing.end_lsn if options.starting == LATEST else listing.first_lsn - 1


def before_time(listing: Listing, time_ms: int) -> int:
    """An lsn after which everything from a time on follows: before the first segment that has something of that time.

    Where in it that begins, its blocks do not say: each has the time of its first batch, and a clock that was set back
    leaves later times before earlier ones.
    """
    for segment in listing.segments:
        if segment.last_ms is not None and segment.last_ms >= time_ms:
            return segment.first_lsn - 1
    return listing.end_lsn


def depths_told_lsn(log: Log, listing: Listing, before_ms: int) -> int:
    """The lsn of the last segment that records the queue depths before a time, and before which nothing is of that time
    or later, as with retention each does in its first turns; 0: from the beginning.
    """
    begun = [number for number, one in enumerate(listing.segments) if (one.last_ms or 0) >= before_ms]
    for segment in reversed(listing.segments[: begun[0] + 1] if begun else listing.segments):
        if segment.first_ms is None or segment.first_ms >= before_ms:
            continue
        told_ms = _depths_ms(log, segment)
        if told_ms is None:
            return 0
        if told_ms < before_ms:  # what was carried into the segment stands before its depths, in a turn of its own
            return segment.first_lsn
    return 0


def is_retained(log: Log, listing: Listing) -> bool:
    """Does the broker record deliveries, as it does with retention? True for an empty log."""
    begun = [segment for segment in listing.segments if segment.blocks]
    return not begun or _depths_ms(log, begun[-1]) is not None


def _depths_ms(log: Log, segment: Segment) -> int | None:
    """When a segment records the queue depths first, in epoch ms; None: not at its beginning."""
    begin = segment.blocks[0][0]
    data = log.read(segment.number, begin, min(segment.size_bytes, begin + _FIRST_TURN_BYTES))
    found = walk(Piece(f"segment {segment.number}", data, begin, None, is_last=True), [])
    told = found.times_ms[found.kinds == records.DEPTHS]
    return int(told[0]) if len(told) else None


# ---- gaps ------------------------------------------------------------------------------------------------------------
#
# Checks that the log has no gaps: each segment begins where the previous one ends. Otherwise a segment, or the end of
# one, is missing.


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
    top = _top(listing, wanted)
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
