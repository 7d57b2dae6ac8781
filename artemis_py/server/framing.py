"""What a connection needs of the protocol that carries its frames: nothing on a plain socket, WebSocket on others."""

from __future__ import annotations

import asyncio
from typing import Protocol

from artemis_py.stomp.wire.outbound import Part
from artemis_py.storage.bodies.store import LargeStore


class Intake(Protocol):
    """Takes a connection's bytes and carries out the frames in them. A session is one, for a plain socket."""

    @property
    def has_more(self) -> bool:
        """Is there input that can be carried out and was not yet?"""

    @property
    def held_bytes(self) -> tuple[int, int, int]:
        """What is held in memory: of the input, of frames to be written, and of open transactions."""

    def receive(self, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        """Take bytes, and carry out what the turn's budget allows down to ``stop_at``."""

    def go_on(self, now_ms: int, stop_at: int = 0) -> None:
        """Carry out what was received, until the budget is down to ``stop_at``."""


class Flow(Protocol):
    """Output that waits behind a large body being sent."""

    is_paused: bool
    waiting_bytes: int

    @property
    def failure(self) -> str | None:
        """Why a body cannot be read; the frame already begun cannot be completed."""

    @property
    def is_done(self) -> bool:
        """Has everything been handed to the socket?"""

    def has_moved(self) -> bool:
        """Is there progress since the last call?"""

    def add(self, parts: list[Part]) -> None:
        """Add parts after those that already wait."""

    def pump(self, transport: asyncio.Transport) -> int:
        """Write what the socket accepts; returns the number of bytes."""


class Framing(Protocol):
    """Wraps the output of a session."""

    def join(self, parts: list[Part]) -> bytes:
        """The bytes of whole STOMP frames. Raises TypeError if a large body is among them."""

    def flow(self, large: LargeStore, owner: object) -> Flow:
        """A flow for output with large bodies."""

    def farewell(self, code: int | None = None) -> bytes:
        """The last bytes to the client, once; later calls return none. ``code`` is a WebSocket close code; None: what
        the session's end suggests.
        """
