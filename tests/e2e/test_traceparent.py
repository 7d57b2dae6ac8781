"""``traceparent`` and ``tracestate`` arrive as they were sent, whatever way a message takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from websockets.sync.client import connect as connect_web
from websockets.typing import Subprotocol

from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import STOMP, SWEPT, WAIT_S, BrokerProcess, for_the_module, storing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE;with spaces \\c and \\n"
TRACED = {"traceparent": PARENT, "tracestate": STATE, "persistent": "true"}
ADDRESSES = """
<address name="from"><anycast><queue name="from"/></anycast></address>
<address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
<address name="EXP"><anycast><queue name="EXP"/></anycast></address>
<address name="paged"><anycast><queue name="paged"/></anycast></address>
<address name="side"><anycast><queue name="side"/></anycast></address>"""
SETTINGS = """
<address-setting match="#"><max-delivery-attempts>2</max-delivery-attempts>
<dead-letter-address>DLQ</dead-letter-address><expiry-address>EXP</expiry-address></address-setting>
<address-setting match="paged"><max-size-bytes>2000</max-size-bytes><page-size-bytes>1000</page-size-bytes>
<address-full-policy>PAGE</address-full-policy></address-setting>"""
DIVERT = """<diverts><divert name="aside"><address>from</address><forwarding-address>side</forwarding-address>
<exclusive>false</exclusive></divert></diverts>"""

pytestmark = pytest.mark.e2e


stored = partial(
    storing,
    acceptors={"stomp": STOMP + ";stompMinLargeMessageSize=10000"},
    core=f"{SWEPT}<message-expiry-scan-period>100</message-expiry-scan-period>{DIVERT}",
    addresses=ADDRESSES,
    settings=SETTINGS,
)
broker = for_the_module(stored)


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[StompSocket]:
    with connected(broker.port) as client:
        yield client


def check(client: StompSocket, source: str, *, ack: bool = True) -> str:
    """The next message has both; returns what acknowledges it."""
    message = client.expect("MESSAGE")
    assert (message.header("traceparent"), message.header("tracestate")) == (PARENT, STATE), source
    answer = message.header("ack") or ""
    if ack:
        client.ask("ACK", {"id": answer})
    return answer


@pytest.mark.parametrize(
    ("to", "source", "more", "size"),
    [
        ("/queue/plain", "/queue/plain", {}, 1),
        ("/topic/news.sport", "/topic/news.*", {}, 1),
        ("/queue/from", "/queue/side", {}, 1),
        ("/queue/late", "/queue/late", {"AMQ_SCHEDULED_DELAY": "50"}, 1),
        ("/queue/large", "/queue/large", {}, 50_000),
        ("/queue/dies", "/queue/EXP", {"expires": "1"}, 1),
    ],
    ids=["plain", "wildcard", "divert", "scheduled", "large body", "expired"],
)
def test_a_way(client: StompSocket, to: str, source: str, more: dict[str, str], size: int) -> None:
    client.subscribe(source)
    client.ask("SEND", {"destination": to, **TRACED, **more}, b"x" * size)
    check(client, source)


def test_retries_and_a_dead_letter(client: StompSocket) -> None:
    client.ask("SEND", {"destination": "/queue/bad", **TRACED}, b"x")
    client.subscribe("/queue/bad")
    for _ in range(2):
        client.ask("NACK", {"id": check(client, "bad", ack=False)})
    client.subscribe("/queue/DLQ", "2")
    check(client, "DLQ")


def test_a_transaction(client: StompSocket) -> None:
    client.send("BEGIN", {"transaction": "t"})
    client.send("SEND", {"destination": "/queue/together", "transaction": "t", **TRACED}, b"x")
    client.ask("COMMIT", {"transaction": "t"})
    client.subscribe("/queue/together")
    check(client, "together")


def test_over_websocket(broker: BrokerProcess, client: StompSocket) -> None:
    with connect_web(
        f"ws://127.0.0.1:{broker.port}", subprotocols=[Subprotocol("v12.stomp")], open_timeout=WAIT_S
    ) as web:
        web.send(frame("CONNECT", {"accept-version": "1.2", "host": "broker"}).decode())
        web.recv(10)
        web.send(frame("SUBSCRIBE", {"destination": "/queue/web", "id": "1", "ack": "auto"}).decode())
        web.send(frame("SEND", {"destination": "/queue/web", **TRACED}, b"x").decode())
        received = web.recv(10)
        text = received if isinstance(received, str) else received.decode()
        assert f"\ntraceparent:{PARENT}\n" in text
        assert f"\ntracestate:{STATE}\n" in text


def test_paging_and_a_restart(tmp_path: Path) -> None:
    count = 40
    with stored(tmp_path) as first, connected(first.port) as client:
        for _ in range(count):
            client.ask("SEND", {"destination": "/queue/paged", **TRACED}, b"x" * 200)
        assert [*(tmp_path / "paging").rglob("*.page")]
    with stored(tmp_path) as second, connected(second.port) as client:
        client.subscribe("/queue/paged")
        for _ in range(count):
            check(client, "paged")
