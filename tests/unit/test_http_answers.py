"""Routes with parameters, bodies of requests, answers that come later, and parts of files on real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.server.http.acceptor import HttpAcceptor
from artemis_py.server.http.authentication import Authentication
from artemis_py.server.http.disconnects import DisconnectWatch
from artemis_py.server.http.log_routes import file_response, requested_range
from artemis_py.server.http.origins import Hosts
from artemis_py.server.http.ports import connect
from artemis_py.server.http.requests import FileBody, Handler, HttpLimits, Response
from artemis_py.server.http.routing import Route, Routes
from tests.kit.loops import called_back, until
from tests.kit.process import open_below
from tests.kit.stepped_http import SteppedHttp, answer, answers, asked
from tests.unit.test_http_authentication import AUTHORIZER, SmallDesk

# ---- routes --------------------------------------------------------------------------------------


def test_parameters_are_parts_of_the_path() -> None:
    routes = Routes([Route(path, {"GET": Mock()}) for path in ("/a/{x}", "/a/b/{y}/{z}", "/a/c")])
    for path, (of, parameters) in {
        "/a/1": ("/a/{x}", {"x": "1"}),
        "/a/%C3%A9%2F": ("/a/{x}", {"x": "é/"}),
        "/a/c": ("/a/c", {}),
        "/a/b/1/2": ("/a/b/{y}/{z}", {"y": "1", "z": "2"}),
    }.items():
        found = routes.find(path)
        assert found is not None, path
        assert (found[0].path, found[1]) == (of, parameters)
    for path in ("/a", "/a/", "/a/1/", "/a/b/1", "/a/b//2", "//a/1", "", "a/1"):
        assert routes.find(path) is None, path


def test_methods_have_handlers_of_their_own() -> None:
    def say(text: bytes) -> Handler:
        return lambda request: Response(200, "text/plain", text + request.parameters["name"].encode() + request.body)

    routes = [Route("/one/{name}", {"GET": say(b"got "), "PUT": say(b"put "), "DELETE": say(b"dropped ")})]
    stream = asked("GET", "/one/a") + asked("PUT", "/one/b", body=b" body") + asked("DELETE", "/one/c")
    for step in (1, 7, 1000):
        transport = SteppedHttp(routes).talk(stream, step=step)
        bodies = [body for _, _, body in answers(transport.taken, "GET", "PUT", "DELETE")]
        assert bodies == [b"got a", b"put b body", b"dropped c"]
    status, headers, _ = answer(SteppedHttp(routes).talk(asked("POST", "/one/a")), "POST")
    assert (status, headers["allow"]) == (405, "GET, HEAD, PUT, DELETE")


def test_a_body_is_read_only_where_somebody_wants_it() -> None:
    keep = Mock(return_value=Response(200, "text/plain", b"ok"))
    routes = [Route("/keep", {"GET": keep, "PUT": keep})]
    chunked = asked("PUT", "/keep", b"Transfer-Encoding: chunked") + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    SteppedHttp(routes).talk(chunked + asked("GET", "/keep", b"Content-Length: 3") + b"xyz")
    assert [call.args[0].body for call in keep.call_args_list] == [b"abcde", b""]
    too_long = SteppedHttp(routes, HttpLimits(body_bytes_max=10)).talk(asked("PUT", "/keep", body=b"x" * 11))
    assert answer(too_long, "PUT")[0] == 413
    assert keep.call_count == 2


def test_a_client_that_asks_before_it_sends_a_body_is_told_to() -> None:
    world = SteppedHttp([Route("/keep", {"PUT": lambda request: Response(200, "text/plain", request.body)})])
    connection, transport = world.connect()
    request = asked("PUT", "/keep", b"Expect: 100-continue", body=b"hello")
    connection.data_received(request[:-5])
    world.loop.run()
    assert bytes(transport.taken).startswith(b"HTTP/1.1 100 ")
    assert not transport.closed
    connection.data_received(request[-5:])
    world.loop.run()
    assert transport.taken.endswith(b"hello")


# ---- answers that come later ---------------------------------------------------------------------


@asynccontextmanager
async def accepting(
    routes: list[Route],
    limits: HttpLimits | None = None,
    authentication: Authentication | None = None,
    now_ms: Callable[[], int] | None = None,
) -> AsyncIterator[tuple[HttpAcceptor, tuple[str, int]]]:
    """An acceptor on a real socket."""
    loop = asyncio.get_running_loop()
    disconnects = DisconnectWatch(loop)
    acceptor = HttpAcceptor(
        routes,
        now_ms=now_ms or (lambda: int(loop.time() * 1000)),
        call_soon=loop.call_soon,
        call_threadsafe=loop.call_soon_threadsafe,
        hosts=Hosts(["broker"]),
        limits=limits,
        authentication=authentication,
        disconnects=disconnects,
    )
    server = await loop.create_server(partial(connect, acceptor), "127.0.0.1", 0)
    try:
        async with asyncio.timeout(30):
            yield acceptor, server.sockets[0].getsockname()
    finally:
        acceptor.stop()
        disconnects.close()
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def talking(
    routes: list[Route], limits: HttpLimits | None = None, authentication: Authentication | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client of one. An end without a word is seen before the acceptor stops."""
    async with accepting(routes, limits, authentication) as (acceptor, address):
        reader, writer = await asyncio.open_connection(*address, limit=1 << 24)
        yield reader, writer
        if writer.is_closing():
            await until(lambda: not acceptor.connections_open)
        writer.close()


@pytest.mark.asyncio
async def test_an_answer_may_come_later_and_keeps_its_place() -> None:
    first, second = asyncio.Future[Response](), asyncio.Future[Response]()
    later = Mock(side_effect=[first, second])
    async with talking([Route("/later", {"GET": later}), Route("/fails", {"GET": later})]) as (reader, writer):
        writer.write(asked("GET", "/later") + asked("GET", "/fails") + asked("GET", "/none"))
        await until(lambda: later.call_count == 1)
        first.set_result(Response(200, "text/plain", b"later"))
        await until(lambda: later.call_count == 2)
        second.set_exception(ZeroDivisionError("secret"))
        writer.write_eof()
        found = answers(await reader.read(), "GET", "GET", "GET")
        assert [(status, body) for status, _, body in found][:2] == [(200, b"later"), (500, b"internal error\n")]
        assert found[2][0] == 404


@pytest.mark.asyncio
async def test_a_large_answer_in_pieces() -> None:
    pieces = [b"x" * 100_000] * 20
    large = Route("/large", {"GET": lambda _: Response(200, "text/plain", iter(pieces))})
    async with talking([large]) as (reader, writer):
        writer.write(asked("GET", "/large") + b"GET /none HTTP/1.0\r\n\r\n")
        writer.write_eof()
        first, second = answers(await reader.read(), "GET", "GET")
    assert first[::2] == (200, b"".join(pieces))
    assert second[0] == 404


@pytest.mark.asyncio
async def test_a_client_that_leaves_does_not_wait_for_its_answer() -> None:
    answer = asyncio.Future[Response]()
    later = Mock(return_value=answer)
    async with talking([Route("/later", {"GET": later})]) as (_, writer):
        writer.write(asked("GET", "/later"))
        await until(lambda: later.called)
    assert answer.cancelled()


@pytest.mark.asyncio
async def test_one_that_sends_no_more_is_given_up_after_a_while() -> None:
    first, second = asyncio.Future[Response](), asyncio.Future[Response]()
    later = Mock(side_effect=[first, second])
    async with talking([Route("/later", {"GET": later})]) as (_, writer):
        writer.write(asked("GET", "/later") * 2)
        writer.write_eof()
        await until(lambda: later.call_count == 1)
        first.set_result(Response(200, "text/plain", b"in time"))
        await until(second.cancelled)


@pytest.mark.asyncio
async def test_a_client_that_leaves_while_its_login_is_decided() -> None:
    desk = SmallDesk(waits=True)
    routes = [Route("/log", {"GET": Mock()}, {"GET": "broker.getLog"})]
    async with talking(routes, authentication=Authentication(desk, AUTHORIZER)) as (_, writer):
        writer.write(asked("GET", "/log", b"Authorization: Basic YTpi"))
        await until(lambda: len(desk.waiting) == 1)
        writer.transport.abort()
    assert desk.waiting[0][0].is_given_up


# ---- parts of files ------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_client_that_leaves_while_a_file_waits_for_its_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4 << 20))
    async with talking(serving(path), HttpLimits(file_bytes_per_second_max=600)) as (reader, writer):
        writer.write(asked("GET", "/file"))
        await reader.readexactly(1 << 20)  # the next chunk is due in half an hour
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()


@pytest.mark.parametrize(
    ("header", "size", "wanted"),
    [
        (None, 10, (0, 10)),
        ("bytes=0-3", 10, (0, 4)),
        ("bytes=3-", 10, (3, 7)),
        ("bytes=-3", 10, (7, 3)),
        ("bytes=-30", 10, (0, 10)),
        ("bytes=3-300", 10, (3, 7)),
        ("bytes=9-9", 10, (9, 1)),
        ("bytes=10-", 10, None),
        ("bytes=10-11", 10, None),
        ("bytes=-0", 10, None),
        ("bytes=0-", 0, None),
        ("bytes=-5", 0, None),
        ("bytes=-", 10, (0, 10)),
        ("bytes=5-3", 10, (0, 10)),
        ("bytes=0-1,3-4", 10, (0, 10)),
        ("lines=0-1", 10, (0, 10)),
        ("bytes=a-b", 10, (0, 10)),
        ("Bytes = 2 - 3", 10, (2, 2)),
    ],
)
def test_ranges(header: str | None, size: int, wanted: tuple[int, int] | None) -> None:
    assert requested_range(header, size) == wanted


def serving(path: Path, size_bytes: int | None = None) -> list[Route]:
    """A file at ``/file``."""
    said = path.stat().st_size if size_bytes is None else size_bytes
    return [Route("/file", {"GET": lambda request: file_response(request, os.open(path, os.O_RDONLY), said)})]


@pytest.mark.asyncio
async def test_a_file_and_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = os.urandom(5_000_000)
    path.write_bytes(content)
    ranges = (b"bytes=0-9", b"bytes=4999999-", b"bytes=5000000-", b"bytes=0-4999999", b"bytes=-7")
    async with talking(serving(path)) as (reader, writer):
        writer.write(asked("HEAD", "/file"))
        writer.write(asked("GET", "/file"))
        for text in ranges:
            writer.write(asked("GET", "/file", b"Range: %s" % text))
        writer.write(asked("HEAD", "/file", b"Range: bytes=0-1") + asked("GET", "/none"))
        writer.write_eof()
        methods = ["HEAD", *["GET"] * (1 + len(ranges)), "HEAD", "GET"]
        found = answers(await reader.read(), *methods)
        assert [status for status, _, _ in found] == [200, 200, 206, 206, 416, 206, 206, 206, 404]
        assert found[0][1]["content-length"] == "5000000"
        assert found[0][1]["accept-ranges"] == "bytes"
        assert found[1][2] == content
        assert [found[place][2] for place in (2, 3, 5, 6)] == [content[:10], content[-1:], content, content[-7:]]
        assert found[2][1]["content-range"] == "bytes 0-9/5000000"
        assert found[4][1]["content-range"] == "bytes */5000000"
        assert found[6][1]["content-range"] == "bytes 4999993-4999999/5000000"
        assert found[7][1]["content-length"] == "2"
    assert open_below(tmp_path) == set()


@pytest.mark.asyncio
async def test_a_file_that_is_shorter_than_said_cuts_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    async with talking(serving(path, 2000)) as (reader, writer):
        writer.write(asked("GET", "/file") * 2)
        try:
            text = await reader.read()
        except ConnectionResetError:
            return
        assert text.count(b"HTTP/1.1") <= 1


@pytest.mark.asyncio
async def test_a_client_that_does_not_read_holds_up_nobody_and_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as stream:
        stream.truncate(1 << 28)
    now = [0]
    async with accepting(serving(path), HttpLimits(idle_ms_max=1000), now_ms=lambda: now[0]) as (acceptor, address):
        lazy = socket.create_connection(address)
        lazy.sendall(asked("GET", "/file"))
        await until(lambda: acceptor.connections_open == 1)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(asked("GET", "/file", b"Range: bytes=0-99"))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        assert b" 206 " in head
        assert await asyncio.wait_for(reader.readexactly(100), 10) == bytes(100)
        writer.close()
        stuck = False
        while not stuck:  # until the kernel takes no more for the lazy one
            now[0] += 10
            acceptor.tick(now[0])
            stuck = acceptor.connections_open == 0
            await called_back()
        assert now[0] >= 1000
        lazy.close()


@pytest.mark.asyncio
async def test_all_transfers_together_have_a_speed_limit(tmp_path: Path) -> None:
    """Only too slow can be told from outside: two of 1 MiB at 8 MiB/s take no less than the one chunk that goes first
    allows.
    """
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with accepting(serving(path), HttpLimits(file_bytes_per_second_max=8 << 20)) as (_, address):
        pairs = [await asyncio.open_connection(*address) for _ in range(4)]
        for _, writer in pairs:
            writer.write(b"GET /file HTTP/1.0\r\n\r\n")
        for content in await asyncio.gather(*[reader.read() for reader, _ in pairs]):
            assert len(content) > 1 << 20
        for _, writer in pairs:
            writer.close()
    assert loop.time() - started >= 3 / 8


def test_a_body_that_nobody_takes_closes_its_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    FileBody(os.open(path, os.O_RDONLY), 0, 1)
    assert open_below(tmp_path) == set()
