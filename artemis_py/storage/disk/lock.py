"""The lock of a data directory, and the line in it that says who has it."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from mypy_extensions import mypyc_attr

from artemis_py.storage.disk.disk import GONE, DiskError, LockedError, identity_of
from artemis_py.storage.disk.permissions import open_private

# ---- owner -----------------------------------------------------------------------------------------------------------
#
# Who has a data directory: one line in its ``server.lock``, for people and for the other broker of a pair.


LOCK_NAME: Final = "server.lock"
_MARK: Final = b"artemis_py "
_LENGTH_MAX: Final = 1024
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"

ACTIVE: Final = "active"
"""The state of a store whose broker works, or died: a backup takes over."""
STOPPED: Final = "stopped"
"""The state of a store whose broker was stopped and is to be started again: a backup waits."""
UNUSED: Final = "unused"
"""The state of a store that no broker has used yet: a backup waits, too. Beside a journal it means that nobody knows:
the file that said more is lost. Then a free lock says enough, and a backup takes over.
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """``process`` is its id on ``host``, which has started with the id ``boot``; ``since`` is a date in UTC, in ISO
    8601. A line of an older version has only the process. ``state`` is that of the store.
    """

    process: int
    host: str = ""
    boot: str = ""
    since: str = ""
    state: str = UNUSED

    @property
    def text(self) -> bytes:
        """The line."""
        fields = {"process": self.process, "host": self.host, "boot": self.boot, "since": self.since}
        parts = [f"{name}={value}" for name, value in fields.items()]
        return _MARK + " ".join([*parts, f"state={self.state}"]).encode("ascii", "replace") + b"\n"

    @property
    def shown(self) -> str:
        """``process 12 on host a since 2026-11-23T18:54:21Z``."""
        host = f" on host {self.host}" if self.host else ""
        since = f" since {self.since}" if self.since else ""
        return f"process {self.process}{host}{since}"

    def is_same(self, other: Owner | None) -> bool:
        """Is it the same process, whatever the state of its store?"""
        return other is not None and replace(other, state=self.state) == self


def this_process(state: str) -> Owner:
    """The owner that this process is from now on."""
    boot = ""
    with suppress(OSError):
        boot = Path(_BOOT_ID).read_text("ascii").strip()
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    host = "".join(one for one in socket.gethostname() if one.isprintable() and not one.isspace())
    return Owner(process=os.getpid(), host=host, boot=boot, since=since, state=state)


def is_of_artemis(content: bytes) -> bool:
    """Has Artemis made this lock file?"""
    return bool(content) and not content.isdigit() and not content.startswith(_MARK)


def place_of_owner(content: bytes) -> int:
    """Where the owner's line is, or would be: behind what Artemis wrote."""
    if not is_of_artemis(content):
        return 0
    found = content.find(_MARK)
    return len(content) if found < 0 else found


def owner_in(content: bytes) -> Owner | None:
    """The owner in a lock file; None if it names none."""
    if content.isdigit():  # a version that wrote nothing else
        return Owner(process=int(content))
    line = content[place_of_owner(content) :].partition(b"\n")
    if not line[0].startswith(_MARK) or not line[1]:  # half written
        return None
    text = line[0].removeprefix(_MARK).decode("ascii", "replace")
    fields = dict(part.partition("=")[::2] for part in text.split(" "))
    try:
        known = {name: fields[name] for name in ("host", "boot", "since", "state")}
        return Owner(process=int(fields["process"]), **known)
    except (KeyError, ValueError):
        return None


def read_lock_file(descriptor: int) -> bytes:
    """The content of an open lock file, as far as it matters. Raises OSError."""
    return os.pread(descriptor, _LENGTH_MAX, 0)


def owner_of(directory: Path) -> Owner | None:
    """The owner that the lock file of a directory names, whether it still has it or not; None if there is none."""
    try:
        with (directory / LOCK_NAME).open("rb") as file:
            return owner_in(file.read(_LENGTH_MAX))
    except OSError:
        return None


# ---- lock ------------------------------------------------------------------------------------------------------------
#
# Locks of data directories: one broker at a time, and word of a primary that waits.


WAITING_NAME: Final = "primary.lock"
"""A file next to ``server.lock``, locked by a primary while it waits."""
_LOCK_OF_ARTEMIS: Final = 1
"""The place of the byte (``FileLockNodeManager``)."""
_RETRY_S: Final = 0.01
_ASIDE_NAME: Final = f"{LOCK_NAME}.unreadable"
_NOTICED_S: Final = 2.0
"""A broker that works looks at its lock file twice a second, and so has noticed by then that it was removed."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DirectoryLock:
    """Keeps a second broker out of a data directory. The operating system releases the lock when the process ends.

    It locks the file ``server.lock``, which names the owner, and the directory itself, which cannot be replaced
    unnoticed. Raises LockedError if another broker has it, DiskError if the directory is not writable.

    Artemis has a file of the same name in its journal directory, with the id of its node. That stays as it is, with the
    owner behind it, and is also locked in Artemis' way, so the two brokers keep each other out.

    The file also has the state of the store, which decides what a waiting backup does. A lock alone does not change it;
    ``claim`` does.

    A file that is missing, names nobody or cannot be read says nothing about others. The lock of the directory does; on
    a file system without such locks a new file is only good after a wait in which the owner of a former one ends.
    ``notes`` say what was wrong.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / LOCK_NAME
        self.notes: list[str] = []
        self._held: list[int] = []
        self._owner = this_process(UNUSED)
        self._file = -1
        self._place = 0
        self._leaves: str | None = None
        self._is_unnamed = False
        """Does the file name nobody, although it should name this broker?"""
        try:
            self._lock_directory()
            self._lock_file()
        except OSError as error:
            self.release()
            raise DiskError(f"{self._path}: {error.strerror or error}") from None
        except BaseException:
            self.release()
            raise

    @classmethod
    def soon(cls, directory: Path, wait_s: float) -> DirectoryLock:
        """The lock of a directory whose broker is about to end: its locks are not released all at once. Raises
        LockedError if it keeps it for longer than ``wait_s``, and DiskError.
        """
        until = time.monotonic() + wait_s
        while True:
            try:
                return cls(directory)
            except LockedError:
                if time.monotonic() > until:
                    raise
            time.sleep(_RETRY_S)

    def _lock_directory(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._held.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._taken() from None
        except OSError:  # some network file systems cannot lock directories: then the lock of the file must do
            self._held.remove(descriptor)
            os.close(descriptor)

    @property
    def _has_directory(self) -> bool:
        """Is the directory itself locked?"""
        return bool(self._held) and self._held[0] != self._file

    def _open_file(self) -> int:
        try:
            return open_private(self._path, os.O_RDWR | os.O_CREAT)
        except PermissionError as error:
            if not self._path.exists():
                raise
            if not self._has_directory:
                raise DiskError(
                    f"{self._path}: {error.strerror}, and this file system does not lock directories, so nobody can "
                    "tell whether a broker works there; make the file readable (chmod 600), or remove it if none does"
                ) from None
        self._path.rename(self._path.with_name(_ASIDE_NAME))
        self.notes.append(
            f"warning: {self._path} could not be read; no broker had the directory, so the file is kept as "
            f"{_ASIDE_NAME}, and there is a new one"
        )
        return open_private(self._path, os.O_RDWR | os.O_CREAT)

    def _lock_file(self) -> None:
        self._file = self._open_file()
        self._held.append(self._file)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # the latter from network file systems
            raise self._taken() from None
        content = read_lock_file(self._file)
        if is_of_artemis(content):
            self._lock_as_artemis_does()
        self._place = place_of_owner(content)
        before = owner_in(content)
        if before is None and not self._has_directory and len(os.listdir(self.directory)) > 1:
            self._write()
            time.sleep(_NOTICED_S)
            self.confirm()
        self._owner = replace(self._owner, state=UNUSED if before is None else before.state)
        self._write()

    def _write(self) -> None:
        text = self._owner.text
        with suppress(OSError):  # a full disk is no reason not to start
            os.pwrite(self._file, text, self._place)
            os.ftruncate(self._file, self._place + len(text))

    def _lock_as_artemis_does(self) -> None:
        """Take the byte that a live broker holds. This lock goes with the first descriptor of the file that the process
        closes, and nothing else opens it.
        """
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCK_OF_ARTEMIS)
        except (BlockingIOError, PermissionError):
            raise LockedError(f"{self.directory} is in use by Artemis; stop it first") from None

    def _taken(self) -> LockedError:
        owner = owner_of(self.directory)
        who = "" if owner is None else f" ({owner.shown})"
        return LockedError(f"{self.directory} is in use by another broker{who}")

    # ---- the state of the store ------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the store."""
        return self._owner.state

    def claim(self) -> None:
        """A broker works on this store: if it dies, a backup takes over. A release leaves the state that it found,
        until ``leaves`` says otherwise.
        """
        self._leaves = self.state
        self._mark(ACTIVE)

    def leaves(self, state: str) -> None:
        """The state that a release leaves behind."""
        self._leaves = state

    def _mark(self, state: str) -> None:
        self._owner = replace(self._owner, state=state)
        self._write()
        with suppress(OSError):  # the next write to the journal will tell
            os.fsync(self._file)  # another machine must see it after this one died

    # ---- while it is held ------------------------------------------------------------------------

    def confirm(self) -> str | None:
        """Check that the lock file is still the locked one, and that nobody else has taken it. Raises DiskError. One
        that names nobody any more is written again; then, and if it cannot be written, a warning says so, once.
        """
        owner = self._named()
        if owner is not None:
            self._is_unnamed = False
            return None
        self._write()
        was_unnamed, self._is_unnamed = self._is_unnamed, self._named() is None
        if not self._is_unnamed:
            return (
                f"warning: {self._path} named no broker any more: somebody has emptied or overwritten it; it names this"
                " one again, which has kept its lock"
            )
        if was_unnamed:
            return None
        return (
            f"warning: {self._path} names no broker any more, and cannot be written; this broker keeps its lock, but "
            "others cannot see whose it is: free space on that file system, or make it writable"
        )

    def _named(self) -> Owner | None:
        """This process, or None if the file names nobody. Raises DiskError."""
        try:
            is_there = identity_of(os.stat(self._path)) == identity_of(os.fstat(self._file))
            content = read_lock_file(self._file)
        except OSError as error:
            raise DiskError(f"{self._path}: {error.strerror}: {GONE}") from None
        if not is_there:
            raise DiskError(f"{self._path}: another file is in its place: {GONE}")
        owner = owner_in(content)
        if owner is not None and not self._owner.is_same(owner):
            raise DiskError(
                f"{self._path}: the lock was lost to {owner.shown}: the file system let two brokers have it; "
                f"see artemis-py ha check {self.directory}"
            )
        return owner

    def release(self) -> None:
        """Release the lock. A file that is another broker's by now stays as it is."""
        if self._leaves is not None:
            with suppress(DiskError):
                self._named()
                self._mark(self._leaves)
            self._leaves = None
        while self._held:
            os.close(self._held.pop())


class WaitingPrimary:
    """Tells the backup that works that a primary waits for its directory, by a lock that ends with the process."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / WAITING_NAME
        self._file = -1

    def show(self) -> None:
        """Tell it, if that is not done yet; several may wait. Raises OSError."""
        if self._file >= 0:
            return
        descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody looks right now: next time
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            self._file = descriptor

    def withdraw(self) -> None:
        """It waits no longer."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def primary_waits(directory: Path) -> bool:
    """Does a primary wait for this directory?"""
    try:
        descriptor = os.open(directory / WAITING_NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
