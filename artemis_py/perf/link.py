"""The broker to measure, and one connection to it, over TCP, TLS or WebSocket: login, subscriptions, disconnect. Bulk
traffic goes through ``pump.py``, for which this is a driver of its own: the socket changes hands, and blocks in the
kernel.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from artemis_py.client.endpoint import Endpoint
from artemis_py.errors import PerfError
from artemis_py.stomp.client import Client, ServerFrame

Headers = tuple[tuple[str, str], ...]
CONNECT_TIMEOUT_S: Final = 10.0
CONTROL_BYTES: Final = 64 * 1024
RECEIPTLESS_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Target:
    """A broker and the dialect it speaks.

    ``stall_s`` is how long nothing may move before a measurement is given up; ``receipts`` is False for a broker that
    sends none. ``trust`` is a file of certificates that a broker with TLS is checked against; None: no TLS.
    ``over_websocket``: frames are messages of WebSocket.
    """

    host: str
    port: int
    version: str = "1.2"
    login: str | None = None
    passcode: str | None = field(default=None, repr=False)
    queue_prefix: str = "/queue/"
    topic_prefix: str = "/topic/"
    connect_headers: Headers = ()
    subscribe_headers: Headers = ()
    send_headers: Headers = ()
    receipts: bool = True
    stall_s: float = 10.0
    trust: str | None = None
    over_websocket: bool = False

    @property
    def url(self) -> str:
        """``stomp://host:port``, an IPv6 host in brackets; with TLS ``stomp+ssl://host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'stomp' if self.trust is None else 'stomp+ssl'}://{host}:{self.port}"


def parse_url(url: str) -> Endpoint:
    """Where the broker at ``stomp://host:port`` is, and whether it speaks TLS. Raises PerfError."""
    found, parts = Endpoint.of(url), urlsplit(url)
    if found is None:
        raise PerfError(f"{url!r} is not a URL of a STOMP broker; write stomp://host:port")
    if parts.path not in ("", "/") or parts.query:
        raise PerfError(f"{url!r}: the URL takes only a user, host and port; use the options for headers")
    return found


def parse_header(text: str) -> tuple[str, str]:
    """``name:value`` as a pair; the value may hold further colons. Raises PerfError."""
    name, colon, value = text.partition(":")
    if not colon or not name or any(character in text for character in "\r\n\0"):
        raise PerfError(f"{text!r} is not a header; write name:value")
    return name, value


class Link:
    """A socket to the broker, in blocking mode except while a pump uses it.

    Every method raises PerfError when the broker sends ERROR, closes, or is silent for ``target.stall_s`` seconds, and
    StompError for what STOMP cannot carry.
    """

    __slots__ = ("_client", "_payloads", "sock", "target")

    def __init__(self, target: Target) -> None:
        self.target = target
        self._client = Client((target.version,))
        self._payloads = PayloadReader() if target.over_websocket else None
        self.sock = _connect(target)
        try:
            self.log_in()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket without DISCONNECT; safe to call twice."""
        self.sock.close()

    def log_in(self) -> None:
        """CONNECT."""
        target = self.target
        self.send(self._client.connect(target.host, target.login, target.passcode, target.connect_headers))
        answer = self.next_frame("CONNECTED")
        if answer.command != "CONNECTED":
            raise PerfError(f"{target.url} answered CONNECT with {answer.command}")

    def subscribe(self, destination: str, subscription: str = "0", confirm: bool = True) -> None:
        """SUBSCRIBE with ``ack:auto``; with ``confirm`` it returns only when the broker has confirmed it."""
        headers = (
            ("id", subscription),
            ("destination", destination),
            ("ack", "auto"),
            *self.target.subscribe_headers,
        )
        if not confirm:
            self.send(self._client.frame("SUBSCRIBE", headers))
        elif self.target.receipts:
            self.confirmed("SUBSCRIBE", headers)
        else:
            self.send(self._client.frame("SUBSCRIBE", headers))
            self._read_for(RECEIPTLESS_PAUSE_S)

    def confirmed(self, command: str, headers: Headers, body: bytes = b"") -> None:
        """Sends a frame and waits for its RECEIPT. Other frames before it are skipped."""
        receipt = self._client.next_receipt()
        self.send(self._client.frame(command, (*headers, ("receipt", receipt)), body))
        while True:
            answer = self.next_frame(f"RECEIPT of {command}")
            if answer.confirms(receipt):
                return

    def goodbye(self) -> int:
        """DISCONNECT, and close; returns how many MESSAGE frames arrived before the end."""
        self.sock.settimeout(self.target.stall_s)
        messages = 0
        try:
            if not self.target.receipts:
                self.send(self._client.frame("DISCONNECT", ()))
                return 0
            receipt = self._client.next_receipt()
            self.send(self._client.frame("DISCONNECT", (("receipt", receipt),)))
            while (answer := self._frame_or_end("RECEIPT of DISCONNECT")) is not None:
                if answer.confirms(receipt):
                    break
                messages += answer.command == "MESSAGE"
        finally:
            self.close()
        return messages

    def send(self, data: bytes) -> None:
        """Sends all of ``data``, which is whole frames."""
        try:
            self.sock.sendall(message(data) if self.target.over_websocket else data)
        except (TimeoutError, BlockingIOError) as error:
            raise PerfError(f"{self.target.url} accepted no bytes for {self.target.stall_s:g} s") from error
        except OSError as error:
            self._raise_last_words()
            raise PerfError(f"{self.target.url} closed the connection: {error.strerror or error}") from error

    def receive(self, awaited: str) -> bytes:
        """Some bytes, at least one; ``awaited`` says in errors what they should have been."""
        data = self._receive_or_end(awaited)
        if not data:
            raise PerfError(f"{self.target.url} closed the connection before {awaited}")
        return data

    def next_frame(self, awaited: str) -> ServerFrame:
        """The next frame; ``awaited`` names it in errors. A closed connection is an error."""
        found = self._frame_or_end(awaited)
        if found is None:
            raise PerfError(f"{self.target.url} closed the connection before {awaited}")
        return found

    def _receive_or_end(self, awaited: str) -> bytes:
        try:
            return self.sock.recv(CONTROL_BYTES)
        except (TimeoutError, BlockingIOError) as error:
            raise PerfError(f"{self.target.url} sent no {awaited} within {self.target.stall_s:g} s") from error
        except OSError:
            return b""

    def _frame_or_end(self, awaited: str) -> ServerFrame | None:
        """The next frame, None at the end of the stream. Raises PerfError for an ERROR frame."""
        while (found := self._client.next()) is None:
            data = self._receive_or_end(awaited)
            if not data:
                return None
            self._feed(data)
        raise_if_error(found)
        return found

    def _read_for(self, seconds: float) -> None:
        """Reads for a while: reports an ERROR, skips other frames."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(CONTROL_BYTES)
            except TimeoutError:
                break
            if not data:
                raise PerfError(f"{self.target.url} closed the connection after SUBSCRIBE")
            self._feed(data)
            for found in self._client.frames():
                raise_if_error(found)
        self.sock.settimeout(self.target.stall_s)

    def _raise_last_words(self) -> None:
        """An ERROR that the broker sent before it closed is a better message than the failed write."""
        self.sock.setblocking(False)
        try:
            while data := self.sock.recv(CONTROL_BYTES):
                self._feed(data)
        except OSError:
            pass
        for found in self._client.frames():
            raise_if_error(found)

    def wait_in_kernel(self) -> None:
        """Let the kernel time out after ``target.stall_s`` seconds. With Python's own timeout each call becomes two:
        poll() comes first.
        """
        limit = struct.pack("@ll", *divmod(int(self.target.stall_s * 1_000_000), 1_000_000))
        self.sock.settimeout(None)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def give_back(self, data: bytes) -> None:
        """Puts back bytes after the measured traffic, so that ``goodbye`` begins at a frame."""
        payloads = self._payloads
        self._client.feed(data if payloads is None else payloads.begin_inside(data))

    def _feed(self, data: bytes) -> None:
        payloads = self._payloads
        self._client.feed(data if payloads is None else payloads.feed(data))


def raise_if_error(found: ServerFrame) -> None:
    """Raises PerfError with the text of an ERROR frame."""
    if found.command == "ERROR":
        raise PerfError(f"the broker sent ERROR: {found.text}")


def _connect(target: Target) -> socket.socket:
    try:
        sock = socket.create_connection((target.host, target.port), timeout=CONNECT_TIMEOUT_S)
    except ConnectionRefusedError as error:
        raise PerfError(f"cannot connect to {target.url}: connection refused; is a broker listening there?") from error
    except OSError as error:
        raise PerfError(f"cannot connect to {target.url}: {error.strerror or error}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(target.stall_s)
    if target.trust is not None:
        sock = encrypted(sock, target)
    return upgraded(sock, target) if target.over_websocket else sock


# ---- TLS -------------------------------------------------------------------------------------------------------------
#
# A socket that behaves like a plain one under a selector.


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


# ---- WebSocket -------------------------------------------------------------------------------------------------------
#
# Just enough of it that the generator is not what is measured.


_MASK: Final = bytes(4)
"""It leaves the bytes as they are, so that frames can be rendered once; a broker has the same work with it."""
_TEXT: Final = 0x81
_CLOSE: Final = 0x8
_RESPONSE_BYTES_MAX: Final = 65536


def message(data: bytes) -> bytes:
    """A text message of a client."""
    size = len(data)
    if size < 126:
        return bytes((_TEXT, 0x80 | size)) + _MASK + data
    if size < 65536:
        return bytes((_TEXT, 0xFE)) + size.to_bytes(2, "big") + _MASK + data
    return bytes((_TEXT, 0xFF)) + size.to_bytes(8, "big") + _MASK + data


def upgraded(sock: socket.socket, target: Target) -> socket.socket:
    """Ask the broker for a WebSocket. Raises PerfError."""
    lines = (
        "GET / HTTP/1.1",
        f"Host: {target.host}:{target.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: v{target.version.replace('.', '')}.stomp",
    )
    response = b""
    try:
        sock.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        while b"\r\n\r\n" not in response and len(response) < _RESPONSE_BYTES_MAX:
            data = sock.recv(1)  # what follows is for others
            if not data:
                break
            response += data
    except OSError as error:
        sock.close()
        raise PerfError(f"no WebSocket with {target.url}: {error.strerror or error}") from error
    if not response.startswith(b"HTTP/1.1 101 "):
        sock.close()
        said = response.split(b"\r\n")[0].decode("latin-1")
        raise PerfError(f"no WebSocket with {target.url}: it answers {said or 'nothing'}")
    return sock


class PayloadReader:
    """Takes the frames of a broker apart."""

    __slots__ = ("_missing", "_pending")

    def __init__(self) -> None:
        self._pending = b""
        self._missing = 0
        """How many bytes of the current frame's payload are still to come."""

    def begin_inside(self, data: bytes) -> bytes:
        """Go on behind a message of which ``data`` has the last line feed, where there is one; returns the payload
        of what follows.
        """
        self._pending, self._missing = b"", 0
        return self.feed(data.removeprefix(b"\n"))

    def feed(self, data: bytes) -> bytes:
        """The payload in what was read, whatever kind of message it belongs to; none of control frames."""
        pending = self._pending + data
        payload = b""
        at = 0
        while at < len(pending):
            if not self._missing:
                size_at = at + 2
                if size_at > len(pending):
                    break
                size = pending[at + 1]
                if size >= 126:
                    size_at += 2 if size == 126 else 8
                    if size_at > len(pending):
                        break
                    size = int.from_bytes(pending[at + 2 : size_at], "big")
                if pending[at] & _CLOSE:
                    if size_at + size > len(pending):
                        break
                    at = size_at + size
                    continue
                at, self._missing = size_at, size
            part = pending[at : at + self._missing]
            payload += part
            at += len(part)
            self._missing -= len(part)
        self._pending = pending[at:]
        return payload
