"""A broker that retains its log, and traffic of which the test knows every message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.client import StompSocket, frame
from tests.kit.ports import free_ports
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


class LiveBroker:
    """One broker and its later lives on the same ports and files."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "e2e",
        file_bytes: str = "100K",
        limits: str | None = 'unit="DAYS" period="1"',
        settings: str = SETTINGS,
        addresses: str = ADDRESSES,
        start_s: float = WAIT_S,
        stomp: str = STOMP,
        environment: Mapping[str, str] | None = None,
        is_pair: bool = False,
    ) -> None:
        """``is_pair``: a stand-by may take over (``fail_over``)."""
        self.folder = folder
        self._is_pair = is_pair
        self._name = name
        self._settings = settings
        self._addresses = addresses
        self._start_s = start_s
        self._stomp = stomp
        self._environment = environment
        self._file_bytes = file_bytes
        self._limits = limits
        self._lives = 0
        stomp_port, *self._http_ports = free_ports(3) if is_pair else (0, 0)
        self.process = self._start({"stomp": stomp_port, "http": self._http_ports[0]})
        self.process.await_ready(start_s)

    def _start(self, ports: Mapping[str, int]) -> BrokerProcess:
        self._lives += 1
        acceptors = {
            name: uri.replace(":0?", f":{ports[name]}?") for name, uri in (("stomp", self._stomp), ("http", HTTP))
        }
        limits = "" if self._limits is None else retained(self.folder, self._limits)
        policy = "<ha-policy><shared-store><primary/></shared-store></ha-policy>" if self._is_pair else ""
        text = configuration(
            acceptors,
            folder=self.folder,
            name=self._name,
            core=f"{SWEPT}<journal-file-size>{self._file_bytes}</journal-file-size>{limits}{DIVERTS}{policy}",
            addresses=self._addresses,
            settings=self._settings,
        )
        file = self.folder / (f"broker{self._lives}.xml" if self._is_pair else "broker.xml")
        file.write_text(text, "utf-8")
        log = self.folder / f"broker{self._lives}.log"
        return BrokerProcess(["run", str(file)], log, environment=self._environment)

    @property
    def retained(self) -> Path:
        """Where closed segments go."""
        return self.folder / "kept"

    @property
    def url(self) -> str:
        """Of its HTTP acceptor; of a pair those of both."""
        ports = self._http_ports if self._is_pair else [self.process.ports["http"]]
        return "|".join(f"http://{LOOPBACK}:{port}" for port in ports)

    @property
    def active_url(self) -> str:
        """Of the HTTP acceptor of the one that works."""
        return f"http://{LOOPBACK}:{self.process.ports['http']}"

    def client(self) -> StompSocket:
        """A connection of the user ann."""
        socket = StompSocket(self.process.port)
        socket.connect(login="ann", passcode="x")
        return socket

    def send(self, first: int, count: int, address: str = "orders", size_bytes: int = 0) -> list[str]:
        """So many messages of ann; returns their bodies (``send_many``)."""
        with self.client() as client:
            send_many(client, address, first, count, size_bytes)
        return [str(number) for number in range(first, first + count)]

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()

    def start_again(self, name: str | None = None) -> None:
        """From what is on the disk, under another name if one is given."""
        self._name = name or self._name
        self.process = self._start(dict(self.process.ports))
        self.process.await_ready(self._start_s)

    def fail_over(self) -> None:
        """A stand-by is there, and takes over from the one that works, which gets SIGKILL."""
        [port] = [one for one in self._http_ports if one != self.process.ports["http"]]
        other = self._start({"stomp": self.process.port, "http": port})
        try:
            other.eventually("a stand-by", lambda: other.said, lambda said: "is a stand-by" in said, self._start_s)
        except BaseException:
            other.kill()
            raise
        self.process.kill()
        self.process = other
        other.await_ready(self._start_s)


@contextmanager
def live_broker(folder: Path, **options: Any) -> Iterator[LiveBroker]:
    """One that is gone in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    live = LiveBroker(folder, **options)
    try:
        yield live
    finally:
        live.process.kill()


def send_many(client: StompSocket, address: str, first: int, count: int, size_bytes: int = 0) -> None:
    """Messages with numbers as bodies, filled up with spaces; they are confirmed."""
    bodies = [b"%d" % number for number in range(first, first + count)]
    headers = {"destination": f"/queue/{address}", "persistent": "true"}
    client.raw(b"".join(frame("SEND", headers, body.ljust(size_bytes)) for body in bodies[:-1]))
    client.ask("SEND", headers, bodies[-1].ljust(size_bytes))
