"""A journal directory for commands that change nothing."""

from __future__ import annotations

from artemis_py.storage.disk.disk import FileDisk


class ReadOnlyDisk(FileDisk):
    """Files that are only read: the repairs of a recovery are left to the broker."""

    def create(self, name: str, size: int) -> None:
        return

    def write(self, name: str, offset: int, data: bytes) -> None:
        return

    def sync(self, name: str) -> None:
        return

    def delete(self, name: str) -> None:
        return
