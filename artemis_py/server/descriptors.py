"""File descriptors: how many this process may have, and how they are divided.

A descriptor gets the lowest free number. So the number of a socket just accepted shows how many are in use, and nothing
has to be counted.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from artemis_py.storage.disk.disk import OPEN_FILES_MAX

_LIMIT_MAX: Final = 1 << 20
"""No broker needs more than this; some systems allow a thousand times as many."""
_DISKS: Final = 3
"""Journal, pages, large bodies."""
_OTHERS: Final = 16
"""Locks, directories being synced and files being read at one time, besides files that stay open."""
_HTTP_MAX: Final = 32
_FILES_SHARE: Final = 16
_LOWEST: Final = 8
"""The limits for connections are never lower: otherwise no client could connect at all."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """A limit and what follows from it. Descriptors from ``stomp_max`` on are for HTTP, those from ``http_max`` on for
    the files that HTTP reads, those from ``files_max`` on for requests that are always answered (health, metrics), and
    those from ``spare_max`` on for storage alone.
    """

    limit: int

    @property
    def open_files_max(self) -> int:
        """How many files each directory may keep open."""
        return max(4, min(OPEN_FILES_MAX, self.limit // _FILES_SHARE))

    @property
    def storage(self) -> int:
        """How many descriptors storage may need in total."""
        return _DISKS * self.open_files_max + _OTHERS

    @property
    def http(self) -> int:
        """Descriptors reserved for HTTP connections, and for as many files that they read."""
        return max(4, min(_HTTP_MAX, self.limit // _FILES_SHARE))

    @property
    def spare(self) -> int:
        """Descriptors reserved for requests that are always answered."""
        return max(2, self.http // 4)

    @property
    def spare_max(self) -> int:
        """All connections have lower numbers than this."""
        return max(self.limit - self.storage, _LOWEST)

    @property
    def files_max(self) -> int:
        """Files that HTTP reads have lower numbers than this."""
        return max(self.spare_max - self.spare, _LOWEST)

    @property
    def http_max(self) -> int:
        """HTTP connections have lower numbers than this, unless they ask for what is always answered."""
        return max(self.files_max - self.http, _LOWEST)

    @property
    def stomp_max(self) -> int:
        """STOMP connections have lower numbers than this."""
        return max(self.http_max - self.http, _LOWEST)


def raise_limit() -> Descriptors:
    """Raise the limit as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, _LIMIT_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems have a lower limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return Descriptors(_LIMIT_MAX if soft == resource.RLIM_INFINITY else min(soft, _LIMIT_MAX))


def lowest_free() -> int:
    """The number of the next descriptor. Raises OSError if there is none."""
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(descriptor)
    return descriptor


def is_free_below(most: int, stored: Callable[[], int]) -> bool:
    """Is a descriptor free whose number is below ``most``, not counting the ``stored`` files of storage?"""
    try:
        return lowest_free() - stored() < most
    except OSError:
        return False
