"""Writes the export of a stopped broker."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import aiofiles
import aiofiles.os

from artemis_py.cli.data.stopped import Found, StoppedBroker
from artemis_py.errors import ArtemisError
from artemis_py.management.export_format import FORMAT, line_of, message_line, piece_line
from artemis_py.message import LargeBody
from artemis_py.version import VERSION

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
    wants: Callable[[Found], list[str]],
    progress: Callable[[int], None],
) -> Exported:
    """Write everything: ``wants`` says which of a message's queues count, and a message with none is left out.
    ``progress`` is called after each message, with how many that are. Raises ArtemisError.
    """
    done = Exported()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    first = {"format": FORMAT, "id": uuid.uuid4().hex, "broker": name, "made": made, "version": VERSION}
    block = [line_of("export", first)]
    block += [line_of("address", one) for one in broker.addresses]
    block += [line_of("queue", one) for one in broker.queues]
    size_bytes = 0
    for number, found in enumerate(broker.messages(), 1):
        for line in _lines(broker, found, wants(found), done):
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
