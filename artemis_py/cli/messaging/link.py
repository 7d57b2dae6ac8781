"""One connection to a STOMP acceptor, for commands: login, TLS, frames whole."""

from __future__ import annotations

import argparse
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final
from urllib.parse import urlsplit

from artemis_py.cli import logins
from artemis_py.cli.contexts import STOMP_URL, STOMP_URL_NAME, add_context, stomp_url_for
from artemis_py.errors import ArtemisError
from artemis_py.message import encode_headers, unescape_header
from artemis_py.security.client_tls import why_refused

_PORT: Final = 61613
_TLS_SCHEMES: Final = ("stomp+ssl", "ssl")
_CONNECT_S: Final = 10.0
_READ_BYTES: Final = 65536
Headers = Sequence[tuple[str, str]]


class LinkError(ArtemisError):
    """The broker is not there, refuses something, or does not answer."""


@final
@dataclass(frozen=True, slots=True)
class Arrived:
    """A frame from the broker; of repeated headers the first counts."""

    command: str
    headers: dict[str, str]
    body: bytes


def add_link(parser: argparse.ArgumentParser) -> None:
    """Adds ``--stomp``, ``--context``, and the arguments about logins and TLS."""
    running = parser.add_argument_group("a running broker")
    running.add_argument(
        "--stomp",
        metavar="URL",
        help=f"its STOMP acceptor, stomp://host:port or stomp+ssl://host:port (else {STOMP_URL_NAME}, else that of "
        f"the context, else {STOMP_URL})",
    )
    add_context(running)
    logins.add_login(running)
    logins.add_tls(running)


@final
class Link:
    """A connection that is logged in. Methods raise LinkError when the broker sends ERROR, leaves, or is silent."""

    def __init__(self, args: argparse.Namespace, timeout_s: float) -> None:
        url, user = logins.without_user(stomp_url_for(args, args.stomp))
        self.url = url
        self._timeout_s = timeout_s
        self._pending = bytearray()
        self._receipts = 0
        login = logins.login_of(args, user)
        self._socket = _opened(url, args)
        headers = [("accept-version", "1.2"), ("host", urlsplit(url).hostname or "localhost")]
        if login.token is not None:
            headers.append(("passcode", login.token))
        elif login.user is not None:
            headers += [("login", login.user), ("passcode", login.password or "")]
        self._write(_connect_frame(headers))
        answer = self.next(time.monotonic() + timeout_s)
        if answer is None or answer.command != "CONNECTED":
            self.close()
            raise LinkError(f"{url}: no CONNECTED within {timeout_s:g} s; is this a STOMP acceptor?")

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, command: str, headers: Headers, body: bytes = b"") -> None:
        """Send a frame."""
        block = f"{command}\n".encode() + encode_headers(list(headers))
        self._write(block + body + b"\0")

    def ask(self, command: str, headers: Headers, body: bytes = b"") -> list[Arrived]:
        """Send a frame and wait for its receipt; returns the frames that came before that."""
        self._receipts += 1
        receipt = str(self._receipts)
        self.send(command, [*headers, ("receipt", receipt)], body)
        others: list[Arrived] = []
        until_s = time.monotonic() + self._timeout_s
        while (found := self.next(until_s)) is not None:
            if found.command == "RECEIPT" and found.headers.get("receipt-id") == receipt:
                return others
            others.append(found)
        raise LinkError(
            f"{self.url}: the broker has not confirmed a {command} within {self._timeout_s:g} s; the address may be "
            "full (--timeout waits longer)"
        )

    def next(self, until_s: float | None) -> Arrived | None:
        """The next frame; None if there is none until then (on the monotonic clock; None: wait for ever)."""
        while (found := self._pop()) is None:
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
            self._pending += data
        if found.command == "ERROR":
            text = found.headers.get("message") or found.body.decode(errors="replace")
            raise LinkError(f"{self.url}: {text}")
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
            self.next(time.monotonic() + 1.0)  # what the broker said last is the better reason
            raise LinkError(f"{self.url}: the connection is lost: {error.strerror or error}") from None

    def _pop(self) -> Arrived | None:
        pending = self._pending
        while pending.startswith((b"\n", b"\r")):
            del pending[:1]
        end = pending.find(b"\n\n")
        if end < 0:
            return None
        command, *lines = bytes(pending[:end]).decode(errors="replace").split("\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers.setdefault(_unescaped(name), _unescaped(value))
        start = end + 2
        length = headers.get("content-length", "")
        stop = start + int(length) if length.isdigit() else pending.find(b"\0", start)
        if stop < 0 or len(pending) <= stop:
            return None
        body = bytes(pending[start:stop])
        del pending[: stop + 1]
        return Arrived(command, headers, body)


def _unescaped(text: str) -> str:
    try:
        return unescape_header(text)
    except KeyError:  # CONNECTED is not escaped
        return text


def _connect_frame(headers: Headers) -> bytes:
    """CONNECT is not escaped (STOMP 1.2, "Value Encoding")."""
    lines = "".join(f"{name}:{value}\n" for name, value in headers)
    return f"CONNECT\n{lines}\n\0".encode()


def _opened(url: str, args: argparse.Namespace) -> socket.socket:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise LinkError(f"{url} has no valid port: {error}") from None
    if parts.scheme not in ("stomp", "tcp", *_TLS_SCHEMES) or not parts.hostname:
        raise LinkError(f"{url} is not the URL of a STOMP acceptor; write stomp://host:port")
    try:
        plain = socket.create_connection((parts.hostname, port or _PORT), _CONNECT_S)
    except ConnectionRefusedError:
        raise LinkError(f"{url}: nothing listens there (--stomp URL says where the broker is)") from None
    except OSError as error:
        raise LinkError(f"{url}: {error.strerror or error}") from None
    if parts.scheme not in _TLS_SCHEMES:
        return plain
    try:
        return logins.tls_of(args).context().wrap_socket(plain, server_hostname=parts.hostname)
    except ssl.SSLError as error:
        plain.close()
        raise LinkError(f"{url}: {why_refused(error, logins.TLS_NAMES)}") from None
    except OSError as error:
        plain.close()
        raise LinkError(f"{url}: {error.strerror or error}") from None
