"""TLS between a socket and its connection: the handshake, then records in and out."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import Any, Final, cast, final

from artemis_py import log_codes
from artemis_py.core.memory import TLS, TLS_CONNECTION_BYTES, Holdings
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.logins.networks import network_of
from artemis_py.server.proxy_protocol import Proxied
from artemis_py.server.tls.context import Loaded
from artemis_py.server.tls.handshakes import Handshakes
from artemis_py.server.transports import CLIENT_CERTIFICATE, ENCRYPT, break_cycle, shown_address

# ---- acceptor --------------------------------------------------------------------------------------------------------
#
# What the connections of one TLS acceptor share.


READ_BYTES: Final = 65536
RESULTS: Final = ("ok", "failed", "plain", "late", "left", "crowded")
"""How handshakes end: complete; refused by one side; the client spoke no TLS; it took too long; it left; too many."""


@final
class TlsAcceptor:
    """``loaded`` is replaced when the files change; open connections keep what they have. ``connect`` makes the
    protocol of a client whose handshake is complete.
    """

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        loaded: Loaded,
        connect: Callable[[Proxied | None], asyncio.BaseProtocol],
        handshakes: Handshakes,
        handshake_s: float,
        limited_log: RateLimitedLog,
        holdings: Holdings,
    ) -> None:
        self.name = name
        self.loop = loop
        self.loaded = loaded
        self.make_protocol = connect
        self.handshakes = handshakes
        self.handshake_s = handshake_s
        """How long a handshake may take; 0: no limit."""
        self.counts = dict.fromkeys(RESULTS, 0)
        self.buffer = memoryview(bytearray(READ_BYTES))
        """What was just read from any socket, encrypted."""
        self.plain = memoryview(bytearray(READ_BYTES))
        """What was just decrypted, for protocols without a buffer of their own."""
        self.reloads = 0
        """How often changed files were loaded."""
        self.reload_failure: str | None = None
        """Why the files as they are now are not used; None if they are."""
        self.broken_count = 0
        """Connections closed after the handshake, because something else than TLS arrived."""
        self._limited_log = limited_log
        self._holdings = holdings

    @property
    def expires_s(self) -> float:
        """When the certificate of new connections expires, in seconds since 1970."""
        return self.loaded.expires_s

    @property
    def is_stale(self) -> bool:
        """Has a file changed that could not be used?"""
        return self.reload_failure is not None

    def ended(self, result: str, peer: str, reason: str) -> None:
        """A handshake has ended. A failure is logged, a few times in ten seconds."""
        self.counts[result] += 1
        if result not in ("ok", "left"):
            line, kind = f"warning: no TLS connection: {reason}", f"{self.name} {result}"
            self._limited_log.write(line, kind, code=log_codes.TLS, acceptor=self.name, from_=peer)

    def broken(self, peer: str, reason: str) -> None:
        """A client sent something that is not what TLS expects here."""
        self.broken_count += 1
        line = f"warning: TLS connection closed: {reason}"
        self._limited_log.write(line, f"{self.name} broken", code=log_codes.TLS, acceptor=self.name, from_=peer)

    def hold(self, count: int) -> None:
        """Count memory for one connection more (1) or less (-1)."""
        self._holdings.move(TLS, count * TLS_CONNECTION_BYTES)


# ---- records ---------------------------------------------------------------------------------------------------------
#
# The TLS records of one connection: bytes of the network in and out, without a socket.


SLICE_BYTES: Final = 16_384
"""A memory BIO never gives back what it once held, so it is never given more than about one record."""


@final
class Records:
    """Handshake, then encryption. Only one thread at a time may call ``shake`` or ``read_into``. Any may call
    ``encrypt`` and ``end``: another thread encrypts parts of files.
    """

    __slots__ = ("_incoming", "_lock", "_outgoing", "_read", "_rest", "object")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._rest = memoryview(b"")
        """What arrived and is not in ``_incoming`` yet."""
        self._lock = Lock()
        self.object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._read = cast(Callable[[int, memoryview], int], self.object.read)
        """Reads into a buffer, and returns how much. Its declared type is that without a buffer, which returns bytes;
        compiled code would insist on them.
        """

    def feed(self, data: memoryview) -> None:
        """Add bytes from the network; they are copied."""
        if self._rest:
            self._rest = memoryview(bytes(self._rest) + data)
        elif len(data) <= SLICE_BYTES:
            self._incoming.write(data)
        else:
            self._incoming.write(data[:SLICE_BYTES])
            self._rest = memoryview(bytes(data[SLICE_BYTES:]))

    def _feed_rest(self) -> bool:
        """OpenSSL has used up what it had: give it the next slice; False if there is none."""
        if not self._rest:
            return False
        self._incoming.write(self._rest[:SLICE_BYTES])
        self._rest = self._rest[SLICE_BYTES:]
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
                count = self._read(len(buffer) - at, buffer[at:])
            except ssl.SSLWantReadError:
                if not self._feed_rest():
                    break
                continue
            if not count:
                return at, True
            at += count
            if not self._incoming.pending and not self._rest:
                break  # there was room for more of this record; asking again would raise an error
        return at, False

    def encrypt(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return data as the bytes to send."""
        with self._lock:
            if len(data) <= SLICE_BYTES:
                self.object.write(data)
                return self._outgoing.read()
            rest, records = memoryview(data), []
            while rest:
                count = self.object.write(rest[:SLICE_BYTES])  # within a slice, compiled code would write twice
                rest = rest[count:]
                records.append(self._outgoing.read())
            return b"".join(records)

    def end(self) -> bytes:
        """Return the bytes that end our side. Nothing more can be encrypted."""
        with self._lock:
            with suppress(ssl.SSLError, ValueError):  # the client has not ended its side, or has broken it
                self.object.unwrap()
            return self._outgoing.read()


# ---- plain -----------------------------------------------------------------------------------------------------------
#
# Clients that speak plain text to a port with TLS: what they speak, and an answer that they understand.


_HANDSHAKE: Final = 22
"""The first byte of each TLS connection: a record of the type handshake (RFC 8446, 5.1)."""
_STOMP: Final = (b"CONNECT", b"STOMP", b"\nCONNECT", b"\r\nCONNECT")
_HTTP: Final = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ")
_HINT: Final = b"This port speaks TLS only"


def is_tls(data: memoryview) -> bool:
    """Do a client's first bytes begin a TLS handshake?"""
    return data[0] == _HANDSHAKE


def spoken(data: memoryview) -> str:
    """The name of the protocol that begins with these bytes."""
    start = bytes(data[:16])
    if start.startswith(_STOMP):
        return "STOMP"
    return "HTTP" if start.startswith(_HTTP) else "something"


def answer_to(data: memoryview) -> bytes:
    """An answer in the client's own protocol; empty if that is not known."""
    protocol = spoken(data)
    if protocol == "STOMP":
        return b"ERROR\nmessage:%s\n\n\0" % _HINT
    if protocol == "HTTP":
        body = _HINT + b": use https\n"
        head = (
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
        )
        return head % len(body) + body
    return b""


# ---- transport -------------------------------------------------------------------------------------------------------
#
# What a STOMP or HTTP connection sees as its socket, while TLS is between it and the real one.


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
            self._raw.write(self._records.encrypt(data))

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
        """The limits at which the protocol must pause and may resume: low, high."""
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


# ---- connection ------------------------------------------------------------------------------------------------------
#
# TLS between a socket and a STOMP or HTTP connection: the handshake, then records in and bytes out.


_REASONS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not accepted",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate (needClientAuth)",
    "UNSUPPORTED_PROTOCOL": "it speaks only versions that enabledProtocols leaves out",
    "NO_SHARED_CIPHER": "it has none of the enabled cipher suites",
    "CALLBACK_FAILED": "it asked for a server name that sniHost does not match",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the broker's certificate: the issuer is not in its trust store",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept the broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it says that the broker's certificate has expired",
}


@final
class TlsConnection(asyncio.BufferedProtocol):
    """The protocol of the socket. Reads into the acceptor's one buffer, so a connection without traffic holds none."""

    __slots__ = (
        "_deadline", "_has_all", "_is_due", "_is_shaking", "_peer", "_protocol", "_proxied", "_raw", "_records",
        "_acceptor", "_transport", "network",
    )  # fmt: skip

    def __init__(self, acceptor: TlsAcceptor, proxied: Proxied | None = None) -> None:
        self._acceptor = acceptor
        self._proxied = proxied
        self._raw: asyncio.Transport | None = None
        self._records: Records | None = None
        """None until the client's first bytes."""
        self._protocol: asyncio.BaseProtocol | None = None
        """Who gets the decrypted bytes; None until the handshake is complete."""
        self._transport: TlsTransport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_shaking = False
        """Is the handshake under way?"""
        self._has_all = False
        """Has the client ended its side?"""
        self._is_due = False
        """Will input be delivered in the next round of the event loop?"""
        self._peer = ""
        self.network = ""

    # ---- the handshake ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client was accepted; it speaks first."""
        acceptor = self._acceptor
        self._raw = cast(asyncio.Transport, transport)
        proxied = self._proxied
        if proxied is None:
            peer = transport.get_extra_info("peername")
            self._peer, host = shown_address(peer), peer[0] if peer else ""
        else:
            self._peer, host = proxied.address, proxied.host
        self.network = network_of(host)
        acceptor.handshakes.begin(self)
        self._is_shaking = True
        if acceptor.handshake_s:
            setting = "sslHandshakeTimeout or handshakeTimeout of the acceptor"
            late = f"the handshake took longer than {acceptor.handshake_s:g} s ({setting})"
            self._deadline = acceptor.loop.call_later(acceptor.handshake_s, self.give_up, "late", late)

    def _receive(self, data: memoryview) -> None:
        """Bytes of the handshake arrived."""
        assert self._raw is not None
        if self._records is None:
            if not is_tls(data):
                self._raw.write(answer_to(data))
                self.give_up("plain", f"it speaks {spoken(data)} without TLS; it must use TLS on this port")
                return
            self._records = Records(self._acceptor.loaded.context)
            self._acceptor.hold(1)
        self._records.feed(data)
        self._raw.pause_reading()
        self._acceptor.handshakes.step(self._records.shake, self._handshake_step_done)

    def _handshake_step_done(self, step: Future[bool]) -> None:
        raw, records = self._raw, self._records
        if raw is None or records is None or raw.is_closing():
            return
        if not step.cancelled():
            raw.write(records.take())  # after a failure this is the alert that says why
        failure = None if step.cancelled() else step.exception()
        if failure is not None:
            self.give_up("failed", _reason_of(failure))
        elif not step.cancelled() and step.result():
            self._open(raw, records)
        else:
            raw.resume_reading()

    def _open(self, raw: asyncio.Transport, records: Records) -> None:
        """The handshake is complete."""
        self._end_handshake("ok", "")
        self._protocol = self._acceptor.make_protocol(self._proxied)
        self._transport = TlsTransport(raw, records, self._protocol, self._let_read)
        self._protocol.connection_made(self._transport)
        self._let_read(self._transport.is_reading())

    def give_up(self, result: str, reason: str) -> None:
        """Close a connection whose handshake is not complete."""
        self._end_handshake(result, reason)
        if self._raw is not None:
            self._raw.close()
            if self._raw.get_write_buffer_size():
                self._raw.abort()  # somebody who does not even read the alert

    def _end_handshake(self, result: str, reason: str) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._is_shaking:
            self._is_shaking = False
            self._acceptor.handshakes.end(self)
            self._acceptor.ended(result, self._peer, reason)

    # ---- input -----------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the socket's bytes go."""
        return self._acceptor.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes arrived."""
        data = self._acceptor.buffer[:nbytes]
        if self._protocol is None:
            self._receive(data)
        elif self._records is not None and not self._has_all and self._transport and not self._transport.has_ended:
            self._records.feed(data)
            self._deliver()

    def _deliver(self) -> None:
        """Give the protocol what can be decrypted, while it reads."""
        records, transport, protocol = self._records, self._transport, self._protocol
        while records is not None and transport is not None and transport.is_reading() and not self._has_all:
            is_buffered = isinstance(protocol, asyncio.BufferedProtocol)
            buffer = protocol.get_buffer(-1) if isinstance(protocol, asyncio.BufferedProtocol) else self._acceptor.plain
            try:
                count, self._has_all = records.read_into(cast(memoryview, buffer))
            except ssl.SSLError as error:
                self._break(error)
                return
            if count and is_buffered:
                cast(asyncio.BufferedProtocol, protocol).buffer_updated(count)
            elif count:
                cast(asyncio.Protocol, protocol).data_received(bytes(self._acceptor.plain[:count]))
            if self._has_all:
                self._end_received()
            elif count < len(buffer):  # type: ignore[arg-type]  # a buffer has a length
                break
            records = self._records

    def _end_received(self) -> None:
        """The client has ended its side."""
        protocol = cast(asyncio.BufferedProtocol, self._protocol)
        if not protocol.eof_received() and self._transport is not None:
            self._transport.close()

    def _break(self, error: ssl.SSLError) -> None:
        """The client sent something that is no TLS record: send an alert, and close."""
        raw, records = self._raw, self._records
        if raw is not None and records is not None:
            raw.write(records.take())
            raw.close()
            self._acceptor.broken(self._peer, _reason_of(error))

    def _let_read(self, reads: bool) -> None:
        """The protocol wants input, or no more of it. What is decrypted already comes first, in the next round."""
        raw = self._raw
        if raw is None or raw.is_closing():
            return
        if not reads:
            raw.pause_reading()
        elif not self._is_due:
            self._is_due = True
            self._acceptor.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        try:
            self._deliver()
        except Exception:
            if self._raw is not None:
                self._raw.abort()
            raise
        raw, transport = self._raw, self._transport
        if raw is not None and transport is not None and transport.is_reading():
            raw.resume_reading()

    def eof_received(self) -> bool:
        """The client closed the socket's other direction, with or without ending TLS first."""
        if self._protocol is None:
            return False
        if not self._has_all:
            self._has_all = True
            return bool(cast(asyncio.BufferedProtocol, self._protocol).eof_received())
        return True

    # ---- output and the end ----------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client does not read fast enough."""
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The client has read."""
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._end_handshake("left", "it left")
        if self._raw is not None:
            break_cycle(self._raw)
        if self._records is not None:
            self._acceptor.hold(-1)
        protocol, self._protocol = self._protocol, None
        self._raw = self._records = self._transport = None
        if protocol is not None:
            protocol.connection_lost(exc)


def _reason_of(error: BaseException) -> str:
    """Why a handshake failed, in words."""
    reason = getattr(error, "reason", None) or ""
    words = _REASONS.get(reason) or reason.replace("_", " ").lower() or str(error)
    detail = getattr(error, "verify_message", "")
    return f"{words}: {detail}" if detail else words
