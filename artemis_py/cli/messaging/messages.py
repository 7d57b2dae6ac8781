"""Messages that came, as people and programs read them."""

from __future__ import annotations

import argparse
import base64
import sys
from datetime import UTC, datetime
from typing import Any, Final

from artemis_py.cli import colour
from artemis_py.shown import as_json, escaped, say_made
from artemis_py.stomp.client import ServerFrame

_OF_THE_FRAME: Final = frozenset({"subscription", "ack", "message-id", "content-length", "receipt"})
_COUNT: Final = "JMSXDeliveryCount"
_IN_THE_HEADING: Final = frozenset(
    {"timestamp", "destination", "priority", "persistent", "expires", "redelivered", _COUNT}
)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds ``--json`` and ``--body-only``."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print each message as JSON, on a line of its own")
    output.add_argument(
        "--body-only", action="store_true", help="print the bodies alone, each as it is, and a line end"
    )


def print_message(message: ServerFrame, args: argparse.Namespace) -> None:
    """Print a message, and see to it that it is printed: it may be acknowledged next."""
    if args.json:
        say_made(as_json(_as_object(message)))
    elif args.body_only:
        sys.stdout.flush()
        sys.stdout.buffer.write(message.body + b"\n")
    else:
        _print_for_people(message)
    sys.stdout.flush()
    sys.stdout.buffer.flush()


def text_of(body: bytes) -> str | None:
    """The body as text; None if it is none."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _as_object(message: ServerFrame) -> dict[str, Any]:
    text = text_of(message.body)
    body = {"bodyBase64": base64.b64encode(message.body).decode()} if text is None else {"body": text}
    headers = {name: value for name, value in message.headers.items() if name not in _OF_THE_FRAME}
    return {"messageID": _number(message), "headers": headers, **body}


def _print_for_people(message: ServerFrame) -> None:
    paint = colour.painter(sys.stdout)
    headers = message.headers
    facts = [
        f"message {_number(message)}",
        _date(headers.get("timestamp", "")),
        headers.get("destination", ""),
        f"priority {headers['priority']}" if headers.get("priority", "4") != "4" else "",
        "persistent" if headers.get("persistent") == "true" else "not persistent",
        f"redelivered (delivery {headers.get(_COUNT, '')})" if headers.get("redelivered") == "true" else "",
        f"expires {_date(headers['expires'])}" if headers.get("expires", "0") != "0" else "",
    ]
    say_made(paint(colour.BOLD, "  ".join(fact for fact in facts if fact)))
    for name, value in headers.items():
        if name not in _OF_THE_FRAME and name not in _IN_THE_HEADING:
            say_made(paint(colour.DIM, f"  {name}: {value}"))
    text = text_of(message.body)
    if text is None:
        say_made(paint(colour.DIM, f"  {len(message.body):,} bytes that are no text, in Base64:"))
        text = base64.b64encode(message.body).decode()
    for line in text.split("\n"):
        say_made(escaped(line.expandtabs()))


def _number(message: ServerFrame) -> int:
    digits = message.headers.get("message-id", "").rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _date(text: str) -> str:
    if not (text.isascii() and text.isdigit()) or len(text) > 14:
        return text
    return datetime.fromtimestamp(int(text) / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
