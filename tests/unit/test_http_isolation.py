"""A socket that fails at any call ends its own HTTP connection; others are answered, and nothing counts it any more."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from artemis_py.server.http.requests import FileBody, Handler, Response
from tests.kit.process import open_below
from tests.kit.stepped_http import GET, FakeTransport, SteppedHttp

PIECES = b"GET /pieces HTTP/1.1\r\nHost: broker\r\n\r\n"
FILE = b"GET /file HTTP/1.1\r\nHost: broker\r\n\r\n"
IDLE_MS = 10**9


UNKNOWN = frozenset({"set_write_buffer_limits", "get_extra_info"})
"""What a transport in memory need not carry out."""
CALLS = UNKNOWN | {"write", "close", "abort", "pause_reading", "resume_reading"}


class FaultyTransport(FakeTransport):
    """Notes every call and raises at the one with this number, and at all that follow where it ``stays`` broken."""

    def __init__(self, number: int, stays: bool = False) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._number = number
        self._stays = stays

    def __getattribute__(self, name: str) -> Any:
        if name not in CALLS:
            return super().__getattribute__(name)
        real = (lambda *_, **__: None) if name in UNKNOWN else super().__getattribute__(name)
        return partial(self._call, name, real)

    def _call(self, name: str, real: Callable[..., object], *arguments: object, **named: object) -> object:
        self.calls.append(name)
        called = len(self.calls) - 1
        if called == self._number or (self._stays and called > self._number >= 0):
            raise OSError(9, "Bad file descriptor")
        return real(*arguments, **named)


@pytest.mark.parametrize("question", [GET, PIECES, FILE, b"NONSENSE\r\n\r\n"], ids=["whole", "pieces", "file", "bad"])
@pytest.mark.parametrize("stays", [False, True], ids=["once", "from then on"])
def test_a_socket_that_fails_at_any_call_harms_nobody_else(question: bytes, stays: bool, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"hello")
    routes: dict[str, Handler] = {
        "/pieces": lambda _: Response(200, "text/plain", iter([b"one", b"two"])),
        "/file": lambda _: Response(200, "text/plain", FileBody(os.open(file, os.O_RDONLY), 0, 5)),
    }
    healthy, world = FaultyTransport(-1), SteppedHttp(routes)
    world.connect(healthy)[0].data_received(question)
    world.run()
    world.acceptor.tick(IDLE_MS)
    assert healthy.calls
    for number in range(len(healthy.calls)):
        world, failing = SteppedHttp(routes), FaultyTransport(number, stays)
        connection, _ = world.connect(failing)
        connection.data_received(question)
        world.run()
        assert world.talk(GET).written.endswith(b"GET ")
        world.acceptor.tick(IDLE_MS)
        connection.connection_lost(None)
        assert world.acceptor.faults.counts["http"] or failing.calls[number] == "get_extra_info"
        assert world.acceptor.connections_open == 1, f"{failing.calls[number]} left the connection in the acceptor"
        assert open_below(tmp_path) == set(), f"{failing.calls[number]} left the file open"
