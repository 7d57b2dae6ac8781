"""One broker.xml for both brokers, put together from what the scenarios declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.kit.process import LOOPBACK, configuration
from tests.oracle.scenario import Scenario

ACCEPTORS = {
    "stomp": "protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/",
    "clamped": "protocols=STOMP;connectionTtlMin=5000;connectionTtlMax=10000",
    "impatient": "protocols=STOMP;connectionTtl=1000;connectionTtlMin=300",
    "numbered": "protocols=STOMP;stompEnableMessageId=true;disableStompServerHeader=true",
}

_CORE = """\
    <message-expiry-scan-period>{scan_ms}</message-expiry-scan-period>
    <address-queue-scan-period>{scan_ms}</address-queue-scan-period>
    <connection-ttl-check-interval>100</connection-ttl-check-interval>
    <max-disk-usage>100</max-disk-usage>
    <diverts>
{diverts}
    </diverts>
"""


@dataclass(frozen=True)
class Profile:
    """Scenarios that share one process. ``scan_ms`` is the period of both scans; -1 switches them off."""

    name: str
    scan_ms: int
    scenarios: tuple[Scenario, ...]


def broker_xml(profile: Profile, ports: Mapping[str, int]) -> str:
    """The configuration of one profile; the ports by acceptor."""
    diverts, addresses, settings = (
        "\n".join(piece for scenario in profile.scenarios for piece in getattr(scenario, kind))
        for kind in ("diverts", "addresses", "settings")
    )
    uris = {name: f"tcp://{LOOPBACK}:{ports[name]}?{params}" for name, params in ACCEPTORS.items()}
    core = _CORE.format(scan_ms=profile.scan_ms, diverts=diverts)
    return configuration(uris, name="oracle", core=core, addresses=addresses, settings=settings)
