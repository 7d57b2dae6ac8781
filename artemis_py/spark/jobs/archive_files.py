"""The file-system operations of an archive: a crash can happen between any two of them."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Final

from artemis_py.atomic_files import sync_path

_RENAME_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100


class Files:
    """Renames and small files, durable when the call returns. Raises OSError."""

    def lock(self, path: Path) -> IO[bytes] | None:
        """Locks a file until it is closed. Raises BlockingIOError if another process holds it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
        return file

    def write(self, path: Path, value: object) -> None:
        """Replaces a file by JSON atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w", encoding="utf-8") as stream:
            json.dump(value, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
        sync_path(path.parent)

    def read(self, path: Path) -> Any:
        """The JSON of a file; None when there is none."""
        try:
            return json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None

    def move(self, old: Path, new: Path) -> None:
        """Renames a directory to an unused name."""
        _make_directory(new.parent)
        old.rename(new)
        sync_path(new.parent)

    def swap(self, made: Path, place: Path) -> None:
        """Replaces a directory by another; the old one goes to the place of the new one, or next to it. This is one
        step if the system supports it (Linux), else two, of which the first may already be done.
        """
        if not place.is_dir() or not _exchanged(made, place):
            if place.is_dir():
                place.rename(made.with_name(f"{made.name}.old"))
            made.rename(place)
        sync_path(place.parent)

    def remove(self, path: Path) -> None:
        """Removes a file or a directory with its content, if it exists. Files still being written into a directory may
        stay.
        """
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _make_directory(path: Path) -> None:
    """Makes a directory and those above it, each durable."""
    if not path.is_dir():
        _make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_path(path.parent)


def sync_files(root: Path, names: Iterable[str]) -> None:
    """Makes files below a directory durable, with the names that lead to them."""
    folders = {root}
    for name in names:
        sync_path(root / name)
        folders.update(one for one in (root / name).parents if one.is_relative_to(root))
    for folder in folders:
        sync_path(folder)


def sync_tree(root: Path) -> None:
    """Makes everything below a directory durable: what it calls written stays written when the power fails."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            sync_path(Path(folder) / name)
        sync_path(Path(folder))


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchanges two names in one step; False where kernel or file system cannot."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))
