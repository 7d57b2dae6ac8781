"""Page files: messages without room in memory, appended to files and read back in parts; and the state that the
journal's records about pages add up to.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from mypy_extensions import mypyc_attr

from artemis_py.errors import ArtemisError
from artemis_py.message import Account, Message
from artemis_py.paged_messages import Page, PagedMessage, PageShare, PlaceSet, SettledPlaces
from artemis_py.record_log import Chunk, KeptStream, MemoryLog, PagedEntry, PageLog
from artemis_py.storage.disk.disk import Disk, DiskError, put_aside
from artemis_py.storage.disk.group_commit import Commit, Committer, Write
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.names import page_name, page_numbers
from artemis_py.storage.format.records import CodecError, Record
from artemis_py.storage.format.scan import Damage
from artemis_py.terminal_output import many, warn


# ---- index -----------------------------------------------------------------------------------------------------------
#
# Which pages exist, and what durable queues need of them. As with the rest of the index, a running journal and recovery
# use the same code. A running journal passes the page objects that the broker itself uses, so their content need not
# be repeated.
class PageIndex:
    """Pages by stream and number."""

    def __init__(self) -> None:
        self.streams: dict[int, KeptStream] = {}
        self.orphans: list[tuple[int, int]] = []
        """Empty pages found by a recovery: the journal must record that before their numbers are reused."""
        self._pages: dict[tuple[int, int], Page] = {}
        self._streams_of: dict[int, set[int]] = {}
        """The streams in which a durable queue had messages, so that its end does not affect others."""

    def __bool__(self) -> bool:
        return bool(self._pages)

    def pages(self) -> list[Page]:
        """All pages that are still needed."""
        return list(self._pages.values())

    def find(self, stream: int, number: int) -> Page | None:
        """A page by stream and number; None if it is no longer needed."""
        return self._pages.get((stream, number))

    def address_of(self, page: Page) -> str:
        """The address of a page."""
        return self.streams[page.stream].address

    def open(self, page: Page, address: str) -> None:
        """A stream got a new page; a repetition (when a journal file is removed) changes nothing."""
        if (page.stream, page.number) in self._pages:
            return
        self._pages[page.stream, page.number] = page
        stream = self.streams.get(page.stream)
        if stream is None:
            stream = self.streams[page.stream] = KeptStream(page.stream, address)
        stream.pages.append(page)

    def grow(self, told: Page) -> None:
        """Update a known page from one that was read from a record."""
        page = self.find(told.stream, told.number)
        if page is not None:
            page.count, page.size_bytes = told.kept_count, told.kept_bytes
            page.kept_count, page.kept_bytes = told.kept_count, told.kept_bytes
            page.expires_ms, page.has_large, page.durable = told.expires_ms, told.has_large, told.durable
            self.note_queues(page)

    def note_queues(self, page: Page) -> None:
        """A page grew: its durable queues have messages in its stream."""
        for queue_id in page.durable:
            self._streams_of.setdefault(queue_id, set()).add(page.stream)

    def settle(self, queue_id: int, page: Page, places: Sequence[int], size_bytes: int) -> None:
        """A queue is done with places of a page that hold this many bytes."""
        stream = self.streams[page.stream]
        settled = self._settled(stream, queue_id, page)
        count = settled.count
        for place in places:
            if settled.places.add(place):
                settled.count += 1
            if stream.attempts:
                stream.attempts.pop((queue_id, place), None)
        if settled.count > count:  # a step that failed may be repeated
            settled.size_bytes += size_bytes

    def _settled(self, stream: KeptStream, queue_id: int, page: Page) -> SettledPlaces:
        settled = stream.settled.get((queue_id, page.number))
        if settled is None:
            settled = stream.settled[queue_id, page.number] = SettledPlaces(PlaceSet(page.first_place))
            self._streams_of.setdefault(queue_id, set()).add(page.stream)
        return settled

    def restore_settled(self, queue_id: int, page: Page, settled: SettledPlaces) -> None:
        """Restore what a queue is done with in a page, as recorded when a journal file was removed."""
        self.streams[page.stream].settled[queue_id, page.number] = settled
        self._streams_of.setdefault(queue_id, set()).add(page.stream)

    def purge(self, queue_id: int, page: Page, kept: Sequence[int], size_bytes: int) -> None:
        """A queue is done with a page except for some places, which hold this many bytes. With this and ``settle``, no
        attempts are left when a page is dropped.
        """
        stream = self.streams[page.stream]
        settled = self._settled(stream, queue_id, page)
        settled.places.fill(page.end_place, kept)
        settled.count = settled.size_bytes = 0
        page.durable[queue_id] = PageShare(len(kept), size_bytes)
        if stream.attempts:
            for place in range(page.first_place, page.end_place):
                if place not in kept:
                    stream.attempts.pop((queue_id, place), None)

    def attempt(self, queue_id: int, page: Page, place: int, attempts: int, due_ms: int) -> None:
        """A delivery failed."""
        self.streams[page.stream].attempts[queue_id, place] = attempts, due_ms
        self._streams_of.setdefault(queue_id, set()).add(page.stream)

    def drop(self, stream_number: int, number: int) -> None:
        """Every queue is done with a page."""
        page = self._pages.pop((stream_number, number), None)
        if page is None:
            return
        stream = self.streams[stream_number]
        stream.pages.remove(page)
        for queue_id in page.durable:
            stream.settled.pop((queue_id, number), None)
        if not stream.pages:
            del self.streams[stream_number]

    def drop_orphans(self) -> None:
        """Drop pages in which nothing is left."""
        for page in self.pages():
            if not self.left(page):
                self.drop(page.stream, page.number)
                self.orphans.append((page.stream, page.number))

    def delete_queue(self, queue_id: int) -> None:
        """A queue was deleted: it needs nothing any more."""
        for number in self._streams_of.pop(queue_id, ()):
            stream = self.streams.get(number)
            if stream is None:
                continue
            for page in stream.pages:
                page.durable.pop(queue_id, None)
                stream.settled.pop((queue_id, page.number), None)
            for key in [key for key in stream.attempts if key[0] == queue_id]:
                del stream.attempts[key]

    def needs(self, queue_id: int, page: Page, place: int) -> bool:
        """Does a durable queue still need the message at a place?"""
        settled = self.streams[page.stream].settled.get((queue_id, page.number))
        return queue_id in page.durable and (settled is None or place not in settled.places)

    def share_left(self, queue_id: int, page: Page) -> PageShare:
        """The durable messages of a page that a queue still needs."""
        return self.streams[page.stream].share_left(queue_id, page)

    def left_of(self, queue_id: int, page: Page) -> int:
        """How many durable messages of a page a queue still needs."""
        return self.share_left(queue_id, page).count

    def left(self, page: Page) -> int:
        """How many durable messages of a page are unsettled, over all queues."""
        return sum(self.left_of(queue_id, page) for queue_id in page.durable)

    def recovered_state(self) -> list[KeptStream]:
        """What the broker recovers at a start, in order. The pages then belong to it."""
        for stream in self.streams.values():
            stream.pages.sort(key=_number)  # repeated when a journal file was removed, they come in another order
        return list(self.streams.values())


def _number(page: Page) -> int:
    return page.number


def places_of(messages: Sequence[PagedMessage]) -> list[int]:
    """The places of messages."""
    return [message.place for message in messages]


# ---- files -----------------------------------------------------------------------------------------------------------
#
# Page files: messages without room in memory, appended to files and read back in parts. Appended messages gather
# until the turn's batch takes them (``take_writes``). The batch writes and syncs them before its records, one of
# which (PAGE_GREW) says how much of each page counts; a restart ignores the rest. So a transaction over pages and
# memory is as atomic as any other, and a restart reads no page before a consumer wants it. A thread reads a part of a
# page once it is written. The file of an unneeded page is removed when the log is durable up to the record about it.


CHUNK_BYTES: Final = 512 * 1024
"""How many bytes of a page are read at once. Decoding them takes a few milliseconds, which is a turn's worth of
work.
"""
_NOWHERE: Final = 0
_PLACE_MAX: Final = 1 << 62


class _Tail:
    """The part of a page that is not yet on disk."""

    __slots__ = ("durable", "flying_bytes", "gathered", "gathered_bytes", "is_new", "page", "written_bytes")

    def __init__(self, page: Page) -> None:
        self.page = page
        self.gathered: list[bytes] = []
        self.gathered_bytes = 0
        self.flying_bytes = 0
        self.written_bytes = 0
        self.durable = False
        self.is_new = True


@mypyc_attr(allow_interpreted_subclasses=True)
class PageFiles(PageLog):
    """Implements pages on files of a disk. ``reader`` runs the reads (with ``later``), besides the committer that
    writes. ``say`` gets reports of damage.
    """

    def __init__(self, disk: Disk, reader: Committer, say: Callable[[str], None]) -> None:
        self.backlog_bytes = 0
        self.damages: list[Damage] = []
        self.now_ms = 0
        self._disk = disk
        self._reader = reader
        self._say = say
        self._tails: dict[tuple[int, int], _Tail] = {}
        """The last page of each stream, and earlier ones that are not completely written."""
        self._last: dict[int, _Tail] = {}
        """The tail of each stream's last page."""
        self.gathering: dict[_Tail, None] = {}
        """Tails with gathered messages. A turn handles only these, however many streams there are."""
        self.flying: list[_Tail] = []
        """Tails that are being written."""
        self.early: list[tuple[Page, int]] = []
        """Parts that were requested but are not yet written."""
        self._arrived: deque[Chunk] = deque()
        self.dropped: list[Page] = []
        """Pages dropped since the last batch."""
        self.doomed: deque[tuple[int, Page]] = deque()

    # ---- writing ---------------------------------------------------------------------------------

    def open(self, page: Page, address: str) -> int:
        before = self._last.get(page.stream)
        tail = self._last[page.stream] = self._tails[page.stream, page.number] = _Tail(page)
        if before is not None:
            self._close(before)
        return self._gather(tail, codec.encode_page_opening(page, address, self.now_ms))

    def encode(self, message: Message, place: int, queue_ids: list[int], due_ms: int) -> bytes:
        flags = 0 if message.head.persistent else records.FLAG_TRANSIENT
        kept = Kept(message, place, queue_ids, flags)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        return codec.encode_paged(kept, place, message.origin)

    def append(self, page: Page, record: bytes, *, durable: bool) -> None:
        tail = self._tails[page.stream, page.number]
        tail.durable = tail.durable or durable
        self._gather(tail, record)

    def _gather(self, tail: _Tail, data: bytes) -> int:
        tail.gathered.append(data)
        tail.gathered_bytes += len(data)
        self.gathering[tail] = None
        self.backlog_bytes += len(data)
        return len(data)

    def take_writes(self) -> list[Write]:
        """Everything gathered, for the next batch; call ``written`` when that is done."""
        writes: list[Write] = []
        self.flying = list(self.gathering)
        self.gathering.clear()
        for tail in self.flying:
            data = b"".join(tail.gathered)
            name = page_name(tail.page.stream, tail.page.number)
            create_bytes = 0 if tail.is_new else -1
            writes.append(Write(self._disk, name, tail.written_bytes, data, tail.durable, create_bytes))
            tail.flying_bytes = tail.gathered_bytes
            tail.gathered = []
            tail.gathered_bytes = 0
            tail.durable = tail.is_new = False
        return writes

    def is_coming(self, name: str) -> bool:
        """Is a page of this name neither dropped nor completely written?"""
        return page_numbers(name) in self._tails

    @property
    def has_unwritten(self) -> bool:
        """Is something gathered that no batch has taken yet?"""
        return bool(self.gathering)

    def written(self) -> None:
        """The last taken writes are done."""
        flying, self.flying = self.flying, []
        for tail in flying:
            self.backlog_bytes -= tail.flying_bytes
            tail.written_bytes += tail.flying_bytes
            tail.flying_bytes = 0
            self._close(tail)
        early, self.early = self.early, []
        for page, offset in early:
            self.request(page, offset)

    def _close(self, tail: _Tail) -> None:
        """Forget the tail of a page if it is finished and completely written."""
        page = tail.page
        if self._last.get(page.stream) is not tail and not (tail.gathered or tail.flying_bytes):
            self._tails.pop((page.stream, page.number), None)

    # ---- reading ---------------------------------------------------------------------------------

    def request(self, page: Page, offset: int) -> None:
        tail = self._tails.get((page.stream, page.number))
        end = page.size_bytes if tail is None else tail.written_bytes
        if offset >= end:
            self.early.append((page, offset))
            return
        self._reader.later(lambda: self._fetch(page, offset, end))

    def _fetch(self, page: Page, offset: int, end: int) -> None:
        """Runs in the reader. An unreadable file counts as damage of all its messages."""
        name = page_name(page.stream, page.number)
        data = b""
        try:
            data = self._disk.read(name, offset, min(CHUNK_BYTES, end - offset))
            if offset + len(data) < end:
                data = data[: _whole_bytes(data, offset)] or self._disk.read(name, offset, end - offset)
        except DiskError as error:
            self._arrived.append(PageChunk(self, page, offset, b"", end, str(error)))
            return
        missing = None if data else "the file is shorter than before"
        self._arrived.append(PageChunk(self, page, offset, data, offset + len(data) if data else end, missing))

    def arrivals(self) -> list[Chunk]:
        if not self._arrived:
            return []
        chunks: list[Chunk] = []
        while self._arrived:
            chunks.append(self._arrived.popleft())
        return chunks

    def note_damage(self, page: Page, offset: int, reason: str) -> None:
        """A page is damaged: reported once per place, and the file is kept."""
        damage = Damage(page_name(page.stream, page.number), offset, reason, torn=False)
        page.damaged = True
        if damage not in self.damages:
            self.damages.append(damage)
            self._say(f"warning: {damage}")

    # ---- files that go ---------------------------------------------------------------------------

    def drop(self, page: Page) -> None:
        tail = self._tails.pop((page.stream, page.number), None)
        if tail is not None:
            self.backlog_bytes -= tail.gathered_bytes + tail.flying_bytes
            tail.flying_bytes = 0
            self.gathering.pop(tail, None)
            if self._last.get(page.stream) is tail:
                del self._last[page.stream]
        self.dropped.append(page)

    def stamp_dropped(self, lsn: int) -> None:
        """A turn ends: pages dropped in it are removed when the log is durable up to ``lsn``."""
        for page in self.dropped:
            self.doomed.append((lsn, page))
        self.dropped.clear()

    def delete_doomed(self, durable_lsn: int, later: Callable[[Callable[[], None]], None]) -> None:
        """Remove the files of dropped pages; a damaged one is kept under another name."""
        while self.doomed and self.doomed[0][0] <= durable_lsn:
            page = self.doomed.popleft()[1]
            later(lambda page=page: self._delete(page))  # type: ignore[misc]

    def _delete(self, page: Page) -> None:
        name = page_name(page.stream, page.number)
        if page.damaged and name in self._disk.names():
            put_aside(self._disk, name)
        else:
            self._disk.delete(name)


class PageChunk(Chunk):
    """Complete records of a page, as bytes; ``missing`` says why there are none."""

    def __init__(self, files: PageFiles, page: Page, offset: int, data: bytes, end: int, missing: str | None) -> None:
        self.page = page
        self.offset = offset
        self.end = end
        self._files = files
        self._data = data
        self._missing = missing

    def read(self, queue_id: int, known: dict[int, PagedMessage], account: Account) -> Iterator[PagedEntry]:
        page = self.page
        if page.gone:
            return
        if self._missing is not None:
            self._files.note_damage(page, self.offset, self._missing)
        for record in whole_records(page, self._data, self.offset, self._files.note_damage):
            if record.type_code != records.PAGED:
                continue
            try:
                origin, kept = codec.decode_paged(record.payload)
            except CodecError as error:
                self._files.note_damage(page, self.offset + record.offset, str(error))
                continue
            if queue_id not in kept.queue_ids or (page.restored and kept.flags & records.FLAG_TRANSIENT):
                continue
            due_ms = kept.detail(queue_id).due_ms if kept.details else 0
            # no name for the message: between two calls this frame must not keep it, or the file of its body
            yield PagedEntry(
                known.get(record.lsn) or codec.as_paged(kept, origin, account, page, record.lsn),
                due_ms,
                self.offset + record.end,
            )


def whole_records(
    page: Page, data: bytes, offset: int, note_damage: Callable[[Page, int, str], None]
) -> Iterator[Record]:
    """The valid records in a part of a page that begins at ``offset``. Damage is reported, and reading continues after
    it.
    """
    if offset == _NOWHERE and data:
        try:  # its content is known anyway, but damage here is a sign of a bad disk
            records.decode_file_header(data)
        except CodecError as error:
            note_damage(page, 0, str(error))

    def behind(position: int, reason: str) -> int:
        note_damage(page, offset + position, reason or "zeros where a message should be")
        return _next_whole(page, data, position + 1)

    return records.read_records(data, _begin(offset), behind)


def _next_whole(page: Page, data: bytes, position: int) -> int:
    """Where the next valid message begins, from ``position`` on; the end of the part if there is none."""
    candidate = data.find(records.PAGED, position + records.TYPE_AT) - records.TYPE_AT
    while candidate >= position:
        place = records.read_header(data, candidate)[2]
        if page.first_place <= place < page.end_place and records.is_whole(data, candidate):
            return candidate
        candidate = data.find(records.PAGED, candidate + records.TYPE_AT + 1) - records.TYPE_AT
    return len(data)


def _begin(offset: int) -> int:
    """Where the first record of a part is: the first part of a file starts with the header."""
    return records.FILE_HEADER_BYTES if offset == _NOWHERE else 0


def _whole_bytes(data: bytes, offset: int) -> int:
    """How many bytes the complete records at the beginning of a part take, according to their lengths. 0 if there are
    none, or if the last one is damaged: then the position of the next one is unknown.
    """
    position = last = _begin(offset)
    size = len(data)
    while position + records.RECORD_HEADER_BYTES <= size:
        end = records.end_said(data, position)
        if end > size:
            break
        last, position = position, end
    return position if position > last and records.is_whole(data, last) else 0


def delete_leftovers(disk: Disk, pages: list[Page], *, keep: bool = False, given_up: Collection[str] = ()) -> list[str]:
    """Remove the files of unneeded pages (after a crash, deleted files may reappear and new ones may be unrecorded).
    With ``keep``, their records may be lost: then they are renamed, as are reappeared files that an earlier start had
    ``given_up``. Returns a line for each of these, and for each page with more data than recorded.
    """
    needed = {(page.stream, page.number): page for page in pages}
    report: list[str] = []
    for name in disk.names():
        numbers = page_numbers(name)
        page = None if numbers is None else needed.get(numbers)
        if numbers is None or page is not None:
            if keep and page is not None and disk.read(name, page.kept_bytes, 1):
                page.damaged = True  # so its file is kept when the rest is no longer needed
                report.append(f"{name}: the page has more data than the journal knows of; its file will be kept")
            continue
        if not keep and name not in given_up:
            disk.delete(name)
            continue
        page = Page(*numbers, 0)
        page.count = _PLACE_MAX
        data = disk.read(name)
        count = sum(
            record.type_code == records.PAGED
            for record in whole_records(page, data, 0, lambda _page, _offset, _reason: None)
        )
        put_aside(disk, name)
        why = "was given up while it was missing" if name in given_up else "is unknown to the journal"
        report.append(f"{name}: this page with {many(count, 'message')} {why}; it was put aside")
    return report


# ---- spill -----------------------------------------------------------------------------------------------------------
#
# A log for a broker without persistence that still has pages: it stores nothing but their files.


_PAUSE_S: Final = 0.1


@mypyc_attr(allow_interpreted_subclasses=True)
class SpillLog(MemoryLog):
    """Writes pages in the background. Only senders that are too fast for the disk wait for it. A disk without room
    counts as slow: accepted messages wait in memory until pages were consumed. ``say`` gets a line.
    """

    def __init__(self, committer: Committer, pages: PageFiles, say: Callable[[str], object] = warn) -> None:
        super().__init__()
        self._say = say
        self._waiting: Commit | None = None
        """A batch that did not fit."""
        self._committer = committer
        self._pages = pages

    @property
    def failure(self) -> ArtemisError | None:
        return self._committer.failure

    def poll(self) -> None:
        done = self._committer.finished()
        if done is None:
            return
        if done.failure is None:
            self._pages.written()
            return
        self._say(f"warning: {done.failure}: senders wait, and pages are written when there is room again")
        self._waiting = done
        self._committer.later(_pause)  # and it wakes the broker afterwards

    def seal(self) -> None:
        pages = self._pages
        pages.now_ms = self.now_ms
        pages.stamp_dropped(0)
        pages.delete_doomed(0, self._committer.later)
        if self._committer.busy or self._committer.failure is not None:
            return
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.writes = [write for write in waiting.writes if pages.is_coming(write.name)]
            self._committer.submit(waiting)
            return
        writes = pages.take_writes()
        if writes:
            self._committer.submit(Commit(writes, 0, may_wait=True))


def _pause() -> None:
    time.sleep(_PAUSE_S)
