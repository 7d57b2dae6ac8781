"""The journal while the broker runs: it makes the records of each turn durable, as one batch.

``segments.py`` decides which file a batch goes to and which files go, ``compaction.py`` what is moved out of old files.
The journal never reads its files: ``recovery/`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from mypy_extensions import mypyc_attr

from artemis_py.histogram import Histogram
from artemis_py.record_log import Durability
from artemis_py.storage.disk.disk import Disk, DiskError
from artemis_py.storage.disk.group_commit import Commit, Committer, Write, bytes_of
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.records import MESSAGE, PAGE_DROPPED
from artemis_py.storage.journal.audit import AuditTrail
from artemis_py.storage.journal.bindings_copy import BindingsCopy
from artemis_py.storage.journal.compaction import Compaction, binding_records, page_records
from artemis_py.storage.journal.index import Segment
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
        for type_code, fields in binding_records(self.index, self._settings.duplicate_ids_kept):
            records.append_fields(type_code, fields)
        for type_code, payload in page_records(self.index):
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
