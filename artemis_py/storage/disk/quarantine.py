"""Files that were put aside because they are damaged or apparently unneeded. They are for people: no broker reads or
removes them, and none overwrites another.
"""

from __future__ import annotations

from typing import Final

from artemis_py.storage.disk.disk import Disk

_PREFIX: Final = "quarantined-"
_UNFINISHED: Final = ".part"


def put_aside(disk: Disk, name: str) -> None:
    """Rename a file to a meaningless name. Raises DiskError."""
    disk.rename(name, _names_for(disk, name)[-1])


def keep_copy(disk: Disk, name: str) -> None:
    """Keep a copy of a file as it is now, unless there already is one. The copy gets its name when it is complete.
    Raises DiskError.
    """
    data = disk.read(name)
    *taken, free = _names_for(disk, name)
    if any(disk.read(one) == data for one in taken):
        return
    unfinished = f"{_PREFIX}{name}{_UNFINISHED}"
    disk.begin(unfinished)
    disk.write(unfinished, 0, data)
    disk.sync(unfinished)
    disk.finish(unfinished)
    disk.rename(unfinished, free)


def _names_for(disk: Disk, name: str) -> list[str]:
    """Names under which a file of this name was already put aside, followed by a free one."""
    there = set(disk.names())
    found = [f"{_PREFIX}{name}"]
    while found[-1] in there:
        found.append(f"{_PREFIX}{len(found) + 1}-{name}")
    return found
