"""``artemis-py simulate broker.xml ADDRESS``: when this configuration would page, block, drop or expire."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, Final

from artemis_py.cli import options
from artemis_py.cli.configuration import add_properties
from artemis_py.cli.explain import name_of
from artemis_py.config.reader import load
from artemis_py.errors import ArtemisError
from artemis_py.management.simulation import OFF, Limits, Load, Model, Outcome
from artemis_py.terminal_output import as_json, say_made
from artemis_py.text_table import Cell, Column, print_table
from artemis_py.units import parse_bytes, parse_ms

HELP: Final = "compute when a configuration would page, block, drop or expire"
_RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:/(s|min|h))?", re.ASCII)
_SPANS_S: Final = {None: 1, "s": 1, "min": 60, "h": 3_600}
_MINUTE_S: Final = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.epilog = "docs/why.md says what is computed, and what is left out."
    parser.add_argument("file", metavar="FILE", type=Path, help="configuration file, or the folder of an instance")
    parser.add_argument("name", metavar="ADDRESS[::QUEUE]", type=name_of, help="where messages are sent")
    add_properties(parser)
    parser.add_argument(
        "--in", dest="per_s", metavar="RATE", type=_rate, required=True, help="how fast messages come: 5000/s, 20/min"
    )
    parser.add_argument(
        "--size", metavar="SIZE", type=_size, default=1024, help="size of a body, such as 2KiB (default 1KiB)"
    )
    parser.add_argument(
        "--headers", metavar="SIZE", type=_size, default=200, help="size of its headers (default 200 bytes)"
    )
    parser.add_argument(
        "--consumers", metavar="N", type=options.count, default=1, help="how many consumers (default 1)"
    )
    parser.add_argument(
        "--out",
        metavar="RATE",
        type=_word_or_rate,
        nargs="+",
        required=True,
        help="how fast each consumer acknowledges",
    )
    parser.add_argument(
        "--for",
        dest="for_s",
        metavar="TIME",
        type=_time_s,
        default=3_600.0,
        help="how long to simulate, such as 2h (default 1h)",
    )
    parser.add_argument(
        "--away", metavar="TIME", type=_time_s, default=0.0, help="how long there is no consumer at first"
    )
    parser.add_argument("--ttl", metavar="TIME", type=_time_s, default=0.0, help="the time to live that senders set")
    parser.add_argument("--disk", metavar="SIZE", type=_size, default=OFF, help="room on the disk for pages")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _rate(text: str) -> float:
    found = _RATE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate; write 5000/s, 300/min or 10/h")
    return float(found[1]) / _SPANS_S[found[2]]


def _word_or_rate(text: str) -> float | None:
    """A rate; None for the word ``each``, which people write behind it."""
    return None if text == "each" else _rate(text)


def _size(text: str) -> int:
    try:
        size = parse_bytes(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    if size < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative")
    return size


def _time_s(text: str) -> float:
    try:
        span_ms = parse_ms(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    if span_ms < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative")
    return span_ms / 1000


def run(args: argparse.Namespace) -> int:
    """Prints the timeline. Raises ConfigError if the configuration is refused, and ArtemisError."""
    rates = [rate for rate in args.out if rate is not None]
    if len(rates) != 1 or args.consumers < 0:
        raise ArtemisError("give one rate with --out, as in --out 800/s each, and 0 or more --consumers")
    from artemis_py.server.memory import global_max_bytes

    config = load(args.file, properties=args.properties)
    limits = Limits(config, args.name, global_max_bytes(config.global_max_size))
    given = Load(
        per_s=args.per_s,
        body_bytes=args.size,
        header_bytes=args.headers,
        consumers=args.consumers,
        settled_per_s=rates[0],
        for_s=args.for_s,
        away_s=args.away,
        ttl_ms=round(1000 * args.ttl),
        disk_bytes=args.disk,
    )
    outcome = Model(limits, given).run()
    if args.json:
        say_made(as_json(_as_json(outcome), indent=2))
    else:
        _print(outcome, args.for_s)
    return 0


def _print(outcome: Outcome, for_s: float) -> None:
    rows: list[tuple[str, str, str | Cell]] = [
        (shown_s(moment.at_s), moment.what, Cell([moment.text, moment.setting] if moment.setting else moment.text))
        for moment in outcome.moments
    ]
    rows.append((shown_s(for_s), "end", _sum(outcome)))
    print_table([Column(is_number=True), Column(), Column()], rows)


def _sum(outcome: Outcome) -> str:
    parts = [f"{outcome.offered:,.0f} offered", f"{outcome.settled:,.0f} acknowledged"]
    for count, what in (
        (outcome.waiting, "not sent, because senders waited"),
        (outcome.refused, "refused"),
        (outcome.dropped, "dropped"),
        (outcome.expired, "expired"),
    ):
        if count >= 1:
            parts.append(f"{count:,.0f} {what}")
    held = f"{outcome.backlog:,.0f} in the queue"
    return "; ".join([*parts, held + (f" ({outcome.paged:,.0f} in pages)" if outcome.paged >= 1 else "")])


def _as_json(outcome: Outcome) -> dict[str, Any]:
    names = ("offered", "settled", "refused", "dropped", "expired", "waiting", "backlog", "paged")
    return {
        "moments": [
            {"at_s": one.at_s, "what": one.what, "text": one.text, "setting": one.setting} for one in outcome.moments
        ],
        "end": {name: round(getattr(outcome, name)) for name in names},
    }


def shown_s(time_s: float) -> str:
    """A time from the start, as a person reads it."""
    if time_s < _MINUTE_S:
        return f"{time_s:.1f} s"
    minutes, seconds = divmod(round(time_s), _MINUTE_S)
    hours, minutes = divmod(minutes, _MINUTE_S)
    return f"{hours}:{minutes:02}:{seconds:02} h" if hours else f"{minutes}:{seconds:02} min"
