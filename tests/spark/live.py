"""A broker that retains its log, and traffic of which the test knows every message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.client import StompSocket, connected
from tests.kit.ports import free_port
from tests.kit.process import HTTP, LOOPBACK, STOMP, SWEPT, WAIT_S, BrokerProcess, configuration, retained

ADDRESSES = '<address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>'
DIVERTS = """\
      <diverts>
        <divert name="open"><address>door</address><forwarding-address>room</forwarding-address></divert>
      </diverts>
"""
SETTINGS = """\
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>2</max-delivery-attempts>
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>
        <redelivery-delay>0</redelivery-delay>
      </address-setting>
      <address-setting match="ring"><default-ring-size>3</default-ring-size></address-setting>
      <address-setting match="values"><default-last-value-key>k</default-last-value-key></address-setting>
      <address-setting match="full">
        <max-size-messages>2</max-size-messages><address-full-policy>DROP</address-full-policy>
      </address-setting>
      <address-setting match="paged">
        <max-size-bytes>20000</max-size-bytes><page-size-bytes>10000</page-size-bytes>
        <address-full-policy>PAGE</address-full-policy>
      </address-setting>
"""


@dataclass
class LiveBroker:
    """One broker and its later lives on the same ports and files. ``is_pair``: a stand-by may take over."""

    folder: Path
    name: str = "e2e"
    file_bytes: str = "100K"
    limits: str | None = 'unit="DAYS" period="1"'
    settings: str = SETTINGS
    addresses: str = ADDRESSES
    start_s: float = WAIT_S
    stomp: str = STOMP
    environment: Mapping[str, str] | None = None
    is_pair: bool = False

    def __post_init__(self) -> None:
        self.lives = 0
        stomp_port, *self._http_ports = [free_port() for _ in range(3 if self.is_pair else 2)]
        self.process = self._start({"stomp": stomp_port, "http": self._http_ports[0]})
        self.process.await_state("ready", self.start_s)

    def _start(self, ports: Mapping[str, int]) -> BrokerProcess:
        self.lives += 1
        acceptors = {one: uri.replace(":0?", f":{ports[one]}?") for one, uri in (("stomp", self.stomp), ("http", HTTP))}
        limits = "" if self.limits is None else retained(self.folder, self.limits)
        policy = "<ha-policy><shared-store><primary/></shared-store></ha-policy>" if self.is_pair else ""
        text = configuration(
            acceptors,
            folder=self.folder,
            name=self.name,
            core=f"{SWEPT}<journal-file-size>{self.file_bytes}</journal-file-size>{limits}{DIVERTS}{policy}",
            addresses=self.addresses,
            settings=self.settings,
        )
        file = self.folder / (f"broker{self.lives}.xml" if self.is_pair else "broker.xml")
        file.write_text(text, "utf-8")
        log = self.folder / f"broker{self.lives}.log"
        return BrokerProcess(["run", str(file)], log, environment=self.environment)

    @property
    def url(self) -> str:
        """Of its HTTP acceptor; of a pair those of both."""
        return "|".join(f"http://{LOOPBACK}:{port}" for port in self._http_ports)

    def client(self) -> StompSocket:
        """A connection of the user ann."""
        return connected(self.process.port, login="ann", passcode="x")

    def send(self, first: int, count: int, address: str = "orders", size_bytes: int = 0) -> list[str]:
        """So many messages of ann, numbers that are filled up with spaces; returns these numbers."""
        bodies = [str(number) for number in range(first, first + count)]
        with self.client() as client:
            client.publish(f"/queue/{address}", [body.ljust(size_bytes) for body in bodies])
        return bodies

    def start_again(self, name: str | None = None) -> None:
        """From what is on the disk, under another name if one is given; SIGKILL ends the life before."""
        if self.process.process.poll() is None:
            self.process.kill()
        self.name = name or self.name
        self.process = self._start(dict(self.process.ports))
        self.process.await_state("ready", self.start_s)

    def fail_over(self) -> None:
        """A stand-by is there, and takes over from the one that works, which gets SIGKILL."""
        [port] = [one for one in self._http_ports if one != self.process.ports["http"]]
        other = self._start({"stomp": self.process.port, "http": port})
        try:
            other.eventually("a stand-by", lambda: other.said, lambda said: "is a stand-by" in said, self.start_s)
        except BaseException:
            other.kill()
            raise
        self.process.kill()
        self.process = other
        other.await_state("ready", self.start_s)


@contextmanager
def live_broker(folder: Path, **options: Any) -> Iterator[LiveBroker]:
    """One that is gone in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    live = LiveBroker(folder, **options)
    try:
        yield live
    finally:
        live.process.kill()
