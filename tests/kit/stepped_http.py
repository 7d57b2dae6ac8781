"""HTTP connections on a fake loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import h11

from artemis_py.server.http.acceptor import HttpAcceptor
from artemis_py.server.http.authentication import Authentication
from artemis_py.server.http.connection import HttpConnection
from artemis_py.server.http.origins import Hosts
from artemis_py.server.http.ports import connect
from artemis_py.server.http.requests import Handler, HttpLimits, Request, Response
from artemis_py.server.http.routing import Route
from tests.kit.fake_loop import FakeLoop, FakeTransport

GET = b"GET /echo HTTP/1.1\r\nHost: broker\r\n\r\n"


class SteppedHttp:
    """One acceptor whose time passes when the test says so."""

    def __init__(
        self,
        routes: Mapping[str, Handler] | Sequence[Route] = (),
        limits: HttpLimits | None = None,
        authentication: Authentication | None = None,
        loop: FakeLoop | None = None,
    ) -> None:
        self.loop = loop = loop or FakeLoop(1_000)
        self.requests: list[Request] = []
        if isinstance(routes, Mapping):
            routes = [Route(path, {"GET": handler}) for path, handler in routes.items()]
        self.acceptor = HttpAcceptor(
            [Route("/echo", {"GET": self.echo}), *routes],
            now_ms=loop.clock_ms,
            call_soon=loop.call_soon,
            call_threadsafe=loop.call_soon,
            hosts=Hosts(["broker"]),
            limits=limits,
            authentication=authentication,
        )

    def echo(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(200, "text/plain", f"{request.method} {request.query}".encode())

    def connect(
        self, socket: Callable[[FakeLoop, asyncio.BaseProtocol], FakeTransport] = FakeTransport
    ) -> tuple[HttpConnection, FakeTransport]:
        connection = cast(HttpConnection, connect(self.acceptor))
        transport = socket(self.loop, connection)
        connection.connection_made(transport)
        return connection, transport

    def talk(self, data: bytes, *, step: int | None = None) -> FakeTransport:
        """Sends bytes on a new connection, whole or ``step`` at a time, and lets the loop run."""
        connection, transport = self.connect()
        for start in range(0, len(data), step or len(data)):
            connection.data_received(data[start : start + (step or len(data))])
            self.loop.run()
        return transport


def asked(method: str, path: str, *headers: bytes, body: bytes = b"") -> bytes:
    """A request."""
    length = [b"Content-Length: %d" % len(body)] if body else []
    return b"\r\n".join([f"{method} {path} HTTP/1.1".encode(), b"Host: broker", *headers, *length]) + b"\r\n\r\n" + body


def answers(written: bytes | bytearray, *methods: str) -> list[tuple[int, dict[str, str], bytes]]:
    """Parses answers to requests of these methods as a client does: (status, headers, body)."""
    client = h11.Connection(h11.CLIENT)
    client.receive_data(bytes(written))
    found: list[tuple[int, dict[str, str], bytes]] = []
    for number, method in enumerate(methods):
        if number:
            client.start_next_cycle()
        client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        client.send(h11.EndOfMessage())
        head, body = client.next_event(), b""
        assert isinstance(head, h11.Response)
        while isinstance(event := client.next_event(), h11.Data):
            body += event.data
        assert isinstance(event, h11.EndOfMessage)
        found.append((head.status_code, {k.decode(): v.decode() for k, v in head.headers}, body))
    assert client.trailing_data[0] == b""
    return found


def answer(transport: FakeTransport, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    (only,) = answers(transport.taken, method)
    return only
