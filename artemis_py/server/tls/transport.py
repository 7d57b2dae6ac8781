"""What a STOMP or HTTP connection sees as its socket, while TLS is between it and the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, final

from artemis_py.server.tls.records import Records
from artemis_py.server.transports import CLIENT_CERTIFICATE, ENCRYPT


@final
class TlsTransport(asyncio.Transport):
    """Writes records to ``raw``, the transport of the socket. ``let_read`` starts and stops the delivery of input."""

    __slots__ = ("_has_ended", "_let_read", "_protocol", "_raw", "_reads", "_records")

    def __init__(
        self,
        raw: asyncio.Transport,
        records: Records,
        protocol: asyncio.BaseProtocol,
        let_read: Callable[[bool], None],
    ) -> None:
        super().__init__()
        self._raw = raw
        self._records = records
        self._protocol = protocol
        self._let_read = let_read
        self._reads = True
        self._has_ended = False
        """Has our side ended?"""

    # ---- input -----------------------------------------------------------------------------------

    def is_reading(self) -> bool:
        """Does the protocol get input?"""
        return self._reads and not self._raw.is_closing()

    def pause_reading(self) -> None:
        """Deliver no input for now."""
        if self._reads:
            self._reads = False
            self._let_read(False)

    def resume_reading(self) -> None:
        """Deliver input again."""
        if not self._reads:
            self._reads = True
            self._let_read(True)

    # ---- output ----------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send."""
        if data and not self._has_ended and not self._raw.is_closing():
            self._raw.write(self._records.encrypt(memoryview(data)))

    def can_write_eof(self) -> bool:
        """TLS ends each direction by itself, and so does the socket below."""
        return True

    def write_eof(self) -> None:
        """End our side after what was written; the client may still send, but nothing is read any more."""
        self._end()
        if not self._raw.is_closing():
            self._raw.write_eof()

    def _end(self) -> None:
        if not self._has_ended and not self._raw.is_closing():
            self._has_ended = True
            self._raw.write(self._records.end())

    def get_write_buffer_size(self) -> int:
        """How many bytes wait for the client to read, encrypted."""
        return self._raw.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """The limits at which the protocol is told to pause and resume: low, high."""
        return self._raw.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set these limits."""
        self._raw.set_write_buffer_limits(high, low)

    # ---- the end ---------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """Has our side ended? Then nobody waits for input any more."""
        return self._has_ended

    def is_closing(self) -> bool:
        """Is the connection closed, or about to be?"""
        return self._raw.is_closing()

    def close(self) -> None:
        """Close after what was written."""
        self._end()
        self._raw.close()

    def abort(self) -> None:
        """Close at once."""
        self._raw.abort()

    # ---- what it is ------------------------------------------------------------------------------

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who gets the input."""
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As of the socket; and ``ssl_object``, ``CLIENT_CERTIFICATE`` and ``ENCRYPT``."""
        if name == CLIENT_CERTIFICATE:
            return self._records.certificate()
        if name == ENCRYPT:
            return self._records.encrypt
        if name == "ssl_object":
            return self._records.object
        if name == "sslcontext":
            return self._records.object.context
        return self._raw.get_extra_info(name, default)
