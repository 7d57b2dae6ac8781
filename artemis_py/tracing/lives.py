"""The life of single messages, told from the events of a log.

It begins when a message is published, and follows it through its queues. Copies that the broker makes of it (dead,
expired, diverted, moved) are followed, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from artemis_py.core.dead_letters import original_number
from artemis_py.history import (
    KNOWN,
    PUBLISHED,
    THERE,
    Arrival,
    History,
    Step,
    Who,
    arrival_words,
    copy_words,
    recall_words,
    words,
)
from artemis_py.message import SENT, HeaderName, Message
from artemis_py.storage.format.log_events import Attempted, Event
from artemis_py.storage.format.records import MESSAGE_FIELDS
from artemis_py.tracing.source import LogSource

LIVES_MAX: Final = 1_000
"""So many messages are followed at most, with their copies."""
_ORIGINAL_QUEUE: Final = HeaderName("_AMQ_ORIG_QUEUE")
_ORIGINAL_ADDRESS: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_REASON: Final = HeaderName("reason")
_MARK: Final = b"_AMQ_ORIG_MESSAGE_ID"
_NUMBER: Final = MESSAGE_FIELDS.only("id")


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
        self.history: History[int] = History(self._follow, name_of)
        self._matches = matches
        self._followed: dict[int, None] = {}
        """The numbers of messages that came, in this order."""
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

    # ---- what it tells ---------------------------------------------------------------------------

    def take(self, event: Event) -> list[Moment]:
        """What the next event tells."""
        steps = self.history.take(event)
        told, self._told = self._told, []
        told += map(_moment, steps)
        return told

    def still_there(self) -> list[Moment]:
        """A moment for each message that is on a queue at the end of the log, and for each of its queues."""
        what, text = THERE
        found: dict[int, list[Moment]] = {number: [] for number in self._followed}
        for queue in self.history.queues():
            for number, stay in queue.stays.items():
                held = stay.delivery
                who = "" if held is None else _consumer(held.consumer, self.history.who(held.consumer))
                found[number].append(Moment(0, 0, number, what, "with a consumer" if who else text, queue.name, who))
        return [moment for moments in found.values() for moment in moments]

    def _follow(self, arrival: Arrival) -> int | None:
        message, what = arrival.kept.message, arrival.what
        is_sent = message.head.provenance == SENT  # whatever its headers say
        original = original_number(message.head) if what == PUBLISHED and not is_sent else 0
        is_copy = original in self.ids
        if not self._is_followed(message, is_copy=is_copy):
            return None
        head, queues = message.head, arrival.queues
        if what == KNOWN:
            word, text = KNOWN, f"published earlier than this log begins; still on {', '.join(queues)}"
        elif what != PUBLISHED:
            word, text = recall_words(queues)
        elif is_copy or (original and not arrival.session):  # only the broker itself makes copies
            origin = head.first(_ORIGINAL_QUEUE) or head.first(_ORIGINAL_ADDRESS) or ""
            reason = head.first(_REASON) or ""
            word, text = copy_words(original, origin, reason, head.address, queues, message.size_bytes)
        else:
            original = 0
            word, text = arrival_words(head.address, queues, message.size_bytes, head.priority)
        event, who = arrival.event, "" if arrival.sender is None else _client(arrival.sender)
        self._told.append(Moment(event.time_ms, event.lsn, message.id, word, text, "", who, original))
        return message.id

    def _is_followed(self, message: Message, *, is_copy: bool) -> bool:
        if message.id in self._followed:
            return True
        if message.id not in self.ids and not is_copy and (self._matches is None or not self._matches(message)):
            return False
        if len(self._followed) >= LIVES_MAX:
            self.left_out += 1
            return False
        self.ids.add(message.id)
        self._followed[message.id] = None
        return True


def _moment(step: Step[int]) -> Moment:
    event, stay = step.event, step.stay
    wait_ms = max(event.due_ms - event.time_ms, 0) if isinstance(event, Attempted) and event.due_ms else 0
    what, text = words(step.what, step.why, stay.attempts, wait_ms)
    who = _consumer(step.consumer, step.who)
    return Moment(event.time_ms, event.lsn, stay.message_id, what, text, stay.queue.name, who)


def _client(who: Who) -> str:
    known = [f"client-id {who.client_id}"] if who.client_id else []
    known += [f"user {who.login}"] if who.login else []
    return f"{who.client} ({', '.join(known)})" if known else who.client


def _consumer(number: int, who: Who | None) -> str:
    if not number:
        return ""
    if who is None:
        return "a consumer that the log does not describe"
    name = f"consumer {who.number}" if who.number else "a consumer"
    return name + (f" of {_client(who)}" if who.client else "")


def follow(source: LogSource, lives: Lives) -> Iterator[Sequence[Moment]]:
    """What the log tells, record by record, so that its reader can stop and go on at each of them; most tell nothing.
    Raises ArtemisError.
    """
    source.may_be_among = lives.may_be_among
    for fields in source.begin(0, 0).queues:
        if fields.get("name"):
            lives.history.know_queue(fields)
    for part in source.parts():
        for fields in part.queues:
            if fields.get("name"):
                lives.history.know_queue(fields)
        if part.begins_segment:
            lives.history.begin_segment()
        yield ()
        for event in part.events_about(lives.wants):
            yield () if event is None else lives.take(event)
