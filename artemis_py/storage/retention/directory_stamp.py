"""Detects whether others added or removed files, so that our own directory need not be listed again.

A listing is slow: a day of traffic can be ten thousand files.

A file system stamps a directory with the time of its last change. A change by others at the moment of one of our own is
not detected, so a remembered listing may name a file that is gone.
"""

from __future__ import annotations

from pathlib import Path


class DirectoryStamp:
    """The last known change. Both methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changed_ns = -1

    def is_foreign(self) -> bool:
        """Has the directory changed since ``note``? True at first."""
        return self._directory.stat().st_mtime_ns != self._changed_ns

    def note(self) -> None:
        """All changes so far were ours, or have been listed."""
        self._changed_ns = self._directory.stat().st_mtime_ns
