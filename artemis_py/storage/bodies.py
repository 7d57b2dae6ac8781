"""Large bodies: each in a file of its own, from its first byte to its removal."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, final
from zlib import crc32

from artemis_py.message import BodyFiles, LargeBody
from artemis_py.storage.disk.disk import Disk, DiskError, NoSpaceError, put_aside
from artemis_py.storage.disk.group_commit import Commit, Committer, Write
from artemis_py.storage.format.names import body_name, first_number, is_start, read_name, start_name, start_of
from artemis_py.uploads import BodyStore, IncomingBody

# ---- upload ----------------------------------------------------------------------------------------------------------
#
# Writes incoming large bodies to their files: one thread writes all data of a turn together. As with the journal, one
# batch is written at a time while the next one gathers. A body is complete when all of it is written and, if it must
# survive a crash, synced together with its file's name.


UNWRITTEN_BYTES_MAX: Final = 4 << 20
"""How many bytes of all bodies may wait for the disk; beyond that, their senders are not read."""
SYNC_EVERY_BYTES: Final = 16 << 20
"""How many bytes of one body may wait for a sync: one long sync at its end would delay all others."""


class LargeFile:
    """The file of a body in use. A complete ``durable`` one outlives the broker."""

    __slots__ = ("durable", "holders", "is_whole", "name", "number", "size_bytes")

    def __init__(self, number: int, size_bytes: int, *, durable: bool) -> None:
        self.number = number
        self.name = body_name(number, durable=durable)
        self.size_bytes = size_bytes
        self.durable = durable
        self.is_whole = True
        self.holders = 0


class Upload(IncomingBody):
    """One incoming body. ``append`` its data, then ``end``. ``body`` may be used once ``may_go_on``, unless there is a
    ``failure``: then the disk had no room, and the rest of the body is dropped.
    """

    __slots__ = ("_chunks", "_file", "_body_writer", "_unsynced_bytes", "_written_bytes", "has_all", "is_written")

    def __init__(self, body_writer: BodyWriter, file: LargeFile, body: LargeBody) -> None:
        self.body = body
        self.has_all = False
        self.is_written = False
        self.failure = None
        self._body_writer = body_writer
        self._file = file
        file.is_whole = False
        self._chunks: list[bytes] = []
        self._written_bytes = 0
        self._unsynced_bytes = 0

    @property
    def may_go_on(self) -> bool:
        """Is the body completely written (and synced, if durable), or refused?"""
        return self.is_written

    def refuse(self, reason: str) -> None:
        """Refuse the body: there is no room for it."""
        self.failure = reason
        self._file.is_whole = False
        self._chunks.clear()
        self.is_written = self.has_all

    def append(self, data: bytes) -> None:
        """Add data of the body."""
        if self.failure is not None:
            return
        self._chunks.append(data)
        self.body.size_bytes += len(data)
        self.body.checksum = crc32(data, self.body.checksum)
        self._file.size_bytes += len(data)
        self._body_writer.note_appended(self, len(data))

    def end(self) -> None:
        """The body is complete."""
        self.has_all = True
        if self.failure is not None:
            self.is_written = True
            return
        self._file.is_whole = True
        self._body_writer.note_appended(self, 0)

    def next_write(self, disk: Disk, *, syncs: bool) -> Write:
        """The write of the data since the last one."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        offset = self._written_bytes
        self._written_bytes += len(data)
        self._unsynced_bytes += len(data)
        sync = syncs and self._file.durable and (self.has_all or self._unsynced_bytes >= SYNC_EVERY_BYTES)
        if sync:
            self._unsynced_bytes = 0
        return Write(disk, self._file.name, offset, data, sync, begins=not offset, ends=self.has_all, may_fail=True)


class BodyWriter:
    """Writes incoming bodies through ``writer``, and tracks what is written. ``syncs``: is anything synced?"""

    def __init__(self, disk: Disk, writer: Committer, *, syncs: bool) -> None:
        self.unwritten_bytes = 0
        self.is_full = False
        """Is the disk full (``max-disk-usage``), so that bodies must not grow?"""
        self.refused = 0
        """Bodies refused since the start because there was no room."""
        self._disk = disk
        self._writer = writer
        self._syncs = syncs
        self.gathered: dict[Upload, int] = {}
        """Bodies with new data since the last batch, and how many bytes."""
        self._before: list[Write] = []
        self._under_way: list[tuple[Upload, int, Write]] = []
        """The batch being written: uploads, bytes and writes."""

    @property
    def may_go_on(self) -> bool:
        """Does the disk keep up and have room, so that senders may be read?"""
        return self.unwritten_bytes < UNWRITTEN_BYTES_MAX and not self.is_full

    def note_appended(self, upload: Upload, size_bytes: int) -> None:
        """Data of a body arrived (``size_bytes`` of it), or the body ended."""
        self.unwritten_bytes += size_bytes
        self.gathered[upload] = self.gathered.get(upload, 0) + size_bytes

    def poll(self) -> str | None:
        """Handle completed writes. If a write needed ``before`` failed, returns why: then all bodies of its batch are
        refused.
        """
        if self._writer.finished() is None:
            return None
        missing = next((write.failure for write in self._before if write.failure is not None), None)
        for upload, size_bytes, write in self._under_way:
            self.unwritten_bytes -= size_bytes
            failure = write.failure or missing
            if failure is not None:
                self._give_up(upload, failure)
            elif upload.failure is None:
                upload.is_written = write.ends
        self._under_way = []
        return missing

    @property
    def has_pending(self) -> bool:
        """Is something not yet written?"""
        return bool(self.gathered or self._under_way)

    @property
    def may_write(self) -> bool:
        """Is there something to write, and is the writer free?"""
        return bool(self.gathered) and not self._writer.busy and self._writer.failure is None

    def write(self, before: list[Write]) -> None:
        """Submit new data, after the writes ``before``; only if ``may_write``."""
        gathered, self.gathered = self.gathered, {}
        self._before = before
        self._under_way = [
            (upload, size_bytes, upload.next_write(self._disk, syncs=self._syncs))
            for upload, size_bytes in gathered.items()
        ]
        self._writer.submit(Commit([*before, *(write for _, _, write in self._under_way)], 0))

    def _give_up(self, upload: Upload, reason: str) -> None:
        """Refuse a body because the disk had no room."""
        self.refused += 1
        self.unwritten_bytes -= self.gathered.pop(upload, 0)
        upload.refuse(reason)


# ---- lookup ----------------------------------------------------------------------------------------------------------
#
# Large bodies as readers of the log need them: also those that no message of a queue needs any more.


class RetiredBodies(BodyFiles):
    """Bodies that no queue needs any more, kept for readers of the log."""

    @abstractmethod
    def hold_if_known(self, number: int) -> bool:
        """Add a holder of a body that is here; False if it is not."""

    @abstractmethod
    def is_whole(self, number: int, size_bytes: int) -> bool:
        """Is a body here, with at least so many bytes?"""

    @abstractmethod
    def read(self, number: int, offset: int, size_bytes: int) -> bytes:
        """A part of a body. For any thread. Raises DiskError."""


class BodyLookup:
    """Finds a body in use (one of ``in_use``, which ``current`` keeps on ``disk``), one on its way to the ``former``
    ones, and one of those.
    """

    def __init__(
        self, disk: Disk, in_use: Mapping[int, LargeFile], current: BodyFiles, retired: RetiredBodies | None
    ) -> None:
        self._disk = disk
        self._in_use = in_use
        self._current = current
        self._retired = retired
        self._retiring: set[int] = set()
        """Bodies that were released and are not among the former ones yet."""

    def held(self, body: LargeBody) -> LargeBody | None:
        """A body that the log names, to be read: its file exists as long as the result does. None if it was removed."""
        number, retired = body.number, self._retired
        if number in self._in_use:
            return LargeBody(number, body.size_bytes, self._current, body.checksum)
        if retired is None:
            return None
        if number in self._retiring:
            return LargeBody(number, body.size_bytes, retired, body.checksum)
        if not retired.hold_if_known(number):
            return None
        held = LargeBody(number, body.size_bytes, None, body.checksum)
        held.files = retired
        return held

    @property
    def keeper(self) -> BodyFiles:
        """Who keeps bodies that are not in use."""
        return self._current if self._retired is None else self._retired

    def is_whole(self, body: LargeBody) -> bool:
        """Is a body among the former ones, with all of its bytes? Raises DiskError."""
        return self._retired is not None and self._retired.is_whole(body.number, body.size_bytes)

    def begin_to_retire(self, files: Iterable[LargeFile]) -> None:
        """These were released. Those that only the log needs will be among the former ones."""
        if self._retired is not None:
            self._retiring.update(file.number for file in files if file.durable and file.is_whole)

    def note_retired(self, number: int) -> None:
        """A body is among the former ones. In the thread that moves it."""
        self._retiring.discard(number)

    def descriptor(self, body: LargeBody) -> int | None:
        """A descriptor of a body in use, for whoever reads it by himself, and closes it; None for a former one. Raises
        DiskError.
        """
        file = self._in_use.get(body.number)
        return None if file is None else self._disk.descriptor(file.name)

    def read_retired(self, body: LargeBody) -> bytes:
        """A former body. Raises DiskError."""
        if self._retired is None:
            raise DiskError(f"the body {body.number} is not there any more")
        return self._retired.read(body.number, 0, body.size_bytes)

    def read(self, name: str, number: int, offset: int, size_bytes: int) -> bytes:
        """A part of a body, which may just be moving. For the thread that reads bodies. Raises DiskError."""
        try:
            return self._disk.read(name, offset, size_bytes)
        except DiskError:
            if self._retired is None:
                raise
            return self._retired.read(number, offset, size_bytes)


# ---- store -----------------------------------------------------------------------------------------------------------
#
# The files of large bodies: their numbers, their users, their removal, and how they are read. A file is written
# completely before any record refers to it, so a crash leaves at most unneeded files. It is removed
# when the last holder has released it and everything logged by the end of that turn is durable: no record that
# survives a crash needs a removed file.


CHECKSUM_FAULT: Final = "its checksum does not match"


class Piece:
    """A requested part of a body; ``data`` or ``failure`` is set when it was fetched.

    ``checksum`` covers the body up to ``offset``, and after the fetch up to the end of the part; a reader passes it on
    from part to part. If it does not match, the last part fails. -1: not checked.
    """

    __slots__ = ("checksum", "data", "failure", "name", "offset", "owner", "size_bytes", "wanted_checksum")

    def __init__(self, name: str, offset: int, size_bytes: int, owner: object) -> None:
        self.name = name
        self.offset = offset
        self.size_bytes = size_bytes
        self.owner = owner
        self.checksum = -1
        self.wanted_checksum = -1
        """The expected value at the end of this part; -1: this is not the last part, or the value is unknown."""
        self.data: bytes | None = None
        self.failure: str | None = None


class LargeStore(BodyStore):
    """Every large body of a broker, on one disk.

    ``writer`` writes and removes files; ``reader`` fetches pieces. ``retire`` gets the name of each complete durable
    file that is no longer needed, in the writer's thread, and deletes or retains it; and an lsn up to which every
    record is that refers to it, 0 if none is known. ``start_min`` is the lowest usable start number (above those of
    retained files). ``former`` are those that ``retire`` retains.
    """

    def __init__(
        self,
        disk: Disk,
        writer: Committer,
        reader: Committer,
        *,
        syncs: bool = True,
        retire: Callable[[str, int], None] | None = None,
        start_min: int = 1,
        retired: RetiredBodies | None = None,
    ) -> None:
        self.body_writer = BodyWriter(disk, writer, syncs=syncs)
        self.given_up: set[str] = set()
        """The files of bodies that a start had to do without."""
        self._disk = disk
        self._writer = writer
        self._reader = reader
        self._retire = retire or self._delete
        self._files: dict[int, LargeFile] = {}
        self.lookup = BodyLookup(disk, self._files, self, retired)
        """The same bodies, and the former ones, for readers of the log."""
        self.released: deque[int] = deque()
        """The bodies that holders have released since the last ``seal``, once for each of them."""
        self.leaving: deque[tuple[int, list[LargeFile]]] = deque()
        """Files to remove once the log is durable up to an lsn."""
        self._fetched: deque[Piece] = deque()
        names = disk.names()
        self._found = {body.number: body for body in map(read_name, names) if body is not None}
        self._old_starts = [name for name in names if is_start(name)]
        self._start = max([start_min - 1, *(start_of(name) or 0 for name in names)]) + 1
        self._start_is_noted = False
        self._next_number = first_number(self._start)

    @property
    def failure(self) -> DiskError | None:
        """Why nothing more can be written."""
        return self._writer.failure

    @property
    def has_pending(self) -> bool:
        """Is something not yet written, or does a file wait for the log before its removal?"""
        return self.body_writer.has_pending or self._writer.busy or bool(self.released or self.leaving)

    def counts(self) -> dict[str, int]:
        """Figures for the metrics, by the last part of their name."""
        return {
            "begun": self._next_number - first_number(self._start),
            "bodies": len(self._files),
            "bytes": sum(file.size_bytes for file in self._files.values()),
            "unwritten_bytes": self.body_writer.unwritten_bytes,
            "refused": self.body_writer.refused,
        }

    # ---- a start ---------------------------------------------------------------------------------

    def fault_of(self, body: LargeBody) -> str | None:
        """What is wrong with the file of a logged body; None if it is complete. Raises DiskError."""
        if body.number not in self._found:
            return None if self.lookup.is_whole(body) else "is missing"
        if not self._disk.read(body_name(body.number, durable=True), body.size_bytes - 1, 1):
            return f"is shorter than {body.size_bytes} bytes"
        return None

    def adopt(self, body: LargeBody) -> None:
        """Mark a logged body as in use again. A message of the past may have one that was retired."""
        body.keep_in(self if body.number in self._found else self.lookup.keeper)

    def set_aside(self, number: int) -> None:
        """Keep an incomplete file under a meaningless name. Raises DiskError."""
        if self._found.pop(number, None) is not None:
            put_aside(self._disk, body_name(number, durable=True))

    def give_up(self, number: int) -> None:
        """A message has lost this body: keep the rest of its file. Raises DiskError."""
        self.given_up.add(body_name(number, durable=True))
        self.set_aside(number)

    def remove_unused(self, *, keep: bool = False, given_up: Collection[str] = ()) -> list[str]:
        """At a start: remove files that were not adopted. Durable files are retired, because a crash may have prevented
        that. With ``keep``, the records that need them may be lost: then they are put aside, as are reappeared files
        that an earlier start had ``given_up``. Returns a line for each of these. Raises DiskError.
        """
        left = [body for number, body in self._found.items() if number not in self._files]
        kept = []
        for body in left:
            name = body_name(body.number, durable=body.durable)
            if name in given_up:
                kept.append(f"{name}: its message was given up while this body was missing; the file was put aside")
            elif keep and body.durable:
                kept.append(f"{name}: the journal has no message with this body; the file was put aside")
            else:
                continue
            self.set_aside(body.number)
        files: list[LargeFile] = []
        for body in left:
            if self._found.pop(body.number, None) is not None:
                files.append(LargeFile(body.number, 0, durable=body.durable))
        if files:
            self.lookup.begin_to_retire(files)
            self._writer.later(partial(self._remove, 0, files))
        return kept

    # ---- holders ---------------------------------------------------------------------------------

    def hold(self, number: int, size_bytes: int) -> None:
        file = self._files.get(number)
        if file is None:
            found = self._found.get(number)
            file = LargeFile(number, size_bytes, durable=found is None or found.durable)
            self._files[number] = file
        file.holders += 1

    def release(self, number: int) -> None:
        self.released.append(number)

    # ---- coming in -------------------------------------------------------------------------------

    def begin(self, *, durable: bool) -> Upload:
        """Start a new body. A ``durable`` one outlives the broker."""
        number = self._next_number
        self._next_number += 1
        file = self._files[number] = LargeFile(number, 0, durable=durable)
        return Upload(self.body_writer, file, LargeBody(number, 0, self, checksum=0))

    @property
    def is_full(self) -> bool:
        """Must bodies not grow, because the disk is full?"""
        return self.body_writer.is_full

    @property
    def may_go_on(self) -> bool:
        """Does the disk keep up and have room, so that senders may be read?"""
        return self.body_writer.may_go_on

    def poll(self) -> None:
        """Handle completed writes."""
        if self.body_writer.poll() is not None:
            self._start_is_noted = False

    def seal(self, last_lsn: int, durable_lsn: int) -> None:
        """A turn is over: submit new data. Files released in it are removed when the log is durable up to ``last_lsn``;
        it is durable up to ``durable_lsn`` now.
        """
        if self.body_writer.may_write:
            self._write()
        if self.released:
            self._let_go(last_lsn)
        while self.leaving and self.leaving[0][0] <= durable_lsn:
            self._writer.later(partial(self._remove, *self.leaving.popleft()))

    def _write(self) -> None:
        """The number of a start is stored before its first body: a logged body may be gone before the next start, and
        its number must not be reused.
        """
        if self._start_is_noted:
            self.body_writer.write([])
            return
        self._start_is_noted = True
        self.body_writer.write(
            [Write(self._disk, start_name(self._start), 0, b"", False, create_bytes=0, may_fail=True)]
        )
        self._writer.later(self._forget_old_starts)

    def _let_go(self, last_lsn: int) -> None:
        files: list[LargeFile] = []
        while self.released:
            number = self.released.popleft()
            file = self._files[number]
            file.holders -= 1
            if not file.holders:
                del self._files[number]
                self._found.pop(number, None)
                files.append(file)
        if files:
            self.lookup.begin_to_retire(files)
            self.leaving.append((last_lsn, files))

    # ---- in the writer's thread ------------------------------------------------------------------

    def _remove(self, lsn: int, files: list[LargeFile]) -> None:
        for file in files:
            if file.durable and file.is_whole:
                with suppress(NoSpaceError):  # then it is not retained yet; the next start tries again
                    self._retire(file.name, lsn)
                    self.lookup.note_retired(file.number)
            else:
                self._disk.delete(file.name)

    def _delete(self, name: str, _lsn: int) -> None:
        self._disk.delete(name)

    def _forget_old_starts(self) -> None:
        """After a failure, or without room, the new file does not exist."""
        if self._writer.failure is None and start_name(self._start) in self._disk.names():
            for name in self._old_starts:
                self._disk.delete(name)

    # ---- going out -------------------------------------------------------------------------------

    def read(self, body: LargeBody, offset: int, size_bytes: int, owner: object, checksum: int = -1) -> Piece:
        """Fetch a part of a body; ``take_fetched`` returns it when it is ready. If the body is to be checked,
        ``checksum`` covers the bytes before the part (0: there are none); -1: no check.
        """
        file = self._files.get(body.number)
        name = body_name(body.number, durable=True) if file is None else file.name
        piece = Piece(name, offset, size_bytes, owner)
        piece.checksum = checksum
        if checksum >= 0 and offset + size_bytes == body.size_bytes:
            piece.wanted_checksum = body.checksum
        self._reader.later(partial(self._fetch, piece, body.number))
        return piece

    def _fetch(self, piece: Piece, number: int) -> None:
        try:
            data = self.lookup.read(piece.name, number, piece.offset, piece.size_bytes)
            if piece.checksum >= 0:
                piece.checksum = crc32(data, piece.checksum)
            if len(data) != piece.size_bytes:
                piece.failure = f"{piece.name} ends at byte {piece.offset + len(data)}"
            elif piece.wanted_checksum not in {-1, piece.checksum}:
                piece.failure = f"{piece.name} is DAMAGED: {CHECKSUM_FAULT}"
            else:
                piece.data = data
        except DiskError as error:
            piece.failure = str(error)
        self._fetched.append(piece)

    def take_fetched(self) -> list[Piece]:
        """Pieces that were fetched since the last call."""
        fetched = []
        while self._fetched:
            fetched.append(self._fetched.popleft())
        return fetched

    # ---- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish all submitted work. Files in use stay."""
        self._writer.stop()
        self._reader.stop()


# ---- body reader -----------------------------------------------------------------------------------------------------
#
# Reads large bodies piece by piece for a connection. A thread reads them, because the disk may take its time.


PIECE_BYTES: Final = 262_144
"""How much of a body is read at once."""


@final
class BodyReader:
    """One body after the other. ``owner`` learns when a piece is ready."""

    __slots__ = ("_checksum", "_large", "_offset", "_owner", "_piece", "failure")

    def __init__(self, large: LargeStore, owner: object) -> None:
        self.failure: str | None = None
        """Why a body cannot be read."""
        self._large = large
        self._owner = owner
        self._piece: Piece | None = None
        self._offset = 0
        self._checksum = 0
        """The checksum of the body, up to the offset."""

    @property
    def is_at_start(self) -> bool:
        """Was a body just completed, or none begun?"""
        return self._offset == 0

    def next(self, body: LargeBody) -> bytes | None:
        """The next piece of this body; None if it must be read first, or cannot be read."""
        piece = self._piece
        if piece is None:
            size_bytes = min(PIECE_BYTES, body.size_bytes - self._offset)
            self._piece = self._large.read(body, self._offset, size_bytes, self._owner, self._checksum)
            return None
        if piece.data is None:
            self.failure = piece.failure
            return None
        self._piece = None
        self._offset += piece.size_bytes
        self._checksum = piece.checksum
        if self._offset == body.size_bytes:
            self.rewind()
        return piece.data

    def rewind(self) -> None:
        """Begin a body, perhaps the same one again. No piece may be under way."""
        self._offset = self._checksum = 0
