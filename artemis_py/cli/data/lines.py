"""The lines of an export. Each is a JSON object with one member, which says what it is.

``export`` comes first, then ``address`` and ``queue``, then each ``message`` once, in the order in which they were
published, with the queues that need it. The body of a message is ``text``, or ``base64`` if it is no UTF-8; one that
has a file of its own follows in lines of ``piece``. ``end`` comes last, so a file that was cut off is recognised.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from artemis_py.cli.journal_records import shown_time
from artemis_py.errors import ArtemisError
from artemis_py.message import Message

FORMAT: Final = 1
PIECE_BYTES: Final = 1 << 20
KINDS: Final = frozenset({"export", "address", "queue", "message", "piece", "end"})
_SHOWN_MAX: Final = 80


class ExportError(ArtemisError):
    """A file is no export, or not whole."""


@dataclass(slots=True)
class Taken:
    """A message as a line has it. ``due_ms`` has the time for which a queue waits, by the queue's name."""

    id: int
    address: str
    queues: list[str]
    headers: list[tuple[str, str]]
    is_persistent: bool = True
    priority: int = 4
    sent_ms: int = 0
    expires_ms: int = 0
    due_ms: dict[str, int] = field(default_factory=dict)
    has_size: bool = False
    """Did its sender give a content-length? For Artemis' clients it is a message of bytes then."""
    body: bytes = b""
    piece_bytes: int = -1
    """The size of a body that follows in pieces; -1: ``body`` is all of it."""


def line_of(kind: str, value: object) -> bytes:
    """One line."""
    return json.dumps({kind: value}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def taken_of(message: Message, queues: list[str], attempts: Mapping[str, int], due_ms: Mapping[str, int]) -> bytes:
    """The line of a message whose body is in memory, or of one whose pieces follow. ``attempts`` has the failed
    deliveries by queue.
    """
    head, body = message.head, message.body
    value: dict[str, Any] = {
        "id": message.id,
        "address": head.address,
        "queues": queues,
        "persistent": head.persistent,
        "priority": head.priority,
        "sent": shown_time(message.timestamp_ms),
    }
    if message.expires_ms:
        value["expires"] = shown_time(message.expires_ms)
    if due_ms:
        value["due"] = {name: shown_time(when_ms) for name, when_ms in due_ms.items()}
    if attempts:
        value["attempts"] = dict(attempts)
    if head.sized:
        value["sized"] = True
    value["headers"] = [list(pair) for pair in head.headers()]
    if isinstance(body, bytes):
        value |= body_fields(body)
    else:
        value["piece_bytes"] = len(body)
    return line_of("message", value)


def body_fields(body: bytes) -> dict[str, str]:
    """A body as text, or in Base64."""
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def piece_of(data: bytes) -> bytes:
    """The line of a part of a body."""
    return line_of("piece", base64.b64encode(data).decode())


def read_line(line: str, place: str) -> tuple[str, Any]:
    """What a line is, and its value. ``place`` is the file and line, for errors. Raises ExportError."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{place}: this is no line of an export: {error}") from None
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= KINDS:
        raise ExportError(f"{place}: this is no line of an export: {line[:_SHOWN_MAX]!r}")
    return next(iter(value.items()))


def read_export(value: Any, place: str) -> str:
    """The id of the export, from its first line. Raises ExportError."""
    try:
        format, id = value["format"], str(value["id"])
    except (TypeError, KeyError):
        raise ExportError(f"{place}: the first line of an export has its format and its id") from None
    if format != FORMAT:
        raise ExportError(f"{place}: this export has format {format!r}, and this version reads {FORMAT}")
    return id


def read_message(value: Any, place: str) -> Taken:
    """A message. Raises ExportError."""
    try:
        taken = Taken(
            id=int(value["id"]),
            address=_text(value["address"]),
            queues=[_text(name) for name in value["queues"]],
            headers=[(_text(name), _text(text)) for name, text in value["headers"]],
            is_persistent=bool(value.get("persistent", True)),
            priority=int(value.get("priority", 4)),
            sent_ms=_ms(value["sent"]) if "sent" in value else 0,
            expires_ms=_ms(value["expires"]) if "expires" in value else 0,
            due_ms={_text(name): _ms(when) for name, when in value.get("due", {}).items()},
            has_size=bool(value.get("sized", False)),
            piece_bytes=int(value.get("piece_bytes", -1)),
        )
        if taken.piece_bytes < 0:
            taken.body = value["text"].encode() if "text" in value else _bytes(value["base64"])
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ExportError(f"{place}: this message lacks something or has it wrong: {error!r}") from None
    return taken


def read_piece(value: Any, place: str) -> bytes:
    """A part of a body. Raises ExportError."""
    try:
        return _bytes(value)
    except (TypeError, ValueError):
        raise ExportError(f"{place}: this piece of a body is no Base64") from None


def pieces(data: bytes) -> Iterator[bytes]:
    """A body in parts that fit into lines."""
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _ms(text: str) -> int:
    """Epoch milliseconds of a time as ``shown_time`` writes it."""
    whole = datetime.fromisoformat(text).astimezone(UTC)
    return round(whole.timestamp() * 1000)
