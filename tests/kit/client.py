"""A STOMP client of sockets and bytes alone, for what no library would do: half frames, silence, sudden ends."""

from __future__ import annotations

import itertools
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress

from tests.kit.frames import ServerFrame, ServerStream
from tests.kit.process import LOOPBACK, WAIT_S

READ_BYTES = 262144
INSTANT_S = 0.001
"""What has come already is read, even when there is no time left to wait."""


def frame(command: str, headers: Mapping[str, object] | None = None, body: bytes = b"") -> bytes:
    """A frame whose headers need no escapes; its content-length comes with its body."""
    lines = [command, *(f"{name}:{value}" for name, value in (headers or {}).items())]
    if body:
        lines.append(f"content-length:{len(body)}")
    return ("\n".join(lines) + "\n\n").encode() + body + b"\0"


class Closed(AssertionError):
    """The broker closed the connection where a frame was expected."""


class StompSocket(closing["StompSocket"]):
    """One connection. Frames arrive in order; nothing is answered that the test does not send."""

    def __init__(
        self,
        port: int,
        *,
        wait_s: float = WAIT_S,
        receive_buffer_bytes: int | None = None,
        tls: ssl.SSLContext | None = None,
        own_address: str | None = None,
    ) -> None:
        """``wait_s``: how long it waits for a frame; ``own_address``: the IP address from which it connects."""
        super().__init__(self)
        self.socket = socket.socket()
        if own_address is not None:
            self.socket.bind((own_address, 0))
        self.socket.settimeout(wait_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.connect((LOOPBACK, port))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.stream = ServerStream()
        self.wait_s = wait_s
        self._numbers = itertools.count(1)
        self._kept: deque[ServerFrame] = deque()
        """Messages that came before an answer."""
        self.heard = 0.0
        """When something came last, in steady time."""

    # ---- out -------------------------------------------------------------------------------------

    def connect(self, version: str = "1.2", /, **headers: object) -> ServerFrame:
        """Says CONNECT and takes the CONNECTED; underscores in names stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.send("CONNECT", {"accept-version": version, "host": "broker", **named})
        return self.expect("CONNECTED")

    def send(self, command: str, headers: Mapping[str, object] | None = None, body: bytes = b"") -> None:
        """Sends one frame."""
        self.raw(frame(command, headers, body))

    def raw(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self.socket.settimeout(self.wait_s)
        self.socket.sendall(data)

    def request(self, command: str, headers: Mapping[str, object] | None = None, body: bytes = b"") -> ServerFrame:
        """Sends a frame with a receipt; returns the RECEIPT or ERROR. Messages that come before it are kept."""
        receipt = f"receipt-{next(self._numbers)}"
        self.send(command, {**(headers or {}), "receipt": receipt}, body)
        answer = self.answer()
        assert answer.command != "RECEIPT" or answer.header("receipt-id") == receipt, answer.text
        return answer

    def ask(self, command: str, headers: Mapping[str, object] | None = None, body: bytes = b"") -> None:
        """Sends a frame with a receipt and waits for it; messages that come before it are kept."""
        answer = self.request(command, headers, body)
        assert answer.command == "RECEIPT", answer.text

    def publish(self, destination: str, bodies: Iterable[object], **headers: object) -> None:
        """Sends persistent messages, numbers as digits; the receipt of the last one vouches for all."""
        sent = {"destination": destination, "persistent": "true", **headers}
        *first, last = (body if isinstance(body, bytes) else str(body).encode() for body in bodies)
        self.raw(b"".join(frame("SEND", sent, body) for body in first))
        self.ask("SEND", sent, last)

    def subscribe(self, destination: str, id: str = "1", ack: str = "client-individual", **headers: object) -> None:
        """Subscribes without a window and waits for the receipt."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        window = {"consumer-window-size": "-1"}
        self.ask("SUBSCRIBE", {"id": id, "destination": destination, "ack": ack, **window, **named})

    def acknowledge(self, message: ServerFrame) -> None:
        """Acknowledges and waits for the receipt."""
        self.ask("ACK", {"id": message.header("ack")})

    # ---- in --------------------------------------------------------------------------------------

    def _read(self, wait_s: float) -> None:
        """Reads once."""
        self.socket.settimeout(wait_s)
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise Closed("the broker closed the connection")
        self.heard = time.monotonic()
        self.stream.take(data)

    def next_frame(self, wait_s: float | None = None) -> ServerFrame:
        """The next frame that arrives. Raises Closed at the end of the stream, TimeoutError when none comes in time."""
        until = time.monotonic() + (self.wait_s if wait_s is None else wait_s)
        while not self.stream.frames:
            self._read(max(until - time.monotonic(), INSTANT_S))
        return self.stream.frames.pop(0)

    def await_beat(self) -> None:
        """Reads up to a heart-beat; frames that come before it are kept."""
        seen, until = self.stream.beats, time.monotonic() + self.wait_s
        while self.stream.beats == seen:
            self._read(max(until - time.monotonic(), INSTANT_S))

    def receive(self, wait_s: float | None = None) -> ServerFrame:
        """The next frame that was not looked at, as ``next_frame`` if none was kept."""
        return self._kept.popleft() if self._kept else self.next_frame(wait_s)

    def take_waiting(self, count: int | None = None) -> list[ServerFrame]:
        """Up to so many of the frames that were read already; None: all."""
        waiting = len(self._kept) + len(self.stream.frames)
        return [self.receive() for _ in range(waiting if count is None else min(count, waiting))]

    def expect(self, command: str) -> ServerFrame:
        """The next frame, which has to be of this command."""
        got = self.receive()
        assert got.command == command, got.text
        return got

    def message(self) -> ServerFrame:
        """The next frame, which has to be a MESSAGE."""
        return self.expect("MESSAGE")

    def answer(self) -> ServerFrame:
        """The next frame that is no MESSAGE; messages that come before it are kept."""
        while (got := self.next_frame()).command == "MESSAGE":
            self._kept.append(got)
        return got

    def finds(self, destination: str, *bodies: bytes) -> None:
        """Subscribes: a queue has exactly these messages for it, in order; none is acknowledged."""
        self.subscribe(destination)
        assert [self.message().body for _ in bodies] == list(bodies)
        self.nothing_waits()

    def take(self, destination: str, count: int) -> list[ServerFrame]:
        """So many messages of a queue, which are settled."""
        self.subscribe(destination, id=destination)
        found = [self.message() for _ in range(count)]
        self.raw(b"".join(frame("ACK", {"id": message.header("ack")}) for message in found))
        self.ask("UNSUBSCRIBE", {"id": destination})
        return found

    def await_receipt(self, receipt: str) -> None:
        """Reads up to this RECEIPT; messages that come before it are kept."""
        got = self.answer()
        assert (got.command, got.header("receipt-id")) == ("RECEIPT", receipt), got.text

    def read_to_end(self) -> list[ServerFrame]:
        """All frames up to the end of the stream, which has to come, and not in the middle of a frame."""
        found: list[ServerFrame] = []
        with suppress(Closed):
            while True:
                found.append(self.receive())
        assert self.stream.is_whole, "the stream ends in the middle of a frame"
        return found

    def nothing_waits(self) -> None:
        """Everything sent so far was carried out, and no frame came but the answer to this question."""
        self.ask("BEGIN", {"transaction": f"nothing-{next(self._numbers)}"})
        left = self.take_waiting()
        assert not left, left[0].text

    def nothing_waits_but_messages(self) -> None:
        """Everything sent so far was carried out; messages that came meanwhile are kept."""
        transaction = {"transaction": f"done-{next(self._numbers)}"}
        self.ask("BEGIN", transaction)
        self.send("ABORT", transaction)

    # ---- the end ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """Closes the sending side only."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Vanishes with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        """Closes both sides."""
        self.socket.close()


def refused(port: int, tls: ssl.SSLContext | None = None, /, **headers: object) -> str:
    """What CONNECT with these headers is answered by an ERROR, after which the connection ends."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with StompSocket(port, tls=tls) as client:
        client.send("CONNECT", {"accept-version": "1.2", "host": "broker", **named})
        error = client.expect("ERROR")
        assert client.read_to_end() == []
        return error.headers["message"]


def is_greeted(port: int, tls: ssl.SSLContext | None = None, /, **headers: object) -> bool:
    """Does somebody answer CONNECT with these headers?"""
    try:
        connected(port, "1.2", tls, **headers).close()
    except (OSError, AssertionError):
        return False
    return True


def connected(port: int, version: str = "1.2", tls: ssl.SSLContext | None = None, /, **headers: object) -> StompSocket:
    """A connection that was greeted."""
    client = StompSocket(port, tls=tls)
    try:
        client.connect(version, **headers)
    except BaseException:
        client.close()
        raise
    return client
