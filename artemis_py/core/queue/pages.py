"""What one queue has in its address' pages: arrivals, expiry and removal.

Reading back is in :mod:`artemis_py.core.queue.page_reading` (in order, for consumers that take any message) and
:mod:`artemis_py.core.queue.page_search` (for consumers that choose or only look).
"""

from __future__ import annotations

from typing import final

from artemis_py.core.order.entry import Entry
from artemis_py.core.pages.backlog import Backlog, ReadAhead
from artemis_py.core.pages.expiry import PageExpiry
from artemis_py.core.pages.stream import PageReader, PageStream, RestoredShare
from artemis_py.core.queue.alert_watch import AlertWatch
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.intake import Intake
from artemis_py.core.queue.page_reading import READ_UNITS, READS_PER_TURN, PageReading
from artemis_py.core.queue.page_search import PageSearch
from artemis_py.message import Message
from artemis_py.records import PagedEntry


@final
class QueuePages:
    """One queue's messages in pages, by stream (``Contents.paged``)."""

    __slots__ = ("_alerts", "_basis", "_expiries", "_intake", "reading", "search")

    def __init__(self, basis: QueueBasis, alerts: AlertWatch | None, limits: ReadAhead) -> None:
        self._basis = basis
        self._alerts = alerts
        self._intake = Intake(basis.contents, alerts)
        self._expiries: dict[int, PageExpiry] | None = None
        """By stream number; None before the first search."""
        self.reading = PageReading(basis, self._intake, alerts, limits)
        self.search = PageSearch(basis, self.reading, self._intake)

    # ---- into pages ------------------------------------------------------------------------------

    def arrive(self, stream: PageStream, messages: list[Message], size_bytes: int, now_ms: int) -> None:
        """Count new messages that were paged. ``prepare`` must come first, so that the queue's reader sees them."""
        self._basis.contents.paged.arrive(stream.number, messages, size_bytes)
        self._basis.flow.stop()
        if self._alerts is not None:
            self._alerts.note_paged(messages)
            self._alerts.look_at(messages, now_ms)
        self._basis.grouping.look_for(messages)
        self.may_have_news()

    def may_have_news(self) -> None:
        """There may be something in pages for consumers that found nothing."""
        self._basis.waking.wake_dry()
        self._basis.host.note_ready(self._basis.reference)

    def prepare(self, stream: PageStream) -> Backlog:
        """The queue's backlog in a stream; a new one if the queue has none from this time of paging."""
        backlog = self._basis.contents.paged.backlogs.get(stream.number)
        if backlog is not None and backlog.period == stream.period:
            return backlog
        if backlog is not None:
            self._forget(stream.number)
        return self._begin(stream, stream.next_place)

    def _begin(self, stream: PageStream, place: int) -> Backlog:
        """A new backlog from a place on. Only the pages of the queue's own address give the order of everything that it
        gets, and not even those when it gets messages of other addresses.
        """
        reference = self._basis.reference
        base = self._basis.contents.order.tail_max() - place
        reader = PageReader(stream, reference, None, place)
        shared_order = stream.address == reference.address.name and not reference.is_distant
        backlog = Backlog(stream, reader, base, shared_order=shared_order)
        self._basis.contents.paged.begin(backlog)
        return backlog

    def _forget(self, number: int) -> None:
        """Paging has ended in a stream."""
        self._basis.contents.paged.end(number)
        if self._expiries is not None:
            self._expiries.pop(number, None)
        self.search.forget_stream(number)

    def restore(self, stream: PageStream, share: RestoredShare) -> None:
        """After a restart: take over the queue's share of a page."""
        backlog = self._basis.contents.paged.backlogs.get(stream.number)
        if backlog is None:
            backlog = self._begin(stream, share.page.first_place)
        self._basis.grouping.begin()  # whether a message names a group shows only when the page is read
        self._basis.contents.paged.restore(backlog, share)

    def begin_dispatch(self, now_ms: int) -> None:
        """A dispatch begins. Consumers that had to stop last time go on. Streams in which paging has ended are
        forgotten: a queue on a wildcard address may have seen very many of them.
        """
        if self.reading.reads_left <= 0:
            self._basis.waking.wake_dry()  # they may have found nothing only because reading stopped
        self.reading.begin()
        for number, backlog in list(self._basis.contents.paged.backlogs.items()):
            if not backlog.stream.active:
                self._forget(number)
            else:
                expiry = None if self._expiries is None else self._expiries.get(number)
                if expiry is not None and expiry.is_under_way:
                    self._expire_in(expiry, backlog, now_ms)

    # ---- one message -----------------------------------------------------------------------------

    def entry_of(self, backlog: Backlog, found: PagedEntry) -> Entry:
        """The entry of a message that somebody looks at. The message stays in its page."""
        return self._intake.entry_of(backlog, found.message)

    def enter(self, backlog: Backlog, found: PagedEntry) -> Entry:
        """Take a message out of its page. It is in memory then; its place, or its end, follows."""
        return self._intake.enter(backlog, found)

    # ---- expiry and removal ----------------------------------------------------------------------

    def expire(self, now_ms: int) -> None:
        """Look for expired messages in pages. Those that must be read from the disk first follow in later turns."""
        for number, backlog in list(self._basis.contents.paged.backlogs.items()):
            if backlog.count:
                self._expire_in(self._expiry_of(number, backlog), backlog, now_ms)

    def _expiry_of(self, number: int, backlog: Backlog) -> PageExpiry:
        if self._expiries is None:
            self._expiries = {}
        expiry = self._expiries.get(number)
        if expiry is None:
            expiry = self._expiries[number] = PageExpiry(backlog, self._basis.contents.expiry.lifetime)
        return expiry

    def _expire_in(self, expiry: PageExpiry, backlog: Backlog, now_ms: int) -> None:
        budget = self._basis.host.budget
        reads_max = min(READS_PER_TURN, max(budget.left // READ_UNITS, 1))
        budget.spend(READ_UNITS)
        for found in expiry.search(now_ms, reads_max):
            self._basis.contents.expire([self._intake.enter(backlog, found)])
        if expiry.is_under_way and not expiry.waits:
            self._basis.host.note_ready(self._basis.reference)

    def remove_all(self, reason: str) -> int:
        """Kill every message in pages that is not in memory, for ``reason``. Returns how many."""
        removed = 0
        paged = self._basis.contents.paged
        for backlog in paged.backlogs.values():
            if backlog.count:
                removed += backlog.count
                paged.kill(backlog, reason)
        if self._alerts is not None:
            self._alerts.forget_paged()
        return removed

    def forget_all(self) -> None:
        """The queue is deleted: it needs no page any more, whatever its consumers still hold."""
        for backlog in self._basis.contents.paged.backlogs.values():
            backlog.stream.forget(self._basis.reference)
