"""One connection to the broker: login, subscriptions, disconnect. Bulk traffic goes through ``pump.py``, for which this
is a driver of its own: the socket changes hands, blocks in the kernel, and may be a WebSocket.
"""

from __future__ import annotations

import socket
import struct
import time
from types import TracebackType
from typing import Final, Self

from artemis_py.errors import PerfError
from artemis_py.perf.target import Headers, Target
from artemis_py.perf.websocket import PayloadReader, message, upgraded
from artemis_py.stomp.client import Client, ServerFrame

CONNECT_TIMEOUT_S: Final = 10.0
CONTROL_BYTES: Final = 64 * 1024
RECEIPTLESS_PAUSE_S: Final = 0.5


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
        from artemis_py.perf.tls import encrypted

        sock = encrypted(sock, target)
    return upgraded(sock, target) if target.over_websocket else sock
