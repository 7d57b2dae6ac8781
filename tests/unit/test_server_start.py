"""A start is not disturbed by what the disk's threads do meanwhile."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from artemis_py.config.reader import loads
from artemis_py.core.broker import Broker
from artemis_py.server import lifecycle
from artemis_py.server.lifecycle import Server
from artemis_py.storage.body_names import body_name

CONFIGURATION = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<journal-directory>{folder}/journal</journal-directory>
<large-messages-directory>{folder}/large</large-messages-directory>
</core></configuration>"""
WAIT_S = 10.0


def test_files_that_nobody_needs_may_go_before_the_broker_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that removes them says so to a server that is not complete yet."""
    orphan = tmp_path / "large" / body_name(1, durable=True)
    orphan.parent.mkdir()
    orphan.write_bytes(b"nobody's")
    woken: list[int] = []

    def slowly(*arguments: Any) -> Broker:
        until = time.monotonic() + WAIT_S
        while not woken and time.monotonic() < until:
            time.sleep(0.001)
        return Broker(*arguments)

    def wake(server: Server) -> None:
        original(server)
        woken.append(1)

    original = Server._wake
    monkeypatch.setattr(Server, "_wake", wake)
    monkeypatch.setattr(lifecycle, "Broker", slowly)

    async def start_and_stop() -> None:
        server = Server(loads(CONFIGURATION.format(folder=tmp_path)), asyncio.get_running_loop(), asyncio.Event())
        await server.listen()
        await asyncio.sleep(0)
        assert server.turns.stats.turns
        await server.stop()

    asyncio.run(start_and_stop())
    assert woken, "the thread did not live to say it"
    assert not orphan.exists()
