"""The test's own sender: a session like any client's, over a pair of sockets, for which nobody has to log in."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from artemis_py.message import encode_headers
from artemis_py.testing.errors import SendError

if TYPE_CHECKING:
    from artemis_py.config.settings import AcceptorConfig
    from artemis_py.server.connection import Connection
    from artemis_py.server.server import Server

_READ_BYTES: Final = 65536
_CONNECT: Final = b"CONNECT\naccept-version:1.2\nhost:localhost\nheart-beat:0,0\n\n\0"


@final
class Sender:
    """One connection to the broker, and the frames on it. ``connection`` is its end at the broker."""

    def __init__(self, connection: Connection, own_end: socket.socket) -> None:
        self.connection = connection
        self._socket = own_end
        self._lock = threading.Lock()
        self._received = b""
        self._count = 0

    def connect(self, timeout_s: float) -> None:
        """Begin the session."""
        self._exchange(_CONNECT, timeout_s)

    def send(self, address: str, body: str | bytes, headers: Mapping[str, object], timeout_s: float) -> None:
        """Send a message, and wait until the broker has it: a persistent one is on the disk. Raises SendError if the
        broker refuses it, TimeoutError if it makes the sender wait.
        """
        with self._lock:
            self._count += 1
            self._exchange(_frame(address, body, headers, f"sent-{self._count}"), timeout_s)

    def _exchange(self, frame: bytes, timeout_s: float) -> None:
        """Write a frame and read its answer."""
        self._socket.settimeout(timeout_s)
        self._socket.sendall(frame)
        while b"\0" not in self._received:
            more = self._socket.recv(_READ_BYTES)
            if not more:
                raise SendError("the broker closed the connection of the test's sender")
            self._received += more
        answer, _, self._received = self._received.lstrip(b"\n").partition(b"\0")
        head, _, text = answer.partition(b"\n\n")
        if head.startswith(b"ERROR"):
            message = next((line[8:] for line in head.split(b"\n") if line.startswith(b"message:")), b"")
            raise SendError(f"the broker refused the message: {(text or message).decode(errors='replace').strip()}")

    def close(self) -> None:
        """End the session."""
        with suppress(OSError):
            self._socket.close()


def _frame(address: str, body: str | bytes, headers: Mapping[str, object], receipt: str) -> bytes:
    """A SEND frame. Text has no content-length, by which Artemis tells text messages from bytes messages."""
    data = body.encode() if isinstance(body, str) else bytes(body)
    lines = [("destination", address), ("receipt", receipt)]
    if not isinstance(body, str) or b"\0" in data:
        lines.append(("content-length", str(len(data))))
    lines += [(name, _text(value)) for name, value in headers.items()]
    return b"SEND\n" + encode_headers(lines) + data + b"\0"


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
