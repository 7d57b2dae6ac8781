"""The journal while the broker runs: it makes the records of each turn durable, as one batch.

``segments.py`` decides which file a batch goes to and which files go. Compaction writes again what lives in old ones, a
little in each turn. Part of a retained log is the audit log. The journal never reads its files: ``recovery/`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from mypy_extensions import mypyc_attr

from artemis_py.histogram import Histogram
from artemis_py.message import Message
from artemis_py.record_log import Actor, AuditLog, Depth, Durability
from artemis_py.storage.disk.disk import Disk, DiskError
from artemis_py.storage.disk.group_commit import Commit, Committer, Write, bytes_of
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.records import (
    ADDRESS,
    BROKER,
    CONFIGURED,
    CONSUMER,
    CURSOR,
    DELIVERED,
    DEPTHS,
    DUPLICATE,
    FLAG_PAGED,
    MESSAGE,
    PAGE_ATTEMPTED,
    PAGE_DROPPED,
    PAGE_GREW,
    PAGE_OPENED,
    PAGE_PLACES,
    QUEUE,
    REFUSED,
    SESSION,
)
from artemis_py.storage.journal.bindings_copy import BindingsCopy
from artemis_py.storage.journal.index import Index, Segment
from artemis_py.storage.journal.record_writer import RecordWriter
from artemis_py.storage.journal.segments import NO_NEW_FILE, Segments
from artemis_py.storage.journal.settings import JournalSettings, JournalStart, SegmentCare
from artemis_py.storage.pages import PageFiles

_INLINE_BYTES_MAX: Final = 65536
_ROUND_EVERY_MS: Final = 10_000
"""How often the files are looked through although nothing was recorded, also after the clock was set."""
_NS_PER_SECOND: Final = 1_000_000_000
_SYNC_BOUNDS_NS: Final = [bound_us * 1_000 for bound_us in (
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000
)]  # fmt: skip
MakeRecords = Callable[[JournalStart, JournalSettings, list[Segment], BindingsCopy], RecordWriter]


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal(Durability):
    """Writes what ``records`` gathers, in batches, to segments on ``disk``.

    ``committer`` writes and syncs them. ``pages`` are the page files whose bytes go in front of the records about them.
    ``make_records`` makes ``records``; tests have their own.
    """

    def __init__(
        self,
        disk: Disk,
        committer: Committer,
        settings: JournalSettings,
        *,
        start: JournalStart,
        care: SegmentCare,
        pages: PageFiles | None = None,
        make_records: MakeRecords = RecordWriter,
    ) -> None:
        index = start.index
        self.durable_lsn = start.next_lsn - 1
        self.index = index
        self.files = Segments(disk, committer, settings, start, care)
        self.segments = self.files.all
        self.compaction = Compaction(disk, settings, index, self.files)
        self.batches = start.batch_number
        self.syncs = 0
        self.damaged_places = start.damaged_places
        self.lost_records = start.lost_records
        """The damaged places found at the start, and the number of records lost there at most."""
        self.inline = False
        self.was_inline = False
        self._disk = disk
        self._committer = committer
        self._settings = settings
        self._regular_tasks = care.regular_tasks
        self._round_due_ms = 0
        self._pages = pages
        self._replaces = False
        """Has a copy of something been gathered whose original is in a file that will be removed?"""
        self._is_idle = False
        """Had the last ``seal`` nothing to do? Then the next one has nothing to do either until something is recorded
        or has become durable, or the next regular round is due.
        """
        self._began_file = False
        """Is the last batch the first of its file?"""
        self._syncing = False
        """Does the batch being written end with a sync?"""
        self._sync_times = Histogram(_SYNC_BOUNDS_NS, _NS_PER_SECOND)
        self._copy = BindingsCopy(disk, committer, index)
        self.records = make_records(start, settings, self.segments, self._copy)
        if settings.retains:
            self.records.audit = AuditTrail(self.records, settings.broker_name)
        if index.queues or index.addresses or index.cursors or index.configured:
            self._copy.hand_over(self.records.last_lsn)
        for stream, number in index.pages.orphans:
            self.records.append(PAGE_DROPPED, codec.encode_page_dropped(stream, number))
        index.pages.orphans.clear()

    # ---- becoming durable ------------------------------------------------------------------------

    @property
    def failure(self) -> DiskError | None:
        """Why nothing more becomes durable; None if the disk works."""
        return self._committer.failure

    @property
    def has_pending(self) -> bool:
        """Is something gathered or being written that is not durable yet?"""
        return (
            bool(self.records.pending)
            or self._committer.busy
            or (self._pages is not None and self._pages.has_unwritten)
        )

    @property
    def _end_lsn(self) -> int:
        """When this lsn is durable, everything recorded so far is. It is the lsn of the next BATCH record if records
        wait.
        """
        return self.records.next_lsn if self.records.pending else self.records.last_lsn

    @property
    def sync_times(self) -> Histogram:
        return self._sync_times

    def counts(self) -> dict[str, int]:
        return {
            "records": self.records.last_lsn,
            "batches": self.batches,
            "syncs": self.syncs,
            "files": len(self.segments),
            "bytes": self.files.written_bytes,
            "live_bytes": self.files.live_bytes,
            "damaged_places": self.damaged_places,
            "lost_records": self.lost_records,
        }

    def poll(self) -> None:
        """Note the batch that has become durable, if any, and remove files that waited for it."""
        done = self._committer.finished()
        if done is not None:
            self._is_idle = False
            self.durable_lsn = done.lsn
            if self._syncing:
                self.syncs += 1
                self._sync_times.note(done.duration_ns)
            self.files.became_durable(synced=self._syncing)
            if self.files.retiring:
                self.files.retire(self.durable_lsn)
            pages = self._pages
            if pages is not None and (pages.flying or pages.early or pages.doomed):
                pages.written()
                pages.delete_doomed(self.durable_lsn, self._committer.later)

    def seal(self) -> None:
        self.was_inline = False
        if self._committer.busy or self._committer.failure is not None:
            return
        records, pages = self.records, self._pages
        is_round = not 0 < self._round_due_ms - records.now_ms <= _ROUND_EVERY_MS
        has_pages = pages is not None and bool(pages.gathering or pages.dropped)
        if self._is_idle and not (is_round or records.pending or has_pages):
            return
        if is_round:
            self._begin_round()
        if len(self.segments) > 1:
            self._make_old_ones_go()
        writes: list[Write] = []
        if pages is not None:
            pages.now_ms = records.now_ms
            if pages.gathering:
                writes = pages.take_writes()
            if pages.dropped:
                pages.stamp_dropped(self._end_lsn)
        if records.pending:
            commit = self._make_commit(writes)
        elif writes:
            commit = Commit(writes, self.durable_lsn, bytes_of(writes))
            self._syncing = False
        else:
            self.files.retire(self.durable_lsn)
            if pages is not None:
                pages.delete_doomed(self.durable_lsn, self._committer.later)
            self._is_idle = True
            return
        if self.inline and commit.size_bytes <= _INLINE_BYTES_MAX:
            self._committer.run_now(commit)
            self.was_inline = True
            self.poll()
        else:
            self._committer.submit(commit)
        if self._copy.noted or self._copy.wants_anew:
            self._copy.hand_over(records.last_lsn)
        if is_round or self._began_file:
            self.files.provide_spares()

    def _make_old_ones_go(self) -> None:
        """Write again what lives in the oldest segment, if that is wanted, and let go of segments without any."""
        moved = self.compaction.moved()
        if moved:
            self.write_again(moved)
        if not self.segments[0].live:
            self._let_empty_go()

    def _begin_round(self) -> None:
        """Have the regular tasks done in the committer's thread."""
        self._round_due_ms = self.records.now_ms + _ROUND_EVERY_MS
        if self._regular_tasks is not None:
            self._committer.later(self._regular_tasks)
            self._committer.later(self.files.retirement.retry)

    def _make_commit(self, writes: list[Write]) -> Commit:
        """A batch of everything gathered. ``writes`` come first, because its records refer to them."""
        segment, records, settings = self.segments[-1], self.records, self._settings
        self.batches += 1
        batch = codec.BatchHeader(self.batches, records.now_ms, records.message_id, records.queue_id)
        encoded, gathered = records.take(codec.encode_batch(batch))
        files = self.files
        self._began_file = files.is_unmade
        file = files.new_file(records.now_ms) if files.is_unmade else NO_NEW_FILE
        data = b"".join([file.header, *encoded])
        sync = (gathered.is_transactional and settings.sync_transactional) or (
            gathered.is_non_transactional and settings.sync_non_transactional
        )
        if not sync and (self._replaces or self.files.fills(len(data))):
            # Synced batches must not depend on unsynced ones. A sync here may take long.
            sync, self.inline = True, False
        self._syncing, self._replaces = sync, False
        write = Write(self._disk, segment.name, segment.written_bytes, data, sync, file.create_bytes)
        write.renamed_from = file.spare
        size_bytes = len(data) + max(file.create_bytes, 0)
        if writes:
            size_bytes += bytes_of(writes)
        files.wrote(gathered, len(data), records.last_lsn, records.now_ms, begins_file=self._began_file)
        return Commit([*writes, write], records.last_lsn, size_bytes)

    def compact(self) -> None:
        """Write again, in the next turns, what lives in all files but the current one."""
        self.compaction.request()
        self._is_idle = False

    def finish(self) -> None:
        """Close the current segment and note the end of the journal. Call it when nothing more will be written."""
        if not self.files.is_under_way and self._committer.failure is None:
            self.files.finish(is_all_written=not self.records.pending)

    # ---- segments that go ------------------------------------------------------------------------

    def _let_empty_go(self) -> None:
        """Release the oldest segments in which nothing lives. They go when everything written so far is durable."""
        while (segment := self.files.oldest_empty()) is not None:
            if segment.has_bindings:
                if not self.compaction.may_move_bindings:
                    return
                self.write_bindings()
            self.files.let_oldest_go(self._end_lsn)

    def write_bindings(self) -> None:
        """Write everything but messages again: bindings, duplicate ids, cursors, pages. Earlier records of it no longer
        count.
        """
        for segment in self.segments:
            segment.has_bindings = False
        self.segments[-1].has_bindings = True
        records = self.records
        before = len(records.pending)
        for type_code, fields in _binding_records(self.index, self._settings.duplicate_ids_kept):
            records.append_fields(type_code, fields)
        for type_code, payload in _page_records(self.index):
            records.append(type_code, payload)
        self.compaction.bindings_bytes = sum(map(len, islice(records.pending, before, None)))
        self._replaces = True

    def write_again(self, messages: list[Kept]) -> None:
        """Write living messages again, with their attempts and schedules. Their earlier copies no longer count."""
        current = self.segments[-1]
        for kept in messages:
            self.records.append(MESSAGE, codec.encode_message(kept))
            self.index.add(kept, current)
            self._replaces = True


# ---- living ----------------------------------------------------------------------------------------------------------
#
# Everything except messages that a journal still needs, as records to rewrite when an old file is removed. Each
# record is independent and repeats what is already known. So a crash between two of them does no harm, and damage to
# one affects no other.


def _binding_records(index: Index, duplicate_ids_kept: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Addresses, queues, duplicate ids (the newest first), cursors and what operators configured: the type of each
    record and its fields.
    """
    for fields in index.addresses.values():
        yield ADDRESS, fields
    for fields in index.queues.values():
        yield QUEUE, fields
    for address, seen in index.duplicate_ids.items():
        for duplicate_id in reversed(seen[-duplicate_ids_kept:]):
            yield DUPLICATE, {"address": address, "id": duplicate_id, "again": True}
    for fields in index.cursors.values():
        yield CURSOR, fields
    for fields in index.configured.values():
        yield CONFIGURED, fields


def _page_records(index: Index) -> Iterator[tuple[int, bytes]]:
    """Everything known about pages: the type of each record and its payload. The content of a page is recorded twice,
    because nothing else records it: damage to one record must not cost a page.
    """
    for page in index.pages.pages():
        address = index.pages.address_of(page)
        yield PAGE_OPENED, codec.encode_fields(codec.page_opened_fields(page, address))
        grew = codec.encode_page_grew(page, address)
        yield PAGE_GREW, grew
        yield PAGE_GREW, grew
    for stream in index.pages.recovered_state():
        for (queue_id, number), settled in stream.settled.items():
            yield PAGE_PLACES, codec.encode_page_places(queue_id, stream.number, number, settled)
        for (queue_id, place), (attempts, due_ms) in stream.attempts.items():
            its_page = stream.page_of(place)
            if its_page is not None:  # None: the record of it was damaged
                told = codec.PageAttempted(queue_id, stream.number, its_page.number, place, 0, attempts, due_ms)
                yield PAGE_ATTEMPTED, codec.encode_page_attempted(told)


# ---- compaction ------------------------------------------------------------------------------------------------------
#
# Living messages of the oldest segment are written again at the end, a few in each turn. A copy keeps the
# lsn of its publication. That is its order key, so the message keeps its place in the queue.


_MOVES_PER_TURN: Final = 256
_MOVED_BYTES_PER_TURN: Final = 1 << 20
"""A turn moves at least one message, and no more after this many bytes. A disk that is suddenly full needs room for
these.
"""
_PRESSED_PERCENTAGE: Final = 70
"""``journal-compact-percentage`` on a full disk: compaction still frees more than it writes."""


class Compaction:
    """Chooses what to write again. The journal writes it."""

    def __init__(self, disk: Disk, settings: JournalSettings, index: Index, segments: Segments) -> None:
        self.bindings_bytes = 0
        """The bytes of everything but messages when it was last written again."""
        self._disk = disk
        self._settings = settings
        self._index = index
        self._segments = segments
        self._asked_until = 0
        """The number of the file up to which somebody asked for it; 0: nobody did."""

    def request(self) -> None:
        """Begin, whatever lives in the files, with all of them but the one that is written to."""
        self._asked_until = self._segments.all[-1].number

    @property
    def is_asked(self) -> bool:
        """Is what somebody asked for not done yet? On a full disk it is given up."""
        if self._asked_until and not (self._segments.all[0].number < self._asked_until and self._disk.has_room):
            self._asked_until = 0
        return self._asked_until > 0

    @property
    def is_wanted(self) -> bool:
        """Are there enough segments (``journal-compact-min-files``), and does too little in them live
        (``journal-compact-percentage``)? Bindings count as living; otherwise a journal with many of them would compact
        for ever. On a full disk, compaction starts sooner.
        """
        settings, segments = self._settings, self._segments
        if self.is_asked:
            return True
        presses = not self._disk.has_room
        files_min = 2 if presses else settings.compact_files_min
        if not settings.compact_files_min or len(segments.all) <= files_min:
            return False
        percentage = max(settings.compact_percentage, _PRESSED_PERCENTAGE) if presses else settings.compact_percentage
        return (self.bindings_bytes + segments.live_bytes) * 100 < segments.written_bytes * percentage

    @property
    def may_move_bindings(self) -> bool:
        """Did somebody ask for it, or is the journal at least twice as large as everything but messages? Otherwise,
        with many bindings, it would do nothing but write these again.
        """
        return self.is_asked or self._segments.written_bytes >= 2 * self.bindings_bytes

    def moved(self) -> list[Kept]:
        """The messages of the oldest segment to write again in this turn; empty if compaction is not wanted."""
        segments = self._segments.all
        oldest = segments[0]
        if not oldest.live or not self.is_wanted:  # with one segment it is not wanted
            return []
        if not self._disk.has_room and self._disk.left_bytes < 2 * oldest.live_bytes:
            return []  # the rest is for acknowledgements, which also free files
        moved: list[Kept] = []
        size_bytes = 0
        for kept in islice(oldest.live.values(), _MOVES_PER_TURN):
            moved.append(kept)
            size_bytes += kept.message.inline_bytes
            if size_bytes >= _MOVED_BYTES_PER_TURN:
                break
        return [kept for kept in moved if self._is_needed(kept)]

    def _is_needed(self, kept: Kept) -> bool:
        """Does a message still live? First forgets its deleted queues: the records of their deletion may go before the
        copy does.
        """
        queues = self._index.queues
        for queue_id in [number for number in kept.queue_ids if number not in queues]:
            self._index.settle(queue_id, kept.message.id)
        return kept.message.id in self._index.home


# ---- the audit log ---------------------------------------------------------------------------------------------------
#
# Part of a retained log: sessions, consumers, and the core's counts, recorded for readers of the log. The log's number
# of a session or consumer is the lsn of its first record, so it is unique even across restarts. Each segment that names
# an actor describes it again, so that the segment can be read alone. A restart needs none of this.


@dataclass(slots=True)
class Refusal:
    """Persistent messages that an address did not take in from one session (0: the broker's own copies) in one turn.
    Bytes are encoded sizes.
    """

    address: str
    policy: str
    origin: int
    count: int = 0
    size_bytes: int = 0


class LogActor(Actor):
    """A session, or a consumer of one."""

    def __init__(self, records: RecordWriter, fields: dict[str, Any], session: LogActor | None = None) -> None:
        self.fields = fields
        self._records = records
        self._session = session
        """The session of a consumer; None for a session."""
        self.id = 0
        """Its number in the log; 0 until a record names it."""
        self._segment = 0
        """The last segment that describes it."""

    def named(self) -> int:
        """Its number, for the next record; each segment describes the actor once."""
        if self._segment != self._records.segments[-1].number:
            self.record()
        return self.id

    def record(self) -> None:
        """Record its description."""
        records, session = self._records, self._session
        known = {} if session is None else {"session": session.named()}
        self._segment = records.segments[-1].number
        self.id = self.id or records.next_lsn
        code = SESSION if session is None else CONSUMER
        records.append_fields(code, {"id": self.id, **known, **self.fields})


@mypyc_attr(allow_interpreted_subclasses=True)
class AuditTrail(AuditLog):
    """Records the audit log among the journal's other records."""

    def __init__(self, records: RecordWriter, broker_name: str) -> None:
        self.is_enabled = True
        self._records = records
        self._broker_name = broker_name
        self._first_lsn = records.next_lsn
        self._sessions: dict[int, LogActor] = {}
        """By connection number."""
        self._leaving: list[int] = []
        """Connections that ended in this turn; records about them may still follow."""
        self._refusals: dict[tuple[str, str, int], Refusal] = {}
        """Refusals of this turn."""
        self._depths_segment = 0
        """The last segment that recorded the depths of queues at its beginning."""

    # ---- sessions and consumers ------------------------------------------------------------------

    def session_opened(self, origin: int, fields: dict[str, str]) -> None:
        self._sessions[origin] = LogActor(self._records, dict(fields))

    def session_closed(self, origin: int) -> None:
        self._leaving.append(origin)

    def consumer_opened(self, origin: int, queue_id: int, fields: dict[str, Any]) -> Actor | None:
        session = self._sessions.get(origin)
        if session is None:
            return None
        actor = LogActor(self._records, {"queue": queue_id, **fields}, session)
        actor.named()
        return actor

    def consumer_closed(self, actor: Actor, *, failed: bool) -> None:
        assert isinstance(actor, LogActor)
        actor.fields["closed"] = "lost" if failed else "left"
        actor.record()

    def session_number(self, origin: int) -> int:
        actor = self._sessions.get(origin)
        return 0 if actor is None else actor.named()

    def known_number(self, origin: int) -> int:
        actor = self._sessions.get(origin)
        return 0 if actor is None else actor.id

    # ---- messages --------------------------------------------------------------------------------

    def delivered(self, queue_id: int, messages: list[Message], consumer: Actor) -> int:
        message_ids = [message.id for message in messages]
        number = consumer.named()
        return self._records.append(DELIVERED, codec.encode_ids(queue_id, message_ids, number))

    def published_in_page(self, message: Message, queue_ids: list[int], due_ms: int, place: int) -> int:
        records = self._records
        records.sent_by(message.origin)
        kept = Kept(message, records.next_lsn, queue_ids, FLAG_PAGED)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        records.gathered.published(message.head.address, message.timestamp_ms, message.timestamp_ms)
        return records.append(MESSAGE, codec.encode_message(kept, place))

    def refused(self, address: str, policy: str, message: Message) -> None:
        if message.head.persistent:
            key = address, policy, message.origin
            refusal = self._refusals.get(key)
            if refusal is None:
                refusal = self._refusals[key] = Refusal(address, policy, message.origin)
            refusal.count += 1
            refusal.size_bytes += message.size_bytes

    # ---- the end of a turn -----------------------------------------------------------------------

    def end_turn(self) -> bool:
        if self._refusals:
            refusals, self._refusals = self._refusals, {}
            for refusal in refusals.values():
                self.record_refusal(refusal)
        for origin in self._leaving:
            self._sessions.pop(origin, None)
        self._leaving.clear()
        return self._wants_depths

    def record_refusal(self, refusal: Refusal) -> int:
        """Record the refusals of one session; returns the lsn of the record."""
        fields = {
            "address": refusal.address,
            "policy": refusal.policy,
            "session": self.session_number(refusal.origin),
            "count": refusal.count,
            "bytes": refusal.size_bytes,
        }
        return self._records.append(REFUSED, codec.encode_fields(fields))

    @property
    def _wants_depths(self) -> bool:
        """Are there records for a segment that does not have the depths of queues yet?"""
        return self._depths_segment != self._records.segments[-1].number and bool(self._records.pending)

    def depths(self, depths: list[Depth]) -> int:
        records = self._records
        self._depths_segment = records.segments[-1].number
        records.append(BROKER, codec.encode_fields({"name": self._broker_name, "start": self._first_lsn}))
        return records.append(DEPTHS, codec.encode_depths(depths))
