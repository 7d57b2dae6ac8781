"""``artemis-py browse QUEUE``: prints the messages of a queue, which stay there."""

from __future__ import annotations

import argparse
import time
from typing import Final

from artemis_py.cli.logins import add_stomp, stomp_connection
from artemis_py.cli.options import count, seconds
from artemis_py.cli.receive import add_output, print_message

HELP: Final = "print the messages of a queue of a running broker, and leave them there"
_LOGIN_S: Final = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``browse QUEUE [--count N] [--timeout S] …``."""
    parser.add_argument("queue", metavar="QUEUE", help="the queue; address::queue, if its address has another name")
    parser.add_argument(
        "--count", metavar="N", type=count, default=0, help="how many messages to print (default 0: all)"
    )
    parser.add_argument("--follow", action="store_true", help="wait for more messages, until Ctrl-C")
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=seconds,
        default=1.0,
        help="seconds without a message after which it ends (default 1)",
    )
    parser.add_argument("--selector", metavar="TEXT", help="print only messages that match")
    add_output(parser)
    add_stomp(parser)
    parser.epilog = (
        "Messages that a consumer has, or that are scheduled, are not shown. "
        "exit codes: 0 it was read to its end; 1 there is no such queue, or the broker refused; "
        "2 the arguments are wrong"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the messages. Raises ArtemisError."""
    link = stomp_connection(args, _LOGIN_S)
    done = 0
    try:
        headers = [
            ("id", "1"),
            ("destination", args.queue),
            ("ack", "auto"),
            ("browser", "true"),
            ("auto-create", "false"),
        ]
        if "::" not in args.queue:
            headers.append(("subscription-type", "ANYCAST"))
        if args.selector is not None:
            headers.append(("selector", args.selector))
        waiting = link.ask("SUBSCRIBE", headers)
        while args.count == 0 or done < args.count:
            until_s = None if args.follow else time.monotonic() + args.timeout
            message = waiting.pop(0) if waiting else link.receive(until_s)
            if message is None:
                break
            if message.command == "MESSAGE":
                print_message(message, args)
                done += 1
    finally:
        link.close()
    return 0
