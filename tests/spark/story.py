"""Traffic through a real broker that keeps its log, and a ledger of what its clients did and saw."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.client import StompSocket, connected
from tests.kit.frames import ServerFrame
from tests.kit.process import DAYS, SWEPT, BrokerProcess, storing

RING = 5
SETTINGS = f"""\
      <address-setting match="#">
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>
        <dead-letter-address>DLQ</dead-letter-address><expiry-address>EXPIRED</expiry-address>
        <max-delivery-attempts>2</max-delivery-attempts><redelivery-delay>0</redelivery-delay>
      </address-setting>
      <address-setting match="ticks"><default-ring-size>{RING}</default-ring-size></address-setting>
      <address-setting match="narrow">
        <max-size-messages>2</max-size-messages><address-full-policy>DROP</address-full-policy>
      </address-setting>
"""
ADDRESSES = "".join(
    f'      <address name="{name}"><anycast><queue name="{name}"/></anycast></address>\n'
    for name in ("orders", "ticks", "offers", "narrow", "DLQ", "EXPIRED", "again")
)


@dataclass
class Ledger:
    """What the clients did."""

    published: Counter[str] = field(default_factory=Counter)
    """By address."""
    origins: dict[str, str] = field(default_factory=dict)
    """Host and port of each sender."""
    delivered: Counter[str] = field(default_factory=Counter)
    """By subscription, of queue orders."""
    acked: Counter[str] = field(default_factory=Counter)
    poison: dict[str, str] = field(default_factory=dict)
    """Of the message that nobody acknowledged: its message-id and body."""
    holds_ms: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Of each body that was sent, taken and acknowledged alone: how long that took, at least and at most."""


@dataclass
class Story:
    """A broker, where its log is, and the ledger."""

    broker: BrokerProcess
    folder: Path
    ledger: Ledger


@contextmanager
def told(folder: Path) -> Iterator[Story]:
    """The broker, which keeps all of its log, after all of its traffic."""
    core = f"""{SWEPT}<journal-file-size>64K</journal-file-size>
    <message-expiry-scan-period>20</message-expiry-scan-period>"""
    with storing(folder, core=core, settings=SETTINGS, addresses=ADDRESSES, kept=DAYS) as broker:
        ledger = Ledger()
        with (
            connected(broker.port, login="anna") as anna,
            connected(broker.port, login="bert") as bert,
            connected(broker.port, login="fast") as fast,
            connected(broker.port, login="slow") as slow,
        ):
            for name, client in (("anna", anna), ("bert", bert)):
                host, port = client.socket.getsockname()
                ledger.origins[name] = f"{host}:{port}"
            fast.subscribe("orders", id="fast", **{"consumer-window-size": "0"})
            for number in range(12):  # each is acknowledged before the next
                began = time.monotonic()
                _send(ledger, anna, "orders", f"a{number}")
                sent = time.monotonic()
                message = _take(ledger, fast, "fast")
                got = time.monotonic()
                fast.acknowledge(message)
                ledger.acked["fast"] += 1
                ended = time.monotonic()
                ledger.holds_ms[message.body.decode()] = (max(0.0, got - sent) * 1000, (ended - began) * 1000)
            slow.subscribe("orders", id="slow", **{"consumer-window-size": "0"})
            # Each of two consumers gets one; the slow one keeps it while the fast one takes four more.
            _send(ledger, bert, "orders", *(f"b{number}" for number in range(6)))
            kept = _take(ledger, slow, "slow")
            for _ in range(5):
                fast.acknowledge(_take(ledger, fast, "fast"))
                ledger.acked["fast"] += 1
            slow.acknowledge(kept)
            ledger.acked["slow"] += 1
            slow.ask("UNSUBSCRIBE", {"id": "slow"})
            _send(ledger, anna, "orders", '{"id": 7, "total": "x"}')  # refused as often as allowed
            for _ in range(2):
                message = _take(ledger, fast, "fast")
                ledger.poison = {"id": str(message.header("message-id")), "body": message.body.decode()}
                fast.ask("NACK", {"id": message.header("ack")})
            _send(ledger, bert, "ticks", *(f"t{number}" for number in range(RING + 7)))
            _send(ledger, anna, "offers", "o1", "o2", "o3", expires=str(int(time.time() * 1000) + 1))
            broker.await_count("EXPIRED", 3)
            _send(ledger, bert, "narrow", *(f"n{number}" for number in range(6)))
            ledger.published["narrow"] -= 4
        yield Story(broker, folder, ledger)


def _send(ledger: Ledger, client: StompSocket, address: str, *bodies: str, **headers: str) -> None:
    for body in bodies:
        client.ask("SEND", {"destination": address, "persistent": "true", "kind": body[0], **headers}, body.encode())
        ledger.published[address] += 1


def _take(ledger: Ledger, client: StompSocket, name: str) -> ServerFrame:
    message = client.message()
    ledger.delivered[name] += 1
    return message
