"""``spark.readStream.format("artemis").option("queue", …)``: a stream that consumes a queue.

One Spark process plans a query as long as it runs. It subscribes to the queue over STOMP, is sent the bookmarks of
messages and not their bodies, and makes batches of them; tasks read the messages in the log, as those of every other
stream do. So a batch that runs again has the same rows, whatever happens on the queue meanwhile.

**When messages are acknowledged.** Spark asks for the next batch only when it has noted that the one before is done:
then ``latestOffset`` has the end of that one as ``start``. So that call acknowledges it, and waits for the broker's
confirmation before it plans anything. Therefore an offset needs to name the messages of one batch only. ``commit`` says
the same later, when the next batch is planned already, and not at all while there is none.

**What is held.** Messages come only while Spark waits for some: when a batch is planned, the backlog is closed to what
is held. So others get the messages that arrive while a batch runs, and leases begin when a batch does.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from artemis_py.errors import PipelineError
from artemis_py.spark.consume.batch import LOG, Batch, Offset, Planner, batch_of, key_of, read_portion
from artemis_py.spark.consume.link import Access, Link
from artemis_py.spark.consume.unsettled import Arrival, Unsettled
from artemis_py.spark.log.log import (
    Listing,
    Log,
    LogLocation,
    Mark,
    check_same_log,
    is_renamed,
    mark_of,
    warn_of_new_name,
)
from artemis_py.spark.read.options import MESSAGES_MAX, ReadOptions
from artemis_py.spark.read.plan import Found, is_retained, learn_queues, locations, under
from artemis_py.spark.stream.reader import LAG
from artemis_py.spark.tables.reading import Names, Sample

LAPSED: Final = "#lapsed"
_ALL_MAX: Final = 1_000_000
"""How many messages are in a batch that is to have all (``trigger(once=True)``)."""
_SLOW_S: Final = 1.0
"""A query that asks less often holds nothing in between."""
_ALL_S: Final = 60.0
"""So often everything that may be on the queue still is acknowledged again, to learn what is gone."""
_logger = logging.getLogger(__name__)


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark creates it in several processes, and sends one to the tasks: nothing is opened before an offset is asked
    for.
    """

    def __init__(self, options: ReadOptions) -> None:
        assert options.queue is not None
        self._options = options
        self._queue = options.queue
        self._pool = Unsettled()
        self._link: Link | None = None
        self._gathering: _Gathering | None = None
        self._location: LogLocation = locations(options)[0]
        self._log: Log | None = None
        self._is_bound = False
        """Has the log the key that offsets have for it?"""
        self._planner = Planner(options)
        self._names: Names | None = None
        self._settled = -1
        """The number of the last batch that was acknowledged."""
        self._target: int | None = None
        """The bookmark at which a run with ``availableNow`` ends."""
        self._ahead_ms = 0.0
        """How much later the broker's clock is than this one."""
        self._end_lsn = 0
        self._lapsed_count = 0
        self._few_count = 0
        """The size of the last batch that was smaller than it was allowed to be."""
        self._passed_count = 0
        """How many messages nobody had when there was none for this query."""
        self._has_warned = False
        self._all_s = -_ALL_S
        """When everything that may be on the queue still was acknowledged again."""
        self._proof: tuple[int, Mark | None] | None = None
        """A bookmark of the last batch, and the mark of the log with it."""
        self._latest: dict[str, Any] = {}

    # ---- offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first batch of a new query: nothing has been taken."""
        log = self._opened()[0]
        listing = self._listing(log, (1 << 63) - 1)
        batch = Batch(self._queue.name, 0, (), (), 0, None)
        return batch.offset(log.broker, mark_of(log.listing(max(0, listing.end_lsn - 1)), listing.end_lsn))

    def getDefaultReadLimit(self) -> ReadLimit:
        """What the options allow in one batch. Spark passes ``ReadAllAvailable`` where it does not apply."""
        return ReadMaxRows(self._options.messages_max or MESSAGES_MAX)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> dict[str, Any]:
        """Acknowledge the batch that ends at ``start``, and plan the next one. Raises PipelineError."""
        log, link = self._opened(start)
        pause_s = link.note_call()
        before = batch_of(start, self._queue.name)
        self._settle(before, start, log, link)
        taken = self._gathered(limit, pause_s)
        self._latest = self._report(log, link)
        if not taken:
            if self._target is not None:
                self.stop()
            elif pause_s > _SLOW_S:
                link.want(0)
            return dict(start)
        bookmarks = sorted(one.bookmark for one in taken)
        top = max(before.top, bookmarks[-1])
        listing = self._listing(log, bookmarks[-1] - 1)
        mark = mark_of(listing, bookmarks[-1], start[LOG].get(log.broker))
        sample = Sample(taken[0].bookmark, taken[0].message_id, taken[0].timestamp_ms)
        batch = Batch(
            self._queue.name, before.number + 1, tuple(bookmarks), tuple(sorted(self._pool.done)), top, sample
        )
        return batch.offset(log.broker, mark)

    def reportLatestOffset(self) -> dict[str, Any]:
        """The end of the log, for the query's progress; ``#lag`` is how many messages wait on the queue, and
        ``#lapsed`` how many leases have ended before their batch was done.
        """
        return self._latest

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the run end when what is on the queue now has been taken."""
        self._target = self._listing(self._opened()[0], (1 << 63) - 1).end_lsn

    def _report(self, log: Log, link: Link) -> dict[str, Any]:
        count = link.talk.left_count
        lag = {} if count is None else {"messages": count}
        lapsed = {LAPSED: {log.broker: self._lapsed_count}} if self._lapsed_count else {}
        return {log.broker: self._end_lsn, LAG: {log.broker: lag}, **lapsed}

    # ---- what is done ----------------------------------------------------------------------------

    def _settle(self, batch: Batch, offset: Offset, log: Log, link: Link) -> None:
        """Acknowledge a batch that is done, once; then what has come again of earlier ones."""
        pool = self._pool
        if batch.number != self._settled:
            self._note_proof(batch, offset, log)
            with link.changed:
                lapsed = self._lapsed(batch)
                pool.done.update(batch.kept)
                pool.finish(batch.bookmarks)
                gone = pool.came_again | set(batch.bookmarks)
            self._warn_of_lapsed(batch, lapsed)
        else:
            with link.changed:
                pool.finish(())
                gone = set(pool.came_again)
        if pool.done - gone and time.monotonic() - self._all_s > _ALL_S:
            self._all_s = time.monotonic()
            gone |= pool.done
        if gone:
            told = sorted(gone)
            kept = link.acknowledge(told)
            with link.changed:
                pool.settled(told, kept)
        self._settled = batch.number

    def _lapsed(self, batch: Batch) -> int:
        """How many leases of a batch have ended before it was done, as far as this process knows."""
        now_ms = self._now_ms()
        held = [self._pool.planned.get(bookmark) for bookmark in batch.bookmarks]
        over = sum(one is not None and 0 < one.lease_ends_ms <= now_ms for one in held)
        again, self._pool.lapsed_count = self._pool.lapsed_count, 0
        return over + again

    def _warn_of_lapsed(self, batch: Batch, count: int) -> None:
        if not count:
            return
        self._lapsed_count += count
        _logger.warning(
            "queue %s: %d leases ended before the batch with their messages was done (%d messages); other consumers "
            "may have processed them too. Choose a longer lease-period than a batch and its trigger take, or fewer "
            "messages in a batch (maxMessagesPerTrigger)", self._queue.name, count, len(batch.bookmarks),
        )  # fmt: skip

    def commit(self, end: Offset) -> None:
        """Spark is done with everything up to ``end``. ``latestOffset`` has acknowledged it before."""

    # ---- what is next ----------------------------------------------------------------------------

    def _gathered(self, limit: ReadLimit, pause_s: float) -> list[Arrival]:
        """The messages of the next batch; none if there are none now."""
        takes_all = isinstance(limit, ReadAllAvailable)
        if takes_all and self._target is None:
            self._target = self._end_lsn
        wish = _Wish(
            _ALL_MAX if takes_all else self._options.messages_max or MESSAGES_MAX,
            None if takes_all else self._options.bytes_max,
            self._target,
            self._target is not None,
            pause_s,
        )
        assert self._gathering is not None
        taken = self._gathering.gather(wish, self._now_ms())
        if self._queue.selector is None and not self._has_warned:
            if not taken:
                self._warn_of_passed()
            elif wish.bytes_max is None and len(taken) < wish.count_max:
                self._warn_of_few(len(taken))
        return taken

    def _warn_of_passed(self) -> None:
        """Twice there was nothing for the query, and as many messages that nobody has. Say so once."""
        assert self._link is not None
        left_count = self._link.talk.left_count or 0
        before, self._passed_count = self._passed_count, left_count
        if left_count and left_count == before:
            self._has_warned = True
            _logger.warning(
                "queue %s has %d messages, and gives this query none. It takes persistent messages only (SEND with "
                "persistent:true), because others have no place in the log; if these are, ask the broker: artemis-py "
                "why not-delivered %s",
                self._queue.name, left_count, self._queue.name,
            )  # fmt: skip

    def _warn_of_few(self, count: int) -> None:
        """Two small batches of one size, and there are more messages: the queue has a limit of its own. Say so once."""
        assert self._link is not None
        before, self._few_count = self._few_count, count
        left_count = self._link.talk.left_count
        if count == before and left_count and self._target is None:
            self._has_warned = True
            _logger.warning(
                "queue %s gives %d messages for a batch although %d more wait on it: max-per-subscription-backlog of "
                "the queue limits what one consumer may hold (it is 1 unless set), or they are not persistent",
                self._queue.name, count, left_count,
            )  # fmt: skip

    # ---- batches ---------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The tasks of the batch that ends at ``end``, the same at every planning. Raises PipelineError."""
        log, link = self._opened(end)
        batch = batch_of(end, self._queue.name)
        if not batch.bookmarks or batch.number == batch_of(start, self._queue.name).number:
            return []
        with link.changed:
            is_again = not self._pool.planned
            self._pool.done.update(batch.kept)
            self._pool.restore(batch.bookmarks)
        if is_again:  # planned by an earlier process: hold its messages, so that no others process them meanwhile
            link.want(len(batch.bookmarks))
        listing = log.listing(batch.bookmarks[0] - 1)
        self._note_proof(batch, end, log)
        check_same_log(log.broker, listing, batch.bookmarks[-1], end[LOG].get(log.broker))
        return self._planner.portions(log, listing, batch, self._learned(log, listing))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return read_portion(partition, self._options)

    def stop(self) -> None:
        """The query ends, as far as Spark says so: give everything back."""
        if self._link is not None:
            self._link.close()
            self._link = None

    # ---- the broker ------------------------------------------------------------------------------

    def _opened(self, offset: Offset | None = None) -> tuple[Log, Link]:
        """The log, under the key that an offset has for it, and the queue. Raises PipelineError when one of them does
        not suit.
        """
        if self._log is None:
            log = self._location.open()
            listing = self._listing(log, (1 << 63) - 1)
            if not is_retained(log, log.listing(max(0, listing.end_lsn - 1))):
                raise PipelineError(
                    f"the broker {log.broker} does not retain its log, in which tasks read the messages of queue "
                    f"{self._queue.name}: set a journal-retention-directory"
                )
            self._log = log
        if offset is not None and not self._is_bound:
            self._bind(self._log, offset)
        if self._link is None:
            options = self._options
            link = Link(Access(self._queue, options.login, options.tls, options.wait_s), self._pool, self._prove)
            try:
                link.await_open()
            except PipelineError:
                link.close()
                raise
            self._link = link
            self._gathering = _Gathering(link, self._pool)
            leave_when_ended(link)
        return self._log, self._link

    def _bind(self, log: Log, offset: Offset) -> None:
        batch_of(offset, self._queue.name)
        one = Found(self._location, log, log.identity())
        key = key_of(offset, one.identity)
        if is_renamed(key, one.identity):
            warn_of_new_name(key, one.identity)
        self._location, self._log = under(key, one)
        self._is_bound = True

    def _listing(self, log: Log, after_lsn: int) -> Listing:
        """The log from a place on, and the broker's time with it."""
        listing = log.listing(after_lsn)
        if listing.now_ms is not None:
            self._ahead_ms = listing.now_ms - time.time() * 1000
        self._end_lsn = listing.end_lsn
        return listing

    def _now_ms(self) -> float:
        """The broker's date."""
        return time.time() * 1000 + self._ahead_ms

    def _prove(self) -> None:
        """Raises PipelineError when the log is another one than that of the last batch: its bookmarks mean other
        messages there.
        """
        if self._proof is not None and self._log is not None:
            top, mark = self._proof
            check_same_log(self._log.broker, self._log.listing(max(0, top - 1)), top, mark)

    def _note_proof(self, batch: Batch, offset: Offset, log: Log) -> None:
        if batch.bookmarks:
            self._proof = batch.bookmarks[-1], offset[LOG].get(log.broker)

    def _learned(self, log: Log, listing: Listing) -> Names:
        """The queues by name, as the other streams know them."""
        if self._names is None:
            self._names = Names()
            listing = log.listing()
        return learn_queues(self._names, listing)


# ---- the end of the process ------------------------------------------------------------------------------------------
#
# The end of the process that plans a query. Spark ends it with SIGTERM and calls no ``stop``, also when the query has
# ended by itself. A connection that just breaks counts as a failed delivery of what is held, so the link leaves first.


_RUNNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"


_links: Final[list[Link]] = []


def leave_when_ended(link: Link) -> None:
    """Have a link leave when Spark ends this process. It does nothing in other processes, or where somebody else
    handles the signal.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or spec.name != _RUNNER or threading.current_thread() is not threading.main_thread():
        return
    if _links:
        _links[:] = [link]
    elif signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        _links.append(link)
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    for link in _links:
        link.close()
    os.kill(os.getpid(), number)


# ---- gathering -------------------------------------------------------------------------------------------------------
#
# Gathers the messages of the next batch: opens the backlog, waits until there are enough or no more come, and closes it
# again.


_FIRST_GOAL: Final = 100
"""With a limit in bytes nobody knows how many messages that will be: how many are asked for at first."""
_FEW_S: Final = 0.05
"""A batch that has messages waits so long for another one."""
_NONE_S: Final = 0.2
"""A batch that has none waits so long for the first one."""
_PATIENT_S: Final = 1.0
"""The same where the run ends when nothing comes: pages may have to be read first."""
_LONG_S: Final = 5.0
_SHORT_S: Final = 0.3
"""A batch waits at most so long for more, and longer where the next trigger is far away."""
_STEP_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a batch is to have."""

    count_max: int
    bytes_max: int | None
    top: int | None
    """Nothing with a higher bookmark; None: no bound."""
    is_patient: bool
    """Does the run end when there is nothing?"""
    pause_s: float
    """How long ago the batch before was asked for."""


@final
class _Gathering:
    """How a stream gets its messages from the broker."""

    def __init__(self, link: Link, pool: Unsettled) -> None:
        self._link = link
        self._pool = pool
        self._goal = _FIRST_GOAL

    def gather(self, wish: _Wish, now_ms: float) -> list[Arrival]:
        """The messages of the next batch, which are planned now; none if there are none. ``now_ms`` is the broker's
        date. Raises PipelineError.
        """
        link, pool = self._link, self._pool
        goal = wish.count_max if wish.bytes_max is None else min(wish.count_max, self._goal)
        late = self._late_count(wish)
        if late > wish.count_max:  # they come before the rest of what was there when the run began
            return []
        was_open = link.talk.backlog >= goal + late
        link.want(goal + late)
        if was_open and not wish.is_patient and not pool.waiting:
            link.refresh()
            return []
        self._await(wish, goal)
        with link.changed:
            taken = pool.plan(wish.count_max, wish.bytes_max, wish.top, now_ms)
            if taken:
                self._goal = max(_FIRST_GOAL, len(taken))
                link.want(pool.held_count)
        return taken

    def _late_count(self, wish: _Wish) -> int:
        with self._link.changed:
            return len(self._pool.waiting) - self._pool.count_up_to(wish.top)

    def _await(self, wish: _Wish, goal: int) -> None:
        link, pool = self._link, self._pool
        begin_s = changed_s = time.monotonic()
        long_s = _LONG_S if wish.is_patient else min(_LONG_S, max(_SHORT_S, wish.pause_s))
        count = 0
        while True:
            link.await_open()
            again, filled, known, is_dry = self._looked(wish)
            now_s = time.monotonic()
            if again or known != count:
                count, changed_s = known, now_s
            if again:
                kept = link.acknowledge(again)
                with link.changed:
                    pool.settled(again, kept)
            is_full = wish.bytes_max is not None and filled >= wish.bytes_max
            if count >= goal and goal < wish.count_max and not is_full:
                goal = min(2 * goal, wish.count_max)
                link.want(goal + self._late_count(wish))
            elif count >= goal or is_full or (is_dry and not again):
                return
            if now_s - changed_s > self._patience_s(wish, count) or (count and now_s - begin_s > long_s):
                return
            link.wait(_STEP_S, asks=True)

    def _looked(self, wish: _Wish) -> tuple[list[int], int, int, bool]:
        """What has come again, the bytes and the number of what waits, and whether that is all."""
        pool = self._pool
        with self._link.changed:
            filled = 0 if wish.bytes_max is None else sum(one.size_bytes for one in pool.waiting.values())
            return sorted(pool.came_again), filled, pool.count_up_to(wish.top), self._link.talk.is_dry

    def _patience_s(self, wish: _Wish, count: int) -> float:
        if count:
            return _FEW_S
        return _PATIENT_S if wish.is_patient else _NONE_S
