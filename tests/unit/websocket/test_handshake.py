"""The first bytes of a connection, and the answer to an upgrade request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.server.websocket.protocol_detection import is_http
from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.server.websocket.websocket import REQUEST_BYTES_MAX, Handshake
from tests.kit.web_frames import ACCEPT, WebStream, request


def answer(data: bytes, rules: WebSocketRules | None = None) -> WebStream:
    """The response to a request."""
    handshake = Handshake(rules or WebSocketRules())
    handshake.take(data)
    stream = WebStream()
    stream.take(handshake.response)
    assert (stream.status == 101) == (handshake.protocol is not None)
    assert handshake.held_bytes <= len(data)
    return stream


@pytest.mark.parametrize("start", [b"CONNECT\n", b"STOMP\n", b"\n", b"\r\n", b"G\n", b"GET\n", b"DISCONNECT\n", b"\0"])
def test_no_http(start: bytes) -> None:
    assert is_http(start) is False


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PRI"])
def test_http(method: str) -> None:
    """Known as soon as the blank behind the method is there, and not before."""
    line = f"{method} ".encode()
    assert is_http(line + b"/ HTTP/1.1\r\n") is True
    assert is_http(line) is True
    assert [is_http(line[:size]) for size in range(1, len(line))] == [None] * (len(line) - 1)


@pytest.mark.parametrize("path", ["/", "/ws", "/stomp/websocket?x=1", "//", "*"])
def test_any_path(path: str) -> None:
    stream = answer(request(path=path))
    assert stream.status == 101
    assert stream.header("Sec-WebSocket-Accept") == ACCEPT


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ("v10.stomp, v11.stomp, v12.stomp", "v12.stomp"),
        ("v12.stomp", "v12.stomp"),
        ("v11.stomp,v10.stomp", "v11.stomp"),
        ("v10.stomp", "v10.stomp"),
        ("mqtt, v11.stomp", "v11.stomp"),
        ("mqtt", None),
        (None, None),
    ],
)
def test_the_highest_subprotocol(offered: str | None, chosen: str | None) -> None:
    stream = answer(request(protocols=offered))
    assert (stream.status, stream.header("Sec-WebSocket-Protocol")) == (101, chosen)


def _without(name: str) -> bytes:
    lines = request().split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(name.encode()))


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 426),
        (_without("upgrade"), 426),
        (_without("connection"), 426),
        (_without("sec-websocket-key"), 400),
        (_without("sec-websocket-version"), 400),
        (request().replace(b"Version: 13", b"Version: 8"), 400),
        (request().replace(b"HTTP/1.1", b"HTTP/1.0"), 505),
        (request().replace(b"HTTP/1.1", b"HTTP/9"), 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: x\n\n\r\n\r\n", 400),
        (request("Content-Length: 5"), 400),
        (request(method="POST"), 426),
        (b"POST /x HTTP/1.1\r\n", 426),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 426),
        (request("X: " + "x" * REQUEST_BYTES_MAX), 431),
        (b"GET /" + b"x" * (REQUEST_BYTES_MAX + 10), 431),
        (request("X: " + "x" * 9000), 400),
        (request(*["X: y"] * 200), 400),
        (request("Origin: http://a", "Origin: http://b"), 400),
    ],
)
def test_refused(data: bytes, status: int) -> None:
    stream = answer(data)
    assert stream.status == status or (status == 400 and stream.status in (400, 431)), stream.head
    assert stream.header("Connection") is not None
    assert len(stream.body) == int(stream.header("Content-Length") or 0)
    assert (stream.header("Upgrade") == "websocket") == (status == 426)


ORIGINS = WebSocketRules(origins=("https://shop.example", "http://localhost:3000/"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Origin: https://shop.example",), 101),
        (("Origin: http://localhost:3000",), 101),
        ((), 101),
        (("Origin: https://shop.example.evil",), 403),
        (("Origin: http://shop.example",), 403),
        (("Origin: https://shop.example:444",), 403),
        (("Origin: null",), 403),
    ],
)
def test_origins(headers: tuple[str, ...], status: int) -> None:
    stream = answer(request(*headers), ORIGINS)
    assert stream.status == status
    if status == 403:
        assert "allowedOrigins" in stream.body


@pytest.mark.parametrize("origins", [(), ("*",), ("https://a", "*")])
def test_any_origin(origins: tuple[str, ...]) -> None:
    assert answer(request("Origin: https://evil.example"), WebSocketRules(origins=origins)).status == 101


DEFLATE = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"


def test_compression_only_if_both_want_it() -> None:
    assert answer(request(DEFLATE)).header("Sec-WebSocket-Extensions") is None
    assert answer(request(), WebSocketRules(compresses=True)).header("Sec-WebSocket-Extensions") is None
    chosen = answer(request(DEFLATE), WebSocketRules(compresses=True)).header("Sec-WebSocket-Extensions")
    assert chosen is not None
    assert "server_no_context_takeover" in chosen


def test_bytes_behind_the_request() -> None:
    handshake = Handshake(WebSocketRules())
    assert handshake.take(request() + b"rest") == b"rest"


def test_byte_by_byte() -> None:
    handshake = Handshake(WebSocketRules())
    data = request()
    for at in range(len(data)):
        assert handshake.response == b""
        assert handshake.take(data[at : at + 1]) == b""
    assert handshake.response.startswith(b"HTTP/1.1 101")


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_get_an_answer_or_wait(data: bytes, ends: bool) -> None:
    handshake = Handshake(WebSocketRules())
    handshake.take(b"GET " + data + (b"\r\n\r\n" if ends else b""))
    assert handshake.response == b"" or handshake.response.startswith(b"HTTP/1.1 ")
    assert bool(handshake.response) or not ends
