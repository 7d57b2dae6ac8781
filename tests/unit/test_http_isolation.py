"""A socket that fails at any call ends its own HTTP connection; others are answered, and nothing counts it any more."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from artemis_py.server.http.requests import FileBody, Handler, Response
from tests.kit.fake_loop import FaultyTransport
from tests.kit.process import open_below
from tests.kit.stepped_http import GET, SteppedHttp

PIECES = b"GET /pieces HTTP/1.1\r\nHost: broker\r\n\r\n"
FILE = b"GET /file HTTP/1.1\r\nHost: broker\r\n\r\n"
IDLE_MS = 10**9
BROKEN = OSError(9, "Bad file descriptor")


@pytest.mark.parametrize("question", [GET, PIECES, FILE, b"NONSENSE\r\n\r\n"], ids=["whole", "pieces", "file", "bad"])
@pytest.mark.parametrize("fails_at", [operator.eq, operator.ge], ids=["once", "from then on"])
@pytest.mark.parametrize("reads", [True, False], ids=["reads", "reads nothing"])
def test_a_socket_that_fails_at_any_call_harms_nobody_else(
    question: bytes, fails_at: Callable[[int, int], bool], reads: bool, tmp_path: Path
) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"hello")
    routes: dict[str, Handler] = {
        "/pieces": lambda _: Response(200, "text/plain", iter([b"one", b"two"])),
        "/file": lambda _: Response(200, "text/plain", FileBody(os.open(file, os.O_RDONLY), 0, 5)),
    }
    world, calls = SteppedHttp(routes), list[str]()
    connection, transport = world.connect(partial(FaultyTransport, fails=lambda *_: None, calls=calls))
    transport.client_reads = reads
    connection.data_received(question)
    world.loop.run()
    world.acceptor.tick(IDLE_MS)
    assert calls
    for number in range(len(calls)):
        world, calls = SteppedHttp(routes), []
        connection, transport = world.connect(
            partial(FaultyTransport, fails=lambda at, _: BROKEN if fails_at(at, number) else None, calls=calls)  # noqa: B023
        )
        transport.client_reads = reads
        connection.data_received(question)
        world.loop.run()
        assert world.talk(GET).taken.endswith(b"GET ")
        world.acceptor.tick(IDLE_MS)
        world.loop.run()
        if not transport.lost:
            connection.connection_lost(None)
        assert world.acceptor.faults.counts["http"] or calls[number] == "get_extra_info"
        assert not world.acceptor.connections_open, f"{calls[number]} left the connection in the acceptor"
        assert open_below(tmp_path) == set(), f"{calls[number]} left the file open"
