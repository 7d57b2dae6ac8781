"""``artemis-py check FILE``: everything that is wrong with a configuration, in one go."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from artemis_py.cli import colour
from artemis_py.cli.configuration import (
    add_file,
    add_properties,
    add_strictness,
    file_or_default,
    print_ports,
    print_problems,
    summary,
)
from artemis_py.cli.output_form import add_json
from artemis_py.config.problems import Problems, told
from artemis_py.config.reader import load
from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ConfigError, Problem
from artemis_py.security.realms import open_realms
from artemis_py.shown import as_json as json_text
from artemis_py.shown import escaped, say_made

HELP = "report every problem of a broker.xml or an Artemis instance"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``check``."""
    add_file(parser)
    add_properties(parser)
    add_strictness(parser)
    parser.add_argument("--quiet", action="store_true", help="print only errors; print nothing when there are none")
    add_json(parser, "one object")


def run(args: argparse.Namespace) -> int:
    """Prints all problems, a verdict and where the broker would listen; returns 0 if it would start with this file,
    else 2. With ``--strict`` it also returns 2 for a warning.
    """
    file = file_or_default(args.file, "check")
    config: BrokerConfig | None = None
    found: list[Problem] = []
    problems: Sequence[Problem] = ()
    try:
        config = load(file, properties=args.properties)
        found = [*config.notices, *tls_problems(config)]
        problems = [*found, *_problems_of_users(config), *_problems_of_journal(config)]
    except ConfigError as error:
        problems = [*found, *error.problems]
    if any(each.severity == "error" for each in problems):
        config = None
    shown = told(problems, args.silence)
    valid = config is not None and not (args.strict and any(each.severity == "warning" for each in shown))
    places = ports_of(config) if config is not None else []
    if args.format == "json":
        say_made(json_text(as_json(str(file), shown, places, valid=valid), indent=2))
    elif not args.quiet:
        print_problems(shown, sys.stdout)
        print_verdict(str(file), shown, valid=valid)
        if config is not None:
            print_ports(places)
    elif not valid:
        print_problems([each for each in shown if args.strict or each.severity == "error"], sys.stdout)
    return 0 if valid else 2


def tls_problems(config: BrokerConfig) -> list[Problem]:
    """What is wrong with the key and trust stores of the ports that would be opened."""
    if not any(each.is_opened and each.is_tls for each in config.acceptors):
        return []
    from artemis_py.server.tls.context import check_files

    return [
        Problem(
            "error" if is_fatal else "warning",
            each.origin.file,
            each.origin.line,
            text,
            code="" if is_fatal else "certificate",
        )
        for each, text, is_fatal in check_files(config)
    ]


def _problems_of_users(config: BrokerConfig) -> list[Problem]:
    """Where users come from is opened as ``run`` does. Returns warnings, and raises ConfigError for errors."""
    problems = Problems()
    if config.security_enabled:
        open_realms(config, problems)
    return problems.in_order(config.file)


def _problems_of_journal(config: BrokerConfig) -> list[Problem]:
    from artemis_py.cli.check_journal import journal_problems  # with all of the core

    return journal_problems(config)


def ports_of(config: BrokerConfig) -> list[str]:
    """The addresses on which the broker would listen, with protocols."""
    return [
        f"{each.place} for {', '.join(each.protocols)}{' over TLS' if each.is_tls else ''} (acceptor {each.name})"
        for each in config.acceptors
        if each.is_opened
    ]


def as_json(file: str, problems: Sequence[Problem], places: Sequence[str], *, valid: bool) -> dict[str, object]:
    """Return what ``--json`` prints."""
    counts = Counter(problem.severity for problem in problems)
    return {
        "file": file,
        "valid": valid,
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
        "listening": list(places),
        "problems": [asdict(problem) | {"text": str(problem)} for problem in problems],
    }


def print_verdict(file: str, problems: Sequence[Problem], *, valid: bool) -> None:
    """Print whether the broker would start, and the number of problems by severity."""
    paint = colour.painter(sys.stdout)
    verdict = paint(colour.GREEN, "valid") if valid else paint(colour.RED, "refused")
    say_made(f"{escaped(file)}: {verdict} ({summary(problems)})")
