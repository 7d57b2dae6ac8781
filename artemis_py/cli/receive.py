"""``artemis-py receive QUEUE``: takes messages from a queue and prints them, as people or programs read them."""

from __future__ import annotations

import argparse
import base64
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final

from artemis_py.cli.logins import add_stomp, stomp_connection
from artemis_py.cli.options import count, seconds
from artemis_py.client.stomp_connection import StompConnection
from artemis_py.stomp.client import ServerFrame
from artemis_py.terminal_output import BOLD, DIM, as_json, escaped, many, painter, say_made, warn

HELP: Final = "take messages from a queue of a running broker, and print them"
_LOGIN_S: Final = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``receive QUEUE [--count N] [--timeout S] [--ack WHEN] …``."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue; address::queue, if its address has another name")
    parser.add_argument(
        "--count", metavar="N", type=count, default=1, help="how many messages to take (default 1); 0: until Ctrl-C"
    )
    parser.add_argument(
        "--timeout", metavar="S", type=seconds, help="seconds to wait for the next message (default 10; 0: for ever)"
    )
    parser.add_argument(
        "--ack",
        choices=("printed", "received", "none"),
        default="printed",
        help="when to acknowledge a message: when it is printed (the default), or when it is received; none: never, so "
        "that it goes back to the queue with one more delivery attempt",
    )
    parser.add_argument("--selector", metavar="TEXT", help="take only messages that match")
    add_output(parser)
    add_stomp(parser)
    parser.epilog = (
        "As any consumer, it creates a queue that does not exist, where auto-create-queues lets it. "
        "exit codes: 0 all came; 1 fewer came in time, or the broker refused; 2 the arguments are wrong"
    )


def run(args: argparse.Namespace) -> int:
    """Takes the messages. Raises ArtemisError."""
    link = stomp_connection(args, _LOGIN_S)
    timeout_s = args.timeout if args.timeout is not None else 10.0
    done = 0
    try:
        headers = [
            ("id", "1"),
            ("destination", args.queue),
            ("ack", "client-individual"),
            ("consumer-window-size", "-1" if args.ack == "none" else "0"),
        ]
        if args.count:
            headers.append(("max-backlog", str(args.count)))
        if "::" not in args.queue:
            headers.append(("subscription-type", "ANYCAST"))
        if args.selector is not None:
            headers.append(("selector", args.selector))
        waiting = link.ask("SUBSCRIBE", headers)
        while args.count == 0 or done < args.count:
            until_s = time.monotonic() + timeout_s if timeout_s else None
            message = waiting.pop(0) if waiting else link.receive(until_s)
            if message is None:
                break
            if message.command != "MESSAGE":
                continue
            if args.ack == "received":
                waiting += _acknowledge(link, message)
            print_message(message, args)
            done += 1
            if args.ack == "printed":
                waiting += _acknowledge(link, message)
        link.ask("DISCONNECT", ())
    finally:
        link.close()
    if done < args.count:
        sys.stdout.flush()
        came = f"{many(done, 'message')} came, and no further one" if done else "no message came"
        warn(f"{came} within {timeout_s:g} s")
        return 1
    return 0


def _acknowledge(link: StompConnection, message: ServerFrame) -> list[ServerFrame]:
    """A queue that settles when it sends gives nothing to acknowledge."""
    number = message.headers.get("ack")
    return [] if number is None else link.ask("ACK", [("id", number)])


# ---- printing --------------------------------------------------------------------------------------------------------

_OF_THE_FRAME: Final = frozenset({"subscription", "ack", "message-id", "content-length", "receipt"})
_COUNT: Final = "JMSXDeliveryCount"
_IN_THE_HEADING: Final = frozenset(
    {"timestamp", "destination", "priority", "persistent", "expires", "redelivered", _COUNT}
)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds ``--json`` and ``--body-only``."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print each message as JSON, on a line of its own")
    output.add_argument("--body-only", action="store_true", help="print only the bodies, each with a line end")


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
    paint = painter(sys.stdout)
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
    say_made(paint(BOLD, "  ".join(fact for fact in facts if fact)))
    for name, value in headers.items():
        if name not in _OF_THE_FRAME and name not in _IN_THE_HEADING:
            say_made(paint(DIM, f"  {name}: {value}"))
    text = text_of(message.body)
    if text is None:
        say_made(paint(DIM, f"  {len(message.body):,} bytes that are not text, in Base64:"))
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
