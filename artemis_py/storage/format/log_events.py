"""The events in a log: a class for each kind, and the function that decodes a record as an event.

Two kinds of records tell readers nothing new: ``Framing`` describes how other records are written, ``Repeated`` repeats
what is already known. An unknown field is 0 or empty: some numbers exist only in a log with retention, and older logs
lack some fields. The module imports only the codec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from artemis_py.paged_messages import PageShare
from artemis_py.record_log import Depth
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.records import Record


@dataclass(frozen=True, slots=True)
class Event:
    """An event: its lsn, the time of its batch (epoch milliseconds), and the lsn of its transaction (``group``, 0:
    none).
    """

    lsn: int
    time_ms: int
    group: int


@dataclass(frozen=True, slots=True)
class InPage:
    """The position of messages in a page: the page's stream and number, and their places."""

    stream: int
    page: int
    places: tuple[int, ...]


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
        if not kept.flags & records.FLAG_PAGED or kept.details is None:
            return 0
        return next(iter(kept.details.values())).order


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """A message of the past, published at ``kept.lsn``, was put on these queues, which did not have it."""

    kept: Kept


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A queue was done with messages: ``reason`` is one of ``records.REASONS``. ``consumer`` acknowledged them, or
    failed the last attempt (dead).
    """

    queue_id: int
    reason: str
    message_ids: tuple[int, ...]
    consumer: int = 0
    in_page: InPage | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """Messages were sent to a queue's consumer. Only recorded with retention."""

    queue_id: int
    message_ids: tuple[int, ...]
    consumer: int = 0


@dataclass(frozen=True, slots=True)
class ScheduledDue(Event):
    """Scheduled messages became due."""

    queue_id: int
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attempted(Event):
    """A delivery to ``consumer`` failed for the ``attempts``-th time; ``due_ms`` above 0: the next attempt waits until
    then. ``cause`` is one of ``records.CAUSES``.
    """

    queue_id: int
    message_id: int
    attempts: int
    due_ms: int
    consumer: int = 0
    cause: str = ""
    in_page: InPage | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Purged(Event):
    """A queue was done with a page of an address: with all of its unsettled messages there, except those at
    ``kept_places``. ``count`` persistent messages of ``size_bytes`` were removed, for one of ``records.REASONS``.
    """

    queue_id: int
    stream: int
    page: int
    kept_places: tuple[int, ...]
    reason: str
    count: int
    size_bytes: int
    kept_bytes: int = field(default=0, compare=False)


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
    fields: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class PageGrew(Event):
    """A page now has ``count`` messages, and its file ``size_bytes``."""

    stream: int
    page: int
    count: int
    size_bytes: int
    expires_ms: int = field(default=0, compare=False)
    durable: dict[int, PageShare] = field(default_factory=dict, compare=False)
    """What each durable queue had in it."""
    first_place: int = field(default=0, compare=False)
    """0 in older logs."""


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
    fields: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Consumer(Event):
    """A consumer of a durable queue. ``closed`` is empty while it is attached; then ``left`` or ``lost`` (its
    connection), and its unsettled messages return to the queue. ``number`` is what the broker that it was attached to
    called it (0: not recorded); another run may give it to another one.
    """

    consumer: int
    session: int
    queue_id: int
    subscription: str
    selector: str
    ack: str
    closed: str
    number: int = 0
    fields: dict[str, Any] = field(default_factory=dict, compare=False)


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
    fields: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The broker ``name`` has been running since the lsn ``start``: consumers with a lower number are gone. Recorded in
    each file.
    """

    name: str
    start: int
    fields: dict[str, Any] = field(default_factory=dict, compare=False)


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
class Paged(Event):
    """A message as stored in a page; its lsn is its place. ``origin`` is the number of the connection that sent it."""

    origin: int
    kept: Kept


# ---- what is no event ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """Repeats what is known: a copy of a message made by compaction, or a failed delivery recorded again."""

    what: Published | Attempted


@dataclass(frozen=True, slots=True)
class Framing(Event):
    """Describes how other records are written."""


@dataclass(frozen=True, slots=True)
class Batched(Framing):
    """A batch begins; it ends before the next one."""

    batch: codec.BatchHeader


@dataclass(frozen=True, slots=True)
class Grouped(Framing):
    """Records that belong together, with a total of ``size_bytes``."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Committed(Framing):
    """The group that contains it is a client's transaction."""


@dataclass(frozen=True, slots=True)
class Sending(Framing):
    """A session sent the messages that follow."""

    session: int


@dataclass(frozen=True, slots=True)
class PlacesSettled(Framing):
    """Repeats what a queue has settled in a page: ``count`` messages of ``size_bytes`` at ``places`` places."""

    queue_id: int
    stream: int
    page: int
    first_place: int
    count: int
    size_bytes: int
    places: int


# ---- from records --------------------------------------------------------------------------------


def event_of(record: Record, time_ms: int = 0, group: int = 0, session: int = 0) -> Event:
    """Decode a record as an event. ``time_ms`` is the time of its batch, ``group`` the lsn of its transaction,
    ``session`` the sender if it is a message (0 for each: unknown or none). Raises CodecError.
    """
    kind, lsn, payload = record.type_code, record.lsn, record.payload
    if kind == records.MESSAGE:
        kept = codec.decode_message(payload)
        if kept.flags & records.FLAG_RECALLED:
            return Recalled(lsn, time_ms, group, kept)
        published = Published(lsn, time_ms, group, kept, session)
        return published if kept.lsn == lsn else Repeated(lsn, time_ms, group, published)
    if kind == records.SETTLED:
        return Settled(lsn, time_ms, group, *codec.decode_settled(payload))
    if kind == records.DELIVERED:
        return Delivered(lsn, time_ms, group, *codec.decode_ids(payload))
    if kind == records.DUE:
        queue_id, message_ids, _ = codec.decode_ids(payload)
        return ScheduledDue(lsn, time_ms, group, queue_id, message_ids)
    if kind == records.ATTEMPTED:
        return Attempted(lsn, time_ms, group, *codec.decode_attempted(payload))
    if kind in records.BINDINGS:
        return Changed(lsn, time_ms, group, records.RECORD_NAMES[kind], codec.decode_fields(payload))
    if kind == records.DEPTHS:
        return Depths(lsn, time_ms, group, tuple(codec.decode_depths(payload)))
    at = Event(lsn, time_ms, group)
    if kind in _OF_PAYLOAD:
        return _OF_PAYLOAD[kind](at, payload)
    if kind in _OF_FIELDS:
        return _OF_FIELDS[kind](at, codec.decode_fields(payload))
    return Unknown(lsn, time_ms, group, kind, payload)


def _page_settled(at: Event, payload: bytes) -> Event:
    one = codec.decode_page_settled(payload)
    where = InPage(one.stream, one.page, one.places)
    return Settled(at.lsn, at.time_ms, at.group, one.queue_id, one.reason, one.message_ids, one.consumer, where)


def _page_attempted(at: Event, payload: bytes) -> Event:
    one = codec.decode_page_attempted(payload)
    told = one.queue_id, one.message_id, one.attempts, one.due_ms, one.consumer, one.cause
    where = InPage(one.stream, one.page, (one.place,))
    attempted = Attempted(at.lsn, at.time_ms, at.group, *told, where)
    return attempted if one.message_id else Repeated(at.lsn, at.time_ms, at.group, attempted)


def _page_purged(at: Event, payload: bytes) -> Event:
    gone = codec.decode_page_purged(payload)
    where = gone.queue_id, gone.stream, gone.page, gone.kept_places
    return Purged(at.lsn, at.time_ms, at.group, *where, gone.reason, gone.count, gone.size_bytes, gone.kept_bytes)


def _page_grew(at: Event, payload: bytes) -> Event:
    page = codec.decode_page_grew(payload)
    told = page.stream, page.number, page.kept_count, page.kept_bytes, page.expires_ms
    return PageGrew(at.lsn, at.time_ms, at.group, *told, page.durable, page.first_place)


def _page_dropped(at: Event, payload: bytes) -> Event:
    return PageDropped(at.lsn, at.time_ms, at.group, *codec.decode_page_dropped(payload))


def _paged(at: Event, payload: bytes) -> Event:
    return Paged(at.lsn, at.time_ms, at.group, *codec.decode_paged(payload))


def _batched(at: Event, payload: bytes) -> Event:
    return Batched(at.lsn, at.time_ms, at.group, codec.decode_batch(payload))


def _grouped(at: Event, payload: bytes) -> Event:
    return Grouped(at.lsn, at.time_ms, at.group, len(payload))


def _committed(at: Event, _payload: bytes) -> Event:
    return Committed(at.lsn, at.time_ms, at.group)


def _sending(at: Event, payload: bytes) -> Event:
    return Sending(at.lsn, at.time_ms, at.group, codec.decode_origin(payload))


def _places_settled(at: Event, payload: bytes) -> Event:
    *told, bits = codec.decode_page_places(payload)
    queue_id, stream, page, first_place, count, size_bytes = told
    where = queue_id, stream, page, first_place
    return PlacesSettled(
        at.lsn, at.time_ms, at.group, *where, count, size_bytes, int.from_bytes(bits, "little").bit_count()
    )


def _page_opened(at: Event, fields: dict[str, Any]) -> Event:
    where = fields["stream"], fields["page"], fields["first_place"], fields["address"]
    return PageOpened(at.lsn, at.time_ms, at.group, *where, fields)


def _session(at: Event, fields: dict[str, Any]) -> Event:
    client, login, client_id, protocol = _texts(fields, "client", "login", "client_id", "protocol")
    return Session(at.lsn, at.time_ms, at.group, fields["id"], client, login, client_id, protocol, fields)


def _consumer(at: Event, fields: dict[str, Any]) -> Event:
    subscription, selector, ack, closed = _texts(fields, "subscription", "selector", "ack", "closed")
    who, number = (fields["id"], fields["session"], fields["queue"]), fields.get("number", 0)
    return Consumer(at.lsn, at.time_ms, at.group, *who, subscription, selector, ack, closed, number, fields)


def _texts(fields: dict[str, Any], *names: str) -> list[str]:
    return [fields.get(name, "") for name in names]


def _refused(at: Event, fields: dict[str, Any]) -> Event:
    where = fields["address"], fields["policy"], fields["session"]
    return Refused(at.lsn, at.time_ms, at.group, *where, fields["count"], fields["bytes"], fields)


def _started(at: Event, fields: dict[str, Any]) -> Event:
    return Started(at.lsn, at.time_ms, at.group, fields["name"], fields["start"], fields)


_OF_PAYLOAD: Final[dict[int, Callable[[Event, bytes], Event]]] = {
    records.BATCH: _batched,
    records.GROUP: _grouped,
    records.TRANSACTION: _committed,
    records.ORIGIN: _sending,
    records.PAGE_GREW: _page_grew,
    records.PAGE_SETTLED: _page_settled,
    records.PAGE_PURGED: _page_purged,
    records.PAGE_ATTEMPTED: _page_attempted,
    records.PAGE_DROPPED: _page_dropped,
    records.PAGE_PLACES: _places_settled,
    records.PAGED: _paged,
}
_OF_FIELDS: Final[dict[int, Callable[[Event, dict[str, Any]], Event]]] = {
    records.PAGE_OPENED: _page_opened,
    records.SESSION: _session,
    records.CONSUMER: _consumer,
    records.REFUSED: _refused,
    records.BROKER: _started,
}
"""Events of JSON records, other than changes of bindings."""
FRAMING: Final = frozenset({records.BATCH, records.GROUP, records.TRANSACTION, records.ORIGIN, records.PAGE_PLACES})
"""The types of records that become ``Framing``."""
