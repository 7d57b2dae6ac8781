"""Other brokers as processes, for tests of what we send them over STOMP: a real Artemis, and a real RabbitMQ."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from tests.kit.client import StompSocket
from tests.kit.ports import free_ports
from tests.kit.process import LOOPBACK
from tests.oracle.artemis_broker import artemis_home, log_of, start_artemis
from tests.oracle.brokers import wait_until_listening

START_S: Final = 120.0
_RABBIT: Final = ("/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server", "/opt/rabbitmq*/sbin/rabbitmq-server")
_ARTEMIS: Final = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>peer</name>
    <persistence-enabled>true</persistence-enabled>
    <journal-type>NIO</journal-type>
    <journal-directory>{folder}/data/journal</journal-directory>
    <bindings-directory>{folder}/data/bindings</bindings-directory>
    <paging-directory>{folder}/data/paging</paging-directory>
    <large-messages-directory>{folder}/data/large</large-messages-directory>
    <security-enabled>false</security-enabled>
    <max-disk-usage>100</max-disk-usage>
    <acceptors><acceptor name="stomp">tcp://127.0.0.1:{port}?protocols=STOMP</acceptor></acceptors>
    <addresses><address name="incoming"><anycast><queue name="incoming"/></anycast></address></addresses>
    <address-settings>
      <address-setting match="full"><max-size-bytes>1</max-size-bytes>
        <address-full-policy>FAIL</address-full-policy></address-setting>
    </address-settings>
  </core>
</configuration>
"""


class Peer(ABC):
    """A broker that ends and begins again, with its files and on its port."""

    destination: str
    """Of a queue, as its clients write it."""
    settings: dict[str, object]
    """What a bridge to it needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(("stomp", "amqp", "dist", "epmd"), free_ports(4), strict=True))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """For a connector."""
        return f"tcp://{LOOPBACK}:{self.ports['stomp']}"

    @abstractmethod
    def _begin(self) -> tuple[subprocess.Popen[bytes], Path]:
        """Its process, and what that prints."""

    @abstractmethod
    def client(self) -> StompSocket:
        """A client that has logged in."""

    def start(self) -> None:
        """Begin (again)."""
        self._process, log = self._begin()
        wait_until_listening(self._process, {"stomp": self.ports["stomp"]}, START_S, log)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def end(self) -> None:
        """Nothing of it is left."""
        self.kill()

    def take(self, count: int, destination: str = "") -> list[bytes]:
        """The bodies of so many messages, which are acknowledged."""
        with self.client() as client:
            client.subscribe(destination or self.destination, subscription_type="ANYCAST")
            found = []
            for _ in range(count):
                message = client.message()
                client.acknowledge(message)
                found.append(message.body)
            return found


class RealArtemis(Peer):
    """It has a queue, and an address ``full`` that refuses everything."""

    destination = "incoming"
    settings: dict[str, object] = {"forwarding-address": "incoming", "routing-type": "ANYCAST"}  # noqa: RUF012

    @staticmethod
    def why_absent() -> str:
        """Why it cannot be started here; empty: it can."""
        found = artemis_home() is not None
        return (
            "" if found else "no Artemis: neither ARTEMIS_HOME nor apache-artemis-* in a folder of .cache, or no Java"
        )

    def _begin(self) -> tuple[subprocess.Popen[bytes], Path]:
        home = artemis_home()
        assert home is not None
        text = _ARTEMIS.format(folder=self.folder, port=self.ports["stomp"])
        return start_artemis(text, self.folder, home), log_of(self.folder)

    def client(self) -> StompSocket:
        client = StompSocket(self.ports["stomp"])
        client.connect()
        return client


class RealRabbit(Peer):
    """RabbitMQ with its plug-in for STOMP, and a node of its own."""

    destination = "/queue/incoming"
    settings: dict[str, object] = {  # noqa: RUF012
        "forwarding-address": "/queue/incoming", "user": "guest", "password": "guest",
        "use-duplicate-detection": "false", "routing-type": "STRIP",
    }  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._names: subprocess.Popen[bytes] | None = None
        """By it nodes of Erlang find each other. One that they start themselves outlives them."""

    @property
    def uri(self) -> str:
        return f"{super().uri}?virtualHost=%2F"

    @staticmethod
    def why_absent() -> str:
        """Why it cannot be started here; empty: it can."""
        return "" if _rabbit() is not None else "no RabbitMQ: neither a package of the system nor /opt/rabbitmq*"

    def _begin(self) -> tuple[subprocess.Popen[bytes], Path]:
        server, folder, ports = _rabbit(), self.folder, self.ports
        assert server is not None
        folder.mkdir(exist_ok=True)
        (folder / "enabled").write_text("[rabbitmq_stomp].\n")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{ports['amqp']}\nstomp.listeners.tcp.1 = 127.0.0.1:{ports['stomp']}\n"
            "log.console = true\n"
        )
        settings = {
            "NODENAME": f"peer{ports['stomp']}@localhost", "MNESIA_BASE": folder / "mnesia", "LOG_BASE": folder / "log",
            "ENABLED_PLUGINS_FILE": folder / "enabled", "CONFIG_FILE": folder / "rabbitmq.conf",
            "DIST_PORT": ports["dist"], "CONF_ENV_FILE": os.devnull,
            "SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }  # fmt: skip
        environment = {
            **os.environ, **{f"RABBITMQ_{name}": str(value) for name, value in settings.items()},
            "HOME": str(folder), "ERL_EPMD_PORT": str(ports["epmd"]), "ERL_EPMD_ADDRESS": LOOPBACK,
        }  # fmt: skip
        if self._names is None:
            self._names = subprocess.Popen(["epmd"], env=environment)
            wait_until_listening(self._names, {"epmd": ports["epmd"]}, START_S, Path(os.devnull))
        log = folder / "rabbit.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [server], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        return process, log

    def end(self) -> None:
        super().end()
        if self._names is not None:
            self._names.kill()
            self._names.wait()

    def client(self) -> StompSocket:
        client = StompSocket(self.ports["stomp"])
        client.connect(login="guest", passcode="guest", host="/")
        return client


def _rabbit() -> str | None:
    """The program itself: the one on the path changes the user, and is for the service of the machine."""
    if shutil.which("erl") is None:
        return None
    found = [path for pattern in _RABBIT for path in Path("/").glob(pattern.lstrip("/"))]
    return str(found[-1]) if found else None
