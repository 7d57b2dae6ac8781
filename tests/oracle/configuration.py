"""One broker.xml for both brokers, put together from what the scenarios declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.oracle.scenario import Scenario

ACCEPTORS = {
    "stomp": "protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/",
    "clamped": "protocols=STOMP;connectionTtlMin=5000;connectionTtlMax=10000",
    "impatient": "protocols=STOMP;connectionTtl=1000;connectionTtlMin=300",
    "numbered": "protocols=STOMP;stompEnableMessageId=true;disableStompServerHeader=true",
}

_TEMPLATE = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>oracle</name>
    <persistence-enabled>false</persistence-enabled>
    <security-enabled>false</security-enabled>
    <message-expiry-scan-period>{scan_ms}</message-expiry-scan-period>
    <address-queue-scan-period>{scan_ms}</address-queue-scan-period>
    <connection-ttl-check-interval>100</connection-ttl-check-interval>
    <max-disk-usage>100</max-disk-usage>
    <acceptors>
{acceptors}
    </acceptors>
    <diverts>
{diverts}
    </diverts>
    <addresses>
{addresses}
    </addresses>
    <address-settings>
{settings}
    </address-settings>
  </core>
</configuration>
"""


@dataclass(frozen=True)
class Profile:
    """Scenarios that share one process. ``scan_ms`` is the period of both scans; -1 switches them off."""

    name: str
    scan_ms: int
    scenarios: tuple[Scenario, ...]


def broker_xml(profile: Profile, ports: Mapping[str, int]) -> str:
    """The configuration of one profile; the ports by acceptor."""
    return _TEMPLATE.format(
        scan_ms=profile.scan_ms,
        acceptors="\n".join(
            f'<acceptor name="{name}">tcp://127.0.0.1:{ports[name]}?{params}</acceptor>'
            for name, params in ACCEPTORS.items()
        ),
        diverts="\n".join(piece for scenario in profile.scenarios for piece in scenario.diverts),
        addresses="\n".join(piece for scenario in profile.scenarios for piece in scenario.addresses),
        settings="\n".join(piece for scenario in profile.scenarios for piece in scenario.settings),
    )
