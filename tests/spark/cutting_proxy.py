"""A way to the broker that breaks at a chosen word, once."""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.kit.process import LOOPBACK


class Proxy(ABC):
    """Listens for clients of a broker, and gives each of them a connection to it. What passes is for others to say."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self.connections = 0
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends everything."""
        self._end(self._listener)
        self.drop()

    def drop(self) -> None:
        """Ends what is connected; others may connect."""
        while self._sockets:
            self._end(self._sockets.pop())

    def _end(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection((LOOPBACK, self._broker_port))
            except OSError:
                self._end(client)
                continue
            self.connections += 1
            self._sockets += [client, broker]
            for source, target, from_broker in ((client, broker, False), (broker, client, True)):
                threading.Thread(target=self._pass, args=(source, target, from_broker), daemon=True).start()

    @abstractmethod
    def _pass(self, source: socket.socket, target: socket.socket, from_broker: bool) -> None:
        """Pass on what one side says until it ends."""


class CuttingProxy(Proxy):
    """Passes bytes between clients and a broker. The first time a word passes in its direction, the bytes before it are
    passed on, and both sides are closed; ``at_cut`` is called before that.
    """

    def __init__(
        self,
        broker_port: int,
        word: bytes,
        *,
        from_broker: bool = False,
        nth: int = 1,
        at_cut: Callable[[], object] = lambda: None,
    ) -> None:
        self._word = word
        self._from_broker = from_broker
        self._nth = nth
        self._at_cut = at_cut
        self._lock = threading.Lock()
        self.has_cut = False
        super().__init__(broker_port)

    def _pass(self, source: socket.socket, target: socket.socket, from_broker: bool) -> None:
        watched = from_broker == self._from_broker
        tail = b""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if watched and (kept := self._before_cut(tail, data)) is not None:
                    target.sendall(kept)
                    self._at_cut()
                    break
                target.sendall(data)
                tail = (tail + data)[-len(self._word) + 1 :] if len(self._word) > 1 else b""
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _before_cut(self, tail: bytes, data: bytes) -> bytes | None:
        """What may still pass, when this is where to cut."""
        with self._lock:
            if self.has_cut:
                return None
            seen = tail + data
            found = -1
            while (found := seen.find(self._word, found + 1)) >= 0:
                self._nth -= 1
                if not self._nth:
                    self.has_cut = True
                    return data[: max(0, found - len(tail))]
            return None


@contextmanager
def cutting(broker_port: int, word: bytes, **options: Any) -> Iterator[CuttingProxy]:
    """A proxy that is there for a while, and has to cut."""
    with contextlib.closing(CuttingProxy(broker_port, word, **options)) as proxy:
        yield proxy
        assert proxy.has_cut, f"{word!r} never passed"
