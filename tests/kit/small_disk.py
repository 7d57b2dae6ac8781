"""A real file system that is small enough to be filled. Only root may mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MEBIBYTE = 1 << 20
FILLER = "filler"


@contextmanager
def mounted(folder: Path, *, mebibytes: int = 48) -> Iterator[Path]:
    """An ext4 file system of this size, or a tmpfs where there are no loop devices; skips where neither can be had."""
    place = folder / "disk"
    place.mkdir()
    image, size_bytes = folder / "image", mebibytes * MEBIBYTE
    image.touch()
    os.truncate(image, size_bytes)
    if not (
        (_succeeds("mkfs.ext4", "-q", "-F", "-m", "0", image) and _succeeds("mount", "-o", "loop", image, place))
        or _succeeds("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", place)
    ):
        pytest.skip("a small file system cannot be mounted here: that takes root and the right to mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def _succeeds(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def fill(place: Path) -> None:
    """Have somebody else take all that is left, to the last byte."""
    with (place / FILLER).open("ab", buffering=0) as file:
        for size in (MEBIBYTE, 4096, 1):
            while True:
                try:
                    if file.write(bytes(size)) < size:
                        break
                except OSError:
                    break
        os.fsync(file.fileno())
