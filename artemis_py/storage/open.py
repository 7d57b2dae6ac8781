"""Opens the files of a broker: journal, pages and large bodies, in the only order that loses nothing.

The journal has already been read (``examine_or_refuse``), which changed nothing. First it is mended. Unneeded files
are removed, and only then is anything written. A missing file is noted before the journal records that nobody needs it.
The simulation opens its disks in the same way, and loses power at every operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from artemis_py.record_log import RecoveredState
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.disk.group_commit import Committer
from artemis_py.storage.format.names import page_name
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.index_files import delete_orphans, delete_segment, write_index
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings, JournalStart, SegmentCare
from artemis_py.storage.pages import PageFiles, delete_leftovers
from artemis_py.storage.recovery.accept_journal import Recovered, accept
from artemis_py.storage.recovery.examination import REPAIRED_NAME
from artemis_py.storage.recovery.missing_files import (
    GivenUp,
    hold_bodies,
    missing_pages,
    note_given_up,
    read_given_up,
    take_over,
)
from artemis_py.storage.retention.retention import LogEnd, RetireCallbacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """The directories of the files. They may be the same."""

    journal: Disk
    pages: Disk
    bodies: Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The threads that work on the disks, independently of each other."""

    committer: Committer
    page_reader: Committer
    body_writer: Committer
    body_reader: Committer


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The settings of broker.xml that opening needs."""

    journal: JournalSettings
    syncs_bodies: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What makes the journal and the page files. Tests replace them."""

    journal: Callable[..., Journal] = Journal
    pages: Callable[[Disk, Committer, Callable[[str], None]], PageFiles] = PageFiles


@dataclass(slots=True)
class Findings:
    """What a person should know: lines about each directory."""

    journal: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OpenStore:
    """The open files. ``last_stream`` is the highest number of a stream whose pages may reappear (0: none)."""

    journal: Journal
    pages: PageFiles
    large: LargeStore
    findings: Findings
    last_stream: int

    def recovered_state(self) -> RecoveredState:
        """What the broker takes over. Do not keep it: it holds every message and every large body's file."""
        return replace(self.journal.index.recovered_state(), stream=self.last_stream)

    @property
    def has_pending(self) -> bool:
        """Is something not yet written that can still be written?"""
        if self.journal.failure is not None or self.large.failure is not None:
            return False
        return self.journal.has_pending or self.large.has_pending

    def seal(self) -> None:
        """Note what has become durable, and hand over what was gathered."""
        self.journal.poll()
        self.journal.seal()
        self.large.poll()
        self.large.seal(self.journal.records.last_lsn, self.journal.durable_lsn)


def open_files(
    recovered: Recovered,
    disks: Disks,
    workers: Workers,
    settings: StoreSettings,
    *,
    say: Callable[[str], None],
    retire_callbacks: RetireCallbacks | None = None,
    parts: Parts | None = None,
) -> OpenStore:
    """Open what ``examine_or_refuse`` has accepted. ``say`` gets lines about damage found later in pages. Raises
    DiskError.
    """
    retire_callbacks, parts = retire_callbacks or RetireCallbacks(), parts or Parts()
    accept(disks.journal, recovered)
    given_up = read_given_up(disks.journal)
    findings = Findings([] if given_up.fault is None else [given_up.fault])
    is_unsure = not recovered.tells_all or given_up.fault is not None
    page_index = recovered.index.pages
    findings.pages += delete_leftovers(disks.pages, page_index.pages(), keep=is_unsure, given_up=given_up.names)
    delete_orphans(disks.journal)
    start = (
        recovered.start
        if recovered.segments or retire_callbacks.log_end is None
        else _behind(recovered, retire_callbacks.log_end())
    )
    pages = parts.pages(disks.pages, workers.page_reader, say)
    care = SegmentCare(
        retire=retire_callbacks.retire_segment or partial(delete_segment, disks.journal),
        closed=partial(_write_index, disks.journal, retire_callbacks.indexed),
        regular_tasks=retire_callbacks.regular_tasks,
    )
    journal = parts.journal(disks.journal, workers.committer, settings.journal, start=start, care=care, pages=pages)
    large = LargeStore(
        disks.bodies,
        workers.body_writer,
        workers.body_reader,
        syncs=settings.syncs_bodies,
        retire=retire_callbacks.retire_body,
        start_min=max(retire_callbacks.body_start_min, given_up.start + 1),
        retired=retire_callbacks.bodies,
    )
    store = OpenStore(journal, pages, large, findings, given_up.stream)
    _take_back(store, disks, given_up, is_unsure=is_unsure)
    disks.journal.delete(REPAIRED_NAME)
    return store


def _behind(recovered: Recovered, log_end: LogEnd | None) -> JournalStart:
    """Continue after the numbers of the retained files, if the journal itself has no file."""
    if log_end is None:
        return recovered.start
    recovered.index.message_id_max = log_end.batch.message_id
    recovered.index.queue_id_max = log_end.batch.queue_id
    return replace(
        recovered.start, next_lsn=log_end.lsn + 1, batch_number=log_end.batch.number, segment_number=log_end.number + 1
    )


def _write_index(disk: Disk, indexed: Callable[[int], None] | None, segment: Segment) -> None:
    """A segment was closed: write its index next to it, and drop it from memory."""
    if segment.index is not None and write_index(disk, segment.index):
        segment.index = None
        if indexed is not None:
            indexed(segment.number)


def _take_back(store: OpenStore, disks: Disks, given_up: GivenUp, *, is_unsure: bool) -> None:
    """Take over the large bodies that messages need, and remove the others. Missing files are noted before the journal
    records that nobody needs them.
    """
    index, records, large = store.journal.index, store.journal.records, store.large
    told = hold_bodies(disks.pages, index.pages, records, large)
    missing = missing_pages(index, disks.pages.names())
    is_unsure = is_unsure or any(
        page.has_large and (page.damaged or page_name(page.stream, page.number) in missing)
        for page in index.pages.pages()
    )
    told += take_over(index, records, large, keep_unused=is_unsure, given_up=given_up.names)
    store.findings.bodies += told
    note_given_up(disks.journal, large.given_up.union(missing))
