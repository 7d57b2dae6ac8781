"""A broker with a journal on which one step may fail, and what its clients know of their messages."""

from __future__ import annotations

import random

from artemis_py.config.settings import BrokerConfig
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.disk import SimDisk
from tests.kit.frames import ServerFrame
from tests.kit.in_process import START_MS, Client, configuration
from tests.kit.named_clients import NamedClients

CORE = """
<message-expiry-scan-period>100</message-expiry-scan-period>
<addresses>
  <address name="q"><anycast><queue name="q"/></anycast></address>
  <address name="other"><anycast><queue name="other"/></anycast></address>
  <address name="ring"><anycast><queue name="ring" ring-size="2"/></anycast></address>
  <address name="depth"><anycast><queue name="depth" overflow-policy="RING" max-depth-messages="2"/></anycast></address>
  <address name="values"><anycast><queue name="values" queue-type="lvq" last-value-key="key"/></anycast></address>
  <address name="groups"><anycast><queue name="groups" group-key="group"/></anycast></address>
  <address name="leased"><anycast>
    <queue name="leased" lease-period="400" max-per-subscription-backlog="9"/></anycast></address>
  <address name="news"><multicast><queue name="news.a"/><queue name="news.b"/></multicast></address>
  <address name="paged"><anycast><queue name="paged"/></anycast></address>
  <address name="paged.values"><anycast>
    <queue name="paged.values" queue-type="lvq" last-value-key="key"/></anycast></address>
  <address name="barriers"><anycast><queue name="barriers" barrier-expression="bar='1'"
    max-per-subscription-backlog="9"/></anycast></address>
  <address name="doomed"><anycast><queue name="doomed"/></anycast></address>
  <address name="paged.news"><multicast>
    <queue name="paged.a"/><queue name="paged.b"><filter string="key = 'a'"/></queue></multicast></address>
  <address name="paged.late"><anycast><queue name="paged.late"/></anycast></address>
  <address name="dead"><anycast><queue name="dead"/></anycast></address>
  <address name="late"><anycast><queue name="late"/></anycast></address>
</addresses>
<address-settings>
  <address-setting match="#">
    <dead-letter-address>dead</dead-letter-address><expiry-address>late</expiry-address>
    <max-delivery-attempts>2</max-delivery-attempts><redelivery-delay>60</redelivery-delay>
  </address-setting>
  <address-setting match="paged.#">
    <max-size-bytes>1</max-size-bytes><page-size-bytes>4096</page-size-bytes>
    <address-full-policy>PAGE</address-full-policy><max-read-page-messages>2</max-read-page-messages>
  </address-setting>
  <address-setting match="doomed">
    <dead-letter-address>paged.late</dead-letter-address><expiry-address>paged.late</expiry-address>
    <max-delivery-attempts>1</max-delivery-attempts>
  </address-setting>
  <address-setting match="leased"><max-delivery-attempts>-1</max-delivery-attempts></address-setting>
</address-settings>
"""


CONFIGURATION = configuration(CORE)
FILE_BYTES = 1 << 16
"""The disk is in memory: each sync copies a whole file."""


class World(NamedClients):
    """A broker with its journal, whose log it perhaps ``retains``, a producer, and what is on its queues."""

    def __init__(self, config: BrokerConfig = CONFIGURATION, *, retains: bool = False) -> None:
        settings = JournalSettings(file_bytes=FILE_BYTES, retains=retains)
        self.life = Incarnation(config, SimStore(SimDisk(random.Random(1)), settings), Projection(8), START_MS)
        super().__init__(self.life)
        self.retains = retains
        self.number = 0
        self.sent: list[str] = []
        self.settled: set[str] = set()
        """Bodies that may be gone: somebody has asked for it."""

    def client(self, name: str, *headers: str, version: str = "1.2") -> Client:
        """The client of that name: another one if the broker has ended its connection."""
        assert (headers, version) == ((), "1.2"), "a client that connects anew says what all say"
        if name in self.clients and self.clients[name].is_closed:
            del self.clients[name]
        return self.clients[name] if name in self.clients else self.life.client(name).greet()

    def write(self, name: str, command: str, *headers: str, body: str = "") -> None:
        super().write(name, command, *headers, body=body)
        self.life.drain()

    def lose(self, name: str) -> None:
        super().lose(name)
        self.life.drain()

    def send(self, queue: str, *headers: str) -> str:
        self.number += 1
        body = f"{queue} {self.number}"
        receipt = f"receipt:{self.number}"
        self.write("producer", "SEND", f"destination:{queue}", "persistent:true", receipt, *headers, body=body)
        frames = self.clients["producer"].heard()
        if any(frame.command == "RECEIPT" and frame.header("receipt-id") == str(self.number) for frame in frames):
            self.sent.append(body)
        return body

    def read(self, name: str, queue: str, ack: str = "client-individual", *headers: str) -> list[ServerFrame]:
        """A client subscribes; returns the messages that come, but no ERROR of a step that fails."""
        self.write(name, "SUBSCRIBE", "id:1", f"destination:{queue}", f"ack:{ack}", "consumer-window-size:-1", *headers)
        return [frame for frame in self.clients[name].heard() if frame.command == "MESSAGE"]

    def advance(self, duration_ms: int) -> None:
        self.life.advance(duration_ms)
        self.life.drain()

    def finish(self) -> None:
        """Let what an operator has begun go on until it is over."""
        message_operations = self.life.broker.message_operations
        for _ in range(100):
            changes = [change for change in message_operations.changes if not change.is_over]
            for change in changes:
                message_operations.nudge(change)
            self.life.turns.schedule()
            self.life.drain()
            if not changes:
                break

    def lose_all(self) -> None:
        for client in self.clients.values():
            if not client.is_closed:
                client.drop()
        self.clients.clear()
        self.life.drain()
