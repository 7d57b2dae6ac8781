"""``artemis-py send ADDRESS``: publishes messages."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from artemis_py.cli.logins import add_stomp, stomp_connection
from artemis_py.cli.options import count, count_from_one, seconds
from artemis_py.client.stomp_connection import RefusedError, StompConnection, StompConnectionError
from artemis_py.config.tables.declarations import SCHEDULES
from artemis_py.errors import ArtemisError, UsageError
from artemis_py.stomp.client import ROUTING, ServerFrame
from artemis_py.stomp.management_requests import SUCCEEDED
from artemis_py.terminal_output import as_json, many, say, say_made, warn

HELP: Final = "send messages to an address of a running broker"
_CONFIRM_EVERY: Final = 500
_DRAIN_S: Final = 1.0
_NOWHERE: Final = {
    "no-queue": (
        "address {0} has no queue, and a message stays only on a queue. Subscribe to it first, make a queue "
        "(artemis-py queue create NAME --address {0}), or send with --type ANYCAST, which makes one where "
        "auto-create-queues does"
    ),
    "gone": "{0} is a temporary destination, and the client that would have read it has gone",
    "diverted": (
        "a divert of address {0} sends it to address {1}, and no queue there keeps it. Make a queue (artemis-py queue "
        "create NAME --address {1}), or change the divert (artemis-py divert ls)"
    ),
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
    parser.add_argument("body", metavar="BODY", nargs="?", help="the body; - or nothing: standard input")
    parser.add_argument("--file", metavar="FILE", type=Path, help="read the body from this file")
    parser.add_argument("--lines", action="store_true", help="send each line of the body as a message")
    parser.add_argument("--count", metavar="N", type=count_from_one, default=1, help="send it N times (default 1)")
    parser.add_argument(
        "--header", metavar="K=V", type=_header, action="append", default=[], help="a header; may be repeated"
    )
    parser.add_argument("--content-type", metavar="TYPE", help="the type of the body, such as application/json")
    parser.add_argument("--type", choices=("ANYCAST", "MULTICAST"), help="the routing type; else the address decides")
    parser.add_argument("--priority", metavar="N", type=count, choices=range(10), help="0 to 9 (default 4)")
    parser.add_argument("--ttl", metavar="S", type=seconds, help="seconds until the message expires")
    parser.add_argument("--delay", metavar="S", type=seconds, help="seconds until the message is delivered")
    parser.add_argument(
        "--persistent",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep the message through a crash of the broker (default: yes)",
    )
    parser.add_argument(
        "--timeout", metavar="S", type=seconds, default=30.0, help="how long to wait for a confirmation (default 30)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_stomp(parser)
    parser.epilog = (
        "exit codes: 0 the broker has confirmed all, and each is on a queue (or was dropped as repeated, by its "
        "_AMQ_DUPL_ID); 1 it has not, or some are nowhere, or a request to management failed; 2 the arguments are wrong"
    )


def run(args: argparse.Namespace) -> int:
    """Sends, waits until the broker has confirmed everything, and says where it is. Raises ArtemisError."""
    bodies = list(_bodies(args))
    link = stomp_connection(args, args.timeout, [(ROUTING, "true")])
    started_s = time.monotonic()
    total = args.count * len(bodies)
    found = _Found(args.address)
    found.tells_where = link.connected.headers.get(ROUTING) == "true"
    waiting: list[str] = []
    failure: StompConnectionError | None = None
    try:
        for _ in range(args.count):
            for body in bodies:
                headers = [*_headers(args), ("content-length", str(len(body)))]
                waiting.append(link.begin("SEND", headers, body))
                if len(waiting) == _CONFIRM_EVERY:
                    found.take(link.receipts(waiting))
                    waiting = []
        found.take(link.receipts(waiting))
        link.ask("DISCONNECT", ())
    except StompConnectionError as error:
        found.take(_arrived(link, waiting))
        if not (found.confirmed or args.json):
            raise
        failure = error if found.confirmed < total else None
    finally:
        link.close()
    found.seconds = time.monotonic() - started_s
    if args.json:
        say_made(as_json(_result(args, found, total, failure)))
    else:
        _say_where(args, found, total)
    _warn(found, total, failure)
    return 1 if found.nowhere or found.refused or failure is not None else 0


def _arrived(link: StompConnection, receipts: Collection[str]) -> Iterator[ServerFrame]:
    """Those of these receipts that had come before the connection failed."""
    with suppress(StompConnectionError):
        while (answer := link.receive(time.monotonic() + _DRAIN_S)) is not None:
            if answer.command == "RECEIPT" and answer.headers.get("receipt-id", "") in receipts:
                yield answer


def _result(
    args: argparse.Namespace, found: _Found, total: int, failure: StompConnectionError | None
) -> dict[str, object]:
    """The result for ``--json``."""
    told: dict[str, object] = {"address": args.address, "sent": found.confirmed, "seconds": round(found.seconds, 3)}
    if failure is not None:
        told |= {"unconfirmed": total - found.confirmed, "error": str(failure)}
    if found.tells_where:
        told |= {"queues": list(found.queues), "nowhere": found.nowhere, "reasons": dict(found.reasons)}
        told["replaced"] = found.replaced
    if found.requests:
        told |= {"carriedOut": found.carried_out, "failed": dict(found.refused)}
    return told


def _say_where(args: argparse.Namespace, found: _Found, total: int) -> None:
    """Says what was sent, and where it is."""
    if found.requests:
        if found.carried_out:
            say(f"the broker has carried out {many(found.carried_out, 'request')} to {args.address}")
    elif found.nowhere < found.confirmed:
        rate = (
            f", {total / found.seconds:,.0f} a second" if found.confirmed == total >= 100 and found.seconds > 0 else ""
        )
        where = found.told if found.tells_where else ", and this broker does not tell on which queues"
        sent = (
            many(total, "message") if found.confirmed == total else f"{found.confirmed:,} of {many(total, 'message')}"
        )
        say(f"sent {sent} to {args.address}{rate}{where}")


def _warn(found: _Found, total: int, failure: StompConnectionError | None) -> None:
    """Says what is nowhere, what has failed, and what was not confirmed."""
    for (reason, *places), lost in found.lost.items():
        warn(f"{many(lost, 'message')} of {total:,} {_is(lost)} nowhere: {_NOWHERE[reason].format(*places)}")
    for why, refused in found.refused.items():
        warn(f"{many(refused, 'request')} of {total:,} failed: {why}")
    if failure is not None:
        left = total - found.confirmed
        rest = f"the last {left:,} of {total:,} were" if left > 1 else f"the last of {total:,} was"
        if isinstance(failure, RefusedError):
            warn(f"{failure}; {rest} not taken: when that is mended, send only what is left")
        else:
            warn(f"{failure}; {rest} not confirmed, and may be there or not")


@final
class _Found:
    """Where messages are, as their RECEIPTs tell. ``destination``: where they were sent."""

    def __init__(self, destination: str) -> None:
        self._destination = destination
        self.tells_where = False
        """Does this broker tell where they are?"""
        self.seconds = 0.0
        """How long it took."""
        self.confirmed = 0
        """How many the broker has confirmed."""
        self.queues: dict[str, None] = {}
        """Those that have one, in the order of the RECEIPTs."""
        self.queues_max = 0
        """On so many queues one message is."""
        self.reasons: Counter[str] = Counter()
        """Messages that are on no queue, by the reason."""
        self.lost: Counter[tuple[str, str, str]] = Counter()
        """Those of them that are nowhere, by the reason, the address to which they were sent, and the one to which a
        divert sends them.
        """
        self.requests = 0
        """How many were no messages, but requests to the broker."""
        self.refused: Counter[str] = Counter()
        """Those of them that failed, by what the broker says."""
        self.replaced = 0
        """So many places on queues later messages have."""
        self._places_count = 0
        """So many places messages had that are on a queue still."""
        self._places_taken = 0
        """So many of these later messages have."""
        self._places: dict[int, tuple[int, int]] = {}
        """On how many queues a message, with its copies, is and was that may be dropped for later ones, by number."""
        self._originals: dict[int, int] = {}
        """The number of the message of which a copy was made, by the number of the copy."""

    def take(self, receipts: Iterable[ServerFrame]) -> None:
        """RECEIPTs of SENDs; a broker that cannot tell says nothing."""
        for one in receipts:
            self.confirmed += 1
            succeeded = one.headers.get(SUCCEEDED)
            if succeeded is not None:
                self.requests += 1
                if succeeded != "true":
                    self.refused[one.headers.get("reason", "the broker does not say why")] += 1
            count = int(one.headers.get("queues", "-1"))
            self.queues_max = max(self.queues_max, count)
            self.replaced += int(one.headers.get("replaced", "0"))
            self._note_replaced(one.headers.get("replaced-ids", ""))
            if count > 0:
                self._places_count += count
                self._note_places(one.headers.get("message-ids", ""), count)
                self.queues |= dict.fromkeys(one.headers.get("queue-names", "").split(","))
            elif not count:
                reason = one.headers.get("reason", "not-accepted")
                self._lose(reason, self._named(one.headers.get("address")), one.headers.get("diverted-to", ""))

    def _named(self, address: str | None) -> str:
        """The destination without its prefix. ``address``: as the broker names it, if it does."""
        _, colons, queue = self._destination.partition("::")
        return self._destination if address is None else f"{address}{colons}{queue}"

    def _lose(self, reason: str, address: str, diverted_to: str) -> None:
        self.reasons[reason] += 1
        if reason in _NOWHERE:
            self.lost[reason, address, diverted_to] += 1

    def _note_places(self, ids: str, count: int) -> None:
        """A message came to so many queues. ``ids``: its number and those of its copies, if it may be replaced."""
        if ids:
            number, *copies = [int(id) for id in ids.split(",")]
            self._places[number] = count, count
            self._originals |= dict.fromkeys(copies, number)

    def _note_replaced(self, ids: str) -> None:
        """Messages have left queues for a later one; who has left the last of its queues is nowhere."""
        for each in ids.split(",") if ids else ():
            id, _, count = each.partition("=")
            number = self._originals.get(int(id), int(id))
            left, had = self._places.get(number, (0, 0))
            if not had:
                continue
            self._places[number] = left - int(count), had
            self._places_taken += int(count)
            if left <= int(count):
                del self._places[number]
                self._places_count -= had
                self._places_taken -= had
                self._lose("replaced", self._destination, "")

    @property
    def carried_out(self) -> int:
        """How many requests succeeded."""
        return self.requests - self.refused.total()

    @property
    def nowhere(self) -> int:
        """So many are on no queue, and will be on none."""
        return sum(count for reason, count in self.reasons.items() if reason in _NOWHERE)

    @property
    def told(self) -> str:
        """In words."""
        parts: list[str] = []
        if self.queues:
            count = self.confirmed - self.reasons.total()
            more = "" if self.queues_max <= len(self.queues) else " and others"
            what = "queue" if len(self.queues) == 1 and not more else "queues"
            which = "it" if self.confirmed == 1 else "they" if count == self.confirmed else f"{count:,} of them"
            names = [f"{name} (artemis-py schedule ls)" if name == SCHEDULES else name for name in self.queues]
            parts.append(f"{which} {_is(count)} on {what} {', '.join(names)}{more}")
            if self._places_taken > 0:
                parts.append(f"later ones took {self._places_taken:,} of their {self._places_count:,} places there")
        parts += [text for reason, text in _ELSEWHERE.items() if self.reasons[reason]]
        return f": {'; '.join(parts)}" if parts else ""


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _bodies(args: argparse.Namespace) -> Iterator[bytes]:
    if args.file is not None and args.body is not None:
        raise UsageError("give BODY or --file, not both")
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
