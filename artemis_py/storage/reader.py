"""Reads the log as events, from closed and current journal files: for replay, analysis and export.

It reads retained files and those still in the journal directory, oldest first, and yields each event once, with its lsn
and the time of its batch. It does not read large bodies: ``body_path`` returns their files. The reader imports only the
codec of the broker. It never changes a file, and may run while a broker writes: then it ends somewhere in the last
batch.

It skips BATCH, GROUP and ORIGIN records (their time, extent and sender are in the events), and copies made by
compaction. Later files repeat addresses, queues, pages, sessions and consumers; a repetition adds nothing new.

Unknown fields are 0 or empty: numbers that only a log with retention has, and fields that older logs lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artemis_py.message import LargeBody
from artemis_py.records import Depth
from artemis_py.storage import codec, page_codec
from artemis_py.storage.body_names import find_body
from artemis_py.storage.codec import CodecError, Kept, Record
from artemis_py.storage.scan import Damage, LogFile, inner_records, log_file, log_files, whole_records


@dataclass(frozen=True, slots=True)
class Event:
    """An event. ``group`` is the lsn of its transaction, 0 for none."""

    lsn: int
    time_ms: int
    group: int


@dataclass(frozen=True, slots=True)
class Published(Event):
    """A durable message was routed to these queues. ``kept.details`` says when it is due in which of them. ``session``
    sent it, or the original of a diverted copy; 0: the broker (a dead or expired copy) or unknown.
    """

    kept: Kept
    session: int = 0

    @property
    def place(self) -> int:
        """Its place in the pages of its address; 0 if it is in none, or no durable queue has it there."""
        kept = self.kept
        if not kept.flags & codec.FLAG_PAGED or kept.details is None:
            return 0
        return next(iter(kept.details.values())).order


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A queue was done with messages: ``reason`` is one of ``codec.REASONS``. ``consumer`` acknowledged them, or failed
    the last attempt (dead).
    """

    queue_id: int
    reason: str
    message_ids: tuple[int, ...]
    consumer: int = 0


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """Messages were sent to a queue's consumer. Only recorded with retention."""

    queue_id: int
    message_ids: tuple[int, ...]
    consumer: int = 0


@dataclass(frozen=True, slots=True)
class FellDue(Event):
    """Scheduled messages became due."""

    queue_id: int
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attempted(Event):
    """A delivery to ``consumer`` failed for the ``attempts``-th time; ``due_ms`` above 0: the next attempt waits until
    then. ``cause`` is one of ``codec.CAUSES``.
    """

    queue_id: int
    message_id: int
    attempts: int
    due_ms: int
    consumer: int = 0
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Purged(Event):
    """A queue was done with a page of an address: with all of its unsettled messages there, except those at
    ``kept_places``. ``count`` persistent messages of ``size_bytes`` were removed, for one of ``codec.REASONS``.
    """

    queue_id: int
    stream: int
    page: int
    kept_places: tuple[int, ...]
    reason: str
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Changed(Event):
    """An address, a queue, the duplicate ids of an address or a cursor changed: ``kind`` is the record's name."""

    kind: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PageOpened(Event):
    """An address got a page, for messages from ``first_place`` up to its next page."""

    stream: int
    page: int
    first_place: int
    address: str


@dataclass(frozen=True, slots=True)
class PageGrew(Event):
    """A page now has ``count`` messages, and its file ``size_bytes``."""

    stream: int
    page: int
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PageDropped(Event):
    """Every queue was done with a page."""

    stream: int
    page: int


@dataclass(frozen=True, slots=True)
class Session(Event):
    """A client that records refer to: ``client`` is its host:port, ``protocol`` for example ``STOMP 1.2``."""

    session: int
    client: str
    login: str
    client_id: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Consumer(Event):
    """A consumer of a durable queue. ``closed`` is empty while it is attached; then ``left`` or ``lost`` (its
    connection), and its unsettled messages return to the queue.
    """

    consumer: int
    session: int
    queue_id: int
    subscription: str
    selector: str
    ack: str
    closed: str


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """An address refused persistent messages of a session in one turn: it was full (``policy`` is drop or fail), or
    their ids were duplicates (duplicate).
    """

    address: str
    policy: str
    session: int
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The broker ``name`` has been running since the lsn ``start``: consumers with a lower number are gone. Recorded in
    each file.
    """

    name: str
    start: int


@dataclass(frozen=True, slots=True)
class Depths(Event):
    """The persistent messages in durable queues after all earlier events; queues not named are empty. Recorded once in
    each file, at the end of its first turn.
    """

    depths: tuple[Depth, ...]


@dataclass(frozen=True, slots=True)
class Unknown(Event):
    """A record of a type that this version does not know."""

    type_code: int
    payload: bytes


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
    """Reads the journal files of some directories. ``damages`` lists what could not be read. ``bodies`` are directories
    of large messages; retained bodies are found without them.
    """

    directories: Sequence[Path]
    damages: list[Damage] = field(default_factory=list)
    bodies: Sequence[Path] = ()

    def body_path(self, body: LargeBody) -> Path | None:
        """The file of a large body; None if it does not exist. A running broker may move it to the retained bodies: if
        it cannot be opened, ask again.
        """
        return find_body(body.number, [*self.bodies, *self.directories])

    def events(self, wanted: Range = EVERYTHING) -> Iterator[Event]:
        """The wanted events in the order of their lsn. Raises OSError if a file cannot be read, and VersionError if one
        has another format version.
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
                header = codec.decode_file_header(stream.read(codec.FILE_HEADER_BYTES))
        except (OSError, CodecError):
            return False
        return header.first_lsn <= lsn


def read_file(path: Path, wanted: Range = EVERYTHING, damages: list[Damage] | None = None) -> Iterator[Event]:
    """The wanted events of one file, for readers that distribute files to workers. Raises OSError, and CodecError if it
    is not a journal file or has no valid header.
    """
    if log_file(path) is None:
        raise CodecError(f"{path.name} is not the name of a journal file")
    data = path.read_bytes()
    codec.decode_file_header(data)
    return events_of(path.name, data, [] if damages is None else damages, wanted)


def events_of(
    name: str, data: bytes, damages: list[Damage], wanted: Range = EVERYTHING, *, is_last: bool = True
) -> Iterator[Event]:
    """The wanted events in the bytes of one file with a valid header."""
    session = damage_count = 0
    time_ms = _begun_ms(data)  # the first BATCH says the same, but it may be damaged
    is_wanted = wanted.has_time(time_ms)
    for record in whole_records(name, data, damages, is_last=is_last):
        if len(damages) != damage_count:  # what is lost may have named another sender
            damage_count = len(damages)
            session = 0
        if record.type_code == codec.BATCH:
            time_ms = codec.decode_batch(record.payload).now_ms
            is_wanted = wanted.has_time(time_ms)
            session = 0
        elif not is_wanted:
            continue
        elif record.type_code == codec.GROUP:
            session = 0
            yield from _of_group(record, time_ms, wanted)
        elif record.type_code == codec.ORIGIN:
            session = codec.decode_origin(record.payload)
        elif wanted.has_lsn(record.lsn):
            yield from _event(record, time_ms, 0, session)


def _begun_ms(data: bytes) -> int:
    with suppress(CodecError):
        return codec.decode_file_header(data).created_ms
    return 0


def _of_group(group: Record, time_ms: int, wanted: Range) -> Iterator[Event]:
    session = 0
    records = list(inner_records(group.payload))
    lsn = group.lsn if any(record.type_code == codec.TRANSACTION for record in records) else 0
    for record in records:
        if record.type_code == codec.ORIGIN:
            session = codec.decode_origin(record.payload)
        elif record.type_code != codec.TRANSACTION and wanted.has_lsn(record.lsn):
            yield from _event(record, time_ms, lsn, session)


def _event(record: Record, time_ms: int, group: int, session: int) -> Iterator[Event]:
    """The event of a record; none for a copy made by compaction."""
    kind, lsn, payload = record.type_code, record.lsn, record.payload
    if kind == codec.MESSAGE:
        kept = codec.decode_message(payload)
        if kept.lsn == lsn:
            yield Published(lsn, time_ms, group, kept, session)
    elif kind == codec.SETTLED:
        yield Settled(lsn, time_ms, group, *codec.decode_settled(payload))
    elif kind == codec.DELIVERED:
        yield Delivered(lsn, time_ms, group, *codec.decode_ids(payload))
    elif kind == codec.DUE:
        queue_id, message_ids, _ = codec.decode_ids(payload)
        yield FellDue(lsn, time_ms, group, queue_id, message_ids)
    elif kind == codec.ATTEMPTED:
        yield Attempted(lsn, time_ms, group, *codec.decode_attempted(payload))
    elif kind in _PAGES:
        yield from _page_event(record, time_ms, group)
    elif kind in _CHANGES:
        yield Changed(lsn, time_ms, group, codec.RECORD_NAMES[kind], codec.decode_fields(payload))
    elif kind == codec.DEPTHS:
        yield Depths(lsn, time_ms, group, tuple(codec.decode_depths(payload)))
    elif kind in _ACTORS:
        yield _ACTORS[kind](Event(lsn, time_ms, group), codec.decode_fields(payload))
    else:
        yield Unknown(lsn, time_ms, group, kind, payload)


def _page_event(record: Record, time_ms: int, group: int) -> Iterator[Event]:
    """The event of a record about pages; none for a repetition."""
    kind, lsn, payload = record.type_code, record.lsn, record.payload
    if kind == codec.PAGE_SETTLED:
        settled = page_codec.decode_page_settled(payload)
        yield Settled(lsn, time_ms, group, settled.queue_id, settled.reason, settled.message_ids, settled.consumer)
    elif kind == codec.PAGE_ATTEMPTED:
        one = page_codec.decode_page_attempted(payload)
        if one.message_id:
            told = one.queue_id, one.message_id, one.attempts, one.due_ms, one.consumer, one.cause
            yield Attempted(lsn, time_ms, group, *told)
    elif kind == codec.PAGE_PURGED:
        gone = page_codec.decode_page_purged(payload)
        where = gone.queue_id, gone.stream, gone.page, gone.kept_places
        yield Purged(lsn, time_ms, group, *where, gone.reason, gone.count, gone.size_bytes)
    elif kind == codec.PAGE_OPENED:
        fields = codec.decode_fields(payload)
        yield PageOpened(
            lsn, time_ms, group, fields["stream"], fields["page"], fields["first_place"], fields["address"]
        )
    elif kind == codec.PAGE_GREW:
        page = page_codec.decode_grew(payload)
        yield PageGrew(lsn, time_ms, group, page.stream, page.number, page.kept_count, page.kept_bytes)
    elif kind == codec.PAGE_DROPPED:
        yield PageDropped(lsn, time_ms, group, *page_codec.decode_page_dropped(payload))


_PAGES = frozenset(
    {
        codec.PAGE_OPENED, codec.PAGE_GREW, codec.PAGE_SETTLED, codec.PAGE_PURGED, codec.PAGE_ATTEMPTED,
        codec.PAGE_DROPPED, codec.PAGE_PLACES,
    }
)  # fmt: skip


def _session(at: Event, fields: dict[str, Any]) -> Event:
    texts = [fields.get(name, "") for name in ("client", "login", "client_id", "protocol")]
    return Session(at.lsn, at.time_ms, at.group, fields["id"], *texts)


def _consumer(at: Event, fields: dict[str, Any]) -> Event:
    texts = [fields.get(name, "") for name in ("subscription", "selector", "ack", "closed")]
    return Consumer(at.lsn, at.time_ms, at.group, fields["id"], fields["session"], fields["queue"], *texts)


def _refused(at: Event, fields: dict[str, Any]) -> Event:
    where = fields["address"], fields["policy"], fields["session"]
    return Refused(at.lsn, at.time_ms, at.group, *where, fields["count"], fields["bytes"])


def _started(at: Event, fields: dict[str, Any]) -> Event:
    return Started(at.lsn, at.time_ms, at.group, fields["name"], fields["start"])


_ACTORS: dict[int, Callable[[Event, dict[str, Any]], Event]] = {
    codec.SESSION: _session,
    codec.CONSUMER: _consumer,
    codec.REFUSED: _refused,
    codec.BROKER: _started,
}
"""Events of JSON records, other than changes of bindings."""
_CHANGES = frozenset(
    {codec.ADDRESS, codec.QUEUE, codec.QUEUE_DELETED, codec.DUPLICATE, codec.DUPLICATES_CLEARED, codec.CURSOR}
)
