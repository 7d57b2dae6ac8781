"""A log in directories: the journal directory and the retention directory, or copies of them. No broker is needed.

While a broker writes there, its last batch may be incomplete. It counts once the next one follows or the file was
unchanged for a second; the URL of a running broker is exact.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from artemis_py.errors import PipelineError
from artemis_py.spark.decode.columns import encoded, field_numbers, gather, slices
from artemis_py.spark.decode.published import MESSAGE_COLUMNS, address_places, originals
from artemis_py.spark.decode.record_walk import Piece, Walk, walk
from artemis_py.spark.log.indexes import INDEXES, uncollected
from artemis_py.spark.log.log import GoneError, Identity, Listing, Log, LogLocation, Segment, unreadable
from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.address_index import places_name
from artemis_py.storage.format.names import find_body
from artemis_py.storage.format.records import FILE_HEADER_BYTES, CodecError
from artemis_py.storage.format.scan import Damage, LogFile, is_log_name, log_file, log_files_and_twins
from artemis_py.storage.format.segment_index import ADDRESSES_MAX, BLOCK_BYTES, index_name
from artemis_py.storage.log_id import known_id

_REST_S: Final = 1.0
_ATTEMPTS: Final = 3
_FILES_ASKED: Final = 3
_BEGINNING_BYTES: Final = 1 << 20
_KNOWN: Final[dict[tuple[Path, ...], dict[str, LogFile]]] = {}
"""Parsed file names by directories. Spark plans one query after the other in the same process."""
_KNOWN_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Directories(LogLocation):
    """Directories that together contain one broker's log."""

    broker: str
    paths: tuple[Path, ...]
    fails_on_loss: bool = True

    def open(self) -> DirectoryLog:
        return DirectoryLog(self.broker, self.paths, fails_on_loss=self.fails_on_loss)

    def known_as(self, key: str) -> Directories:
        return replace(self, broker=key)

    def __str__(self) -> str:
        return " and ".join(map(str, self.paths))


def find_directories(text: str, broker: str | None, *, fails_on_loss: bool = True) -> list[Directories]:
    """The directories in the option ``journal``. Each may contain journal files or folders with them. Directories
    without a name belong to one broker, but each match of a pattern is a broker of its own. A broker's name is the
    given one, else the one in its log (with retention), else the directory's. Raises PipelineError if there is no
    directory.
    """
    found: dict[str, list[Path]] = {}
    said: dict[str, str | None] = {}
    first: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, pattern = _named(item)
        is_pattern = glob.has_magic(pattern)
        matches = [path for path in sorted(glob.glob(pattern)) if Path(path).is_dir()] if is_pattern else [pattern]
        for match in matches:
            key = name or (match if is_pattern else "")
            said[key] = name or (None if is_pattern else broker)
            first.setdefault(key, Path(match).resolve().name)
            found.setdefault(key, []).extend(_with_folders(Path(match)))
    if not found:
        raise PipelineError(f"option journal is {text!r}, which matches no directory")
    return [
        Directories(said[key] or _told_name(paths) or first[key], tuple(dict.fromkeys(paths)), fails_on_loss)
        for key, paths in found.items()
    ]


def _named(item: str) -> tuple[str, str]:
    """The name before a directory, if there is one: ``name=directory``."""
    name, separator, path = item.partition("=")
    return (name.strip(), path.strip()) if separator and "/" not in name else ("", item)


def _told_name(paths: Sequence[Path]) -> str | None:
    """The broker's name in the log: each segment begins with it if it is retained."""
    for file in _newest(paths):
        try:
            with file.path.open("rb") as stream:
                data = stream.read(_BEGINNING_BYTES)[records.FILE_HEADER_BYTES :]
        except OSError:
            continue
        found = walk(Piece(file.path.name, data, records.FILE_HEADER_BYTES, None, is_last=True), [])
        for record in np.flatnonzero(found.kinds == records.BROKER).tolist():
            name: str = codec.decode_fields(found.payload(record))["name"]
            if name:
                return name
    return None


def _newest(directories: Sequence[Path]) -> list[LogFile]:
    """Some of the newest files, the newest first. Their names have enough digits to sort correctly."""
    found = [
        log_file(directory / name)
        for directory in directories
        for name in nlargest(_FILES_ASKED, filter(is_log_name, os.listdir(directory)))
    ]
    return sorted(filter(None, found), key=attrgetter("number"), reverse=True)[:_FILES_ASKED]


def _with_folders(path: Path) -> list[Path]:
    """A directory, or its folders with journal files if it has none itself."""
    if not path.is_dir():
        raise PipelineError(f"option journal names {path}, which is not a directory on this machine")
    if _has_journal(path):
        return [path]
    below = [folder for folder in sorted(path.iterdir()) if folder.is_dir()]
    return [folder for folder in below if _has_journal(folder)] or [path]


def _has_journal(path: Path) -> bool:
    with os.scandir(path) as entries:
        return any(is_log_name(entry.name) and log_file(Path(entry.name)) is not None for entry in entries)


class DirectoryLog(Log):
    """Caches the indexes of closed segments, and how far the current one was read."""

    def __init__(self, broker: str, directories: Sequence[Path], *, fails_on_loss: bool = True) -> None:
        self.broker = broker
        self._fails_on_loss = fails_on_loss
        self._directories = directories
        self._files: dict[int, LogFile] = {}
        if len(_KNOWN) >= _KNOWN_MAX:
            _KNOWN.clear()
        self._known = _KNOWN.setdefault(tuple(directories), {})
        self._closed: dict[int, Segment] = {}
        self._tail: Tail | None = None
        self._known_id: str | None = None

    @property
    def location(self) -> Directories:
        return Directories(self.broker, tuple(self._directories), self._fails_on_loss)

    def identity(self) -> Identity:
        return Identity(self.broker, self._id())

    def has_files(self) -> bool:
        """Is there any file of a log?"""
        return any(map(_has_journal, self._directories))

    def listing(self, after_lsn: int = 0) -> Listing:
        log_id = self._id()
        segments = self._segments()
        if not segments:
            return Listing(1, 0, [], log_id)
        end_lsn = max(segment.last_lsn for segment in segments)
        wanted = [segment for segment in segments if segment.last_lsn > after_lsn]
        return Listing(segments[0].first_lsn, end_lsn, wanted, log_id)

    def _id(self) -> str | None:
        """Of another log nothing is known yet, although its segments have the same numbers."""
        try:
            found = known_id(self._directories)
        except DiskError as error:
            raise PipelineError(str(error)) from None
        if found != self._known_id:
            self._closed, self._tail, self._known_id = {}, None, found
        return found

    def _segments(self) -> list[Segment]:
        for _ in range(_ATTEMPTS):
            files = self._listed()
            try:
                with uncollected():
                    closed = [self._closed_segment(file) for file in files[:-1]]
                last = [self._last_segment(file) for file in files[-1:]]
                return [segment for segment in [*closed, *last] if segment is not None]
            except FileNotFoundError:  # retired or removed meanwhile
                continue
        raise PipelineError(f"the files in {self._shown()} change faster than they can be listed; try again")

    def _listed(self) -> list[LogFile]:
        try:
            files, twins = log_files_and_twins(self._directories, self._known)
        except OSError as error:
            raise PipelineError(f"{error.filename}: {error.strerror}") from None
        for file, twin in twins:
            _check_same_broker(file.path, twin.path)
        self._files = {file.number: file for file in files}
        self._closed = {number: one for number, one in self._closed.items() if number in self._files}
        return files

    def _closed_segment(self, file: LogFile) -> Segment | None:
        known = self._closed.get(file.number)
        if known is None:
            known = self._indexed(file)
            if known is not None:
                self._closed[file.number] = known
        return known

    def _indexed(self, file: LogFile) -> Segment | None:
        """What the index of a closed segment says; None when it has no header, and so nothing in it."""
        try:
            return INDEXES.beside(file.path)
        except records.VersionError as error:
            raise PipelineError(f"{file.path}: {error}") from None
        except CodecError as error:
            if any(file.path.read_bytes()):
                unreadable(str(file.path), str(error), fails_on_loss=self._fails_on_loss)
            return None
        except FileNotFoundError:
            raise
        except OSError as error:
            raise PipelineError(f"{file.path}: {error.strerror}") from None

    def _last_segment(self, file: LogFile) -> Segment | None:
        if file.closed_ms is not None or file.path.with_name(index_name(file.path.name)).exists():
            return self._closed_segment(file)
        if self._tail is None or self._tail.number != file.number:
            self._tail = Tail(file.number, file.path)
        rested = time.time() - file.path.stat().st_mtime >= _REST_S
        return self._tail.advance(rested=rested)

    def settle(self) -> None:
        """Wait until the last batch is complete: the next one follows, or the file is unchanged. At most a second."""
        until = time.monotonic() + _REST_S
        while time.monotonic() < until:
            files = self._listed()
            if not files or time.time() - files[-1].path.stat().st_mtime >= _REST_S:
                return
            self._segments()
            if self._tail is None or self._tail.is_settled:
                return
            time.sleep(0.02)

    def read(self, segment: int, begin: int, end: int, name: str = "") -> bytes:
        for _ in range(_ATTEMPTS):
            file = self._file(segment, name)
            name = ""
            if file is None:
                break
            try:
                with file.path.open("rb") as stream:
                    stream.seek(begin)
                    return stream.read(end - begin)
            except FileNotFoundError:
                self._files.pop(segment, None)
            except OSError as error:
                raise PipelineError(f"{file.path}: {error.strerror}") from None
        raise GoneError(f"segment {segment} is no longer in {self._shown()}: retention has removed it")

    def _file(self, segment: int, name: str) -> LogFile | None:
        """Where a segment is. A task that knows the name need not list directories with thousands of them."""
        known = self._files.get(segment)
        if known is None and name:
            for directory in self._directories:
                file = log_file(directory / name)
                if file is not None and file.number == segment and file.path.exists():
                    known = self._files[segment] = file
                    return known
        if known is None:
            known = {one.number: one for one in self._listed()}.get(segment)
        return known

    def places(self, segment: int, name: str = "") -> bytes:
        file = self._file(segment, name)
        if file is None:
            return b""
        try:
            return file.path.with_name(places_name(file.path.name)).read_bytes()
        except OSError:
            return b""

    def body(self, number: int, size_bytes: int) -> bytes:
        for _ in range(_ATTEMPTS):
            found = (find_body(number, [directory]) for directory in self._body_directories())
            for path in filter(None, found):
                try:
                    data = path.read_bytes()
                except FileNotFoundError:  # retired meanwhile
                    continue
                # What stands beside the directories may be another broker's, with numbers of its own.
                if len(data) == size_bytes:
                    return data
        raise GoneError(f"the large body {number:016x} of {size_bytes} bytes is not in {self._shown()}")

    def _body_directories(self) -> list[Path]:
        """The directories, and those beside them: large bodies in use have a directory of their own."""
        beside = {folder for one in self._directories for folder in one.resolve().parent.iterdir() if folder.is_dir()}
        return [*self._directories, *sorted(beside)]

    def set_cursor(self, name: str, lsn: int, ttl_s: int) -> None:
        raise PipelineError("only a running broker keeps cursors; use option url, or leave out cursor")

    def close(self) -> None:
        """Does nothing: files are open only while they are read."""

    def wait_briefly(self) -> None:
        """Does nothing: directories do not wait."""

    def wait_patiently(self) -> None:
        """Does nothing: directories do not wait."""

    def _shown(self) -> str:
        return " and ".join(str(one) for one in self._directories)


def _check_same_broker(path: Path, twin: Path) -> None:
    """Directories of two brokers hold different segments of one number."""
    if path.parent != twin.parent and _header(twin) not in (None, _header(path)):
        raise PipelineError(
            f"{twin} and {path} are from different brokers; name each broker's directories, as in "
            f"journal='one={path.parent},two={twin.parent}'"
        )


def _header(path: Path) -> records.FileHeader | None:
    try:
        with path.open("rb") as stream:
            return records.decode_file_header(stream.read(records.FILE_HEADER_BYTES))
    except (OSError, CodecError):
        return None


# ---- the current segment ---------------------------------------------------------------------------------------------
#
# Reads the current segment of a log while a broker writes it: each step adds the new batches.


_CHUNK_BYTES: Final = 1 << 20
_LISTS: Final = {
    records.QUEUE: "queues",
    records.QUEUE_DELETED: "queues",
    records.SESSION: "sessions",
    records.CONSUMER: "consumers",
}


class Tail:
    """A segment that may grow. ``advance`` returns its index up to the last complete batch."""

    def __init__(self, number: int, path: Path) -> None:
        self.number = number
        self.is_settled = False
        """Does the index cover the whole file?"""
        self._path = path
        self._end = 0
        self._fields: dict[str, Any] = {}
        self._addresses: set[str] | None = set()
        self._time_ms: int | None = None

    def advance(self, *, rested: bool) -> Segment | None:
        """Add new batches, including the last one if the file has ``rested``. None while there is no header. Raises
        FileNotFoundError if the file was moved.
        """
        if not self._end and not self._begin():
            return None
        found = self._read()
        whole = self._whole_batches(found, rested=rested)
        self.is_settled = whole == len(found.places)
        if whole:
            end = int(found.ends[:whole].max())
            self._take(found.first(whole))
            self._end += end
        self._fields["bytes"] = self._end
        self._fields["addresses"] = None if self._addresses is None else sorted(self._addresses)
        return Segment.of(self._fields)

    def _begin(self) -> bool:
        with self._path.open("rb") as stream:
            data = stream.read(FILE_HEADER_BYTES)
        try:
            header = records.decode_file_header(data)
        except CodecError:
            return False
        self._end = FILE_HEADER_BYTES
        self._fields = {
            "segment": header.number, "first_lsn": header.first_lsn, "last_lsn": header.first_lsn - 1, "first_ms": None,
            "last_ms": None, "oldest_ms": None, "newest_ms": None, "messages": 0, "queues": [], "sessions": [],
            "consumers": [], "blocks": [], "name": self._path.name,
        }  # fmt: skip
        return True

    def _read(self) -> Walk:
        """What follows. Most of it may be zeros not written yet, so the first look is a short one."""
        with self._path.open("rb") as stream:
            stream.seek(self._end)
            data = stream.read(_CHUNK_BYTES)
            damages: list[Damage] = []
            found = walk(Piece(self._path.name, data, self._end, self._time_ms, is_last=True), damages)
            if damages or (len(data) == _CHUNK_BYTES and any(data[-records.RECORD_HEADER_BYTES :])):
                data += stream.read()
                found = walk(Piece(self._path.name, data, self._end, self._time_ms, is_last=True), [])
        return found

    def _whole_batches(self, found: Walk, *, rested: bool) -> int:
        """How many records belong to batches that are there whole."""
        if rested:
            return len(found.places)
        batches = np.flatnonzero(found.kinds == records.BATCH)
        return int(batches[-1]) if len(batches) else 0

    def _take(self, found: Walk) -> None:
        fields = self._fields
        batches = np.flatnonzero(found.kinds == records.BATCH)
        if len(batches):
            times = found.times_ms[batches]
            low, high = int(times.min()), int(times.max())
            fields["first_ms"] = low if fields["first_ms"] is None else min(fields["first_ms"], low)
            fields["last_ms"] = high if fields["last_ms"] is None else max(fields["last_ms"], high)
            self._time_ms = int(times[-1])
        self._take_blocks(found, batches)
        fields["last_lsn"] = max(fields["last_lsn"], int(found.lsns.max()))
        for kind, name in _LISTS.items():
            for number in np.flatnonzero(found.kinds == kind).tolist():
                told = codec.decode_fields(found.payload(number))
                deleted = {"deleted": True} if kind == records.QUEUE_DELETED else {}
                fields[name].append({"lsn": int(found.lsns[number]), **told, **deleted})
        self._take_addresses(found)

    def _take_blocks(self, found: Walk, batches: Any) -> None:
        blocks = self._fields["blocks"]
        highest = np.maximum.accumulate(found.lsns)
        for number in batches.tolist():
            offset = self._end + int(found.places[number])
            if not blocks or offset - blocks[-1][0] >= BLOCK_BYTES:
                before = int(highest[number - 1]) if number else 0
                blocks.append((offset, max(self._fields["last_lsn"], before) + 1, int(found.times_ms[number])))

    def _take_addresses(self, found: Walk) -> None:
        messages = originals(found)
        self._fields["messages"] += len(messages)
        fields = gather(found.data, found.places[messages] + records.RECORD_HEADER_BYTES, MESSAGE_COLUMNS)
        if len(messages):
            stamps = field_numbers(fields["timestamp_ms"])
            oldest, newest = int(stamps.min()), int(stamps.max())
            told = self._fields
            told["oldest_ms"] = oldest if told["oldest_ms"] is None else min(told["oldest_ms"], oldest)
            told["newest_ms"] = newest if told["newest_ms"] is None else max(told["newest_ms"], newest)
        if self._addresses is not None:
            begins, ends = address_places(found.places[messages], fields)
            self._addresses.update(text.decode() for text in encoded(slices(found.data, begins, ends))[1])
            if len(self._addresses) > ADDRESSES_MAX:
                self._addresses = None
