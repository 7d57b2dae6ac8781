"""``artemis-py run FILE``: the broker in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from artemis_py.cli.configuration import DEFAULT_FILE, add_file, add_properties, add_strictness, file_or_default
from artemis_py.terminal_output import say, say_made

HELP = "start the broker on a broker.xml or an Artemis instance, in the foreground"
EXIT_CODES = (
    "exit codes: 0 orderly stop; 1 it could not start (a port, a directory, another broker); 2 the configuration was "
    "refused; 3 storage failed while it ran, and nothing was confirmed after that; 4 the journal lacks files, queues "
    "or many records: see artemis-py journal verify, artemis-py journal repair, and --accept-loss"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``run``."""
    add_file(parser)
    add_properties(parser)
    add_strictness(parser)
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help=(
            "start even though the journal lacks files, queues or many records (otherwise exit code 4); the "
            "journal is repaired first, and the old files are kept in a folder inside it"
        ),
    )
    parser.epilog = EXIT_CODES


def run(args: argparse.Namespace) -> int:
    """Runs the broker; returns the exit code. Raises ConfigError if the configuration is refused, and NoFileError if
    there is none.
    """
    from artemis_py.server.lifecycle import run as run_broker

    _offer_configuration(args.file)
    file = file_or_default(args.file, "run")
    return run_broker(file, args.properties, silenced=args.silence, strict=args.strict, accept_loss=args.accept_loss)


def _offer_configuration(file: Path | None) -> None:
    """If no file is named, the folder has none, and a person is there: ask whether to write one. Raises ArtemisError if
    it cannot be written.
    """
    if file is not None or Path(DEFAULT_FILE).exists() or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    say(f"this folder has no {DEFAULT_FILE}")
    say_made("Write one to start with, and run it? [y/N] ", end="")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        return
    from artemis_py.cli.init import write

    write(Path(DEFAULT_FILE))
    say(f"wrote {DEFAULT_FILE}")
