"""The audit log, part of a retained log: sessions, consumers, and the core's counts, recorded for readers of the log.

The log's number of a session or consumer is the lsn of its first record, so it is unique even across restarts. Each
segment that names an actor describes it again, so that the segment can be read alone. A restart needs none of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mypy_extensions import mypyc_attr

from artemis_py.message import Message
from artemis_py.record_log import Actor, AuditLog, Depth
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.records import BROKER, CONSUMER, DELIVERED, DEPTHS, FLAG_PAGED, MESSAGE, REFUSED, SESSION
from artemis_py.storage.journal.record_writer import RecordWriter

LOST: Final = "lost"
LEFT: Final = "left"


@dataclass(slots=True)
class Refusal:
    """Persistent messages that an address did not take in from one session (0: the broker's own copies) in one turn.
    Bytes are encoded sizes.
    """

    address: str
    policy: str
    origin: int
    count: int = 0
    size_bytes: int = 0


class LogActor(Actor):
    """A session, or a consumer of one."""

    def __init__(self, records: RecordWriter, fields: dict[str, Any], session: LogActor | None = None) -> None:
        self.fields = fields
        self._records = records
        self._session = session
        """The session of a consumer; None for a session."""
        self.id = 0
        """Its number in the log; 0 until a record names it."""
        self._segment = 0
        """The last segment that describes it."""

    def named(self) -> int:
        """Its number, for the next record; each segment describes the actor once."""
        if self._segment != self._records.segments[-1].number:
            self.record()
        return self.id

    def record(self) -> None:
        """Record its description."""
        records, session = self._records, self._session
        known = {} if session is None else {"session": session.named()}
        self._segment = records.segments[-1].number
        self.id = self.id or records.next_lsn
        code = SESSION if session is None else CONSUMER
        records.append_fields(code, {"id": self.id, **known, **self.fields})


@mypyc_attr(allow_interpreted_subclasses=True)
class AuditTrail(AuditLog):
    """Records the audit log among the journal's other records."""

    def __init__(self, records: RecordWriter, broker_name: str) -> None:
        self.is_enabled = True
        self._records = records
        self._broker_name = broker_name
        self._first_lsn = records.next_lsn
        self._sessions: dict[int, LogActor] = {}
        """By connection number."""
        self._leaving: list[int] = []
        """Connections that ended in this turn; records about them may still follow."""
        self._refusals: dict[tuple[str, str, int], Refusal] = {}
        """Refusals of this turn."""
        self._depths_segment = 0
        """The last segment that recorded the depths of queues at its beginning."""

    # ---- sessions and consumers ------------------------------------------------------------------

    def session_opened(self, origin: int, fields: dict[str, str]) -> None:
        self._sessions[origin] = LogActor(self._records, dict(fields))

    def session_closed(self, origin: int) -> None:
        self._leaving.append(origin)

    def consumer_opened(self, origin: int, queue_id: int, fields: dict[str, Any]) -> Actor | None:
        session = self._sessions.get(origin)
        if session is None:
            return None
        actor = LogActor(self._records, {"queue": queue_id, **fields}, session)
        actor.named()
        return actor

    def consumer_closed(self, actor: Actor, *, failed: bool) -> None:
        assert isinstance(actor, LogActor)
        actor.fields["closed"] = LOST if failed else LEFT
        actor.record()

    def session_number(self, origin: int) -> int:
        actor = self._sessions.get(origin)
        return 0 if actor is None else actor.named()

    def known_number(self, origin: int) -> int:
        actor = self._sessions.get(origin)
        return 0 if actor is None else actor.id

    # ---- messages --------------------------------------------------------------------------------

    def delivered(self, queue_id: int, messages: list[Message], consumer: Actor) -> int:
        message_ids = [message.id for message in messages]
        number = consumer.named()
        return self._records.append(DELIVERED, codec.encode_ids(queue_id, message_ids, number))

    def published_in_page(self, message: Message, queue_ids: list[int], due_ms: int, place: int) -> int:
        records = self._records
        records.sent_by(message.origin)
        kept = Kept(message, records.next_lsn, queue_ids, FLAG_PAGED)
        if due_ms:
            for queue_id in queue_ids:
                kept.detail(queue_id).due_ms = due_ms
        records.gathered.published(message.head.address, message.timestamp_ms, message.timestamp_ms)
        return records.append(MESSAGE, codec.encode_message(kept, place))

    def refused(self, address: str, policy: str, message: Message) -> None:
        if message.head.persistent:
            key = address, policy, message.origin
            refusal = self._refusals.get(key)
            if refusal is None:
                refusal = self._refusals[key] = Refusal(address, policy, message.origin)
            refusal.count += 1
            refusal.size_bytes += message.size_bytes

    # ---- the end of a turn -----------------------------------------------------------------------

    def end_turn(self) -> bool:
        if self._refusals:
            refusals, self._refusals = self._refusals, {}
            for refusal in refusals.values():
                self.record_refusal(refusal)
        for origin in self._leaving:
            self._sessions.pop(origin, None)
        self._leaving.clear()
        return self._wants_depths

    def record_refusal(self, refusal: Refusal) -> int:
        """Record the refusals of one session; returns the lsn of the record."""
        fields = {
            "address": refusal.address,
            "policy": refusal.policy,
            "session": self.session_number(refusal.origin),
            "count": refusal.count,
            "bytes": refusal.size_bytes,
        }
        return self._records.append(REFUSED, codec.encode_fields(fields))

    @property
    def _wants_depths(self) -> bool:
        """Are there records for a segment that does not have the depths of queues yet?"""
        return self._depths_segment != self._records.segments[-1].number and bool(self._records.pending)

    def depths(self, depths: list[Depth]) -> int:
        records = self._records
        self._depths_segment = records.segments[-1].number
        records.append(BROKER, codec.encode_fields({"name": self._broker_name, "start": self._first_lsn}))
        return records.append(DEPTHS, codec.encode_depths(depths))
