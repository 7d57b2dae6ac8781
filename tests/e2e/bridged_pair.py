"""Two brokers, each a process of its own, and a bridge from the one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.kit.client import connected
from tests.kit.http import ask
from tests.kit.ports import free_port
from tests.kit.process import HTTP, LOOPBACK, SWEPT, BrokerProcess, configuration

PERSISTENT = {"persistent": "true"}
STOMP_AT = "tcp://127.0.0.1:{port}?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/"


def bridge_xml(settings: Mapping[str, object] | None = None, *uris: str, name: str = "b") -> str:
    """XML for core: a bridge from ``orders`` with these settings to the brokers at these URIs."""
    connectors = "".join(f'<connector name="c{place}">{escape(uri)}</connector>' for place, uri in enumerate(uris))
    refs = "".join(f"<connector-ref>c{place}</connector-ref>" for place in range(len(uris)))
    inside = {"queue-name": "orders", "retry-interval": 20, "max-retry-interval": 200, **(settings or {})}
    filtered = inside.pop("filter", None)
    lines = "".join(f"<{key}>{escape(str(value))}</{key}>" for key, value in inside.items())
    if filtered is not None:
        lines += f'<filter string="{filtered}"/>'
    return (
        f'<connectors>{connectors}</connectors><bridges><bridge name="{name}">{lines}'
        f"<static-connectors>{refs}</static-connectors></bridge></bridges>"
    )


class Place:
    """A broker that ends and begins again, with its files and on its port."""

    def __init__(
        self, folder: Path, name: str, addresses: str, core: str = "", settings: str = "", acceptor: str = ""
    ) -> None:
        """``core`` and ``settings`` are XML for the file, ``acceptor`` more parameters."""
        self.folder = folder / name
        self.folder.mkdir()
        self.file = self.folder / "broker.xml"
        self.port = free_port()
        self._name = name
        self._addresses = addresses
        self._settings = settings
        self._acceptor = acceptor
        self._starts = 0
        self.broker: BrokerProcess | None = None
        self.write(core)

    @property
    def uri(self) -> str:
        """For a connector."""
        return f"tcp://{LOOPBACK}:{self.port}"

    def write(self, core: str) -> None:
        """Its file, with this inside of core."""
        acceptors = {"stomp": STOMP_AT.format(port=self.port) + self._acceptor, "http": HTTP}
        text = configuration(
            acceptors, folder=self.folder, name=self._name, core=SWEPT + core, addresses=self._addresses,
            settings=self._settings,
        )  # fmt: skip
        part = self.file.with_suffix(".part")
        part.write_text(text, "utf-8")
        part.replace(self.file)

    def start(self) -> BrokerProcess:
        """Begin (again)."""
        self._starts += 1
        self.broker = BrokerProcess(["run", str(self.file)], self.folder / f"{self._starts}.log")
        self.broker.await_ready()
        return self.broker

    @property
    def running(self) -> BrokerProcess:
        """The process."""
        assert self.broker is not None
        return self.broker

    def end(self) -> None:
        """Nothing of it is left."""
        if self.broker is not None:
            said = self.broker.said
            self.broker.kill()
            self.broker = None
            assert "Traceback" not in said, said

    def bridge(self, name: str = "b") -> dict[str, Any]:
        """What is told of a bridge."""
        rows = ask(self.running.ports["http"], "GET", "/api/bridges").json["data"]
        return next(dict(row) for row in rows if row["name"] == name)

    def await_bridge(self, **values: object) -> dict[str, Any]:
        """Waits until the bridge has these values."""
        return self.running.eventually(
            str(values), self.bridge, lambda row: all(row[name] == value for name, value in values.items())
        )

    def send(self, *bodies: bytes, to: str = "/queue/orders", **headers: str) -> None:
        """Persistent messages, confirmed."""
        with connected(self.port) as client:
            for body in bodies:
                client.ask("SEND", {"destination": to, **PERSISTENT, **headers}, body)

    def take(self, count: int, name: str) -> list[bytes]:
        """The bodies of so many messages, which are acknowledged."""
        with connected(self.port) as client:
            client.subscribe(f"/queue/{name}")
            found = [client.message() for _ in range(count)]
            for message in found:
                client.acknowledge(message)
            return [message.body for message in found]
