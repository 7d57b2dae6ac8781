"""TLS for the load generator: a socket that behaves like a plain one under a selector."""

from __future__ import annotations

import socket
import ssl
from typing import Any, Final

from artemis_py.errors import PerfError
from artemis_py.perf.target import Target

_RECORD_BYTES: Final = 16_384
"""The largest record. With this much room a read leaves nothing behind that a selector does not see."""


class TlsSocket(ssl.SSLSocket):
    """Raises BlockingIOError where a plain socket would, and fills a buffer with all records that have arrived."""

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        """Read what has arrived."""
        view = memoryview(buffer)
        at = 0
        while at == 0 or (len(view) - at >= _RECORD_BYTES and self.timeout == 0):
            try:
                count = super().recv_into(view[at:])
            except ssl.SSLWantReadError:
                break
            if not count:
                return at
            at += count
        if not at:
            raise BlockingIOError
        return at

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Read some bytes."""
        try:
            return super().recv(buflen, flags)
        except ssl.SSLWantReadError:
            raise BlockingIOError from None

    def send(self, data: Any, flags: int = 0) -> int:
        """Send some bytes. After a BlockingIOError, the same bytes must come again."""
        try:
            return super().send(data, flags)
        except ssl.SSLWantWriteError:
            raise BlockingIOError from None


def encrypted(sock: socket.socket, target: Target) -> socket.socket:
    """Shake hands with a broker whose certificate ``target.trust`` (a file) has issued or is. Raises PerfError."""
    try:
        context = ssl.create_default_context(cafile=target.trust)
        context.sslsocket_class = TlsSocket
        return context.wrap_socket(sock, server_hostname=target.host)
    except OSError as error:
        sock.close()
        reason = getattr(error, "verify_message", "") or error.strerror or str(error)
        raise PerfError(f"no TLS with {target.url}: {reason}") from error
