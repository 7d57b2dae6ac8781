"""What a real broker tells of its queues: lines on standard error, and metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.broker_process import HTTP, STOMP, configuration, running
from tests.e2e.stomp_socket import connected, frame

pytestmark = pytest.mark.e2e

QUEUES = """
<address name="ring"><anycast><queue name="ring" overflow-policy="RING" max-depth-messages="1"/></anycast></address>
<address name="deep"><anycast><queue name="deep" alert-threshold-depth-messages="2"/></anycast></address>
"""
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\S+) queue=(\S+) (.*)$", re.MULTILINE)


def test_the_operational_log_of_a_broker(tmp_path: Path) -> None:
    text = configuration({"stomp": STOMP, "http": HTTP}, addresses=QUEUES)
    with running(text, tmp_path) as broker, connected(broker.port) as sender:
        for number in range(100):
            for queue in ("ring", "deep"):
                sender.raw(frame("SEND", {"destination": f"/queue/{queue}", "receipt": number}))
                sender.expect("RECEIPT")
        lines = broker.eventually("lines", lambda: LINE.findall(broker.said), lambda found: len(found) >= 4)
        told = [(code, queue) for code, queue, _ in lines]
        assert told == [("QUE-1001", "ring"), ("QUE-1001", "deep"), ("QUE-1005", "ring"), ("ART-1001", "deep")]
        assert "alert=MESSAGE_COUNT_ALERT value=2 threshold=2" in lines[3][2]
        broker.await_metric(99, "artemis_queue_events_total", event="QUE-1005")
        broker.await_metric(1, "artemis_queue_alerts", queue="deep")
