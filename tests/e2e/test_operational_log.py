"""What a real broker tells of its queues: lines on standard error, and metrics."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.kit.client import StompSocket, connected, frame, refused
from tests.kit.process import STOMP, configuration, misshapen, ports_left_out, running
from tests.kit.secured import USERS, basic, secured_broker

pytestmark = pytest.mark.e2e

QUEUES = """
<address name="ring"><anycast><queue name="ring" overflow-policy="RING" max-depth-messages="1"/></anycast></address>
<address name="deep"><anycast><queue name="deep" alert-threshold-depth-messages="2"/></anycast></address>
"""
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\S+) queue=(\S+) (.*)$", re.MULTILINE)


def test_the_operational_log_of_a_broker(tmp_path: Path) -> None:
    text = configuration(addresses=QUEUES)
    with running(text, tmp_path) as broker, connected(broker.port) as sender:
        for number in range(100):
            for queue in ("ring", "deep"):
                sender.raw(frame("SEND", {"destination": f"/queue/{queue}", "receipt": number}))
                sender.expect("RECEIPT")
        lines = broker.eventually("lines", lambda: LINE.findall(broker.said), lambda found: len(found) >= 4)
        told = [(code, queue) for code, queue, _ in lines]
        assert told == [("QUE-1001", "ring"), ("QUE-1001", "deep"), ("QUE-1005", "ring"), ("ART-1001", "deep")]
        assert "depth_messages=1 " in lines[2][2]
        assert re.search(r" count=\d+ messages dropped by a ring", lines[2][2]), lines[2]
        assert "alert=MESSAGE_COUNT_ALERT value=2 threshold=2" in lines[3][2]
        broker.await_metric(99, "artemis_queue_events_total", event="QUE-1005")
        broker.await_metric(1, "artemis_queue_alerts", queue="deep")


def test_every_line_says_when_what_and_who(tmp_path: Path) -> None:
    """Besides this test, every broker that a test starts is asked for the shape of its lines when it ends."""
    assert misshapen("a\n2026-01-01T00:00:00.000Z ART-2000 text\n\tmore\nno line\nhalf") == ["no line"]
    with secured_broker(tmp_path) as broker:
        assert broker.ask("GET", "/api/queues").status == 401, "as a browser does before anybody logs in"
        refused(broker.port, login="nobody", passcode="wrong")
        with connected(broker.port, login="eve", passcode=USERS["eve"]) as eve:
            eve.send("SUBSCRIBE", {"id": "1", "destination": "locked"})
            eve.expect("ERROR")
            host, port = eve.socket.getsockname()
        said = broker.await_said(" ART-2002 ")
        denied = re.findall(r"^\S+Z ART-2002 (.*)$", said, re.MULTILINE)
        wanted = "AMQ229213: User: eve does not have permission='CONSUME' for queue locked on address locked"
        assert denied == [f"user=eve from={host}:{port} acceptor=stomp {wanted}"]
        logins = re.findall(r"^\S+Z ART-2001 (.*)$", said, re.MULTILINE)
        assert [line.partition(": User")[0] for line in ports_left_out([f" {line}" for line in logins])] == [
            " user=nobody from=127.0.0.1:PORT acceptor=stomp warning: login of 'nobody' refused"
        ], "to be asked for a login is no failed one"


def test_what_happened_to_a_client_or_its_messages(tmp_path: Path) -> None:
    """A message that an address drops is receipted, so the log alone tells of it; and who was sent away may not know
    why.
    """
    acceptor = f"{STOMP};handshakeTimeout=500;connectionsAllowed=2"
    settings = "".join(
        f"<address-setting match='{policy}'><max-size-messages>3</max-size-messages>"
        f"<address-full-policy>{policy}</address-full-policy></address-setting>"
        for policy in ("DROP", "FAIL", "PAGE")
    )
    text = configuration({"stomp": acceptor}, settings=settings)
    with running(text, tmp_path) as broker:
        with connected(broker.port) as sender:
            for policy in ("DROP", "PAGE", "FAIL"):
                for number in range(3):
                    sender.raw(frame("SEND", {"destination": f"/queue/{policy}", "receipt": number}))
                    sender.expect("RECEIPT")
                sender.raw(frame("SEND", {"destination": f"/queue/{policy}", "receipt": 3}))
                sender.expect("ERROR" if policy == "FAIL" else "RECEIPT")
            host, port = sender.socket.getsockname()
        with StompSocket(broker.port) as late, StompSocket(broker.port), StompSocket(broker.port):
            late.expect("ERROR")
        said = broker.eventually("lines", lambda: broker.said, lambda said: said.count(" ART-1019 ") >= 2)
    full, who = "messages=3 bytes=\\d+ limit=max-messages", f"session=s1 from={host}:{port} acceptor=stomp"
    for line in (
        f"ART-1014 address=DROP {full} {who} count=1 messages dropped by a full address",
        f"ART-1016 address=PAGE {full} address full: from now on it pages",
        f"ART-1015 address=FAIL {full} {who} count=1 messages refused by a full address",
        f"ART-1018 {who} why=.*full.* client got an ERROR",
        "ART-1019 session=.* why=.*connectionsAllowed.* connection closed by the broker",
        "ART-1019 session=.* why=.*handshakeTimeout.* connection closed by the broker",
    ):
        assert re.search(rf"^\S+Z {line}$", said, re.MULTILINE), (line, said)


def test_lines_of_the_start(tmp_path: Path) -> None:
    """What is wrong with the configuration has time, code, file and line, as all that follows."""
    setting = "<thread-pool-max-size>3</thread-pool-max-size>"
    with running(configuration({"stomp": STOMP}, core=setting), tmp_path) as broker:
        first, *others = broker.said.splitlines()
    assert re.fullmatch(r"\S+Z CFG-1005 file=\S+ line=\d+ note\[tuning\]: .*thread-pool-max-size.*", first), first
    assert [line.split()[1] for line in others[:2]] == ["BRK-1002", "BRK-1004"]


def test_a_denial_over_http_says_where_it_came_from(tmp_path: Path) -> None:
    """An operation, a message, and Jolokia, each of which asks in its own way."""
    bean = quote('org.apache.activemq.artemis:broker="secured"')
    with secured_broker(tmp_path) as broker:
        for method, path in (
            ("GET", "/api/queues"),
            ("POST", "/messages/locked/take"),
            ("GET", f"/console/jolokia/read/{bean}/TotalMessageCount"),
        ):
            broker.ask(method, path, authorization=basic("eve"))
        denied = broker.eventually(
            "denials",
            lambda: re.findall(
                r"^\S+Z ART-2002 (.*):\d+ (acceptor=\S+) AMQ\d+: .* on address (\S+)$", broker.said, re.MULTILINE
            ),
            lambda found: len(found) == 3,
        )
    places = ("mops.broker.listQueues", "locked", "mops.broker.getTotalMessageCount")
    assert denied == [("user=eve from=127.0.0.1", "acceptor=http", place) for place in places]
