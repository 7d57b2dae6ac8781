"""Options that many commands have: numbers, ``--json``."""

from __future__ import annotations

import argparse
from typing import Final

from artemis_py.units import parse_decimal

JSON: Final = "json"


def count(text: str) -> int:
    """How many, 0 or more. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"a count is 0 or more, and not {text!r}")
    return int(text)


def count_from_one(text: str) -> int:
    """How many, 1 or more. Raises ArgumentTypeError."""
    if not count(text):
        raise argparse.ArgumentTypeError("a count is 1 or more, and not 0")
    return int(text)


def seconds(text: str) -> float:
    """How long, 0 or more. Raises ArgumentTypeError."""
    try:
        value = parse_decimal(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"a number of seconds, 0 or more, and not {text!r}")
    return value


def add_json(arguments: argparse._ActionsContainer, help: str, *, people: str = "text") -> None:
    """Add ``--json``, as all commands have it, and ``--format``, which says the same at greater length: ``people`` or
    ``json``. Both set ``format``.
    """
    arguments.add_argument(
        "--json", dest="format", action="store_const", const=JSON, default=people, help=f"print JSON: {help}"
    )
    arguments.add_argument(
        "--format", choices=(people, JSON), default=people, help=f"--format {JSON} is the same as --json"
    )
