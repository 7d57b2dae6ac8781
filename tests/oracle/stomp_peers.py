"""Other brokers as processes, for tests of what we send them over STOMP: a real Artemis, and a real RabbitMQ."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

import pytest

from tests.kit.client import StompSocket, connected
from tests.kit.ports import free_port
from tests.kit.process import LOOPBACK, anycast, configuration, kill_group
from tests.oracle.artemis_broker import LOG, artemis_command, artemis_home
from tests.oracle.brokers import wait_until_listening

_RABBIT: Final = ("usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server", "opt/rabbitmq*/sbin/rabbitmq-server")
"""The program itself: the one on the path changes the user, and is for the service of the machine."""
_FULL: Final = """\
      <address-setting match="full"><max-size-bytes>1</max-size-bytes>
        <address-full-policy>FAIL</address-full-policy></address-setting>
"""


@dataclass
class Peer(ABC):
    """A broker that ends and begins again, with its files and on its port."""

    folder: Path
    ports: list[int] = field(default_factory=lambda: [free_port() for _ in range(4)])
    """The first is for STOMP, the others are for what else it needs."""
    alive: ExitStack = field(default_factory=ExitStack)
    """It ends what runs."""
    log: ClassVar[Path]
    """What its process prints, in its folder."""
    destination: ClassVar[str]
    """Of a queue, as its clients write it."""
    settings: ClassVar[dict[str, object]]
    """What a bridge to it needs."""
    query: ClassVar[str] = ""
    """Of the URI for a connector."""
    login: ClassVar[dict[str, str]] = {}

    @property
    def uri(self) -> str:
        """For a connector."""
        return f"tcp://{LOOPBACK}:{self.ports[0]}{self.query}"

    @abstractmethod
    def command(self) -> tuple[list[str], dict[str, str] | None]:
        """How it is started, and its environment. Skips where it cannot be."""

    def start(self) -> None:
        """Begin (again)."""
        command, environment = self.command()
        with (self.folder / self.log).open("ab") as output:
            process = subprocess.Popen(
                command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        self.alive.callback(kill_group, process)
        wait_until_listening(process, self.ports[:1], self.folder / self.log)

    def client(self) -> StompSocket:
        """A client that has logged in."""
        return connected(self.ports[0], **self.login)


class RealArtemis(Peer):
    """It has a queue, and an address ``full`` that refuses everything."""

    log = LOG
    destination = "incoming"
    settings = {"forwarding-address": "incoming", "routing-type": "ANYCAST"}  # noqa: RUF012

    def command(self) -> tuple[list[str], None]:
        home = artemis_home()
        text = configuration(
            {"stomp": f"{self.uri}?protocols=STOMP"},
            folder=self.folder / "data",
            name="peer",
            core="<journal-type>NIO</journal-type><max-disk-usage>100</max-disk-usage>",
            addresses=anycast("incoming"),
            settings=_FULL,
        )
        return artemis_command(text, self.folder, home), None


class RealRabbit(Peer):
    """RabbitMQ with its plug-in for STOMP, and a node of its own."""

    log = Path("rabbit.log")
    destination = "/queue/incoming"
    settings = {  # noqa: RUF012
        "forwarding-address": "/queue/incoming", "user": "guest", "password": "guest",
        "use-duplicate-detection": "false", "routing-type": "STRIP",
    }  # fmt: skip
    query = "?virtualHost=%2F"
    login = {"login": "guest", "passcode": "guest", "host": "/"}  # noqa: RUF012

    def command(self) -> tuple[list[str], dict[str, str]]:
        """With ``epmd``, by which nodes of Erlang find each other. One that they start themselves outlives them."""
        programs = [str(path) for pattern in _RABBIT for path in Path("/").glob(pattern)]
        if shutil.which("erl") is None or not programs:
            pytest.skip("no RabbitMQ: neither a package of the system nor /opt/rabbitmq*")
        folder, (port, amqp_port, dist_port, epmd_port) = self.folder, self.ports
        folder.mkdir(exist_ok=True)
        (folder / "enabled").write_text("[rabbitmq_stomp].\n")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{amqp_port}\nstomp.listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = true\n"
        )
        settings = {
            "NODENAME": f"peer{port}@localhost", "MNESIA_BASE": folder / "mnesia", "LOG_BASE": folder / "log",
            "ENABLED_PLUGINS_FILE": folder / "enabled", "CONFIG_FILE": folder / "rabbitmq.conf",
            "DIST_PORT": dist_port, "CONF_ENV_FILE": os.devnull,
            "SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }  # fmt: skip
        environment = {
            **os.environ, **{f"RABBITMQ_{name}": str(value) for name, value in settings.items()},
            "HOME": str(folder), "ERL_EPMD_PORT": str(epmd_port), "ERL_EPMD_ADDRESS": LOOPBACK,
        }  # fmt: skip
        names = subprocess.Popen(["epmd"], env=environment, start_new_session=True)
        self.alive.callback(kill_group, names)
        wait_until_listening(names, [epmd_port], Path(os.devnull))
        return programs[-1:], environment
