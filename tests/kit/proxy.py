"""A way to a broker on which all passes, as long as a test lets it."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Semaphore, Thread

from tests.kit.process import LOOPBACK


@dataclass
class Proxy:
    """Gives each client of a broker a connection to it, and passes on what both say. ``stuck`` are those who hear
    nothing, not even that the other one is gone. So it is when the machine of the other one is gone. If it is a
    ``gate``, connections wait, one behind the other, as with a broker that is busy: each ``free.release()`` lets one
    pass.
    """

    broker_port: int
    gate: bool = field(default=False, kw_only=True)
    free: Semaphore = field(default_factory=lambda: Semaphore(0), init=False)
    waiting: Semaphore = field(default_factory=lambda: Semaphore(0), init=False)
    """Released by each that has to wait."""
    connections: int = field(default=0, init=False)
    stuck: set[socket.socket] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{self.port}"
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends everything."""
        self._sockets.append(self._listener)
        self.drop()

    def drop(self) -> None:
        """Ends what is connected; others may connect."""
        while self._sockets:
            one = self._sockets.pop()
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.gate and not self.free.acquire(blocking=False):
                self.waiting.release()
                self.free.acquire()
            try:
                broker = socket.create_connection((LOOPBACK, self.broker_port))
            except OSError:
                client.close()
                continue
            self.connections += 1
            self._sockets += [client, broker]
            for source, target, from_broker in ((client, broker, False), (broker, client, True)):
                Thread(target=self._pass, args=(source, target, from_broker), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, from_broker: bool) -> None:
        with suppress(OSError):
            while (data := source.recv(65536)) and self._forward(data, source, target, from_broker):
                pass
        for one in (source, target) if target not in self.stuck else ():
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _forward(self, data: bytes, source: socket.socket, target: socket.socket, from_broker: bool) -> bool:
        """Passes on what one side says. False: the connection is to end."""
        if target not in self.stuck:
            target.sendall(data)
        return True
