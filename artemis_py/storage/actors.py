"""The actors in a retained log: the part of a journal that records sessions, consumers, and the core's counts for
readers of the log.

The log's number of a session or consumer is the lsn of its first record, so it is unique even across restarts. Each
segment that names an actor describes it again, so that the segment can be read alone. A restart needs none of this.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

from mypy_extensions import mypyc_attr

from artemis_py.message import Message
from artemis_py.records import Actor, Depth, RecordLog, Refusal
from artemis_py.storage import codec
from artemis_py.storage.index import Segment

LOST: Final = "lost"
LEFT: Final = "left"


@mypyc_attr(allow_interpreted_subclasses=True)
class ActorLog(RecordLog):
    """The base of journals. It does not know when anything becomes durable."""

    segments: list[Segment]
    _next_lsn: int

    def __init__(self, broker_name: str, first_lsn: int) -> None:
        self._broker_name = broker_name
        self._first_lsn = first_lsn
        self._sessions: dict[int, Actor] = {}
        """By connection number."""
        self._leaving: list[int] = []
        """Connections that ended in this turn; records about them may still follow."""
        self._origin = 0
        """The connection that a reader assumes to be the sender of the next message; 0: unknown."""
        self._depths_segment = 0
        """The last segment that recorded the depths of queues at its beginning."""

    @abstractmethod
    def _append(self, type_code: int, payload: bytes) -> int:
        """Add a record with the next lsn, and return the lsn."""

    @abstractmethod
    def _append_fields(self, type_code: int, fields: dict[str, Any]) -> int:
        """Add a JSON record, which the segment's index may repeat."""

    # ---- sessions and consumers ------------------------------------------------------------------

    def session_opened(self, origin: int, fields: dict[str, Any]) -> None:
        if self.retains:
            self._sessions[origin] = Actor(fields)

    def session_closed(self, origin: int) -> None:
        if self.retains:
            self._leaving.append(origin)

    def _forget_sessions(self) -> None:
        """Forget sessions that ended in the turn that is over."""
        for origin in self._leaving:
            self._sessions.pop(origin, None)
        self._leaving.clear()

    def consumer_opened(self, origin: int, queue_id: int, fields: dict[str, Any]) -> Actor | None:
        session = self._sessions.get(origin)
        if session is None:
            return None
        actor = Actor({"queue": queue_id, **fields}, session)
        self._named(actor)
        return actor

    def consumer_closed(self, actor: Actor, *, failed: bool) -> None:
        actor.fields["closed"] = LOST if failed else LEFT
        self._tell(actor)

    def _session(self, origin: int) -> int:
        """The log's number of a connection's session; 0 for the broker itself."""
        actor = self._sessions.get(origin)
        return 0 if actor is None else self._named(actor)

    def _named(self, actor: Actor) -> int:
        """The number of an actor named by the next record; each segment describes the actor once."""
        if actor.segment != self.segments[-1].number:
            self._tell(actor)
        return actor.id

    def _tell(self, actor: Actor) -> None:
        session = {} if actor.session is None else {"session": self._named(actor.session)}
        actor.segment = self.segments[-1].number
        actor.id = actor.id or self._next_lsn
        code = codec.SESSION if actor.session is None else codec.CONSUMER
        self._append_fields(code, {"id": actor.id, **session, **actor.fields})

    def _tell_origin(self, origin: int) -> None:
        """The following messages come from another connection than the previous ones."""
        self._append(codec.ORIGIN, codec.encode_origin(self._session(origin)))
        self._origin = origin

    # ---- what the core counts --------------------------------------------------------------------

    def delivered(self, queue_id: int, messages: list[Message], consumer: Actor | None = None) -> int:
        number = 0 if consumer is None else self._named(consumer)
        return self._append(codec.DELIVERED, codec.encode_ids(queue_id, [message.id for message in messages], number))

    def refused(self, refusal: Refusal) -> int:
        fields = {
            "address": refusal.address,
            "policy": refusal.policy,
            "session": self._session(refusal.origin),
            "count": refusal.count,
            "bytes": refusal.size_bytes,
        }
        return self._append(codec.REFUSED, codec.encode_fields(fields))

    def depths(self, depths: list[Depth]) -> int:
        self._depths_segment = self.segments[-1].number
        self._append(codec.BROKER, codec.encode_fields({"name": self._broker_name, "start": self._first_lsn}))
        return self._append(codec.DEPTHS, codec.encode_depths(depths))
