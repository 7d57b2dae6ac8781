"""A connection's output with large bodies in it: in order, and reading no more of a body than the client takes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from artemis_py.message import LargeBody
from artemis_py.server.body_pieces import BodyPieces
from artemis_py.stomp.wire.outbound import Part
from artemis_py.storage.bodies.store import LargeStore

HIGH_BYTES: Final = 131072
"""How many bytes may wait in the socket's buffer before reading of pieces pauses."""


class Outflow:
    """Parts that wait behind a large body. ``owner`` is told when a piece of the body is ready."""

    __slots__ = ("_parts", "_pieces", "_seen_bytes", "_written_bytes", "is_paused", "waiting_bytes")

    def __init__(self, large: LargeStore, owner: object) -> None:
        self.is_paused = False
        """Does the socket accept nothing now?"""
        self.waiting_bytes = 0
        """Bytes that wait in memory."""
        self._parts: deque[Part] = deque()
        self._pieces = BodyPieces(large, owner)
        self._written_bytes = 0
        self._seen_bytes = 0

    @property
    def failure(self) -> str | None:
        """Why the body cannot be read; the frame already begun cannot be completed."""
        return self._pieces.failure

    @property
    def is_done(self) -> bool:
        """Has everything been handed to the socket?"""
        return not self._parts

    def has_moved(self) -> bool:
        """Did the socket accept anything since the last call?"""
        seen_bytes, self._seen_bytes = self._seen_bytes, self._written_bytes
        return self._written_bytes > seen_bytes

    def add(self, parts: list[Part]) -> None:
        """Add parts after those that already wait."""
        self._parts.extend(parts)
        self.waiting_bytes += sum(len(part) for part in parts if not isinstance(part, LargeBody))

    def pump(self, transport: asyncio.Transport) -> int:
        """Write until the socket accepts no more or a piece must be read first; returns the number of bytes."""
        written_bytes = self._written_bytes
        while self._parts and not self.is_paused and self._write_next(transport):
            pass
        return self._written_bytes - written_bytes

    def _write_next(self, transport: asyncio.Transport) -> bool:
        """Write the parts before the next large body, or a piece of it; False if the piece must be read first."""
        first = self._parts[0]
        if not isinstance(first, LargeBody):
            self._write(transport, self._take_bytes())
            return True
        data = self._pieces.next(first)
        if data is None:
            return False
        if self._pieces.is_at_start:
            self._parts.popleft()
        self._write(transport, data)
        return True

    def _take_bytes(self) -> bytes:
        """The parts before the next large body."""
        taken: list[bytes] = []
        while self._parts:
            part = self._parts[0]
            if isinstance(part, LargeBody):
                break
            taken.append(part)
            self._parts.popleft()
        data = b"".join(taken)
        self.waiting_bytes -= len(data)
        return data

    def _write(self, transport: asyncio.Transport, data: bytes) -> None:
        self._written_bytes += len(data)
        transport.write(data)
