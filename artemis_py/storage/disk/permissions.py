"""Keeps the broker's files private to its own user, because they hold every message."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from artemis_py.atomic_files import sync_path

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def make_private(directory: Path) -> None:
    """Create a directory and its missing parents, for the broker's user alone. An existing one stays as it is. Raises
    OSError.
    """
    lacking = [directory]
    while not lacking[-1].parent.exists():
        lacking.append(lacking[-1].parent)
    for one in reversed(lacking):
        one.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def open_private(path: str | Path, flags: int) -> int:
    """Open a file; a new one is for the broker's user alone. Can be the opener of ``open``. Raises OSError."""
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


def begin_private(path: Path) -> None:
    """Create an empty file for the broker's user alone, to be written later by its name. Raises OSError."""
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))


def replace_private(path: Path, data: bytes) -> None:
    """Replace a small file at once, durably. Raises OSError; then the old one stands, and nothing else is left."""
    unfinished = path.with_name(path.name + ".part")
    try:
        with open(unfinished, "wb", opener=open_private) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    sync_path(path.parent)


def open_to_others(directories: Iterable[Path]) -> list[str]:
    """A line for each directory that other users may write to: they could replace the broker's files."""
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
