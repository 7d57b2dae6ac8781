"""``artemis-py run DIR``: the folder of an Artemis instance as a broker, seen from outside."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.kit.certificates import Authority
from tests.kit.client import connected, is_greeted, refused
from tests.kit.http import ask
from tests.kit.process import LOOPBACK, BrokerProcess, started
from tests.kit.secured import basic
from tests.kit.tls import trusting, uri

pytestmark = pytest.mark.e2e

GUEST = "ENC(80cf731af62c290)"  # as artemis mask prints it
RECORDED = Path(__file__).parents[1] / "unit" / "security" / "instances" / "shop"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker on a copy of the recorded instance, started in another folder."""
    shutil.copytree(RECORDED, tmp_path / "shop")
    (tmp_path / "elsewhere").mkdir()
    with started(tmp_path / "shop", log=tmp_path / "log", folder=tmp_path / "elsewhere") as broker:
        yield broker


def test_people_log_in_through_the_ports_of_an_instance(shop: BrokerProcess, tmp_path: Path) -> None:
    wrong, tills = "Security Error occurred: User name [{}] or password is invalid", shop.ports["tills"]
    assert is_greeted(shop.port, login="ann", passcode="welcome")
    assert is_greeted(shop.port, login="bob", passcode="open sesame")
    assert refused(shop.port, login="bob", passcode="Open Sesame") == wrong.format("bob")
    assert is_greeted(shop.port)  # a visitor
    assert is_greeted(tills, login="bob", passcode="open sesame")
    assert refused(tills) == wrong.format("null")  # no visitors at the till
    assert ask(shop.ports["web"], "GET", "/health/ready").status == 200
    with (tmp_path / "shop" / "etc" / "artemis-users.properties").open("a") as users:
        users.write("\neve = new\n")
    assert is_greeted(shop.port, login="eve", passcode="new")
    assert shop.stop() == 0
    assert list((tmp_path / "shop" / "data" / "journal").glob("server.lock"))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    for secret in ("welcome", "sesame", "drowssap", "new\n"):
        assert secret not in shop.said.replace("a new one with", "")


def test_a_file_of_xml_that_is_cut_is_told_while_the_broker_runs(shop: BrokerProcess, tmp_path: Path) -> None:
    """Also one that comes into being: with it the next start would fail."""
    file = tmp_path / "shop" / "etc" / "jolokia-access.xml"
    file.write_text("<restrict><cors>")
    assert "jolokia-access.xml:1" in shop.await_said(" CFG-1002 ")
    file.unlink()
    shop.await_said(" CFG-1001 ")


def test_another_access_to_jolokia_is_told_to_need_a_restart(shop: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "shop" / "etc" / "jolokia-access.xml"
    file.write_text("<restrict><cors><allow-origin>http://shop.example</allow-origin></cors></restrict>")
    shop.await_said("pending_restart=1")
    assert "jolokia-access.xml" in shop.said


ACCESS = "<restrict><cors><allow-origin>http://ui.example</allow-origin><strict-checking/></cors></restrict>"


JOLOKIA = "/console/jolokia/version"


def test_pages_of_others_use_jolokia_where_the_instance_lets_them(tmp_path: Path) -> None:
    """A browser asks first, without a login; what it asks for has one."""
    folder = shutil.copytree(RECORDED, tmp_path / "shop")
    (folder / "etc" / "jolokia-access.xml").write_text(ACCESS)
    ui, login = "http://ui.example", basic("ann", "welcome")
    asks = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "Authorization, X-Evil"}
    with started(folder, log=tmp_path / "log") as broker:
        port = broker.ports["web"]
        reply = ask(port, "OPTIONS", JOLOKIA, Origin=ui, **asks)
        assert (reply.status, reply.headers["Access-Control-Allow-Origin"]) == (200, ui)
        assert reply.headers["Access-Control-Allow-Headers"] == "authorization"
        assert "Access-Control-Allow-Credentials" not in reply.headers
        assert ask(port, "OPTIONS", JOLOKIA, Origin="http://evil.example", **asks).status == 403
        assert ask(port, "GET", JOLOKIA, Origin=ui, Authorization=basic("ann", "wrong")).status == 401
        reply = ask(port, "GET", JOLOKIA, Origin=ui, Authorization=login)
        assert (reply.status, reply.headers["Access-Control-Allow-Origin"]) == (200, ui)
        assert ask(port, "GET", JOLOKIA, Origin="http://evil.example", Authorization=login).status == 403
        assert ask(port, "GET", JOLOKIA, Authorization=login).status == 403, "strict-checking wants to know the page"
        own = f"http://{LOOPBACK}:{port}"
        assert ask(port, "GET", JOLOKIA, Referer=f"{own}/console/", Authorization=login).status == 200
        assert ask(port, "GET", JOLOKIA, Origin=own, Authorization=login).status == 200


def test_a_domain_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    folder = shutil.copytree(RECORDED, tmp_path / "shop")
    bootstrap = folder / "etc" / "bootstrap.xml"
    bootstrap.write_text(bootstrap.read_text().replace('domain="shop"', 'domain="old-directory"'))
    broker = BrokerProcess(["run", str(folder)], tmp_path / "log")
    assert broker.process.wait(120) == 2
    assert f"{folder}/etc/login.config:33: the login module " in broker.said
    assert "LDAPLoginModule is not supported" in broker.said
    assert not (folder / "data" / "journal").exists()


def test_certificates_log_in(tmp_path: Path) -> None:
    """The key store's password is masked, and relative paths are those of ``etc``."""
    folder = shutil.copytree(RECORDED, tmp_path / "shop")
    authority = Authority()
    authority.issue("broker").pkcs12(folder / "etc" / "broker.p12", password="guest")
    authority.pem(folder / "etc" / "clients.pem")
    tls = uri(
        "STOMP", keyStorePath="broker.p12", keyStorePassword=GUEST, trustStorePath="clients.pem", wantClientAuth=True
    )
    text = (folder / "etc" / "broker.xml").read_text()
    acceptors = f'<acceptors><acceptor name="tls">{tls}</acceptor>'
    (folder / "etc" / "broker.xml").write_text(text.replace("<acceptors>", acceptors))
    names = {NameOID.ORGANIZATION_NAME: "Shop", NameOID.ORGANIZATIONAL_UNIT_NAME: "Partners"}
    baker, butcher = (
        authority.issue(x509.Name([x509.NameAttribute(*one) for one in {**names, NameOID.COMMON_NAME: name}.items()]))
        for name in ("Bakery", "Butcher")
    )
    with started(folder, log=tmp_path / "log") as broker:
        port, login = broker.ports["tls"], {"login": "ann", "passcode": "welcome"}
        with connected(port, "1.2", trusting(authority, baker, tmp_path)) as client:
            client.send("SEND", {"destination": "orders", "receipt": "1"}, b"a loaf")
            assert "User\\c baker does not have permission" in client.expect("ERROR").text
        assert refused(port, trusting(authority, butcher, tmp_path), **login).startswith("Security Error occurred")
        with connected(port, "1.2", trusting(authority), **login) as client:
            client.ask("SEND", {"destination": "orders"}, b"a loaf")
        assert "guest" not in broker.said.replace("guests", "")
