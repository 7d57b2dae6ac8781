"""Lets so many connections through to a server, and holds the others until it is opened again."""

from __future__ import annotations

import socket
import threading
from contextlib import AbstractContextManager, suppress
from typing import Final

_BYTES: Final = 65_536


class Turnstile(AbstractContextManager["Turnstile"]):
    """Stands before the server at a port, and listens on a port of its own. What connects while no more may pass
    waits, as with a server that is busy.
    """

    def __init__(self, port: int) -> None:
        self.to_port = port
        self._free = threading.Semaphore(0)
        self._waiting = threading.Semaphore(0)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self.port}"

    def let(self, count: int) -> None:
        """Let so many more through."""
        self._free.release(count)

    def await_one(self, wait_s: float) -> None:
        """Wait until somebody stands before it."""
        assert self._waiting.acquire(timeout=wait_s), "nobody came"

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self._free.acquire(blocking=False):
                    self._waiting.release()
                    self._free.acquire()
                self._join(client)

    def _join(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.to_port))
        except OSError:
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(_BYTES):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_WR)
