"""The file of an export that is under way, and how far it has got. It gets its name when it is whole."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, final

from artemis_py.management.messages.reading import ExportError


@dataclass(slots=True)
class Noted:
    """How far an export of a running broker has got. What stands in its file behind ``size_bytes`` is void."""

    url: str
    wanted: list[str]
    """The queues that were asked for; empty: all."""
    size_bytes: int = 0
    messages: int = 0
    body_bytes: int = 0
    queue: int = 0
    """How many queues are done. The others follow in the order of their lines."""
    begun_bytes: int = 0
    """Where the messages of the next one begin in the file."""
    step: int = 0
    """Which of the looks at that queue is under way."""
    after: str = ""
    """The cursor of that look; empty: it has not begun."""
    returned: str = ""
    """What the broker said then of messages that come back to that queue; empty: the looks have not begun."""
    tries: int = 0
    """How often they began anew, as messages came back meanwhile."""
    denied: list[str] = field(default_factory=list)
    """Queues whose messages this user may not see."""
    gone: list[str] = field(default_factory=list)
    """Queues that were deleted meanwhile."""
    unsure: list[str] = field(default_factory=list)
    """Queues to which messages came back each time."""


@final
class Part:
    """The file with ``.part`` behind its name, and one with ``.progress``, whose first line says how far it has got.

    Only one export writes it at a time. Raises ExportError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._part = path.with_name(f"{path.name}.part")
        self._notes = path.with_name(f"{path.name}.progress")
        self._notes_file: int | None = None
        if path.exists():
            raise ExportError(f"{path} is there already; name another file, or remove it")
        if self._part.exists() and not self._notes.exists():
            raise ExportError(f"{self._part} is there, and nothing says how far it has got; remove it")
        try:
            self._file: IO[bytes] = os.fdopen(os.open(self._part, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ExportError(f"{self._part} is being written by another export") from None
        except OSError as error:
            raise ExportError(f"{self._part}: {error.strerror or error}") from None

    def read(self, url: str, wanted: list[str]) -> Noted:
        """How far it has got. What is not noted is cut off. Raises ExportError if it is another export."""
        try:
            noted = Noted(**json.loads(self._notes.read_text("utf-8").partition("\n")[0]))
        except FileNotFoundError:
            return Noted(url, wanted)
        except (OSError, ValueError, TypeError) as error:
            raise ExportError(f"{self._notes} cannot be read ({error}); {self._remove}") from None
        if noted.url != url:
            raise ExportError(f"{self._notes} is about the export from {noted.url}; {self._remove}")
        if noted.wanted != wanted:
            queues = ", ".join(noted.wanted) or "all queues"
            raise ExportError(f"{self._notes} is about the export of {queues}; {self._remove}")
        if os.fstat(self._file.fileno()).st_size < noted.size_bytes:
            raise ExportError(f"{self._part} is shorter than {self._notes} says; {self._remove}")
        self._file.truncate(noted.size_bytes)
        self._file.seek(noted.size_bytes)
        return noted

    @property
    def _remove(self) -> str:
        return "remove both to export from the beginning"

    def lines(self, start: int) -> Iterator[bytes]:
        """The lines from this offset on. Afterwards it is written at the end again."""
        self._file.seek(start)
        try:
            while line := self._file.readline():
                yield line
        finally:
            self._file.seek(0, os.SEEK_END)

    @property
    def size_bytes(self) -> int:
        """How much was written."""
        return self._file.tell()

    def write(self, data: bytes) -> None:
        """Write at the end. Raises ExportError."""
        try:
            self._file.write(data)
        except OSError as error:
            raise ExportError(f"{self._part}: {error.strerror or error}") from None

    def note(self, noted: Noted) -> None:
        """Record that it has got as far as this, with everything that was written. Raises ExportError."""
        try:
            self._file.flush()
            noted.size_bytes = self._file.tell()
            if self._notes_file is None:
                self._notes_file = os.open(self._notes, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._notes_file, json.dumps(asdict(noted)).encode() + b"\n", 0)  # to replace it takes far longer
        except OSError as error:
            raise ExportError(f"{self._part}: {error.strerror or error}") from None

    def finish(self) -> None:
        """It is whole. Raises ExportError."""
        try:
            self._file.flush()
            self._part.rename(self.path)
            self._notes.unlink(missing_ok=True)
        except OSError as error:
            raise ExportError(f"{self._part}: {error.strerror or error}") from None

    @property
    def is_noted(self) -> bool:
        """Does something say how far it has got?"""
        return self._notes.exists()

    def close(self) -> None:
        """Write no more. What was noted stays."""
        if not (self.is_noted or self.path.exists()):
            self._part.unlink(missing_ok=True)
        if self._notes_file is not None:
            os.close(self._notes_file)
        self._file.close()
