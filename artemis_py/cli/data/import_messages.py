"""Brings an export into a running broker over HTTP. It may break off at any line, and go on there. An export of Artemis
is read as the lines that ours would have.
"""

from __future__ import annotations

import base64
import io
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from artemis_py.cli.broker_http import BrokerHttp, RefusedError
from artemis_py.cli.data.artemis_xml import ArtemisExport, is_artemis_export
from artemis_py.cli.data.import_destinations import Kept, Maker, Manager, UnmanageableError
from artemis_py.errors import ArtemisError
from artemis_py.management.export_format import (
    FORMAT,
    PIECE_BYTES,
    ExportedMessage,
    ExportError,
    line_of,
    piece_line,
    read_export,
    read_line,
    read_message,
    read_piece,
)
from artemis_py.terminal_output import shown_time, warn

MESSAGES_PER_REQUEST: Final = 500
BYTES_PER_REQUEST: Final = 4 << 20
_PATH: Final = "/api/import"
_QUEUES_PER_LINE: Final = 500
_WHOLE_BYTES_MAX: Final = 1 << 16
"""A body of more bytes goes in pieces."""
_IN_MEMORY_BYTES_MAX: Final = 16 << 20
_LINE_BYTES_MAX: Final = 256 << 20


@dataclass(slots=True)
class Imported:
    """What is done: lines of the file, messages, and places on queues that they came to."""

    lines: int = 0
    messages: int = 0
    """Those that came on one of their queues at least, now or in an earlier import."""
    places: int = 0
    known: int = 0
    """Places that got them before, in an earlier import of the same file. Nobody asks whether they are there still."""
    tried: dict[str, int] = field(default_factory=dict)
    """Places of the lines that come next which an attempt has filled and counted before it found no room, by queue."""
    unsure: Counter[str] = field(default_factory=Counter)
    """Places of ``known``, by queue, if others may have replaced them there."""
    transient: Counter[str] = field(default_factory=Counter)
    """Persistent messages on a queue that is not durable, by queue."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Messages that a queue did not get, by queue."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why, by queue, as the broker told it."""
    replaced: Counter[str] = field(default_factory=Counter)
    """Messages that gave way on a queue when others came, by queue."""
    depths: dict[str, int] = field(default_factory=dict)
    """How many messages each queue finally had."""
    unsettled: list[str] = field(default_factory=list)
    """Resources of management that are made, and are to be paused, or disabled when everything is on them."""

    def copy(self) -> Imported:
        """The same, which changes by itself."""
        return replace(
            self, left_out=self.left_out.copy(), reasons=self.reasons.copy(), replaced=self.replaced.copy(),
            depths=self.depths.copy(), unsettled=self.unsettled.copy(), tried=self.tried.copy(),
            unsure=self.unsure.copy(), transient=self.transient.copy(),
        )  # fmt: skip


class Progress:
    """How far an import has got, in a file beside the export: the broker has everything up to there."""

    def __init__(self, path: Path, url: str, queues: Collection[str]) -> None:
        self.path = path.with_name(f"{path.name}.imported")
        self._url = url
        self._queues = sorted(queues)

    def read(self, id: str) -> Imported:
        """Where to go on with the export of this id. Raises ExportError."""
        try:
            noted = json.loads(self.path.read_text("utf-8"))
            if noted.pop("export") != id:
                raise ExportError(f"{self.path} is about another export; remove it to import this one anew")
            url = noted.pop("url")
            if url != self._url:
                raise ExportError(f"{self.path} is about the import into {url}; remove it to import from the beginning")
            if noted.pop("queues") != self._queues:
                raise ExportError(f"{self.path} is about an import with other --queue; remove it to import anew")
            found = Imported(**noted)
            found.left_out, found.replaced = Counter(found.left_out), Counter(found.replaced)
            found.unsure, found.transient = Counter(found.unsure), Counter(found.transient)
            return found
        except FileNotFoundError:
            return Imported()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ExportError(f"{self.path} cannot be read ({error}); remove it to import from the beginning") from None

    def note(self, id: str, done: Imported) -> None:
        """Write it down. Raises ExportError."""
        part = Path(f"{self.path}.part")
        about: dict[str, Any] = {"export": id, "url": self._url, "queues": self._queues}
        how_far = {one.name: getattr(done, one.name) for one in fields(done)}
        try:
            part.write_text(json.dumps(about | how_far), "utf-8")
            part.replace(self.path)
        except OSError as error:
            raise ExportError(f"{part}: {error.strerror or error}") from None


class Import:
    """One import. ``queues``: only into these; empty: into all. ``creates``: make the addresses and queues that are
    missing. ``progress`` is called with the bytes of the file that are read.
    """

    def __init__(
        self,
        path: Path,
        broker: BrokerHttp,
        queues: Collection[str],
        progress: Callable[[int], None],
        *,
        creates: bool,
    ) -> None:
        self.maker: Maker | None = None
        """What was made; None: nothing was tried."""
        self.opaque: Counter[str] = Counter()
        """Messages of an Artemis whose bodies have an encoding of Java's, by type."""
        self._path = path
        self._broker = broker
        self._kept = Kept()
        """What lines told since something was made."""
        self._creates = creates
        self._notes = Progress(path, broker.url, queues)
        self._queues = queues
        self._progress = progress
        self._id = ""
        self._line = 0
        self._read_bytes = 0
        self._is_whole = False
        self._body: IO[bytes]
        """The body of the next request."""
        self._messages = 0
        """So many messages are in it."""
        self._left_out: Counter[str] = Counter()
        """Messages beside them that a queue does not get, because it could not be made."""

    def run(self) -> tuple[Imported, Imported]:
        """Bring everything in. Returns what was done before, and what is done in all. Raises ArtemisError."""
        try:
            with (
                self._opened() as file,
                tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX) as self._body,
            ):
                return self._run(self._lines(file))
        except OSError as error:
            raise ArtemisError(f"{self._path}: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise ExportError(f"{self._path}: this is not a line of an export: {error}") from None

    def _opened(self) -> IO[str] | ArtemisExport:
        file = self._path.open("rb")
        if not is_artemis_export(file):
            return io.TextIOWrapper(file, encoding="utf-8")
        export = ArtemisExport(self._path, file)
        self.opaque = export.opaque
        return export

    def _run(self, lines: Iterator[tuple[str, Any]]) -> tuple[Imported, Imported]:
        kind, value = next(lines, ("", None))
        if not kind:
            raise ExportError(f"{self._path} is empty")
        if kind != "export":
            raise ExportError(f"{self._place}: an export begins with a line that says so")
        self._id = read_export(value, self._place)
        before = self._notes.read(self._id)
        done = before.copy()
        self._begin()
        for kind, value in lines:
            if kind in ("address", "queue"):
                self._kept.take(kind, value, self._place)
                continue
            self._make(done)
            if kind == "message":
                self._message(read_message(value, self._place), lines, done)
            elif kind == "piece":
                raise ExportError(f"{self._place}: this piece belongs to no message")
            self._is_whole = kind == "end"
        self._send(done)
        if not self._is_whole:
            raise ExportError(f"{self._path} is incomplete: it ends at line {self._line}; what it has was imported")
        if self.maker is not None:
            self.maker.finish()
        self._notes.note(self._id, done)
        self._notes.path.unlink()
        return before, done

    def _make(self, done: Imported) -> None:
        """Make what lines have told and the broker lacks."""
        kept, self._kept = self._kept, Kept()
        if not self._creates or not (kept.addresses or kept.queues):
            return
        if self.maker is None:
            try:
                self.maker = Maker(
                    Manager(self._broker), done.unsettled, partial(self._notes.note, self._id, done)
                )  # fmt: skip
            except UnmanageableError as error:
                warn(f"no queues are created: {error}; messages of those that are missing are left out")
                self._creates = False
                return
        self.maker.make(kept.only(self._queues))

    def _lines(self, file: IO[str] | ArtemisExport) -> Iterator[tuple[str, Any]]:
        while line := file.readline(_LINE_BYTES_MAX):
            self._line += 1
            self._read_bytes += len(line)
            if len(line) >= _LINE_BYTES_MAX:
                raise ExportError(f"{self._place}: the line is longer than {_LINE_BYTES_MAX} bytes")
            yield read_line(line, self._place)
            self._progress(self._read_bytes)

    @property
    def _place(self) -> str:
        return f"{self._path}:{self._line}"

    # ---- messages ----------------------------------------------------------------------------------

    def _message(self, taken: ExportedMessage, lines: Iterator[tuple[str, Any]], done: Imported) -> None:
        is_done = self._line <= done.lines
        refused = {} if self.maker is None else self.maker.refused
        wanted = [name for name in taken.queues if not self._queues or name in self._queues]
        queues = [name for name in wanted if name not in refused]
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX) as body:
            body.write(taken.body)
            self._read_pieces(taken.piece_bytes, lines, body)
            if is_done:
                return
            for name in wanted:
                if name in refused:
                    self._left_out[name] += 1
                    done.reasons.setdefault(name, refused[name])
            for start in range(0, len(queues), _QUEUES_PER_LINE):  # one line names so many
                self._write(taken, queues[start : start + _QUEUES_PER_LINE], body)
        self._messages += bool(queues)
        if self._messages >= MESSAGES_PER_REQUEST or self._body.tell() >= BYTES_PER_REQUEST:
            self._send(done)

    def _read_pieces(self, size_bytes: int, lines: Iterator[tuple[str, Any]], body: IO[bytes]) -> None:
        left = max(size_bytes, 0)
        while left > 0:
            place = self._place
            kind, value = next(lines, ("", None))
            if kind != "piece":
                raise ExportError(f"{place}: {left} bytes of this message's body are missing")
            data = read_piece(value, self._place)
            left -= len(data)
            if left < 0 or not data:
                raise ExportError(f"{self._place}: the pieces of this body are not as long as its message says")
            body.write(data)

    def _begin(self) -> None:
        """Begin a request."""
        self._body.seek(0)
        self._body.truncate()
        self._body.write(line_of("export", {"format": FORMAT, "id": self._id}))
        self._messages = 0
        self._left_out.clear()

    def _write(self, taken: ExportedMessage, queues: Collection[str], body: IO[bytes]) -> None:
        """Add the message to the request, with the queues that are to get it."""
        size_bytes = body.tell()
        body.seek(0)
        told: dict[str, Any] = {
            "id": taken.id,
            "address": taken.address,
            "queues": list(queues),
            "persistent": taken.is_persistent,
            "priority": taken.priority,
            "sized": taken.is_sized,
            "headers": taken.headers,
        }
        if taken.sent_ms:
            told["sent"] = shown_time(taken.sent_ms)
        if taken.expires_ms:
            told["expires"] = shown_time(taken.expires_ms)
        due = {name: shown_time(taken.due_ms[name]) for name in queues if name in taken.due_ms}
        if due:
            told["due"] = due
        if size_bytes <= _WHOLE_BYTES_MAX:
            told["base64"] = base64.b64encode(body.read()).decode()
        else:
            told["piece_bytes"] = size_bytes
        self._body.write(line_of("message", told))
        while data := body.read(PIECE_BYTES):
            self._body.write(piece_line(data))

    def _send(self, done: Imported) -> None:
        """Have the broker take what is in the request, and record that. Raises ArtemisError, also when some of it found
        no room: then the same is sent again when the import goes on.
        """
        if self._messages:
            size_bytes = self._body.tell()
            self._body.seek(0)
            try:
                answer = json.loads(self._broker.send(_PATH, self._body, size_bytes))
            except RefusedError as error:
                raise ArtemisError(f"{self._path}, the lines up to {self._line}: {error}") from None
            self._take(answer["queues"], done)
            done.messages += max(self._messages - (answer["messages"] - answer["came"]), 0)
        done.lines = self._line
        done.left_out += self._left_out
        self._notes.note(self._id, done)
        self._begin()

    def _take(self, shares: dict[str, dict[str, Any]], done: Imported) -> None:
        for name, share in shares.items():
            known = max(share["known"] - done.tried.get(name, 0), 0)
            done.places += share["placed"]
            done.known += known
            done.depths[name] = share["messageCount"]
            if share["replaced"]:
                done.replaced[name] += share["replaced"]
            if known and share["givesWay"]:
                done.unsure[name] += known
        full = {name: share for name, share in shares.items() if share["isFull"]}
        if full:
            done.tried = {name: share["placed"] + share["known"] for name, share in shares.items()}
            self._notes.note(self._id, done)
            told = [f"{share['refused']} for queue {name}: {share['reason']}" for name, share in full.items()]
            raise ArtemisError(
                f"up to line {self._line} there was no room for all messages ({'; '.join(told)}); make room, and run "
                "the same command again to continue"
            )
        done.tried = {}
        for name, share in shares.items():
            if share["transient"]:
                done.transient[name] += share["transient"]
            if share["refused"]:
                done.left_out[name] += share["refused"]
                done.reasons.setdefault(name, share["reason"])
