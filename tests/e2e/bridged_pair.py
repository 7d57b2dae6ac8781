"""Two brokers, each a process of its own, and a bridge from the one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.kit.client import connected
from tests.kit.ports import free_port
from tests.kit.process import HTTP, LOOPBACK, SWEPT, BrokerProcess, configuration, started

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


class Place(ExitStack):
    """A broker that ends and begins again, with its files and on its port; nothing of it is left in the end."""

    running: BrokerProcess
    """The process, since the first start."""

    def __init__(
        self, folder: Path, name: str, addresses: str, core: str = "", settings: str = "", acceptor: str = ""
    ) -> None:
        """``core`` and ``settings`` are XML for the file, ``acceptor`` more parameters."""
        super().__init__()
        self.folder = folder / name
        self.folder.mkdir()
        self.file = self.folder / "broker.xml"
        self.port = free_port()
        self.uri = f"tcp://{LOOPBACK}:{self.port}"
        """For a connector."""
        self._name = name
        self._addresses = addresses
        self._settings = settings
        self._acceptor = acceptor
        self._starts = 0
        self.write(core)

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
        self.running = self.enter_context(started(self.file, log=self.folder / f"{self._starts}.log"))
        return self.running

    def bridge(self, name: str = "b") -> dict[str, Any]:
        """What is told of a bridge."""
        return self.running.rows("bridges")[name]

    def await_bridge(self, **values: object) -> dict[str, Any]:
        """Waits until the bridge has these values."""
        return self.running.eventually(
            str(values), self.bridge, lambda row: all(row[name] == value for name, value in values.items())
        )

    def send(self, *bodies: bytes, to: str = "/queue/orders", **headers: str) -> None:
        """Persistent messages, confirmed."""
        with connected(self.port) as client:
            client.publish(to, bodies, **headers)

    def take(self, count: int, name: str) -> list[bytes]:
        """The bodies of so many messages, which are acknowledged."""
        with connected(self.port) as client:
            return [message.body for message in client.take(f"/queue/{name}", count)]
