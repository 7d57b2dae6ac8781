"""The socket of one HTTP connection, from its start until the connection is to end."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import final

from artemis_py.server.transports import break_cycle


@final
class Channel:
    """``transport`` is for output; None once the connection is to end.

    ``last_activity_ms`` is when the connection was accepted or last sent something. Input is no activity: a client
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
        """The socket is open."""
        self._socket = self.transport = transport

    def forget(self) -> None:
        """The socket is gone."""
        if self._socket is not None:
            break_cycle(self._socket)
            self._socket = None
        self.transport = None

    def write(self, data: bytes) -> None:
        """Send bytes, if there are any and the client is not gone."""
        if data and self.transport is not None:
            self.transport.write(data)
            self.note_activity()

    def note_activity(self) -> None:
        """The client accepted output, or gets some."""
        self.last_activity_ms = self._now_ms()

    def has_lost_client(self) -> bool:
        """Has the client closed its side? A socket that is not read does not report it."""
        descriptor = -1 if self.transport is None else self.transport.get_extra_info("socket").fileno()
        if descriptor < 0:
            return True
        state = select.poll()
        state.register(descriptor, select.POLLRDHUP)
        return bool(state.poll(0))

    def pause_reading(self) -> None:
        """Stop reading."""
        if self.transport is not None:
            self.transport.pause_reading()

    def close(self) -> None:
        """End the connection after sending the written output."""
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def abort(self) -> None:
        """End the connection at once, without sending the rest."""
        if self.transport is not None:
            self.transport.abort()
            self.transport = None

    def take(self) -> asyncio.Transport | None:
        """The transport, for a caller that ends it in another way; nothing is written to it any more."""
        transport, self.transport = self.transport, None
        return transport
