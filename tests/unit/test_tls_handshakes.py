"""Handshakes under way: their number has a limit, and the peer with the most gives way."""

from __future__ import annotations

import asyncio

import pytest

from artemis_py.server.tls import handshakes
from artemis_py.server.tls.handshakes import Handshakes


class Link:
    """A connection that only remembers."""

    def __init__(self, desk: Handshakes, network: str) -> None:
        self.network = network
        self.result = ""
        self._desk = desk
        desk.begin(self)

    def give_up(self, result: str, reason: str) -> None:
        assert reason
        self.result = result
        self._desk.end(self)


def test_the_peer_with_the_most_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "UNDER_WAY_MAX", 4)
    loop = asyncio.new_event_loop()
    desk = Handshakes(loop)
    first = Link(desk, "10.0.0.1")
    many = [Link(desk, "10.0.0.2") for _ in range(3)]
    more = [Link(desk, "10.0.0.2") for _ in range(2)]
    other = Link(desk, "10.0.0.3")
    assert [one.result for one in (first, *many, *more, other)] == ["", "crowded", "crowded", "crowded", "", "", ""]
    assert len(desk) == 4
    desk.end(first)
    desk.end(first)
    assert len(desk) == 3
    desk.stop()
    assert (len(desk), other.result) == (0, "left")
    loop.close()
