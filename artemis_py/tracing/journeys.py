"""Makes spans from the events of a log: a pure fold, without input, output and OpenTelemetry.

A message with a valid and sampled ``traceparent`` gets a span ``queue NAME`` for each durable queue that it reached,
from its timestamp to the moment when the queue was done with it. Its parent is the sender's span. Below it is a span
``deliver NAME`` for each delivery, if the log records deliveries (it does with retention). Both appear when they end.

What is open takes memory, so it is bounded: beyond ``open_max`` messages the oldest are given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from artemis_py.message import HeaderName, Message
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.log_events import (
    Attempted,
    Changed,
    Consumer,
    Delivered,
    Event,
    FellDue,
    PageDropped,
    PageGrew,
    PageOpened,
    Published,
    Purged,
    Recalled,
    Repeated,
    Session,
    Settled,
    Started,
)
from artemis_py.tracing.outcomes import Writer
from artemis_py.tracing.parent import parent_of
from artemis_py.tracing.span import FinishedSpan, Happening
from artemis_py.tracing.stays import Delivery, OpenQueue, Stay, Traced, Who

OPEN_MAX: Final = 100_000
_GIVEN_UP_AT_ONCE: Final = 0.02
"""Which part of the open messages is given up when there are too many: to find the oldest costs a look at all."""
_HAPPENINGS_MAX: Final = 100
_CORRELATION: Final = HeaderName("correlation-id")
_ORIGINAL: Final = HeaderName("_AMQ_ORIG_MESSAGE_ID")
_ORIGINAL_QUEUE: Final = HeaderName("_AMQ_ORIG_QUEUE")
_DIGITS_MAX: Final = 20


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
        self._after_lsn = after_lsn
        self._from_ms = from_ms
        self._told_lsn = told_lsn
        self._open_max = open_max
        self._open = 0
        self._queues: dict[int, OpenQueue] = {}
        self._pages: dict[tuple[int, int], int] = {}
        """The first place of each page, by stream and number."""
        self._sessions: dict[int, Session] = {}
        self._consumers: dict[int, Who] = {}
        self._with: dict[int, dict[int, Stay]] = {}
        """What each consumer has, by the number of the message."""
        self._done: list[FinishedSpan] = []
        self._write = Writer(log)

    # ---- what there is ---------------------------------------------------------------------------

    @property
    def open(self) -> int:
        """How many messages are in queues now; one in two queues counts twice."""
        return self._open

    @property
    def waiting(self) -> int:
        """How many finished spans nobody has taken."""
        return len(self._done)

    def oldest_lsn(self) -> int | None:
        """The lsn of the publication of the oldest open message; None if none is open."""
        stays = (next(iter(queue.stays.values())) for queue in self._queues.values() if queue.stays)
        return min((stay.message.lsn for stay in stays), default=None)

    def finished(self) -> list[FinishedSpan]:
        """The spans that ended since the last call."""
        done, self._done = self._done, []
        return done

    # ---- events ----------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Take in the next event. Copies made by compaction are events here (``Repeated``): where the log begins later
        than a message was published, they are all that it has.
        """
        taker = _TAKERS.get(type(event))
        if taker is not None:
            taker(self, event)

    def spans(self, events: Iterable[Event]) -> Iterator[FinishedSpan]:
        """The spans that end in these events, in that order."""
        for event in events:
            self.take(event)
            if self._done:
                yield from self.finished()

    def know_queue(self, fields: Mapping[str, Any]) -> None:
        """A queue has this name. An earlier part of the log that was not read may say so."""
        known = self._queues.get(fields["id"])
        if known is None:
            self._queues[fields["id"]] = OpenQueue(fields["name"])
        else:
            known.name = fields["name"]

    def begin_segment(self) -> None:
        """What follows is another segment. It describes each session again that it refers to."""
        self._sessions.clear()

    def give_up_before(self, time_ms: int) -> None:
        """Give up the messages with an earlier timestamp that are still open."""
        for queue in self._queues.values():
            for stay in [stay for stay in queue.stays.values() if stay.message.timestamp_ms < time_ms]:
                self._give_up(stay)

    # ---- messages come ---------------------------------------------------------------------------

    def _published(self, event: Published) -> None:
        self._arrive(event.kept, event.session, event.lsn, event.kept.message.timestamp_ms)

    def _repeated(self, event: Repeated) -> None:
        if isinstance(event.what, Published):
            kept = event.what.kept
            self._arrive(kept, 0, kept.lsn, kept.message.timestamp_ms)

    def _recalled(self, event: Recalled) -> None:
        """Its stay in these queues begins now, whenever it was published."""
        self._arrive(event.kept, 0, event.lsn, event.time_ms)

    def _arrive(self, kept: Kept, session: int, lsn: int, arrived_ms: int) -> None:
        message = kept.message
        if not kept.queue_ids or lsn <= self._after_lsn or arrived_ms < self._from_ms:
            return
        queues = [(queue_id, self._queue(queue_id)) for queue_id in kept.queue_ids]
        fresh = [(queue_id, queue) for queue_id, queue in queues if message.id not in queue.stays]
        parent = parent_of(message.head) if fresh else None
        if parent is None:
            return
        traced = Traced(message.id, lsn, arrived_ms, message.head.address, parent)
        traced.body_bytes = len(message.body)
        traced.recalled_lsn = lsn if lsn != kept.lsn else 0
        traced.correlation_id = message.head.first(_CORRELATION) or ""
        sender = self._sessions.get(session)
        traced.sender = "" if sender is None else sender.client
        traced.original = _original(message)
        self.messages += 1
        for queue_id, queue in fresh:
            state = None if kept.details is None else kept.details.get(queue_id)
            place = state.order if state is not None and state.order > 0 else 0
            queue.stays[message.id] = stay = Stay(traced, queue_id, place)
            if state is not None:
                stay.attempts = state.attempts
            if place:
                queue.places[place] = message.id
        self._open += len(fresh)
        if self._open > self._open_max:
            self._give_up_oldest()

    def _queue(self, queue_id: int) -> OpenQueue:
        queue = self._queues.get(queue_id)
        if queue is None:
            queue = self._queues[queue_id] = OpenQueue(f"#{queue_id}")
        return queue

    def _give_up_oldest(self) -> None:
        stays = [stay for queue in self._queues.values() for stay in queue.stays.values()]
        stays.sort(key=lambda stay: stay.message.lsn)
        count = max(len(stays) - self._open_max, int(self._open_max * _GIVEN_UP_AT_ONCE))
        for stay in stays[:count]:
            self._give_up(stay)

    def _give_up(self, stay: Stay) -> None:
        """Compaction may record it again: then it is not new."""
        self._after_lsn = max(self._after_lsn, stay.message.lsn)
        self._take_back(stay)
        self._queues[stay.queue_id].remove(stay.message.id)
        self._open -= 1
        self.given_up += 1

    # ---- and go ----------------------------------------------------------------------------------

    def _settled(self, event: Settled) -> None:
        queue = self._queues.get(event.queue_id)
        if queue is None or not queue.stays:
            return
        for message_id in event.message_ids:
            stay = queue.remove(message_id)
            if stay is not None:
                self._end(stay, queue, event, event.reason)

    def _purged(self, event: Purged) -> None:
        queue = self._queues.get(event.queue_id)
        first = self._pages.get((event.stream, event.page))
        if queue is None or first is None or not queue.places:
            return
        end = self._pages.get((event.stream, event.page + 1))
        gone = {place for place in queue.places if first <= place and (end is None or place < end)}
        for place in sorted(gone - set(event.kept_places)):
            stay = queue.remove(queue.places[place])
            if stay is not None:
                self._end(stay, queue, event, event.reason)

    def _changed(self, event: Changed) -> None:
        if event.kind == "queue":
            self.know_queue(event.fields)
        elif event.kind == "queue-deleted":
            queue = self._queues.pop(event.fields["id"], None)
            for stay in [] if queue is None else queue.stays.values():
                assert queue is not None
                self._end(stay, queue, event, "deleted")

    def _end(self, stay: Stay, queue: OpenQueue, event: Event, reason: str) -> None:
        if stay.delivery is not None:
            self._end_delivery(stay, queue, event, reason)
        self._open -= 1
        if event.lsn > self._told_lsn:
            self._done.append(self._write.stay(stay, queue.name, event, reason))

    # ---- deliveries ------------------------------------------------------------------------------

    def _delivered(self, event: Delivered) -> None:
        queue = self._queues.get(event.queue_id)
        if queue is None or not queue.stays:
            return
        for message_id in event.message_ids:
            stay = queue.stays.get(message_id)
            if stay is None:
                continue
            if stay.delivery is not None:  # a queue that is not emptied by reading it, or a lease that lapsed
                self._end_delivery(stay, queue, event, "passed-on")
            stay.delivery = Delivery(event.lsn, event.time_ms, event.consumer)
            self._with.setdefault(event.consumer, {})[message_id] = stay

    def _attempted(self, event: Attempted) -> None:
        queue = self._queues.get(event.queue_id)
        stay = None if queue is None else queue.stays.get(event.message_id)
        if queue is None or stay is None:
            return
        stay.attempts = event.attempts
        told: dict[str, str | int] = {"artemis.attempts": event.attempts}
        if event.cause:
            told["artemis.cause"] = event.cause
        if event.due_ms:
            told["artemis.due_ms"] = event.due_ms
        self._happened(stay, Happening(event.time_ms, "attempted", told))
        if stay.delivery is not None:
            self._end_delivery(stay, queue, event, event.cause or "failed")

    def _fell_due(self, event: FellDue) -> None:
        queue = self._queues.get(event.queue_id)
        for message_id in () if queue is None else event.message_ids:
            stay = None if queue is None else queue.stays.get(message_id)
            if stay is not None:
                self._happened(stay, Happening(event.time_ms, "due", {}))

    def _happened(self, stay: Stay, happening: Happening) -> None:
        if len(stay.happenings) < _HAPPENINGS_MAX:
            stay.happenings += (happening,)
        else:
            stay.more += 1

    def _take_back(self, stay: Stay) -> Delivery | None:
        delivery = stay.delivery
        if delivery is not None:
            stay.delivery = None
            held = self._with[delivery.consumer]
            del held[stay.message.id]
            if not held:
                del self._with[delivery.consumer]
        return delivery

    def _end_delivery(self, stay: Stay, queue: OpenQueue, event: Event, cause: str) -> None:
        delivery = self._take_back(stay)
        if delivery is not None and event.lsn > self._told_lsn:
            who = self._consumers.get(delivery.consumer, _NOBODY)
            self._done.append(self._write.delivery(stay, delivery, queue.name, who, event, cause))

    # ---- who -------------------------------------------------------------------------------------

    def _session(self, event: Session) -> None:
        self._sessions[event.session] = event

    def _consumer(self, event: Consumer) -> None:
        if event.closed:
            self._leave(event.consumer, event, event.closed)
            return
        session = self._sessions.get(event.session)
        known = ("", "") if session is None else (session.client, session.client_id)
        self._consumers[event.consumer] = Who(*known, event.subscription)

    def _started(self, event: Started) -> None:
        """Recorded in each file; consumers of an earlier run are gone."""
        for consumer in [*(self._consumers.keys() | self._with.keys())]:
            if consumer < event.start:
                self._leave(consumer, event, "restart")

    def _leave(self, consumer: int, event: Event, cause: str) -> None:
        for stay in [*self._with.get(consumer, {}).values()]:
            self._end_delivery(stay, self._queues[stay.queue_id], event, cause)
        self._consumers.pop(consumer, None)

    # ---- pages -----------------------------------------------------------------------------------

    def _page_opened(self, event: PageOpened) -> None:
        self._pages[event.stream, event.page] = event.first_place

    def _page_grew(self, event: PageGrew) -> None:
        if event.first_place:
            self._pages[event.stream, event.page] = event.first_place

    def _page_dropped(self, event: PageDropped) -> None:
        self._pages.pop((event.stream, event.page), None)


_NOBODY: Final = Who()
_TAKERS: Final[dict[type[Event], Callable[[Journeys, Any], None]]] = {
    Published: Journeys._published,
    Recalled: Journeys._recalled,
    Repeated: Journeys._repeated,
    Settled: Journeys._settled,
    Purged: Journeys._purged,
    Changed: Journeys._changed,
    Delivered: Journeys._delivered,
    Attempted: Journeys._attempted,
    FellDue: Journeys._fell_due,
    Session: Journeys._session,
    Consumer: Journeys._consumer,
    Started: Journeys._started,
    PageOpened: Journeys._page_opened,
    PageGrew: Journeys._page_grew,
    PageDropped: Journeys._page_dropped,
}


def _original(message: Message) -> tuple[int, str] | None:
    """Of what a message is a copy. A client may have written anything there, and a dead letter may keep it."""
    text = message.head.first(_ORIGINAL) or ""
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        return None
    return int(text), message.head.first(_ORIGINAL_QUEUE) or ""
