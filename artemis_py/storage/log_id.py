"""The id of the log: it stays with the files, so that a reader notices when lsns start over.

It is in a file in the journal directory and in one in the retention directory: either may be emptied while the numbers
continue from the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4
from zlib import crc32

from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.disk.permissions import replace_private

_FILE: Final = "log-id"
_CONTENT: Final = re.compile(rb"(?P<id>[0-9a-f]{32})\n(?:(?P<checksum>[0-9a-f]{8})\n)?")


@dataclass(frozen=True, slots=True)
class LogId:
    """``faults`` has a line for each damaged file."""

    text: str
    faults: tuple[str, ...]


def log_id(directories: Sequence[Path]) -> LogId:
    """The first valid id in these directories; created if there is none, and written where it is missing. Raises
    DiskError.
    """
    faults: list[str] = []
    found = [_look(directory, faults) for directory in directories]
    text = next(filter(None, found), None)
    if text is None:
        text = uuid4().hex
        faults = [f"{fault}: the log has a new id, and readers that know the old one start over" for fault in faults]
    for directory, there in zip(directories, found, strict=True):
        if there != text:
            _write(directory / _FILE, text)
    return LogId(text, tuple(faults))


def known_id(directories: Sequence[Path]) -> str | None:
    """The first id in these directories; None if there is none. Raises DiskError, also if all are damaged."""
    faults: list[str] = []
    text = next((text for directory in directories if (text := _look(directory, faults))), None)
    if text is None and faults:
        raise DiskError(faults[0])
    return text


def _look(directory: Path, faults: list[str]) -> str | None:
    """Read the id and its checksum on the next line; older brokers wrote no checksum."""
    path = directory / _FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror or error}") from None
    match = _CONTENT.fullmatch(data)
    if match is None or (match["checksum"] is not None and match["checksum"] != _checksum(match["id"])):
        faults.append(f"{path} is DAMAGED")
        return None
    return match["id"].decode("ascii")


def _checksum(text: bytes) -> bytes:
    return b"%08x" % crc32(text)


def _write(path: Path, text: str) -> None:
    try:
        replace_private(path, b"%b\n%b\n" % (text.encode("ascii"), _checksum(text.encode("ascii"))))
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror or error}") from None
