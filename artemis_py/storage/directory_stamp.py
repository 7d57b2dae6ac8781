"""Has somebody else added or removed files? So that a directory which only we write to need not be listed again.

A file system stamps a directory with the time of its last change. A change by others in the moment of one of our own is
not seen, so what is remembered of the directory may name a file that is gone.
"""

from __future__ import annotations

from pathlib import Path


class DirectoryStamp:
    """The last change that is known of. Both methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changed_ns = -1

    def is_foreign(self) -> bool:
        """Has the directory changed since ``note``? At first it has."""
        return self._directory.stat().st_mtime_ns != self._changed_ns

    def note(self) -> None:
        """What changed so far was us, or has been listed."""
        self._changed_ns = self._directory.stat().st_mtime_ns
