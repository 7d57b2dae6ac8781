"""Requests that a proxy in front may read in another way: each is refused with 400, and the connection ends."""

from __future__ import annotations

import pytest

from artemis_py.server.http.requests import Response
from artemis_py.server.http.routing import Route
from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.server.websocket.websocket import Handshake
from tests.kit.stepped_http import SteppedHttp, answers

SMUGGLED = b"GET /echo?smuggled HTTP/1.1\r\nHost: broker\r\n\r\n"
BODY = b"5\r\nhello\r\n0\r\n\r\n"


PUT = [Route("/put", {"POST": lambda request: Response(200, "text/plain", request.body)})]


def head(*lines: bytes, first: bytes = b"POST /put HTTP/1.1", host: bytes = b"Host: broker\r\n") -> bytes:
    return first + b"\r\n" + host + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


CHUNKED = b"Transfer-Encoding: chunked"
DOUBTFUL = {
    "both": head(b"Content-Length: 5", CHUNKED) + BODY,
    "both, other order": head(CHUNKED, b"content-length: 15") + BODY,
    "two lengths": head(b"Content-Length: 5", b"Content-Length: 6") + b"hello!",
    "the same length twice": head(b"Content-Length: 5", b"Content-Length: 5") + b"hello",
    "a list of lengths": head(b"Content-Length: 5, 5") + b"hello",
    "plus": head(b"Content-Length: +5") + b"hello",
    "minus": head(b"Content-Length: -5") + b"hello",
    "underscore": head(b"Content-Length: 1_0") + b"hellohello",
    "hexadecimal": head(b"Content-Length: 0x5") + b"hello",
    "digits of others": head("Content-Length: ٥".encode()) + b"hello",
    "no length": head(b"Content-Length: ") + b"hello",
    "a long length": head(b"Content-Length: " + b"0" * 30 + b"5") + b"hello",
    "folded": head(b"X-One: 1", b" Content-Length: 5") + b"hello",
    "folded with a tab": head(b"X-One: 1", b"\tTransfer-Encoding: chunked") + BODY,
    "folded at once": head(b" X: 1"),
    "LF alone": head(b"X-One: 1\nContent-Length: 5") + b"hello",
    "LF at the end": b"POST /put HTTP/1.1\r\nHost: broker\nContent-Length: 0\n\n",
    "only LF": b"GET /echo HTTP/1.1\nHost: broker\n\n",
    "CR alone": head(b"X-One: 1\rContent-Length: 5") + b"hello",
    "CR before CR LF": head(b"X-One: 1\r"),
    "NUL": head(b"X-One: \x001"),
    "NUL in the target": head(first=b"GET /echo\x00 HTTP/1.1"),
    "blank before the colon": head(b"Content-Length : 5") + b"hello",
    "tab before the colon": head(b"Transfer-Encoding\t: chunked") + BODY,
    "no colon": head(b"Content-Length 5") + b"hello",
    "no name": head(b": 5") + b"hello",
    "two codings": head(CHUNKED, b"Transfer-Encoding: identity") + BODY,
    "chunked twice": head(CHUNKED, CHUNKED) + BODY,
    "chunked in HTTP/1.0": head(CHUNKED, first=b"POST /put HTTP/1.0") + BODY,
    "two hosts": head(b"Host: evil.example", b"Content-Length: 0"),
    "the same host twice": head(b"Host: broker", b"Content-Length: 0"),
    "no host": head(b"Content-Length: 0", host=b""),
    "another host": head(b"Content-Length: 0", first=b"POST http://evil.example/put HTTP/1.1"),
    "a user in the target": head(b"Content-Length: 0", first=b"POST http://broker@evil.example/put HTTP/1.1"),
    "HTTP/2.0": head(b"Content-Length: 0", first=b"POST /put HTTP/2.0"),
    "HTTP/1.2": head(b"Content-Length: 0", first=b"POST /put HTTP/1.2"),
    "HTTP/0.9": b"GET /echo\r\n\r\n",
    "two blanks": head(b"Content-Length: 0", first=b"POST  /put HTTP/1.1"),
    "a tab in the first line": head(b"Content-Length: 0", first=b"POST\t/put HTTP/1.1"),
    "a chunk of a wrong size": head(CHUNKED) + b"4\r\nhello\r\n0\r\n\r\n",
    "a chunk with plus": head(CHUNKED) + b"+5\r\nhello\r\n0\r\n\r\n",
    "a chunk with 0x": head(CHUNKED) + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk with minus": head(CHUNKED) + b"-5\r\nhello\r\n0\r\n\r\n",
    "a chunk without a size": head(CHUNKED) + b"\r\nhello\r\n0\r\n\r\n",
    "a chunk with a blank first": head(CHUNKED) + b" 5\r\nhello\r\n0\r\n\r\n",
    "a chunk of 2**80": head(CHUNKED) + b"1" + b"0" * 20 + b"\r\nhello\r\n0\r\n\r\n",
    "a chunk that ends with LF": head(CHUNKED) + b"5\r\nhello\n0\r\n\r\n",
    "a chunk that ends with more": head(CHUNKED) + b"5\r\nhelloXX0\r\n\r\n",
    "a last chunk with LF": head(CHUNKED) + b"5\r\nhello\r\n0\r\n\n",
    "a last chunk with a header": head(CHUNKED) + b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
    "a chunk with NUL": head(CHUNKED) + b"5;\x00\r\nhello\r\n0\r\n\r\n",
    "a chunk with CR": head(CHUNKED) + b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "a chunk with LF": head(CHUNKED) + b"5;a\nb\r\nhello\r\n0\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("step", [None, 1], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("sent", DOUBTFUL.values(), ids=DOUBTFUL)
def test_it_is_refused_and_nothing_follows(sent: bytes, step: int | None) -> None:
    made = SteppedHttp(PUT)
    transport = made.talk(sent + SMUGGLED, step=step)
    status = int(bytes(transport.taken)[9:12])
    assert status == 400, bytes(transport.taken)
    assert bytes(transport.taken).count(b"HTTP/1.1 ") == 1
    assert transport.closed
    assert [request.path for request in made.requests] == []


def test_other_codings_are_not_implemented() -> None:
    for coding in (
        b"gzip",
        b"gzip, chunked",
        b"chunked, gzip",
        b"identity",
        b"xchunked",
        b"chunked;q=1",
        b"\x0bchunked",
    ):
        transport = SteppedHttp(PUT).talk(head(b"Transfer-Encoding: " + coding) + BODY + SMUGGLED)
        assert bytes(transport.taken)[9:12] in (b"501", b"400"), coding
        assert bytes(transport.taken).count(b"HTTP/1.1 ") == 1
        assert transport.closed


@pytest.mark.parametrize("step", [None, 1])
def test_what_is_clear_is_answered(step: int | None) -> None:
    sent = b"".join([
        head(b"Content-Length: 5") + b"hello",
        head(b"Content-Length:5  ") + b"hel\n\n",
        head(b"transfer-encoding: Chunked") + b"5;name=value\r\nhello\r\n00\r\n\r\n",
        head(CHUNKED) + b"1\r\n\n\r\n1\r\n\x00\r\n0\r\n\r\n",
        head(b"Content-Length: 0", first=b"POST http://BROKER/put HTTP/1.1"),
        head(b"Content-Length: 0", b"X-Empty:", b"X-Odd: a:b ,c"),
    ])  # fmt: skip
    transport = SteppedHttp(PUT).talk(sent + SMUGGLED, step=step)
    found = answers(transport.taken, *["POST"] * 6, "GET")
    assert [(status, body) for status, _, body in found] == [
        (200, b"hello"), (200, b"hel\n\n"), (200, b"hello"), (200, b"\n\x00"), (200, b""), (200, b""),
        (200, b"GET smuggled"),
    ]  # fmt: skip


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n"
)


def test_the_upgrade_to_websocket_is_as_strict() -> None:
    clear, wrong = UPGRADE % b"", b"HTTP/1.1 400 "
    expected = {
        clear: b"HTTP/1.1 101 ",
        clear.replace(b"HTTP/1.1", b"HTTP/2.0"): wrong,
        clear.replace(b"GET /", b"GET http://evil.example/"): wrong,
    }
    for line in (
        b"Host: evil.example\r\n", b"Content-Length: 0\r\nContent-Length: 0\r\n", b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        b"X: 1\r\n folded\r\n", b"X: 1\nY: 2\r\n", b"X: 1\rY: 2\r\n", b"X: \x00\r\n", b"Origin : http://localhost\r\n",
    ):  # fmt: skip
        expected[UPGRADE % line] = wrong
    for sent, status in expected.items():
        handshake = Handshake(WebSocketRules())
        handshake.take(sent)
        assert handshake.response.startswith(status), sent
