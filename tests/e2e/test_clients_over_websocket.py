"""Clients over WebSocket against the broker: stompjs, webstomp-client, stomp-websocket in Node; stomp.py in Python."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
import stomp
from stomp.utils import Frame

from tests.e2e.foreign_clients import PROGRAMS, Absent, node_with, read_verdicts
from tests.kit.process import LOOPBACK, STOMP, BrokerProcess, configuration, eventually, running

pytestmark = pytest.mark.e2e

CHECKS = re.findall(r"^  (?:async )?(\w+)(?:\(\) \{|: \(\) =>)", (PROGRAMS / "web" / "client.cjs").read_text(), re.M)
ACCEPTORS = {"stomp": STOMP, "wide": STOMP + ";webSocketMaxFramePayloadLength=4194304"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running(configuration(ACCEPTORS), tmp_path_factory.mktemp("web")) as process:
        yield process


@pytest.fixture(scope="module")
def verdicts(broker: BrokerProcess) -> dict[str, str] | Absent:
    """What the program found, or why it could not run."""
    try:
        node, modules = node_with(PROGRAMS / "web", "@stomp/stompjs", "ws", "webstomp-client", "stompjs/lib/stomp.js")
    except Absent as absent:
        return absent
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
def test_in_node(verdicts: dict[str, str] | Absent, check: str) -> None:
    if isinstance(verdicts, Absent):
        pytest.skip(f"no clients over WebSocket in Node: {verdicts}")
    assert verdicts.get(check, verdicts[""]) == "ok"


def test_no_check_is_forgotten(verdicts: dict[str, str] | Absent) -> None:
    if isinstance(verdicts, Absent):
        pytest.skip(f"no clients over WebSocket in Node: {verdicts}")
    assert set(verdicts) - {""} == set(CHECKS)
    assert len(CHECKS) > 10


class Inbox(stomp.ConnectionListener):  # type: ignore[misc]
    """What stomp.py got."""

    def __init__(self) -> None:
        self.bodies: list[object] = []
        self.receipts: list[str] = []

    def on_message(self, frame: Frame) -> None:
        self.bodies.append(frame.body)

    def on_receipt(self, frame: Frame) -> None:
        self.receipts.append(frame.headers["receipt-id"])


def test_stomp_py(broker: BrokerProcess) -> None:
    """Its connection over WebSocket sends text and binary messages, and wants heart-beats."""
    pytest.importorskip("websocket", reason="websocket-client is not installed (pip install stomp.py[websocket])")
    connection = stomp.WSStompConnection([(LOOPBACK, broker.port)], heartbeats=(1000, 1000), ws_path="/stomp")
    inbox = Inbox()
    connection.set_listener("inbox", inbox)
    connection.connect(wait=True)
    connection.subscribe("/queue/ws.py", id="1", ack="auto")
    bodies = ["hello", "Ж", "x" * 50_000]
    for body in bodies:
        connection.send("/queue/ws.py", body)
    eventually("the bodies", lambda: list(inbox.bodies), lambda got: got == bodies)
    connection.disconnect(receipt="bye")
    eventually("the receipt", lambda: list(inbox.receipts), lambda got: got == ["bye"])
