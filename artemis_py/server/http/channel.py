"""The socket of one HTTP connection, from the moment on that it comes until it is to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import final

from artemis_py.server.transports import break_cycle


@final
class Channel:
    """``transport`` is what may be written to; None from the moment on that the connection is to end.

    ``last_activity_ms`` is when the connection came or something last went. What comes in is no activity: a client
    cannot hold the connection by sending one byte a minute.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.transport: asyncio.Transport | None = None
        self.may_write = True
        """Does the client read?"""
        self.last_activity_ms = now_ms()
        self._now_ms = now_ms
        self._socket: asyncio.Transport | None = None

    def open(self, transport: asyncio.Transport) -> None:
        """The socket is there."""
        self._socket = self.transport = transport

    def forget(self) -> None:
        """The socket is gone."""
        if self._socket is not None:
            break_cycle(self._socket)
            self._socket = None
        self.transport = None

    def write(self, data: bytes) -> None:
        """Send bytes, when there are any and the client is there."""
        if data and self.transport is not None:
            self.transport.write(data)
            self.note_activity()

    def note_activity(self) -> None:
        """The client has taken something, or is sent something."""
        self.last_activity_ms = self._now_ms()

    def pause_reading(self) -> None:
        """Leave what comes with the client."""
        if self.transport is not None:
            self.transport.pause_reading()

    def close(self) -> None:
        """End the connection when what was written has left."""
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def abort(self) -> None:
        """End the connection at once, unsent bytes too."""
        if self.transport is not None:
            self.transport.abort()
            self.transport = None

    def take(self) -> asyncio.Transport | None:
        """The transport, for whoever ends it in another way; nobody writes to it any more."""
        transport, self.transport = self.transport, None
        return transport
