"""Does a file system keep a second process out of a directory? Tried, not looked up: with the lock of the broker.

One process holds the lock of a probe folder, and says so again and again in a file; another one tries to get it. The
two may be on different machines.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, Protocol, final

from artemis_py.storage.disk.disk import DiskError, LockedError
from artemis_py.storage.disk.lock import LOCK_NAME, UNUSED, DirectoryLock, owner_in, owner_of, this_process
from artemis_py.storage.disk.permissions import make_private, open_private

PROBE_NAME: Final = "ha-check"
"""The folder in which locks are tried; a broker never looks into it."""
BETWEEN_MACHINES: Final = "excludes-machines"
"""The name of the finding that a process of another machine has the lock."""
_BEAT_NAME: Final = "holder"
_BEAT_S: Final = 0.1
_SILENT_S: Final = 1.5
"""A holder that has written nothing for so long is gone."""
_RELEASED_S: Final = 5.0
_SYNCS: Final = 5
_MOUNTS: Final = "/proc/self/mountinfo"
_LOCAL: Final = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs", "ramfs", "bcachefs", "jfs", "vfat")
)


class FileSystem(NamedTuple):
    """What is mounted where the directory is; ``is_local``: no other machine sees it."""

    kind: str
    source: str
    is_local: bool


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried. ``passed`` is None for what is only information."""

    name: str
    passed: bool | None
    told: str


def file_system_of(directory: Path, mounts: str | None = None) -> FileSystem:
    """The file system of a directory. ``mounts`` is the content of /proc/self/mountinfo."""
    if mounts is None:
        try:
            mounts = Path(_MOUNTS).read_text("utf-8", "replace")
        except OSError:
            mounts = ""
    place = str(directory.resolve())
    found, longest = FileSystem("unknown", "", is_local=False), 0
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kinds) < 2:
            continue
        mounted = fields[4].replace("\\040", " ").rstrip("/")
        is_around = place == mounted or place.startswith(mounted + "/")
        if is_around and len(mounted) + 1 >= longest:  # of two at the same place the later one counts
            found, longest = FileSystem(kinds[0], kinds[1], is_local=kinds[0] in _LOCAL), len(mounted) + 1
    return found


@contextmanager
def held_lock(directory: Path) -> Iterator[Callable[[], None]]:
    """Hold the lock of the probe folder; call the function every ``_BEAT_S`` to say so. Raises LockedError and
    DiskError.
    """
    probe = _probe_in(directory)
    lock = DirectoryLock(probe)
    beats = 0

    def beat() -> None:
        nonlocal beats
        beats += 1
        _write(probe, this_process(f"{beats}").text)

    try:
        beat()
        yield beat
    finally:
        _remove(probe)
        lock.release()


def hold_lock(directory: Path, tell: Callable[[str], None]) -> None:
    """Hold the lock until the process ends."""
    with held_lock(directory) as beat:
        tell("held")
        while True:
            time.sleep(_BEAT_S)
            beat()


def trials(directory: Path, start_holder: Callable[[], LockHolder]) -> Iterator[Finding]:
    """Try everything, one finding after the other. ``start_holder`` starts a process that holds the lock. Raises
    DiskError where nothing can be tried.
    """
    probe = _probe_in(directory)
    other = _other_holder(probe)
    if other is not None:
        yield other
        return
    yield from _two_processes(probe, start_holder)
    yield from _what_the_broker_watches(probe)
    _remove(probe)


class LockHolder(Protocol):
    """A process that holds the lock."""

    def kill(self) -> None:
        """End it at once."""


def _two_processes(probe: Path, start_holder: Callable[[], LockHolder]) -> Iterator[Finding]:
    holder = start_holder()
    try:
        kept_out = _attempt(probe)
    finally:
        killed_s = time.monotonic()
        holder.kill()
    yield Finding("excludes", kept_out is not None, kept_out or "a second process got the lock, too")
    if kept_out is None:
        return
    try:
        DirectoryLock.soon(probe, _RELEASED_S).release()
    except LockedError:
        yield Finding("releases", False, f"{_RELEASED_S:g} s after the first process was killed it still had the lock")
    else:
        took_ms = (time.monotonic() - killed_s) * 1000
        yield Finding(
            "releases", True, f"the first process was killed, and {took_ms:.0f} ms later the second had the lock"
        )


def _attempt(probe: Path) -> str | None:
    """Who kept this process out; None if it got the lock."""
    try:
        DirectoryLock(probe).release()
    except LockedError as error:
        return f"a second process was kept out: {error}"
    return None


def _other_holder(probe: Path) -> Finding | None:
    """A holder that somebody has started, perhaps on another machine; None if there is none."""
    said = _read(probe)
    try:
        lock = DirectoryLock(probe)
    except LockedError as error:
        owner, own = owner_of(probe), this_process(UNUSED)
        is_here = owner is None or (owner.host, owner.boot) == (own.host, own.boot)
        return Finding("excludes" if is_here else BETWEEN_MACHINES, True, f"this process was kept out: {error}")
    try:
        until = time.monotonic() + _SILENT_S
        while said and time.monotonic() < until:
            time.sleep(_BEAT_S)
            if (now := _read(probe)) not in (b"", said):
                owner = owner_in(now)
                who = "another process" if owner is None else owner.shown.partition(" since ")[0]
                return Finding("excludes", False, f"this process got the lock, and {who} has it, too")
    finally:
        lock.release()
    return None


def _what_the_broker_watches(probe: Path) -> Iterator[Finding]:
    with closing(_LockGuard(DirectoryLock(probe))) as held:
        times: list[float] = []
        for number in range(_SYNCS):
            started_s = time.perf_counter()
            _write(probe, this_process(str(number)).text, syncs=True)
            times.append((time.perf_counter() - started_s) * 1000)
        try:
            held.lock.confirm()
        except DiskError as error:
            yield Finding("stays", False, f"a lock that nobody touched looks replaced: {error}")
            return
        new = probe / "new"
        new.write_bytes(this_process(UNUSED).text)
        new.replace(probe / LOCK_NAME)
        try:
            held.lock.confirm()
        except DiskError:
            yield Finding("notices", True, "a lock file that was replaced was noticed: a broker would stop")
        else:
            yield Finding("notices", False, "a lock file that was replaced was not noticed")
        yield Finding("syncs", None, f"a sync takes {median(times):.1f} ms")


class _LockGuard:
    """A lock that is released at the end of a block."""

    def __init__(self, lock: DirectoryLock) -> None:
        self.lock = lock

    def close(self) -> None:
        self.lock.release()


def _probe_in(directory: Path) -> Path:
    """The probe folder. Raises DiskError if it cannot be made."""
    probe = directory.resolve() / PROBE_NAME
    if not directory.is_dir():
        raise DiskError(f"{directory} is not a directory")
    try:
        make_private(probe)
    except OSError as error:
        raise DiskError(f"{probe}: {error.strerror}") from None
    return probe


def _write(probe: Path, text: bytes, *, syncs: bool = False) -> None:
    """Raises DiskError."""
    try:
        descriptor = open_private(probe / _BEAT_NAME, os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(descriptor, text, 0)
            os.ftruncate(descriptor, len(text))
            if syncs:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)  # a network file system shows it to others now
    except OSError as error:
        raise DiskError(f"{probe / _BEAT_NAME}: {error.strerror}") from None


def _read(probe: Path) -> bytes:
    try:
        return (probe / _BEAT_NAME).read_bytes()
    except OSError:
        return b""


def _remove(probe: Path) -> None:
    shutil.rmtree(probe, ignore_errors=True)
