"""What happened to messages, from the events of a log: a pure fold, without input and output.

It follows the messages that somebody wants through their queues: when they came, to whom they were delivered, what
failed, and why a queue was done with them. Who renders it says what it needs: ``tracing/lives`` tells it in words,
``tracing/journeys`` makes spans of it. The words are here, because a job on Spark says the same of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.log_events import (
    Attempted,
    Changed,
    Consumer,
    Delivered,
    Event,
    PageGrew,
    PageOpened,
    Published,
    Purged,
    Recalled,
    Repeated,
    ScheduledDue,
    Session,
    Settled,
    Started,
)

M = TypeVar("M")
_NOTES_MAX: Final = 100

PUBLISHED: Final = "published"
KNOWN: Final = "known"
"""Published before the log begins; known by a copy that compaction made."""
RECALLED: Final = "recalled"
DELIVERED: Final = "delivered"
ATTEMPTED: Final = "attempted"
DUE: Final = "due"
RETURNED: Final = "returned"
RESTART: Final = "restart"

# ---- in words ----------------------------------------------------------------------------------------------------

ACKED: Final = "acked"
ENDS: Final = {
    ACKED: ("acknowledged", "acknowledged"),
    "moved": ("moved", "moved by an operator"),
    "replaced": ("replaced", "dropped by a full ring"),
    "superseded": ("replaced", "replaced by a newer value"),
    "expired": ("expired", "expired"),
    "dead": ("dead", "its last delivery failed"),
    "killed": ("killed", "removed (dead, purged or dropped)"),
    "cancelled": ("dead", "sent to the dead letters by an operator; in older logs, discarded"),
    "purged": ("purged", "removed by an operator"),
    "deleted": ("deleted", "gone with its queue"),
    "abandoned": ("abandoned", "lost with the last consumer (purge-on-no-consumers)"),
    "damaged": ("damaged", "its record could not be read"),
}
"""What happened, in a word and in words, by the reason why a queue was done with a message."""
_CAUSES: Final = {
    "nacked": "NACK",
    "aborted": "its transaction was aborted",
    "lost": "the connection was lost",
    "lapsed": "its lease ended",
}
_RETURNS: Final = {
    "left": "its consumer left",
    "lost": "its consumer was lost",
    RESTART: "the broker was restarted",
}


def words(what: str, why: str = "", attempts: int = 0, wait_ms: int = 0) -> tuple[str, str]:
    """What happened to a message in a queue, in a word and in words. ``what`` is an event of the table ``events``, or
    ``RETURNED``; ``why`` its reason, ``wait_ms`` how long the next attempt waits.
    """
    if what == DELIVERED:
        return DELIVERED, "sent to a consumer"
    if what == DUE:
        return DUE, "its time has come"
    if what == RETURNED:
        return RETURNED, f"back on the queue: {_RETURNS.get(why, why)}"
    if what == ATTEMPTED:
        wait = f"; the next waits {wait_ms / 1000:g} s" if wait_ms else ""
        return "failed", f"delivery {attempts} failed: {_CAUSES.get(why, why or 'failed')}{wait}"
    return ENDS.get(what, (what, what))


def arrival_words(address: str, queues: Sequence[str], size_bytes: int, priority: int) -> tuple[str, str]:
    """A message was published."""
    where = ", ".join(queues) or "no durable queue"
    return "arrived", f"sent to {address}, on {where}, {size_bytes} bytes, priority {priority}"


def copy_words(
    original: int, origin: str, reason: str, address: str, queues: Sequence[str], size_bytes: int
) -> tuple[str, str]:
    """The broker made a copy of message ``original``, from the queue or address ``origin``."""
    why = f" ({reason})" if reason else ""
    where = ", ".join(queues) or "no durable queue"
    text = f"copy of message {original} from {origin}{why}: sent to {address}, on {where}, {size_bytes} bytes"
    return "copied", text


def recall_words(queues: Sequence[str]) -> tuple[str, str]:
    """A message of the past came to queues."""
    return RECALLED, f"put on {', '.join(queues)}, from the past of the log"


THERE: Final = ("there", "still there")
"""No queue is done with the message at the end of the log."""


# ---- what is open ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Who:
    """A client, and which consumer of it; empty and 0 if unknown."""

    client: str = ""
    client_id: str = ""
    login: str = ""
    subscription: str = ""
    number: int = 0


@dataclass(slots=True)
class Delivery:
    """A message is with a consumer, whose number is that of the log. ``who`` is set when it ends, if known."""

    lsn: int
    start_ms: int
    consumer: int
    who: Who | None = None


class Stay(Generic[M]):
    """A message in one queue. ``message`` is what the renderer keeps of it."""

    __slots__ = ("attempts", "delivery", "left_out", "message", "message_id", "notes", "place", "queue")

    def __init__(self, message: M, message_id: int, queue: OpenQueue[M], place: int, attempts: int) -> None:
        self.message = message
        self.message_id = message_id
        self.queue = queue
        self.place = place
        """In the pages of its address; 0: in memory."""
        self.attempts = attempts
        self.delivery: Delivery | None = None
        self.notes: tuple[Any, ...] = ()
        """What the renderer remembers for its end."""
        self.left_out = 0
        """How many notes there were besides."""

    def note(self, note: Any) -> None:
        """Remember something, unless there are too many such things."""
        if len(self.notes) < _NOTES_MAX:
            self.notes += (note,)
        else:
            self.left_out += 1


@dataclass(slots=True)
class OpenQueue(Generic[M]):
    """A queue, and the messages in it by number."""

    name: str
    stays: dict[int, Stay[M]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    """The numbers of messages in pages, by place."""

    def remove(self, message_id: int) -> Stay[M] | None:
        """The queue is done with a message."""
        stay = self.stays.pop(message_id, None)
        if stay is not None and stay.place:
            self.places.pop(stay.place, None)
        return stay


@dataclass(slots=True)
class Arrival:
    """A message comes to durable queues that did not have it, as ``PUBLISHED``, ``KNOWN`` or ``RECALLED``."""

    event: Event
    what: str
    kept: Kept
    queues: Sequence[str]
    session: int
    sender: Who | None
    """Who sent it, if known."""


@dataclass(slots=True)
class Step(Generic[M]):
    """Something happened to a message in a queue."""

    event: Event
    what: str
    """As of the table ``events``, or ``RETURNED``."""
    stay: Stay[M]
    why: str = ""
    """Of ``ATTEMPTED`` the cause, of ``RETURNED`` how the consumer left."""
    delivery: Delivery | None = None
    """The delivery that ended with it."""
    consumer: int = 0
    """Who did it."""
    who: Who | None = None
    is_end: bool = False
    """Is the queue done with the message? Then ``what`` is the reason."""


# ---- the fold ----------------------------------------------------------------------------------------------------


class History(Generic[M]):
    """Takes the events of one log in order. ``follow`` is asked for each message that comes, and returns what to keep
    of it; None: it is not followed. ``name_of`` knows the names of queues that the log has not named so far; empty: it
    does not.
    """

    def __init__(self, follow: Callable[[Arrival], M | None], name_of: Callable[[int], str] = lambda _: "") -> None:
        self._follow = follow
        self._name_of = name_of
        self._queues: dict[int, OpenQueue[M]] = {}
        self._pages: dict[tuple[int, int], int] = {}
        """The first place of each page, by stream and number; also of dropped ones, because it is where the page before
        ends.
        """
        self._sessions: dict[int, Who] = {}
        self._consumers: dict[int, Who] = {}
        self._with: dict[int, dict[tuple[int, int], Stay[M]]] = {}
        """What each consumer has, by queue and number of the message."""
        self._steps: list[Step[M]] = []

    def take(self, event: Event) -> Sequence[Step[M]]:
        """What the next event did to messages that are followed. Copies made by compaction are events here
        (``Repeated``): where the log begins later than a message was published, they are all that it has.
        """
        taker = _TAKERS.get(type(event))
        if taker is not None:
            taker(self, event)
        if not self._steps:
            return ()
        steps, self._steps = self._steps, []
        return steps

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

    def queues(self) -> Iterator[OpenQueue[M]]:
        """All queues, and what is in them."""
        return iter(self._queues.values())

    def who(self, consumer: int) -> Who | None:
        """The client of a consumer, if known."""
        return self._consumers.get(consumer)

    def forget(self, stay: Stay[M]) -> None:
        """Follow a message in a queue no longer."""
        self._take_back(stay)
        stay.queue.remove(stay.message_id)

    # ---- messages come ---------------------------------------------------------------------------

    def _published(self, event: Published) -> None:
        self._arrive(event, PUBLISHED, event.kept, event.session)

    def _repeated(self, event: Repeated) -> None:
        if isinstance(event.what, Published):
            self._arrive(event, KNOWN, event.what.kept, 0)

    def _recalled(self, event: Recalled) -> None:
        self._arrive(event, RECALLED, event.kept, 0)

    def _arrive(self, event: Event, what: str, kept: Kept, session: int) -> None:
        number = kept.message.id
        queues = [(queue_id, self._queue(queue_id)) for queue_id in kept.queue_ids]
        fresh = [(queue_id, queue) for queue_id, queue in queues if number not in queue.stays]
        if queues and not fresh:
            return
        names = [queue.name for _, queue in queues]
        message = self._follow(Arrival(event, what, kept, names, session, self._sessions.get(session)))
        if message is None:
            return
        for queue_id, queue in fresh:
            state = None if kept.details is None else kept.details.get(queue_id)
            place = state.order if state is not None and state.order > 0 else 0
            queue.stays[number] = Stay(message, number, queue, place, 0 if state is None else state.attempts)
            if place:
                queue.places[place] = number

    def _queue(self, queue_id: int) -> OpenQueue[M]:
        queue = self._queues.get(queue_id)
        if queue is None:
            queue = self._queues[queue_id] = OpenQueue(self._name_of(queue_id) or f"#{queue_id}")
        return queue

    # ---- and go ----------------------------------------------------------------------------------

    def _settled(self, event: Settled) -> None:
        queue = self._queues.get(event.queue_id)
        if queue is None or not queue.stays:
            return
        for message_id in event.message_ids:
            stay = queue.remove(message_id)
            if stay is not None:
                self._end(stay, event, event.reason, event.consumer)

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
                self._end(stay, event, event.reason)

    def _changed(self, event: Changed) -> None:
        if event.kind == "queue":
            self.know_queue(event.fields)
        elif event.kind == "queue-deleted":
            queue = self._queues.pop(event.fields["id"], None)
            for stay in () if queue is None else queue.stays.values():
                self._end(stay, event, "deleted")

    def _end(self, stay: Stay[M], event: Event, reason: str, consumer: int = 0) -> None:
        delivery = self._take_back(stay)
        if not consumer and delivery is not None and reason == ACKED:
            consumer = delivery.consumer
        self._note(event, reason, stay, delivery=delivery, consumer=consumer, is_end=True)

    # ---- deliveries ------------------------------------------------------------------------------

    def _delivered(self, event: Delivered) -> None:
        queue = self._queues.get(event.queue_id)
        if queue is None or not queue.stays:
            return
        for message_id in event.message_ids:
            stay = queue.stays.get(message_id)
            if stay is None:
                continue
            # It is with another one already on a queue that is not emptied by reading it, or if a lease lapsed.
            before = self._take_back(stay)
            stay.delivery = Delivery(event.lsn, event.time_ms, event.consumer)
            self._with.setdefault(event.consumer, {})[id(queue), message_id] = stay
            self._note(event, DELIVERED, stay, delivery=before, consumer=event.consumer)

    def _attempted(self, event: Attempted) -> None:
        queue = self._queues.get(event.queue_id)
        stay = None if queue is None else queue.stays.get(event.message_id)
        if stay is None:
            return
        stay.attempts = event.attempts
        delivery = self._take_back(stay)
        consumer = event.consumer or (0 if delivery is None else delivery.consumer)
        self._note(event, ATTEMPTED, stay, event.cause, delivery, consumer)

    def _fell_due(self, event: ScheduledDue) -> None:
        queue = self._queues.get(event.queue_id)
        for message_id in () if queue is None else event.message_ids:
            stay = None if queue is None else queue.stays.get(message_id)
            if stay is not None:
                self._note(event, DUE, stay)

    def _take_back(self, stay: Stay[M]) -> Delivery | None:
        delivery = stay.delivery
        if delivery is not None:
            stay.delivery = None
            delivery.who = self._consumers.get(delivery.consumer)
            held = self._with[delivery.consumer]
            del held[id(stay.queue), stay.message_id]
            if not held:
                del self._with[delivery.consumer]
        return delivery

    def _note(
        self,
        event: Event,
        what: str,
        stay: Stay[M],
        why: str = "",
        delivery: Delivery | None = None,
        consumer: int = 0,
        *,
        is_end: bool = False,
    ) -> None:
        who = self._consumers.get(consumer)
        self._steps.append(Step(event, what, stay, why, delivery, consumer, who, is_end))

    # ---- who -------------------------------------------------------------------------------------

    def _session(self, event: Session) -> None:
        self._sessions[event.session] = Who(event.client, event.client_id, event.login)

    def _consumer(self, event: Consumer) -> None:
        if event.closed:
            self._leave(event.consumer, event, event.closed)
            return
        session = self._sessions.get(event.session, _NOBODY)
        known = session.client, session.client_id, session.login
        self._consumers[event.consumer] = Who(*known, event.subscription, event.number)

    def _started(self, event: Started) -> None:
        """Recorded in each file; consumers of an earlier run are gone."""
        for consumer in sorted(self._consumers.keys() | self._with.keys()):
            if consumer < event.start:
                self._leave(consumer, event, RESTART)

    def _leave(self, consumer: int, event: Event, why: str) -> None:
        for stay in [*self._with.get(consumer, {}).values()]:
            delivery = self._take_back(stay)
            self._note(event, RETURNED, stay, why, delivery, consumer)
        self._consumers.pop(consumer, None)

    # ---- pages -----------------------------------------------------------------------------------

    def _page_opened(self, event: PageOpened) -> None:
        self._pages[event.stream, event.page] = event.first_place

    def _page_grew(self, event: PageGrew) -> None:
        if event.first_place:
            self._pages[event.stream, event.page] = event.first_place


_NOBODY: Final = Who()
_TAKERS: Final[dict[type[Event], Callable[[History[Any], Any], None]]] = {
    Published: History._published,
    Recalled: History._recalled,
    Repeated: History._repeated,
    Settled: History._settled,
    Purged: History._purged,
    Changed: History._changed,
    Delivered: History._delivered,
    Attempted: History._attempted,
    ScheduledDue: History._fell_due,
    Session: History._session,
    Consumer: History._consumer,
    Started: History._started,
    PageOpened: History._page_opened,
    PageGrew: History._page_grew,
}
