"""The next entry for a consumer: from memory or from a page, by order, by cursor or by group."""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.pages import QueuePages
from artemis_py.core.queue.removal import EXPIRE_UNITS
from artemis_py.core.queue.works import SLICE_MAX


@final
class NextEntry:
    """Finds what one queue has for each of its consumers. What it meets on the way and has expired, it removes."""

    __slots__ = ("_activation", "_contents", "_grouping", "_host", "_pages", "_reference", "_waking", "was_cut")

    def __init__(self, basis: QueueBasis, pages: QueuePages) -> None:
        self._reference = basis.reference
        self._host = basis.host
        self._contents = basis.contents
        self._activation = basis.activation
        self._grouping = basis.grouping
        self._waking = basis.waking
        self._pages = pages
        self.was_cut = False
        """The budget ended before the consumer just picked was shown everything. It keeps its turn."""

    def for_consumer(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry for a consumer. It is out of the order if the consumer takes it away."""
        if consumer.cursor is not None:
            return self._shown_to(consumer, now_ms)
        contents = self._contents
        order, reading = contents.order, self._pages.reading
        while order.count or (contents.paged.backlogs and reading.read_ahead(now_ms)):
            if contents.paged.backlogs and not reading.read_before(now_ms):
                return None
            entry = order.pop()
            expires_ms = contents.expires_ms(entry.message)
            if not expires_ms or expires_ms > now_ms:
                return entry
            if self.expire(entry):
                self.was_cut = True
                break
        return None

    def expire(self, entry: Entry) -> bool:
        """Expire an entry that is out of the order. Returns True when that spent the budget."""
        try:
            self._contents.expire([entry])
        except Exception:
            self._contents.put_back(entry)
            raise
        budget = self._host.budget
        budget.spend(EXPIRE_UNITS)
        return budget.is_spent

    def _shown_to(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry that the consumer's cursor shows and the consumer wants."""
        contents, cursor = self._contents, consumer.cursor
        assert cursor is not None
        budget, search = self._host.budget, self._pages.search
        for _ in range(min(SLICE_MAX, max(budget.left, 1))):
            budget.spend(1)
            found = cursor.advance()
            if found is None and self._activation is not None and contents.paged.backlogs:
                if self._pages.reading.read_ahead(now_ms):
                    self._waking.wake_dry()
                    continue
                return None
            if found is None:
                return search.search(consumer, now_ms) if contents.paged.backlogs else None
            message = found.message
            if 0 < contents.expires_ms(message) <= now_ms:
                contents.order.remove(found, found.sequence)
                self.expire(found)
            elif consumer.wants(message) and not (contents.paged.backlogs and search.was_shown(consumer, message)):
                if consumer.destructive:
                    contents.order.remove(found, found.sequence)
                return found
            if consumer.asked_units >= SLICE_MAX:
                break
        self.was_cut = True
        return None

    def in_groups_for(self, consumer: Consumer, now_ms: int) -> Entry | None:
        """The next entry for a consumer, out of the order; the consumer now owns its group."""
        contents, waking = self._contents, self._waking
        groups = self._grouping.groups
        assert groups is not None
        views = groups.views
        budget = self._host.budget
        while True:
            passes = min(SLICE_MAX, max(budget.left, 1))
            views.passes_left = passes
            entry = views.next_for(consumer)
            budget.spend(passes - views.passes_left)
            if entry is None:
                if views.passes_left <= 0:
                    self.was_cut = True
                elif contents.paged.backlogs and self._pages.reading.read_ahead(now_ms):
                    waking.wake_dry()
                    continue
                return None
            contents.order.remove(entry, entry.sequence)
            if 0 < contents.expires_ms(entry.message) <= now_ms:
                self.expire(entry)
                continue
            groups.owners.take(consumer, entry.message)
            if self._grouping.takes_freed():
                waking.wake_dry()
                self._host.note_ready(self._reference)
            return entry
