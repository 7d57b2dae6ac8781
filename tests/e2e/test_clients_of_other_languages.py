"""@stomp/stompjs (Node), go-stomp (Go) and Net::Stomp (Perl) against the real broker, in each STOMP version.

Their programs stand in ``tests/clients/``; each runs once for a version, and each of its checks is a test here.
"""

from __future__ import annotations

import functools

import pytest

from tests.e2e.foreign_clients import CHECKS, CLIENTS, VERSIONS, ForeignClient
from tests.kit.packages import Absent
from tests.kit.process import BrokerProcess

pytestmark = pytest.mark.e2e

Verdicts = dict[str, dict[str, str]]

CASES = [
    pytest.param(client, version, check, id=f"{client.name}-{version}-{check}")
    for client in CLIENTS
    for version in VERSIONS
    for check in client.checks(version)
]


@functools.cache
def verdicts_of(client: ForeignClient, port: int) -> Verdicts | Absent:
    """What a client's program found, or why there is none; the first question runs it."""
    try:
        return client.verdicts(port, f"foreign.{client.name.lower().translate({58: None, 32: 46})}")
    except Absent as absent:
        return absent


@pytest.mark.parametrize(("client", "version", "check"), CASES)
def test_client(shared_broker: BrokerProcess, client: ForeignClient, version: str, check: str) -> None:
    verdicts = verdicts_of(client, shared_broker.port)
    if isinstance(verdicts, Absent):
        pytest.skip(f"no {client.name}: {verdicts}")
    found = verdicts[version]
    assert found.get(check, found[""]) == "ok"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_no_check_is_forgotten(shared_broker: BrokerProcess, client: ForeignClient) -> None:
    verdicts = verdicts_of(client, shared_broker.port)
    if isinstance(verdicts, Absent):
        pytest.skip(f"no {client.name}: {verdicts}")
    assert {version: set(found) - {""} for version, found in verdicts.items()} == {
        version: set(client.checks(version)) for version in VERSIONS
    }
    assert set().union(*(client.checks("1.2") for client in CLIENTS)) == set(CHECKS)
