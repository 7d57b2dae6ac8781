"""``artemis-py send ADDRESS``: publishes messages."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from artemis_py.cli.messaging.link import Link, add_link
from artemis_py.cli.messaging.options import count, count_from_one, seconds
from artemis_py.errors import ArtemisError, UsageError
from artemis_py.shown import as_json, many, say, say_made, warn
from artemis_py.stomp.client import ServerFrame
from artemis_py.stomp.requests import SUCCEEDED

HELP: Final = "send messages to an address of a running broker"
_CONFIRM_EVERY: Final = 500
_NOWHERE: Final = {
    "no-queue": (
        "address {0} has no queue, and a message stays only on a queue. Subscribe to it first, make a queue "
        "(artemis-py queue create NAME --address {0}), or send with --type ANYCAST, which makes one where "
        "auto-create-queues does"
    ),
    "gone": "{0} is a temporary destination, and the client that would have read it has gone",
    "not-accepted": (
        "no queue of address {0} takes it: their filters, their routing types (--type) or their states are against it "
        "(artemis-py queue ls shows them)"
    ),
    "address-full": (
        "address {0} is full, and its address-full-policy DROP drops what comes. Have messages consumed, or raise its "
        "limits (artemis-py address show {0})"
    ),
    "dropped": (
        "the queue dropped it at once, because it keeps no message, or others rank above it (ring-size, max-depth of "
        "artemis-py queue show)"
    ),
    "replaced": (
        "a later one took its place, on a ring that keeps no more, or as the newer value of its key (ring-size, "
        "max-depth, last-value of artemis-py queue show)"
    ),
}
"""Why a message is nowhere, by the reason of the RECEIPT, and what to do."""
_ELSEWHERE: Final = {
    "duplicate": "the address has had one with this _AMQ_DUPL_ID, and drops it as repeated",
    "awaited": "a queue that is still being filled from the log will find it there",
}
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
    parser.epilog = (
        "exit codes: 0 the broker has confirmed all, and each is on a queue (or was dropped as repeated, by its "
        "_AMQ_DUPL_ID); 1 it has not, or some are nowhere, or what management was asked for failed; 2 the arguments "
        "are wrong"
    )


def run(args: argparse.Namespace) -> int:
    """Sends, waits until the broker has confirmed everything, and says where it is. Raises ArtemisError."""
    bodies = list(_bodies(args))
    link = Link(args, args.timeout, asks_where=True)
    started_s = time.monotonic()
    total = args.count * len(bodies)
    found = _Found()
    waiting: list[str] = []
    try:
        for _ in range(args.count):
            for body in bodies:
                headers = [*_headers(args), ("content-length", str(len(body)))]
                waiting.append(link.begin("SEND", headers, body))
                if len(waiting) == _CONFIRM_EVERY:
                    found.take(link.receipts(waiting))
                    waiting = []
        found.take(link.receipts(waiting))
        found.note_replaced()
        link.ask("DISCONNECT", ())
    finally:
        link.close()
    took_s = time.monotonic() - started_s
    if args.json:
        told: dict[str, object] = {"address": args.address, "sent": total, "seconds": round(took_s, 3)}
        if link.tells_where:
            told |= {"queues": list(found.queues), "nowhere": found.nowhere, "reasons": dict(found.reasons)}
            told["replaced"] = found.replaced
        if found.requests:
            told |= {"carriedOut": found.carried_out, "failed": dict(found.refused)}
        say_made(as_json(told))
    elif found.requests:
        if found.carried_out:
            say(f"the broker has carried out {many(found.carried_out, 'request')} to {args.address}")
    elif found.nowhere < total:
        rate = f", {total / took_s:,.0f} a second" if total >= 100 and took_s > 0 else ""
        where = found.told(total) if link.tells_where else ", and this broker does not tell on which queues"
        say(f"sent {many(total, 'message')} to {args.address}{rate}{where}")
    for reason, lost in found.reasons.items():
        if reason in _NOWHERE:
            bound = "at least " if reason == "replaced" and found.queues_max > 1 else ""
            what = f"{bound}{many(lost, 'message')} of {total:,}"
            warn(f"{what} {_is(lost)} nowhere: {_NOWHERE[reason].format(args.address)}")
    for why, refused in found.refused.items():
        warn(f"{many(refused, 'request')} of {total:,} failed: {why}")
    return 1 if found.nowhere or found.refused else 0


@final
class _Found:
    """Where messages are, as their RECEIPTs tell."""

    def __init__(self) -> None:
        self.queues: dict[str, None] = {}
        """Those that have one, in the order in which they were told."""
        self.queues_max = 0
        """On so many queues one message is."""
        self.reasons: Counter[str] = Counter()
        """Messages that are on no queue, by the reason."""
        self.requests = 0
        """How many were no messages, but requests to the broker."""
        self.refused: Counter[str] = Counter()
        """Those of them that failed, by what the broker says."""
        self._kept = 0
        """So many messages were on a queue when they were confirmed."""
        self._places = 0
        """On so many queues messages were, together, when they were confirmed."""
        self.replaced = 0
        """So many of these places later messages have."""

    def take(self, receipts: list[ServerFrame]) -> None:
        """RECEIPTs of SENDs; a broker that cannot tell says nothing."""
        for one in receipts:
            succeeded = one.headers.get(SUCCEEDED)
            if succeeded is not None:
                self.requests += 1
                if succeeded != "true":
                    self.refused[one.headers.get("reason", "the broker does not say why")] += 1
            count = int(one.headers.get("queues", "-1"))
            self.queues_max = max(self.queues_max, count)
            self.replaced += int(one.headers.get("replaced", "0"))
            if count > 0:
                self._places += count
                self._kept += 1
                self.queues |= dict.fromkeys(one.headers.get("queue-names", "").split(","))
            elif not count:
                self.reasons[one.headers.get("reason", "not-accepted")] += 1

    def note_replaced(self) -> None:
        """All have been confirmed: where later ones have the places of earlier ones, at least so many are nowhere."""
        lost = self._kept - (self._places - self.replaced)
        if lost > 0:
            self.reasons["replaced"] += lost

    @property
    def carried_out(self) -> int:
        """How many requests succeeded."""
        return self.requests - self.refused.total()

    @property
    def nowhere(self) -> int:
        """So many are on no queue, and will be on none."""
        return sum(count for reason, count in self.reasons.items() if reason in _NOWHERE)

    def told(self, total: int) -> str:
        """In words."""
        parts: list[str] = []
        if self.queues:
            is_unsure = self.replaced > 0 and self.queues_max > 1  # a message may have left one queue, or all of them
            count = self._kept if is_unsure else total - self.reasons.total()
            more = "" if self.queues_max <= len(self.queues) else " and others"
            what = "queue" if len(self.queues) == 1 and not more else "queues"
            which = "it" if total == 1 else "they" if count == total else f"{count:,} of them"
            verb = "came" if is_unsure else _is(count)
            left = f"; later ones took {self.replaced:,} of their {self._places:,} places there" if is_unsure else ""
            parts.append(f"{which} {verb} on {what} {', '.join(self.queues)}{more}{left}")
        parts += [text for reason, text in _ELSEWHERE.items() if self.reasons[reason]]
        return f": {'; '.join(parts)}" if parts else ""


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


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
