"""``artemis-py receive QUEUE``: takes messages from a queue and prints them."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from artemis_py.cli.messaging.link import Link, add_link
from artemis_py.cli.messaging.messages import add_output, print_message
from artemis_py.cli.messaging.options import count, seconds
from artemis_py.shown import many, warn
from artemis_py.stomp.client import ServerFrame

HELP: Final = "take messages from a queue of a running broker, and print them"
_LOGIN_S: Final = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``receive QUEUE [--count N] [--timeout S] [--ack WHEN] …``."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue; address::queue, if its address has another name")
    parser.add_argument(
        "--count", metavar="N", type=count, default=1, help="take so many messages (default 1); 0: until Ctrl-C"
    )
    parser.add_argument(
        "--timeout", metavar="S", type=seconds, help="wait so long for the next message (default 10; for ever with 0)"
    )
    parser.add_argument(
        "--ack",
        choices=("printed", "received", "none"),
        default="printed",
        help="when a message is acknowledged: when it is printed (the default), or before; none: it goes back to the "
        "queue at the end, as delivered once more",
    )
    parser.add_argument("--selector", metavar="TEXT", help="take only messages that match")
    add_output(parser)
    add_link(parser)
    parser.epilog = "exit codes: 0 all came; 1 fewer came in time, or the broker refused; 2 the arguments are wrong"


def run(args: argparse.Namespace) -> int:
    """Takes the messages. Raises ArtemisError."""
    link = Link(args, _LOGIN_S)
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
            message = waiting.pop(0) if waiting else link.next(until_s)
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
        warn(f"{many(done, 'message')} came, and no further one within {timeout_s:g} s")
        return 1
    return 0


def _acknowledge(link: Link, message: ServerFrame) -> list[ServerFrame]:
    """A queue that settles when it sends gives nothing to acknowledge."""
    number = message.headers.get("ack")
    return [] if number is None else link.ask("ACK", [("id", number)])
