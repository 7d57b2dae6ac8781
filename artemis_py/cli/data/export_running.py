"""Exports the messages of a running broker over HTTP, page by page. It may break off anywhere, and go on there.

Each queue is looked at in steps, so that a message which stays on it is found wherever it goes meanwhile: those that
wait for their time before those that are ready, and finally, once more, those that consumers have. If messages came
back to the queue in between, all of that is done again. What was found before is dropped by its number.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, Final, Protocol, final
from urllib.parse import quote, urlencode

from artemis_py.cli.broker_http import BrokerHttp, RefusedError
from artemis_py.core.operations.scan import Numbers
from artemis_py.errors import ArtemisError
from artemis_py.management.export_format import FORMAT, ExportError, line_of, of_queues
from artemis_py.version import VERSION

LOOKS: Final = ("scheduled", "delivering,ready,behind,paged", "delivering,scheduled")
TRIES_MAX: Final = 5
_MESSAGE: Final = b'{"message":'
_PIECE: Final = b'{"piece":'
_BLOCK_BYTES: Final = 1 << 20


class Kept(Protocol):
    """What lines are written to, and what keeps how far that has got."""

    def lines(self, start: int) -> Iterable[bytes]:
        """The lines from this offset on."""

    @property
    def size_bytes(self) -> int:
        """How much was written."""

    def write(self, data: bytes) -> None:
        """Write at the end."""

    def note(self, noted: Noted) -> None:
        """Record that it has got as far as this."""


@final
class LiveExport:
    """One export, which goes on where it is noted to be. ``progress`` is called with the messages that are written, and
    how many there are.
    """

    def __init__(self, broker: BrokerHttp, kept: Kept, done: Noted, progress: Callable[[int, int], None]) -> None:
        self._broker = broker
        self._kept = kept
        self._done = done
        self._wanted = done.wanted
        self._progress = progress
        self._counts: dict[str, int] = {}
        self._total = 0

    def run(self) -> None:
        """Export everything. Raises ArtemisError; another one goes on then where this was."""
        done = self._done
        self._count()
        queues = self._begin(done) if not done.size_bytes else self._begun()
        self._total = sum(self._counts.get(name, 0) for name in queues)
        while done.queue < len(queues):
            self._export(queues[done.queue], done)
            done.queue += 1
            done.step, done.after, done.returned, done.tries = 0, "", "", 0
            done.begun_bytes = self._kept.size_bytes
            self._kept.note(done)
        self._kept.write(line_of("end", {"messages": done.messages, "body_bytes": done.body_bytes}))

    # ---- addresses and queues ----------------------------------------------------------------------

    def _count(self) -> None:
        query = urlencode({"fields": "name,messageCount", "page": -1, "size": -1})
        rows = json.loads(self._broker.ask(f"/api/queues?{query}"))["data"]
        self._counts = {row["name"]: row["messageCount"] for row in rows}

    def _begin(self, done: Noted) -> list[str]:
        """Write what comes before messages. Returns the queues that are to be exported."""
        made = datetime.now(UTC).isoformat(timespec="seconds")
        name = json.loads(self._broker.ask("/api/broker"))["name"]
        destinations = self._broker.ask("/api/destinations/lines").splitlines(keepends=True)
        queues = self._chosen(destinations)
        told = [json.loads(line) for line in destinations]
        chosen = of_queues(
            [one["address"] for one in told if "address" in one],
            [one["queue"] for one in told if "queue" in one],
            self._wanted,
        )
        first = {"format": FORMAT, "id": uuid.uuid4().hex, "broker": name, "made": made, "version": VERSION}
        self._kept.write(b"".join([line_of("export", first), *chosen]))
        done.begun_bytes = self._kept.size_bytes
        self._kept.note(done)
        return queues

    def _begun(self) -> list[str]:
        """The queues of an export that began before."""
        destinations: list[bytes] = []
        for line in self._kept.lines(0):
            if line.startswith((_MESSAGE, _PIECE)):
                break
            destinations.append(line)
        return self._chosen(destinations)

    def _chosen(self, destinations: Iterable[bytes]) -> list[str]:
        values = [json.loads(line) for line in destinations]
        queues = [str(value["queue"]["name"]) for value in values if "queue" in value]
        unknown = set(self._wanted) - set(queues)
        if unknown:
            raise ArtemisError(f"there is no durable queue {', '.join(sorted(unknown))} on {self._broker.broker}")
        return [name for name in queues if not self._wanted or name in self._wanted]

    # ---- messages ----------------------------------------------------------------------------------

    def _export(self, queue: str, done: Noted) -> None:
        """The messages of one queue."""
        if not self._counts.get(queue) and not done.returned:
            return
        known = Numbers()
        for line in self._kept.lines(done.begun_bytes):
            if line.startswith(_MESSAGE):
                known.add(int(json.loads(line)["message"]["id"]))
        while done.step < len(LOOKS):
            try:
                page = _Page(self._kept, known, done)
                query = urlencode({"which": LOOKS[done.step], "after": done.after})
                self._broker.fetch(f"/api/queues/{quote(queue, safe='')}/lines?{query}", page.take)
            except RefusedError as error:
                if error.status == HTTPStatus.BAD_REQUEST and done.after:
                    done.step, done.after, done.returned = 0, "", ""  # the broker was started anew
                    continue
                if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
                    raise
                (done.denied if error.status == HTTPStatus.FORBIDDEN else done.gone).append(queue)
                return
            self._go_on(queue, done, page.ends())
            self._kept.note(done)
            self._progress(done.messages, max(self._total, done.messages))

    def _go_on(self, queue: str, done: Noted, told: Any) -> None:
        """A page is there: what comes next."""
        before, after = told["returned"]
        done.returned = done.returned or before
        done.after = told["after"] or ""
        if done.after:
            return
        done.step += 1
        if done.step == len(LOOKS) and after != done.returned:
            done.tries += 1
            if done.tries == TRIES_MAX:
                done.unsure.append(queue)
            else:
                done.step, done.returned = 0, ""


@final
class ToStdout:
    """Standard output keeps nothing."""

    @property
    def size_bytes(self) -> int:
        """It is not known."""
        return 0

    def lines(self, _start: int) -> Iterable[bytes]:
        """There are none that could be read."""
        return ()

    def write(self, data: bytes) -> None:
        """Write it."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def note(self, noted: Noted) -> None:
        """Nobody asks for it."""


@final
class _Page:
    """A page as it comes: lines that are new are written."""

    def __init__(self, kept: Kept, known: Numbers, done: Noted) -> None:
        self._kept = kept
        self._known = known
        self._done = done
        self._rest: list[bytes] = []
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._is_new = False
        self._next: Any = None

    def take(self, data: bytes) -> None:
        """Some bytes of it."""
        whole, end, rest = data.rpartition(b"\n")
        if end:
            lines = b"".join([*self._rest, whole]).split(b"\n")
            self._rest = [rest]
            for line in lines:
                self._line(line)
        else:
            self._rest.append(data)

    def _line(self, line: bytes) -> None:
        if line.startswith(_PIECE):
            if self._is_new:
                self._write(line)
            return
        ((kind, value),) = json.loads(line).items()
        if kind == "next":
            self._next = value
            return
        self._is_new = self._known.add(int(value["id"]))
        if self._is_new:
            self._done.messages += 1
            self._done.body_bytes += _body_bytes(value)
            self._write(line)

    def _write(self, line: bytes) -> None:
        self._block += (line, b"\n")
        self._block_bytes += len(line)
        if self._block_bytes >= _BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._kept.write(b"".join(self._block))
        self._block, self._block_bytes = [], 0

    def ends(self) -> Any:
        """All of it is there. Returns what comes next. Raises ExportError if it was cut off."""
        self._flush()
        if self._next is None:
            raise ExportError("the broker broke off its answer")
        return self._next


def _body_bytes(message: Any) -> int:
    if "text" in message:
        return len(message["text"].encode())
    if "base64" in message:
        text = str(message["base64"])
        return len(text) // 4 * 3 - text.count("=", -2)
    return int(message["piece_bytes"])


# ---- the file --------------------------------------------------------------------------------------------------------
#
# The file of an export that is under way, and how far it has got. It gets its name when it is whole.


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
