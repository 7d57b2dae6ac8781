"""Messages that a queue with ``hold-on-publish`` holds back, and which delays are dates."""

from __future__ import annotations

from typing import Final

from artemis_py.core.order.entry import Entry
from artemis_py.message import HeaderName, Message
from artemis_py.units import DATE_MAX_MS, LONG_MAX

_NOT_VALID_BEFORE: Final = HeaderName("x-qpid-not-valid-before")
_SCHEDULED_TIME: Final = HeaderName("AMQ_SCHEDULED_TIME")
_DIGITS_MAX: Final = 19


def not_before_ms(message: Message, now_ms: int) -> int:
    """When a queue with ``hold-on-publish`` may deliver the message, in epoch ms; 0: at once.

    Qpid's rules (rows Q-48, Q-49, tests/queues/rows.py): a message is held until the time in its header is past. A text
    that is not a 64-bit number holds nothing.
    """
    text = message.head.first(_NOT_VALID_BEFORE)
    if text is None:
        return 0
    digits = text.strip()
    if len(digits) > _DIGITS_MAX or not (digits.isascii() and digits.isdigit()):
        return 0
    until_ms = int(digits)
    return min(until_ms + 1, DATE_MAX_MS) if now_ms <= until_ms <= LONG_MAX else 0


def is_date(entry: Entry) -> bool:
    """Does an entry that is put aside wait for a date? Otherwise it waits for a time to pass: a sender's delay, or the
    delay between two attempts.
    """
    return not entry.attempts and (entry.message.head.first(_SCHEDULED_TIME) or "").strip(" 0") != ""
