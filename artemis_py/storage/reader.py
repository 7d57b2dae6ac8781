"""The log as a list of events, from closed and current journal files: for replay, analysis and export.

It reads what `retention` kept and what is still in the journal directory, oldest first, and gives each event once, with
its lsn and the time of its batch. A large body is not read: ``body_path`` tells where it is. The reader imports nothing
of the broker but the codec. It never changes a file, and may run
while a broker writes: it then ends somewhere in the last batch.

Not events, and skipped: BATCH and GROUP records (their time and extent are in the events), what is noted about page
files, and the copies that compaction makes. Addresses and queues are told again in later files; a repeated one says
what is known already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artemis_py.message import LargeBody
from artemis_py.storage import codec, page_codec
from artemis_py.storage.body_names import find_body
from artemis_py.storage.codec import CodecError, Kept, Record
from artemis_py.storage.scan import Damage, LogFile, inner_records, log_file, log_files, whole_records


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. ``group`` is the lsn of the transaction it belongs to, 0 for none."""

    lsn: int
    time_ms: int
    group: int


@dataclass(frozen=True, slots=True)
class Published(Event):
    """A durable message went to these queues. ``kept.details`` tells of queues in which it was scheduled."""

    kept: Kept


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A queue was done with messages: ``reason`` is acked, replaced, expired or killed."""

    queue_id: int
    reason: str
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """A queue's consumers were sent messages. Only written with retention."""

    queue_id: int
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FellDue(Event):
    """Scheduled messages took their places on the queue."""

    queue_id: int
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attempted(Event):
    """A delivery failed for the ``attempts``-th time; ``due_ms`` above 0: the next one waits until then."""

    queue_id: int
    message_id: int
    attempts: int
    due_ms: int


@dataclass(frozen=True, slots=True)
class Purged(Event):
    """A queue was done with a page of an address: with everything that went to it there so far and was not settled, but
    for ``kept_count`` messages that consumers hold.
    """

    queue_id: int
    stream: int
    page: int
    kept_count: int


@dataclass(frozen=True, slots=True)
class Changed(Event):
    """An address, a queue, the duplicate ids of an address or a cursor changed: ``kind`` is the record's name."""

    kind: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unknown(Event):
    """A record of a type that this version does not know."""

    type_code: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Range:
    """Which events are wanted: bounds included, None for no bound. Times are epoch milliseconds."""

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
    """Reads the journal files of some directories. ``damages`` tells what of them could not be read. ``bodies`` are
    directories of large messages; retained ones are found without.
    """

    directories: Sequence[Path]
    damages: list[Damage] = field(default_factory=list)
    bodies: Sequence[Path] = ()

    def body_path(self, body: LargeBody) -> Path | None:
        """The file of a large body; None when it is nowhere (any more). While a broker runs it can move to where bodies
        are retained: ask again when it cannot be opened.
        """
        return find_body(body.number, [*self.bodies, *self.directories])

    def events(self, wanted: Range = EVERYTHING) -> Iterator[Event]:
        """The wanted events in the order of their lsn. Raises OSError when a file cannot be read, and VersionError when
        one has another format version.
        """
        files = log_files(self.directories)
        for place, file in enumerate(files):
            is_last = place == len(files) - 1
            if wanted.lsn_min and not is_last and self._begins_by(files[place + 1], wanted.lsn_min):
                continue
            data = self._read(file)
            try:
                header = codec.decode_file_header(data)
                if wanted.lsn_max is not None and header.first_lsn > wanted.lsn_max:
                    return
            except codec.VersionError:
                raise
            except CodecError as error:
                if any(data):
                    self.damages.append(Damage(file.path.name, 0, str(error), torn=is_last and codec.is_blank(data)))
            yield from events_of(file.path.name, data, self.damages, wanted, is_last=is_last)

    def _read(self, file: LogFile) -> bytes:
        """A file's bytes; when it was moved since the directory was read, from where it is now."""
        try:
            return file.path.read_bytes()
        except FileNotFoundError:
            for moved in log_files(self.directories):
                if moved.number == file.number:
                    return moved.path.read_bytes()
            raise

    def _begins_by(self, following: LogFile, lsn: int) -> bool:
        """Does this file begin at or before the lsn, so that the one before it can be passed over?"""
        try:
            with following.path.open("rb") as stream:
                header = codec.decode_file_header(stream.read(codec.FILE_HEADER_BYTES))
        except (OSError, CodecError):
            return False
        return header.first_lsn <= lsn


def read_file(path: Path, wanted: Range = EVERYTHING, damages: list[Damage] | None = None) -> Iterator[Event]:
    """The wanted events of one file, for readers that share files out among workers. Raises OSError, and CodecError for
    a file that is no journal file or has no valid header.
    """
    if log_file(path) is None:
        raise CodecError(f"{path.name} is not the name of a journal file")
    data = path.read_bytes()
    codec.decode_file_header(data)
    return events_of(path.name, data, [] if damages is None else damages, wanted)


def events_of(
    name: str, data: bytes, damages: list[Damage], wanted: Range = EVERYTHING, *, is_last: bool = True
) -> Iterator[Event]:
    """The wanted events in the bytes of one file, whose header was found good."""
    time_ms = 0
    is_wanted = False
    for record in whole_records(name, data, damages, is_last=is_last):
        if record.type_code == codec.BATCH:
            time_ms = codec.decode_batch(record.payload).now_ms
            is_wanted = wanted.has_time(time_ms)
        elif not is_wanted:
            continue
        elif record.type_code == codec.GROUP:
            for inner in inner_records(record.payload):
                if wanted.has_lsn(inner.lsn):
                    yield from _event(inner, time_ms, record.lsn)
        elif wanted.has_lsn(record.lsn):
            yield from _event(record, time_ms, 0)


def _event(record: Record, time_ms: int, group: int) -> Iterator[Event]:
    """The event that a record tells of; none for a compaction's copy."""
    kind, lsn, payload = record.type_code, record.lsn, record.payload
    if kind == codec.MESSAGE:
        kept = codec.decode_message(payload)
        if kept.lsn == lsn:
            yield Published(lsn, time_ms, group, kept)
    elif kind == codec.SETTLED:
        yield Settled(lsn, time_ms, group, *codec.decode_settled(payload))
    elif kind == codec.DELIVERED:
        yield Delivered(lsn, time_ms, group, *codec.decode_ids(payload))
    elif kind == codec.DUE:
        yield FellDue(lsn, time_ms, group, *codec.decode_ids(payload))
    elif kind == codec.ATTEMPTED:
        yield Attempted(lsn, time_ms, group, *codec.decode_attempted(payload))
    elif kind == codec.PAGE_SETTLED:
        queue_id, _, _, reason, _, _, message_ids = page_codec.decode_page_settled(payload)
        yield Settled(lsn, time_ms, group, queue_id, reason, message_ids)
    elif kind == codec.PAGE_ATTEMPTED:
        queue_id, _, _, _, message_id, attempts, due_ms = page_codec.decode_page_attempted(payload)
        if message_id:
            yield Attempted(lsn, time_ms, group, queue_id, message_id, attempts, due_ms)
    elif kind == codec.PAGE_PURGED:
        queue_id, stream, page, _, places = page_codec.decode_page_purged(payload)
        yield Purged(lsn, time_ms, group, queue_id, stream, page, len(places))
    elif kind in _CHANGES:
        yield Changed(lsn, time_ms, group, codec.RECORD_NAMES[kind], codec.decode_fields(payload))
    elif kind not in _PAGE_STATES:
        yield Unknown(lsn, time_ms, group, kind, payload)


_PAGE_STATES = frozenset({codec.PAGE_OPENED, codec.PAGE_GREW, codec.PAGE_DROPPED, codec.PAGE_PLACES})
_CHANGES = frozenset(
    {codec.ADDRESS, codec.QUEUE, codec.QUEUE_DELETED, codec.DUPLICATE, codec.DUPLICATES_CLEARED, codec.CURSOR}
)
