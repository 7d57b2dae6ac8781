"""HTTP requests: answers are the same however a stream is cut, no step fails, and every answer is whole."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artemis_py.server.http.log_routes import cursor_routes, file_response, log_routes
from artemis_py.server.http.monitoring_routes import health_routes
from artemis_py.server.http.requests import FileBody, HttpLimits, Request, Response
from artemis_py.server.http.routing import Route
from tests.fuzz.fuzzing import Fuzzer, Input, Judge
from tests.kit.fake_loop import FakeLoop
from tests.kit.log_desk import Desk
from tests.kit.metrics import exporter_of
from tests.kit.stepped_http import SteppedHttp

LIMITS = HttpLimits(head_bytes_max=1200, body_bytes_max=300)
STEPS = (1, 2, 3, 7, 40, 500)
SIZE_BYTES = 10
PATHS = (
    "/metrics", "/metrics/", "/health/live", "/health/ready", "/log", "/log?after_lsn=3", "/log?after_lsn=x", "/file",
    "/log/segments/1", "/log/segments/x", "/log/bodies/7", "/log/segments/1/places", "/log/cursors", "/echo?a=b",
    "/log/cursors/mine", "/log/cursors/%00", "/log/cursors/%2e%2e", "http://broker/log", "http://evil/log", "*", "/",
    "/log/segments/" + "9" * 21, "//", "/log/segments/%31",
)  # fmt: skip
METHODS = ("GET", "GET", "GET", "HEAD", "PUT", "PUT", "POST", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "get")
BODIES = (
    b"", b"{}", b'{"lsn": 0}', b'{"lsn": 1, "owner": "me", "ttl_s": 5}', b'{"lsn": -1}', b'{"lsn": 1e999}', b"[" * 90,
    b'{"lsn": 99999999999999999999}', b"x" * 400, b'{"lsn": 0, "lsn": 1}', b"\xff\xfe", b'{"lsn": NaN}', b'"\\ud800"',
)  # fmt: skip
HEADERS = (
    "Host: broker", "Host: evil", "Host: localhost:80", "Host: [::1]:8161", "Host:", "Origin: http://broker",
    "Origin: null", "Origin: http://evil", "Range: bytes=0-3", "Range: bytes=-4", "Range: bytes=5-1",
    "Range: bytes=99-", "Range: bytes=0-1,3-4",
    "Connection: close", "Connection: keep-alive", "Expect: 100-continue", "Accept: */*",
    "Accept: application/openmetrics-text; version=1.0.0", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip",
    "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999", "Upgrade: websocket", "Cookie: a=b",
    "X: " + "y" * 1100, "Authorization: Basic eDp5", "Authorization: Basic %", "If-None-Match: *", "\tfolded",
)  # fmt: skip
WORDS = (
    *PATHS, *METHODS, *(f"{header}\r\n" for header in HEADERS), "\r\n", "\n", "\r\n\r\n", "HTTP/1.1", "HTTP/1.0",
    "HTTP/2.0", "HTTP/9.9", "5\r\nhello\r\n0\r\n\r\n", "ffffffffffffffff\r\n", "\0", " ", ":", "%", "\x16\x03\x01",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)  # fmt: skip
TOKENS = (*BODIES, *(word.encode("latin-1") for word in WORDS))


def requests(rng: random.Random) -> bytes:
    """A few requests on one connection."""
    written = b""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        method, body = rng.choice(METHODS), b""
        lines = [f"{method} {rng.choice(PATHS)} HTTP/1.{int(rng.random() < 0.9)}", "Host: broker"]
        lines += rng.choices(HEADERS, k=rng.choice((0, 0, 1, 2)))
        if method in ("PUT", "POST", "PATCH") or rng.random() < 0.1:
            body = rng.choice(BODIES)
            if rng.random() < 0.3:
                lines.append("Transfer-Encoding: chunked")
                chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:3], body[3:]) if part]
                body = b"".join(chunks) + b"0\r\n\r\n"
            else:
                lines.append(f"Content-Length: {len(body) + rng.choice((0, 0, 0, 0, 1, -1))}")
        written += "\r\n".join([*lines, "", ""]).encode("latin-1") + body
    return written


_REFUSAL = re.compile(rb"(HTTP/1\.1 4\d\d [^\r]*\r\n.*?Connection: close\r\n).*\Z", re.DOTALL)

_STATUS = re.compile(rb"(?:^|\n|\})HTTP/1\.1 (\d\d\d) ")
_DEPENDS_ON_PIECES = re.compile(rb" 431 |400 Bad Request\r\n(?:.+\r\n)*Content-Length: 28\r\n")
"""While a head is incomplete its blanks count as well. What follows a last request is
nothing if it comes later, else "Got data when expecting EOF".
"""
_NUMBER = re.compile(rb"\b[0-9a-f]+\b")
_LISTING = re.compile(rb'\{"broker":.*?\n\]\}\n', re.DOTALL)
"""The segments of the log, to which every cursor that is set adds: between two tries there may be one more."""


def _without_reason(written: bytes, closed: bool) -> tuple[object, ...]:
    """What was answered, without numbers, which move with the log, and without h11's reason for refusing a broken
    request, which depends on how much of it has come.
    """
    plain = _LISTING.sub(b"listing", _REFUSAL.sub(rb"\1", written))
    return _STATUS.findall(written), _NUMBER.sub(b"0", plain), closed


def _open(folder: Path) -> Judge:
    desk = Desk(folder, bytes_max=20_000)  # retains little
    desk.keep(2)
    content = folder / "content"
    content.write_bytes(bytes(SIZE_BYTES))
    loop = FakeLoop(1_000)

    def now(make: Callable[[], Response]) -> Any:
        """What another thread would answer later; here it is there at once."""
        response, answer = make(), loop.create_future()
        if isinstance(response.body, FileBody):
            file = response.body
            read = os.pread(file.descriptor, file.size_bytes, file.offset)
            file.close()
            response = Response(response.status, response.content_type, read, response.headers)
        answer.set_result(response)
        return answer

    def durably(_lsn: int, make: Callable[[], Response]) -> Any:
        desk.turn()
        return now(make)

    exporter = exporter_of()

    def metrics(request: Request) -> Response:
        content_type, _ = exporter.scrape(request.headers.get("accept", ""))
        return Response(200, content_type, iter([b"some\n", b"", b"metrics\n"]))

    routes: list[Route] = [
        Route("/metrics", {"GET": metrics}, is_open=True),
        *health_routes(lambda: None),
        *log_routes(desk.view, "b", lambda: 7, now),
        *cursor_routes(desk.desk, durably),
        Route(
            "/file",
            {"GET": lambda request: now(lambda: file_response(request, os.open(content, os.O_RDONLY), SIZE_BYTES))},
        ),
    ]

    def talk(data: bytes, step: int) -> tuple[bytes, bool]:
        world = SteppedHttp(routes, LIMITS, loop=loop)
        transport = world.talk(data, step=step) if data else world.connect()[1]
        assert not any(world.acceptor.faults.counts.values()), f"a step failed: {world.acceptor.faults.counts}"
        for view in desk.desk.all():
            desk.desk.drop(view.cursor.name)
        desk.turn()
        return bytes(transport.taken), transport.closed

    def judge(one: Input) -> str:
        written, closed = talk(one.data, len(one.data) + 1)
        in_pieces = talk(one.data, STEPS[one.choice % len(STEPS)])
        if not _DEPENDS_ON_PIECES.search(written + in_pieces[0]):
            assert _without_reason(*in_pieces) == _without_reason(written, closed), "other answers when it is cut"
        assert not written or _STATUS.match(written), f"no answer: {written[:80]!r}"
        assert b" 500 " not in written, "a handler failed"
        found = _STATUS.findall(written)
        last = written.rpartition(b"\r\n\r\n")[2][:50] if found and found[-1] >= b"400" else b""
        return f"{b' '.join(found[:4]).decode()} {closed} {re.sub(rb'[^a-z ]+', b'?', last).decode()}"

    return judge


HTTP_REQUESTS = Fuzzer("http", requests, _open, TOKENS)
