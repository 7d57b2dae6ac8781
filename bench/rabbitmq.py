"""RabbitMQ from Debian's package ``rabbitmq-server``, as a node of its own. Part of the ratios of durable scenarios."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from artemis_py.perf.link import Target
from bench.broker import LOOPBACK, ON_ANOTHER_PORT, Broker, debian_version
from bench.certificate import write_certificate, write_pem
from tests.kit.ports import free_port

SERVER: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
# Erlang's name service would stay behind as a daemon; here it belongs to the broker's process group and ends with it.
SCRIPT: Final = """\
#!/bin/sh
epmd -address {host} -port "$ERL_EPMD_PORT" &
exec {server}
"""
CONFIGURATION: Final = """\
listeners.tcp = none
stomp.listeners.tcp.1 = {host}:{port}
loopback_users = none
log.console = true
log.file = false
"""
ENCRYPTED: Final = """\
stomp.listeners.ssl.1 = {host}:{port}
ssl_options.certfile = {certificate}
ssl_options.keyfile = {key}
"""


class RabbitMq(Broker):
    """With the STOMP plug-in, classic queues."""

    # its start is the same with and without messages: they are loaded later
    unsupported = frozenset({"recovery"}) | ON_ANOTHER_PORT

    name = "rabbitmq"
    title = "RabbitMQ"

    def absent(self) -> str | None:
        """Looks for the package."""
        return None if SERVER.exists() else "Debian's package rabbitmq-server is not installed"

    def version(self) -> str:
        """As the package says."""
        return debian_version("rabbitmq-server")

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """Everything it writes stays in ``home``, its cookie too."""
        configuration = CONFIGURATION.format(host=LOOPBACK, port=port)
        if tls:
            tls_port, certificate = free_port(), write_certificate(home)
            self.tls = self._guest(Target(LOOPBACK, tls_port, trust=str(certificate)))
            configuration += ENCRYPTED.format(
                host=LOOPBACK, port=tls_port, certificate=certificate, key=write_pem(home)
            )
        (home / "rabbitmq.conf").write_text(configuration, encoding="utf-8")
        (home / "enabled_plugins").write_text("[rabbitmq_stomp].\n", encoding="utf-8")
        script = home / "start"
        script.write_text(SCRIPT.format(host=LOOPBACK, server=SERVER), encoding="utf-8")
        settings = {
            "HOME": home,
            "ERL_EPMD_PORT": free_port(),
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_DIST_PORT": free_port(),
            "RABBITMQ_CONFIG_FILE": home / "rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": home / "enabled_plugins",
            "RABBITMQ_MNESIA_BASE": home / "data",
            "RABBITMQ_LOG_BASE": home / "log",
        }
        return ["env", *(f"{name}={value}" for name, value in settings.items()), "sh", str(script)]

    def target(self, port: int) -> Target:
        """Its port without TLS."""
        return self._guest(Target(LOOPBACK, port))

    @staticmethod
    def _guest(target: Target) -> Target:
        """The ``host`` header is the name of a virtual host."""
        return replace(target, login="guest", passcode="guest", connect_headers=(("host", "/"),))
