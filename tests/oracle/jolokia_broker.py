"""A real Artemis with its web server, which answers Jolokia's requests."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.oracle.artemis_broker import log_of, start_artemis
from tests.oracle.brokers import free_ports, stop, wait_until_listening

START_S: Final = 120.0
ASK_S: Final = 30.0
CORE: Final = """\
  <core xmlns="urn:activemq:core">
    <name>e2e</name>
    <persistence-enabled>false</persistence-enabled>
    <security-enabled>false</security-enabled>
    <acceptors>{acceptors}</acceptors>
    <addresses>
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="odd"><anycast><queue name="odd / name"/></anycast></address>
      <address name="news"><multicast/></address>
    </addresses>
    <diverts>
      <divert name="copy"><address>orders</address><forwarding-address>odd</forwarding-address></divert>
    </diverts>
  </core>
"""
CONFIGURATION: Final = f'<?xml version="1.0"?>\n<configuration xmlns="urn:activemq">\n{CORE}</configuration>\n'
_BOOTSTRAP: Final = """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="oracle"/>
  <server configuration="file:{folder}/broker.xml"/>
  <web path="web"><binding name="artemis" uri="http://127.0.0.1:{port}">
    <app name="console" url="console" war="console.war"/>
  </binding></web>
</broker>
"""


@dataclass
class JolokiaBroker:
    """Where a broker answers Jolokia's requests."""

    url: str

    def ask(self, request: object) -> Any:
        """The answer to a POST."""
        headers = {"Content-Type": "application/json", "Origin": self.url}
        body = json.dumps(request).encode()
        asked = urllib.request.Request(f"{self.url}/console/jolokia/", body, headers)
        with urllib.request.urlopen(asked, timeout=ASK_S) as answer:
            return json.load(answer)


@contextmanager
def artemis_with_web(folder: Path, home: Path) -> Iterator[JolokiaBroker]:
    """A real Artemis, from its first open port to its end. Nobody logs in."""
    ports = free_ports(("stomp", "web"))
    acceptor = f'<acceptor name="stomp">tcp://127.0.0.1:{ports["stomp"]}?protocols=STOMP</acceptor>'
    bootstrap = _BOOTSTRAP.replace("{port}", str(ports["web"]))
    text = CONFIGURATION.format(acceptors=acceptor)
    process = start_artemis(text, folder, home, bootstrap, ["-Dhawtio.authenticationEnabled=false"])
    try:
        wait_until_listening(process, ports, START_S, log_of(folder))
        yield JolokiaBroker(f"http://127.0.0.1:{ports['web']}")
    finally:
        stop(process)
