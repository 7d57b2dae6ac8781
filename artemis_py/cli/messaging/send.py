"""``artemis-py send ADDRESS``: publishes messages."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from artemis_py.cli.messaging.link import Link, add_link
from artemis_py.cli.messaging.options import count, count_from_one, seconds
from artemis_py.errors import ArtemisError, UsageError
from artemis_py.shown import as_json, many, say, say_made

HELP: Final = "send messages to an address of a running broker"
_CONFIRM_EVERY: Final = 500
_OWN: Final = frozenset({"destination", "receipt", "transaction", "content-length"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``send ADDRESS [BODY|-] …``."""
    parser.add_argument("address", metavar="ADDRESS", help="the address; address::queue means one queue of it")
    parser.add_argument("body", metavar="BODY", nargs="?", help="the body; - (or nothing): what standard input has")
    parser.add_argument("--file", metavar="FILE", type=Path, help="the body is what this file has, as it is")
    parser.add_argument("--lines", action="store_true", help="each line of the body is a message of its own")
    parser.add_argument("--count", metavar="N", type=count_from_one, default=1, help="send it N times (default 1)")
    parser.add_argument(
        "--header", metavar="K=V", type=_header, action="append", default=[], help="a header; may be repeated"
    )
    parser.add_argument("--content-type", metavar="TYPE", help="what the body is, such as application/json")
    parser.add_argument("--type", choices=("ANYCAST", "MULTICAST"), help="the routing type; else the address decides")
    parser.add_argument("--priority", metavar="N", type=count, choices=range(10), help="0 to 9 (default 4)")
    parser.add_argument("--ttl", metavar="S", type=seconds, help="the message expires after so many seconds")
    parser.add_argument("--delay", metavar="S", type=seconds, help="it is delivered after so many seconds")
    parser.add_argument(
        "--persistent",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="does the message survive a crash of the broker? (default: yes)",
    )
    parser.add_argument(
        "--timeout", metavar="S", type=seconds, default=30.0, help="how long to wait for a confirmation (default 30)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_link(parser)
    parser.epilog = "exit codes: 0 the broker has confirmed all; 1 it has not; 2 the arguments are wrong"


def run(args: argparse.Namespace) -> int:
    """Sends and waits until the broker has confirmed everything. Raises ArtemisError."""
    bodies = list(_bodies(args))
    link = Link(args, args.timeout)
    started_s = time.monotonic()
    number = 0
    total = args.count * len(bodies)
    try:
        for _ in range(args.count):
            for body in bodies:
                number += 1
                headers = [*_headers(args), ("content-length", str(len(body)))]
                if number == total or number % _CONFIRM_EVERY == 0:
                    link.ask("SEND", headers, body)
                else:
                    link.send("SEND", headers, body)
        link.ask("DISCONNECT", ())
    finally:
        link.close()
    took_s = time.monotonic() - started_s
    if args.json:
        say_made(as_json({"address": args.address, "sent": total, "seconds": round(took_s, 3)}))
    else:
        rate = f", {total / took_s:,.0f} a second" if total >= 100 and took_s > 0 else ""
        say(f"sent {many(total, 'message')} to {args.address}{rate}")
    return 0


def _bodies(args: argparse.Namespace) -> Iterator[bytes]:
    if args.file is not None and args.body is not None:
        raise UsageError("BODY and --file both say the body; give one of them")
    if args.file is not None:
        try:
            body = args.file.read_bytes()
        except OSError as error:
            raise ArtemisError(f"--file {args.file}: {error.strerror}") from None
    elif args.body is not None and args.body != "-":
        body = args.body.encode()
    elif args.body is None and sys.stdin.isatty():
        raise UsageError("what should be sent? Give BODY, --file FILE, or - and type it, with Ctrl-D at the end")
    else:
        body = sys.stdin.buffer.read()
    yield from body.splitlines() if args.lines else (body,)


def _headers(args: argparse.Namespace) -> list[tuple[str, str]]:
    headers = [("destination", args.address), ("persistent", "true" if args.persistent else "false")]
    now_ms = time.time_ns() // 1_000_000
    given = {
        "content-type": args.content_type,
        "destination-type": args.type,
        "priority": args.priority,
        "expires": None if args.ttl is None else now_ms + round(1000 * args.ttl),
        "AMQ_SCHEDULED_DELAY": None if args.delay is None else round(1000 * args.delay),
    }
    headers += [(name, str(value)) for name, value in given.items() if value is not None]
    return [*headers, *args.header]


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"a header is NAME=VALUE, and {text!r} is not")
    if name in _OWN:
        raise argparse.ArgumentTypeError(f"{name} is set by this command")
    return name, value
