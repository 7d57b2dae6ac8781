"""The broker runs on asyncio's event loop, and on uvloop's where that is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kit.client import connected
from tests.kit.process import STOMP, WAIT_S, BrokerProcess, configuration, running

pytestmark = pytest.mark.e2e

QUEUE = '<address name="orders"><anycast><queue name="orders"/></anycast></address>'
TEXT = configuration({"stomp": STOMP}, addresses=QUEUE)
ROUNDS = 50


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_broker_on_each_loop(loop: str, tmp_path: Path) -> None:
    """One client alone, which a turn serves at once, then several together; and an orderly stop."""
    if loop == "uvloop":
        pytest.importorskip("uvloop", reason="the extra uvloop is not installed")
    with running(TEXT, tmp_path, {**os.environ, "ARTEMIS_PY_LOOP": loop}, anew=True) as broker:
        loaded = Path(f"/proc/{broker.process.pid}/maps").read_text()
        assert ("/uvloop/" in loaded) == (loop == "uvloop")
        for count in (1, 8):
            clients = [connected(broker.port) for _ in range(count)]
            for number in range(ROUNDS):
                for client in clients:
                    client.send("SEND", {"destination": "/queue/orders", "receipt": number}, b"x" * 1000)
                for client in clients:
                    client.await_receipt(str(number))
            for client in clients:
                client.finish()
        reader = connected(broker.port)
        reader.subscribe("/queue/orders", ack="auto")
        for _ in range(9 * ROUNDS):
            reader.message()
        reader.close()


def test_another_loop_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "broker.xml"
    file.write_text(TEXT)
    environment = {**os.environ, "ARTEMIS_PY_LOOP": "trio"}
    broker = BrokerProcess(["run", str(file)], tmp_path / "log", environment=environment)
    assert broker.process.wait(WAIT_S) == 2
    assert "ARTEMIS_PY_LOOP is 'trio'; it may be asyncio or uvloop, or not set" in broker.said
