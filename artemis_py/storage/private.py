"""Who may look at the broker's files: its own user. They hold every message."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that lack, for the broker's user alone. One that is there stays as it is.
    Raises OSError.
    """
    lacking = [directory]
    while not lacking[-1].parent.exists():
        lacking.append(lacking[-1].parent)
    for one in reversed(lacking):
        one.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def open_private(path: str | Path, flags: int) -> int:
    """Open a file; one that is made is for the broker's user alone. May be given to ``open`` as its opener. Raises
    OSError.
    """
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


def begin_private(path: Path) -> None:
    """Make an empty file for the broker's user alone, for those who then write it by its name. Raises OSError."""
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))


def open_to_others(directories: Iterable[Path]) -> list[str]:
    """A line for each directory in which other users may write: they could exchange the broker's files."""
    lines: list[str] = []
    for directory in dict.fromkeys(directories):
        try:
            mode = stat.S_IMODE(directory.stat().st_mode)
        except OSError:
            continue
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            lines.append(
                f"warning: {directory} has mode {mode:04o}: other users can replace the broker's files; run chmod go-w"
            )
    return lines
