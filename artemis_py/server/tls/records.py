"""The TLS records of one connection: bytes of the network in and out, without a socket."""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from threading import Lock
from typing import final


@final
class Records:
    """Handshake, then encryption. Only one thread at a time may call ``shake`` or ``read_into``. Any may call
    ``encrypt`` and ``end``: another thread encrypts parts of files.
    """

    __slots__ = ("_incoming", "_lock", "_outgoing", "object")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._lock = Lock()
        self.object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def feed(self, data: memoryview) -> None:
        """Add bytes from the network."""
        self._incoming.write(data)

    def shake(self) -> bool:
        """Take the next step of the handshake; True if it is complete. Signs with the key, which takes a millisecond or
        more. Raises ssl.SSLError if it fails.
        """
        try:
            self.object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        if self.object.session_reused:
            self._check_again()
        return True

    def _check_again(self) -> None:
        """OpenSSL does not verify a resumed session again, so look whether the certificate has expired meanwhile. New
        lists of revoked certificates come with a new context, which resumes no session of an old one.
        """
        certificate = self.object.getpeercert() or {}
        until = certificate.get("notAfter")
        if isinstance(until, str) and ssl.cert_time_to_seconds(until) <= time.time():
            raise ssl.SSLError("its certificate is not accepted: it has expired since the session that is resumed")

    def take(self) -> bytes:
        """The bytes to send to the network, other than those that ``encrypt`` and ``end`` return."""
        return self._outgoing.read()

    def certificate(self) -> bytes | None:
        """The client's verified certificate as DER; None if it has none."""
        return self.object.getpeercert(binary_form=True)

    def read_into(self, buffer: memoryview) -> tuple[int, bool]:
        """Decrypt into a buffer. Return the number of bytes, and whether the client has ended its side. Raises
        ssl.SSLError.
        """
        at = 0
        try:
            while at < len(buffer):
                count = self.object.read(len(buffer) - at, buffer[at:])
                if not count:
                    return at, True
                at += count  # type: ignore[operator]  # a number, with a buffer
        except ssl.SSLWantReadError:
            pass
        return at, False

    def encrypt(self, data: bytes | memoryview) -> bytes:
        """Return data as the bytes to send."""
        rest = memoryview(data)
        with self._lock:
            while rest:
                rest = rest[self.object.write(rest) :]
            return self._outgoing.read()

    def end(self) -> bytes:
        """Return the bytes that end our side. Nothing more can be encrypted."""
        with self._lock:
            with suppress(ssl.SSLError, ValueError):  # the client has not ended its side, or has broken it
                self.object.unwrap()
            return self._outgoing.read()
