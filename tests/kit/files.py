"""Files as tests look at them, and harm them."""

from __future__ import annotations

import os
from pathlib import Path


def flip(path: Path, at: int | bytes, bits: int = 1) -> None:
    """Change bits of one byte: of the one there, or of the first of these bytes."""
    data = bytearray(path.read_bytes())
    data[at if isinstance(at, int) else data.index(at)] ^= bits
    path.write_bytes(data)


def age(path: Path, by_s: int) -> None:
    """The last change of a file or directory seems to be so much longer ago; if negative, later, and by more than the
    clock of a file system ticks.
    """
    changed_ns = path.stat().st_mtime_ns - by_s * 1_000_000_000
    os.utime(path, ns=(changed_ns, changed_ns))


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder but locks; a directory is there, too, and has no bytes."""
    return {
        str(path.relative_to(folder)): b"" if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
        if path.name != "server.lock"
    }
