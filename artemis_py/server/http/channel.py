"""The socket of one HTTP connection, from its start until the connection is to end."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import final

from artemis_py.server.http.departures import Departures
from artemis_py.server.transports import break_cycle


@final
class Channel:
    """``transport`` is for output; None once the connection is to end.

    ``last_activity_ms`` is when the connection was accepted or last sent something. Input is no activity: a client
    cannot hold the connection by sending one byte a minute.
    """

    def __init__(self, now_ms: Callable[[], int], departures: Departures | None) -> None:
        self.transport: asyncio.Transport | None = None
        self.may_write = True
        """Does the client read?"""
        self.is_left = False
        """Has the client closed its side while it is watched?"""
        self.last_activity_ms = now_ms()
        self._now_ms = now_ms
        self._departures = departures
        self._socket: asyncio.Transport | None = None
        self._watched = -1
        """The socket that ``departures`` watches; -1: none."""

    def open(self, transport: asyncio.Transport) -> None:
        """The socket is open."""
        self._socket = self.transport = transport

    def forget(self) -> None:
        """The socket is gone."""
        self.unwatch()
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

    @property
    def _descriptor(self) -> int:
        found = None if self.transport is None else self.transport.get_extra_info("socket")
        return -1 if found is None else int(found.fileno())

    def watch(self, gone: Callable[[], None], *, is_sent_something: bool = False) -> None:
        """Have ``gone`` called when the client is gone, although nothing is read; see ``Departures``."""

        def left(is_gone: bool) -> None:
            self.is_left = True
            if is_gone:
                gone()

        descriptor = self._descriptor
        if self._departures is not None and self._watched < 0 <= descriptor:
            self._departures.watch(descriptor, left, is_sent_something=is_sent_something)
            self._watched = descriptor

    def unwatch(self) -> None:
        """It is read again, or the connection ends."""
        if self._departures is not None and self._watched >= 0:
            self._departures.forget(self._watched)
            self._watched = -1
            self.is_left = False

    def has_lost_client(self) -> bool:
        """Has the client closed its side by now?"""
        descriptor = self._descriptor
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
        self.unwatch()
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def abort(self) -> None:
        """End the connection at once, without sending the rest."""
        self.unwatch()
        if self.transport is not None:
            self.transport.abort()
            self.transport = None

    def take(self) -> asyncio.Transport | None:
        """The transport, for a caller that ends it in another way; nothing is written to it any more."""
        self.unwatch()
        transport, self.transport = self.transport, None
        return transport
