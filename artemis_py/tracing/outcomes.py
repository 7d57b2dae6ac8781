"""How a message's stay in a queue, and a delivery, become spans: names, attributes, status."""

from __future__ import annotations

from typing import Final

from artemis_py.storage.format.log_events import Event
from artemis_py.tracing.client import SYSTEM
from artemis_py.tracing.parent import Parent
from artemis_py.tracing.span import FinishedSpan, span_id_of
from artemis_py.tracing.stays import Delivery, Stay, Who

LOST: Final = frozenset({"dead", "expired", "replaced", "killed", "damaged"})
"""The reasons for which a queue loses a message that nobody processed and nobody removed on purpose."""
FAILED: Final = frozenset({"nacked", "aborted", "lost", "lapsed", "failed", "restart"})
"""The causes for which a delivery failed."""


class Writer:
    """Writes spans of one log. ``log`` is its id."""

    def __init__(self, log: str) -> None:
        self._log = log

    def stay(self, stay: Stay, queue: str, event: Event, reason: str) -> FinishedSpan:
        """The span of a message in a queue, which was done with it for one of the codec's reasons."""
        message = stay.message
        attributes = _common(stay, queue)
        attributes["messaging.message.body.size"] = message.body_bytes
        attributes["artemis.reason"] = reason
        if message.sender:
            attributes["artemis.sender"] = message.sender
        if stay.attempts:
            attributes["artemis.attempts"] = stay.attempts
        if stay.more:
            attributes["artemis.events_left_out"] = stay.more
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
            stay.happenings,
            links,
        )

    def delivery(self, stay: Stay, delivery: Delivery, queue: str, who: Who, event: Event, cause: str) -> FinishedSpan:
        """The span of a delivery that ended because of ``cause``: why the queue was done with the message, why the
        delivery failed, or how the consumer left.
        """
        message = stay.message
        parent = message.parent
        attributes = _common(stay, queue)
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


def _common(stay: Stay, queue: str) -> dict[str, str | int]:
    message = stay.message
    attributes: dict[str, str | int] = {
        "messaging.system": SYSTEM,
        "messaging.destination.name": message.address,
        "messaging.destination.subscription.name": queue,
        "messaging.message.id": str(message.id),
    }
    if message.correlation_id:
        attributes["messaging.message.conversation_id"] = message.correlation_id
    return attributes
