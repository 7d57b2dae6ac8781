"""The module ``os`` on a file system with so many bytes, which somebody else can fill to the last one."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.kit.failing_os import FailingOs

NAME_BYTES = 1
"""What a name takes."""


@dataclass(kw_only=True)
class TightSystem(FailingOs):
    """Every file below ``root`` takes its length. At the ``full_at``-th call for which there has to be room somebody
    else takes all that is left, and then what is freed, ``greed`` times.
    """

    names: Collection[str] = ()
    root: Path
    capacity_bytes: int
    full_at: int
    greed: int
    calls: int = 0
    refusals: list[str] = field(default_factory=list)
    """What found no room: the call, and the file."""
    _others_bytes: int = 0

    @property
    def free_bytes(self) -> int:
        """What there is room for."""
        used = sum((path.lstat().st_size if path.is_file() else 0) + NAME_BYTES for path in self.root.rglob("*"))
        return self.capacity_bytes - self._others_bytes - used

    def _needs(self, verb: str, what: object, size_bytes: int) -> int:
        """How much of it there is room for."""
        self.calls += 1
        free_bytes = self.free_bytes
        if self.calls == self.full_at:
            self._others_bytes += free_bytes
            free_bytes = 0
        elif self.full_at >= 0 and self.calls > self.full_at and self.greed and free_bytes:
            self.greed -= 1
            self._others_bytes += free_bytes
            free_bytes = 0
        if size_bytes and free_bytes <= 0:
            self.refusals.append(f"{verb} {what}")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return min(size_bytes, free_bytes)

    def open(self, path: str | Path, flags: int, mode: int = 0o777, **named: Any) -> int:
        if flags & os.O_CREAT and not Path(path).exists():
            self._needs("open", Path(path).name, NAME_BYTES)
        return os.open(path, flags, mode, **named)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        there = max(os.fstat(descriptor).st_size - offset, 0)
        grows = len(data) - there
        if grows > 0:
            name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
            data = data[: there + self._needs("pwrite", name, grows)]
        return os.pwrite(descriptor, data, offset)

    def rename(self, source: Path, target: Path) -> None:
        self._needs("rename", Path(target).name, NAME_BYTES)
        os.rename(source, target)

    def posix_fallocate(self, descriptor: int, start: int, size: int) -> None:
        if self._needs("posix_fallocate", descriptor, size) < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.ftruncate(descriptor, start + size)

    def stat(self, path: str | Path) -> Any:
        """What is allocated here has no blocks there."""
        found = os.stat(path)
        of = {name: getattr(found, name) for name in ("st_dev", "st_ino", "st_mode", "st_size", "st_mtime_ns")}
        return SimpleNamespace(**of, st_blocks=found.st_size // 512 + 1)

    def statvfs(self, path: str) -> Any:
        del path
        return SimpleNamespace(f_blocks=self.capacity_bytes, f_bavail=max(self.free_bytes, 0), f_frsize=1)
