"""What happens to queues and somebody who runs the broker may want to know. The core notes it; the server writes it.

Codes are those of Qpid Broker-J's operational log (docs/queues.md, Operational log), so that tools made for it find
them; what Qpid has no code for has ours, which begin with ``ART``.
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
    SET_ASIDE: "queue paused because a step failed; a restart tries again",
    GIVEN_UP: "a copy or a chore failed and was given up",
}
"""By code, what happened."""


_ERROR_TEXT_MAX: Final = 200


def described(step: str, error: Exception) -> dict[str, str | int]:
    """What an event tells of a step that broke off. Raises the error when the disk failed: the broker stops then."""
    if isinstance(error, StorageError):
        raise error
    return {"step": step, "error": f"{type(error).__name__}: {error}"[:_ERROR_TEXT_MAX]}


@final
class Event:
    """One thing that happened. ``fields`` are its numbers and names, ``count`` how often it happened, told together."""

    __slots__ = ("code", "count", "fields", "queue")

    def __init__(self, code: str, queue: str, fields: dict[str, str | int], count: int = 1) -> None:
        self.code = code
        self.queue = queue
        self.fields = fields
        self.count = count


class Events:
    """What happened since somebody asked. Bounded: with ``NOTED_MAX`` different ones in one turn only counts go on."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """By code, since the start."""
        self._noted: dict[tuple[str, str, str], Event] = {}

    def note(self, code: str, queue: str, fields: dict[str, str | int], *, kind: str = "", count: int = 1) -> None:
        """Something happened. Events of one code, queue and ``kind`` are told together, with the latest fields."""
        self.counts[code] = self.counts.get(code, 0) + count
        noted = self._noted.get((code, queue, kind))
        if noted is not None:
            noted.count += count
            noted.fields = fields
        elif len(self._noted) < NOTED_MAX:
            self._noted[code, queue, kind] = Event(code, queue, fields, count)

    @property
    def is_empty(self) -> bool:
        """Did nothing happen?"""
        return not self._noted

    def take(self) -> list[Event]:
        """What was noted, in order; it is forgotten here."""
        noted, self._noted = self._noted, {}
        return list(noted.values())


NOTED_MAX: Final = 1024
