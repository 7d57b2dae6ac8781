"""A start is not disturbed by what the disk's threads do meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from artemis_py.config.reader import loads
from artemis_py.core.broker import Broker
from artemis_py.server import server as server_module
from artemis_py.server.server import Server
from artemis_py.storage.format.names import body_name
from tests.kit.loops import called_back, until

CONFIGURATION = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<journal-directory>{folder}/journal</journal-directory>
<large-messages-directory>{folder}/large</large-messages-directory>
<paging-directory>{folder}/paging</paging-directory><bindings-directory>{folder}/bindings</bindings-directory>
</core></configuration>"""
WAIT_S = 120.0


@pytest.mark.asyncio
async def test_files_that_nobody_needs_may_go_before_the_broker_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that removes them says so to a server that is not complete yet."""
    orphan = tmp_path / "large" / body_name(1, durable=False)
    orphan.parent.mkdir()
    orphan.write_bytes(b"nobody's")
    woken = threading.Event()

    original = Server._wake
    monkeypatch.setattr(Server, "_wake", lambda server: (original(server), woken.set()))
    # a thread that did not live to say it leaves the server without a broker
    monkeypatch.setattr(server_module, "Broker", lambda *given: woken.wait(WAIT_S) and Broker(*given))
    server = Server(loads(CONFIGURATION.format(folder=tmp_path)), asyncio.get_running_loop(), asyncio.Event())
    await server.listen()
    await until(lambda: server.turns.stats.turns > 0)
    await server.stop()
    assert not orphan.exists()


@pytest.mark.asyncio
async def test_no_turn_runs_when_the_store_is_closed(tmp_path: Path) -> None:
    """Whoever asks for one: threads of the disk, timers, a socket that closes late."""
    server = Server(loads(CONFIGURATION.format(folder=tmp_path)), asyncio.get_running_loop(), asyncio.Event())
    await server.listen()
    await server.stop()
    turns = server.stats.turns
    server.turns.schedule()
    server.turns.run()
    await called_back()
    assert server.stats.turns == turns
