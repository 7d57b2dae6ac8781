"""A broker that tests operate, over HTTP and by commands."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.kit.client import StompSocket, connected
from tests.kit.forks import run_text
from tests.kit.http import HttpClient
from tests.kit.process import SWEPT, WAIT_S, BrokerProcess, configuration, retained, running

ADDRESSES: Final = """
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="jobs"><anycast><queue name="jobs" max-consumers="3"/></anycast></address>
      <address name="odd"><anycast><queue name="odd / name"/></anycast></address>
"""
SETTINGS: Final = """
      <address-setting match="orders">
        <dead-letter-address>graves</dead-letter-address>
        <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>
        <expiry-address>late</expiry-address>
        <auto-create-expiry-resources>true</auto-create-expiry-resources>
      </address-setting>
      <address-setting match="graves"><default-queue-routing-type>ANYCAST</default-queue-routing-type></address-setting>
      <address-setting match="late"><default-queue-routing-type>ANYCAST</default-queue-routing-type></address-setting>
"""
"""Dead messages of orders go to the queue DLQ.orders, expired ones to EXP.orders."""
BRIDGE: Final = """
      <connectors><connector name="nobody">tcp://127.0.0.1:1</connector></connectors>
      <bridges>
        <bridge name="far">
          <queue-name>jobs</queue-name>
          <static-connectors><connector-ref>nobody</connector-ref></static-connectors>
        </bridge>
      </bridges>
"""
"""A bridge to a broker that is never there."""


def stored(folder: Path, *, settings: str = "", core: str = "") -> str:
    """A configuration that keeps its messages and its log in a folder."""
    core = f"{SWEPT}{retained(folder)}{BRIDGE}{core}"
    return configuration(folder=folder, core=core, addresses=ADDRESSES, settings=settings)


@dataclass
class Told:
    """A broker, and what one can do with it. ``guests`` are clients that stay."""

    broker: BrokerProcess
    guests: list[StompSocket] = field(default_factory=list)

    def ask(self, method: str, path: str, body: object = None, wait_s: float = WAIT_S) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        with HttpClient(self.broker.ports["http"], wait_s=wait_s) as client:
            reply = client.ask(method, path, body)
            return reply.status, reply.json

    def asked(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of an answer to a request that succeeds."""
        status, answer = self.ask(method, path, body)
        assert status == 200, answer
        return answer

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a command prints."""
        return run_text([*words, "--url", self.broker.url], timeout=WAIT_S)

    def client(self, **headers: object) -> StompSocket:
        """A client that is connected."""
        return connected(self.broker.port, **headers)

    def guest(self, **headers: object) -> StompSocket:
        """A client that stays."""
        self.guests.append(self.client(**headers))
        return self.guests[-1]

    def send(self, destination: str, bodies: Sequence[str] = "x", **headers: object) -> None:
        """A message for each of these."""
        with self.client() as client:
            for body in bodies:
                client.ask("SEND", {"destination": destination, **headers}, body.encode())

    @property
    def file(self) -> Path:
        """Its configuration."""
        return self.broker.log.with_name("broker.xml")

    def write(self, text: str) -> None:
        """As ``sed -i`` and most editors: a new file takes the place of the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(text, "utf-8")
        beside.rename(self.file)

    @property
    def state(self) -> dict[str, Any]:
        """Of its configuration."""
        return dict(self.broker.api("/api/broker/configuration"))

    def reload(self) -> dict[str, Any]:
        """It reads its file anew."""
        return dict(self.broker.api("/api/broker/reload", "POST"))

    def await_attribute(self, name: str, field: str, value: object) -> None:
        """Waits until this is told of a queue."""
        self.broker.eventually(f"{field} of {name}", lambda: self.queue(name)[field], lambda seen: seen == value)

    def queue(self, name: str) -> dict[str, Any]:
        """What is told of a queue."""
        return dict(self.asked("GET", f"/api/queues/{quote(name, safe='')}"))


@contextmanager
def operated(text: str, folder: Path) -> Iterator[Told]:
    """A broker of this configuration, whose guests leave in the end."""
    with running(text, folder) as broker:
        told = Told(broker)
        yield told
        for guest in told.guests:
            guest.close()
