"""The life of single messages, from the events of a log: a pure fold, without input and output.

It begins when a message is published, and follows it through its queues: to whom it was delivered, what failed, why a
queue was done with it. Copies that the broker makes of it (dead, expired, diverted, moved) are followed, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from artemis_py.core.dead_letters import original_number
from artemis_py.message import HeaderName, Message
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
from artemis_py.storage.format.records import MESSAGE_FIELDS

LIVES_MAX: Final = 1_000
"""So many messages are followed at most, with their copies."""
THERE: Final = "there"
"""What a message is that no queue is done with."""
_ORIGINAL_QUEUE: Final = HeaderName("_AMQ_ORIG_QUEUE")
_ORIGINAL_ADDRESS: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_REASON: Final = HeaderName("reason")
_MARK: Final = b"_AMQ_ORIG_MESSAGE_ID"
_NUMBER: Final = MESSAGE_FIELDS.only("id")

ENDS: Final = {
    "acked": ("acknowledged", "acknowledged"),
    "replaced": ("replaced", "pushed out of a full ring"),
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
CAUSES: Final = {
    "nacked": "NACK",
    "aborted": "its transaction was aborted",
    "lost": "the connection was lost",
    "lapsed": "its lease ended",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """Something happened to a message. ``what`` is a word; ``who`` is the client that did it, empty if nobody did or
    nobody knows. A ``time_ms`` of 0: it is so at the end of the log.
    """

    time_ms: int
    lsn: int
    message_id: int
    what: str
    text: str
    queue: str = ""
    who: str = ""
    original: int = 0
    """Of a copy: the number of the message that it was made of."""

    def fields(self) -> dict[str, Any]:
        """For JSON, with the names of the operation's rows."""
        return {
            "time": self.time_ms,
            "messageID": self.message_id,
            "what": self.what,
            "queue": self.queue,
            "who": self.who,
            "text": self.text,
            "original": self.original,
            "lsn": self.lsn,
        }


@final
class _Life:
    """A message that is followed: its queues by number, each with the consumer that has it (0: nobody)."""

    __slots__ = ("holders", "places")

    def __init__(self) -> None:
        self.holders: dict[int, int] = {}
        self.places: dict[int, int] = {}
        """Its place in the pages of its address, by queue."""


@final
class Lives:
    """Takes the events of one log in order. ``ids`` are the numbers of wanted messages; those that ``matches`` accepts
    are wanted, too. ``name_of`` knows the names of queues that the log has not named so far; empty: it does not.
    """

    def __init__(
        self,
        ids: set[int],
        matches: Callable[[Message], bool] | None = None,
        name_of: Callable[[int], str] = lambda _: "",
    ) -> None:
        self.ids = ids
        """The numbers of all messages that are followed; copies are added."""
        self.left_out = 0
        """How many more would have been followed."""
        self._matches = matches
        self._name_of = name_of
        self._lives: dict[int, _Life] = {}
        self._queues: dict[int, str] = {}
        self._sessions: dict[int, str] = {}
        self._consumers: dict[int, str] = {}
        self._pages: dict[tuple[int, int], int] = {}
        self._told: list[Moment] = []

    # ---- what somebody needs to read -------------------------------------------------------------

    def wants(self, payload: bytes) -> bool:
        """May a MESSAGE record with this payload be wanted?"""
        if self._matches is not None or _MARK in payload:
            return True
        return len(payload) >= _NUMBER.size and _NUMBER.unpack_from(payload)[0] in self.ids

    def may_be_among(self, spans: list[tuple[int, int]] | None) -> bool:
        """May a part of the log that mentions messages with these numbers (None: unknown) have something to tell?"""
        if spans is None or self._matches is not None:
            return True
        return any(low <= number <= high for low, high in spans for number in self.ids)

    # ---- events ----------------------------------------------------------------------------------

    def know_queue(self, fields: Mapping[str, Any]) -> None:
        """A queue has this name."""
        self._queues[fields["id"]] = fields["name"]

    def begin_segment(self) -> None:
        """What follows is another segment. It describes each session again that it refers to."""
        self._sessions.clear()

    def take(self, event: Event) -> list[Moment]:
        """What the next event tells."""
        taker = _TAKERS.get(type(event))
        if taker is not None:
            taker(self, event)
        told, self._told = self._told, []
        return told

    def still_there(self) -> list[Moment]:
        """A moment for each message that is on a queue at the end of the log, and for each of its queues."""
        return [
            Moment(0, 0, number, THERE, "with a consumer" if holder else "still there", self._name(queue_id), who)
            for number, life in self._lives.items()
            for queue_id, holder in life.holders.items()
            for who in [self._who(holder)]
        ]

    def _tell(
        self, event: Event, number: int, what: str, text: str, queue_id: int = 0, who: str = "", original: int = 0
    ) -> None:
        queue = self._name(queue_id) if queue_id else ""
        self._told.append(Moment(event.time_ms, event.lsn, number, what, text, queue, who, original))

    def _name(self, queue_id: int) -> str:
        return self._queues.get(queue_id) or self._name_of(queue_id) or f"#{queue_id}"

    def _who(self, consumer: int) -> str:
        return self._consumers.get(consumer, "a consumer that the log does not describe") if consumer else ""

    # ---- it comes --------------------------------------------------------------------------------

    def _published(self, event: Published) -> None:
        message, kept = event.kept.message, event.kept
        original = original_number(message.head)
        is_copy = original in self.ids
        if not self._follow(message, is_copy=is_copy):
            return
        queues = ", ".join(self._name(one) for one in kept.queue_ids) or "no durable queue"
        size = f"{message.size_bytes} bytes"
        if is_copy or (original and not event.session):  # only the broker itself makes copies
            reason = message.head.first(_REASON)
            origin = message.head.first(_ORIGINAL_QUEUE) or message.head.first(_ORIGINAL_ADDRESS) or ""
            why = f" ({reason})" if reason else ""
            text = f"copy of message {original} from {origin}{why}: sent to {message.head.address}, on {queues}, {size}"
            self._tell(event, message.id, "copied", text, who=self._sender(event.session), original=original)
        else:
            text = f"sent to {message.head.address}, on {queues}, {size}, priority {message.head.priority}"
            self._tell(event, message.id, "arrived", text, who=self._sender(event.session))
        self._place(kept)

    def _follow(self, message: Message, *, is_copy: bool) -> bool:
        if message.id in self._lives:
            return False
        if message.id not in self.ids and not is_copy and (self._matches is None or not self._matches(message)):
            return False
        if len(self._lives) >= LIVES_MAX:
            self.left_out += 1
            return False
        self.ids.add(message.id)
        self._lives[message.id] = _Life()
        return True

    def _place(self, kept: Kept) -> None:
        life = self._lives[kept.message.id]
        for queue_id in kept.queue_ids:
            life.holders.setdefault(queue_id, 0)
            state = None if kept.details is None else kept.details.get(queue_id)
            if state is not None and state.order > 0:
                life.places[queue_id] = state.order
            if state is not None and state.due_ms:
                life.holders[queue_id] = 0

    def _sender(self, session: int) -> str:
        return self._sessions.get(session, "")

    def _repeated(self, event: Repeated) -> None:
        """Where the log begins later than the message was published, a copy made by compaction is the first to tell."""
        if not isinstance(event.what, Published):
            return
        message = event.what.kept.message
        if self._follow(message, is_copy=False):
            queues = ", ".join(self._name(one) for one in event.what.kept.queue_ids)
            text = f"published earlier than this log begins; still on {queues}"
            self._tell(event, message.id, "known", text)
            self._place(event.what.kept)

    def _recalled(self, event: Recalled) -> None:
        message = event.kept.message
        self._follow(message, is_copy=False)
        if message.id in self._lives:
            queues = ", ".join(self._name(one) for one in event.kept.queue_ids)
            self._tell(event, message.id, "recalled", f"put on {queues}, from the past of the log")
            self._place(event.kept)

    # ---- and goes --------------------------------------------------------------------------------

    def _delivered(self, event: Delivered) -> None:
        for number in event.message_ids:
            life = self._lives.get(number)
            if life is not None:
                life.holders[event.queue_id] = event.consumer
                self._tell(event, number, "delivered", "sent to a consumer", event.queue_id, self._who(event.consumer))

    def _settled(self, event: Settled) -> None:
        for number in event.message_ids:
            life = self._lives.get(number)
            if life is not None:
                self._end(event, life, number, event.queue_id, event.reason, event.consumer)

    def _end(self, event: Event, life: _Life, number: int, queue_id: int, reason: str, consumer: int) -> None:
        holder = life.holders.pop(queue_id, 0)
        what, text = ENDS.get(reason, (reason, reason))
        self._tell(event, number, what, text, queue_id, self._who(consumer or (holder if reason == "acked" else 0)))

    def _attempted(self, event: Attempted) -> None:
        life = self._lives.get(event.message_id)
        if life is None:
            return
        holder = life.holders.get(event.queue_id, 0)
        life.holders[event.queue_id] = 0
        cause = CAUSES.get(event.cause, event.cause or "failed")
        text = f"delivery {event.attempts} failed: {cause}"
        if event.due_ms:
            text += f"; the next waits {max(event.due_ms - event.time_ms, 0) / 1000:g} s"
        self._tell(event, event.message_id, "failed", text, event.queue_id, self._who(event.consumer or holder))

    def _fell_due(self, event: ScheduledDue) -> None:
        for number in event.message_ids:
            if number in self._lives:
                self._tell(event, number, "due", "its time has come", event.queue_id)

    def _purged(self, event: Purged) -> None:
        """A queue is done with a page."""
        first = self._pages.get((event.stream, event.page))
        end = self._pages.get((event.stream, event.page + 1))
        if first is None:
            return
        for number, life in self._lives.items():
            place = life.places.get(event.queue_id, 0)
            is_inside = place >= first and (end is None or place < end) and place not in event.kept_places
            if event.queue_id in life.holders and place and is_inside:
                self._end(event, life, number, event.queue_id, event.reason, 0)

    def _changed(self, event: Changed) -> None:
        if event.kind == "queue":
            self.know_queue(event.fields)
        elif event.kind == "queue-deleted":
            queue_id = event.fields["id"]
            for number, life in self._lives.items():
                if queue_id in life.holders:
                    self._end(event, life, number, queue_id, "deleted", 0)

    # ---- who -------------------------------------------------------------------------------------

    def _session(self, event: Session) -> None:
        known = [f"client-id {event.client_id}"] if event.client_id else []
        known += [f"user {event.login}"] if event.login else []
        self._sessions[event.session] = f"{event.client} ({', '.join(known)})" if known else event.client

    def _consumer(self, event: Consumer) -> None:
        if event.closed:
            self._leave(
                event, event.consumer, "its consumer left" if event.closed == "left" else "its consumer was lost"
            )
            self._consumers.pop(event.consumer, None)
            return
        session = self._sessions.get(event.session, "")
        name = f"consumer {event.number}" if event.number else "a consumer"
        self._consumers[event.consumer] = name + (f" of {session}" if session else "")

    def _leave(self, event: Event, consumer: int, text: str) -> None:
        for number, life in self._lives.items():
            for queue_id, holder in life.holders.items():
                if holder == consumer:
                    life.holders[queue_id] = 0
                    self._tell(event, number, "returned", f"back on the queue: {text}", queue_id, self._who(consumer))

    def _started(self, event: Started) -> None:
        """Recorded in each file; consumers of an earlier run are gone."""
        holders = {one for life in self._lives.values() for one in life.holders.values() if 0 < one < event.start}
        for consumer in sorted(holders):
            self._leave(event, consumer, "the broker was restarted")
        self._consumers = {number: who for number, who in self._consumers.items() if number >= event.start}

    # ---- pages -----------------------------------------------------------------------------------

    def _page_opened(self, event: PageOpened) -> None:
        self._pages[event.stream, event.page] = event.first_place

    def _page_grew(self, event: PageGrew) -> None:
        if event.first_place:
            self._pages[event.stream, event.page] = event.first_place


_TAKERS: Final[dict[type[Event], Callable[[Lives, Any], None]]] = {
    Published: Lives._published,
    Recalled: Lives._recalled,
    Repeated: Lives._repeated,
    Settled: Lives._settled,
    Purged: Lives._purged,
    Changed: Lives._changed,
    Delivered: Lives._delivered,
    Attempted: Lives._attempted,
    ScheduledDue: Lives._fell_due,
    Session: Lives._session,
    Consumer: Lives._consumer,
    Started: Lives._started,
    PageOpened: Lives._page_opened,
    PageGrew: Lives._page_grew,
}
