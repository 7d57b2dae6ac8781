"""Reads a journal and changes nothing: its disk, and a record as one line of text or as one JSON object."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from artemis_py.message import LargeBody
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.format import records
from artemis_py.storage.format.codec import DeliveryState, Kept
from artemis_py.storage.format.log_events import (
    Attempted,
    Batched,
    Changed,
    Committed,
    Consumer,
    Delivered,
    Depths,
    Event,
    Grouped,
    Paged,
    PageDropped,
    PageGrew,
    PageOpened,
    PlacesSettled,
    Published,
    Purged,
    Recalled,
    Refused,
    Repeated,
    ScheduledDue,
    Sending,
    Session,
    Settled,
    Started,
    Unknown,
)
from artemis_py.storage.format.names import body_name
from artemis_py.terminal_output import shown_time


class ReadOnlyDisk(FileDisk):
    """Files that are only read: the repairs of a recovery are left to the broker."""

    def create(self, name: str, size: int) -> None:
        return

    def write(self, name: str, offset: int, data: bytes) -> None:
        return

    def sync(self, name: str) -> None:
        return

    def delete(self, name: str) -> None:
        return


_IDS_SHOWN: Final = 8


def fields_of(event: Event) -> dict[str, Any]:
    """The fields of a record for JSON. Ids are numbers; a body is text if it is UTF-8, else base64."""
    told = event.what if isinstance(event, Repeated) else event
    return _FIELDS[type(told)](told)


def _batched(event: Batched) -> dict[str, Any]:
    batch = event.batch
    return {
        "number": batch.number,
        "batch_time_ms": batch.now_ms,
        "message_id_max": batch.message_id,
        "queue_id_max": batch.queue_id,
    }


def _settled(event: Settled) -> dict[str, Any]:
    queue, ids, consumer = event.queue_id, list(event.message_ids), event.consumer or None
    where = event.in_page
    if where is None:
        return {"queue": queue, "reason": event.reason, "message_ids": ids, "consumer": consumer}
    page = {"queue": queue, "stream": where.stream, "page": where.page}
    which = {"places": list(where.places), "message_ids": ids}
    return {**page, "reason": event.reason, **which, "consumer": consumer}


def _delivered(event: Delivered) -> dict[str, Any]:
    return {"queue": event.queue_id, "message_ids": list(event.message_ids), "consumer": event.consumer or None}


def _fell_due(event: ScheduledDue) -> dict[str, Any]:
    return {"queue": event.queue_id, "message_ids": list(event.message_ids), "consumer": None}


def _attempted(event: Attempted) -> dict[str, Any]:
    """Use null for an unrecorded consumer."""
    where = event.in_page
    page = {} if where is None else {"stream": where.stream, "page": where.page, "place": where.places[0]}
    return {
        "queue": event.queue_id,
        **page,
        "message_id": event.message_id,
        "attempts": event.attempts,
        "due_ms": event.due_ms,
        "consumer": event.consumer or None,
        "cause": event.cause or None,
    }


def _purged(event: Purged) -> dict[str, Any]:
    return {
        "queue": event.queue_id,
        "stream": event.stream,
        "page": event.page,
        "kept_places": list(event.kept_places),
        "kept_bytes": event.kept_bytes,
        "reason": event.reason,
        "count": event.count,
        "size_bytes": event.size_bytes,
    }


def _page_grew(event: PageGrew) -> dict[str, Any]:
    return {
        "stream": event.stream,
        "page": event.page,
        "count": event.count,
        "size_bytes": event.size_bytes,
        "expires_ms": event.expires_ms,
        "durable": {str(number): [share.count, share.size_bytes] for number, share in event.durable.items()},
    }


def _places_settled(event: PlacesSettled) -> dict[str, Any]:
    where = {"queue": event.queue_id, "stream": event.stream, "page": event.page, "first_place": event.first_place}
    return {**where, "count": event.count, "size_bytes": event.size_bytes, "places": event.places}


def _paged(event: Paged) -> dict[str, Any]:
    kept = event.kept
    is_transient = bool(kept.flags & records.FLAG_TRANSIENT)
    return {"connection": event.origin, "transient": is_transient, **_message_fields(kept, kept.lsn)}


def _depths(event: Depths) -> dict[str, Any]:
    held = [asdict(depth) for depth in event.depths]
    return {"queues": [{"queue": one.pop("queue_id"), **one} for one in held]}


def _as_written(event: Changed | PageOpened | Session | Consumer | Refused | Started) -> dict[str, Any]:
    return {"fields": event.fields}


_FIELDS: Final[dict[type[Event], Callable[[Any], dict[str, Any]]]] = {
    Batched: _batched,
    Published: lambda event: _message_fields(event.kept, event.lsn),
    Recalled: lambda event: _message_fields(event.kept, event.lsn),
    Settled: _settled,
    Delivered: _delivered,
    ScheduledDue: _fell_due,
    Attempted: _attempted,
    Committed: lambda _: {},
    Grouped: lambda event: {"payload_bytes": event.size_bytes},
    Sending: lambda event: {"session": event.session},
    Depths: _depths,
    PageGrew: _page_grew,
    PageDropped: lambda event: {"stream": event.stream, "page": event.page},
    Purged: _purged,
    PlacesSettled: _places_settled,
    Paged: _paged,
    Changed: _as_written,
    PageOpened: _as_written,
    Session: _as_written,
    Consumer: _as_written,
    Refused: _as_written,
    Started: _as_written,
    Unknown: lambda event: {"payload_base64": base64.b64encode(event.payload).decode()},
}


def _message_fields(kept: Kept, lsn: int) -> dict[str, Any]:
    message = kept.message
    head = message.head
    plain = DeliveryState()
    details = kept.details or {}
    in_page = bool(kept.flags & records.FLAG_PAGED)
    states = [(queue_id, details.get(queue_id, plain)) for queue_id in kept.queue_ids]
    fields: dict[str, Any] = {
        "message_id": message.id,
        "address": head.address,
        "copy_of_lsn": None if kept.lsn == lsn else kept.lsn,
        "timestamp_ms": message.timestamp_ms,
        "expires_ms": message.expires_ms,
        "priority": head.priority,
        "routing_type": head.routing_type,
        "queues": [
            {
                "queue": queue_id,
                "attempts": state.attempts,
                "due_ms": state.due_ms,
                "place" if in_page else "order": state.order,
            }
            for queue_id, state in states
        ],
        "headers": head.properties,
        "in_page": in_page,
        "recalled": bool(kept.flags & records.FLAG_RECALLED),
        "body_bytes": len(message.body),
    }
    body = message.body
    if isinstance(body, LargeBody):
        fields["body_file"] = body_name(body.number, durable=True)
        return fields
    try:
        fields["body"] = body.decode()
    except UnicodeDecodeError:
        fields["body_base64"] = base64.b64encode(body).decode()
    return fields


def summary_of(event: Event) -> str:
    """A record as one line."""
    told = event.what if isinstance(event, Repeated) else event
    fields = fields_of(told)
    match told:
        case Batched():
            return f"number {fields['number']} of {shown_time(fields['batch_time_ms'])}"
        case Published() | Recalled():
            return _shown_message(fields)
        case Settled():
            where = "" if told.in_page is None else f", page {told.in_page.page} of stream {told.in_page.stream}"
            ids = _shown_ids(told.message_ids)
            return f"queue {told.queue_id} {told.reason} {ids}{_shown_actor(fields)}{where}"
        case ScheduledDue() | Delivered():
            return f"queue {told.queue_id} {_shown_ids(told.message_ids)}{_shown_actor(fields)}"
        case Attempted(in_page=None):
            due = f", next at {shown_time(told.due_ms)}" if told.due_ms else ""
            return f"queue {told.queue_id} {told.message_id} failed {told.attempts} times{_shown_actor(fields)}{due}"
        case Sending():
            return f"session {told.session} sent the messages that follow"
        case Depths():
            held = [f"queue {one.queue_id}: {one.count} ({one.size_bytes} bytes)" for one in told.depths]
            return ", ".join(held) or "all queues are empty"
        case Paged():
            return f"{fields['message_id']} to {fields['address']}, body {fields['body_bytes']} bytes"
        case Grouped():
            return f"{told.size_bytes} bytes"
        case Committed():
            return "0 bytes"
        case Unknown():
            return f"{len(told.payload)} bytes"
    return " ".join(f"{name}={value}" for name, value in fields.get("fields", fields).items())


def _shown_message(fields: dict[str, Any]) -> str:
    queues = ", ".join(str(state["queue"]) for state in fields["queues"]) or "none"
    copy = "" if fields["copy_of_lsn"] is None else f", a copy of lsn {fields['copy_of_lsn']}"
    where = f" in {fields['body_file']}" if "body_file" in fields else ""
    body = f"body {fields['body_bytes']} bytes{where}"
    recalled = ", for these queues as well" if fields["recalled"] else ""
    return f"{fields['message_id']} to {fields['address']}, queues {queues}, {body}{copy}{recalled}"


def _shown_actor(fields: dict[str, Any]) -> str:
    cause = f", {fields['cause']}" if fields.get("cause") else ""
    return f" by consumer {fields['consumer']}{cause}" if fields["consumer"] else ""


def _shown_ids(message_ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, message_ids[:_IDS_SHOWN]))
    rest = len(message_ids) - _IDS_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
