"""The test's own sender: a session like any client's, over a pair of sockets, for which nobody has to log in."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from artemis_py.errors import StompError
from artemis_py.stomp.client import Client
from artemis_py.testing.errors import SendError

if TYPE_CHECKING:
    from artemis_py.config.settings import AcceptorConfig
    from artemis_py.server.connection import Connection
    from artemis_py.server.server import Server

_READ_BYTES: Final = 65536


@final
class Sender:
    """One connection to the broker, and the frames on it. ``connection`` is its end at the broker."""

    def __init__(self, connection: Connection, own_end: socket.socket) -> None:
        self.connection = connection
        self._socket = own_end
        self._lock = threading.Lock()
        self._client = Client(beats_ms=(0, 0))

    def connect(self, timeout_s: float) -> None:
        """Begin the session."""
        self._exchange(self._client.connect("localhost", None, None), timeout_s)

    def send(self, address: str, body: str | bytes, headers: Mapping[str, object], timeout_s: float) -> None:
        """Send a message, and wait until the broker has it: a persistent one is on the disk. Raises SendError if the
        broker refuses it, TimeoutError if it makes the sender wait.
        """
        with self._lock:
            lines, data = _lines(address, body, headers, self._client.next_receipt())
            try:
                frame = self._client.frame("SEND", lines, data)
            except StompError as error:
                raise SendError(str(error)) from None
            self._exchange(frame, timeout_s)

    def _exchange(self, frame: bytes, timeout_s: float) -> None:
        """Write a frame and read its answer."""
        self._socket.settimeout(timeout_s)
        self._socket.sendall(frame)
        while (answer := self._client.next()) is None:
            more = self._socket.recv(_READ_BYTES)
            if not more:
                raise SendError("the broker closed the connection of the test's sender")
            self._client.feed(more)
        if answer.command == "ERROR":
            raise SendError(f"the broker refused the message: {answer.body.decode(errors='replace') or answer.reason}")

    def close(self) -> None:
        """End the session."""
        with suppress(OSError):
            self._socket.close()


def _lines(
    address: str, body: str | bytes, headers: Mapping[str, object], receipt: str
) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body of a SEND. Text has no content-length, by which Artemis tells text messages from bytes
    messages.
    """
    data = body.encode() if isinstance(body, str) else bytes(body)
    lines = [("destination", address), ("receipt", receipt)]
    if not isinstance(body, str):
        lines.append(("content-length", str(len(data))))
    return lines + [(name, _text(value)) for name, value in headers.items()], data


def _text(value: object) -> str:
    """A header's value: STOMP has only texts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


async def open_sender(server: Server, acceptor: AcceptorConfig) -> Sender:
    """Make a connection of the test, on the loop of the broker. ``acceptor``: whose prefixes and limits it has."""
    from artemis_py.server.connection import Acceptance, Connection
    from artemis_py.stomp.service import StompService, Traffic

    turns = server.turns
    service = StompService(
        server.broker, acceptor, Traffic(), server.ports.temporaries, turns.large, wake=turns.schedule
    )
    acceptance = Acceptance(turns, service, -1, 0)
    brokers_end, own_end = socket.socketpair()
    brokers_end.setblocking(False)
    _, connection = await asyncio.get_running_loop().connect_accepted_socket(acceptance.connect, brokers_end)
    assert isinstance(connection, Connection)
    return Sender(connection, own_end)
