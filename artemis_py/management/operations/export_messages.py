"""Operations that export messages, addresses and queues, with all that another broker needs to import them."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.destinations.registry import kept_of_address
from artemis_py.core.operations.scan import PAGED, SCHEDULED, LocatedMessage, QueueScan, ScanCursor
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import BadRequestError, NotFoundError
from artemis_py.management.export_format import line_of, message_line
from artemis_py.management.listing import LOOKS_PER_STEP, NUMBER, PAGE_SIZE_MAX
from artemis_py.management.managed import Arguments, InPieces, Lines, Managed, Steps
from artemis_py.management.operation import VIEW, Argument, Operation
from artemis_py.management.operations.arguments import FILTER, QUEUE, WHICH, message_filter_of, queue_of, states_of
from artemis_py.management.operations.browse import AFTER, continue_scan, failed_count
from artemis_py.message import LargeBody

_LINE_UNITS: Final = 3
_BYTES_PER_UNIT: Final = 2048
"""What it costs to make a line."""
_PAGE_BYTES: Final = 1 << 20
"""A page with so many bytes of lines is full."""
_WHOLE_BYTES_MAX: Final = 1 << 16
"""A body of more bytes follows in pieces, and is the last one on its page: so a client that does not read keeps one."""
_REMEMBERED: Final = frozenset({"recovery", "used"})
"""What queues remember of the log in which they are, which another broker does not have."""


def _export_messages(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    states, message_filter, size = states_of(arguments["which"]), message_filter_of(arguments), arguments["size"]
    if not 1 <= size <= PAGE_SIZE_MAX:
        raise BadRequestError(f"size must be a number from 1 to {PAGE_SIZE_MAX}, not {size}")
    scan = managed.cursors.scan(queue, states, message_filter, arguments["after"])
    page = _Page(queue, managed.now_ms(), scan, size)
    run, counters = managed.cursors.run, queue.contents.counters
    before = f"{run}-{counters.returned}"
    yield from continue_scan(managed, queue, scan, message_filter, page.visit)
    if queue.deleted:
        raise NotFoundError(f"queue {queue.name} was deleted meanwhile")
    after = None if page.scan_cursor is None else managed.cursors.text_of(queue, states, page.scan_cursor)
    last_line = line_of("next", {"after": after, "returned": [before, f"{run}-{counters.returned}"]})
    return Lines([*page.parts, last_line], f"messages-{queue.id}")


@final
class _Page:
    """A page of lines, each with its message as the scan met it."""

    def __init__(self, queue: Queue, now_ms: int, scan: QueueScan, size: int) -> None:
        self.parts: list[bytes | InPieces] = []
        self.scan_cursor: ScanCursor | None = None
        """Where the page ends; None: it is not full, so nothing follows."""
        self._queue = queue
        self._names = (queue.name,)
        self._now_ms = now_ms
        self._scan = scan
        self._left = size
        self._left_bytes = _PAGE_BYTES

    def visit(self, located: LocatedMessage, budget: Budget) -> bool:
        """A message that matches. Returns True when the page is full."""
        body = located.message.body
        in_pieces = isinstance(body, LargeBody) or len(body) > _WHOLE_BYTES_MAX
        name, failed, due_ms = self._queue.name, failed_count(self._queue, located), self._due_ms(located)
        line = message_line(
            located.message,
            self._names,
            {name: failed} if failed else {},
            {name: due_ms} if due_ms else {},
            in_pieces=in_pieces,
        )
        budget.spend(_LINE_UNITS + len(line) // _BYTES_PER_UNIT)
        self.parts.append(line)
        if in_pieces:
            self.parts.append(InPieces(body))
        self._left -= 1
        self._left_bytes -= len(line)
        if self._left > 0 and self._left_bytes > 0 and not in_pieces:
            return False
        self.scan_cursor = self._scan.scan_cursor
        return True

    def _due_ms(self, located: LocatedMessage) -> int:
        """The date for which a message waits, in epoch ms; 0: for none."""
        if located.state == SCHEDULED:
            return self._queue.contents.scheduled_dates.of(located.message.id)
        if located.state == PAGED and located.backlog is not None and located.found is not None:
            due_ms = located.backlog.due_ms(located.found)
            return due_ms if due_ms > self._now_ms else 0
        return 0


def _export_destinations(managed: Managed, _arguments: Arguments) -> Steps:
    registry = managed.broker.registry
    parts: list[bytes | InPieces] = []
    for number, address in enumerate(list(managed.broker.addresses.values())):
        if not address.temporary:
            parts.append(line_of("address", kept_of_address(address)))
        if number % LOOKS_PER_STEP == 0:
            yield None
    for number, queue in enumerate(list(managed.broker.queues.values())):
        if queue.durable and not queue.temporary and not queue.deleted:
            kept = registry.kept_of_queue(queue)
            parts.append(line_of("queue", {name: kept[name] for name in kept if name not in _REMEMBERED}))
        if number % LOOKS_PER_STEP == 0:
            yield None
    return Lines(parts, "destinations")


EXPORT_OPERATIONS: Final = (
    Operation(
        name="exportMessages",
        on="queue",
        right=VIEW,
        method="GET",
        path="/api/queues/{queue}/lines",
        command="queue lines",
        sentence="Messages of a queue as the lines of an export, whole, as `artemis-py data exp` asks for them.",
        result="lines of JSON: messages with their bodies; the last line has after for the next page (null: that was"
        " all), and returned: two texts that differ if messages came back meanwhile",
        arguments=(
            QUEUE,
            FILTER,
            WHICH,
            AFTER,
            Argument(
                "size", NUMBER, "messages on a page, at most; large ones, and 1 MiB of others, fill it", PAGE_SIZE_MAX
            ),
        ),
        is_download=True,
        permitted_as="browse",
        work=_export_messages,
        no_mbean="A bean returns no lines.",
    ),
    Operation(
        name="exportDestinations",
        right=VIEW,
        method="GET",
        path="/api/destinations/lines",
        command="address lines",
        sentence="Addresses and durable queues as the lines of an export.",
        result="lines of JSON: what survives a restart",
        is_download=True,
        work=_export_destinations,
        no_mbean="A bean returns no lines.",
    ),
)
