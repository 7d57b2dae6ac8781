"""What every archive has, whatever its format: how far each log is archived, and what decides a step::

    _archive/state.json      up to which lsn the log of each broker is archived, and by what that log is known
    _archive/move.json       a step that is decided: it is carried out, however often that is interrupted
    _archive/lock            held by the process that writes, in a directory

A step: write its files, where no reader looks → sync → ``move.json`` → show them to readers → ``state.json`` → remove
``move.json``.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, Self

from artemis_py.atomic_files import sync_path
from artemis_py.spark.jobs.source import JobError
from artemis_py.spark.log.log import ID, Known, Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWN: Final = "_archive"
STATE: Final = "state.json"
MOVE: Final = "move.json"
_LOCK: Final = "lock"


class Archive(ABC):
    """One archive, opened for writing. ``open`` finishes or discards the work of a killed process."""

    FORMAT: ClassVar[int | str]
    """What ``state.json`` calls its layout."""

    def __init__(self, place: str, own: Path, files: Files) -> None:
        self._place = place
        self._own = own
        """The archive's own directory, as ``files`` knows it."""
        self._files = files
        self._lock: IO[bytes] | None = None
        self._state: dict[str, int] = {}
        self._marks: dict[str, Mark] = {}

    def open(self) -> None:
        """Takes the lock and cleans up. Raises JobError if another process archives into it, or if a later version
        created it, or one in another format.
        """
        try:
            self._lock = self._files.lock(self._own / _LOCK)
        except BlockingIOError:
            raise JobError(f"{self._place} is being written by another archive job; wait for it to end") from None
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        state = self._files.read(self._own / STATE)
        if state is None:
            state = {"format": self.FORMAT, "brokers": {}}
            self._files.write(self._own / STATE, state)
        if state["format"] != self.FORMAT:
            raise JobError(f"{self._place} has format {state['format']}, but this program writes {self.FORMAT}")
        self._state = dict(state["brokers"])
        self._marks = dict(state.get("marks", {}))
        move = self._files.read(self._own / MOVE)
        if move is not None:
            self._finish(move)

    def close(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def archived_lsn(self, broker: str) -> int:
        """The last archived lsn of this broker's log; 0 at first."""
        return self._state.get(broker, 0)

    def known(self) -> Known:
        """The keys of the archived logs, and their ids."""
        return {broker: self._marks.get(broker, {}).get(ID) for broker in self._state}

    def mark(self, broker: str) -> Mark | None:
        """The mark of this broker's log; None at first, and in archives of older versions."""
        return self._marks.get(broker)

    @abstractmethod
    def add(
        self,
        broker: str,
        lsn: int,
        tables: Sequence[str],
        rows: Callable[[str, int], DataFrame],
        mark: Mark,
        check: Callable[[], None],
    ) -> dict[str, int]:
        """Archives the log up to ``lsn``, where ``mark`` identifies it. ``rows`` are those of a table after an lsn.
        ``check`` raises JobError if what was read is not to be trusted. Returns the number of rows by table.
        """

    @abstractmethod
    def compact(
        self, spark: SparkSession, tables: Sequence[str], before_ms: int, on_step: Callable[[str], None]
    ) -> int:
        """Merges the small files of what is older than this. Returns the number of partitions."""

    @abstractmethod
    def vacuum(self, tables: Sequence[str]) -> int:
        """Removes files that readers no longer need. Returns their number. Raises JobError where there are none."""

    @abstractmethod
    def size_bytes(self, tables: Sequence[str]) -> int:
        """Of all files that readers see."""

    def _decide(
        self, parts: Mapping[str, Any], broker: str | None = None, lsn: int = 0, mark: Mark | None = None
    ) -> None:
        """From here on the step counts; ``parts`` is what ``_carry_out`` needs."""
        state = self._state if broker is None else self._state | {broker: lsn}
        marks = self._marks if broker is None or mark is None else self._marks | {broker: mark}
        move = {**parts, "state": state, "marks": marks}
        self._files.write(self._own / MOVE, move)
        self._finish(move)

    def _finish(self, move: Mapping[str, Any]) -> None:
        self._carry_out(move)
        marks = move.get("marks", self._marks)
        self._files.write(self._own / STATE, {"format": self.FORMAT, "brokers": move["state"], "marks": marks})
        self._state, self._marks = dict(move["state"]), dict(marks)
        self._files.remove(self._own / MOVE)

    @abstractmethod
    def _carry_out(self, move: Mapping[str, Any]) -> None:
        """Shows a step to readers. Each part is passed over when it was done before."""


# ---- files -----------------------------------------------------------------------------------------------------------
#
# File-system operations: a crash can happen between any two of them.


_RENAME_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100


class Files:
    """Renames and small files, durable when the call returns. Raises OSError."""

    def lock(self, path: Path) -> IO[bytes] | None:
        """Locks a file until it is closed. Raises BlockingIOError if another process holds it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
        return file

    def write(self, path: Path, value: object) -> None:
        """Replaces a file by JSON atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w", encoding="utf-8") as stream:
            json.dump(value, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
        sync_path(path.parent)

    def read(self, path: Path) -> Any:
        """The JSON of a file; None when there is none."""
        try:
            return json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None

    def move(self, old: Path, new: Path) -> None:
        """Renames a directory to an unused name."""
        _make_directory(new.parent)
        old.rename(new)
        sync_path(new.parent)

    def swap(self, made: Path, place: Path) -> None:
        """Replaces a directory by another; the old one goes to the place of the new one, or next to it. This is one
        step if the system supports it (Linux), else two, of which the first may already be done.
        """
        if not place.is_dir() or not _exchanged(made, place):
            if place.is_dir():
                place.rename(made.with_name(f"{made.name}.old"))
            made.rename(place)
        sync_path(place.parent)

    def remove(self, path: Path) -> None:
        """Removes a file or a directory with its content, if it exists. Files still being written into a directory may
        stay.
        """
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _make_directory(path: Path) -> None:
    """Makes a directory and those above it, each durable."""
    if not path.is_dir():
        _make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_path(path.parent)


def sync_files(root: Path, names: Iterable[str]) -> None:
    """Makes files below a directory durable, with the names that lead to them."""
    folders = {root}
    for name in names:
        sync_path(root / name)
        folders.update(one for one in (root / name).parents if one.is_relative_to(root))
    for folder in folders:
        sync_path(folder)


def sync_tree(root: Path) -> None:
    """Makes everything below a directory durable: what it calls written stays written when the power fails."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            sync_path(Path(folder) / name)
        sync_path(Path(folder))


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchanges two names in one step; False where kernel or file system cannot."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))
