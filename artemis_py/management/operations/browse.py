"""Operations that browse, count and show messages of a queue, and the scan through a queue, which others use, too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from artemis_py.core.budget import Budget
from artemis_py.core.dead_letters import (
    Origin,
    origin_of,
    original_number,
    retried_count,
)
from artemis_py.core.operations.scan import (
    BEHIND,
    DELIVERING,
    PAGED,
    READY,
    SCHEDULED,
    STATES,
    LocatedMessage,
    MessageFilter,
    QueueScan,
    ScanCursor,
)
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Step, Until
from artemis_py.errors import BadRequestError, NotFoundError
from artemis_py.management.listing import (
    EPOCH_MS,
    FLAG,
    MAP,
    NUMBER,
    PAGE_SIZE_MAX,
    TEXT,
    Field,
    Kind,
    ListQuery,
    Selection,
    Value,
    query_of,
)
from artemis_py.management.managed import Arguments, Download, Managed, Steps
from artemis_py.management.operation import TEXTS, VIEW, Argument, Operation
from artemis_py.management.operations.arguments import (
    FILTER,
    MESSAGE,
    QUEUE,
    WHICH,
    message_filter_of,
    queue_of,
    states_of,
)
from artemis_py.message import HeaderName, LargeBody, Message, header_name

TEXT_MAX: Final = 65_536
"""So many characters of a header or body are shown where the settings name no limit."""
BODY_SHOWN_MAX: Final = 100_000
"""A body of more bytes is not shown with its message; it can be fetched by itself."""
_HEADERS_SHOWN_MAX: Final = 65_536
_TEXT_TYPE: Final = 3
_BYTES_TYPE: Final = 4
"""Artemis' numbers for text messages and bytes messages."""
_USER: Final = HeaderName("JMSXUserID")
_CONTENT_TYPE: Final = HeaderName("content-type")

MessageFields = Mapping[str, Value]
"""The fields of a message by name, as they were when the scan met it."""


def failed_count(queue: Queue, located: LocatedMessage) -> int:
    """How many deliveries of a message have failed."""
    delivery_attempts = queue.contents.delivery_attempts
    return (
        located.entry.attempts
        if delivery_attempts is None
        else max(located.entry.attempts, delivery_attempts.count_of(located.message.id))
    )


@dataclass(frozen=True, slots=True)
class MessageView:
    """Shows messages of a queue: ``limit`` characters of each header and body, at ``now_ms``."""

    queue: Queue
    limit: int
    now_ms: int

    @staticmethod
    def at(queue: Queue, now_ms: int) -> MessageView:
        """With the limit that the settings of its address name (``management-message-attribute-size-limit``)."""
        limit = queue.address.settings.management_message_attribute_size_limit
        return MessageView(queue, min(limit, TEXT_MAX) if limit >= 0 else TEXT_MAX, now_ms)

    def row(self, located: LocatedMessage) -> dict[str, Any]:
        """The fields of ``MESSAGES``."""
        message, entry, head, holder = located.message, located.entry, located.message.head, located.holder
        origin = origin_of(head) if b"_AMQ_ORIG_ADDRESS:" in head.block else Origin(None, None, None)
        waits_until_ms, held_by = self._held_by(located)
        return {
            "messageID": message.id,
            "address": head.address,
            "type": _BYTES_TYPE if head.sized else _TEXT_TYPE,
            "priority": head.priority,
            "durable": head.persistent,
            "timestamp": message.timestamp_ms,
            "expiration": message.expires_ms,
            "redelivered": entry.redelivered,
            "deliveryCount": self._delivery_count(located),
            "persistentSize": message.size_bytes,
            "largeMessage": isinstance(message.body, LargeBody),
            "state": located.state,
            "waitsUntil": waits_until_ms,
            "heldBy": held_by,
            "consumer": 0 if holder is None else holder.id,
            "connection": 0 if holder is None else holder.reader.connection,
            "group": self._group_of(message),
            "sentBy": message.origin,
            "validatedUser": head.first(_USER),
            "contentType": head.first(_CONTENT_TYPE),
            "originalAddress": origin.address,
            "originalQueue": origin.queue,
            "originalMessageID": 0 if origin.address is None else original_number(head),
            "cause": origin.cause,
            "retried": retried_count(head),
            "PropertiesText": self._properties(message),
            "BodyPreview": self._preview(message),
        }

    def whole(self, located: LocatedMessage) -> dict[str, Any]:
        """The fields of ``WHOLE``: nothing is cut, and what is too long for that is not shown."""
        message = located.message
        fields = MessageView(self.queue, TEXT_MAX, self.now_ms).row(located)
        body = _text_of(message)
        headers = message.head.properties if message.head.size_bytes <= BODY_SHOWN_MAX else {}
        return {**fields, "bodySize": len(message.body), "body": body, "headers": headers}

    def _delivery_count(self, located: LocatedMessage) -> int:
        returned = max(located.entry.returned, failed_count(self.queue, located))
        return returned + (located.state == DELIVERING)

    def _held_by(self, located: LocatedMessage) -> tuple[int, str | None]:
        """Until when (epoch ms; 0: unknown) and for what the message waits."""
        contents, entry, holder = self.queue.contents, located.entry, located.holder
        if holder is not None:
            return self._with_holder(located, f"consumer {holder.id} of connection {holder.reader.connection}")
        if located.state == SCHEDULED:
            why = "redelivery delay" if entry.attempts else "its schedule"
            if not entry.attempts and contents.holds and entry.message.id in contents.held_back:
                why = "hold-on-publish"
            return contents.scheduled_dates.of(entry.message.id), why
        if located.state == PAGED and located.backlog is not None and located.found is not None:
            due_ms = located.backlog.due_ms(located.found)
            return (due_ms, "its schedule") if due_ms > self.now_ms else (0, None)
        if located.state == BEHIND and contents.pending is not None:
            barriers = contents.pending.threshold.makes_barriers
            return 0, "barrier-expression" if barriers else "target-queue-depth"
        return 0, self._group_block(located.message)

    def _with_holder(self, located: LocatedMessage, held_by: str) -> tuple[int, str]:
        leases = self.queue.contents.leases
        begun_ms = -1 if leases is None else leases.begun_ms(located.message.id)
        if leases is None or begun_ms < 0 or not leases.period_ms:
            return 0, held_by
        ends_ms = self.queue.host.clock.date_ms(begun_ms + leases.period_ms)
        ends = datetime.fromtimestamp(ends_ms // 1000, UTC)
        return ends_ms, f"{held_by}, under a lease until {ends:%Y-%m-%dT%H:%M:%SZ}"

    def _group_of(self, message: Message) -> str | None:
        groups = self.queue.grouping.groups
        return None if groups is None else groups.rule.group_of(message)

    def _group_block(self, message: Message) -> str | None:
        groups = self.queue.grouping.groups
        key = None if groups is None else groups.rule.group_of(message)
        group = None if groups is None or key is None else groups.table.groups.get(key)
        if group is None:
            return None
        if group.aside:
            return "its group, of which a message waits for another attempt"
        return None if group.owner is None else f"its group, which belongs to consumer {group.owner.id}"

    def headers(self, message: Message) -> dict[str, str]:
        """The headers, each cut at the limit; none if they are very large."""
        head = message.head
        if head.size_bytes > _HEADERS_SHOWN_MAX:
            return {}
        return {name: cut(value, self.limit) for name, value in head.properties.items()}

    def _properties(self, message: Message) -> str:
        if message.head.size_bytes > _HEADERS_SHOWN_MAX:
            return f"{message.head.size_bytes} bytes of headers"
        parts = [f"{name}={value}" for name, value in self.headers(message).items()]
        return cut("{" + ", ".join(parts) + "}", TEXT_MAX)

    def _preview(self, message: Message) -> str | None:
        body = message.body
        if isinstance(body, LargeBody):
            return None
        text = body[: 4 * self.limit + 4].decode(errors="replace")
        return cut(text, self.limit)


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and a sign that there is more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def _content_type_of(message: Message) -> str | None:
    """The content-type that the sender has named."""
    return message.head.first(_CONTENT_TYPE)


def _text_of(message: Message) -> str | None:
    """The body, if it is a text and not too long."""
    body = message.body
    if isinstance(body, LargeBody) or len(body) > BODY_SHOWN_MAX:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _field(name: str, type: str, sentence: str, unit: str = "", *, is_brief: bool = False) -> Field[MessageFields]:
    return Field(name, type, sentence, lambda fields: fields[name], unit, is_brief)


MESSAGES: Final[Kind[MessageFields]] = Kind(
    "message",
    "messages",
    [
        _field("messageID", NUMBER, "The message's number", is_brief=True),
        _field("address", TEXT, "The address to which it was sent"),
        _field("type", NUMBER, "3: text; 4: bytes, because the sender gave a content-length"),
        _field("priority", NUMBER, "Its priority, 0 to 9", is_brief=True),
        _field("durable", FLAG, "Does it survive a restart?", is_brief=True),
        _field("timestamp", NUMBER, "When it came to the broker", EPOCH_MS, is_brief=True),
        _field("expiration", NUMBER, "When it expires; 0: never", EPOCH_MS),
        _field("redelivered", FLAG, "Was it sent to a consumer before?"),
        _field(
            "deliveryCount", NUMBER, "How often it was sent to a consumer, as JMSXDeliveryCount says", is_brief=True
        ),
        _field("persistentSize", NUMBER, "Headers and body", "bytes", is_brief=True),
        _field("largeMessage", FLAG, "Has its body a file of its own?"),
        _field(
            "state",
            TEXT,
            "delivering (a consumer has it), ready, behind (not active yet), paged, or scheduled",
            is_brief=True,
        ),
        _field("waitsUntil", NUMBER, "Until when it waits for its time or its lease ends; 0: it does not", EPOCH_MS),
        _field("heldBy", TEXT, "What it waits for, or who has it; null: a consumer may have it", is_brief=True),
        _field("consumer", NUMBER, "The number of the consumer that has it; 0: none"),
        _field("connection", NUMBER, "The number of that consumer's connection; 0: none"),
        _field("group", TEXT, "The group that it is in"),
        _field("sentBy", NUMBER, "The number of the connection that sent it; 0: not known, or the broker itself"),
        _field("validatedUser", TEXT, "The sender's login, where populate-validated-user notes it"),
        _field("contentType", TEXT, "The content-type that the sender named"),
        _field("originalAddress", TEXT, "Of a copy: the address of the original"),
        _field("originalQueue", TEXT, "Of a copy: the queue of the original"),
        _field("originalMessageID", NUMBER, "Of a copy: the number of the original; 0: it is none"),
        _field("cause", TEXT, "Of a dead or expired message: why its original is gone"),
        _field("retried", NUMBER, "How often an operator sent it back to where it came from"),
        _field("PropertiesText", TEXT, "Its headers, each cut at management-message-attribute-size-limit"),
        _field("BodyPreview", TEXT, "The beginning of its body, cut likewise; null: the body is in a file"),
    ],
)

WHOLE: Final[Kind[MessageFields]] = Kind(
    "message",
    "messages",
    [
        *MESSAGES.fields.values(),
        _field("bodySize", NUMBER, "The size of its body", "bytes"),
        _field("body", TEXT, "Its body; null: it is not UTF-8, or larger than 100,000 bytes, and must be fetched"),
        _field("headers", MAP, "Its headers by name; empty if they are larger than 100,000 bytes"),
    ],
)


# ---- going through a queue -----------------------------------------------------------------------


_STEP_UNITS: Final = 200
"""What a step may cost, in units of a turn."""
_ScanSteps = Generator[Until | None, None, int]


def scan_messages(
    managed: Managed,
    queue: Queue,
    states: Collection[str],
    message_filter: MessageFilter,
    visit: Callable[[LocatedMessage, Budget], bool],
) -> _ScanSteps:
    """Go through a queue: call ``visit`` with each message that is in one of the states and matches the filter, until
    it returns True. Returns how many messages were looked at.
    """
    return (
        yield from continue_scan(
            managed, queue, QueueScan(queue, states, message_filter.ids or ()), message_filter, visit
        )
    )


def continue_scan(
    managed: Managed,
    queue: Queue,
    scan: QueueScan,
    message_filter: MessageFilter,
    visit: Callable[[LocatedMessage, Budget], bool],
) -> _ScanSteps:
    """The same with a scan of this queue, which it closes."""
    budget = Budget()
    try:
        is_enough = False
        while not (scan.is_done or is_enough or queue.deleted):
            budget.refill(_STEP_UNITS)
            located = scan.next(budget)
            while located is not None and not is_enough:
                is_enough = message_filter.matches(located.message, budget) and visit(located, budget)
                located = None if is_enough or budget.is_spent else scan.next(budget)
            yield managed.in_a_moment() if scan.is_waiting else None
        return scan.looked_count
    finally:
        scan.close()


# ---- browse, count and show ----------------------------------------------------------------------


Made = TypeVar("Made")
_ROW_UNITS: Final = 12
"""What it costs to show a message."""
_AHEAD_MAX: Final = 50_000
"""So many messages are looked at behind a full page to count those that match, too."""
_GROUPS_MAX: Final = 10_000
_VALUE_MAX: Final = 200
_LOOKED_AT: Final = Field[Any]("lookedAt", NUMBER, "How many messages were looked at", lambda _: 0)
_IS_WHOLE: Final = Field[Any]("isWhole", FLAG, "Were all looked at? Else more may match than are counted", lambda _: 0)
_NEXT: Final = Field[Any]("next", TEXT, "As after it shows what is behind these; null: nothing is", lambda _: "")
AFTER: Final = Argument(
    "after", TEXT, "go on behind a page: its next; without it from the beginning. page must be 1 then", ""
)


def _browse(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    states, message_filter = states_of(arguments["which"]), message_filter_of(arguments)
    size = arguments["size"] or min(queue.address.settings.management_browse_page_size, PAGE_SIZE_MAX)
    query = query_of(MESSAGES, page=arguments["page"], size=size, fields=arguments["fields"])
    after = arguments["after"]
    if after and query.page > 1:
        raise BadRequestError("page counts from the beginning, and after goes on from a cursor: give one of them")
    scan = managed.cursors.scan(queue, states, message_filter, after)
    page = _Page(
        queue, query, managed.now_ms(), scan, known=_known_count(queue, states, message_filter), counts=not after
    )
    page.looked_count = yield from continue_scan(managed, queue, scan, message_filter, page.visit)
    scan_cursor = page.scan_cursor
    extra = {
        "lookedAt": page.looked_count,
        "isWhole": not page.is_cut_short,
        "next": None if scan_cursor is None else managed.cursors.text_of(queue, states, scan_cursor),
    }
    return Selection(MESSAGES, query, page.count, page.rows, extra)


class _Page:
    """A page of messages, each as the scan met it. ``known``: how many match; -1: unknown, so that the page counts them
    if ``counts`` is set.
    """

    def __init__(
        self, queue: Queue, query: ListQuery, now_ms: int, scan: QueueScan, *, known: int, counts: bool
    ) -> None:
        self.scan_cursor: ScanCursor | None = None
        """Where the page ends; None: it is not full, so nothing follows."""
        self.rows: list[dict[str, Any]] = []
        self.looked_count = 0
        self.is_cut_short = False
        self._view = MessageView.at(queue, now_ms)
        self._query = query
        self._scan = scan
        self._known = known
        self._counts = counts and known < 0
        self._matching = 0
        self._ahead = Budget()
        self._ahead.refill(_AHEAD_MAX)

    @property
    def count(self) -> int:
        """How many match, as far as it is known."""
        return max(self._known, self._matching)

    def visit(self, located: LocatedMessage, budget: Budget) -> bool:
        """A message that matches. Returns True when this was enough."""
        self._matching += 1
        if self._matching <= self._query.skipped:
            return False
        if len(self.rows) < self._query.size:
            self.rows.append(self._view.row(located))
            budget.spend(_ROW_UNITS)
            is_full = len(self.rows) == self._query.size
            if is_full:
                self.scan_cursor = self._scan.scan_cursor
                self.is_cut_short = self._known < 0 and not self._counts
            return is_full and not self._counts
        self._ahead.spend(1)
        self.is_cut_short = self._ahead.is_spent
        return self.is_cut_short


def _known_count(queue: Queue, states: tuple[str, ...], message_filter: MessageFilter) -> int:
    """How many messages match; -1: only a scan can tell."""
    if not message_filter.is_all:
        return -1
    contents = queue.contents
    if set(states) == set(STATES):
        return contents.message_count
    pending = 0 if contents.pending is None else contents.pending.count
    counts = {
        DELIVERING: contents.counters.held_count,
        READY: contents.order.count,
        BEHIND: pending,
        PAGED: contents.paged.count,
        SCHEDULED: len(contents.scheduled),
    }
    return sum(counts[state] for state in set(states))


def _count(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    states, message_filter, name = states_of(arguments["which"]), message_filter_of(arguments), arguments["group-by"]
    known = -1 if name else _known_count(queue, states, message_filter)
    if known >= 0:
        yield None
        return {"count": known, "lookedAt": 0, **_Counting("").grouped()}
    counting = _Counting(name)
    looked = yield from scan_messages(managed, queue, states, message_filter, counting.visit)
    return {"count": counting.count, "lookedAt": looked, **counting.grouped()}


class _Counting:
    """Counts messages, and those with each value of a header."""

    def __init__(self, name: str) -> None:
        self.count = 0
        self.groups: dict[str, int] = {}
        self.without_count = 0
        self.others = 0
        self._name = header_name(name) if name else None

    def grouped(self) -> dict[str, Any]:
        """The counts of the groups, for the answer."""
        return {"groups": self.groups, "withoutIt": self.without_count, "inOtherGroups": self.others}

    def visit(self, located: LocatedMessage, budget: Budget) -> bool:
        """A message that matches."""
        self.count += 1
        if self._name is None:
            return False
        budget.spend(1)
        value = located.message.head.first(self._name)
        if value is None:
            self.without_count += 1
            return False
        value = cut(value, _VALUE_MAX)
        if value in self.groups or len(self.groups) < _GROUPS_MAX:
            self.groups[value] = self.groups.get(value, 0) + 1
        else:
            self.others += 1
        return False


def _show(managed: Managed, arguments: Arguments) -> Steps:
    view = MessageView.at(queue_of(managed, arguments), managed.now_ms())
    return (yield from _of_one(managed, arguments, view.whole))


def _body(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from _of_one(managed, arguments, _download))


def _download(located: LocatedMessage) -> Download:
    message = located.message
    return Download(message.body, _content_type_of(message), f"message-{message.id}")


def _of_one(
    managed: Managed, arguments: Arguments, make: Callable[[LocatedMessage], Made]
) -> Generator[Step, None, Made]:
    """What ``make`` returns for the message with the number in ``message``. Raises NotFoundError."""
    queue = queue_of(managed, arguments)
    made: list[Made] = []

    def visit(located: LocatedMessage, _budget: Budget) -> bool:
        made.append(make(located))
        return True

    yield from scan_messages(managed, queue, STATES, message_filter_of(arguments), visit)
    if not made:
        raise _missing(queue, arguments["message"])
    return made[0]


def _missing(queue: Queue, number: int) -> NotFoundError:
    return NotFoundError(f"queue {queue.name} has no message {number} (any more)")


BROWSE_OPERATIONS: Final = (
    Operation(
        name="browse",
        on="queue",
        right=VIEW,
        method="GET",
        path="/api/queues/{queue}/messages",
        command="queue browse",
        sentence="Messages of a queue, in its order: those that consumers have, ready ones, those in pages, and those"
        " that wait for their time.",
        result="count: how many match; page, size and data; lookedAt: how many were looked at; isWhole: whether these"
        " were all; next: what to pass as after for the next page, or null",
        arguments=(
            QUEUE,
            FILTER,
            WHICH,
            Argument("page", NUMBER, "which page, from 1", 1),
            AFTER,
            Argument("size", NUMBER, f"messages on a page, at most {PAGE_SIZE_MAX}; 0: management-browse-page-size", 0),
            Argument("fields", TEXTS, "the fields to show, with commas between (default: all)", ()),
        ),
        lists=MESSAGES,
        also=(_LOOKED_AT, _IS_WHOLE, _NEXT),
        work=_browse,
        mbean=(
            "CompositeData[] browse()",
            "CompositeData[] browse(String filter)",
            "CompositeData[] browse(int page, int pageSize=size)",
            "CompositeData[] browse(int page, int pageSize=size, String filter)",
        ),
    ),
    Operation(
        name="countMessages",
        on="queue",
        right=VIEW,
        method="GET",
        path="/api/queues/{queue}/count",
        command="queue count",
        sentence="Count the messages of a queue that match, and those with each value of a header.",
        result="count and lookedAt; with group-by: groups (counts by value), withoutIt (messages without the header)"
        " and inOtherGroups (those beyond 10,000 values)",
        arguments=(QUEUE, FILTER, WHICH, Argument("group-by", TEXT, "the name of a header", "")),
        work=_count,
        mbean=(
            "long countMessages(String filter) -> count",
            "String countMessages(String filter, String groupByProperty=group-by) -> groups",
        ),
    ),
    Operation(
        name="getMessage",
        on="queue",
        right=VIEW,
        method="GET",
        path="/api/queues/{queue}/messages/{message}",
        command="message show",
        sentence="One message whole, wherever it is on its queue.",
        result="the fields of a message, its headers and its body",
        arguments=(QUEUE, MESSAGE),
        shows=WHOLE,
        work=_show,
        no_mbean="Artemis has no operation for one message.",
    ),
    Operation(
        name="getMessageBody",
        on="queue",
        right=VIEW,
        method="GET",
        path="/api/queues/{queue}/messages/{message}/body",
        command="message body",
        sentence="The body of a message as it is, as a file.",
        result="the body, with the sender's content-type, as a download",
        arguments=(QUEUE, MESSAGE),
        is_download=True,
        work=_body,
        no_mbean="A bean returns no bytes.",
    ),
)
