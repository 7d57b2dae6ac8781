"""Handshakes under way: their number has a limit, and the peer with the most gives way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from artemis_py.server.tls import handshakes
from artemis_py.server.tls.handshakes import Handshakes


@dataclass(eq=False)
class Link:
    """A connection that only remembers."""

    desk: Handshakes
    network: str
    result: str = ""

    def give_up(self, result: str, reason: str) -> None:
        assert reason
        self.result = result
        self.desk.end(self)


def test_the_peer_with_the_most_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "UNDER_WAY_MAX", 4)
    loop = asyncio.new_event_loop()
    desk = Handshakes(loop)
    links = [Link(desk, network) for network in ("10.0.0.1", *["10.0.0.2"] * 5, "10.0.0.3")]
    for link in links:
        desk.begin(link)
    assert [link.result for link in links] == ["", "crowded", "crowded", "crowded", "", "", ""]
    assert len(desk) == 4
    desk.end(links[0])
    desk.end(links[0])
    assert len(desk) == 3
    desk.stop()
    assert (len(desk), links[-1].result) == (0, "left")
    loop.close()
