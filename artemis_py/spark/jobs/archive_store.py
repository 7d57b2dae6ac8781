"""An archive directory, changed so that a kill at any point neither loses nor duplicates anything::

    messages/date=2026-01-31/address=orders/batch=<broker>-<from>-<to>/part-….parquet     what readers see
    events/…
    _archive/state.json      up to which lsn the log of each broker is archived, and by what that log is known
    _archive/staging-…/…     what is being written, by one process; of no value without move.json
    _archive/move.json       what of it moves where: from here on a step is carried out, however often it is interrupted
    _archive/lock            held by the process that writes

A step: write into staging → sync → ``move.json`` → rename each directory to its place → ``state.json`` → remove
``move.json``. Names that begin with an underscore are passed over by readers of Parquet.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

from artemis_py.spark.jobs.source import JobError
from artemis_py.spark.log.identity import Known
from artemis_py.spark.log.log import ID, Mark

FORMAT_VERSION: Final = 1
SMALL_BYTES: Final = 64 * 1024**2
"""A directory whose files are smaller than this on average is worth compacting."""


class Store:
    """One archive directory, opened for writing. ``open`` finishes or discards the work of a killed process."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        self._root = root
        self._files = files or Files()
        self._own = root / "_archive"
        # Of this process alone: when another one was killed, its Java may go on writing for a moment.
        self._staging = self._own / f"staging-{uuid.uuid4().hex}"
        self._move = self._own / "move.json"
        self._lock: IO[bytes] | None = None
        self._state: dict[str, int] = {}
        self._marks: dict[str, Mark] = {}

    def open(self) -> None:
        """Takes the lock and cleans up the directory. Raises JobError if another process archives into it, or if a
        later version created it.
        """
        self._own.mkdir(parents=True, exist_ok=True)
        self._lock = (self._own / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise JobError(f"{self._root} is being written by another archive job; wait for it to end") from None
        state = self._files.read(self._own / "state.json") or {"format": FORMAT_VERSION, "brokers": {}}
        if state["format"] != FORMAT_VERSION:
            raise JobError(f"{self._root} has format {state['format']}, but this program writes {FORMAT_VERSION}")
        self._state = dict(state["brokers"])
        self._marks = dict(state.get("marks", {}))
        move = self._files.read(self._move)
        if move is not None:
            self._carry_out(move)
        for staging in self._own.glob("staging-*"):
            self._files.remove(staging)

    def close(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Store:
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

    def add(self, broker: str, lsn: int, write: Callable[[Path], None], mark: Mark | None = None) -> None:
        """Archives the log after ``archived_lsn(broker)`` up to ``lsn``, where ``mark`` identifies it. ``write`` writes
        it into the given directory, as ``<table>/date=…/address=…/*.parquet``.
        """
        first = self.archived_lsn(broker) + 1
        self._files.remove(self._staging)
        self._staging.mkdir(parents=True)
        write(self._staging)
        _tidy(self._staging)
        sync_tree(self._staging)
        name = f"batch={_safe(broker)}-{first:016}-{lsn:016}"
        moves = [[str(leaf), str(leaf / name)] for leaf in _leaves(self._staging)]
        marks = self._marks if mark is None else self._marks | {broker: mark}
        self._decide({"moves": moves, "swaps": [], "state": self._state | {broker: lsn}, "marks": marks})

    def small_partitions(self, table: str, before: str | None = None) -> dict[str, list[Path]]:
        """Partitions worth compacting, by date (``2026-01-31``; only before ``before``): directories of one address
        with several small batches.
        """
        found: dict[str, list[Path]] = {}
        for day in sorted((self._root / table).glob("date=*")):
            date = day.name.removeprefix("date=")
            if before is not None and date >= before:
                continue
            for partition in sorted(day.glob("address=*")):
                files = list(partition.glob("batch=*/*.parquet"))
                batches = {file.parent for file in files}
                size_bytes = sum(file.stat().st_size for file in files)
                if len(batches) > 1 and size_bytes < len(files) * SMALL_BYTES:
                    found.setdefault(date, []).append(partition)
        return found

    def compact(self, partitions: Sequence[Path], write: Callable[[Path, Sequence[Path]], None]) -> None:
        """Replaces the batches of each partition by one batch. ``write`` gets a new directory and the partitions
        (``<table>/date=…/address=…``), and writes ``address=…/*.parquet`` of the same names into it.
        """
        self._files.remove(self._staging)
        write(self._staging, partitions)
        _tidy(self._staging)
        swaps: list[list[str]] = []
        for partition in partitions:
            batches = sorted(path.name for path in partition.glob("batch=*"))
            name = "batch=compacted-" + hashlib.sha256("\n".join(batches).encode()).hexdigest()[:16]
            made = self._staging / partition.name
            inside = made.with_name(f"made-{len(swaps)}")
            inside.mkdir()
            made.rename(inside / name)
            inside.rename(made)
            swaps.append([partition.name, str(partition.relative_to(self._root)), name])
        sync_tree(self._staging)
        self._decide({"moves": [], "swaps": swaps, "state": self._state, "marks": self._marks})

    def _decide(self, move: dict[str, Any]) -> None:
        move["staging"] = self._staging.name
        self._files.write(self._move, move)
        self._carry_out(move)

    def _carry_out(self, move: dict[str, Any]) -> None:
        """Each part is passed over when it was done before."""
        staging = self._own / move["staging"]
        for old, new in move["moves"]:
            staged, place = staging / old, self._root / new
            if staged.is_dir():
                self._files.move(staged, place)
        for made, target, name in move["swaps"]:
            staged, place = staging / made, self._root / target
            if not (place / name).is_dir():
                self._files.swap(staged, place)
        marks = move.get("marks", self._marks)
        state = {"format": FORMAT_VERSION, "brokers": move["state"], "marks": marks}
        self._files.write(self._own / "state.json", state)
        self._state, self._marks = dict(move["state"]), dict(marks)
        self._files.remove(self._move)
        self._files.remove(staging)


def _tidy(staging: Path) -> None:
    """What Spark noted beside its files goes."""
    for folder, _, names in os.walk(staging):
        for name in names:
            if not name.endswith(".parquet") or name.startswith((".", "_")):
                (Path(folder) / name).unlink()


def _leaves(staging: Path) -> list[Path]:
    """``<table>/date=…/address=…`` with files in it, relative to the directory."""
    return sorted({path.parent.relative_to(staging) for path in staging.glob("*/date=*/address=*/*.parquet")})


def _safe(text: str) -> str:
    """A broker's name as part of a directory's name."""
    return "".join(letter if letter.isalnum() or letter in "_." else f"%{ord(letter):02X}" for letter in text)


# ---- files -----------------------------------------------------------------------------------------------------------
#
# The file-system operations of an archive: a crash can happen between any two of them.


_RENAME_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100


class Files:
    """Renames and small files, durable when the call returns. Raises OSError."""

    def write(self, path: Path, value: object) -> None:
        """Replaces a file by JSON atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w", encoding="utf-8") as stream:
            json.dump(value, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
        sync_directory(path.parent)

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
        sync_directory(new.parent)

    def swap(self, made: Path, place: Path) -> None:
        """Replaces a directory by another; the old one goes to the place of the new one, or next to it. This is one
        step if the system supports it (Linux), else two, of which the first may already be done.
        """
        if not place.is_dir() or not _exchanged(made, place):
            if place.is_dir():
                place.rename(made.with_name(f"{made.name}.old"))
            made.rename(place)
        sync_directory(place.parent)

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
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_tree(root: Path) -> None:
    """Makes everything below a directory durable: what it calls written stays written when the power fails."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            with (Path(folder) / name).open("rb") as stream:
                os.fsync(stream.fileno())
        sync_directory(Path(folder))


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
