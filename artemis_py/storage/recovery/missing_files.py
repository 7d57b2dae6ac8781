"""Finds large bodies and pages that are missing or incomplete at a start.

``missing_files`` detects directories that are not the journal's: a file system that is not mounted, a folder that was
moved. It changes nothing and creates no directory.

A directory counts as wrong if the journal needs files from it and none of them exists. A single large body may be
missing from its right directory; then a file there still names its start of the broker or a later one (``body_names``).
A page has as many messages as a journal file, so even a single missing page counts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from artemis_py.message import Account, LargeBody
from artemis_py.paged_messages import Page, PagedBody
from artemis_py.record_log import RecordLog
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.disk import Disk, DiskError, FileDisk, put_aside
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.names import body_name, page_name, page_numbers, start_in, start_of
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.journal.index import Index
from artemis_py.storage.pages import PageIndex, whole_records
from artemis_py.terminal_output import many

BODY: Final = "large body", "large bodies"
PAGE: Final = "page", "pages"
_QUEUES_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """All files that a journal needs from a directory, if none of them exists."""

    directory: Path
    kind: tuple[str, str]
    """What they are, singular and plural."""
    names: tuple[str, ...]
    messages: dict[int, int]
    """How many messages queues have in them, by queue number."""
    queues: tuple[str, ...]

    def __str__(self) -> str:
        one, several = self.kind
        what = f"the only {one}" if len(self.names) == 1 else f"all {len(self.names)} {several}"
        count = sum(self.messages.values())
        more = len(self.queues) - _QUEUES_SHOWN
        shown = ", ".join(self.queues[:_QUEUES_SHOWN]) + (f" and {more} more queues" if more > 0 else "")
        return f"{self.directory} lacks {what} that the journal needs, with {many(count, 'message')} of {shown}"


@dataclass(frozen=True, slots=True)
class DataDirectories:
    """The directories in which large bodies and pages may be. Without any, those files are not checked."""

    bodies: Sequence[Path] = ()
    pages: Sequence[Path] = ()


def missing_files(index: Index, directories: DataDirectories, given_up: Collection[str] = ()) -> list[MissingFiles]:
    """What is wrong with the directories according to the journal of ``index``, except for ``given_up`` files. Raises
    DiskError if a directory cannot be read.
    """
    found = [_absent_pages(index, directories.pages, given_up), _absent_bodies(index, directories, given_up)]
    return [one for one in found if one is not None]


def missing_pages(index: Index, there: Iterable[str]) -> dict[str, int]:
    """The pages that queues need and that are not among the files ``there``: name to number of messages."""
    there = set(there)
    return {name: sum(left.values()) for name, left in _needed_pages(index).items() if name not in there}


def _needed_pages(index: Index) -> dict[str, Counter[int]]:
    """How many messages queues have left in each page, by its name."""
    needed: dict[str, Counter[int]] = {}
    for page in index.pages.pages():
        known = [queue_id for queue_id in page.durable if queue_id in index.queues]
        left = {queue_id: count for queue_id in known if (count := index.pages.left_of(queue_id, page)) > 0}
        if left:
            needed[page_name(page.stream, page.number)] = Counter(left)
    return needed


def _absent_pages(index: Index, directories: Sequence[Path], given_up: Collection[str]) -> MissingFiles | None:
    needed = {name: left for name, left in _needed_pages(index).items() if name not in given_up}
    if not directories or not needed or not names_in(directories).isdisjoint(needed):
        return None
    return _absent(index, directories[0], PAGE, needed)


def _absent_bodies(index: Index, directories: DataDirectories, given_up: Collection[str]) -> MissingFiles | None:
    """The search ends with the first body found."""
    if not directories.bodies:
        return None
    there = names_in(directories.bodies)
    needed: dict[str, Counter[int]] = {}
    start = 0
    for number, queue_ids in _needed_bodies(index, directories.pages):
        name = body_name(number, durable=True)
        if name in there:
            return None
        if name not in given_up:
            needed.setdefault(name, Counter()).update(queue_ids)
            start = start_in(number)
    if not needed or (len(needed) == 1 and any((start_of(name) or 0) >= start for name in there)):
        return None
    return _absent(index, directories.bodies[0], BODY, needed)


def _needed_bodies(index: Index, page_directories: Iterable[Path]) -> Iterator[tuple[int, list[int]]]:
    """The numbers of the bodies of living messages, each with the queues of its message."""
    for message_id, segment in index.home.items():
        kept = segment.live[message_id]
        if isinstance(kept.message.body, LargeBody):
            queue_ids = [queue_id for queue_id in kept.queue_ids if queue_id in index.queues]
            if queue_ids:
                yield kept.message.body.number, queue_ids
    large = [page for page in index.pages.pages() if page.has_large]
    for directory in page_directories if large else ():
        there = names_in([directory])
        disk = FileDisk(directory, is_made=False)
        for page in large:
            if page_name(page.stream, page.number) not in there:
                continue
            for place, kept in _large_messages(disk, page):
                queue_ids = [number for number in kept.queue_ids if index.pages.needs(number, page, place)]
                if queue_ids:
                    assert isinstance(kept.message.body, LargeBody)
                    yield kept.message.body.number, queue_ids


def _absent(index: Index, directory: Path, kind: tuple[str, str], needed: dict[str, Counter[int]]) -> MissingFiles:
    messages: Counter[int] = Counter()
    for left in needed.values():
        messages.update(left)
    queues = sorted(str(index.queues[queue_id].get("name")) for queue_id in messages if queue_id in index.queues)
    return MissingFiles(directory, kind, tuple(sorted(needed)), dict(messages), tuple(queues))


def names_in(directories: Iterable[Path]) -> set[str]:
    """The names of the files in the directories; none for a missing directory. Raises DiskError."""
    names: set[str] = set()
    for directory in directories:
        try:
            names.update(entry.name for entry in os.scandir(directory) if entry.is_file())
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DiskError(f"{directory}: {error.strerror or error}") from None
    return names


# ---- given up --------------------------------------------------------------------------------------------------------
#
# The names of files that a start had to do without, in a small file next to the journal.
#
# Missing large bodies and pages can reappear: a file system is mounted again, or a copy is restored. By then the
# journal no longer needs them, so they would look like leftovers of a crash. If a later start finds one of these names
# among unneeded files, it puts the file aside instead of removing it.


GIVEN_UP_NAME: Final = "journal-given-up"
_UNFINISHED: Final = GIVEN_UP_NAME + ".part"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The content of the file. ``fault`` says what is wrong with it: then names may be missing."""

    names: frozenset[str] = frozenset()
    fault: str | None = None

    @property
    def start(self) -> int:
        """The last start whose large bodies may reappear: its numbers are not reused. 0: none."""
        return max((start_of(name) or 0 for name in self.names), default=0)

    @property
    def stream(self) -> int:
        """The last stream whose pages may reappear: its number is not reused. 0: none."""
        return max((numbers[0] for name in self.names if (numbers := page_numbers(name)) is not None), default=0)


def read_given_up(disk: Disk) -> GivenUp:
    """Read the file in a journal directory. Raises DiskError."""
    if GIVEN_UP_NAME not in disk.names():
        return GivenUp()
    try:
        record = records.decode_record(disk.read(GIVEN_UP_NAME), 0)
        if record is None:
            raise CodecError("it is empty")
        return GivenUp(frozenset(codec.decode_fields(record.payload)["files"]))
    except (CodecError, KeyError, TypeError, ValueError) as error:
        return GivenUp(fault=f"{GIVEN_UP_NAME} is DAMAGED: {error}")


def note_given_up(disk: Disk, names: Collection[str]) -> None:
    """Add names, durably, before the journal records that they are not needed. Raises DiskError."""
    told = read_given_up(disk)
    if told.names.issuperset(names):
        return
    if told.fault is not None:
        put_aside(disk, GIVEN_UP_NAME)
    record = records.encode_record(records.GIVEN_UP, 0, codec.encode_fields({"files": sorted(told.names.union(names))}))
    disk.begin(_UNFINISHED)
    disk.write(_UNFINISHED, 0, record)
    disk.sync(_UNFINISHED)
    disk.finish(_UNFINISHED)
    disk.rename(_UNFINISHED, GIVEN_UP_NAME)


# ---- large bodies ----------------------------------------------------------------------------------------------------
#
# Recovers large bodies: which files messages of the journal and of pages need, which are incomplete, which can be
# removed. A message with an incomplete body cannot be delivered. It is reported and settled on its queues, and the rest
# of its body is kept under another name. A crash never damages a synced body file.


def take_over(
    index: Index,
    log: RecordLog,
    large: LargeStore,
    *,
    keep_unused: bool = False,
    given_up: Collection[str] = (),
) -> list[str]:
    """Match the store with the living messages; pages already hold theirs (``hold_bodies``). Returns a line for each
    message given up, and for each unused body put aside instead of removed: with ``keep_unused``, or if an earlier
    start had ``given_up`` a file of that name. Raises DiskError.
    """
    broken: list[tuple[Kept, LargeBody, str]] = []
    for message_id, segment in index.home.items():
        kept = segment.live[message_id]
        body = kept.message.body
        if isinstance(body, LargeBody):
            fault = large.fault_of(body)
            if fault is None:
                large.adopt(body)
            else:
                broken.append((kept, body, fault))
    report = []
    for kept, body, fault in broken:
        message = kept.message
        report.append(
            f"the body of message {message.id} to {message.head.address} (file {body.number:016x}) {fault}: the "
            "message is DAMAGED and was removed from its queues"
        )
        for queue_id in list(kept.queue_ids):
            log.settled(queue_id, [message], "damaged")
        large.give_up(body.number)
    return report + large.remove_unused(keep=keep_unused, given_up=given_up)


def hold_bodies(disk: Disk, pages: PageIndex, log: RecordLog, large: LargeStore) -> list[str]:
    """Read the pages with large bodies, and hold the bodies that a queue still needs. A message with an incomplete body
    is settled on its queues; returns a line for each. Raises DiskError, also if an existing page cannot be read: its
    bodies must not count as unneeded.
    """
    report: list[str] = []
    names = set(disk.names())
    for page in pages.pages():
        if page.has_large and page_name(page.stream, page.number) in names:
            for place, kept in _large_messages(disk, page):
                queue_ids = [number for number in kept.queue_ids if pages.needs(number, page, place)]
                if queue_ids:
                    report += _hold(page, place, kept, queue_ids, log, large)
    return report


def _large_messages(disk: Disk, page: Page) -> list[tuple[int, Kept]]:
    """Persistent messages of a page with a large body, by place. A damaged page is marked but not reported; its readers
    do that. Messages after the damage are included.
    """
    data = disk.read(page_name(page.stream, page.number), 0, page.kept_bytes)
    if len(data) < page.kept_bytes:
        page.damaged = True
    found: list[tuple[int, Kept]] = []
    for record in whole_records(page, data, 0, _note_damage):
        if record.type_code == records.PAGED:
            with suppress(CodecError):
                kept = codec.decode_paged(record.payload)[1]
                if kept.flags & records.FLAG_LARGE and not kept.flags & records.FLAG_TRANSIENT:
                    found.append((record.lsn, kept))
    return found


def _note_damage(page: Page, _offset: int, _reason: str) -> None:
    page.damaged = True


def _hold(page: Page, place: int, kept: Kept, queue_ids: list[int], log: RecordLog, large: LargeStore) -> list[str]:
    body = kept.message.body
    assert isinstance(body, LargeBody)
    fault = large.fault_of(body)
    if fault is None:
        large.adopt(body)
        page.large[place] = PagedBody(body, queue_ids)
        return []
    message = codec.as_paged(kept, 0, Account(), page, place)
    for queue_id in queue_ids:
        log.page_settled(queue_id, [message], "damaged")
    large.give_up(body.number)
    whose = f"the body of message {message.id} to {message.head.address} (file {body.number:016x})"
    return [f"{whose} {fault}: the message is DAMAGED and was removed from its queues"]
