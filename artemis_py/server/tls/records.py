"""The TLS records of one connection: bytes of the network in and out, without a socket."""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from threading import Lock
from typing import Final, cast, final

_SLICE_BYTES: Final = 16_384
"""A memory BIO never gives back what it once held, so it is never given more than about one record."""


@final
class Records:
    """Handshake, then encryption. Only one thread at a time may call ``shake`` or ``read_into``. Any may call
    ``encrypt`` and ``end``: another thread encrypts parts of files.
    """

    __slots__ = ("_incoming", "_lock", "_outgoing", "_rest", "object")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._rest = memoryview(b"")
        """What arrived and is not in ``_incoming`` yet."""
        self._lock = Lock()
        self.object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def feed(self, data: memoryview) -> None:
        """Add bytes from the network; they are copied."""
        if self._rest:
            self._rest = memoryview(bytes(self._rest) + data)
        elif len(data) <= _SLICE_BYTES:
            self._incoming.write(data)
        else:
            self._incoming.write(data[:_SLICE_BYTES])
            self._rest = memoryview(bytes(data[_SLICE_BYTES:]))

    def _feed_rest(self) -> bool:
        """OpenSSL has used up what it had: give it the next slice; False if there is none."""
        if not self._rest:
            return False
        self._incoming.write(self._rest[:_SLICE_BYTES])
        self._rest = self._rest[_SLICE_BYTES:]
        return True

    def shake(self) -> bool:
        """Take the next step of the handshake; True if it is complete. Signs with the key, which takes a millisecond or
        more. Raises ssl.SSLError if it fails.
        """
        while True:
            try:
                self.object.do_handshake()
                break
            except ssl.SSLWantReadError:
                if not self._feed_rest():
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
        while at < len(buffer):
            try:
                count = cast(int, self.object.read(len(buffer) - at, buffer[at:]))
            except ssl.SSLWantReadError:
                if not self._feed_rest():
                    break
                continue
            if not count:
                return at, True
            at += count
        return at, False

    def encrypt(self, data: bytes | memoryview) -> bytes:
        """Return data as the bytes to send."""
        with self._lock:
            if len(data) <= _SLICE_BYTES:
                self.object.write(data)
                return self._outgoing.read()
            rest, records = memoryview(data), []
            while rest:
                rest = rest[self.object.write(rest[:_SLICE_BYTES]) :]
                records.append(self._outgoing.read())
            return b"".join(records)

    def end(self) -> bytes:
        """Return the bytes that end our side. Nothing more can be encrypted."""
        with self._lock:
            with suppress(ssl.SSLError, ValueError):  # the client has not ended its side, or has broken it
                self.object.unwrap()
            return self._outgoing.read()
