"""Offers a configuration to somebody who starts a broker and has none."""

from __future__ import annotations

import sys
from pathlib import Path

from artemis_py.cli.configuration import DEFAULT_FILE
from artemis_py.shown import say, say_made


def offer_configuration(file: Path | None) -> None:
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
