"""Operations that look at the messages of a queue and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import chain
from typing import Any, Final, TypeVar

from artemis_py.core.budget import Budget
from artemis_py.core.operations.message_filter import MessageFilter
from artemis_py.core.operations.scan import (
    BEHIND,
    DELIVERING,
    PAGED,
    READY,
    SCHEDULED,
    STATES,
    LocatedMessage,
    QueueScan,
    ScanCursor,
)
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Step
from artemis_py.errors import BadRequestError, NotFoundError
from artemis_py.management.lists.field import FLAG, NUMBER, TEXT, Field
from artemis_py.management.lists.messages import MESSAGES, WHOLE, Looks, content_type_of, cut
from artemis_py.management.lists.selection import Selection
from artemis_py.management.lists.wanted import PAGE_SIZE_MAX, Wanted, wanted_of
from artemis_py.management.managed import Download, Given, Managed, Steps, found
from artemis_py.management.messages.choosing import FILTER, MESSAGE, WHICH, choice_of, states_of
from artemis_py.management.messages.looking import look, look_on
from artemis_py.management.operation import TEXTS, VIEW, Argument, Operation
from artemis_py.management.operations.queues import QUEUE
from artemis_py.message import header_name

Told = TypeVar("Told")
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


def _browse(managed: Managed, given: Given) -> Steps:
    queue = _queue(managed, given)
    states, choice = states_of(given["which"]), choice_of(given)
    size = given["size"] or min(queue.address.settings.management_browse_page_size, PAGE_SIZE_MAX)
    fields = [name.strip() for name in chain.from_iterable(text.split(",") for text in given["fields"])]
    wanted = wanted_of(MESSAGES, page=given["page"], size=size, fields=fields)
    after = given["after"]
    if after and wanted.page > 1:
        raise BadRequestError("page counts from the beginning, and after goes on from a cursor: give one of them")
    scan = managed.cursors.scan(queue, states, choice, after)
    page = _Page(queue, wanted, managed.now_ms(), scan, known=_known_count(queue, states, choice), counts=not after)
    page.looked_count = yield from look_on(managed, queue, scan, choice, page.see)
    scan_cursor = page.scan_cursor
    extra = {
        "lookedAt": page.looked_count,
        "isWhole": not page.is_cut_short,
        "next": None if scan_cursor is None else managed.cursors.text_of(queue, states, scan_cursor),
    }
    return Selection(MESSAGES, wanted, page.count, page.rows, extra)


class _Page:
    """A page of messages, as each was when it was looked at. ``known``: how many match; -1: nobody knows, and if it
    ``counts``, that is found out.
    """

    def __init__(self, queue: Queue, wanted: Wanted, now_ms: int, scan: QueueScan, *, known: int, counts: bool) -> None:
        self.scan_cursor: ScanCursor | None = None
        """Where the page ends; None: it is not full, so nothing follows."""
        self.rows: list[dict[str, Any]] = []
        self.looked_count = 0
        self.is_cut_short = False
        self._looks = Looks.at(queue, now_ms)
        self._wanted = wanted
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

    def see(self, located: LocatedMessage, budget: Budget) -> bool:
        """A message that matches. Returns True when this was enough."""
        self._matching += 1
        if self._matching <= self._wanted.skipped:
            return False
        if len(self.rows) < self._wanted.size:
            self.rows.append(self._looks.row(located))
            budget.spend(_ROW_UNITS)
            is_full = len(self.rows) == self._wanted.size
            if is_full:
                self.scan_cursor = self._scan.scan_cursor
                self.is_cut_short = self._known < 0 and not self._counts
            return is_full and not self._counts
        self._ahead.spend(1)
        self.is_cut_short = self._ahead.is_spent
        return self.is_cut_short


def _known_count(queue: Queue, states: tuple[str, ...], choice: MessageFilter) -> int:
    """How many messages are in these states; -1 if a look at each is needed."""
    if not choice.is_all:
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


def _count(managed: Managed, given: Given) -> Steps:
    queue = _queue(managed, given)
    states, choice, name = states_of(given["which"]), choice_of(given), given["group-by"]
    known = -1 if name else _known_count(queue, states, choice)
    if known >= 0:
        yield None
        return {"count": known, "lookedAt": 0, **_Counting("").grouped()}
    counting = _Counting(name)
    looked = yield from look(managed, queue, states, choice, counting.see)
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
        """The fields of the groups."""
        return {"groups": self.groups, "withoutIt": self.without_count, "inOtherGroups": self.others}

    def see(self, located: LocatedMessage, budget: Budget) -> bool:
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


def _show(managed: Managed, given: Given) -> Steps:
    looks = Looks.at(_queue(managed, given), managed.now_ms())
    return (yield from _of_one(managed, given, looks.whole))


def _body(managed: Managed, given: Given) -> Steps:
    return (yield from _of_one(managed, given, _download))


def _download(located: LocatedMessage) -> Download:
    message = located.message
    return Download(message.body, content_type_of(message), f"message-{message.id}")


def _of_one(managed: Managed, given: Given, make: Callable[[LocatedMessage], Told]) -> Generator[Step, None, Told]:
    """What is made of the one message that is meant, while it is there. Raises NotFoundError."""
    queue = _queue(managed, given)
    made: list[Told] = []

    def see(located: LocatedMessage, _budget: Budget) -> bool:
        made.append(make(located))
        return True

    yield from look(managed, queue, STATES, choice_of(given), see)
    if not made:
        raise _missing(queue, given["message"])
    return made[0]


def _queue(managed: Managed, given: Given) -> Queue:
    return found(managed.broker.queues, "queue", given["queue"])


def _missing(queue: Queue, number: int) -> NotFoundError:
    return NotFoundError(f"queue {queue.name} has no message {number}, or has it no more")


BROWSING_OPERATIONS: Final = (
    Operation(
        name="browse",
        on="queue",
        right=VIEW,
        method="GET",
        path="/api/queues/{queue}/messages",
        command="queue browse",
        sentence="Messages of a queue, in its order: those that consumers have, ready ones, those in pages, and those"
        " that wait for their time.",
        result="count: how many match; page, size and data; lookedAt, and isWhole: whether that was all; next: as after"
        " it shows the messages behind these, at the same cost at any depth; null: there are none",
        arguments=(
            QUEUE,
            FILTER,
            WHICH,
            Argument("page", NUMBER, "which page, from 1", 1),
            AFTER,
            Argument("size", NUMBER, f"messages on a page, at most {PAGE_SIZE_MAX}; 0: management-browse-page-size", 0),
            Argument("fields", TEXTS, "the fields to show, with commas between; without it, all", ()),
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
        result="the body, with the sender's content-type, as a download that no browser carries out",
        arguments=(QUEUE, MESSAGE),
        is_download=True,
        work=_body,
        no_mbean="A bean returns no bytes.",
    ),
)
