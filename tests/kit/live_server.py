"""A real server on a real loop, with clients on real sockets, and a look at which objects there are."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from artemis_py.config.reader import loads
from artemis_py.server.server import Server
from artemis_py.stomp.wire.dialect import Dialect
from tests.kit.frames import frame

CONNECT: Final = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"
ROUNDS_MAX: Final = 20_000
"""How many rounds of the loop something may take."""
STEPS: Final = 4
"""How often something is done while objects are counted; what each step leaves comes so often. The broker's own timers
come and go meanwhile.
"""
_OF_OTHERS: Final = ("socket", "TransportSocket", "_SelectorSocketTransport", "frame", "traceback", "method")
"""Types of Python's own of which a closed connection must not leave any."""
_KEPT: Final = frozenset({"AddressSettings", "Shape", "Send", "Head", "Route", "_Window", "Event", "HeaderName"})
"""Kept in tables that have a bound: settings by address, header blocks that were met, lines of the log."""


class LiveServer:
    """A broker with one STOMP acceptor and one for HTTP, which stores below ``directory``."""

    def __init__(self, directory: Path, acceptor: str = "", core: str = "") -> None:
        gc.collect()
        gc.freeze()  # what other tests left is not counted again and again
        folders = "".join(
            f"<{name}-directory>{directory / name}</{name}-directory>"
            for name in ("journal", "bindings", "paging", "large-messages")
        )
        config = loads(
            f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
            {folders}<journal-file-size>1MiB</journal-file-size>
            <acceptors>
            <acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/;{acceptor}</acceptor>
            <acceptor name="http">tcp://127.0.0.1:0?protocols=HTTP</acceptor>
            </acceptors>{core}</core></configuration>"""
        )
        self.loop = asyncio.new_event_loop()
        self.server = Server(config, self.loop, asyncio.Event())
        self.broker = self.server.broker
        self.server._exporter.prepare()  # which else happens some time after the start
        self.loop.run_until_complete(self.server.listen())
        self.readers: list[Client] = []
        """Clients that stay; closed with the broker."""
        self.stomp_port, self.http_port = (port for _, _, port in self.server.ports.bound)

    def close(self) -> None:
        """Stop the broker."""
        for reader in self.readers:
            reader.socket.close()
        self.loop.run_until_complete(self.server.stop())
        self.loop.close()

    def dialects(self) -> list[Dialect]:
        """Those of the STOMP acceptor."""
        found = [each for each in gc.get_objects() if isinstance(each, Dialect)]
        return [each for each in found if each.limits.subscriptions_max]

    def rounds(self, what: str) -> Iterator[None]:
        """Let the loop go round again and again, for something that has to be so soon."""
        for _ in range(ROUNDS_MAX):
            yield
            self.loop.run_until_complete(asyncio.sleep(0.0001))
        raise AssertionError(f"never reached: {what}")

    def until(self, reached: Callable[[], bool], what: str) -> None:
        """Let the loop go round until something is so."""
        for _ in self.rounds(what):
            if reached():
                return

    def greeted(self, *headers: str, unread: bool = False) -> Client:
        """A client that has its CONNECTED."""
        client = Client(self, unread=unread)
        client.send(frame("CONNECT", "accept-version:1.2", "host:x", *headers))
        client.expect(b"CONNECTED")
        return client


class Client:
    """One socket, connected; ``unread`` makes its buffer small."""

    def __init__(self, stage: LiveServer, *, http: bool = False, unread: bool = False) -> None:
        self._stage = stage
        self.socket = socket.socket()
        if unread:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        before = stage.server.stats.connections_total
        self.socket.connect(("127.0.0.1", stage.http_port if http else stage.stomp_port))
        self.socket.setblocking(False)
        if not http:
            stage.until(lambda: stage.server.stats.connections_total > before, "the connection is accepted")
        self.received = b""

    def send(self, data: bytes) -> None:
        """Send all of it; the broker has to read it all."""
        view = memoryview(data)
        for _ in self._stage.rounds(f"{len(data)} bytes are sent"):
            with suppress(BlockingIOError):
                view = view[self.socket.send(view) :]
            if not view:
                return

    def expect(self, wanted: bytes) -> bytes:
        """Read until ``wanted`` has come."""
        for _ in self._stage.rounds(f"{wanted!r} comes"):
            with suppress(BlockingIOError):
                self.received += self.socket.recv(65536)
            if wanted in self.received:
                break
        received, self.received = self.received, b""
        return received


def census() -> Counter[str]:
    """How many objects there are of each type that is the broker's or that holds on to something of it."""
    counts: Counter[str] = Counter()
    for each in gc.get_objects():
        kind = type(each)
        name = kind.__qualname__
        if name in _OF_OTHERS or (str(kind.__module__).startswith(("artemis_py", "h11")) and name not in _KEPT):
            counts[name] += 1
    return counts


@contextmanager
def no_collector() -> Iterator[None]:
    """Only counting references frees anything."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
