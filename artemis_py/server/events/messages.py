"""Server-sent events as bytes."""

from __future__ import annotations

import json


def event(kind: str, data: str, id: str = "") -> bytes:
    """An event; ``data`` is JSON, in one line."""
    number = f"id: {id}\n" if id else ""
    return f"{number}event: {kind}\ndata: {data}\n\n".encode()


def as_json(value: object) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False)
