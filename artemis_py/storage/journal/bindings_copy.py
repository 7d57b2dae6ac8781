"""A second copy of addresses, queues, cursors and what operators configured, in a file next to the journal.

The journal is authoritative. The copy is read only if part of the journal is damaged or missing, to restore lost
records about bindings: without its QUEUE record, no one could say which queue messages belong to. So the copy is not
synced with each batch; the committer's thread writes it after the batch that it repeats. It is rewritten at each start
and when it has doubled in size, a little at a time, under another name until it is complete.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Final

from artemis_py.storage.disk.disk import Disk, DiskError
from artemis_py.storage.disk.group_commit import Committer
from artemis_py.storage.format import codec
from artemis_py.storage.format.records import (
    ADDRESS,
    CONFIGURED,
    CURSOR,
    FILE_HEADER_BYTES,
    KIND_BINDINGS,
    QUEUE,
    QUEUE_DELETED,
    RECORD_HEADER_BYTES,
    TYPE_AT,
    CodecError,
    FileHeader,
    Record,
    decode_file_header,
    encode_file_header,
    encode_record,
    end_said,
    is_whole,
    read_records,
)
from artemis_py.storage.journal.index import Index

NAME: Final = "journal-bindings.copy"
COPIED: Final = frozenset({ADDRESS, QUEUE, QUEUE_DELETED, CURSOR, CONFIGURED})
_UNFINISHED: Final = NAME + ".part"
_SLICE: Final = 500
"""How many records are rewritten at once: a few milliseconds of the committer's thread, for which batches wait."""
_GROWTH_BYTES_MIN: Final = 65536


class BindingsCopy:
    """Keeps the copy of one journal. The journal calls ``note`` and ``hand_over``; the committer does the rest. A disk
    that refuses the copy does not stop the broker: then there is no copy until the next start.
    """

    def __init__(self, disk: Disk, committer: Committer, index: Index) -> None:
        self._disk = disk
        self._committer = committer
        self._index = index
        self.noted: list[bytes] = []
        self.wants_anew = True
        # from here on: of the committer's thread
        self._is_off = False
        self._left: deque[tuple[int, list[dict[str, Any]]]] = deque()
        """What is still to be rewritten, by type."""
        self._is_making = False
        self._made_bytes = 0
        self._making_lsn = 0
        self._missed: list[bytes] = []
        """Records that arrived while the copy is being rewritten."""
        self._end = 0
        """The end of the copy in use; 0: there is none."""
        self._grown_bytes = 0

    def note(self, record: bytes) -> None:
        """Add a record of a type in ``COPIED`` to the next batch."""
        self.noted.append(record)

    def hand_over(self, last_lsn: int) -> None:
        """A batch was given to the committer; the copy follows. ``last_lsn`` is the journal's last lsn."""
        if self.noted:
            noted, self.noted = self.noted, []
            self._committer.later(partial(self._append, noted))
        if self.wants_anew:
            self.wants_anew = False
            index = self._index
            bindings = (
                (ADDRESS, list(index.addresses.values())),
                (QUEUE, list(index.queues.values())),
                (CURSOR, list(index.cursors.values())),
                (CONFIGURED, list(index.configured.values())),
            )
            self._committer.later(partial(self._begin, bindings, last_lsn))

    # ---- in the committer's thread ---------------------------------------------------------------

    def _append(self, records: list[bytes]) -> None:
        if self._is_off:
            return
        data = b"".join(records)
        if self._is_making:
            self._missed.append(data)
        if not self._end:
            return
        try:
            self._disk.write(NAME, self._end, data)
        except DiskError:
            self._give_up()
            return
        self._end += len(data)
        self._grown_bytes += len(data)
        if self._grown_bytes > max(self._end - self._grown_bytes, _GROWTH_BYTES_MIN) and not self._is_making:
            self.wants_anew = True

    def _begin(self, bindings: tuple[tuple[int, list[dict[str, Any]]], ...], lsn: int) -> None:
        if self._is_off:
            return
        self._is_making = True
        self._left = deque(bindings)
        self._missed = []
        self._making_lsn = lsn
        try:
            self._disk.begin(_UNFINISHED)
            header = encode_file_header(FileHeader(KIND_BINDINGS, 0, lsn, 0))
            self._disk.write(_UNFINISHED, 0, header)
            self._made_bytes = len(header)
        except DiskError:
            self._give_up()
            return
        self._go_on()

    def _go_on(self) -> None:
        """Write a slice; the next one follows the waiting batches."""
        if self._is_off:
            return
        try:
            room = _SLICE
            records: list[bytes] = []
            while room and self._left:
                type_code, fields = self._left[0]
                taken = fields[-room:]
                del fields[-room:]
                records += [encode_record(type_code, self._making_lsn, codec.encode_fields(one)) for one in taken]
                room -= len(taken)
                if not fields:
                    self._left.popleft()
            if self._left:
                self._write_new(b"".join(records))
                self._committer.later(self._go_on)
                return
            self._write_new(b"".join(records + self._missed))
            self._disk.sync(_UNFINISHED)
            self._disk.finish(NAME)
            self._disk.rename(_UNFINISHED, NAME)
        except DiskError:
            self._give_up()
            return
        self._is_making = False
        self._end = self._made_bytes
        self._grown_bytes = 0
        self._missed = []

    def _write_new(self, data: bytes) -> None:
        if data:
            self._disk.write(_UNFINISHED, self._made_bytes, data)
            self._made_bytes += len(data)

    def _give_up(self) -> None:
        """Remove the copy: an outdated one would be wrong."""
        self._is_off = True
        for name in (NAME, _UNFINISHED):
            with suppress(DiskError):
                self._disk.delete(name)


def read_copy(disk: Disk) -> tuple[list[Record], list[str]]:
    """The valid records of the copy in the order of their lsn, and what is wrong with it. Raises DiskError."""
    if NAME not in disk.names():
        return [], []
    data = disk.read(NAME)
    faults: list[str] = []
    try:
        if decode_file_header(data).kind != KIND_BINDINGS:
            raise CodecError("not a copy of bindings")
    except CodecError as error:
        faults.append(f"{NAME} at byte 0: DAMAGED: {error}")

    def behind(offset: int, reason: str) -> int:
        if not reason:
            return -1
        faults.append(f"{NAME} at byte {offset}: DAMAGED: {reason}")
        return _behind(data, offset)

    found = read_records(data, FILE_HEADER_BYTES, behind)
    return sorted(found, key=lambda one: one.lsn), faults


def _behind(data: bytes, offset: int) -> int:
    """Where the next valid record begins; -1 if there is none."""
    said = end_said(data, offset) if offset + RECORD_HEADER_BYTES <= len(data) else len(data)
    for candidate in (said, *range(offset + 1, len(data) - RECORD_HEADER_BYTES)):
        is_there = candidate + RECORD_HEADER_BYTES <= len(data)
        if is_there and data[candidate + TYPE_AT] in COPIED and is_whole(data, candidate):
            return int(candidate)
    return -1
