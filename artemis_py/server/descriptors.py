"""File descriptors: how many this process may have, and what of them is kept for whom.

A descriptor gets the lowest number that is free. So the number of a socket just accepted tells how many are in use,
whoever has them, and nobody has to be counted.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from artemis_py.storage.disk import OPEN_FILES_MAX

_LIMIT_MAX: Final = 1 << 20
"""More than this nobody needs; some systems allow a thousand times as many."""
_DISKS: Final = 3
"""Journal, pages, large bodies."""
_OTHERS: Final = 16
"""Locks, directories that are synced, files that are read: at the same time, beside what stays open."""
_HTTP_MAX: Final = 32
_FILES_SHARE: Final = 16
_LOWEST: Final = 8
"""Or nobody could connect at all."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """A limit and what follows from it. Descriptors from ``stomp_max`` on are for HTTP and storage, those from
    ``http_max`` on for storage alone.
    """

    limit: int

    @property
    def open_files_max(self) -> int:
        """How many files each directory may keep open."""
        return max(4, min(OPEN_FILES_MAX, self.limit // _FILES_SHARE))

    @property
    def storage(self) -> int:
        """What storage may need all in all."""
        return _DISKS * self.open_files_max + _OTHERS

    @property
    def http(self) -> int:
        """HTTP connections for which there is always room, and as many files that they read."""
        return max(4, min(_HTTP_MAX, self.limit // _FILES_SHARE))

    @property
    def http_max(self) -> int:
        """An HTTP connection has a lower number."""
        return max(self.limit - self.storage - self.http, _LOWEST)

    @property
    def stomp_max(self) -> int:
        """A STOMP connection has a lower number."""
        return max(self.http_max - self.http, _LOWEST)


def raise_limit() -> Descriptors:
    """Have as many descriptors as this process may give itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, _LIMIT_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems have lower limits of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return Descriptors(_LIMIT_MAX if soft == resource.RLIM_INFINITY else min(soft, _LIMIT_MAX))


def lowest_free() -> int:
    """The number that the next descriptor gets. Raises OSError when there is none."""
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(descriptor)
    return descriptor
