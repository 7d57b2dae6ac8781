"""The lines of an export: how they are written and read. Each is a JSON object with one member, which says what it is.

``export`` comes first, then ``address`` and ``queue``, then messages, with the queues that need them. The body of a
message is ``text``, or ``base64`` if it is no UTF-8; one that is long follows in lines of ``piece``. ``end`` comes
last, so a file that was cut off is recognised.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from artemis_py.errors import BadRequestError
from artemis_py.message import Head, Message
from artemis_py.terminal_output import shown_time

FORMAT: Final = 1
PIECE_BYTES: Final = 1 << 20
"""A piece has no more than this. It is a little in a line."""
LINE_BYTES_MAX: Final = 2 << 20
"""So long may a line be that a broker is to import: to read it must not take long."""
_TIMES_KEPT: Final = 16
_HEADS_KEPT: Final = 64
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def line_of(kind: str, value: object) -> bytes:
    """One line."""
    return _json({kind: value}).encode() + b"\n"


def of_queues(
    addresses: Iterable[Mapping[str, Any]], queues: Sequence[Mapping[str, Any]], wanted: Collection[str]
) -> Iterator[bytes]:
    """The lines of addresses and queues: of all, or of the ``wanted`` queues and the addresses that they are on."""
    chosen = [queue for queue in queues if not wanted or queue["name"] in wanted]
    names = {queue["address"] for queue in chosen}
    for address in addresses:
        if not wanted or address["name"] in names:
            yield line_of("address", address)
    for queue in chosen:
        yield line_of("queue", queue)


def message_line(
    message: Message,
    queues: Sequence[str],
    attempts: Mapping[str, int],
    due_ms: Mapping[str, int],
    *,
    in_pieces: bool,
) -> bytes:
    """The line of a message. ``attempts`` has the failed deliveries, ``due_ms`` the times for which it waits (epoch
    ms), by queue. ``in_pieces``: the body follows.
    """
    beginning, end = _of_head(message.head, tuple(queues))
    more: dict[str, Any] = {}
    if message.expires_ms:
        more["expires"] = shown_time(message.expires_ms)
    if due_ms:
        more["due"] = {name: shown_time(when_ms) for name, when_ms in due_ms.items()}
    if attempts:
        more["attempts"] = dict(attempts)
    body = message.body
    last = f'"piece_bytes":{len(body)}' if in_pieces or not isinstance(body, bytes) else _body(body)
    rare = f",{_json(more)[1:-1]}" if more else ""
    sent = _time(message.timestamp_ms)
    return f'{{"message":{{"id":{message.id},{beginning}"sent":"{sent}"{rare},{end}{last}}}}}\n'.encode()


@lru_cache(_HEADS_KEPT)
def _of_head(head: Head, queues: tuple[str, ...]) -> tuple[str, str]:
    """What the lines of messages with the same head have in common: members in the middle of an object."""
    members = {"address": head.address, "queues": queues, "persistent": head.persistent, "priority": head.priority}
    sized = '"sized":true,' if head.sized else ""
    return f"{_json(members)[1:-1]},", f'{sized}"headers":{_json(list(head.headers()))},'


_time = lru_cache(_TIMES_KEPT)(shown_time)


def _body(body: bytes) -> str:
    """The member with a body: as text, or in Base64."""
    try:
        return f'"text":{_json(body.decode())}'
    except UnicodeDecodeError:
        return f'"base64":"{base64.b64encode(body).decode()}"'


def piece_line(data: bytes) -> bytes:
    """The line of a part of a body."""
    return b'{"piece":"' + base64.b64encode(data) + b'"}\n'


# ---- reading -------------------------------------------------------------------------------------


KINDS: Final = frozenset({"export", "address", "queue", "message", "piece", "end"})
_SHOWN_MAX: Final = 80


class ExportError(BadRequestError):
    """A file is no export, or not whole."""


@dataclass(slots=True)
class ExportedMessage:
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
    is_sized: bool = False
    """Did its sender give a content-length? For Artemis' clients it is a message of bytes then."""
    body: bytes = b""
    piece_bytes: int = -1
    """The size of a body that follows in pieces; -1: ``body`` is all of it."""


def read_line(line: str, place: str) -> tuple[str, Any]:
    """What a line is, and its value. ``place`` is the file and line, for errors. Raises ExportError."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{place}: this is not a line of an export: {error}") from None
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= KINDS:
        raise ExportError(f"{place}: this is not a line of an export: {line[:_SHOWN_MAX]!r}")
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


def read_message(value: Any, place: str) -> ExportedMessage:
    """A message. Raises ExportError."""
    try:
        taken = ExportedMessage(
            id=_whole(value["id"]),
            address=_text(value["address"]),
            queues=[_text(name) for name in value["queues"]],
            headers=[(_text(name), _text(text)) for name, text in value["headers"]],
            is_persistent=bool(value.get("persistent", True)),
            priority=_whole(value.get("priority", 4)),
            sent_ms=_ms(value["sent"]) if "sent" in value else 0,
            expires_ms=_ms(value["expires"]) if "expires" in value else 0,
            due_ms={_text(name): _ms(when) for name, when in value.get("due", {}).items()},
            is_sized=bool(value.get("sized", False)),
            piece_bytes=_whole(value.get("piece_bytes", -1)),
        )
        if taken.piece_bytes < 0:
            taken.body = value["text"].encode() if "text" in value else _bytes(value["base64"])
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ExportError(f"{place}: this message is incomplete or wrong: {error!r}") from None
    return taken


def read_piece(value: Any, place: str) -> bytes:
    """A part of a body. Raises ExportError."""
    try:
        return _bytes(value)
    except (TypeError, ValueError):
        raise ExportError(f"{place}: this piece of a body is not Base64") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
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
