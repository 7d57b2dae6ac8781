"""The argument that has a command print JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

JSON: Final = "json"


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
