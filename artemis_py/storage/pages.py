"""Page files: messages that found no room in memory, written behind each other and read again in parts.

What is appended gathers until the turn's batch takes it along (``take_writes``); a part of a page is read by a thread,
once it is written. The file of a page that nobody needs goes when the log is durable up to where that was said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Final

from artemis_py.message import Account, Message
from artemis_py.paged import Page, PagedMessage
from artemis_py.records import Chunk, Found, PageLog
from artemis_py.storage import codec, page_codec
from artemis_py.storage.codec import CodecError, Kept, Record
from artemis_py.storage.committer import Committer, Write
from artemis_py.storage.disk import Disk, DiskError
from artemis_py.storage.page_codec import page_name, page_numbers
from artemis_py.storage.quarantine import put_aside
from artemis_py.storage.scan import Damage

CHUNK_BYTES: Final = 512 * 1024
"""How much of a page is read at once. Decoding it takes a few milliseconds, which is a turn's worth of work."""
_NOWHERE: Final = 0
_PLACE_MAX: Final = 1 << 62


class _Tail:
    """What of a page is not on the disk yet."""

    __slots__ = ("durable", "flying_bytes", "gathered", "gathered_bytes", "is_new", "page", "written_bytes")

    def __init__(self, page: Page) -> None:
        self.page = page
        self.gathered: list[bytes] = []
        self.gathered_bytes = 0
        self.flying_bytes = 0
        self.written_bytes = 0
        self.durable = False
        self.is_new = True


class PageFiles(PageLog):
    """Implements pages on files of a disk. ``reader`` is whoever carries out reads (its ``later``), beside the
    committer that writes. ``say`` is told of damage.
    """

    def __init__(self, disk: Disk, reader: Committer, say: Callable[[str], None]) -> None:
        self.backlog_bytes = 0
        self.damages: list[Damage] = []
        self.now_ms = 0
        self._disk = disk
        self._reader = reader
        self._say = say
        self._tails: dict[tuple[int, int], _Tail] = {}
        """The last page of each stream, and those before it that are not written to their ends."""
        self._last: dict[int, _Tail] = {}
        """The tail of each stream's last page."""
        self._gathering: dict[_Tail, None] = {}
        """Of which something is gathered. A turn deals only with these, however many streams there are."""
        self._flying: list[_Tail] = []
        """Of which something is being written."""
        self._early: list[tuple[Page, int]] = []
        """Asked for, and not written yet."""
        self._arrived: deque[Chunk] = deque()
        self._dropped: list[Page] = []
        self._doomed: deque[tuple[int, Page]] = deque()

    # ---- writing ---------------------------------------------------------------------------------

    def open(self, page: Page, address: str) -> int:
        before = self._last.get(page.stream)
        tail = self._last[page.stream] = self._tails[page.stream, page.number] = _Tail(page)
        if before is not None:
            self._close(before)
        return self._gather(tail, page_codec.encode_opening(page, address, self.now_ms))

    def encode(self, message: Message, place: int, queue_ids: list[int], due_ms: int) -> bytes:
        flags = 0 if message.head.persistent else codec.FLAG_TRANSIENT
        kept = Kept(message, place, queue_ids, flags)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        return page_codec.encode_paged(kept, place, message.origin)

    def append(self, page: Page, record: bytes, *, durable: bool) -> None:
        tail = self._tails[page.stream, page.number]
        tail.durable = tail.durable or durable
        self._gather(tail, record)

    def _gather(self, tail: _Tail, data: bytes) -> int:
        tail.gathered.append(data)
        tail.gathered_bytes += len(data)
        self._gathering[tail] = None
        self.backlog_bytes += len(data)
        return len(data)

    def take_writes(self) -> list[Write]:
        """Everything gathered, for the next batch; ``written`` tells when that is done."""
        writes: list[Write] = []
        self._flying = list(self._gathering)
        self._gathering.clear()
        for tail in self._flying:
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
        """Is a page of this name not dropped, and not written to its end?"""
        return page_numbers(name) in self._tails

    @property
    def has_unwritten(self) -> bool:
        """Is something gathered that no batch has taken along yet?"""
        return bool(self._gathering)

    def written(self) -> None:
        """The writes taken last are done."""
        flying, self._flying = self._flying, []
        for tail in flying:
            self.backlog_bytes -= tail.flying_bytes
            tail.written_bytes += tail.flying_bytes
            tail.flying_bytes = 0
            self._close(tail)
        early, self._early = self._early, []
        for page, offset in early:
            self.request(page, offset)

    def _close(self, tail: _Tail) -> None:
        """Forget the tail of a page if nothing will come to it any more, and all of it is written."""
        page = tail.page
        if self._last.get(page.stream) is not tail and not (tail.gathered or tail.flying_bytes):
            self._tails.pop((page.stream, page.number), None)

    # ---- reading ---------------------------------------------------------------------------------

    def request(self, page: Page, offset: int) -> None:
        tail = self._tails.get((page.stream, page.number))
        end = page.size_bytes if tail is None else tail.written_bytes
        if offset >= end:
            self._early.append((page, offset))
            return
        self._reader.later(lambda: self._fetch(page, offset, end))

    def _fetch(self, page: Page, offset: int, end: int) -> None:
        """Runs with the reader. A file that cannot be read is damage of all that it should have had."""
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
        """Something in a page is not as it was written: told once for each place, and the file is kept."""
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
            self._gathering.pop(tail, None)
            if self._last.get(page.stream) is tail:
                del self._last[page.stream]
        self._dropped.append(page)

    def stamp_dropped(self, lsn: int) -> None:
        """A turn ends: what was dropped in it goes when the log is durable up to ``lsn``."""
        for page in self._dropped:
            self._doomed.append((lsn, page))
        self._dropped.clear()

    def delete_doomed(self, durable_lsn: int, later: Callable[[Callable[[], None]], None]) -> None:
        """Remove the files of dropped pages; a damaged one is kept under another name."""
        while self._doomed and self._doomed[0][0] <= durable_lsn:
            page = self._doomed.popleft()[1]
            later(lambda page=page: self._delete(page))  # type: ignore[misc]

    def _delete(self, page: Page) -> None:
        name = page_name(page.stream, page.number)
        if page.damaged and name in self._disk.names():
            put_aside(self._disk, name)
        else:
            self._disk.delete(name)


class PageChunk(Chunk):
    """Whole records of a page, as bytes; ``missing`` says why there are none."""

    def __init__(self, files: PageFiles, page: Page, offset: int, data: bytes, end: int, missing: str | None) -> None:
        self.page = page
        self.offset = offset
        self.end = end
        self._files = files
        self._data = data
        self._missing = missing

    def read(self, queue_id: int, known: dict[int, PagedMessage], account: Account) -> Iterator[Found]:
        page = self.page
        if page.gone:
            return
        if self._missing is not None:
            self._files.note_damage(page, self.offset, self._missing)
        for record, end in whole_records(page, self._data, self.offset, self._files.note_damage):
            if record.type_code != codec.PAGED:
                continue
            try:
                origin, kept = page_codec.decode_paged(record.payload)
            except CodecError as error:
                self._files.note_damage(page, self.offset + record.offset, str(error))
                continue
            if queue_id not in kept.queue_ids or (page.restored and kept.flags & codec.FLAG_TRANSIENT):
                continue
            due_ms = kept.detail(queue_id).due_ms if kept.details else 0
            # no name for the message: between two calls this frame must not keep it, or the file of its body
            yield Found(
                known.get(record.lsn) or page_codec.as_paged(kept, origin, account, page, record.lsn), due_ms, end
            )


def whole_records(
    page: Page, data: bytes, offset: int, note_damage: Callable[[Page, int, str], None]
) -> Iterator[tuple[Record, int]]:
    """The whole records in a part of a page that begins at ``offset``, each with the place in the file where the next
    one begins. Damage is told, and reading goes on behind it.
    """
    if offset == _NOWHERE and data:
        try:  # what stands in the header is known; but a damaged one tells of a bad disk
            codec.decode_file_header(data)
        except CodecError as error:
            note_damage(page, 0, str(error))
    position = _begin(offset)
    while position < len(data):
        try:
            record = codec.decode_record(data, position)
            reason = "zeros where a message should be"
        except CodecError as error:
            record = None
            reason = str(error)
        if record is None:
            note_damage(page, offset + position, reason)
            position = _next_whole(page, data, position + 1)
            continue
        position = record.end
        yield record, offset + position


def _next_whole(page: Page, data: bytes, position: int) -> int:
    """Where the next whole message begins, at ``position`` or behind it; the end of the part when there is none."""
    kind_at = codec.RECORD_HEADER_BYTES - 1
    candidate = data.find(codec.PAGED, position + kind_at) - kind_at
    while candidate >= position:
        if page.first_place <= codec.peek_record(data, candidate)[1] < page.end_place:
            with suppress(CodecError):
                if codec.decode_record(data, candidate) is not None:
                    return candidate
        candidate = data.find(codec.PAGED, candidate + kind_at + 1) - kind_at
    return len(data)


def _begin(offset: int) -> int:
    """Where in a part the first record is: the first part of a file has the header before it."""
    return codec.FILE_HEADER_BYTES if offset == _NOWHERE else 0


def _whole_bytes(data: bytes, offset: int) -> int:
    """How many bytes the whole records at the beginning of a part take, by what they say of their lengths. 0 when there
    are none, or when the last one is damaged: then nobody knows where the next one begins.
    """
    position = last = _begin(offset)
    size = len(data)
    while position + codec.RECORD_HEADER_BYTES <= size:
        end = position + codec.RECORD_HEADER_BYTES + codec.peek_record(data, position)[0]
        if end > size:
            break
        last, position = position, end
    with suppress(CodecError):
        if position > last and codec.decode_record(data, last) is not None:
            return position
    return 0


def delete_leftovers(disk: Disk, pages: list[Page], *, keep: bool = False, given_up: Collection[str] = ()) -> list[str]:
    """Remove the files of pages that nobody needs (a crash brings deleted ones back, or leaves new ones unsaid). With
    ``keep`` it may be that only what told of them is lost: then they get another name, as do those that an earlier
    start had ``given_up`` and that came back. Returns a line for each of them, and for each page with more in it than
    was told.
    """
    needed = {(page.stream, page.number): page for page in pages}
    report: list[str] = []
    for name in disk.names():
        numbers = page_numbers(name)
        page = None if numbers is None else needed.get(numbers)
        if numbers is None or page is not None:
            if keep and page is not None and disk.read(name, page.kept_bytes, 1):
                page.damaged = True  # so its file is kept when nobody needs the rest
                report.append(f"{name}: the page has more data than the journal knows of; its file will be kept")
            continue
        if not keep and name not in given_up:
            disk.delete(name)
            continue
        page = Page(*numbers, 0)
        page.count = _PLACE_MAX
        data = disk.read(name)
        count = sum(record.type_code == codec.PAGED for record, _ in whole_records(page, data, 0, lambda *_: None))
        put_aside(disk, name)
        why = "was given up while it was missing" if name in given_up else "is unknown to the journal"
        report.append(f"{name}: this page with {count} messages {why}; it was put aside")
    return report
