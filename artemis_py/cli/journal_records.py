"""Shows a journal record as one line of text or as one JSON object."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from artemis_py.message import LargeBody
from artemis_py.storage import codec, page_codec
from artemis_py.storage.body_names import body_name
from artemis_py.storage.codec import Kept, QueueState, Record

_IDS_SHOWN: Final = 8


def shown_time(time_ms: int) -> str:
    """UTC, ISO 8601, with milliseconds."""
    whole, part = divmod(time_ms, 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{part:03}Z"


def fields_of(record: Record) -> dict[str, Any]:
    """The fields of a record for JSON. Ids are numbers; a body is text if it is UTF-8, else base64."""
    kind, payload = record.type_code, record.payload
    if kind == codec.BATCH:
        batch = codec.decode_batch(payload)
        return {
            "number": batch.number,
            "batch_time_ms": batch.now_ms,
            "message_id_max": batch.message_id,
            "queue_id_max": batch.queue_id,
        }
    if kind == codec.MESSAGE:
        return _message_fields(codec.decode_message(payload), record.lsn)
    if kind == codec.SETTLED:
        queue_id, reason, message_ids, consumer = codec.decode_settled(payload)
        return {"queue": queue_id, "reason": reason, "message_ids": list(message_ids), "consumer": consumer or None}
    if kind in (codec.DUE, codec.DELIVERED):
        queue_id, message_ids, consumer = codec.decode_ids(payload)
        return {"queue": queue_id, "message_ids": list(message_ids), "consumer": consumer or None}
    if kind == codec.ATTEMPTED:
        names = ("queue", "message_id", "attempts", "due_ms", "consumer", "cause")
        return _with_actor(dict(zip(names, codec.decode_attempted(payload), strict=True)))
    if kind == codec.TRANSACTION:
        return {}
    if kind == codec.GROUP:
        return {"payload_bytes": len(payload)}
    if kind == codec.ORIGIN:
        return {"session": codec.decode_origin(payload)}
    if kind == codec.DEPTHS:
        held = [asdict(depth) for depth in codec.decode_depths(payload)]
        return {"queues": [{"queue": one.pop("queue_id"), **one} for one in held]}
    if kind in PAGE_FIELDS:
        return PAGE_FIELDS[kind](payload)
    if kind in codec.RECORD_NAMES:
        return {"fields": codec.decode_fields(payload)}
    return {"payload_base64": base64.b64encode(payload).decode()}


def _with_actor(fields: dict[str, Any]) -> dict[str, Any]:
    """Use null for an unrecorded consumer."""
    return {**fields, "consumer": fields["consumer"] or None, "cause": fields["cause"] or None}


def _grew(payload: bytes) -> dict[str, Any]:
    page = page_codec.decode_grew(payload)
    return {
        "stream": page.stream,
        "page": page.number,
        "count": page.kept_count,
        "size_bytes": page.kept_bytes,
        "expires_ms": page.expires_ms,
        "durable": {str(number): [share.count, share.size_bytes] for number, share in page.durable.items()},
    }


def _page_settled(payload: bytes) -> dict[str, Any]:
    one = page_codec.decode_page_settled(payload)
    where = {"queue": one.queue_id, "stream": one.stream, "page": one.page}
    which = {"places": list(one.places), "message_ids": list(one.message_ids)}
    return {**where, "reason": one.reason, **which, "consumer": one.consumer or None}


def _page_purged(payload: bytes) -> dict[str, Any]:
    fields = asdict(page_codec.decode_page_purged(payload))
    return {"queue": fields.pop("queue_id"), **fields, "kept_places": list(fields["kept_places"])}


def _page_attempted(payload: bytes) -> dict[str, Any]:
    fields = asdict(page_codec.decode_page_attempted(payload))
    return _with_actor({"queue": fields.pop("queue_id"), **fields})


def _page_dropped(payload: bytes) -> dict[str, Any]:
    return dict(zip(("stream", "page"), page_codec.decode_page_dropped(payload), strict=True))


def _places(payload: bytes) -> dict[str, Any]:
    queue_id, stream, page, first_place, count, size_bytes, bits = page_codec.decode_places(payload)
    where = {"queue": queue_id, "stream": stream, "page": page, "first_place": first_place}
    return {**where, "count": count, "size_bytes": size_bytes, "places": int.from_bytes(bits, "little").bit_count()}


def _paged(payload: bytes) -> dict[str, Any]:
    origin, kept = page_codec.decode_paged(payload)
    is_transient = bool(kept.flags & codec.FLAG_TRANSIENT)
    return {"connection": origin, "transient": is_transient, **_message_fields(kept, kept.lsn)}


PAGE_FIELDS: Final[dict[int, Callable[[bytes], dict[str, Any]]]] = {
    codec.PAGE_GREW: _grew,
    codec.PAGE_SETTLED: _page_settled,
    codec.PAGE_PURGED: _page_purged,
    codec.PAGE_ATTEMPTED: _page_attempted,
    codec.PAGE_DROPPED: _page_dropped,
    codec.PAGE_PLACES: _places,
    codec.PAGED: _paged,
}
"""Converts the payload of each type of record about pages to fields."""


def _message_fields(kept: Kept, lsn: int) -> dict[str, Any]:
    message = kept.message
    head = message.head
    plain = QueueState()
    details = kept.details or {}
    in_page = bool(kept.flags & codec.FLAG_PAGED)
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


def summary_of(record: Record) -> str:
    """A record as one line."""
    fields = fields_of(record)
    kind = record.type_code
    if kind == codec.BATCH:
        return f"number {fields['number']} of {shown_time(fields['batch_time_ms'])}"
    if kind == codec.MESSAGE:
        queues = ", ".join(str(state["queue"]) for state in fields["queues"]) or "none"
        copy = "" if fields["copy_of_lsn"] is None else f", a copy of lsn {fields['copy_of_lsn']}"
        where = f" in {fields['body_file']}" if "body_file" in fields else ""
        body = f"body {fields['body_bytes']} bytes{where}"
        return f"{fields['message_id']} to {fields['address']}, queues {queues}, {body}{copy}"
    if kind == codec.SETTLED:
        return f"queue {fields['queue']} {fields['reason']} {_shown_ids(fields['message_ids'])}{_shown_actor(fields)}"
    if kind in (codec.DUE, codec.DELIVERED):
        return f"queue {fields['queue']} {_shown_ids(fields['message_ids'])}{_shown_actor(fields)}"
    if kind == codec.ATTEMPTED:
        due = f", next at {shown_time(fields['due_ms'])}" if fields["due_ms"] else ""
        failed = f"queue {fields['queue']} {fields['message_id']} failed {fields['attempts']} times"
        return f"{failed}{_shown_actor(fields)}{due}"
    if kind == codec.PAGE_SETTLED:
        settled = f"queue {fields['queue']} {fields['reason']} {_shown_ids(fields['message_ids'])}"
        return f"{settled}{_shown_actor(fields)}, {_shown_page(fields)}"
    if kind == codec.ORIGIN:
        return f"session {fields['session']} sent the messages that follow"
    if kind == codec.DEPTHS:
        held = [f"queue {one['queue']}: {one['count']} ({one['size_bytes']} bytes)" for one in fields["queues"]]
        return ", ".join(held) or "all queues are empty"
    if kind == codec.PAGED:
        return f"{fields['message_id']} to {fields['address']}, body {fields['body_bytes']} bytes"
    if kind in PAGE_FIELDS:
        return " ".join(f"{name}={value}" for name, value in fields.items())
    if "fields" in fields:
        return " ".join(f"{name}={value}" for name, value in fields["fields"].items())
    return f"{len(record.payload)} bytes"


def _shown_actor(fields: dict[str, Any]) -> str:
    cause = f", {fields['cause']}" if fields.get("cause") else ""
    return f" by consumer {fields['consumer']}{cause}" if fields["consumer"] else ""


def _shown_page(fields: dict[str, Any]) -> str:
    return f"page {fields['page']} of stream {fields['stream']}"


def _shown_ids(message_ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, message_ids[:_IDS_SHOWN]))
    rest = len(message_ids) - _IDS_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
