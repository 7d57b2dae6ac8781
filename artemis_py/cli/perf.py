"""``artemis-py perf URL``: measures any STOMP broker."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from artemis_py.cli.context import without_user
from artemis_py.cli.logins import STOMP_URL, add_login, login_of, stomp_url_for
from artemis_py.cli.options import seconds
from artemis_py.errors import ArtemisError, PerfError
from artemis_py.terminal_output import say_made, warn
from artemis_py.text_table import Column, print_table
from artemis_py.units import parse_decimal, parse_long

if TYPE_CHECKING:
    from artemis_py.perf.link import Target
    from artemis_py.perf.scenario import Options

HELP = "measure a STOMP broker"


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """A parser of numbers above zero for argparse."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from error
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
        return value

    return parse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``perf``."""
    parser.add_argument(
        "url",
        metavar="URL",
        nargs="?",
        help=f"stomp://host:port or stomp://user@host:port; stomp+ssl://… for TLS (default {STOMP_URL})",
    )
    parser.add_argument(
        "--context",
        metavar="NAME",
        help="the broker and login of this name; the context in use does not count: this is a load on the broker",
    )
    parser.add_argument("--scenario", metavar="IDS", help="comma-separated ids, or all (default: see --list)")
    parser.add_argument("--list", action="store_true", help="list the scenarios and exit")
    _add_load(parser.add_argument_group("load"))
    _add_dialect(parser.add_argument_group("dialect"))
    _add_process(parser.add_argument_group("the broker's process"))
    parser.add_argument(
        "--rounds", type=positive(parse_long), default=1, help=("how often to run everything; the table shows medians")
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")


def _add_load(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--messages",
        type=positive(parse_long),
        help=("number of messages (default: as many as --seconds allow; 300,000 in scenario 7)"),
    )
    group.add_argument(
        "--seconds", type=positive(parse_decimal), default=3.0, help=("how long each scenario measures (default 3)")
    )
    group.add_argument(
        "--warmup",
        type=seconds,
        default=1.0,
        metavar="SECONDS",
        help="load before measuring starts (default 1; 0: none)",
    )
    group.add_argument("--size", type=positive(parse_long), help="bytes per body (default: 100; 1,024 in scenario 2)")
    group.add_argument(
        "--rate", type=positive(parse_decimal), default=2000.0, help="messages per second of scenario 8 (default 2000)"
    )
    group.add_argument(
        "--connections", type=positive(parse_long), default=500, help="idle connections of scenario 9 (default 500)"
    )
    group.add_argument(
        "--consumers", type=positive(parse_long), default=10, help="consumers of the topic in scenario 5 (default 10)"
    )
    group.add_argument(
        "--neighbours",
        type=positive(parse_long),
        default=20,
        help="clients that send as fast as they can in the neighbour scenarios (default 20)",
    )
    group.add_argument("--distinct", action="store_true", help="scenario 5: give each consumer its own subscription id")
    group.add_argument(
        "--stall",
        type=positive(parse_decimal),
        default=10.0,
        metavar="SECONDS",
        help="give up after so long without progress (default 10)",
    )
    group.add_argument(
        "--limit",
        type=positive(parse_decimal),
        default=120.0,
        metavar="SECONDS",
        help="give up when a scenario takes longer than this (default 120)",
    )


def _add_dialect(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--version", choices=("1.0", "1.1", "1.2"), default="1.2", help="STOMP version (default 1.2)")
    add_login(group)
    group.add_argument("--trust", metavar="FILE", help="stomp+ssl: PEM file with the certificate, or its issuer")
    group.add_argument("--login", help="login header of CONNECT, as it is")
    group.add_argument("--passcode", help="passcode header of CONNECT; others see it in the list of processes")
    group.add_argument("--queue-prefix", default="/queue/", help="prefix of queue destinations (default %(default)s)")
    group.add_argument("--topic-prefix", default="/topic/", help="prefix of topic destinations (default %(default)s)")
    for command in ("connect", "subscribe", "send"):
        group.add_argument(
            f"--{command}-header",
            metavar="NAME:VALUE",
            action="append",
            default=[],
            help=f"extra header for {command.upper()}; may be repeated",
        )
    group.add_argument(
        "--no-receipts", action="store_true", help="for brokers without receipts: wait briefly after SUBSCRIBE instead"
    )


def _add_process(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--pid",
        type=positive(parse_long),
        help="the broker's process id: measure its CPU time and memory, with its children",
    )
    group.add_argument(
        "--start-command",
        metavar="COMMAND",
        help=("scenarios 10 and recovery: the command that starts the broker in the foreground"),
    )
    group.add_argument(
        "--directory",
        default=".",
        help=(
            "scenario 4: measure fdatasync in this directory; choose one on the broker's disk (default: the "
            "current directory)"
        ),
    )
    group.add_argument("--metrics-url", metavar="URL", help="/metrics of artemis_py: also show messages per sync")


def run(args: argparse.Namespace) -> int:
    """Measures and prints; returns 0 if every scenario succeeded, 1 if one failed, 2 for wrong arguments.

    Raises PerfError if nothing can be measured.
    """
    from artemis_py.perf.process import ProcessTree
    from artemis_py.perf.registry import DEFAULT, SCENARIOS, choose
    from artemis_py.perf.result import Progress, as_json, table
    from artemis_py.perf.scenario import Run, any_needs_broker, check_broker, run_rounds

    if args.list:
        rows = [(one.id, one.title, "" if one.id in DEFAULT else "(only when asked for)") for one in SCENARIOS.values()]
        print_table([Column()] * 3, rows)
        return 0
    try:
        scenarios = choose(DEFAULT if args.scenario is None else [name.strip() for name in args.scenario.split(",")])
        target = _target(args)
    except ArtemisError as error:
        warn(f"artemis-py perf: {error}")
        return 2
    if any_needs_broker(scenarios):
        check_broker(target)
    process = None if args.pid is None else ProcessTree(args.pid)
    load = Run(target, _options(args), process, Progress())
    outcomes = run_rounds(scenarios, load, args.rounds)
    if args.json:
        say_made(as_json(target.url, args.rounds, outcomes))
    else:
        say_made(table(outcomes, colour=sys.stdout.isatty()))
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def _target(args: argparse.Namespace) -> Target:
    from artemis_py.perf.link import Target, parse_header, parse_url
    from artemis_py.security.client_login import ClientLogin

    given = stomp_url_for(args, args.url) if args.context else args.url or STOMP_URL
    url, user = without_user(given)
    endpoint = parse_url(url)
    trust = args.trust if args.trust is not None else getattr(args, "ca_file", None) if endpoint.has_tls else None
    if endpoint.has_tls != (trust is not None):
        raise PerfError("a URL stomp+ssl://host:port and --trust FILE belong together")
    has_own = args.login is not None or args.passcode is not None
    login = ClientLogin() if has_own else login_of(args, user)
    return Target(
        host=endpoint.host,
        port=endpoint.port,
        version=args.version,
        login=args.login if has_own else login.user,
        passcode=args.passcode if has_own else login.passcode,
        queue_prefix=args.queue_prefix,
        topic_prefix=args.topic_prefix,
        connect_headers=tuple(map(parse_header, args.connect_header)),
        subscribe_headers=tuple(map(parse_header, args.subscribe_header)),
        send_headers=tuple(map(parse_header, args.send_header)),
        receipts=not args.no_receipts,
        stall_s=args.stall,
        trust=trust,
    )


def _options(args: argparse.Namespace) -> Options:
    from artemis_py.perf.scenario import Options

    return Options(
        messages=args.messages,
        size=args.size,
        seconds=args.seconds,
        warmup_s=max(0.0, args.warmup),
        limit_s=args.limit,
        rate=args.rate,
        connections=args.connections,
        consumers=args.consumers,
        neighbours=args.neighbours,
        distinct=args.distinct,
        start_command=args.start_command,
        directory=args.directory,
        metrics_url=args.metrics_url,
    )
