"""``artemis-py run DIR``: the folder of an Artemis instance as a broker, seen from outside."""

from __future__ import annotations

import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.broker_process import LOOPBACK, BrokerProcess
from tests.e2e.stomp_socket import StompSocket

pytestmark = pytest.mark.e2e

RECORDED = Path(__file__).parents[1] / "unit" / "security" / "instances" / "shop"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker on a copy of the recorded instance, started in another folder."""
    shutil.copytree(RECORDED, tmp_path / "shop")
    (tmp_path / "elsewhere").mkdir()
    broker = BrokerProcess(["run", str(tmp_path / "shop")], tmp_path / "log", folder=tmp_path / "elsewhere")
    try:
        broker.await_ready()
        yield broker
    finally:
        broker.kill()


def answer(broker: BrokerProcess, port: str, **headers: str) -> str:
    """What a client hears who connects with these headers."""
    with StompSocket(broker.ports[port]) as client:
        client.send("CONNECT", {"accept-version": "1.2", "host": "shop", **headers})
        found = client.receive()
        return f"{found.command} {found.header('message') or ''}".strip()


def test_people_log_in_through_the_ports_of_an_instance(shop: BrokerProcess, tmp_path: Path) -> None:
    wrong = "ERROR Security Error occurred\\c User name [{}] or password is invalid"
    assert answer(shop, "stomp", login="ann", passcode="welcome") == "CONNECTED"
    assert answer(shop, "stomp", login="bob", passcode="open sesame") == "CONNECTED"
    assert answer(shop, "stomp", login="bob", passcode="Open Sesame") == wrong.format("bob")
    assert answer(shop, "stomp") == "CONNECTED"  # a visitor
    assert answer(shop, "tills", login="bob", passcode="open sesame") == "CONNECTED"
    assert answer(shop, "tills").startswith(
        "ERROR Security Error occurred\\c User name [null]"
    )  # no visitors at the till
    with urllib.request.urlopen(f"http://{LOOPBACK}:{shop.ports['web']}/health/ready", timeout=10) as health:
        assert health.status == 200
    with (tmp_path / "shop" / "etc" / "artemis-users.properties").open("a") as users:
        users.write("\neve = new\n")
    assert answer(shop, "stomp", login="eve", passcode="new") == "CONNECTED"
    assert shop.stop() == 0
    assert list((tmp_path / "shop" / "data" / "journal").glob("artemis-journal-*"))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    for secret in ("welcome", "sesame", "drowssap", "new\n"):
        assert secret not in shop.said.replace("a new one with", "")


def test_a_domain_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    folder = shutil.copytree(RECORDED, tmp_path / "shop")
    bootstrap = folder / "etc" / "bootstrap.xml"
    bootstrap.write_text(bootstrap.read_text().replace('domain="shop"', 'domain="old-directory"'))
    broker = BrokerProcess(["run", str(folder)], tmp_path / "log")
    assert broker.process.wait(20) == 2
    assert f"{folder}/etc/login.config:33: the login module " in broker.said
    assert "LDAPLoginModule is not supported" in broker.said
    assert not (folder / "data" / "journal").exists()
