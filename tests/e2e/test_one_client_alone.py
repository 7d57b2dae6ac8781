"""What one client does to its own connection stops nobody else: resets after DISCONNECT, with messages not read."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import BrokerProcess, configuration

pytestmark = pytest.mark.e2e

BYSTANDERS = 20
VICTIMS = 5
BEAT_MS = 500


def sockets_of(broker: BrokerProcess) -> int:
    """How many sockets its process has open."""
    count = 0
    for descriptor in Path(f"/proc/{broker.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            count += str(descriptor.readlink()).startswith("socket:")
    return count


@pytest.mark.parametrize(
    ("leave", "end"),
    [
        (StompSocket.reset, b""),
        (StompSocket.reset, b"DISCONNECT\nreceipt:1\n\n\0"),
        (StompSocket.close, b"NONSENSE\n\n\0"),  # with unread messages in the socket the kernel sends RST, too
    ],
)
def test_a_reset_with_unread_messages_stops_nobody_else(
    start_broker: Callable[[str], BrokerProcess], leave: Callable[[StompSocket], None], end: bytes
) -> None:
    broker = start_broker(configuration())
    broker.await_metric(0, "artemis_connections")
    before_anybody = sockets_of(broker)
    with ExitStack() as stack:
        bystanders = [stack.enter_context(connected(broker.port, heart_beat=f"0,{BEAT_MS}")) for _ in range(BYSTANDERS)]
        for number, bystander in enumerate(bystanders):
            bystander.subscribe(f"/queue/own.{number}")
        victims = [connected(broker.port) for _ in range(VICTIMS)]
        for number, victim in enumerate(victims):
            victim.subscribe(f"/queue/victim.{number}")
            bystanders[0].ask("SEND", {"destination": f"/queue/victim.{number}"}, b"not read")
        broker.process.send_signal(signal.SIGSTOP)  # it sees what happens meanwhile afterwards, all at once
        for victim in victims:
            victim.raw(end)
            leave(victim)
        for number, bystander in enumerate(bystanders):
            bystander.send("SEND", {"destination": f"/queue/own.{number}", "receipt": "after"}, b"mine")
        broker.process.send_signal(signal.SIGCONT)
        for bystander in bystanders:
            bystander.await_receipt("after")
            bystander.acknowledge(bystander.message())
        for bystander in bystanders:
            bystander.await_beat()
        broker.await_metric(BYSTANDERS, "artemis_connections")
        broker.await_metric(BYSTANDERS, "artemis_session_count")
        for number in range(VICTIMS):
            broker.await_metric(0, "artemis_consumer_count", queue=f"victim.{number}")
            broker.await_count(f"victim.{number}", 1)
        assert broker.metric("artemis_connection_faults_total") == 0, "what happens daily is no fault"
    broker.await_metric(0, "artemis_connections")
    broker.eventually("its descriptors", lambda: sockets_of(broker), lambda count: count <= before_anybody)
    assert "failed" not in broker.said


def test_frames_behind_a_reset_are_still_carried_out(start_broker: Callable[[str], BrokerProcess]) -> None:
    broker = start_broker(configuration())
    victim = connected(broker.port)
    broker.process.send_signal(signal.SIGSTOP)
    victim.raw(frame("SEND", {"destination": "/queue/last"}, b"words") + frame("DISCONNECT"))
    victim.reset()
    broker.process.send_signal(signal.SIGCONT)
    broker.await_count("last", 1)
    broker.await_metric(0, "artemis_connections")
