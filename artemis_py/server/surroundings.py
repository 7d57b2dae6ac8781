"""What a server takes from its machine: the clocks, the disk, and a limit of the process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from artemis_py.server.descriptors import Descriptors, raise_limit
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.disk.room import DiskSpace, space_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A broker for tests puts clocks that can be moved and a disk that can lose power in their place.

    ``wall_ns`` is the date in nanoseconds since 1970, ``steady_ns`` never goes back. ``open_disk`` opens a directory of
    the journal, pages or large bodies, with the arguments of ``FileDisk``. ``space_of`` says how full the file system
    of a directory is. ``descriptors`` says how many files the process may open.
    """

    wall_ns: Callable[[], int] = time.time_ns
    steady_ns: Callable[[], int] = time.monotonic_ns
    open_disk: Callable[..., FileDisk] = FileDisk
    space_of: Callable[[str], DiskSpace] = space_of
    descriptors: Callable[[], Descriptors] = raise_limit


OF_THIS_MACHINE: Final = Surroundings()
