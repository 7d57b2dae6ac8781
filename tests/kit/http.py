"""A client of HTTP for tests of real processes."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

LOOPBACK = "127.0.0.1"
WAIT_S = 120.0


@dataclass(frozen=True)
class Reply:
    """An answer, whatever its status."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def answer(self) -> tuple[int, bytes]:
        """Status and body."""
        return self.status, self.body

    @property
    def json(self) -> Any:
        """What the body says."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """What was wrong, as the broker says it."""
        return str(self.json["error"])


class HttpClient(closing["HttpClient"]):
    """One connection, which is kept. ``headers`` go with each request."""

    def __init__(
        self,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        wait_s: float = WAIT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(self)
        self._connection = (
            http.client.HTTPConnection(LOOPBACK, port, timeout=wait_s)
            if tls is None
            else http.client.HTTPSConnection("localhost", port, timeout=wait_s, context=tls)
        )
        self._headers = headers or {}

    def ask(self, method: str, path: str, body: object = None, /, **headers: str) -> Reply:
        """Bytes are sent as they are, anything else as JSON. Underscores in names of headers stand for hyphens."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, data, {**self._headers, **named})
        answer = self._connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read())

    def close(self) -> None:
        """Leave."""
        self._connection.close()


def exchanged(port: int, data: bytes) -> bytes:
    """What is answered to these bytes, after which the client says no more."""
    with socket.create_connection((LOOPBACK, port), WAIT_S) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def ask(port: int, method: str, path: str, body: object = None, /, **headers: str) -> Reply:
    """A request on a connection of its own."""
    with HttpClient(port) as client:
        return client.ask(method, path, body, **headers)
