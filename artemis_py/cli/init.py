"""``artemis-py init [FILE]``: writes a commented broker.xml to start with."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Final

from artemis_py.atomic_files import replace_file
from artemis_py.cli.configuration import DEFAULT_FILE
from artemis_py.errors import AdviceError, ArtemisError
from artemis_py.terminal_output import as_called, say

HELP: Final = "write a commented broker.xml to start with"

STARTER: Final = Path(__file__).with_name("broker.xml")
"""What is written. The broker.xml of a checkout is the same."""


class ThereAlreadyError(AdviceError):
    """A file is there, and nobody has said that it may be replaced."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``init [FILE] [--force]``."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", default=Path(DEFAULT_FILE), help=f"(default: {DEFAULT_FILE})"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def run(args: argparse.Namespace) -> int:
    """Writes the file. Raises ThereAlreadyError, and ArtemisError if it cannot be written."""
    write(args.file, replaces=args.force)
    start = "artemis-py run" if args.file == Path(DEFAULT_FILE) else f"artemis-py run {shlex.quote(str(args.file))}"
    say(f"wrote {args.file}; start it:  {as_called(start)}")
    return 0


def write(file: Path, *, replaces: bool = False) -> None:
    """Write a broker.xml. Raises ThereAlreadyError, and ArtemisError if it cannot be written."""
    text = STARTER.read_text("utf-8").replace(f" {DEFAULT_FILE} ", f" {_in_comment(file)} ")
    if not replaces and os.path.lexists(file):
        raise ThereAlreadyError(f"{file} is there already, and stays as it is", "--force replaces it")
    try:
        replace_file(file, text.encode(), mode=None)
    except OSError as error:
        raise ArtemisError(f"{file} cannot be written: {error.strerror}") from None


def _in_comment(file: Path) -> str:
    """The name of the file, as a comment of XML may have it."""
    name = file.name
    return name if name.isascii() and name.isprintable() and "--" not in name else DEFAULT_FILE
