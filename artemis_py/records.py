"""The core's only view of storage: what must be remembered, in order, and what order means.

Each record appended gets the next log sequence number (lsn). An output that depends on a record carries its lsn and
leaves when ``lsn <= durable_lsn``. Storage never calls the core back.

The core tells a ``RecordLog`` what a crash must not undo, and its ``Story`` what only readers of a retained log want to
know. Turns make durable what was told (``Durability``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mypy_extensions import mypyc_attr, trait

from artemis_py.errors import ArtemisError
from artemis_py.message import Account, Message
from artemis_py.paged import Page, PagedMessage, Settled


@dataclass(slots=True)
class Survivor:
    """A message that a queue still needs after a restart."""

    message: Message
    attempts: int = 0
    due_ms: int = 0


@dataclass(slots=True)
class KeptStream:
    """The pages of one address that a restart finds. ``settled`` tells by queue number and page number what a queue is
    done with; ``attempts`` by queue number and place: failed deliveries, when the next may come.
    """

    number: int
    address: str
    pages: list[Page] = field(default_factory=list)
    settled: dict[tuple[int, int], Settled] = field(default_factory=dict)
    attempts: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def page_of(self, place: int) -> Page | None:
        """The page that has a place. ``pages`` have to be in order."""
        index = bisect_right(self.pages, place, key=_first_place) - 1
        page = self.pages[index] if index >= 0 else None
        return page if page is not None and place < page.end_place else None


def _first_place(page: Page) -> int:
    return page.first_place


@dataclass(slots=True)
class RecoveredState:
    """What a log gives back at a start: messages by queue number, each queue's in order, what is in pages, and the
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
    """Pages of streams up to this number may come back: it is not given again."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Actor(ABC):
    """A session, or a consumer of one, as a log knows it that is retained. Only the log looks into it."""

    @abstractmethod
    def named(self) -> int:
        """Its number in the log, for the next record, which will name it."""


@dataclass(frozen=True, slots=True)
class Depth:
    """What one durable queue holds of persistent messages: all of them, and of these those in delivery and scheduled
    ones. Bytes are encoded sizes.
    """

    queue_id: int
    count: int
    size_bytes: int
    delivering_count: int
    scheduled_count: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Story:
    """What only readers of a log want to know that is retained; a restart needs none of it. This one is told to nobody.

    Sessions are known by the number of their connection (``Message.origin``), queues by their number.
    """

    is_told: bool = False
    """Does anybody read it? Then the log also has persistent messages that no durable queue takes."""

    def session_opened(self, origin: int, fields: dict[str, str]) -> None:
        """A client was greeted; ``fields`` say who it is. It is written down with the first record that names it."""
        return

    def session_closed(self, origin: int) -> None:
        """A client is gone; nothing names it any more when the turn is over."""
        return

    def consumer_opened(self, origin: int, queue_id: int, fields: dict[str, str]) -> Actor | None:
        """A session's consumer came to a durable queue; ``fields`` say what it wants. Returns what the log is to be
        told of it with; None when nobody cares.
        """
        return None

    def consumer_closed(self, actor: Actor, *, failed: bool) -> None:
        """A consumer left; what it held went back to its queue. ``failed``: its connection was lost. It may still be
        named, by a transaction.
        """
        return

    def session_number(self, origin: int) -> int:
        """The log's number of the session on a connection; 0: the broker itself, or nobody cares."""
        return 0

    def delivered(self, queue_id: int, messages: list[Message], consumer: Actor) -> int:
        """A durable queue's consumer was sent these persistent messages. Returns the lsn of the record."""
        return 0

    def published_in_page(self, message: Message, queue_ids: list[int], due_ms: int, place: int) -> int:
        """As ``RecordLog.published``, of a message that lives in a page, at ``place`` of its address' stream (0: no
        queue kept it).
        """
        return 0

    def refused(self, address: str, policy: str, message: Message) -> None:
        """A message did not come into an address: it was full and has the policy ``drop``, ``fail`` or ``reject``, or
        (``duplicate``) had seen its duplicate id.
        """
        return

    def end_turn(self) -> bool:
        """Everything of the turn was told. Returns whether ``depths`` should be."""
        return False

    def depths(self, depths: list[Depth]) -> int:
        """What durable queues hold now, the empty ones left out. Returns the lsn of the record."""
        return 0


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordLog(ABC):
    """Where the core writes what a crash must not undo.

    Only durable messages on durable queues are written. Queues are known by number. Every method only gathers, and
    returns the lsn of what it wrote.
    """

    last_lsn: int
    """The lsn given last."""
    now_ms: int
    """The time of the turn, for whoever reads the log later."""
    message_id: int
    """The highest message id given so far; the broker sets it before the turn is sealed."""
    queue_id: int
    """The highest queue number given so far."""
    story: Story
    """What only readers want to know."""

    @abstractmethod
    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        """A message went to these queues; ``due_ms`` above 0: as a scheduled one."""

    def published_run(self, messages: list[Message], queue_id: int, due_ms: int) -> None:
        """Messages went to one queue, in order; each gets the lsn of its record."""
        for message in messages:
            message.lsn = self.published(message, [queue_id], due_ms)

    @abstractmethod
    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        """A queue is done with messages, for one of the reasons in ``core/order/entry.py``; ``consumer`` acknowledged
        them, or failed for the last time (None: nobody had to do with it).
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
        ``due_ms`` above 0: the next one waits.
        """

    @abstractmethod
    def fell_due(self, queue_id: int, messages: list[Message]) -> int:
        """Scheduled messages took their places at the head of the queue, in this order."""

    # What happens to messages in pages. None of it is abstract: a broker without a journal has pages, too, but nothing
    # of them survives.

    def page_opened(self, page: Page, address: str) -> int:
        """The stream of an address got a new page."""
        return self.last_lsn

    def paged(self, page: Page) -> int:
        """A page grew to the counts and sizes that it has now. What stands behind them does not count."""
        return self.last_lsn

    def page_settled(
        self, queue_id: int, messages: list[PagedMessage], reason: str, consumer: Actor | None = None
    ) -> int:
        """A durable queue is done with persistent messages of one page; see ``settled``."""
        return self.last_lsn

    def page_purged(self, queue_id: int, page: Page, kept: list[PagedMessage], reason: str) -> int:
        """A durable queue is done with all of a page but the persistent messages ``kept``, which consumers hold."""
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
        """A delivery of a message that is in a page failed; see ``attempted``."""
        return self.last_lsn

    def page_dropped(self, page: Page) -> int:
        """Every queue is done with a page."""
        return self.last_lsn

    # Bindings.

    @abstractmethod
    def address_changed(self, fields: dict[str, Any]) -> int:
        """An address was created, changed, or (``deleted``) removed."""

    @abstractmethod
    def queue_changed(self, fields: dict[str, Any]) -> int:
        """A durable queue was created or changed."""

    @abstractmethod
    def queue_deleted(self, queue_id: int) -> int:
        """A durable queue was removed. What it held is settled behind this, and no restart finds it."""

    @abstractmethod
    def duplicate_id(self, address: str, duplicate_id: str) -> int:
        """An address has seen a duplicate id; without a name, a transaction was committed under it."""

    @abstractmethod
    def begin_group(self, *, transactional: bool = False) -> None:
        """What follows, until the matching ``end_group``, survives a crash together or not at all. Groups may nest: the
        outermost counts.
        """

    @abstractmethod
    def end_group(self) -> int:
        """The group is complete."""

    @abstractmethod
    def close_groups(self) -> None:
        """Somebody broke off in the middle of groups: they end here, so that what others write is no part of them."""


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class Durability(ABC):
    """Makes durable what a ``RecordLog`` was told, for whoever runs turns."""

    durable_lsn: int
    """Everything up to this lsn survives a crash."""
    inline: bool
    """May ``seal`` wait for the disk? Set by the turn when nobody else would wait with it. That saves two changes of
    thread.
    """
    was_inline: bool
    """Did the last ``seal`` wait for the disk?"""

    @property
    def failure(self) -> ArtemisError | None:
        """Why nothing more becomes durable; the broker then stops, and no output leaves."""
        return None

    @property
    def has_pending(self) -> bool:
        """Is something written that is not durable yet?"""
        return False

    def counts(self) -> dict[str, int]:
        """Figures for the metrics, by the last part of their name."""
        return {}

    @abstractmethod
    def poll(self) -> None:
        """Take note of what has become durable."""

    @abstractmethod
    def seal(self) -> None:
        """The turn is over: hand what was gathered to whoever makes it durable."""


@dataclass(slots=True)
class PagedEntry:
    """A message of a queue as it was found in a page; ``due_ms`` above 0: scheduled. ``end`` is where the next one
    stands.
    """

    message: PagedMessage
    due_ms: int
    end: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Chunk(ABC):
    """A part of a page, as it was fetched. ``page`` and ``offset`` say what was asked for; the next part begins at
    ``end``.
    """

    page: Page
    offset: int
    end: int

    @abstractmethod
    def read(self, queue_id: int, known: dict[int, PagedMessage], account: Account) -> Iterator[PagedEntry]:
        """The messages of one queue in it, in order. One that is in memory already (``known``, by place) is not made
        again. Transient messages from before a restart are passed over.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class PageLog(ABC):
    """Where addresses put what finds no room in memory, and fetch it again: bytes in files, by page.

    Nothing here waits for a disk: writes leave with the turn's batch, and what was asked for arrives in a later turn.
    """

    backlog_bytes: int
    """Gathered and not written yet. Who adds to pages minds it: memory is what pages are to save."""

    @abstractmethod
    def open(self, page: Page, address: str) -> int:
        """Begin a page; returns how many bytes stand before its first message."""

    @abstractmethod
    def encode(self, message: Message, place: int, queue_ids: list[int], due_ms: int) -> bytes:
        """A message as stored in a page."""

    @abstractmethod
    def append(self, page: Page, record: bytes, *, durable: bool) -> None:
        """Put an encoded message behind the others. ``durable``: whoever is told of it waits for the disk."""

    @abstractmethod
    def request(self, page: Page, offset: int) -> None:
        """Ask for a part of a page from ``offset`` on; ``arrivals`` will have it, once that much is written."""

    @abstractmethod
    def arrivals(self) -> list[Chunk]:
        """What has arrived since the last call."""

    @abstractmethod
    def drop(self, page: Page) -> None:
        """Nobody needs a page any more; its file goes when everything written to the log so far is durable."""


@mypyc_attr(allow_interpreted_subclasses=True)
class MemoryLog(RecordLog, Durability):
    """Keeps nothing: every lsn is 0, which every connection may release at once. For a broker without persistence."""

    def __init__(self) -> None:
        self.durable_lsn = 0
        self.last_lsn = 0
        self.now_ms = 0
        self.message_id = 0
        self.queue_id = 0
        self.story = Story()
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
