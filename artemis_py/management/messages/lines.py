"""The lines of an export, as they are written. Each is a JSON object with one member, which says what it is.

``export`` comes first, then ``address`` and ``queue``, then messages, with the queues that need them. The body of a
message is ``text``, or ``base64`` if it is no UTF-8; one that is long follows in lines of ``piece``. ``end`` comes
last, so a file that was cut off is recognised.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from artemis_py.message import Head, Message
from artemis_py.shown import shown_time

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
    told = {"address": head.address, "queues": queues, "persistent": head.persistent, "priority": head.priority}
    sized = '"sized":true,' if head.sized else ""
    return f"{_json(told)[1:-1]},", f'{sized}"headers":{_json(list(head.headers()))},'


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
