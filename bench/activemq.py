"""ActiveMQ Classic from Debian's package ``activemq``, started by hand: the package's own service is not used."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from artemis_py.perf.link import Target
from bench.broker import DURABLE, LOOPBACK, ON_ANOTHER_PORT, Broker, debian_version
from bench.certificate import PASSWORD, write_certificate, write_pkcs12
from tests.kit.ports import free_port

JARS: Final = Path("/usr/share/activemq/lib")
QUIET_LOGGER: Final = Path("/usr/share/java/slf4j-nop.jar")
# Bridges logging to SLF4J for Spring, which is not used here.
UNUSED: Final = frozenset({"jcl-over-slf4j.jar"})
HEAP: Final = ("-Xms512M", "-Xmx4G")


class ActiveMqClassic(Broker):
    """Transient, without JMX, with a heap of 4 GB (Debian's 512 MB is too small for the queues filled here)."""

    name = "activemq"
    title = "ActiveMQ Classic"
    gets_faster = True
    unsupported = DURABLE | ON_ANOTHER_PORT

    def absent(self) -> str | None:
        """Looks for the package and for Java."""
        if shutil.which("java") is None:
            return "no java"
        if not (JARS / "activemq-broker.jar").exists():
            return "Debian's package activemq is not installed"
        return None if QUIET_LOGGER.exists() else "Debian's package libslf4j-java is not installed"

    def version(self) -> str:
        """As the package says."""
        return debian_version("activemq")

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """Configured by a URI alone, so that neither Spring nor XML is needed."""
        jars = sorted(str(jar) for jar in JARS.glob("*.jar") if jar.name not in UNUSED)
        properties: dict[str, object] = {
            "activemq.home": home,
            "activemq.base": home,
            "activemq.data": home / "data",
        }
        ports = f"stomp://{LOOPBACK}:{port}"
        if tls:
            tls_port = free_port()
            self.tls = self._prefetching(Target(LOOPBACK, tls_port, trust=str(write_certificate(home))))
            ports += f",stomp+ssl://{LOOPBACK}:{tls_port}"
            properties |= {
                "javax.net.ssl.keyStore": write_pkcs12(home),
                "javax.net.ssl.keyStoreType": "PKCS12",
                "javax.net.ssl.keyStorePassword": PASSWORD,
            }
        options = "persistent=false&useJmx=false&brokerName=bench"
        uri = f"broker:({ports})?{options}&dataDirectory={home}/data"
        return [
            "java",
            *HEAP,
            *(f"-D{name}={value}" for name, value in properties.items()),
            "-cp",
            ":".join([*jars, str(QUIET_LOGGER)]),
            "org.apache.activemq.console.Main",
            "start",
            uri,
        ]

    def target(self, port: int) -> Target:
        """Its port without TLS."""
        return self._prefetching(Target(LOOPBACK, port))

    @staticmethod
    def _prefetching(target: Target) -> Target:
        """Its prefetch for STOMP is small; 1,000 is what its other clients have."""
        return replace(target, subscribe_headers=(("activemq.prefetchSize", "1000"),))
