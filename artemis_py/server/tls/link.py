"""TLS between a socket and its connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, cast, final

from artemis_py.server.logins.networks import network_of
from artemis_py.server.tls.records import Records
from artemis_py.server.tls.site import TlsSite
from artemis_py.server.transports import CLIENT_CERTIFICATE, ENCRYPT, break_cycle, shown_address

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


# ---- link ------------------------------------------------------------------------------------------------------------
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
class TlsLink(asyncio.BufferedProtocol):
    """The protocol of the socket. Reads into the site's one buffer, so a connection without traffic holds none."""

    __slots__ = (
        "_deadline", "_has_all", "_is_due", "_is_shaking", "_peer", "_protocol", "_raw", "_records", "_site",
        "_transport", "network",
    )  # fmt: skip

    def __init__(self, site: TlsSite) -> None:
        self._site = site
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
        site = self._site
        self._raw = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._peer = shown_address(peer)
        self.network = network_of(peer[0] if peer else "")
        site.handshakes.begin(self)
        self._is_shaking = True
        if site.handshake_s:
            setting = "sslHandshakeTimeout or handshakeTimeout of the acceptor"
            late = f"the handshake took longer than {site.handshake_s:g} s ({setting})"
            self._deadline = site.loop.call_later(site.handshake_s, self.give_up, "late", late)

    def _receive(self, data: memoryview) -> None:
        """Bytes of the handshake arrived."""
        assert self._raw is not None
        if self._records is None:
            if not is_tls(data):
                self._raw.write(answer_to(data))
                self.give_up("plain", f"it speaks {spoken(data)} without TLS; it must use TLS on this port")
                return
            self._records = Records(self._site.loaded.context)
            self._site.hold(1)
        self._records.feed(data)
        self._raw.pause_reading()
        self._site.handshakes.step(self._records, self._shook)

    def _shook(self, step: Future[bool]) -> None:
        raw, records = self._raw, self._records
        if raw is None or records is None or raw.is_closing():
            return
        if not step.cancelled():
            raw.write(records.take())  # after a failure this is the alert that says why
        failure = None if step.cancelled() else step.exception()
        if failure is not None:
            self.give_up("failed", _told(failure))
        elif not step.cancelled() and step.result():
            self._open(raw, records)
        else:
            raw.resume_reading()

    def _open(self, raw: asyncio.Transport, records: Records) -> None:
        """The handshake is complete."""
        self._end_handshake("ok", "")
        self._protocol = self._site.make_protocol()
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
            self._site.handshakes.end(self)
            self._site.ended(result, self._peer, reason)

    # ---- input -----------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the socket's bytes go."""
        return self._site.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes arrived."""
        data = self._site.buffer[:nbytes]
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
            buffer = protocol.get_buffer(-1) if isinstance(protocol, asyncio.BufferedProtocol) else self._site.plain
            try:
                count, self._has_all = records.read_into(cast(memoryview, buffer))
            except ssl.SSLError as error:
                self._break(error)
                return
            if count and is_buffered:
                cast(asyncio.BufferedProtocol, protocol).buffer_updated(count)
            elif count:
                cast(asyncio.Protocol, protocol).data_received(bytes(self._site.plain[:count]))
            if self._has_all:
                self._tell_end()
            elif count < len(buffer):  # type: ignore[arg-type]  # a buffer has a length
                break
            records = self._records

    def _tell_end(self) -> None:
        """The client has ended its side."""
        protocol = cast(asyncio.BufferedProtocol, self._protocol)
        if not protocol.eof_received() and self._transport is not None:
            self._transport.close()

    def _break(self, error: ssl.SSLError) -> None:
        """The client sent what is no TLS record: tell it by an alert, and close."""
        raw, records = self._raw, self._records
        if raw is not None and records is not None:
            raw.write(records.take())
            raw.close()
            self._site.broken(self._peer, _told(error))

    def _let_read(self, reads: bool) -> None:
        """The protocol wants input, or no more of it. What is decrypted already comes first, in the next round."""
        raw = self._raw
        if raw is None or raw.is_closing():
            return
        if not reads:
            raw.pause_reading()
        elif not self._is_due:
            self._is_due = True
            self._site.loop.call_soon(self._go_on)

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
            self._site.hold(-1)
        protocol, self._protocol = self._protocol, None
        self._raw = self._records = self._transport = None
        if protocol is not None:
            protocol.connection_lost(exc)


def _told(error: BaseException) -> str:
    """Why a handshake failed, in words."""
    reason = getattr(error, "reason", None) or ""
    words = _REASONS.get(reason) or reason.replace("_", " ").lower() or str(error)
    detail = getattr(error, "verify_message", "")
    return f"{words}: {detail}" if detail else words
