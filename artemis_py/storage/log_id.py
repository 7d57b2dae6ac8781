"""Which log this is: a name that stays with the files, so that a reader notices when lsns begin anew.

It is in a file of the journal directory, and in one of the retention directory: either may be emptied while the numbers
go on from the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from artemis_py.storage.disk import DiskError

_FILE: Final = "log-id"


def log_id(directories: Sequence[Path]) -> str:
    """The id in these directories, the first that has one; made when none has, and written where it lacks. Raises
    DiskError.
    """
    found = next((text for text in map(_read, directories) if text), None) or uuid4().hex
    for directory in directories:
        if _read(directory) != found:
            _write(directory / _FILE, found)
    return found


def _read(directory: Path) -> str | None:
    try:
        return (directory / _FILE).read_text("ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DiskError(f"{directory / _FILE}: {error}") from None


def _write(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("w", encoding="ascii") as stream:
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror or error}") from None
