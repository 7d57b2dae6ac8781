"""Events of queues that an operator may want to know. The core notes them; the server writes them.

The codes are those of Qpid Broker-J's operational log (docs/operational-log.md), so tools made for it find
them. Events for which Qpid has no code have one that begins with ``ART``.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.errors import StorageError

CREATED: Final = "QUE-1001"
DELETED: Final = "QUE-1002"
OVERFULL: Final = "QUE-1003"
UNDERFULL: Final = "QUE-1004"
DROPPED: Final = "QUE-1005"
OPERATION: Final = "QUE-1016"
OPENED: Final = "QUE-1018"
BLOCKED: Final = "CHN-1005"
UNBLOCKED: Final = "CHN-1006"
DISCARDED: Final = "CHN-1009"
NOT_ROUTED: Final = "CHN-1010"
DEAD: Final = "CHN-1011"
SUBSCRIBED: Final = "SUB-1001"
UNSUBSCRIBED: Final = "SUB-1002"
ALERT: Final = "ART-1001"
REJECTED: Final = "ART-1002"
LOOPED: Final = "ART-1003"
LIMITED: Final = "ART-1004"
SET_ASIDE: Final = "ART-1005"
GIVEN_UP: Final = "ART-1006"
LEASES_ENDED: Final = "ART-1007"
HELD_UP: Final = "ART-1008"
FILLED: Final = "ART-1009"
PAST_LOST: Final = "ART-1010"
CONSUMER_SLOW: Final = "ART-1011"
ORPHANED: Final = "ART-1012"
FOREIGN_HEADER: Final = "ART-1013"
ADDRESS_DROPS: Final = "ART-1014"
ADDRESS_REFUSES: Final = "ART-1015"
PAGES: Final = "ART-1016"
NO_ID: Final = "ART-1017"
ERROR: Final = "ART-1018"
CLOSED: Final = "ART-1019"
PAGES_NO_MORE: Final = "ART-1020"
NO_DESTINATION: Final = "ART-1021"

MEANINGS: Final = {
    CREATED: "queue created",
    DELETED: "queue deleted",
    OVERFULL: "queue overfull, senders wait",
    UNDERFULL: "queue underfull, senders go on",
    DROPPED: "messages dropped by a ring",
    OPERATION: "management operation",
    OPENED: "queue opened after a restart",
    BLOCKED: "sender blocked",
    UNBLOCKED: "sender goes on",
    DISCARDED: "message discarded after its last attempt: there is no dead-letter address",
    NOT_ROUTED: "message discarded after its last attempt: the dead-letter address has no queue for it",
    DEAD: "message sent to the dead-letter address",
    SUBSCRIBED: "subscription created",
    UNSUBSCRIBED: "subscription closed",
    ALERT: "alert threshold breached",
    REJECTED: "message refused by a full queue",
    LOOPED: "message dropped: diverts, dead-letter or expiry addresses form a loop",
    LIMITED: "address, queue or connection refused at a limit",
    SET_ASIDE: "queue paused because a step failed; resume it to try again",
    GIVEN_UP: "a copy or a task failed and was given up",
    LEASES_ENDED: "leases ended before their messages were acknowledged",
    HELD_UP: "nothing is delivered although messages are ready: backlogs are used up",
    FILLED: "queue filled from the log",
    PAST_LOST: "queue misses messages of the past: the log does not have them any more",
    CONSUMER_SLOW: "consumer is slow",
    ORPHANED: "message dropped: it was sent to a temporary destination whose client has gone",
    ADDRESS_DROPS: "messages dropped by a full address",
    ADDRESS_REFUSES: "messages refused by a full address",
    PAGES: "address full: from now on it pages",
    FOREIGN_HEADER: "client sends a header that means nothing here",
    NO_ID: "client subscribes without an id, so the destination serves as one",
    ERROR: "client got an ERROR",
    CLOSED: "connection closed by the broker",
    PAGES_NO_MORE: "address pages no more: every queue has settled what was in pages",
    NO_DESTINATION: "destination of a schedule does not exist, and is not created: its messages reach nobody",
}
"""What each code means."""


_ERROR_TEXT_MAX: Final = 200


def described(step: str, error: Exception) -> dict[str, str | int]:
    """The fields of an event about a step that raised an exception. Raises the error again when the disk failed: the
    broker stops then.
    """
    if isinstance(error, StorageError):
        raise error
    return {"step": step, "error": f"{type(error).__name__}: {error}"[:_ERROR_TEXT_MAX]}


@final
class Event:
    """One event. ``fields`` are its numbers and names; ``count`` is how often it happened, reported together."""

    __slots__ = ("code", "count", "fields", "queue")

    def __init__(self, code: str, queue: str, fields: dict[str, str | int], count: int = 1) -> None:
        self.code = code
        self.queue = queue
        self.fields = fields
        self.count = count


class Events:
    """Events that nobody has taken yet. After ``NOTED_MAX`` different ones in one turn only ``counts`` go on."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """How often each code was noted since the start."""
        self.noted: dict[tuple[str, str, str], Event] = {}

    def note(self, code: str, queue: str, fields: dict[str, str | int], *, kind: str = "", count: int = 1) -> None:
        """Note an event. Events with the same code, queue and ``kind`` are reported together, with the latest
        fields.
        """
        self.counts[code] = self.counts.get(code, 0) + count
        noted = self.noted.get((code, queue, kind))
        if noted is not None:
            noted.count += count
            noted.fields = fields
        elif len(self.noted) < NOTED_MAX:
            self.noted[code, queue, kind] = Event(code, queue, fields, count)

    def take(self) -> list[Event]:
        """Take the noted events, in order. They are forgotten here."""
        noted, self.noted = self.noted, {}
        return list(noted.values())


NOTED_MAX: Final = 1024
