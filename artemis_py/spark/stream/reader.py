"""``spark.readStream.format("artemis")``: offsets are positions in the log, so a range always has the same rows.

One Spark process plans a query as long as it runs; methods that use a log are called only there, except ``read``. An
offset is ``{"<broker>": lsn}``, with the key of each log (``log/log.py``): everything up to and including it has
been planned. ``#from`` is the beginning of its batch: Spark forgets where the first batch of a query began, and asks
for the initial offset again if that batch must be repeated; by then it may differ. ``#lost`` counts offsets that
retention removed before they were read, if losses are allowed. ``#log`` has a mark for each broker, by
which a restarted query knows its logs, and notices that one was replaced.

New records become a batch if they contain a row of the query (``look_ahead.py``). With ``skipUnavailableBrokers`` their
rows are fetched before they are planned.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from artemis_py.errors import PipelineError
from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.log.log import ID, AwayError, Listing, Log, LogLocation, Mark, check_same_log, mark_of
from artemis_py.spark.read.addresses import warn_of_unknown
from artemis_py.spark.read.batch import read_share
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Extract, Share, asked, check_gaps, check_reach, learn_queues, start_lsn, tasks
from artemis_py.spark.stream.brokers import Brokers
from artemis_py.spark.stream.look_ahead import LookAhead
from artemis_py.spark.tables.reading import Names

LOST: Final = "#lost"
FROM: Final = "#from"
LOG: Final = "#log"
LAG: Final = "#lag"
AWAY: Final = "#away"
_MARKED: Final = "#"
"""The prefix of other keys in an offset; names of brokers never have it."""
_REFRESHES_PER_TTL: Final = 4
_REPEATED: Final = (
    "Spark repeats a planned batch as it was: start the broker again, and then the query. A stand-by (url=one|two), or "
    "a query for each broker, spares the others the wait"
)
_logger = logging.getLogger(__name__)
Offset = dict[str, Any]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark creates it in several processes: nothing is opened before an offset is requested."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._brokers = Brokers(options)
        self._patience = _Patience(options)
        self._aheads: dict[str, LookAhead] = {}
        self._has_warned = False
        self._latest: Offset = {}
        """The ends of the logs when the last batch was planned, for the query's progress."""
        self._names: dict[str, Names] = {}
        self._target: dict[str, int] | None = None
        """The end of a run with ``availableNow``."""
        self._cursors: dict[str, tuple[int, float]] = {}
        """The cursor set at each broker, and when."""
        self._planned: dict[str, tuple[int, int]] = {}
        """The last batch's offsets of each broker, after the first number and up to the second, until it is done."""
        self._held: dict[tuple[str, int, int], tuple[Extract, list[_HeldRows]]] = {}
        """What was fetched of the last batch by broker, first offset before it and last one."""
        self._counted: dict[str, int] = {}
        """What ``#lost`` is to be at least, which no batch says yet."""

    # ---- offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:
        """Where a new query begins."""
        logs = self._opened()
        starts: Offset = {}
        marks: dict[str, Mark] = {}
        for broker, (_, log) in logs.items():
            lsn = starts[broker] = start_lsn(log, self._options, list(logs))
            marks[broker] = mark_of(log.listing(max(0, lsn - 1)), lsn)
        return {**starts, LOG: marks}

    def getDefaultReadLimit(self) -> ReadLimit:
        """What the options allow in one batch."""
        return _read_limit(self._options)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next batch. Raises PipelineError if something after ``start`` was removed."""
        self._bind(start)
        known = {broker: int(start[broker]) for broker in _brokers_of(start)}
        lost: dict[str, int] = dict(start.get(LOST, {}))
        found: dict[str, _Waiting] = {}
        room = _Room(self._options, limit)
        for broker, log, listing in self._brokers.listings(known):
            try:
                found[broker] = self._new(broker, log, listing, start, lost, room)
            except AwayError as error:
                self._brokers.leave(broker, error)
        ends = self._ends(found, limit, room)
        if _holds_rows(self._options):
            self._hold(found, ends, may_divide=not isinstance(limit, ReadAllAvailable))
        self._report(found, ends, start)
        end = {**known, **ends}
        if known == end and lost == start.get(LOST, {}):
            return start
        begins = {**known, **{broker: new.begin for broker, new in found.items()}}
        before: Mapping[str, Mark] = start.get(LOG, {})
        marks = {broker: mark_of(new.listing, ends[broker], before.get(broker)) for broker, new in found.items()}
        return {**end, FROM: begins, LOG: {**before, **marks}, **({LOST: lost} if lost else {})}

    def _new(
        self, broker: str, log: Log, listing: Listing, start: Offset, lost: dict[str, int], room: _Room
    ) -> _Waiting:
        """What there is of one log. Raises PipelineError when it is not the log that was read up to ``start``."""
        begin = int(start[broker]) if broker in start else self._first(broker, listing)
        if isinstance(log, DirectoryLog) and begin > listing.end_lsn:  # its last batch may be on its way again
            log.settle()
            listing = log.listing(max(0, begin - 1))
        check_same_log(broker, listing, begin, start.get(LOG, {}).get(broker))
        ahead = self._aheads.setdefault(broker, LookAhead(log, self._options))
        self._count_late(broker, begin, listing, lost)
        gone = listing.first_lsn - 1 - begin
        if gone > 0:
            if broker in start and not ahead.is_clear(begin, listing.first_lsn - 1):
                self._lose(broker, begin, listing)
                lost[broker] = lost.get(broker, 0) + gone
            begin = listing.first_lsn - 1
        top = listing.end_lsn
        if self._target is not None:
            top = min(top, self._target.get(broker, top))
        most = max(self._patience.messages_min, room.messages or 1)
        rows = ahead.rows(listing, self._learned(log, listing), begin, top, most)
        self._keep_cursor(broker, begin)
        return _Waiting(listing, begin, top, rows, ahead.count(top) or len(rows))

    def _first(self, broker: str, listing: Listing) -> int:
        """Where a broker begins that is new to the query, or was down at its start: at its beginning, unless
        startingOffsets names it.
        """
        check_reach(broker, listing, self._options)
        named = self._options.starting
        return 0 if isinstance(named, str) else int(named.get(broker, 0))

    def _count_late(self, broker: str, at: int, listing: Listing, lost: dict[str, int]) -> None:
        """Count what retention took of the batch that ends ``at`` here, after it was planned. Tasks cannot tell the
        planner what they found gone, so what they had read by now counts, too.
        """
        begin, top = self._planned.pop(broker, (at, at))
        last = min(top, listing.first_lsn - 1)
        if top == at and last > begin and not self._aheads[broker].is_clear(begin, last):
            self._counted[broker] = lost.get(broker, 0) + last - begin
            _logger.warning(
                "retention removed the offsets %d to %d of broker %s after their batch was planned; they are counted "
                "under %s", begin + 1, last, broker, LOST,
            )  # fmt: skip
        if broker in self._counted:
            lost[broker] = max(lost.get(broker, 0), self._counted[broker])

    def _ends(self, found: dict[str, _Waiting], limit: ReadLimit, room: _Room) -> dict[str, int]:
        """Where the next batch ends, which is where it begins where there is nothing for it."""
        offsets = sum(new.top - new.begin for new in found.values())
        is_enough = self._patience.is_enough(offsets, sum(len(new.rows) for new in found.values()))
        waits = not is_enough and self._target is None and not isinstance(limit, ReadAllAvailable)
        ends = {broker: new.begin for broker, new in found.items()}
        if not waits:
            ends |= room.ends({broker: new for broker, new in found.items() if len(new.rows)})
        for broker, new in found.items():
            if not len(new.rows) and self._has_to_move(new):
                ends[broker] = max(new.begin, new.top)
        return ends

    def _hold(self, found: dict[str, _Waiting], ends: dict[str, int], *, may_divide: bool) -> None:
        """Fetch the rows of the next batch, which must not wait for one of several brokers. Of one that does not answer
        any more it has none, and then it is divided anew. If it is larger than was thought it becomes smaller, but for
        one row, or where Spark wants all at once: such a batch waits for its brokers.
        """
        is_done = False
        while not is_done:
            self._held = {}
            there = {broker: new for broker, new in found.items() if ends[broker] > new.begin}
            is_done = self._fetch(there, ends, _Hold(self._options, None if may_divide else HELD_BYTES_MAX))
            large = [
                broker
                for broker, new in there.items()
                if len(new.rows) and ends[broker] > new.rows[0] and (broker, new.begin, ends[broker]) not in self._held
            ]
            if is_done and may_divide and large:
                for broker, new in there.items():
                    half = new.begin + (ends[broker] - new.begin + 1) // 2
                    ends[broker] = max(half, int(new.rows[0])) if len(new.rows) else ends[broker]
                is_done = False

    def _fetch(self, found: dict[str, _Waiting], ends: dict[str, int], hold: _Hold) -> bool:
        """Fetch what is new, and divide it as if all of it was planned later. False: a broker has left meanwhile."""
        extracts: dict[str, Extract] = {}
        rows: list[_HeldRows] | None
        for broker, new in found.items():
            top = ends[broker]
            try:
                log = self._opened()[broker][1]
                extracts[broker] = self._extract(log, new.begin, top, mark_of(new.listing, top))
            except AwayError as error:
                self._brokers.leave(broker, error)
                ends[broker] = new.begin
        divided = tasks([*extracts.values()], self._options, is_repeatable=True)
        for (broker, extract), its in zip(extracts.items(), divided, strict=True):
            try:
                rows = hold.fetch(its)
            except AwayError as error:
                self._brokers.leave(broker, error)
                ends[broker] = found[broker].begin
                return False
            if rows is not None:
                self._held[broker, found[broker].begin, ends[broker]] = extract, rows
        return True

    def _has_to_move(self, new: _Waiting) -> bool:
        """Would a query that starts again miss what retention may take next, although nothing in it was for it? Then an
        empty batch goes by: one for each segment at most.
        """
        segments = new.listing.segments
        if not segments or new.begin >= segments[-1].first_lsn - 1:
            return False
        is_next = new.begin < new.listing.first_lsn or segments[0].first_lsn <= new.listing.first_lsn
        return is_next or self._target is not None

    def _report(self, found: dict[str, _Waiting], ends: dict[str, int], start: Offset) -> None:
        """Note how far the logs go, and how far behind the query is when this batch is done."""
        found = {broker: new for broker, new in found.items() if not self._brokers.is_away(broker)}
        latest = {broker: new.listing.end_lsn for broker, new in found.items()}
        lags: dict[str, dict[str, int]] = {}
        for broker, new in found.items():
            end = ends[broker]
            is_clear = self._aheads[broker].is_clear(end, new.listing.end_lsn)
            offsets = 0 if is_clear else max(0, new.listing.end_lsn - end)
            lags[broker] = {"offsets": offsets, "bytes": bytes_behind(new.listing, end) if offsets else 0}
        away = self._brokers.away(_brokers_of(start))
        self._latest = {**latest, LAG: lags, **({AWAY: away} if away else {})}

    def reportLatestOffset(self) -> Offset:
        """The ends of the logs, for the query's progress; ``#lag`` is how much is unread, ``#away`` names brokers that
        do not answer.
        """
        return self._latest

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the run end at the current end of the logs."""
        self._opened()
        ends = self._brokers.listings(dict.fromkeys(self._opened(), 1 << 62))
        self._target = {broker: listing.end_lsn for broker, _, listing in ends}

    def _lose(self, broker: str, begin: int, listing: Listing) -> None:
        gone = f"offsets {begin + 1} to {listing.first_lsn - 1} of broker {broker}"
        if self._options.fails_on_loss:
            raise PipelineError(
                f"{gone} are no longer in the log: retention removed them before this query read them. Keep more of "
                "the log (journal-retention-directory), name a cursor, or continue without them with "
                "failOnDataLoss=false"
            )
        _logger.warning("%s are lost: retention removed them; they are counted under %s", gone, LOST)

    # ---- batches ---------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The tasks of one batch, which is the same at every planning. Raises PipelineError."""
        self._bind(end)
        begins = end.get(FROM, start)
        extracts: list[Extract] = []
        held: list[list[_HeldRows] | None] = []
        for broker in _brokers_of(end):
            begin, top = int(begins.get(broker, 0)), int(end[broker])
            if (broker, begin, top) in self._held:
                extract, rows = self._held[broker, begin, top]
                extracts.append(extract)
                held.append(rows)
            elif broker not in self._opened():
                self._check_nothing_of(broker, begin, top)
            elif top > begin:
                log = self._opened()[broker][1]
                log.wait_patiently()
                try:
                    extracts.append(self._extract(log, begin, top, end.get(LOG, {}).get(broker)))
                except AwayError as error:
                    said = f"{error}. The planned batch has the offsets {begin + 1} to {top} of broker {broker}"
                    raise PipelineError(f"{said}. {_REPEATED}") from None
                held.append(None)
            if broker in self._opened() and not self._brokers.is_away(broker):
                self._move_cursor(broker, begin)
        divided = tasks(extracts, self._options, is_repeatable=True)
        return [one for rows, its in zip(held, divided, strict=True) for one in (its if rows is None else rows)]

    def _check_nothing_of(self, broker: str, begin: int, top: int) -> None:
        """Raises PipelineError for a batch with something of a broker that is not there."""
        if top > begin:
            raise PipelineError(
                f"an unfinished batch has the offsets {begin + 1} to {top} of broker {broker}, which is not "
                "available. Start the query once while that broker is available; after that it may be removed"
            )

    def _extract(self, log: Log, begin: int, top: int, mark: Mark | None) -> Extract:
        listing = log.listing(begin)
        check_same_log(log.broker, listing, top, mark)
        if listing.first_lsn > begin + 1:
            self._lose(log.broker, begin, listing)
        if not self._options.fails_on_loss:
            self._planned[log.broker] = begin, top
        wanted = asked(self._options).between(begin + 1, top)
        check_gaps(log.broker, listing, wanted, fails_on_loss=self._options.fails_on_loss)
        return Extract(log.location, listing, wanted, self._learned(log, listing))

    def _learned(self, log: Log, listing: Listing) -> Names:
        """Queues are named where they were made: before a query's first batch all indexes are looked at once."""
        names = self._names.get(log.broker)
        if names is None:
            names = self._names[log.broker] = Names()
            listing = log.listing()
        return learn_queues(names, listing)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if isinstance(partition, _HeldRows):
            yield from partition.batches
            return
        try:
            yield from read_share(partition, self._options)
        except AwayError as error:
            raise PipelineError(f"{error}. {_REPEATED}") from None

    # ---- cursors ---------------------------------------------------------------------------------

    def commit(self, end: Offset) -> None:
        """Everything up to ``end`` is done: the brokers may drop it."""
        for broker in self._opened():
            if broker in end and not self._brokers.is_away(broker):
                self._move_cursor(broker, int(end[broker]))

    def _move_cursor(self, broker: str, lsn: int) -> None:
        if self._options.cursor is None or self._cursors.get(broker, (-1, 0.0))[0] >= lsn:
            return
        self._tell_cursor(broker, lsn)

    def _keep_cursor(self, broker: str, begin: int) -> None:
        """A query that finds nothing new still needs what it has not read, and a new one what it will read."""
        known = self._cursors.get(broker)
        if known is None:
            self._move_cursor(broker, begin)
        elif time.monotonic() - known[1] > self._options.cursor_ttl_s / _REFRESHES_PER_TTL:
            self._tell_cursor(broker, known[0])

    def _tell_cursor(self, broker: str, lsn: int) -> None:
        assert self._options.cursor is not None
        try:
            self._opened()[broker][1].set_cursor(self._options.cursor, lsn, self._options.cursor_ttl_s)
        except AwayError as error:
            self._brokers.leave(broker, error)  # the cursor moves when it answers again
            return
        self._cursors[broker] = lsn, time.monotonic()

    def _bind(self, offset: Offset) -> None:
        """Go on under the keys of an offset. Raises PipelineError if a broker of it is missing."""
        marks: Mapping[str, Mark] = offset.get(LOG, {})
        read = {broker: (int(offset[broker]), marks.get(broker, {})) for broker in _brokers_of(offset)}
        now = self._brokers.bind({broker: mark.get(ID) for broker, (_, mark) in read.items()}, read)
        if self._target is not None:  # asked for before Spark passes an offset
            self._target = {now.get(broker, broker): lsn for broker, lsn in self._target.items()}

    def _opened(self) -> dict[str, tuple[LogLocation, Log]]:
        logs = self._brokers.opened()
        if self._options.subscribes and not self._has_warned:
            self._has_warned = True
            warn_of_unknown(self._options, [log.listing() for _, log in logs.values()])
        return logs


def _brokers_of(offset: Mapping[str, Any]) -> list[str]:
    """The brokers of an offset."""
    return [name for name in offset if not name.startswith(_MARKED)]


# ---- held rows -------------------------------------------------------------------------------------------------------
#
# Rows that the planner holds, and its tasks only hand on. Spark repeats a batch that it has planned with the same
# offsets, and a sink that has it takes nothing of it again. So a planned batch has to have its rows, whatever happens
# to their broker. Where a query may go on without a broker, its batches are small, and their rows are fetched before
# they are planned.


class _HeldRows(InputPartition):
    """The rows of one task."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        super().__init__(None)
        self.batches = batches


class _Hold:
    """What is held of one batch. ``log_bytes_max``: of a batch with more log nothing is fetched; None: how much there
    is was limited before, but for the blocks at both ends.
    """

    def __init__(self, options: ReadOptions, log_bytes_max: int | None) -> None:
        self._options = options
        self._log_bytes_max = log_bytes_max
        self._log_bytes = self._row_bytes = 0

    def fetch(self, shares: Sequence[Share]) -> list[_HeldRows] | None:
        """The rows of tasks; None: they are too many beside the others. Raises PipelineError as the tasks would."""
        log_bytes = self._log_bytes + sum(one.end - one.begin for share in shares for one in share.ranges)
        if self._log_bytes_max is not None and log_bytes > self._log_bytes_max:
            return None
        row_bytes = self._row_bytes
        found: list[_HeldRows] = []
        for share in shares:
            batches: list[pa.RecordBatch] = []
            for batch in read_share(share, self._options):
                row_bytes += batch.nbytes
                if row_bytes > HELD_BYTES_MAX:
                    return None
                batches.append(batch)
            found.append(_HeldRows(batches))
        self._log_bytes, self._row_bytes = log_bytes, row_bytes
        return found


# ---- batches ---------------------------------------------------------------------------------------------------------
#
# The size of batches, and how long they wait for data.


HELD_BYTES_MAX: Final = 16 << 20
"""Of log, and of rows, that are fetched for one batch before it is planned: they pass through the driver."""
_MS_PER_S: Final = 1000


def _read_limit(options: ReadOptions) -> ReadLimit:
    """The options as Spark's read limit: Spark passes it back where it applies, and ``ReadAllAvailable`` where it does
    not (``trigger(once=True)``).
    """
    most = options.messages_max or options.offsets_max
    least = options.messages_min or options.offsets_min
    if most is not None:
        return ReadMaxRows(most)
    if options.bytes_max is not None or _holds_rows(options):
        return ReadMaxBytes(_bytes_max(options) or 0)
    return ReadAllAvailable() if least is None else ReadMinRows(least)


def _holds_rows(options: ReadOptions) -> bool:
    """Are rows fetched before they are planned, so that no broker stops the others?"""
    return options.skips_unavailable and len(options.urls) > 1


def _bytes_max(options: ReadOptions) -> int | None:
    """How much log one batch may have; None: any."""
    limits = [options.bytes_max, HELD_BYTES_MAX if _holds_rows(options) else None]
    return min((limit for limit in limits if limit is not None), default=None)


class _Patience:
    """Decides whether there is enough for a batch: it waits for ``minOffsetsPerTrigger`` and ``minMessagesPerTrigger``,
    but no longer than ``maxTriggerDelay`` after its first row was seen.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._since: float | None = None

    @property
    def messages_min(self) -> int:
        """How many messages must be counted at most."""
        return self._options.messages_min or 1

    def is_enough(self, offsets: int, messages: int) -> bool:
        """The arguments are the sums over all brokers since the last batch; ``messages`` counts no further than
        needed.
        """
        if not messages:
            self._since = None
            return False
        now = time.monotonic()
        if self._since is None:
            self._since = now
        options = self._options
        has_enough = offsets >= (options.offsets_min or 0) and messages >= (options.messages_min or 0)
        if not has_enough and (now - self._since) * _MS_PER_S < options.delay_max_ms:
            return False
        self._since = None
        return True


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What waits in one log for the next batch: everything above ``begin`` up to ``top``."""

    listing: Listing
    begin: int
    top: int
    rows: Numbers
    """Offsets of the first rows in it."""
    rows_count: int
    """About how many there are."""

    @property
    def before_rows(self) -> int:
        """The last lsn before the first row. What is before it does not count, because the query does not want it."""
        return int(self.rows[0]) - 1

    @property
    def offsets(self) -> int:
        """How many there are from the first row on."""
        return self.top - self.before_rows

    @property
    def size_bytes(self) -> int:
        """About how much log that is."""
        return max(1, bytes_behind(self.listing, self.before_rows) - bytes_behind(self.listing, self.top))


class _Room:
    """How much one batch may take of all logs together. What waits in a log decides which part of that it gets."""

    def __init__(self, options: ReadOptions, limit: ReadLimit) -> None:
        is_limited = not isinstance(limit, ReadAllAvailable)
        self._offsets = options.offsets_max if is_limited else None
        self._bytes = _bytes_max(options) if is_limited else None
        self.messages = options.messages_max if is_limited else None
        """The maximum number of rows; None: no limit."""

    def ends(self, waiting: Mapping[str, _Waiting]) -> dict[str, int]:
        """The last lsn of the batch in each log, all of which have rows: its ``top`` or before."""
        ends = {broker: one.top for broker, one in waiting.items()}
        counts = {broker: one.rows_count for broker, one in waiting.items()}
        for broker, part in _parts(self.messages, counts):
            ends[broker] = min(ends[broker], int(waiting[broker].rows[part - 1]))
        for broker, part in _parts(self._offsets, {broker: one.offsets for broker, one in waiting.items()}):
            ends[broker] = min(ends[broker], waiting[broker].before_rows + part)
        for broker, part in _parts(self._bytes, {broker: one.size_bytes for broker, one in waiting.items()}):
            one = waiting[broker]
            ends[broker] = min(ends[broker], _lsn_at(one.listing, one.before_rows, part))
        return ends


def _parts(limit: int | None, waiting: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """What each log may give of a limit that is less than what waits in all of them: at least one, and the rest in
    proportion. Together that is the limit, unless there are more logs.
    """
    whole = sum(waiting.values())
    if limit is None or whole <= limit:
        return
    spare = max(0, limit - len(waiting))
    given = before = 0
    for broker, count in waiting.items():
        before += count - 1
        part = spare * before // max(1, whole - len(waiting)) - given
        given += part
        yield broker, 1 + part


def _lsn_at(listing: Listing, begin: int, size_bytes: int) -> int:
    """The lsn about so many bytes behind another one: within a block lsns are taken to be equally long."""
    left = float(size_bytes)
    lsn = begin
    for block_bytes, low, behind in _blocks(listing):
        if behind - 1 <= begin:
            continue
        bytes_per_lsn = max(1.0, block_bytes / max(1, behind - low))
        first = max(low, begin + 1)
        taken = (behind - first) * bytes_per_lsn
        if taken >= left:
            return max(begin + 1, first - 1 + int(left / bytes_per_lsn))
        left -= taken
        lsn = behind - 1
    return lsn


def bytes_behind(listing: Listing, lsn: int) -> int:
    """Approximate bytes of the log after an lsn, assuming equally long records within a block."""
    found = 0.0
    for block_bytes, low, behind in _blocks(listing):
        if behind - 1 > lsn:
            found += block_bytes * (behind - max(low, lsn + 1)) / max(1, behind - low)
    return int(found)


def _blocks(listing: Listing) -> Iterator[tuple[int, int, int]]:
    """The size of each block, its first lsn, and the first behind it. A segment that has just begun has none."""
    for segment in listing.segments:
        ends = [(offset, low) for offset, low, _ in segment.blocks[1:]] + [(segment.size_bytes, segment.last_lsn + 1)]
        for (offset, low, _), (end, behind) in zip(segment.blocks, ends, strict=False):
            yield end - offset, low, behind
