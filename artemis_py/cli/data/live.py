"""Exports the messages of a running broker over HTTP, page by page. It may break off anywhere, and go on there.

Each queue is looked at in steps, so that a message which stays on it is found wherever it goes meanwhile: those that
wait for their time before those that are ready, and finally, once more, those that consumers have. If messages came
back to the queue in between, all of that is done again. What was found before is dropped by its number.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, Protocol, final
from urllib.parse import quote, urlencode

from artemis_py.cli.broker_http import BrokerHttp, RefusedError
from artemis_py.cli.data.part import Noted
from artemis_py.core.operations.scan import Numbers
from artemis_py.errors import ArtemisError
from artemis_py.management.messages.lines import FORMAT, line_of
from artemis_py.management.messages.reading import ExportError
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
        first = {"format": FORMAT, "id": uuid.uuid4().hex, "broker": name, "made": made, "version": VERSION}
        self._kept.write(b"".join([line_of("export", first), *destinations]))
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
            raise ArtemisError(f"there is no durable queue {', '.join(sorted(unknown))} on {self._broker.url}")
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
