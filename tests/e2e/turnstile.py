"""Lets so many connections through to a server, and holds the others until it is opened again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

_BYTES: Final = 65_536


@dataclass
class Turnstile:
    """Stands at ``url`` before the server at a port. What connects while it is not ``free`` to pass waits, as with a
    server that is busy.
    """

    to_port: int
    url: str
    free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released by each that stands before it."""


@contextmanager
def turnstile(port: int) -> Iterator[Turnstile]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        gate = Turnstile(port, f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=_accept, args=(gate, listener), daemon=True).start()
        yield gate


def _accept(gate: Turnstile, listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            if not gate.free.acquire(blocking=False):
                gate.waiting.release()
                gate.free.acquire()
            try:
                server = socket.create_connection(("127.0.0.1", gate.to_port))
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(_BYTES):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_WR)
