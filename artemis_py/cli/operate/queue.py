"""``artemis-py queue``: list, show, pause, purge and delete the queues of a running broker."""

from __future__ import annotations

import argparse
from typing import Final

from artemis_py.cli.operate import command

HELP: Final = "list, show, pause, purge and delete the queues of a running broker"
run = command.run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions of the table of operations."""
    command.add(parser, "queue")
