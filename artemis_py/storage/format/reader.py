"""Reads the log as events, from closed and current journal files: for replay, analysis and export.

It reads retained files and those still in the journal directory, oldest first, and yields each event once, with its lsn
and the time of its batch. It does not read large bodies: ``names.find_body`` returns their files. The reader imports
only the codec of the broker. It never changes a file, and may run while a broker writes: then it ends somewhere in the
last batch.

It skips BATCH, GROUP and ORIGIN records (their time, extent and sender are in the events), and copies made by
compaction. Later files repeat addresses, queues, pages, sessions and consumers; a repetition adds nothing new.

``entries_of`` gives everything, for those who look at the log itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from artemis_py.storage.format import codec
from artemis_py.storage.format.log_events import FRAMING, Event, Repeated, event_of
from artemis_py.storage.format.records import (
    BATCH,
    FILE_HEADER_BYTES,
    GROUP,
    ORIGIN,
    TRANSACTION,
    CodecError,
    FileHeader,
    Record,
    VersionError,
    decode_file_header,
    inner_records,
    is_blank,
)
from artemis_py.storage.format.scan import Damage, LogFile, log_files, whole_records


@dataclass(frozen=True, slots=True)
class Range:
    """The range of wanted events: bounds included, None for no bound. Times are epoch milliseconds."""

    lsn_min: int = 0
    lsn_max: int | None = None
    time_ms_min: int = 0
    time_ms_max: int | None = None

    def has_time(self, time_ms: int) -> bool:
        """Is a batch of this time wanted?"""
        return time_ms >= self.time_ms_min and (self.time_ms_max is None or time_ms <= self.time_ms_max)

    def has_lsn(self, lsn: int) -> bool:
        """Is an event of this lsn wanted?"""
        return lsn >= self.lsn_min and (self.lsn_max is None or lsn <= self.lsn_max)


EVERYTHING = Range()


@dataclass(slots=True)
class LogReader:
    """Reads the journal files of some directories. ``damages`` lists what could not be read."""

    directories: Sequence[Path]
    damages: list[Damage] = field(default_factory=list)

    def events(self, wanted: Range = EVERYTHING) -> Iterator[Event]:
        """The wanted events in the order of their lsn. Raises OSError if a file cannot be read, and VersionError if one
        has another format version.
        """
        for file, data, is_last in self.files(wanted):
            yield from events_of(file.path.name, data, self.damages, wanted, is_last=is_last)

    def files(self, wanted: Range = EVERYTHING) -> Iterator[tuple[LogFile, bytes, bool]]:
        """The files that may have wanted records, oldest first, one after the other: the file, its bytes, and whether
        it is the last. Raises the same errors.
        """
        files = log_files(self.directories)
        for place, file in enumerate(files):
            is_last = place == len(files) - 1
            if wanted.lsn_min and not is_last and self._begins_by(files[place + 1], wanted.lsn_min):
                continue
            data = self._read(file)
            header = _header(file.path.name, data, self.damages, is_last=is_last)
            if header is not None and wanted.lsn_max is not None and header.first_lsn > wanted.lsn_max:
                return
            yield file, data, is_last

    def _read(self, file: LogFile) -> bytes:
        """A file's bytes; if it was moved since the directory was read, from its new place."""
        try:
            return file.path.read_bytes()
        except FileNotFoundError:
            for moved in log_files(self.directories):
                if moved.number == file.number:
                    return moved.path.read_bytes()
            raise

    def _begins_by(self, following: LogFile, lsn: int) -> bool:
        """Does this file begin at or before the lsn, so that the previous one can be skipped?"""
        try:
            with following.path.open("rb") as stream:
                header = decode_file_header(stream.read(FILE_HEADER_BYTES))
        except (OSError, CodecError):
            return False
        return header.first_lsn <= lsn


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A record and its context. ``group`` is the lsn of the group that contains it, a transaction or not; 0: none."""

    record: Record
    time_ms: int
    group: int = 0
    in_transaction: bool = False
    session: int = 0

    @property
    def event(self) -> Event:
        """The record as an event. Raises CodecError."""
        return event_of(self.record, self.time_ms, self.group if self.in_transaction else 0, self.session)


def read_entries(
    file: LogFile, damages: list[Damage], wanted: Range = EVERYTHING, *, is_last: bool = True
) -> Iterator[LogEntry]:
    """The wanted records of one file, which may be damaged. Raises OSError, and VersionError for another format
    version.
    """
    data = file.path.read_bytes()
    _header(file.path.name, data, damages, is_last=is_last)
    return entries_of(file.path.name, data, damages, wanted, is_last=is_last)


def _header(name: str, data: bytes, damages: list[Damage], *, is_last: bool) -> FileHeader | None:
    """The header of a file; None if it is damaged, which is added to ``damages``. Raises VersionError."""
    try:
        return decode_file_header(data)
    except VersionError:
        raise
    except CodecError as error:
        if any(data):
            damages.append(Damage(name, 0, str(error), torn=is_last and is_blank(data)))
        return None


def events_of(
    name: str, data: bytes, damages: list[Damage], wanted: Range = EVERYTHING, *, is_last: bool = True
) -> Iterator[Event]:
    """The wanted events in the bytes of one file whose header was checked."""
    for entry in entries_of(name, data, damages, wanted, is_last=is_last):
        if entry.record.type_code not in FRAMING:
            event = entry.event
            if not isinstance(event, Repeated):
                yield event


def entries_of(
    name: str,
    data: bytes,
    damages: list[Damage],
    wanted: Range = EVERYTHING,
    *,
    is_last: bool = True,
    begin: int = FILE_HEADER_BYTES,
) -> Iterator[LogEntry]:
    """Every wanted record in the bytes of one file, or of a part of it that begins with a BATCH; the records of a group
    follow it. ``is_last`` and ``begin`` are as in ``whole_records``.
    """
    session = damage_count = 0
    time_ms = _begun_ms(data) if begin else 0  # the first BATCH has the same time, but it may be damaged
    is_wanted = wanted.has_time(time_ms)
    for record in whole_records(name, data, damages, is_last=is_last, begin=begin):
        if len(damages) != damage_count:  # a lost record may have named another sender
            damage_count = len(damages)
            session = 0
        if record.type_code == BATCH:
            time_ms = codec.decode_batch(record.payload).now_ms
            is_wanted = wanted.has_time(time_ms)
            session = 0
        if not is_wanted:
            continue
        if record.type_code == GROUP:
            session = 0
        elif record.type_code == ORIGIN:
            session = codec.decode_origin(record.payload)
        if wanted.has_lsn(record.lsn):
            yield LogEntry(record, time_ms, session=session)
        if record.type_code == GROUP:
            yield from _inside(record, time_ms, wanted)


def _begun_ms(data: bytes) -> int:
    with suppress(CodecError):
        return decode_file_header(data).created_ms
    return 0


def _inside(group: Record, time_ms: int, wanted: Range) -> Iterator[LogEntry]:
    session = 0
    records = list(inner_records(group.payload))
    in_transaction = any(record.type_code == TRANSACTION for record in records)
    for record in records:
        if record.type_code == ORIGIN:
            session = codec.decode_origin(record.payload)
        if wanted.has_lsn(record.lsn):
            yield LogEntry(record, time_ms, group.lsn, in_transaction, session)
