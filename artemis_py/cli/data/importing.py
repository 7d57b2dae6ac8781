"""Brings an export into a running broker, over STOMP. It may break off at any line, and go on there."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from io import SEEK_END
from pathlib import Path
from typing import IO, Any, Final

import aiofiles
import aiofiles.os

from artemis_py.cli.data.client import Sender
from artemis_py.cli.data.destinations import Kept
from artemis_py.cli.data.lines import ExportError, Taken, read_export, read_line, read_message, read_piece
from artemis_py.cli.data.making import Maker
from artemis_py.cli.data.manager import Manager, UnmanageableError
from artemis_py.management.messages.lines import PIECE_BYTES
from artemis_py.message import encode_headers
from artemis_py.shown import warn

SENDS_PER_RECEIPT: Final = 500
BYTES_PER_RECEIPT: Final = 4 << 20
_IN_MEMORY_BYTES_MAX: Final = 16 << 20
_LINE_BYTES_MAX: Final = 256 << 20
_OF_THE_HOP: Final = frozenset(
    {
        "destination", "content-length", "receipt", "transaction", "message-id", "subscription", "ack", "persistent",
        "priority", "expires", "timestamp", "redelivered", "_AMQ_DUPL_ID", "_AMQ_SCHED_DELIVERY",
        "AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_DELAY", "destination-type",
    }
)  # fmt: skip
"""Headers of the original SEND that are written anew."""
_IS_VIEW: Final = "it is a view, and what is sent to it goes to the addresses under it, so to other queues, too"


@dataclass(slots=True)
class Imported:
    """What is done: lines of the file, messages, and SENDs (one for each queue of a message)."""

    lines: int = 0
    messages: int = 0
    sends: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Messages of queues that are missing and could not be made, by queue."""
    unsettled: list[str] = field(default_factory=list)
    """Resources of management that are made, and are to be paused, or disabled when everything is on them."""

    def copy(self) -> Imported:
        """The same, which changes by itself."""
        return replace(self, left_out=self.left_out.copy(), unsettled=self.unsettled.copy())


class Progress:
    """How far an import has got, in a file beside the export: the broker has confirmed everything up to there."""

    def __init__(self, path: Path, url: str, queues: Collection[str]) -> None:
        self.path = path.with_name(f"{path.name}.imported")
        self._url = url
        self._queues = sorted(queues)

    async def read(self, id: str) -> Imported:
        """Where to go on with the export of this id. Raises ExportError."""
        try:
            async with aiofiles.open(self.path, encoding="utf-8") as file:
                noted = json.loads(await file.read())
            if noted["export"] != id:
                raise ExportError(f"{self.path} is about another export; remove it to import this one anew")
            if noted["url"] != self._url:
                raise ExportError(
                    f"{self.path} is about the import into {noted['url']}; remove it to import from the beginning"
                )
            if noted.get("queues", self._queues) != self._queues:
                raise ExportError(f"{self.path} is about an import with other --queue; remove it to import anew")
            return Imported(
                int(noted["lines"]),
                int(noted["messages"]),
                int(noted["sends"]),
                Counter({str(name): int(count) for name, count in noted.get("left_out", {}).items()}),
                [str(name) for name in noted.get("unsettled", ())],
            )
        except FileNotFoundError:
            return Imported()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ExportError(f"{self.path} cannot be read ({error}); remove it to import from the beginning") from None

    async def note(self, id: str, done: Imported) -> None:
        """Write it down. Raises ExportError."""
        part = f"{self.path}.part"
        fields: dict[str, Any] = {"export": id, "url": self._url, "queues": self._queues}
        fields |= {one.name: getattr(done, one.name) for one in dataclasses.fields(done)}
        try:
            async with aiofiles.open(part, "w", encoding="utf-8") as file:
                await file.write(json.dumps(fields))
            await aiofiles.os.replace(part, self.path)
        except OSError as error:
            raise ExportError(f"{part}: {error.strerror or error}") from None


class Import:
    """One import. ``connect`` makes a connection. ``queues``: only into these; empty: into all. ``creates``: make the
    addresses and queues that are missing. ``progress`` is called with the bytes of the file that are read.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[], Awaitable[Sender]],
        url: str,
        queues: Collection[str],
        progress: Callable[[int], None],
        *,
        creates: bool,
    ) -> None:
        self.maker: Maker | None = None
        """What was made; None: nothing was tried."""
        self.barred: dict[str, str] = {}
        """Queues that get no messages of the export, and why."""
        self._path = path
        self._connect = connect
        self._sender: Sender
        self._kept = Kept()
        """What lines told since something was made."""
        self._creates = creates
        self._notes = Progress(path, url, queues)
        self._queues = queues
        self._progress = progress
        self._id = ""
        self._places: dict[str, tuple[str, str]] = {}
        """Address and routing type by queue. Messages of a view, or of a wildcard address, have other addresses."""
        self._line = 0
        self._read_bytes = 0
        self._is_whole = False
        self._unconfirmed = Imported()
        self._unconfirmed_bytes = 0
        self._receipt = ""
        """What confirms everything that was sent; empty: nothing does yet."""

    async def run(self) -> tuple[Imported, Imported]:
        """Bring everything in. Returns what was done before, and what is done in all. Raises ArtemisError."""
        self._sender = await self._connect()
        try:
            return await self._run()
        finally:
            self._sender.close()

    async def _run(self) -> tuple[Imported, Imported]:
        async with aiofiles.open(self._path, encoding="utf-8") as file:
            lines = self._lines(file)
            try:
                kind, value = await anext(lines)
            except StopAsyncIteration:
                raise ExportError(f"{self._path} is empty") from None
            if kind != "export":
                raise ExportError(f"{self._place}: an export begins with a line that says so")
            self._id = read_export(value, self._place)
            before = await self._notes.read(self._id)
            done = before.copy()
            async for kind, value in lines:
                if kind in ("address", "queue"):
                    self._kept.take(kind, value, self._place)
                    continue
                await self._make(done)
                if kind == "message":
                    await self._message(read_message(value, self._place), lines, done)
                elif kind == "piece":
                    raise ExportError(f"{self._place}: this piece belongs to no message")
                self._is_whole = kind == "end"
        if not self._is_whole:
            raise ExportError(f"{self._path} is not whole: it ends at line {self._line}; what it has was brought in")
        if self.maker is not None:
            await self.maker.finish()
        await self._confirm(done)
        await aiofiles.os.unlink(self._notes.path)
        return before, done

    async def _make(self, done: Imported) -> None:
        """Make what lines have told and the broker lacks."""
        kept, self._kept = self._kept, Kept()
        self._places |= {name: (queue.address, queue.routing_type) for name, queue in kept.queues.items()}
        self.barred |= {name: _IS_VIEW for name, queue in kept.queues.items() if queue.is_view}
        if not self._creates or not (kept.addresses or kept.queues):
            return
        if self.maker is None:
            try:
                manager = await Manager.of(self._sender)
            except UnmanageableError as error:
                warn(f"no queues are made: {error}; where some are missing, auto-create-queues may make them")
                self._creates = False
                self._sender.close()
                self._sender = await self._connect()
                return
            self.maker = Maker(manager, done.unsettled, partial(self._notes.note, self._id, done))
        await self.maker.make(kept.only(self._queues))
        self.barred |= self.maker.refused

    async def _lines(self, file: Any) -> AsyncIterator[tuple[str, Any]]:
        while line := await file.readline(_LINE_BYTES_MAX):
            self._line += 1
            self._read_bytes += len(line)
            if len(line) >= _LINE_BYTES_MAX:
                raise ExportError(f"{self._place}: the line is longer than {_LINE_BYTES_MAX} bytes")
            yield read_line(line, self._place)
            self._progress(self._read_bytes)

    @property
    def _place(self) -> str:
        return f"{self._path}:{self._line}"

    async def _message(self, taken: Taken, lines: AsyncIterator[tuple[str, Any]], done: Imported) -> None:
        is_done = self._line <= done.lines
        wanted = [name for name in taken.queues if not self._queues or name in self._queues]
        queues = [name for name in wanted if name not in self.barred]
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX) as body:
            body.write(taken.body)
            await self._read_pieces(taken.piece_bytes, lines, body)
            if is_done:
                return
            self._unconfirmed.left_out.update(name for name in wanted if name in self.barred)
            if not queues:
                return
            for name in queues:
                await self._send(taken, name, body, is_last=name == queues[-1])
        self._unconfirmed.messages += 1
        if self._receipt:
            await self._confirm(done)

    async def _read_pieces(self, size_bytes: int, lines: AsyncIterator[tuple[str, Any]], body: IO[bytes]) -> None:
        left = max(size_bytes, 0)
        while left > 0:
            place = self._place
            kind, value = await anext(lines, ("", None))
            if kind != "piece":
                raise ExportError(f"{place}: {left} bytes of this message's body are missing")
            data = read_piece(value, self._place)
            left -= len(data)
            if left < 0 or not data:
                raise ExportError(f"{self._place}: the pieces of this body are not as long as its message says")
            body.write(data)

    async def _send(self, taken: Taken, queue: str, body: IO[bytes], *, is_last: bool) -> None:
        size_bytes = body.seek(0, SEEK_END)
        body.seek(0)
        unconfirmed = self._unconfirmed
        unconfirmed.sends += 1
        self._unconfirmed_bytes += size_bytes
        is_much = unconfirmed.sends >= SENDS_PER_RECEIPT or self._unconfirmed_bytes >= BYTES_PER_RECEIPT
        if is_last and is_much:
            self._receipt = self._sender.next_receipt()
        place = self._places.get(queue, (taken.address, None))
        await self._sender.write(_send_head(self._id, taken, queue, place, size_bytes, self._receipt))
        while data := body.read(PIECE_BYTES):
            await self._sender.write(data)
        await self._sender.write(b"\0")

    async def _confirm(self, done: Imported) -> None:
        """Wait until the broker has everything that was sent, and note that."""
        if self._receipt:
            await self._sender.confirmed(self._receipt)
        else:
            await self._sender.leave()
        done.lines = self._line
        done.messages += self._unconfirmed.messages
        done.sends += self._unconfirmed.sends
        done.left_out += self._unconfirmed.left_out
        self._unconfirmed, self._unconfirmed_bytes, self._receipt = Imported(), 0, ""
        await self._notes.note(self._id, done)


def _send_head(
    id: str, taken: Taken, queue: str, place: tuple[str, str | None], size_bytes: int, receipt: str
) -> bytes:
    """A SEND up to its body, to the queue at a place: address and routing type. A broker that has it already drops it:
    its duplicate id is that of the export.
    """
    address, routing_type = place
    headers = [
        ("destination", f"{address}::{queue}"),
        ("content-length", str(size_bytes)),
        ("persistent", "true" if taken.is_persistent else "false"),
        ("priority", str(taken.priority)),
        ("_AMQ_DUPL_ID", f"{id}-{taken.id}-{queue}"),
    ]
    if routing_type is not None:
        headers.append(("destination-type", routing_type))
    if taken.expires_ms:
        headers.append(("expires", str(taken.expires_ms)))
    if queue in taken.due_ms:
        headers.append(("AMQ_SCHEDULED_TIME", str(taken.due_ms[queue])))
    if receipt:
        headers.append(("receipt", receipt))
    headers += [(name, text) for name, text in taken.headers if name not in _OF_THE_HOP]
    return b"SEND\n" + encode_headers(headers)
