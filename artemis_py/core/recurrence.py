"""Messages that are sent again and again, as in ActiveMQ: ``AMQ_SCHEDULED_CRON``, ``_PERIOD`` and ``_REPEAT``.

Until it is due such a message waits on a queue of the broker's own, ``SCHEDULES``. Then it is published where it was
sent, and waits again as a new message with the next date. Journal and memory have both or neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, final

from artemis_py.message import Head, HeaderName, Message, encode_headers
from artemis_py.units import DATE_MAX_MS, date_after, parse_long

CRON: Final = "AMQ_SCHEDULED_CRON"
PERIOD: Final = "AMQ_SCHEDULED_PERIOD"
REPEAT: Final = "AMQ_SCHEDULED_REPEAT"
DELAY: Final = "AMQ_SCHEDULED_DELAY"
TIME: Final = "AMQ_SCHEDULED_TIME"
NAMES: Final = (CRON, PERIOD, REPEAT)
JOB: Final = "scheduledJobId"
"""The header by which a message that was sent names its schedule (ActiveMQ): the id of the first message."""
SCHEDULED: Final = "_ART_SCHEDULED"
"""The header of a message that waits: when it is due, its routing type (``-``: none), and where it was sent. No client
may set it.
"""
PERIOD_MS_MIN: Final = 100
_FOREVER: Final = -1
_FIELDS: Final = 5
_SCHEDULED: Final = HeaderName(SCHEDULED)
_JOB: Final = HeaderName(JOB)
_NO_TYPE: Final = "-"
_ONCE: Final = frozenset({SCHEDULED, CRON, PERIOD, REPEAT, DELAY, TIME, "_AMQ_DUPL_ID"})
_BEGUN: Final = frozenset({SCHEDULED, CRON, DELAY, TIME, "_AMQ_DUPL_ID"})


class RecurrenceError(ValueError):
    """A header says nothing that can be repeated; the text names it."""


@final
class Recurrence:
    """What the headers of a message say. With ``cron`` each of its dates begins the rest anew: a delay, and ``repeat``
    more times, ``period_ms`` apart. Times are those of the broker's time zone.
    """

    __slots__ = ("cron", "period_ms", "repeat")

    def __init__(self, cron: str, period_ms: int, repeat: int) -> None:
        self.cron = cron
        self.period_ms = period_ms
        self.repeat = repeat

    @property
    def repeats(self) -> bool:
        """Is the message sent more than once, apart from ``cron``?"""
        return self.repeat != 0

    def first_ms(self, due_ms: int, now_ms: int) -> int:
        """The first date of a message that was sent now; ``due_ms``: what its delay or time says, or 0."""
        if self.cron:
            return next_of_cron(self.cron, now_ms)
        return due_ms or date_after(now_ms, self.period_ms)


def recurrence_of(headers: Mapping[str, str]) -> Recurrence | None:
    """The recurrence that headers ask for; None: the message is sent once. Raises RecurrenceError."""
    cron = headers.get(CRON, "").strip()
    period_ms, repeat = _number(headers, PERIOD), _number(headers, REPEAT)
    if not cron and not period_ms and not repeat:
        return None
    if repeat < _FOREVER:
        raise RecurrenceError(f"{REPEAT} is {repeat}; allowed: a number of times, or -1: until it is cancelled")
    if period_ms < 0 or 0 < period_ms < PERIOD_MS_MIN:
        raise RecurrenceError(f"{PERIOD} is {period_ms} ms; allowed: {PERIOD_MS_MIN} ms or more")
    if repeat and not period_ms:
        raise RecurrenceError(f"{REPEAT} needs {PERIOD}: the ms between two times")
    if cron:
        next_of_cron(cron, 0)
    return Recurrence(cron, period_ms, repeat)


def _number(headers: Mapping[str, str], name: str) -> int:
    text = headers.get(name, "").strip(" ")
    try:
        return parse_long(text) if text else 0
    except ValueError:
        raise RecurrenceError(f"{name} is not a number: {text[:40]!r}") from None


def next_of_cron(text: str, after_ms: int) -> int:
    """The first date after ``after_ms`` (epoch ms) that five fields name: minute, hour, day, month, day of the week.
    Raises RecurrenceError.
    """
    from cronsim import CronSim, CronSimError

    try:
        if len(text.split()) != _FIELDS:
            raise CronSimError(f"{_FIELDS} fields are needed, and it has {len(text.split())}")
        for found in CronSim(text, datetime.fromtimestamp(after_ms / 1000)):
            found_ms = round(found.timestamp() * 1000)
            if found_ms > after_ms:  # else it is in the hour that comes twice, and was in the first of them
                return found_ms
        raise RecurrenceError(f"{CRON} names no date: {text[:80]!r}")
    except (CronSimError, OverflowError, OSError) as error:
        raise RecurrenceError(
            f"{CRON} is not understood ({error}): {text[:80]!r}; allowed: minute, hour, day of the month, month, "
            "day of the week, such as 0 9 * * MON-FRI"
        ) from None


# ---- the message that waits ------------------------------------------------------------------------------------------


class Waiting(NamedTuple):
    """A message that waits for its date: its head, and the date in epoch ms."""

    head: Head
    due_ms: int


class Due(NamedTuple):
    """What a message that is due becomes: a message to ``address`` (and ``queue``), at once or at ``due_ms``; and the
    one that waits from now on, if it was not the last time.
    """

    head: Head
    address: str
    queue: str | None
    due_ms: int
    begins: Waiting | None
    """The repetitions that a date of cron begins: they wait, and nothing is sent at once."""
    again: Waiting | None


def waiting_head(head: Head, target: str, address: str, due_ms: int) -> Head:
    """The head of a message that waits at ``address`` until it is sent to ``target``; its duplicate id counts there."""
    routing_type = head.routing_type or _NO_TYPE
    line = encode_headers([(SCHEDULED, f"{due_ms} {routing_type} {target}")])[:-1]
    block = head.block
    if head.first(_JOB) is not None:  # of another schedule: a consumer sends on what it got
        block = encode_headers([(name, value) for name, value in head.headers() if name != JOB])
    return Head(
        line + block, address, priority=head.priority, persistent=head.persistent, sized=head.sized,
        duplicate_id=head.duplicate_id,
    )  # fmt: skip


def target_of(head: Head) -> str:
    """Where a message that waits is sent: ``address`` or ``address::queue``; empty if an operator moved it there."""
    told = head.first(_SCHEDULED)
    return "" if told is None else told.split(" ", 2)[2]


def destination_of(head: Head) -> tuple[str | None, str, str | None]:
    """Routing type, address and queue to which a message that waits is sent; it has a ``target_of``."""
    told = head.first(_SCHEDULED)
    assert told is not None
    _, routing_type, target = told.split(" ", 2)
    address, _, queue = target.partition("::")
    return None if routing_type == _NO_TYPE else routing_type, address, queue or None


def job_of(message: Message) -> int:
    """The id of the schedule of a message that waits."""
    told = message.head.first(_JOB) if message.head.first(_SCHEDULED) is not None else None
    return int(told) if told is not None and told.isdecimal() else message.id


def fall_due(head: Head, number: int, now_ms: int) -> Due:
    """What a message that waited becomes, which has a ``target_of``; ``number`` is its id."""
    told = head.first(_SCHEDULED)
    assert told is not None
    was_due_ms, routing_type, target = told.split(" ", 2)
    type, address, queue = destination_of(head)
    headers = list(head.headers())
    found = recurrence_of(dict(reversed(headers)))
    assert found is not None
    if head.first(_JOB) is None:
        headers.append((JOB, str(number)))

    def head_without(names: frozenset[str], address: str, type: str | None) -> Head:
        kept = [(name, value) for name, value in headers if name not in names]
        return Head(encode_headers(kept), address, head.priority, head.persistent, head.sized, type)

    def waits(due_ms: int, repeat: int, without: frozenset[str]) -> Waiting:
        kept = [(name, str(repeat) if name == REPEAT else value) for name, value in headers if name not in without]
        kept.insert(0, (SCHEDULED, f"{due_ms} {routing_type} {target}"))
        return Waiting(Head(encode_headers(kept), head.address, head.priority, head.persistent, head.sized), due_ms)

    sent = head_without(_ONCE, address, type)
    delay_ms = _number(dict(reversed(headers)), DELAY)
    after_ms = date_after(now_ms, delay_ms) if delay_ms > 0 else 0
    if found.cron:
        again = waits(next_of_cron(found.cron, max(now_ms, int(was_due_ms))), found.repeat, frozenset({SCHEDULED}))
        begins = waits(after_ms or date_after(now_ms, found.period_ms), found.repeat, _BEGUN) if found.repeats else None
        return Due(sent, address, queue, after_ms, begins, again)
    again_at: Waiting | None = None
    if found.repeats:
        missed = max(0, now_ms - int(was_due_ms)) // found.period_ms
        due_ms = min(int(was_due_ms) + (missed + 1) * found.period_ms, DATE_MAX_MS)
        again_at = waits(due_ms, found.repeat if found.repeat == _FOREVER else found.repeat - 1, _BEGUN - {CRON})
    return Due(sent, address, queue, 0, None, again_at)
