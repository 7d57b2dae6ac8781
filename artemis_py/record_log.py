"""The core's only view of storage.

Each record gets the next log sequence number (lsn). An output that depends on a record carries its lsn, and leaves when
``lsn <= durable_lsn``. Storage never calls the core back.

The core reports to a ``RecordLog`` what a crash must not undo, and to its ``AuditLog`` what only readers of a retained
log want to know. Turns make both durable (``Durability``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mypy_extensions import mypyc_attr, trait

from artemis_py.errors import ArtemisError
from artemis_py.histogram import Histogram
from artemis_py.message import Account, Message
from artemis_py.paged_messages import Page, PagedMessage, PageShare, SettledPlaces


@dataclass(slots=True)
class Survivor:
    """A message that a queue still needs after a restart: its failed deliveries, and when it is due (epoch
    milliseconds, 0: now).
    """

    message: Message
    attempts: int = 0
    due_ms: int = 0


@dataclass(slots=True)
class KeptStream:
    """The pages of one address that a restart finds. ``settled`` has, by queue number and page number, what the queue
    is done with; ``attempts`` has, by queue number and place, the number of failed deliveries and when the next may
    follow (epoch milliseconds).
    """

    number: int
    address: str
    pages: list[Page] = field(default_factory=list)
    settled: dict[tuple[int, int], SettledPlaces] = field(default_factory=dict)
    attempts: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def page_of(self, place: int) -> Page | None:
        """The page that contains a place, or None. ``pages`` must be in order."""
        index = bisect_right(self.pages, place, key=_first_place) - 1
        page = self.pages[index] if index >= 0 else None
        return page if page is not None and place < page.end_place else None

    def share_left(self, queue_id: int, page: Page) -> PageShare:
        """The durable messages of a page that a queue still needs."""
        left = PageShare()
        share = page.durable.get(queue_id)
        if share is not None:
            left.add(share.count, share.size_bytes)
        settled = self.settled.get((queue_id, page.number))
        if settled is not None:
            left.add(-settled.count, -settled.size_bytes)
        return left


def _first_place(page: Page) -> int:
    return page.first_place


@dataclass(slots=True)
class RecoveredState:
    """What a log returns at a start: messages by queue number, each queue's in order, the streams of pages, and the
    bindings.
    """

    messages: dict[int, list[Survivor]] = field(default_factory=dict)
    queues: list[dict[str, Any]] = field(default_factory=list)
    addresses: list[dict[str, Any]] = field(default_factory=list)
    duplicate_ids: dict[str, list[str]] = field(default_factory=dict)
    streams: list[KeptStream] = field(default_factory=list)
    message_id: int = 0
    queue_id: int = 0
    stream: int = 0
    """Pages of streams up to this number may reappear, so these numbers are not reused."""
    configured: list[dict[str, Any]] = field(default_factory=list)
    """What operators configured besides addresses and queues."""

    def message_count(self, queue_id: int) -> int:
        """How many messages a queue has, in memory and in pages."""
        in_pages = sum(each.share_left(queue_id, page).count for each in self.streams for page in each.pages)
        return len(self.messages.get(queue_id, ())) + in_pages


@mypyc_attr(allow_interpreted_subclasses=True)
class Actor(ABC):
    """A session or consumer, as a retained log knows it. Opaque to the core."""

    @abstractmethod
    def named(self) -> int:
        """Its number in the log, for a record that is written next and names it."""


@dataclass(frozen=True, slots=True)
class Depth:
    """The persistent messages in one durable queue: how many, their encoded size in bytes, and how many of them are in
    delivery or scheduled.
    """

    queue_id: int
    count: int
    size_bytes: int
    delivering_count: int
    scheduled_count: int


@mypyc_attr(allow_interpreted_subclasses=True)
class AuditLog:
    """What only readers of a retained log want to know. This base class ignores everything.

    A restart needs none of it. Sessions are identified by the number of their connection (``Message.origin``), queues
    by their number.
    """

    is_enabled: bool = False
    """Is the audit log recorded? If so, the log also contains persistent messages that no durable queue takes."""

    def session_opened(self, origin: int, fields: dict[str, str]) -> None:
        """A session was opened; ``fields`` describe its client. They are recorded when a record first names the
        session.
        """
        return

    def session_closed(self, origin: int) -> None:
        """A session ended; no record names it after this turn."""
        return

    def consumer_opened(self, origin: int, queue_id: int, fields: dict[str, Any]) -> Actor | None:
        """A session's consumer was attached to a durable queue; ``fields`` describe it. Returns the actor to pass with
        records about it, or None if no audit log is recorded.
        """
        return None

    def consumer_closed(self, actor: Actor, *, failed: bool) -> None:
        """A consumer was detached; its unsettled messages returned to the queue. ``failed``: its connection was lost. A
        transaction may still name it.
        """
        return

    def session_number(self, origin: int) -> int:
        """The log's number of the session on a connection; 0: the broker itself, or no audit log is recorded."""
        return 0

    def known_number(self, origin: int) -> int:
        """The log's number of the session on a connection, if a record has named it by now; else 0."""
        return 0

    def delivered(self, queue_id: int, messages: list[Message], consumer: Actor) -> int:
        """These persistent messages were sent to a consumer of a durable queue. Returns the lsn of the record."""
        return 0

    def published_in_page(self, message: Message, queue_ids: list[int], due_ms: int, place: int) -> int:
        """Like ``RecordLog.published``, for a message in a page, at ``place`` of its address' stream (0: no queue kept
        it).
        """
        return 0

    def refused(self, address: str, policy: str, message: Message) -> None:
        """An address refused a message: it was full (``policy`` is ``drop``, ``fail`` or ``reject``), or the message's
        duplicate id was known (``duplicate``).
        """
        return

    def end_turn(self) -> bool:
        """Everything in the turn was reported. Returns whether ``depths`` must be called."""
        return False

    def depths(self, depths: list[Depth]) -> int:
        """The current content of durable queues, without empty ones. Returns the lsn of the record."""
        return 0


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordLog(ABC):
    """Where the core records what a crash must not undo.

    Only persistent messages on durable queues are recorded. Queues are identified by number. Every method only gathers,
    and returns the lsn of its record. Times are epoch milliseconds.
    """

    last_lsn: int
    """The last lsn assigned."""
    now_ms: int
    """The time of the turn in epoch milliseconds, for readers of the log."""
    message_id: int
    """The highest message id assigned so far; the broker sets it before the turn is sealed."""
    queue_id: int
    """The highest queue number assigned so far."""
    audit: AuditLog
    """What only readers of the log want to know."""
    has_past: bool = False
    """Can the broker read what was published before, so that new queues may get it?"""

    @abstractmethod
    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        """A message was put on these queues; ``due_ms`` above 0: it is scheduled for then."""

    def published_run(self, messages: list[Message], queue_id: int, due_ms: int) -> None:
        """Messages were put on one queue, in order; each gets the lsn of its record."""
        for message in messages:
            message.lsn = self.published(message, [queue_id], due_ms)

    def recalled(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        """A message of the past, published at ``message.lsn``, was put on these queues, which did not have it;
        ``due_ms`` as for ``published``. Only a log with retention has a past.
        """
        return 0

    def living(self, message_id: int) -> Message | None:
        """The message of this id, if a restart would bring it back from memory (and not from a page) to some queue."""
        return None

    def has(self, queue_id: int, message_id: int) -> bool:
        """Would a restart bring this message back to this queue from memory (and not from a page)?"""
        return False

    @abstractmethod
    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        """A queue is done with messages, for one of the reasons in ``core/order/entry.py``. ``consumer`` acknowledged
        them, or failed the last attempt (None: no consumer was involved).
        """

    @abstractmethod
    def attempted(
        self,
        queue_id: int,
        message: Message,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        """A delivery to a consumer failed for the ``attempts``-th time; the causes are in ``core/order/entry.py``.
        ``due_ms`` above 0: the next one waits until then.
        """

    @abstractmethod
    def fell_due(self, queue_id: int, messages: list[Message]) -> int:
        """Scheduled messages took their places at the head of the queue, in this order."""

    # Messages in pages. These methods are not abstract: a broker without a journal has pages, too, but nothing of them
    # survives.

    def page_opened(self, page: Page, address: str) -> int:
        """The stream of an address got a new page."""
        return self.last_lsn

    def paged(self, page: Page) -> int:
        """A page grew to its current count and size. Anything after that in its file does not count."""
        return self.last_lsn

    def page_settled(
        self, queue_id: int, messages: list[PagedMessage], reason: str, consumer: Actor | None = None
    ) -> int:
        """A durable queue is done with persistent messages of one page; see ``settled``."""
        return self.last_lsn

    def page_purged(self, queue_id: int, page: Page, kept: list[PagedMessage], reason: str) -> int:
        """A durable queue is done with a page, except for the persistent messages ``kept``, which consumers hold."""
        return self.last_lsn

    def page_attempted(
        self,
        queue_id: int,
        message: PagedMessage,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        """A delivery of a message in a page failed; see ``attempted``."""
        return self.last_lsn

    def page_dropped(self, page: Page) -> int:
        """Every queue is done with a page."""
        return self.last_lsn

    # Bindings.

    @abstractmethod
    def address_changed(self, fields: dict[str, Any]) -> int:
        """An address was created, changed, or (``deleted``) removed."""

    def configured(self, fields: dict[str, Any]) -> int:
        """An operator configured something of a ``kind`` and ``name``, or (``deleted``) undid it."""
        return self.last_lsn

    @abstractmethod
    def queue_changed(self, fields: dict[str, Any]) -> int:
        """A durable queue was created or changed."""

    @abstractmethod
    def queue_deleted(self, queue_id: int) -> int:
        """A durable queue was removed. Its messages are settled after this record, and no restart finds them."""

    @abstractmethod
    def duplicate_id(self, address: str, duplicate_id: str) -> int:
        """An address received a duplicate id. If ``address`` is empty, it is the id of a committed transaction."""

    @abstractmethod
    def begin_group(self, *, transactional: bool = False) -> None:
        """All records until the matching ``end_group`` survive a crash together or not at all. Groups may nest; the
        outermost counts. ``transactional``: it is a client's transaction.
        """

    @abstractmethod
    def end_group(self) -> int:
        """The group is complete. Returns the lsn of its record, or 0 for an inner or empty group."""

    @abstractmethod
    def close_groups(self) -> None:
        """End all open groups, because a step failed inside them, so that they do not contain later records."""


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class Durability(ABC):
    """Makes the records of a ``RecordLog`` durable. Whoever runs turns calls it."""

    durable_lsn: int
    """Everything up to this lsn survives a crash."""
    inline: bool
    """May ``seal`` wait for the disk? The turn sets it if no other client would wait, too. That saves two changes of
    thread.
    """
    was_inline: bool
    """Did the last ``seal`` wait for the disk?"""

    @property
    def failure(self) -> ArtemisError | None:
        """Why nothing more becomes durable, or None. After a failure no output leaves, and the broker stops."""
        return None

    @property
    def has_pending(self) -> bool:
        """Is something recorded that is not durable yet?"""
        return False

    @property
    def sync_times(self) -> Histogram | None:
        """How long it took to write and sync each batch; None if nothing is stored."""
        return None

    def counts(self) -> dict[str, int]:
        """Figures for the metrics, by the last part of their name."""
        return {}

    @abstractmethod
    def poll(self) -> None:
        """Note what has become durable."""

    @abstractmethod
    def seal(self) -> None:
        """The turn is over: hand over what was gathered, to be made durable."""


@dataclass(slots=True)
class PagedEntry:
    """A message of a queue as found in a page. ``due_ms`` above 0: it is scheduled for then (epoch milliseconds).
    ``end`` is the offset of the next one.
    """

    message: PagedMessage
    due_ms: int
    end: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Chunk(ABC):
    """A fetched part of a page. ``page`` and ``offset`` are as requested; the next part begins at ``end``. Offsets are
    bytes in the page's file.
    """

    page: Page
    offset: int
    end: int

    @abstractmethod
    def read(self, queue_id: int, known: dict[int, PagedMessage], account: Account) -> Iterator[PagedEntry]:
        """The messages of one queue in this part, in order. A message that is already in memory (``known``, by place)
        is not created again. Transient messages from before a restart are skipped.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class PageLog(ABC):
    """Stores messages that have no room in memory, as bytes in page files, and fetches them again.

    Nothing here waits for a disk: writes leave with the turn's batch, and requested parts arrive in a later turn.
    """

    backlog_bytes: int
    """How many bytes are gathered and not yet written. Senders wait when it is too much, because pages save memory."""

    @abstractmethod
    def open(self, page: Page, address: str) -> int:
        """Begin a page; returns how many bytes precede its first message."""

    @abstractmethod
    def encode(self, message: Message, place: int, queue_ids: list[int], due_ms: int) -> bytes:
        """The bytes of a message in a page; ``due_ms`` above 0: it is scheduled for then (epoch milliseconds)."""

    @abstractmethod
    def append(self, page: Page, record: bytes, *, durable: bool) -> None:
        """Append an encoded message. ``durable``: confirmations of it wait for the disk."""

    @abstractmethod
    def request(self, page: Page, offset: int) -> None:
        """Request the part of a page that begins at ``offset``. ``arrivals`` returns it later, once that part is
        written.
        """

    @abstractmethod
    def arrivals(self) -> list[Chunk]:
        """The parts fetched since the last call."""

    @abstractmethod
    def drop(self, page: Page) -> None:
        """A page is no longer needed. Its file is removed when everything recorded so far is durable."""


@mypyc_attr(allow_interpreted_subclasses=True)
class MemoryLog(RecordLog, Durability):
    """Stores nothing, for a broker without persistence: every lsn is 0, so every output may leave at once."""

    def __init__(self) -> None:
        self.durable_lsn = 0
        self.last_lsn = 0
        self.now_ms = 0
        self.message_id = 0
        self.queue_id = 0
        self.audit = AuditLog()
        self.inline = False
        self.was_inline = False

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        return 0

    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        return 0

    def attempted(
        self,
        queue_id: int,
        message: Message,
        attempts: int,
        due_ms: int,
        consumer: Actor | None = None,
        cause: str = "",
    ) -> int:
        return 0

    def fell_due(self, queue_id: int, messages: list[Message]) -> int:
        return 0

    def address_changed(self, fields: dict[str, Any]) -> int:
        return 0

    def queue_changed(self, fields: dict[str, Any]) -> int:
        return 0

    def queue_deleted(self, queue_id: int) -> int:
        return 0

    def duplicate_id(self, address: str, duplicate_id: str) -> int:
        return 0

    def begin_group(self, *, transactional: bool = False) -> None:
        return

    def close_groups(self) -> None:
        return

    def end_group(self) -> int:
        return 0

    def poll(self) -> None:
        return

    def seal(self) -> None:
        return
