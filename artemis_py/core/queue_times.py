"""A queue's part of time: when messages expire on it, and which of them wait for their time at their place."""

from __future__ import annotations

from typing import Final

from artemis_py.core.entry import Entry
from artemis_py.core.queue_values import QueueValues
from artemis_py.message import HeaderName, Message

_NOT_VALID_BEFORE: Final = HeaderName("x-qpid-not-valid-before")
_SCHEDULED_TIME: Final = HeaderName("AMQ_SCHEDULED_TIME")
_DIGITS_MAX: Final = 19
_LONG_MAX: Final = 2**63 - 1


def not_before_ms(message: Message, now_ms: int) -> int:
    """When a queue with ``hold-on-publish`` may deliver the message, in epoch ms; 0: at once.

    Qpid's rules (rows Q-48, Q-49, tests/queues/rows.py): a message is held while the time in its header is not past,
    and a text that is no number of 64 bits holds nothing.
    """
    text = message.head.first(_NOT_VALID_BEFORE)
    if text is None:
        return 0
    digits = text.strip()
    if len(digits) > _DIGITS_MAX or not (digits.isascii() and digits.isdigit()):
        return 0
    until_ms = int(digits)
    return until_ms + 1 if now_ms <= until_ms <= _LONG_MAX else 0


class QueueTimes(QueueValues):
    """The part of a queue that holds messages until they are valid. A held one is put aside like a scheduled one, but
    it has taken its place and returns to it, expires there, and counts as a last value from its arrival (Qpid).
    """

    def _hold_back(self, entries: list[Entry], now_ms: int) -> list[Entry]:
        """Put aside what may not be delivered yet, each behind what came before it; returns the runs between."""
        free: list[Entry] = []
        for entry in entries:
            due_ms = not_before_ms(entry.message, now_ms)
            if not due_ms:
                free.append(entry)
                continue
            self._append_free(free, now_ms)
            free = []
            if self.last_values is not None:
                self._enter_new_value(entry, now_ms)
            entry.sequence = self.order.take_sequence(entry.message)
            self._hold(entry, due_ms)
        return free

    def _append_free(self, entries: list[Entry], now_ms: int) -> None:
        """Append entries that nothing holds back."""
        if self.last_values is not None:
            self._append_values(entries, now_ms)
        elif any(self.expires_ms(entry.message) for entry in entries):
            self._append_expiring(entries)
        elif entries:
            self.order.extend(entries)

    def _append_expiring(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.order.extend([entry])
            if self.expires_ms(entry.message):
                entry.sequence = self.order.last_sequence(entry.message)
                self.watch_expiry(entry)

    def _hold(self, entry: Entry, due_ms: int) -> None:
        """Put an entry aside that has its place already."""
        self.held_back.add(entry.message.id)
        self.put_aside(entry, due_ms)
        if self.expires_ms(entry.message):
            self.watch_expiry(entry)

    def _is_date(self, entry: Entry) -> bool:
        """Does what is put aside wait for a date, and not for a time to pass (a delay of its sender, or between two
        attempts)?
        """
        if entry.message.id in self.held_back:
            return True
        return not entry.attempts and (entry.message.head.first(_SCHEDULED_TIME) or "").strip(" 0") != ""

    def set_free(self, entry: Entry) -> None:
        """Its time has come: it stands where it would have stood, and readers that have passed the place see it."""
        del self.scheduled[entry.message.id]
        self.tally.leave_scheduled(entry.message)
        self.held_back.discard(entry.message.id)
        self.order.restore(entry, fresh=True)
        self.left_aside(entry)
        if self.expires_ms(entry.message):
            self.watch_expiry(entry)
