"""Clients over WebSocket against the broker: stompjs, webstomp-client, stomp-websocket in Node; stomp.py in Python."""

from __future__ import annotations

import re
import subprocess
from functools import partial

import pytest
import stomp

from tests.e2e.foreign_clients import PROGRAMS, node_with, read_verdicts
from tests.e2e.stomp_py_client import Listener
from tests.kit.packages import Absent
from tests.kit.process import LOOPBACK, STOMP, WAIT_S, BrokerProcess, configuration, eventually, for_the_module, running

pytestmark = pytest.mark.e2e

CHECKS = re.findall(r"^  (?:async )?(\w+)(?:\(\) \{|: \(\) =>)", (PROGRAMS / "web" / "client.cjs").read_text(), re.M)
ACCEPTORS = {"stomp": STOMP, "wide": STOMP + ";webSocketMaxFramePayloadLength=4194304"}


broker = for_the_module(partial(running, configuration(ACCEPTORS)))


@pytest.fixture(scope="module")
def verdicts(broker: BrokerProcess) -> dict[str, str]:
    """What the program found."""
    try:
        node, modules = node_with(PROGRAMS / "web", "@stomp/stompjs", "ws", "webstomp-client", "stompjs/lib/stomp.js")
    except Absent as absent:
        pytest.skip(f"no clients over WebSocket in Node: {absent}")
    program = subprocess.Popen(
        [node, str(PROGRAMS / "web" / "client.cjs"), str(broker.port), str(broker.ports["wide"]), "web"],
        env={"NODE_PATH": str(modules), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return read_verdicts(program)


@pytest.mark.parametrize("check", CHECKS)
def test_in_node(verdicts: dict[str, str], check: str) -> None:
    assert verdicts.get(check, verdicts[""]) == "ok"


def test_no_check_is_forgotten(verdicts: dict[str, str]) -> None:
    assert set(verdicts) - {""} == set(CHECKS)
    assert len(CHECKS) > 10


def test_stomp_py(broker: BrokerProcess) -> None:
    """Its connection over WebSocket sends text and binary messages, and wants heart-beats."""
    pytest.importorskip("websocket", reason="websocket-client is not installed (pip install stomp.py[websocket])")
    connection = stomp.WSStompConnection([(LOOPBACK, broker.port)], heartbeats=(1000, 1000), ws_path="/stomp")
    inbox = Listener()
    connection.set_listener("inbox", inbox)
    connection.connect(wait=True)
    connection.subscribe("/queue/ws.py", id="1", ack="auto")
    bodies = ["hello", "Ж", "x" * 50_000]
    for body in bodies:
        connection.send("/queue/ws.py", body)
    assert [inbox.messages.get(timeout=WAIT_S).body for _ in bodies] == bodies
    connection.disconnect(receipt="bye")
    eventually("the receipt", lambda: [one.headers["receipt-id"] for one in inbox.receipts], ["bye"].__eq__)
