"""How a queue reads ahead in its pages, in order, for consumers that take any message."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import OVERDRAFT_UNITS
from artemis_py.core.pages.backlog import Backlog, ReadAhead
from artemis_py.core.queue.alert_watch import AlertWatch
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.intake import Intake
from artemis_py.records import PagedEntry

READY_MIN: Final = 1024
"""A queue with fewer ready entries than this reads from its pages, if it has a consumer that takes any message."""
READS_PER_TURN: Final = 1024
"""How many messages of pages a queue looks at in one turn."""
READ_UNITS: Final = 3


@final
class PageReading:
    """Brings messages from pages into memory, within the limits on reading ahead and the ring."""

    __slots__ = ("_alerts", "_basis", "_intake", "cramped", "limits", "reads_left")

    def __init__(self, basis: QueueBasis, intake: Intake, alerts: AlertWatch | None, limits: ReadAhead) -> None:
        self._basis = basis
        self._alerts = alerts
        self._intake = intake
        self.limits = limits
        """How much may be in memory."""
        self.reads_left = 0
        """How many more paged messages this dispatch may look at."""
        self.cramped = False
        """Has a limit on memory stopped reading? Whatever leaves makes room."""

    def begin(self) -> None:
        """A dispatch begins: set how many messages it may look at."""
        self.reads_left = min(READS_PER_TURN, max(self._basis.host.budget.left // READ_UNITS, 1))

    def read_before(self, now_ms: int) -> bool:
        """Bring in a paged message that stands before the next ready entry, whatever the limits.

        Returns False while that message must be waited for, True when there is none.
        """
        contents = self._basis.contents
        for backlog in contents.paged.backlogs.values():
            while backlog.has_early and backlog.is_early(contents.order.peek().sequence):
                found = backlog.next()
                if found is None:
                    return not backlog.reader.waits
                self._intake.bring_in(backlog, found, now_ms)
        return True

    @property
    def has_early(self) -> bool:
        """Has a consumer fetched a message from far back and returned it? Then the next message may be in pages."""
        return any(backlog.has_early for backlog in self._basis.contents.paged.backlogs.values())

    def read_ahead(self, now_ms: int) -> bool:
        """Bring messages from pages into memory. Returns True when one of them is ready."""
        contents = self._basis.contents
        before = contents.order.count
        progress = True
        while progress:
            progress = False
            for backlog in list(contents.paged.backlogs.values()):
                if backlog.count and self.reads_left > 0:
                    if not self.has_space():
                        self.cramped = True
                        break
                    found = backlog.next()
                    if found is not None:
                        self.reads_left -= 1
                        self._basis.host.budget.spend(READ_UNITS + self._placing_units(found))
                        self._intake.bring_in(backlog, found, now_ms)
                        progress = True
        if self.reads_left <= 0:
            self._basis.host.note_ready(self._basis.reference)
        for backlog in contents.paged.backlogs.values():
            if backlog.reader.spoilt:
                self._write_off(backlog)
        activation = self._basis.activation
        if activation is not None and activation.advance(now_ms, -OVERDRAFT_UNITS):
            self._basis.host.note_ready(self._basis.reference)
        return contents.order.count > before

    def _placing_units(self, found: PagedEntry) -> int:
        """What it costs to find the place of a message."""
        expression = self._basis.contents.order.expression
        if expression is None:
            return 0
        return expression.units + (expression.units_per_kb * found.message.head.size_bytes >> 10)

    def _write_off(self, backlog: Backlog) -> None:
        """Write off the rest of damaged pages that were read to their end: it is lost, and must not be waited for. The
        damage was reported when it was found.
        """
        pages, backlog.reader.spoilt = backlog.reader.spoilt, []
        self._basis.contents.paged.write_off(backlog, pages)
        if self._alerts is not None:
            self._alerts.forget_paged()

    def has_space(self) -> bool:
        """Do the limits on reading ahead, and the ring, leave room for one more? A queue with nothing in memory always
        has room for one.
        """
        return not (self.has_enough or not self._basis.flow.has_space() or self.limit_reached())

    @property
    def has_enough(self) -> bool:
        """Are so many messages ready that no more is read ahead?"""
        contents = self._basis.contents
        return contents.behind is None and contents.ready_count - self._basis.grouping.parked_count >= READY_MIN

    def limit_reached(self) -> str:
        """The setting whose limit on reading ahead leaves no room for one more; empty: none."""
        contents = self._basis.contents
        tally = contents.tally
        ready_bytes = tally.size_bytes - tally.held_size_bytes - tally.scheduled_size_bytes - contents.paged.size_bytes
        return self.limits.reached(contents.ready_count, ready_bytes, tally.held_count, tally.held_size_bytes)
