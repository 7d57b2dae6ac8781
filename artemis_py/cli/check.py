"""``artemis-py check FILE``: everything that is wrong with a configuration, in one go."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from artemis_py.cli import colour
from artemis_py.config.reader import load
from artemis_py.errors import ConfigError, Problem

HELP = "report every problem of a broker.xml"

_COLOURS: Final = {"error": colour.RED, "warning": colour.YELLOW, "note": colour.CYAN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``check``."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the configuration, for example broker.xml")
    parser.add_argument(
        "--properties",
        metavar="FILE",
        type=str,
        action="append",
        default=[],
        help="a broker.properties laid over the configuration; may be repeated, later files win",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="for people or for machines")


def run(args: argparse.Namespace) -> int:
    """Prints all problems and a summary; returns 0 when the broker would start with this file, else 2."""
    problems: Sequence[Problem]
    try:
        problems = load(args.file, properties=args.properties).notices
        valid = True
    except ConfigError as error:
        problems = error.problems
        valid = False
    if args.format == "json":
        print(json.dumps(as_json(str(args.file), problems, valid=valid), indent=2, ensure_ascii=False))
    else:
        print_text(str(args.file), problems, valid=valid)
    return 0 if valid else 2


def as_json(file: str, problems: Sequence[Problem], *, valid: bool) -> dict[str, object]:
    """Return what ``--format json`` prints."""
    counts = Counter(problem.severity for problem in problems)
    return {
        "file": file,
        "valid": valid,
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
        "problems": [asdict(problem) | {"text": str(problem)} for problem in problems],
    }


def print_text(file: str, problems: Sequence[Problem], *, valid: bool) -> None:
    """Print one line for each problem, errors marked as such, and a summary."""
    paint = colour.painter(sys.stdout)
    for problem in problems:
        place = f"{problem.file}:{problem.line}: "
        severity = paint(_COLOURS[problem.severity], problem.severity)
        print(f"{place}{severity}: {str(problem).removeprefix(place)}")
    counts = Counter(problem.severity for problem in problems)
    summary = ", ".join(
        f"{counts[severity]} {severity}{'' if counts[severity] == 1 else 's'}"
        for severity in ("error", "warning", "note")
    )
    verdict = paint(colour.GREEN, "valid") if valid else paint(colour.RED, "refused")
    print(f"{file}: {verdict} ({summary})")
