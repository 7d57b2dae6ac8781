"""Brings messages of a queue's pages into memory, one at a time."""

from __future__ import annotations

from typing import final

from artemis_py.core.order.entry import Entry
from artemis_py.core.pages.backlog import Backlog
from artemis_py.core.queue.alert_watch import AlertWatch
from artemis_py.core.queue.contents import Contents
from artemis_py.core.queue.holding import not_before_ms
from artemis_py.core.queue.outcomes import EXPIRE
from artemis_py.paged import PagedMessage
from artemis_py.records import PagedEntry


@final
class Intake:
    """Makes entries of messages that were found in pages."""

    __slots__ = ("_alerts", "_contents")

    def __init__(self, contents: Contents, alerts: AlertWatch | None) -> None:
        self._contents = contents
        self._alerts = alerts

    def bring_in(self, backlog: Backlog, found: PagedEntry, now_ms: int) -> None:
        """Put a message that was found in a page in its place on the queue. It may be scheduled, expired or outdated
        instead.
        """
        contents = self._contents
        due_ms = backlog.due_ms(found)
        entry = self.enter(backlog, found)
        if self.was_settled(entry):
            return
        if due_ms > now_ms and contents.behind is not None:
            contents.hold(entry, due_ms)
        elif due_ms > now_ms:
            contents.put_aside(entry, due_ms)
        elif 0 < contents.expires_ms(entry.message) <= now_ms:
            contents.expire([entry])
        elif contents.enter_value_of_page(entry) and not self.hold_back(entry, now_ms):
            contents.place(entry)

    def was_settled(self, entry: Entry) -> bool:
        """Has a client settled a message before it was read? Then it goes now."""
        contents, message = self._contents, entry.message
        outcome = None if contents.deferred is None else contents.deferred.take(message.lsn)
        if outcome is None:
            return False
        contents.deliver(message)
        if outcome == EXPIRE:
            contents.expire_held([message], None)
        else:
            contents.acknowledge_held([message], None)
        return True

    def hold_back(self, entry: Entry, now_ms: int) -> bool:
        """Put a message aside, with the place that its page gives it, if ``hold-on-publish`` holds it back. Returns
        whether it does.
        """
        due_ms = not_before_ms(entry.message, now_ms) if self._contents.holds else 0
        if due_ms:
            self._contents.hold(entry, due_ms)
        return due_ms > 0

    def enter(self, backlog: Backlog, found: PagedEntry) -> Entry:
        """The entry of a message that the queue takes from a page. From now on the message is in memory."""
        message = found.message
        entry = self.entry_of(backlog, message)
        if not backlog.shared_order:
            entry.sequence = self._contents.order.take_sequence(message)
        self._contents.paged.fetch(backlog, message)
        if self._alerts is not None:
            self._alerts.note_fetched(message)
        return entry

    def entry_of(self, backlog: Backlog, message: PagedMessage) -> Entry:
        """The entry of a message, with its place and with the failed deliveries from before a restart."""
        entry = Entry(message)
        if backlog.shared_order:
            entry.sequence = backlog.sequence(message)
        entry.attempts = entry.returned = backlog.attempts(message)
        return entry
