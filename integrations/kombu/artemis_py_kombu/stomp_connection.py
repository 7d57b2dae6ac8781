"""A connection to a STOMP 1.2 broker: one socket, frames whole, receipts, heart-beats, and requests to the management
of an artemis_py.

One thread receives; any thread may send. Nothing here starts a thread, so a process that is forked loses nothing.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple, NoReturn, final

from kombu.exceptions import ChannelError

_READ_BYTES: Final = 1 << 16
_HEAD_BYTES_MAX: Final = 1 << 20
_WAIT_S_MAX: Final = 3600.0
_MISSED_BEATS_MAX: Final = 2
_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", ":": "\\c"}
_UNESCAPES: Final = {text: char for char, text in _ESCAPES.items()}
_REPLIES: Final = "/temp-queue/kombu"
_REPLIES_ID: Final = "management"
_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class LostError(ConnectionError):
    """The connection is gone, or the broker is silent. Another one may work."""


class RefusedError(ChannelError):
    """The broker has refused something, and said why."""


class Frame(NamedTuple):
    """A frame from the broker."""

    command: str
    headers: Mapping[str, str]
    body: bytes


def encode(command: str, headers: Mapping[str, object], body: bytes = b"") -> bytes:
    """A frame as bytes. CONNECT has no escapes (STOMP 1.2, "Value Encoding")."""
    escaped = str if command == "CONNECT" else _escaped
    lines = [command, *[f"{escaped(name)}:{escaped(value)}" for name, value in headers.items()]]
    if body:
        lines.append(f"content-length:{len(body)}")
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


def _escaped(value: object) -> str:
    text = str(value)
    return "".join(_ESCAPES.get(char, char) for char in text) if any(char in text for char in _ESCAPES) else text


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    parts = iter(text)
    return "".join(char if char != "\\" else _UNESCAPES.get(char + next(parts, ""), "") for char in parts)


@final
class Parser:
    """Bytes to frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes from the broker."""
        self._data += data

    def next(self) -> Frame | None:
        """The next frame that is whole; None: more bytes are needed. Raises LostError for what is no frame."""
        data = self._data
        start = 0
        while data[start : start + 1] == b"\n" or data[start : start + 1] == b"\r":  # heart-beats
            start += 1
        del data[:start]
        end, width = data.find(b"\n\n"), 2
        if (other := data.find(b"\n\r\n", 0, end if end >= 0 else len(data))) >= 0:
            end, width = other, 3
        if end < 0:
            if len(data) > _HEAD_BYTES_MAX:
                raise LostError(f"the broker's headers have more than {_HEAD_BYTES_MAX} bytes: is that STOMP?")
            return None
        command, *lines = (line.removesuffix("\r") for line in data[:end].decode().split("\n"))
        plain = command == "CONNECTED"
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            if not plain:
                name, value = _unescaped(name), _unescaped(value)
            headers.setdefault(name, value)
        begin = end + width
        length = headers.get("content-length")
        stop = begin + int(length) if length else data.find(b"\0", begin)
        if stop < 0 or len(data) <= stop:
            return None
        body = bytes(data[begin:stop])
        del data[: stop + 1]
        return Frame(command, headers, body)


@final
class StompConnection:
    """See the module. Every method that talks to the broker raises LostError when it has gone."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        login: str | None = None,
        passcode: str | None = None,
        virtual_host: str = "/",
        context: ssl.SSLContext | None = None,
        connect_s: float = 5.0,
        heartbeat_s: float = 0.0,
        answer_s: float = 60.0,
    ) -> None:
        """Connect and log in. ``answer_s`` is how long the broker may take to confirm a frame. Raises LostError, and
        RefusedError for a wrong login.
        """
        self.name = f"{host}:{port}"
        self._answer_s = answer_s
        self._sending = threading.Lock()
        self._on_socket = threading.Lock()  # one SSL object is for one thread at a time
        self._parser = Parser()
        self._numbers = count(1)
        self._receipts: dict[str, Frame] = {}
        self._replies: dict[str, Frame] = {}
        self._has_replies = False
        self._why_lost: str | None = None
        self._heard_s = self._sent_s = time.monotonic()
        self._greeting: Frame | None = None
        self.messages: deque[Frame] = deque()
        """MESSAGE frames that have come, for whoever subscribed."""
        self._socket = _connected(host, port, context, connect_s)
        beat_ms = int(heartbeat_s * 1000)
        headers = {"accept-version": "1.2", "host": virtual_host, "heart-beat": f"{beat_ms},{beat_ms}"}
        if login is not None:
            headers["login"] = login
        if passcode is not None:
            headers["passcode"] = passcode
        try:
            self._write(encode("CONNECT", headers))
            greeting = self._greeted(max(connect_s, 1.0))
        except BaseException:
            self.close(politely=False)
            raise
        self.server: str = greeting.headers.get("server", "")
        """Who the broker says that it is."""
        sends_ms, wants_ms = (int(number) for number in greeting.headers.get("heart-beat", "0,0").split(","))
        self.beat_s: float = max(beat_ms, wants_ms) / 1000 if beat_ms and wants_ms else 0.0
        """How often the broker expects to hear something; 0: never."""
        self._silence_s: float = _MISSED_BEATS_MAX * max(beat_ms, sends_ms) / 1000 if beat_ms and sends_ms else 0.0

    def _greeted(self, wait_s: float) -> Frame:
        until_s = time.monotonic() + wait_s
        while (left_s := until_s - time.monotonic()) > 0:
            self.wait(left_s)
            if self._greeting is not None:
                return self._greeting
        raise LostError(f"{self.name}: nothing there answers CONNECT within {wait_s:g} s")

    @property
    def is_open(self) -> bool:
        """Is it usable, as far as is known?"""
        return self._why_lost is None

    def fileno(self) -> int:
        """The socket's number, for an event loop."""
        return self._socket.fileno()

    # ---- out -------------------------------------------------------------------------------------

    def send(self, command: str, headers: Mapping[str, object], body: bytes = b"") -> None:
        """Send a frame."""
        self._write(encode(command, headers, body))

    def ask(
        self, command: str, headers: Mapping[str, object], body: bytes = b"", *, answer_s: float | None = None
    ) -> None:
        """Send a frame and wait for its receipt. Raises RefusedError."""
        receipt = str(next(self._numbers))
        self.send(command, {**headers, "receipt": receipt}, body)
        self._await(self._receipts, receipt, command, answer_s)

    def request(self, resource: str, operation: str, *arguments: object) -> Any:
        """Ask the management of an artemis_py; returns the result. Raises RefusedError."""
        if not self._has_replies:
            self.send("SUBSCRIBE", {"id": _REPLIES_ID, "destination": _REPLIES, "ack": "auto"})
            self._has_replies = True
        number = str(next(self._numbers))
        headers = {
            "destination": "activemq.management",
            "reply-to": _REPLIES,
            "correlation-id": number,
            "receipt": number,  # an ERROR then says which frame it is about
            "_AMQ_ResourceName": resource,
            "_AMQ_OperationName": operation,
        }
        self.send("SEND", headers, json.dumps(arguments).encode())
        self._await(self._receipts, number, f"{operation} of {resource}", None)
        reply = self._await(self._replies, number, f"{operation} of {resource}", None)
        results = json.loads(reply.body or b"[]")
        if reply.headers.get("_AMQ_OperationSucceeded") != "true":
            raise RefusedError(f"{self.name}: {operation} of {resource}: {', '.join(map(str, results)) or 'refused'}")
        return results[0] if results else None

    def beat(self) -> None:
        """Send a heart-beat if one is due soon. Raises LostError if the broker's stay away."""
        now_s = time.monotonic()
        self._read()
        if self._silence_s and now_s - self._heard_s > self._silence_s:
            self._lose(f"{self.name}: the broker has been silent for {self._silence_s:g} s")
        if self.beat_s and now_s - self._sent_s > self.beat_s * 0.4:
            self._write(b"\n")

    def close(self, *, politely: bool = True) -> None:
        """End it. What was not acknowledged goes back; politely: without counting as a failed delivery."""
        if politely and self.is_open:
            with suppress(OSError, RefusedError):  # gone is gone
                self.ask("DISCONNECT", {}, answer_s=1.0)
        self._why_lost = self._why_lost or f"{self.name}: the connection was closed"
        self._socket.close()

    # ---- in --------------------------------------------------------------------------------------

    def wait(self, wait_s: float | None) -> bool:
        """Wait until something comes and take it in; False: nothing came within this time (None: no limit)."""
        limit_s = _WAIT_S_MAX if wait_s is None else min(max(wait_s, 0.0), _WAIT_S_MAX)
        return self._read() or (self._poll(select.POLLIN, limit_s) and self._read())

    def _await(self, answers: dict[str, Frame], name: str, what: str, answer_s: float | None) -> Frame:
        limit_s = self._answer_s if answer_s is None else answer_s
        until_s = time.monotonic() + limit_s
        while name not in answers:
            if not self.wait(until_s - time.monotonic()) and time.monotonic() >= until_s:
                self._lose(
                    f"{self.name}: the broker has not confirmed {what} within {limit_s:g} s; the address may be full "
                    "(transport_options: answer_s waits longer)"
                )
        found = answers.pop(name)
        if found.command == "ERROR":
            raise RefusedError(f"{self.name}: {what} is refused: {_text_of(found)}")
        return found

    def _read(self) -> bool:
        """Take in what has come. Returns whether anything has."""
        if self._why_lost is not None:
            raise LostError(self._why_lost)
        some = False
        while self._why_lost is None:
            try:
                with self._on_socket:
                    data = self._socket.recv(_READ_BYTES)
            except _NOT_NOW:
                break
            except OSError as error:
                self._lose(f"{self.name}: the connection is lost: {error.strerror or error}")
            if not data:
                self._lose(f"{self.name}: the broker has closed the connection")
            some = True
            self._heard_s = time.monotonic()
            self._parser.feed(data)
            while (frame := self._parser.next()) is not None:
                self._take(frame)
        return some

    def _take(self, frame: Frame) -> None:
        if frame.command == "MESSAGE":
            if frame.headers.get("subscription") == _REPLIES_ID:
                self._replies[frame.headers.get("correlation-id", "")] = frame
            else:
                self.messages.append(frame)
        elif frame.command == "RECEIPT":
            self._receipts[frame.headers.get("receipt-id", "")] = frame
        elif frame.command == "CONNECTED":
            self._greeting = frame
        elif frame.command == "ERROR":
            if self._greeting is None:
                raise RefusedError(f"{self.name}: the broker refuses the connection: {_text_of(frame)}")
            self._why_lost = f"{self.name}: the broker has ended the connection: {_text_of(frame)}"
            if "receipt-id" in frame.headers:
                self._receipts[frame.headers["receipt-id"]] = frame

    # ---- the socket ------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._sending:
            while view:
                if self._why_lost is not None:
                    raise LostError(self._why_lost)
                try:
                    with self._on_socket:
                        count = self._socket.send(view)
                except _NOT_NOW:
                    if not self._poll(select.POLLOUT, self._answer_s):
                        self._lose(f"{self.name}: the broker has taken nothing for {self._answer_s:g} s")
                except OSError as error:
                    self._lose(f"{self.name}: the connection is lost: {error.strerror or error}")
                else:
                    view = view[count:]
            self._sent_s = time.monotonic()

    def _poll(self, events: int, wait_s: float) -> bool:
        poll = select.poll()
        try:
            poll.register(self._socket, events)
        except ValueError:
            self._lose(f"{self.name}: the connection was closed")
        return bool(poll.poll(wait_s * 1000))

    def _lose(self, why: str) -> NoReturn:
        self._why_lost = self._why_lost or why
        raise LostError(self._why_lost)


def _text_of(error: Frame) -> str:
    return error.headers.get("message") or error.body.decode(errors="replace").strip() or "it does not say why"


def _connected(host: str, port: int, context: ssl.SSLContext | None, connect_s: float) -> socket.socket:
    try:
        plain = socket.create_connection((host, port), connect_s)
    except OSError as error:
        raise LostError(f"{host}:{port}: {error.strerror or error}") from error
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found = plain if context is None else context.wrap_socket(plain, server_hostname=host)
    except OSError as error:
        plain.close()
        raise LostError(f"{host}:{port}: {error.strerror or error}") from error
    found.setblocking(False)
    return found
