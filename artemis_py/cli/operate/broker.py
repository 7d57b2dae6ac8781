"""``artemis-py broker``: show a running broker."""

from __future__ import annotations

import argparse
from typing import Final

from artemis_py.cli.operate import command

HELP: Final = "show a running broker"
run = command.run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions of the table of operations."""
    command.add(parser, "broker")
