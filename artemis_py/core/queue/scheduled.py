"""Scheduled entries of one queue become ready."""

from __future__ import annotations

from typing import Final, final

from artemis_py.config.tables.declarations import SCHEDULES
from artemis_py.core.budget import Budget
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.state import QueueState
from artemis_py.core.recurrence import target_of
from artemis_py.core.tasks import Task
from artemis_py.paged_messages import PagedMessage

_FALL_UNITS: Final = 3
_SEND_UNITS: Final = 12
"""Of one that is sent and waits again: both are published in the same turn."""
AGAIN_MS: Final = 1000
"""After so long a queue tries again what was due and has failed."""


@final
class DueEntries(Task):
    """Makes scheduled entries ready, given with the earliest first. They go to the head. An entry of a group that
    waited for another attempt goes back to its place; nothing of its group passed it. On overflow the earliest goes
    first.
    """

    holds = True

    def __init__(self, state: QueueState, entries: list[Entry]) -> None:
        self._state = state
        self._entries = list(dict.fromkeys(entries))  # a step that failed may have set a timer twice
        self._prepared = 0
        self._restored_count = 0

    def work(self, budget: Budget, now_ms: int) -> bool:
        entries, reference = self._entries, self._state.reference
        while self._prepared < len(entries) and not reference.deleted:
            count = budget.slice_of(1)
            self._prepare(entries[self._prepared : self._prepared + count])
            self._prepared += count
            budget.spend(count)
            if budget.is_spent:
                return False
        units = _SEND_UNITS if reference.name == SCHEDULES else _FALL_UNITS
        while entries and not reference.deleted:
            count = budget.slice_of(units)
            self._place(entries[-count:], now_ms)
            del entries[-count:]
            budget.spend(units * count)
            if budget.is_spent and entries:
                return False
        self.added_count = self._restored_count
        return True

    def break_off(self, now_ms: int) -> bool:
        """What is still put aside is due again in a while: it must not wait for a restart, nor fail in each turn."""
        self._state.contents.wait_again(self._entries, now_ms + AGAIN_MS)
        return False

    def _prepare(self, entries: list[Entry]) -> None:
        """In order of time: entries that are held back return to their places, and the others become values."""
        contents = self._state.contents
        for entry in entries:
            if contents.is_aside(entry) and entry.message.id in contents.held_back:
                contents.release_scheduled(entry)
                self._restored_count += 1
        if contents.last_values is not None:
            for entry in entries:
                if contents.is_aside(entry) and not entry.attempts:  # one that failed is a value already
                    contents.enter_value(entry)

    def _place(self, entries: list[Entry], now_ms: int) -> None:
        contents, reference = self._state.contents, self._state.reference
        waiting = [entry for entry in entries if contents.is_aside(entry)]
        if reference.name == SCHEDULES:
            recurring = [entry for entry in waiting if target_of(entry.message.head)]
            contents.send_again(recurring, now_ms)
            waiting = [entry for entry in waiting if contents.is_aside(entry)]  # an operator has moved them here
        if reference.durable:
            heads = [one.message for one in waiting if one.message.head.persistent and not contents.keeps_place(one)]
            in_journal = [message for message in heads if message.__class__ is not PagedMessage]
            if in_journal:
                self._state.host.log.fell_due(reference.id, in_journal)
        for entry in reversed(waiting):
            keeps_place = contents.keeps_place(entry)
            contents.take_from_aside(entry)
            if keeps_place:
                contents.put_back(entry)
            else:
                contents.put_at_head(entry, fresh=not entry.attempts)
        self._restored_count += len(waiting)
