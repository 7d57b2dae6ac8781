"""``artemis-py run FILE``: the broker in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "start the broker on a broker.xml, in the foreground"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``run``."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the configuration, for example broker.xml")
    parser.add_argument(
        "--properties",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="a broker.properties laid over the configuration; may be repeated, later files win",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the broker; returns 0 after an orderly stop. Raises ConfigError when the configuration is refused."""
    from artemis_py.server.lifecycle import run as run_broker

    return run_broker(args.file, args.properties)
