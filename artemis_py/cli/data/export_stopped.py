"""Exports the messages of a stopped broker, from its journal, pages and files of large bodies. Nothing is changed."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Protocol

import aiofiles
import aiofiles.os

from artemis_py.cli.journal_reading import ReadOnlyDisk
from artemis_py.errors import ArtemisError
from artemis_py.management.export_format import (
    FORMAT,
    PIECE_BYTES,
    ExportError,
    line_of,
    message_line,
    of_queues,
    piece_line,
)
from artemis_py.message import LargeBody, Message
from artemis_py.paged_messages import Page
from artemis_py.storage.format import records
from artemis_py.storage.format.codec import Kept, decode_paged
from artemis_py.storage.format.names import find_body, page_name
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.pages import whole_records
from artemis_py.storage.recovery.accept_journal import examine_or_refuse
from artemis_py.storage.recovery.missing_files import DataDirectories
from artemis_py.version import VERSION

_REMEMBERED: Final = frozenset({"recovery", "used"})
"""What queues remember of the log in which they are, which another broker does not have."""


@dataclass(frozen=True, slots=True)
class Directories:
    """Where a broker has its files."""

    journal: Path
    paging: Path
    large: Path


@dataclass(slots=True)
class Found:
    """A message that queues need: their names, its failed deliveries, and for when it waits (epoch ms), by queue."""

    message: Message
    queues: list[str]
    attempts: dict[str, int] = field(default_factory=dict)
    due_ms: dict[str, int] = field(default_factory=dict)


class StoppedBroker:
    """The content of a broker's directories. Raises DiskError, VersionError, and LossError if files are missing.

    ``progress`` gets (files read, files in total).
    """

    def __init__(self, directories: Directories, progress: Callable[[int, int], None]) -> None:
        self._directories = directories
        self._pages = ReadOnlyDisk(directories.paging)
        data = DataDirectories([directories.large], [directories.paging])
        self._index = examine_or_refuse(ReadOnlyDisk(directories.journal), progress, data).index
        self._index.drop_orphans()
        self.damages: list[str] = []
        """What could not be read of pages, a line each."""

    @property
    def addresses(self) -> list[dict[str, Any]]:
        """The fields of each address."""
        return list(self._index.addresses.values())

    @property
    def queues(self) -> list[dict[str, Any]]:
        """The fields of each queue."""
        return [
            {name: value for name, value in queue.items() if name not in _REMEMBERED}
            for queue in self._index.queues.values()
        ]

    @property
    def count(self) -> int:
        """How many messages there are, at most: a page is not read before its turn."""
        return len(self._index.home) + sum(page.kept_count for page in self._index.pages.pages())

    def messages(self) -> Iterator[Found]:
        """Each message once: those in memory in the order of their publication, then those in pages."""
        index = self._index
        for kept in sorted((segment.live[number] for number, segment in index.home.items()), key=attrgetter("lsn")):
            found = self._found(kept, kept.queue_ids)
            for queue_id, detail in (kept.details or {}).items():
                name = self._name(queue_id)
                if detail.attempts:
                    found.attempts[name] = detail.attempts
                if detail.due_ms:
                    found.due_ms[name] = detail.due_ms
            yield found
        for stream in index.pages.recovered_state():
            for page in stream.pages:
                yield from self._in_page(page, stream.attempts)

    def _in_page(self, page: Page, failed: dict[tuple[int, int], tuple[int, int]]) -> Iterator[Found]:
        data = self._pages.read(page_name(page.stream, page.number), 0, page.kept_bytes)
        for record in whole_records(page, data, 0, self._note_damage):
            if record.type_code != records.PAGED:
                continue
            try:
                kept = decode_paged(record.payload)[1]
            except CodecError as error:
                self._note_damage(page, record.lsn, str(error))
                continue
            queue_ids = [number for number in kept.queue_ids if self._index.pages.needs(number, page, record.lsn)]
            if not queue_ids or kept.flags & records.FLAG_TRANSIENT:
                continue
            found = self._found(kept, queue_ids)
            for queue_id in queue_ids:
                attempts, due_ms = failed.get((queue_id, record.lsn), (0, 0))
                if attempts:
                    found.attempts[self._name(queue_id)] = attempts
                if due_ms:
                    found.due_ms[self._name(queue_id)] = due_ms
            yield found

    def _found(self, kept: Kept, queue_ids: list[int]) -> Found:
        return Found(kept.message, [self._name(queue_id) for queue_id in queue_ids])

    def _name(self, queue_id: int) -> str:
        return str(self._index.queues[queue_id]["name"])

    def _note_damage(self, page: Page, offset: int, reason: str) -> None:
        self.damages.append(f"{page_name(page.stream, page.number)} at {offset}: {reason}")

    def pieces(self, body: LargeBody) -> Iterator[bytes]:
        """A body that has a file of its own. Raises ExportError if it is missing or too short."""
        path = find_body(body.number, [self._directories.large])
        if path is None:
            raise ExportError(f"the file of a large body is missing in {self._directories.large}: {body.number:016x}")
        left = body.size_bytes
        with path.open("rb") as file:
            while left and (data := file.read(min(left, PIECE_BYTES))):
                left -= len(data)
                yield data
        if left:
            raise ExportError(f"{path} is {left} bytes too short")


# ---- the export ------------------------------------------------------------------------------------------------------


_BLOCK_BYTES: Final = 1 << 20


class Writing(Protocol):
    """What lines are written to."""

    async def write(self, data: bytes, /) -> int:
        """Write all of it."""


@dataclass(slots=True)
class Exported:
    """How much was written."""

    messages: int = 0
    body_bytes: int = 0


class _Stdout:
    async def write(self, data: bytes, /) -> int:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return len(data)


@asynccontextmanager
async def writing(to: str | None) -> AsyncIterator[Writing]:
    """The file at a path, or standard output for None. The file gets its name when it is whole. Raises ArtemisError."""
    if to is None:
        yield _Stdout()
        return
    path, part = Path(to), Path(f"{to}.part")
    if path.exists():
        raise ArtemisError(f"{to} is there already; name another file, or remove it")
    try:
        async with aiofiles.open(part, "xb", buffering=0, opener=_private) as file:
            yield file
        await aiofiles.os.rename(part, path)
    except FileExistsError:
        raise ArtemisError(f"{part} is there: another export writes it, or one broke off; remove it then") from None
    except OSError as error:
        raise ArtemisError(f"{part}: {error.strerror or error}") from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _private(path: str, flags: int) -> int:
    """Messages are nobody else's business."""
    return os.open(path, flags, 0o600)


async def export(
    broker: StoppedBroker,
    name: str,
    file: Writing,
    wanted: Collection[str],
    progress: Callable[[int], None],
) -> Exported:
    """Write everything, or only what is of the ``wanted`` queues. ``progress`` is called after each message, with how
    many that are. Raises ArtemisError.
    """
    done = Exported()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    first = {"format": FORMAT, "id": uuid.uuid4().hex, "broker": name, "made": made, "version": VERSION}
    block = [line_of("export", first)]
    block += of_queues(broker.addresses, broker.queues, wanted)
    size_bytes = 0
    for number, found in enumerate(broker.messages(), 1):
        queues = [name for name in found.queues if not wanted or name in wanted]
        for line in _lines(broker, found, queues, done):
            block.append(line)
            size_bytes += len(line)
            if size_bytes >= _BLOCK_BYTES:
                await file.write(b"".join(block))
                block, size_bytes = [], 0
        progress(number)
    block.append(line_of("end", _totals(done)))
    await file.write(b"".join(block))
    return done


def _lines(broker: StoppedBroker, found: Found, queues: list[str], done: Exported) -> Iterator[bytes]:
    if not queues:
        return
    message = found.message
    done.messages += 1
    done.body_bytes += len(message.body)
    attempts = {name: count for name, count in found.attempts.items() if name in queues}
    due_ms = {name: when_ms for name, when_ms in found.due_ms.items() if name in queues}
    yield message_line(message, queues, attempts, due_ms, in_pieces=isinstance(message.body, LargeBody))
    if isinstance(message.body, LargeBody):
        for data in broker.pieces(message.body):
            yield piece_line(data)


def _totals(done: Exported) -> dict[str, Any]:
    return {"messages": done.messages, "body_bytes": done.body_bytes}
