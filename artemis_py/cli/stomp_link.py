"""One connection to a STOMP acceptor, for commands: login, TLS, frames whole."""

from __future__ import annotations

import argparse
import socket
import ssl
import time
from collections import deque
from collections.abc import Collection, Iterator
from typing import Final, final
from urllib.parse import urlsplit

from artemis_py.cli.logins import TLS_NAMES, Acceptor, stomp_acceptor
from artemis_py.errors import ArtemisError
from artemis_py.security.client_tls import why_refused
from artemis_py.stomp.client import ROUTING, Client, Headers, ServerFrame

_PORT: Final = 61613
_CONNECT_S: Final = 10.0
_READ_BYTES: Final = 65536
_DRAIN_S: Final = 1.0
"""So long a frame may take that the broker sent before the connection failed."""


class LinkError(ArtemisError):
    """The broker is not there, refuses something, or does not answer."""


class RefusedError(LinkError):
    """The broker has answered ERROR: what came behind the refused frame is not carried out, either."""


@final
class Link:
    """A connection that is logged in. Methods raise LinkError when the broker sends ERROR, leaves, or is silent, and
    StompError for what STOMP cannot carry. An ERROR is a RefusedError.
    """

    def __init__(self, args: argparse.Namespace, timeout_s: float, *, asks_where: bool = False) -> None:
        """``asks_where``: RECEIPTs of SENDs shall tell on which queues the message is, if this broker can do so
        (``tells_where``).
        """
        acceptor = stomp_acceptor(args, args.stomp)
        url = self.url = acceptor.url
        self._timeout_s = timeout_s
        self._client = Client()
        self._unread: deque[ServerFrame] = deque()
        """Frames that came before a write failed."""
        more = [(ROUTING, "true")] if asks_where else []
        host, login = urlsplit(url).hostname or "localhost", acceptor.login
        connect = self._client.connect(host, login.user, login.passcode, more)
        self._socket = _opened(acceptor)
        self._write(connect)
        answer = self.next(time.monotonic() + timeout_s)
        if answer is None or answer.command != "CONNECTED":
            self.close()
            raise LinkError(f"{url}: no CONNECTED within {timeout_s:g} s; is this a STOMP acceptor?")
        self.tells_where = answer.headers.get(ROUTING) == "true"

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, command: str, headers: Headers, body: bytes = b"") -> None:
        """Send a frame."""
        self._write(self._client.frame(command, headers, body))

    def ask(self, command: str, headers: Headers, body: bytes = b"") -> list[ServerFrame]:
        """Send a frame and wait for its receipt; returns the frames that came before that."""
        receipt = self.begin(command, headers, body)
        others: list[ServerFrame] = []
        while not (found := self._answer(command)).confirms(receipt):
            others.append(found)
        return others

    def begin(self, command: str, headers: Headers, body: bytes = b"") -> str:
        """Send a frame that asks for a receipt. Returns the name of that."""
        receipt = self._client.next_receipt()
        self.send(command, [*headers, ("receipt", receipt)], body)
        return receipt

    def receipts(self, names: Collection[str]) -> Iterator[ServerFrame]:
        """The receipts of these names as they come, each once; other frames are skipped."""
        waiting = set(names)
        while waiting:
            answer = self._answer("SEND")
            name = answer.headers.get("receipt-id", "")
            if answer.command == "RECEIPT" and name in waiting:
                waiting.remove(name)
                yield answer

    def arrived_receipts(self, names: Collection[str]) -> Iterator[ServerFrame]:
        """After a LinkError: the receipts of these names that had come before it."""
        try:
            while (answer := self.next(time.monotonic() + _DRAIN_S)) is not None:
                if answer.command == "RECEIPT" and answer.headers.get("receipt-id", "") in names:
                    yield answer
        except LinkError:
            return

    def _answer(self, command: str) -> ServerFrame:
        found = self.next(time.monotonic() + self._timeout_s)
        if found is None:
            raise LinkError(
                f"{self.url}: the broker has not confirmed a {command} within {self._timeout_s:g} s; the address may "
                "be full (--timeout waits longer)"
            )
        return found

    def next(self, until_s: float | None) -> ServerFrame | None:
        """The next frame; None if there is none until then (on the monotonic clock; None: wait for ever)."""
        if self._unread:
            return self._unread.popleft()
        while (found := self._client.next()) is None:
            left_s = None if until_s is None else until_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return None
            self._socket.settimeout(left_s)
            try:
                data = self._socket.recv(_READ_BYTES)
            except (TimeoutError, ssl.SSLWantReadError):
                return None
            except OSError as error:
                raise LinkError(f"{self.url}: the connection is lost: {error.strerror or error}") from None
            if not data:
                raise LinkError(f"{self.url}: the broker has closed the connection")
            self._client.feed(data)
        if found.command == "ERROR":
            raise RefusedError(f"{self.url}: {found.reason}")
        return found

    def _write(self, data: bytes) -> None:
        self._socket.settimeout(self._timeout_s)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise LinkError(
                f"{self.url}: the broker has taken nothing for {self._timeout_s:g} s; the address may be full"
            ) from None
        except OSError as error:
            self._read_rest()  # what the broker said last is the better reason
            raise LinkError(f"{self.url}: the connection is lost: {error.strerror or error}") from None

    def _read_rest(self) -> None:
        """Read what the broker had sent before the connection failed. Raises LinkError for an ERROR."""
        rest: list[ServerFrame] = []
        try:
            while (found := self.next(time.monotonic() + _DRAIN_S)) is not None:
                rest.append(found)
        finally:
            self._unread.extend(rest)


def _opened(acceptor: Acceptor) -> socket.socket:
    url = acceptor.url
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise LinkError(f"{url} has no valid port: {error}") from None
    if parts.scheme not in ("stomp", "tcp", "stomp+ssl", "ssl") or not parts.hostname:
        raise LinkError(f"{url} is not the URL of a STOMP acceptor; write stomp://host:port")
    try:
        plain = socket.create_connection((parts.hostname, port or _PORT), _CONNECT_S)
    except ConnectionRefusedError:
        raise LinkError(f"{url}: nothing listens there (--stomp URL says where the broker is)") from None
    except OSError as error:
        raise LinkError(f"{url}: {error.strerror or error}") from None
    if acceptor.tls is None:
        return plain
    try:
        return acceptor.tls.context().wrap_socket(plain, server_hostname=parts.hostname)
    except ssl.SSLError as error:
        plain.close()
        raise LinkError(f"{url}: {why_refused(error, TLS_NAMES)}") from None
    except OSError as error:
        plain.close()
        raise LinkError(f"{url}: {error.strerror or error}") from None
