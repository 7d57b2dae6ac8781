"""The notifications that listeners get: those of Artemis, and a few more.

Whoever does something worth one asks ``is_heard`` first, so that it costs one look while nobody listens. The server
takes them once a turn.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, final

from artemis_py.core import events
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Message

ADDRESS_ADDED: Final = "ADDRESS_ADDED"
ADDRESS_REMOVED: Final = "ADDRESS_REMOVED"
BINDING_ADDED: Final = "BINDING_ADDED"
BINDING_REMOVED: Final = "BINDING_REMOVED"
CONSUMER_CREATED: Final = "CONSUMER_CREATED"
CONSUMER_CLOSED: Final = "CONSUMER_CLOSED"
CONSUMER_SLOW: Final = "CONSUMER_SLOW"
CONNECTION_CREATED: Final = "CONNECTION_CREATED"
CONNECTION_DESTROYED: Final = "CONNECTION_DESTROYED"
SESSION_CREATED: Final = "SESSION_CREATED"
SESSION_CLOSED: Final = "SESSION_CLOSED"
MESSAGE_EXPIRED: Final = "MESSAGE_EXPIRED"
LOGIN_REFUSED: Final = "SECURITY_AUTHENTICATION_VIOLATION"
PERMISSION_REFUSED: Final = "SECURITY_PERMISSION_VIOLATION"
CONFIGURATION_RELOADED: Final = "CONFIGURATION_RELOADED"
CONFIGURATION_REFUSED: Final = "CONFIGURATION_REFUSED"
OPERATION: Final = "OPERATION"
LOST: Final = "NOTIFICATIONS_LOST"

OF_EVENTS: Final = {
    events.OVERFULL: "QUEUE_OVERFULL",
    events.UNDERFULL: "QUEUE_UNDERFULL",
    events.DROPPED: "MESSAGES_DROPPED",
    events.OPERATION: OPERATION,
    events.BLOCKED: "SENDER_BLOCKED",
    events.UNBLOCKED: "SENDER_UNBLOCKED",
    events.DISCARDED: "MESSAGE_DISCARDED",
    events.NOT_ROUTED: "MESSAGE_DISCARDED",
    events.DEAD: "MESSAGE_DEAD",
    events.ALERT: "ALERT",
    events.REJECTED: "MESSAGE_REJECTED",
    events.LOOPED: "MESSAGE_LOOPED",
    events.LIMITED: "LIMIT_REACHED",
    events.SET_ASIDE: "QUEUE_SET_ASIDE",
    events.GIVEN_UP: "COPY_GIVEN_UP",
    events.LEASES_ENDED: "LEASES_ENDED",
    events.HELD_UP: "QUEUE_HELD_UP",
    events.FILLED: "QUEUE_FILLED",
    events.PAST_LOST: "PAST_LOST",
}
"""The notifications that come from events of the operational log; the other events have notifications of their own."""

NOTED_MAX: Final = 5_000
"""How many may wait to be told; further ones are only counted."""

Fields = dict[str, str | int]


@final
class Notification:
    """One notification: its type, and its fields by the names that docs/operations.md has for them."""

    __slots__ = ("fields", "type")

    def __init__(self, type: str, fields: Fields) -> None:
        self.type = type
        self.fields = fields


@final
class Notifications:
    """Those that were not taken yet."""

    __slots__ = ("_has_queues", "_is_listened_to", "is_heard", "lost", "noted")

    def __init__(self) -> None:
        self.is_heard = False
        """Does anybody listen? Otherwise do not call ``note``."""
        self.lost = 0
        """How many were not noted since they were last taken, because there were too many."""
        self.noted: list[Notification] = []
        """Those that were not taken yet, in order."""
        self._has_queues = False
        self._is_listened_to = False

    @property
    def has_queues(self) -> bool:
        """Has the address of notifications a queue?"""
        return self._has_queues

    @has_queues.setter
    def has_queues(self, has_queues: bool) -> None:
        self._has_queues = has_queues
        self.is_heard = has_queues or self._is_listened_to

    @property
    def is_listened_to(self) -> bool:
        """Does anybody listen in another way than by a queue of the address?"""
        return self._is_listened_to

    @is_listened_to.setter
    def is_listened_to(self, is_listened_to: bool) -> None:
        self._is_listened_to = is_listened_to
        self.is_heard = is_listened_to or self._has_queues

    def note(self, type: str, fields: Fields) -> None:
        """Note one. To be called only if ``is_heard``."""
        if len(self.noted) < NOTED_MAX:
            self.noted.append(Notification(type, fields))
        else:
            self.lost += 1

    def take(self, count_max: int) -> list[Notification]:
        """Take some of what was noted, in order; at the end comes how much could not be noted."""
        noted = self.noted
        taken, self.noted = noted[:count_max], noted[count_max:]
        if self.lost and not self.noted:
            taken.append(Notification(LOST, {"count": self.lost}))
            self.lost = 0
        return taken

    def note_expired(self, expired: list[tuple[QueueReference, Message, str]]) -> None:
        """Messages have expired: note one for each queue, with the last message and their number."""
        last = {queue: message for queue, message, _ in expired}
        counts = Counter(queue for queue, _, _ in expired)
        for queue, message in last.items():
            fields: Fields = {"queue": queue.name, "address": queue.address.name, "message": message.id}
            self.note(MESSAGE_EXPIRED, {**fields, "count": counts[queue]})

    def note_events(self, noted: list[events.Event], is_about_listening: set[str]) -> None:
        """Note what the operational log tells. ``is_about_listening`` are the names of queues on which the
        notifications themselves wait: what happens to these brings forth no further ones.
        """
        for event in noted:
            type = OF_EVENTS.get(event.code)
            if type is not None and event.queue not in is_about_listening:
                fields: Fields = {"code": event.code, "queue": event.queue, **event.fields}
                if event.count > 1:
                    fields["count"] = event.count
                self.note(type, fields)
