"""The names of files: of large bodies, journal segments and pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

# ---- body names ------------------------------------------------------------------------------------------------------
#
# The names of large-body files, for the broker and for other readers. A number is never reused: its upper half counts
# the starts of the broker's store, its lower half the bodies since. A file named ``start-…`` stores the count of
# starts while no body does. A retained file's name ends with the time when the broker was done with it.


RETAINED_FOLDER: Final = "large"
"""Where retained bodies are, below the directory of the retained journal files."""
_COUNT_BITS: Final = 32
_READ_BYTES: Final = 1 << 20
_NAME: Final = re.compile(
    r"(?P<number>[0-9a-f]{16})(?:-(?P<retired>\d{8}T\d{6}\.\d{3}Z))?\.(?P<kind>body|transient)", re.ASCII
)
_START: Final = re.compile(r"start-(?P<start>[0-9a-f]{8})", re.ASCII)


@dataclass(frozen=True, slots=True)
class BodyName:
    """The parts of a file's name: the body's number, whether it outlives the broker, and for a retained body when it
    was retired, as text.
    """

    number: int
    durable: bool
    retired: str | None


def body_name(number: int, *, durable: bool) -> str:
    """The file name of a body in use."""
    return f"{number:016x}.{'body' if durable else 'transient'}"


def read_name(name: str) -> BodyName | None:
    """Parse a file name; None if it is not that of a body."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return BodyName(int(match["number"], 16), match["kind"] == "body", match["retired"])


def start_name(start: int) -> str:
    """The name of the file that stores a start."""
    return f"start-{start:08x}"


def start_of(name: str) -> int | None:
    """The start in a file name, of a body or of a start file; None for other files."""
    match = _START.fullmatch(name)
    if match is not None:
        return int(match["start"], 16)
    body = read_name(name)
    return None if body is None else start_in(body.number)


def is_start(name: str) -> bool:
    """Is it a start file?"""
    return _START.fullmatch(name) is not None


def start_in(number: int) -> int:
    """The start in which a body got its number."""
    return number >> _COUNT_BITS


def first_number(start: int) -> int:
    """The first number of a start."""
    return (start << _COUNT_BITS) + 1


def checksum_of(path: Path, size_bytes: int) -> int:
    """The CRC-32 of the first ``size_bytes`` bytes of a file. Raises OSError."""
    checksum = 0
    with path.open("rb") as stream:
        while size_bytes and (data := stream.read(min(size_bytes, _READ_BYTES))):
            checksum = crc32(data, checksum)
            size_bytes -= len(data)
    return checksum


def find_body(number: int, directories: Sequence[Path]) -> Path | None:
    """The file of a body in a log: in use in one of the directories (those of large messages), or retained below one
    (of retention); None if there is none. A running broker may move it: if it cannot be opened, ask again.
    """
    name = body_name(number, durable=True)
    for directory in directories:
        if (directory / name).is_file():
            return directory / name
        for path in (directory / RETAINED_FOLDER).glob(f"{number:016x}-*.body"):
            return path
    return None


# ---- segment names ---------------------------------------------------------------------------------------------------
#
# The names of journal files, for those who write them and for readers that are no broker.


def segment_name(number: int) -> str:
    """The file name of a journal segment."""
    return f"artemis-journal-{number:012}.log"


def segment_number(name: str) -> int | None:
    """The number in a segment's file name; None for other files."""
    stem = name.removeprefix("artemis-journal-").removesuffix(".log")
    return int(stem) if stem.isdecimal() and name == segment_name(int(stem)) else None


# ---- page names ------------------------------------------------------------------------------------------------------
#
# The names of page files: the number of a stream, and that of a page in it.


_PAGE: Final = re.compile(r"(?P<stream>\d{9})-(?P<page>\d{9})\.page", re.ASCII)


def page_name(stream: int, page: int) -> str:
    """The file name of a page."""
    return f"{stream:09}-{page:09}.page"


def page_numbers(name: str) -> tuple[int, int] | None:
    """Stream and page number in a file's name; None for other files."""
    match = _PAGE.fullmatch(name)
    return None if match is None else (int(match["stream"]), int(match["page"]))
