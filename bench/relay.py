"""Not a broker: copies what it is sent to every subscriber unseen. The ceiling of event loop and load generator.

Run as ``python -m bench.relay PORT``. A connection's first frame must be CONNECT; one that then sends SUBSCRIBE becomes
a consumer. Everything else is passed on as it is, so frames arrive as SEND. It keeps nothing: without consumers the
bytes are lost.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Final

CONNECTED: Final = b"CONNECTED\nversion:1.2\n\n\0"
RECEIPT: Final = re.compile(rb"\nreceipt:([^\n]*)\n")
CONTROL: Final = (b"CONNECT\n", b"SUBSCRIBE\n", b"DISCONNECT\n")


class Relay(asyncio.Protocol):
    """One connection. ``consumers`` is shared by all."""

    def __init__(self, consumers: set[asyncio.Transport], producers: set[asyncio.Transport]) -> None:
        self._consumers = consumers
        self._producers = producers
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A socket was accepted."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(1 << 20)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        if self._transport is not None:
            self._consumers.discard(self._transport)
            self._producers.discard(self._transport)
        self.resume_writing()

    def pause_writing(self) -> None:
        """A consumer is slow: nothing more is read from producers."""
        for producer in self._producers:
            producer.pause_reading()

    def resume_writing(self) -> None:
        """The consumer has caught up."""
        for producer in self._producers:
            producer.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Passes a block on, or answers a control frame; a control frame always comes alone."""
        if not data.startswith(CONTROL):
            for consumer in self._consumers:
                consumer.write(data)
            return
        assert self._transport is not None
        if data.startswith(b"CONNECT\n"):
            self._producers.add(self._transport)
            self._transport.write(CONNECTED)
        elif data.startswith(b"SUBSCRIBE\n"):
            self._producers.discard(self._transport)
            self._consumers.add(self._transport)
        if receipt := RECEIPT.search(data):
            self._transport.write(b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt[1])


async def serve(port: int) -> None:
    """Listens on loopback until it is stopped."""
    consumers: set[asyncio.Transport] = set()
    producers: set[asyncio.Transport] = set()
    server = await asyncio.get_running_loop().create_server(lambda: Relay(consumers, producers), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
