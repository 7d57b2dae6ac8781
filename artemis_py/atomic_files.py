"""Replaces files whole or not at all: a full disk or a crash leaves what was there."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_MODE: Final = 0o600


def replace_file(path: Path, data: bytes, mode: int | None = _MODE) -> None:
    """As ``replace_files``, for one."""
    replace_files([(path, data)], mode)


def replace_files(contents: Sequence[tuple[Path, bytes]], mode: int | None = _MODE) -> None:
    """Replace files in this order, each at once, synced, with this ``mode`` (None: that of the file there, or of any
    new file); behind a symbolic link, the file that it names. Run by root, a file keeps its owner, and a new one gets
    that of its directory: the broker must be able to read it. Raises OSError; then all files are as they were.
    """
    staged: list[tuple[Path, Path]] = []
    done: list[tuple[Path, bytes | None]] = []
    try:
        for path, data in contents:  # what may not fit is written before anything changes
            target = Path(os.path.realpath(path))
            temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
            staged.append((temporary, target))
            _write(temporary, target, data, mode)
        for temporary, target in staged:
            before = target.read_bytes() if target.exists() else None
            os.replace(temporary, target)
            done.append((target, before))
            sync_path(target.parent)
    except BaseException:
        for temporary, _ in staged:
            with suppress(OSError):
                os.unlink(temporary)
        for target, before in reversed(done):
            with suppress(OSError):
                _put_back(target, before, mode)
        raise


def _put_back(target: Path, before: bytes | None, mode: int | None) -> None:
    if before is None:
        os.unlink(target)
    else:
        replace_file(target, before, mode)


def _write(temporary: Path, target: Path, data: bytes, mode: int | None) -> None:
    is_there = target.exists()
    wanted = stat.S_IMODE(os.stat(target).st_mode) if mode is None and is_there else mode
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666 if wanted is None else wanted)
    with open(descriptor, "wb") as stream:
        if os.geteuid() == 0:
            owner = os.stat(target if is_there else target.parent)
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        if wanted is not None:
            os.fchmod(descriptor, wanted)
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def sync_path(path: Path) -> None:
    """Make the content of a file, or the names in a directory, durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
