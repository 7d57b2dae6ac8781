"""``artemis-py connection``: list the clients of a running broker, and close their connections."""

from __future__ import annotations

import argparse
from typing import Final

from artemis_py.cli.operate import command

HELP: Final = "list the clients of a running broker, and close their connections"
run = command.run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions of the table of operations."""
    command.add(parser, "connection")
