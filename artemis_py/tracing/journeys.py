"""Makes spans of the history of messages: without input, output and OpenTelemetry.

A message with a valid and sampled ``traceparent`` gets a span ``queue NAME`` for each durable queue that it reached,
from its timestamp to the moment when the queue was done with it. Its parent is the sender's span. Below it is a span
``deliver NAME`` for each delivery, if the log records deliveries (it does with retention). Both appear when they end.

What is open takes memory, so it is bounded: beyond ``open_max`` messages the oldest are given up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from artemis_py.history import (
    ATTEMPTED,
    DELIVERED,
    DUE,
    RECALLED,
    RETURNED,
    Arrival,
    Delivery,
    History,
    Stay,
    Step,
    Who,
)
from artemis_py.message import SENT, Head, HeaderName
from artemis_py.storage.format.log_events import Attempted, Event
from artemis_py.tracing.client import SYSTEM

OPEN_MAX: Final = 100_000
LOST: Final = frozenset({"dead", "expired", "replaced", "killed", "damaged"})
"""The reasons for which a queue loses a message that nobody processed and nobody removed on purpose."""
FAILED: Final = frozenset({"nacked", "aborted", "lost", "lapsed", "failed", "restart"})
"""The causes for which a delivery failed."""
_GIVEN_UP_AT_ONCE: Final = 0.02
"""Which part of the open messages is given up when there are too many: to find the oldest costs a look at all."""
_CORRELATION: Final = HeaderName("correlation-id")
_ORIGINAL: Final = HeaderName("_AMQ_ORIG_MESSAGE_ID")
_ORIGINAL_QUEUE: Final = HeaderName("_AMQ_ORIG_QUEUE")
_DIGITS_MAX: Final = 20


class Traced:
    """A message with a trace, shared by its queues."""

    __slots__ = (
        "address", "body_bytes", "correlation_id", "id", "lsn", "original", "parent", "recalled_lsn", "sender",
        "timestamp_ms",
    )  # fmt: skip

    def __init__(self, arrival: Arrival, lsn: int, timestamp_ms: int, parent: Parent) -> None:
        message = arrival.kept.message
        self.id = message.id
        self.lsn = lsn
        self.timestamp_ms = timestamp_ms
        self.parent = parent
        self.address = message.head.address
        self.body_bytes = len(message.body)
        self.correlation_id = message.head.first(_CORRELATION) or ""
        self.recalled_lsn = lsn if arrival.what == RECALLED else 0
        """Where in the log it came to these queues from the past; 0: it was published to them."""
        self.sender = "" if arrival.sender is None else arrival.sender.client
        """The client's host and port; empty if unknown or the broker."""
        self.original = _original(message.head)
        """Of a copy: the number of its original, and the queue in which that ended ("": none, as for a divert)."""


class Journeys:
    """Takes the events of one log in order. ``log`` is the id of the log, ``after_lsn`` leaves out messages published
    up to there, ``from_ms`` those with an earlier timestamp, ``told_lsn`` spans that ended up to there.
    """

    def __init__(
        self, log: str, *, after_lsn: int = 0, from_ms: int = 0, told_lsn: int = 0, open_max: int = OPEN_MAX
    ) -> None:
        self.messages = 0
        """How many messages with a trace were found."""
        self.given_up = 0
        """How many of them were given up in one of their queues."""
        self.open = 0
        """How many messages are in queues now; one in two queues counts twice."""
        self._log = log
        self._after_lsn = after_lsn
        self._from_ms = from_ms
        self._told_lsn = told_lsn
        self._open_max = open_max
        self._history: History[Traced] = History(self._follow)
        self._done: list[FinishedSpan] = []

    # ---- what there is ---------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many finished spans nobody has taken."""
        return len(self._done)

    def oldest_lsn(self) -> int | None:
        """The lsn of the publication of the oldest open message; None if none is open."""
        stays = (next(iter(queue.stays.values())) for queue in self._history.queues() if queue.stays)
        return min((stay.message.lsn for stay in stays), default=None)

    def finished(self) -> list[FinishedSpan]:
        """The spans that ended since the last call."""
        done, self._done = self._done, []
        return done

    # ---- events ----------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Take in the next event."""
        for step in self._history.take(event):
            self._take(step)
        if self.open > self._open_max:
            self._give_up_oldest()

    def spans(self, events: Iterable[Event]) -> Iterator[FinishedSpan]:
        """The spans that end in these events, in that order."""
        for event in events:
            self.take(event)
            if self._done:
                yield from self.finished()

    def know_queue(self, fields: Mapping[str, Any]) -> None:
        """A queue has this name. An earlier part of the log that was not read may say so."""
        self._history.know_queue(fields)

    def begin_segment(self) -> None:
        """What follows is another segment."""
        self._history.begin_segment()

    def give_up_before(self, time_ms: int) -> None:
        """Give up the messages with an earlier timestamp that are still open."""
        for stay in self._stays():
            if stay.message.timestamp_ms < time_ms:
                self._give_up(stay)

    def _follow(self, arrival: Arrival) -> Traced | None:
        """A message is followed if it has a trace. The stay of one of the past begins now."""
        kept, is_recalled = arrival.kept, arrival.what == RECALLED
        lsn = arrival.event.lsn if is_recalled else kept.lsn
        arrived_ms = arrival.event.time_ms if is_recalled else kept.message.timestamp_ms
        if not arrival.queues or lsn <= self._after_lsn or arrived_ms < self._from_ms:
            return None
        parent = parent_of(kept.message.head)
        if parent is None:
            return None
        self.messages += 1
        self.open += len(arrival.queues)
        return Traced(arrival, lsn, arrived_ms, parent)

    def _take(self, step: Step[Traced]) -> None:
        stay, what = step.stay, step.what
        if what in (ATTEMPTED, DUE):
            stay.note(_happening(step))
        if step.delivery is not None and step.event.lsn > self._told_lsn:
            self._done.append(self._delivery_span(stay, step.delivery, step.event, _cause(step)))
        if step.is_end:
            self.open -= 1
            if step.event.lsn > self._told_lsn:
                self._done.append(self._stay_span(stay, step.event, what))

    # ---- what is given up ------------------------------------------------------------------------

    def _stays(self) -> list[Stay[Traced]]:
        return [stay for queue in self._history.queues() for stay in queue.stays.values()]

    def _give_up_oldest(self) -> None:
        stays = sorted(self._stays(), key=lambda stay: stay.message.lsn)
        for stay in stays[: max(len(stays) - self._open_max, int(self._open_max * _GIVEN_UP_AT_ONCE))]:
            self._give_up(stay)

    def _give_up(self, stay: Stay[Traced]) -> None:
        """Compaction may record it again: then it is not new."""
        self._after_lsn = max(self._after_lsn, stay.message.lsn)
        self._history.forget(stay)
        self.open -= 1
        self.given_up += 1

    # ---- spans -----------------------------------------------------------------------------------

    def _stay_span(self, stay: Stay[Traced], event: Event, reason: str) -> FinishedSpan:
        """A message in a queue, which was done with it for one of the codec's reasons."""
        message, queue = stay.message, stay.queue.name
        attributes = _common(stay)
        attributes["messaging.message.body.size"] = message.body_bytes
        attributes["artemis.reason"] = reason
        if message.sender:
            attributes["artemis.sender"] = message.sender
        if stay.attempts:
            attributes["artemis.attempts"] = stay.attempts
        if stay.left_out:
            attributes["artemis.events_left_out"] = stay.left_out
        links: tuple[Parent, ...] = ()
        if message.original is not None:
            number, original_queue = message.original
            attributes["artemis.original.message.id"] = str(number)
            if original_queue:
                attributes["artemis.original.queue"] = original_queue
                span_id = span_id_of(self._log, number, original_queue)
                links = (Parent(message.parent.trace_id, span_id, message.parent.state),)
        error = reason if reason in LOST else ""
        if error:
            attributes["error.type"] = error
        return FinishedSpan(
            f"queue {queue}",
            span_id_of(self._log, message.id, queue, recalled=message.recalled_lsn),
            message.parent,
            message.timestamp_ms,
            max(event.time_ms, message.timestamp_ms),
            event.lsn,
            attributes,
            error,
            stay.notes,
            links,
        )

    def _delivery_span(self, stay: Stay[Traced], delivery: Delivery, event: Event, cause: str) -> FinishedSpan:
        """A delivery that ended because of ``cause``: why the queue was done with the message, why the delivery failed,
        or how the consumer left.
        """
        message, queue = stay.message, stay.queue.name
        parent = message.parent
        who = delivery.who or Who()
        attributes = _common(stay)
        attributes["artemis.cause"] = cause
        if delivery.consumer:
            attributes["artemis.consumer"] = str(delivery.consumer)
        if who.client:
            attributes["artemis.client"] = who.client
        if who.client_id:
            attributes["messaging.client.id"] = who.client_id
        if who.subscription:
            attributes["artemis.subscription"] = who.subscription
        error = cause if cause in FAILED else ""
        if error:
            attributes["error.type"] = error
        start_ms = max(delivery.start_ms, message.timestamp_ms)
        stay_id = span_id_of(self._log, message.id, queue, recalled=message.recalled_lsn)
        return FinishedSpan(
            f"deliver {queue}",
            span_id_of(self._log, message.id, queue, delivery.lsn),
            Parent(parent.trace_id, stay_id, parent.state),
            start_ms,
            max(event.time_ms, start_ms),
            event.lsn,
            attributes,
            error,
        )


def _cause(step: Step[Traced]) -> str:
    """Why a delivery ended."""
    if step.what == DELIVERED:
        return "passed-on"
    return step.why or "failed" if step.what in (ATTEMPTED, RETURNED) else step.what


def _happening(step: Step[Traced]) -> Happening:
    event = step.event
    told: dict[str, str | int] = {}
    if isinstance(event, Attempted):
        told["artemis.attempts"] = event.attempts
        if event.cause:
            told["artemis.cause"] = event.cause
        if event.due_ms:
            told["artemis.due_ms"] = event.due_ms
    return Happening(event.time_ms, step.what, told)


def _common(stay: Stay[Traced]) -> dict[str, str | int]:
    message = stay.message
    attributes: dict[str, str | int] = {
        "messaging.system": SYSTEM,
        "messaging.destination.name": message.address,
        "messaging.destination.subscription.name": stay.queue.name,
        "messaging.message.id": str(message.id),
    }
    if message.correlation_id:
        attributes["messaging.message.conversation_id"] = message.correlation_id
    return attributes


def _original(head: Head) -> tuple[int, str] | None:
    """Of what a message is a copy. In older logs a client may have written anything there."""
    text = "" if head.provenance == SENT else head.first(_ORIGINAL) or ""
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        return None
    return int(text), head.first(_ORIGINAL_QUEUE) or ""


# ---- spans -----------------------------------------------------------------------------------------------------------
#
# A finished span as plain data, the sender's span above it (headers of the W3C Trace Context: ``traceparent`` and
# ``tracestate``), and the ids of spans.


Attributes = Mapping[str, str | int]
_ID_BYTES: Final = 8
_PARENT: Final = HeaderName("traceparent")
_STATE: Final = HeaderName("tracestate")
_FORM: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?",
    re.ASCII | re.DOTALL,
)
_INVALID_VERSION: Final = "ff"
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class Parent:
    """The sender's span. Ids are lower-case hexadecimal; ``state`` is the header ``tracestate`` as it came."""

    trace_id: str
    span_id: str
    state: str = ""


def parent_of(head: Head) -> Parent | None:
    """The sender's span, if the message has a valid ``traceparent`` and its trace is recorded (flag ``sampled``)."""
    text = head.first(_PARENT)
    found = None if text is None else _FORM.fullmatch(text)
    if found is None or found["version"] == _INVALID_VERSION or (found["version"] == "00" and found["more"]):
        return None
    trace_id, span_id = found["trace"], found["span"]
    if not int(found["flags"], 16) & _SAMPLED or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Parent(trace_id, span_id, head.first(_STATE) or "")


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of a span, at epoch milliseconds."""

    time_ms: int
    name: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class FinishedSpan:
    """A span from the log. Times are epoch milliseconds. ``error`` is empty, or says why its status is an error.
    ``lsn`` is that of the record which ended it.
    """

    name: str
    span_id: str
    parent: Parent
    start_ms: int
    end_ms: int
    lsn: int
    attributes: Attributes
    error: str = ""
    happenings: tuple[Happening, ...] = ()
    links: tuple[Parent, ...] = field(default=())

    def fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "trace_id": self.parent.trace_id,
            "span_id": self.span_id,
            "parent_span_id": self.parent.span_id,
            "trace_state": self.parent.state,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "error": self.error,
            "attributes": dict(self.attributes),
            "events": [
                {"time_ms": one.time_ms, "name": one.name, "attributes": dict(one.attributes)}
                for one in self.happenings
            ],
            "links": [{"trace_id": one.trace_id, "span_id": one.span_id} for one in self.links],
        }


def span_id_of(log: str, message_id: int, queue: str, delivery: int = 0, recalled: int = 0) -> str:
    """The id of the span of a message in a queue, or of its delivery that the log recorded at this lsn. It is the same
    each time the log is read. ``log`` is the id of the log, because the numbers are unique in one log only. With
    ``recalled``, the message came to the queue from the log, at that lsn; it may have been there before.
    """
    text = f"{log}\0{message_id}\0{queue}\0{delivery}"
    if recalled:
        text = f"{text}\0{recalled}"
    return blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
