"""A connection to a STOMP broker: TCP or TLS, login, frames whole, receipts. A caller may block in it, or wait for it
among others.

The protocol without a socket is ``stomp/client.py``. The load generator has a driver of its own (``perf/link.py``),
because its socket blocks in the kernel, and changes hands.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Final, Self, final

from artemis_py.client.endpoint import Endpoint
from artemis_py.errors import ArtemisError, StompError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import is_final, why_refused
from artemis_py.stomp.client import Client, Headers, ServerFrame

_READ_BYTES: Final = 1 << 18
_WAIT_S_MAX: Final = 86_400.0
"""Longer than that poll() cannot wait at once."""
_REST_S: Final = 1.0
"""So long a frame may take that the broker sent before the connection failed."""
_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class StompConnectionError(ArtemisError):
    """The broker is not there, refuses something, or does not answer."""


class LostError(StompConnectionError):
    """There is no connection, or it is lost: another one may do."""


class ClosedError(LostError):
    """The broker has closed the connection."""


class SilentError(LostError):
    """The broker has not answered in time."""


class CertificateError(StompConnectionError):
    """Broker and client do not agree on TLS; the next attempt would fail in the same way."""


class RefusedError(StompConnectionError):
    """The broker has answered ERROR: what came behind the refused frame is not carried out, either."""

    def __init__(self, broker: str, frame: ServerFrame) -> None:
        super().__init__(f"{broker}: {frame.reason}")
        self.frame = frame
        self.reason = frame.reason


@final
class StompConnection:
    """Methods raise LostError when the broker leaves or is silent for ``timeout_s``, and StompError for what STOMP
    cannot carry. Only those that wait for a certain frame raise RefusedError for an ERROR.
    """

    def __init__(
        self,
        connected: socket.socket,
        broker: str,
        timeout_s: float,
        *,
        beats_ms: tuple[int, int] | None = None,
        named: Mapping[str, str] | None = None,
    ) -> None:
        """``broker``: how errors name it. ``named``: by which names a user knows ``url``, ``timeout`` and the files of
        TLS.
        """
        connected.setblocking(False)
        self.timeout_s = timeout_s
        self._socket = connected
        self._broker = broker
        self._named = named or {}
        self._client = Client(beats_ms=beats_ms)
        self._frames: deque[ServerFrame] = deque()
        self._heard_s = self._sent_s = time.monotonic()
        self.connected = ServerFrame("", {}, b"")
        """The broker's answer to CONNECT."""

    @classmethod
    def open(
        cls,
        endpoint: Endpoint,
        login: ClientLogin,
        context: ssl.SSLContext | None,
        *,
        connect_s: float,
        timeout_s: float,
        named: Mapping[str, str],
        beats_ms: tuple[int, int] | None = None,
        more: Headers = (),
    ) -> Self:
        """Connect and log in. ``context`` is used if the endpoint has TLS; ``more`` are headers of CONNECT. Raises
        RefusedError when the broker does not want this client, CertificateError, LostError.
        """
        connected = _connected(endpoint, context, connect_s, named)
        found = cls(connected, endpoint.place, timeout_s, beats_ms=beats_ms, named=named)
        try:
            found.log_in(endpoint.host, login, more)
        except BaseException:
            found.close()
            raise
        return found

    def log_in(self, host: str, login: ClientLogin, more: Headers = ()) -> None:
        """CONNECT, and wait for the answer. Raises RefusedError."""
        self.write(self._client.connect(host, login.user, login.passcode, more))
        try:
            answer = self.receive(time.monotonic() + self.timeout_s)
        except ClosedError as error:
            raise LostError(f"{error} before CONNECTED; is this a STOMP acceptor?") from None
        if answer is None or answer.command != "CONNECTED":
            raise SilentError(f"{self._broker}: no CONNECTED within {self.timeout_s:g} s; is this a STOMP acceptor?")
        self.connected = answer

    def close(self) -> None:
        """Close the socket, without DISCONNECT."""
        self._socket.close()

    # ---- one frame after the other ---------------------------------------------------------------

    def send(self, command: str, headers: Headers, body: bytes = b"") -> None:
        """Send a frame. Raises RefusedError if that fails because the broker has sent ERROR."""
        self.write(self._client.frame(command, headers, body))

    def begin(self, command: str, headers: Headers, body: bytes = b"") -> str:
        """Send a frame that asks for a receipt. Returns the name of that."""
        receipt = self._client.next_receipt()
        self.send(command, [("receipt", receipt), *headers], body)
        return receipt

    def ask(self, command: str, headers: Headers, body: bytes = b"") -> list[ServerFrame]:
        """Send a frame and wait for its receipt; returns the frames that came before that. Raises RefusedError."""
        receipt = self.begin(command, headers, body)
        others: list[ServerFrame] = []
        while not (found := self._answer(command)).confirms(receipt):
            others.append(found)
        return others

    def receipts(self, names: Collection[str]) -> Iterator[ServerFrame]:
        """The receipts of these SENDs as they come, each once; other frames are skipped. Raises RefusedError."""
        waiting = set(names)
        while waiting:
            answer = self._answer("SEND")
            name = answer.headers.get("receipt-id", "")
            if answer.command == "RECEIPT" and name in waiting:
                waiting.remove(name)
                yield answer

    def receive(self, until_s: float | None) -> ServerFrame | None:
        """The next frame; None if there is none until then (on the monotonic clock; None: wait for ever). Raises
        RefusedError.
        """
        while not self._frames:
            left_s = None if until_s is None else until_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return None
            self.wait(left_s)
        found = self._frames.popleft()
        if found.command == "ERROR":
            raise RefusedError(self._broker, found)
        return found

    def write(self, data: bytes) -> None:
        """Write all of it. What comes meanwhile is taken, so that no side waits for the other. Raises RefusedError if
        that fails because the broker has sent ERROR.
        """
        view = memoryview(data)
        until_s = time.monotonic() + self.timeout_s
        try:
            while view:
                if count := self.write_some(view):
                    view = view[count:]
                    until_s = time.monotonic() + self.timeout_s
                elif not self.wait(until_s - time.monotonic(), writes=True) and time.monotonic() >= until_s:
                    raise SilentError(
                        f"{self._broker}: the broker has taken nothing for {self.timeout_s:g} s; the address may be "
                        "full"
                    )
        except LostError:
            if self._frames and self._frames[-1].command == "ERROR":
                raise RefusedError(self._broker, self._frames.pop()) from None
            raise

    def _answer(self, command: str) -> ServerFrame:
        found = self.receive(time.monotonic() + self.timeout_s)
        if found is None:
            hint = f" ({self._named['timeout']} waits longer)" if "timeout" in self._named else ""
            raise SilentError(
                f"{self._broker}: the broker has not confirmed a {command} within {self.timeout_s:g} s; the address "
                f"may be full{hint}"
            )
        return found

    # ---- among other things ----------------------------------------------------------------------

    def wait(self, wait_s: float | None, *, writes: bool = False, bell: socket.socket | None = None) -> bool:
        """Wait until bytes come, which are read, or the broker takes some (with ``writes``), or the bell rings, but
        not longer. Returns whether it takes some. Raises CertificateError: TLS 1.3 tells that late.
        """
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if writes else 0))
        if bell is not None:
            poll.register(bell, select.POLLIN)
        # poll() does not see what TLS has read already.
        is_there = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        limit_s = 0.0 if is_there else _WAIT_S_MAX if wait_s is None else min(max(wait_s, 0.0), _WAIT_S_MAX)
        events = dict(poll.poll(math.ceil(limit_s * 1000))).get(self._socket.fileno(), 0)
        if is_there or events & ~select.POLLOUT:
            self._read()
        return bool(events & select.POLLOUT)

    def write_some(self, data: memoryview | bytes) -> int:
        """Write what the socket takes now; returns how much. Frames that came before it failed are there still."""
        try:
            count = self._socket.send(data)
        except _NOT_NOW:
            return 0
        except OSError as error:
            self._read_rest()
            raise self._lost(error) from None
        self._sent_s = time.monotonic()
        return count

    def frames(self) -> list[ServerFrame]:
        """The frames that have come, ERROR among them."""
        found = list(self._frames)
        self._frames.clear()
        return found

    @property
    def has_to_beat(self) -> bool:
        """Is a heart-beat due?"""
        return 0 < self._client.beat_s < time.monotonic() - self._sent_s

    def check_beats(self, silence_s: float) -> None:
        """Raises SilentError if the broker's heart-beats stay away; nothing for ``silence_s``, if it promised none."""
        limit_s = self._client.silence_s or silence_s
        if time.monotonic() - self._heard_s > limit_s:
            raise SilentError(f"{self._broker}: the broker has been silent for {limit_s:g} s")

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except _NOT_NOW:
            return
        except OSError as error:
            raise self._lost(error) from None
        if not data:
            raise ClosedError(f"{self._broker}: the broker has closed the connection")
        self._heard_s = time.monotonic()
        self._client.feed(data)
        try:
            while (found := self._client.next()) is not None:
                self._frames.append(found)
        except StompError as error:
            raise LostError(f"{self._broker}: {error}") from None

    def _read_rest(self) -> None:
        """What the broker said before the connection failed is the better reason."""
        until_s = time.monotonic() + _REST_S
        with suppress(StompConnectionError):
            while (left_s := until_s - time.monotonic()) > 0:
                self.wait(left_s)

    def _lost(self, error: OSError) -> StompConnectionError:
        if isinstance(error, ssl.SSLError):
            return _tls_failed(self._broker, error, self._named)
        return LostError(f"{self._broker}: the connection is lost: {error.strerror or error}")


def _connected(
    endpoint: Endpoint, context: ssl.SSLContext | None, connect_s: float, named: Mapping[str, str]
) -> socket.socket:
    try:
        plain = socket.create_connection((endpoint.host, endpoint.port), connect_s)
    except ConnectionRefusedError:
        hint = f" ({named['url']} says where the broker is)" if "url" in named else ""
        raise LostError(f"{endpoint.place}: nothing listens there{hint}") from None
    except OSError as error:
        raise LostError(f"{endpoint.place}: {error.strerror or error}") from None
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not endpoint.has_tls:
        return plain
    assert context is not None
    try:
        return context.wrap_socket(plain, server_hostname=endpoint.host)
    except ssl.SSLError as error:
        plain.close()
        raise _tls_failed(endpoint.place, error, named) from None
    except OSError as error:
        plain.close()
        raise LostError(f"{endpoint.place}: {error.strerror or error}") from None


def _tls_failed(broker: str, error: ssl.SSLError, named: Mapping[str, str]) -> StompConnectionError:
    kind = CertificateError if is_final(error) else LostError
    return kind(f"{broker}: {why_refused(error, named)}")
