"""Users of a running broker: who sees them, and what the broker knows of them."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.broker_process import LOOPBACK, WAIT_S, BrokerProcess
from tests.e2e.management.test_denied import status_of
from tests.e2e.secured import USERS, basic, secured_broker
from tests.e2e.stomp_socket import StompSocket

pytestmark = pytest.mark.e2e


def users_of(broker: BrokerProcess) -> dict[str, dict[str, Any]]:
    """What bob, who may look, is told of each."""
    request = urllib.request.Request(
        f"http://{LOOPBACK}:{broker.ports['http']}/api/users", headers={"Authorization": basic("bob")}
    )
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        return {row["name"]: row for row in json.load(answer)["data"]}


def test_who_is_there_and_who_was(tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker, StompSocket(broker.port) as client:
        client.connect(login="eve", passcode=USERS["eve"])
        found = users_of(broker)
        assert {name: (row["roles"], row["connectionCount"], row["lastLogin"] > 0) for name, row in found.items()} == {
            "ann": ("editors,workers", 0, False),
            "bob": ("viewers,workers", 0, True),
            "eve": ("workers", 1, True),
        }
        assert status_of(broker, "GET", "/api/users", "eve") == 403
        with (tmp_path / "artemis-users.properties").open("a") as users:
            users.write("zoe=z\n")
        assert set(users_of(broker)) == {"ann", "bob", "eve", "zoe"}
