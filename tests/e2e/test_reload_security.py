"""Permissions, users and keys change while clients are connected."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.kit.certificates import Authority
from tests.kit.client import connected, refused
from tests.kit.process import HTTP, STOMP, BrokerProcess, configuration, running
from tests.kit.secured import USERS, secured_broker
from tests.kit.tls import served, uri

pytestmark = pytest.mark.e2e


def read_again(broker: BrokerProcess, text: str, file: Path) -> None:
    """Writes the file and waits until the broker has it in force."""
    before = broker.said.count(" CFG-1001 ")
    file.write_text(text, "utf-8")
    broker.eventually("a reload", lambda: broker.said.count(" CFG-1001 "), lambda count: count > before)


def test_a_permission_that_is_withdrawn_counts_for_open_sessions(tmp_path: Path) -> None:
    file = tmp_path / "broker.xml"
    with (
        secured_broker(tmp_path) as broker,
        connected(broker.port, login="eve", passcode=USERS["eve"]) as eve,
        connected(broker.port, login="ann", passcode=USERS["ann"]) as ann,
    ):
        send = {"destination": "/queue/jobs"}
        eve.ask("SEND", send, b"x")
        text = file.read_text("utf-8")
        permission = '<permission type="send" roles="{}"/>'
        narrowed = text.replace(permission.format("workers"), permission.format("editors"), 1)
        read_again(broker, narrowed, file)
        ann.ask("SEND", send, b"x")
        eve.send("SEND", {**send, "receipt": "1"}, b"x")
        assert "permission" in eve.expect("ERROR").text
        assert "security-setting #: send workers → editors" in broker.said


def test_users_in_files_and_another_file_of_users(tmp_path: Path) -> None:
    file = tmp_path / "broker.xml"
    with secured_broker(tmp_path) as broker, connected(broker.port, login="eve", passcode=USERS["eve"]) as eve:
        users, roles = tmp_path / "artemis-users.properties", tmp_path / "artemis-roles.properties"
        users.write_text(users.read_text() + "new=new's secret\n")
        roles.write_text(roles.read_text().replace("workers=", "workers=new,"))
        connected(broker.port, login="new", passcode="new's secret").close()
        (tmp_path / "others.properties").write_text("zoe=zoe's secret\n")
        (tmp_path / "their-roles.properties").write_text("workers=zoe\n")
        named = '<users-file roles-file="their-roles.properties">others.properties</users-file>\n<security-settings>'
        read_again(broker, file.read_text("utf-8").replace("<security-settings>", named, 1), file)
        connected(broker.port, login="zoe", passcode="zoe's secret").close()
        refused(broker.port, login="eve", passcode=USERS["eve"])
        eve.ask("SEND", {"destination": "/queue/jobs"}, b"x")  # who is in stays


def test_an_acceptor_gets_another_key(tmp_path: Path) -> None:
    """A key that is none changes nothing."""
    authority = Authority()
    first, second = authority.issue("first"), authority.issue("second")
    first.pem(tmp_path / "first.pem")
    second.pem(tmp_path / "second.pem")
    (tmp_path / "none.pem").write_text("no key")
    file = tmp_path / "broker.xml"
    text = configuration({"stomp": STOMP, "http": HTTP, "tls": uri("STOMP", keyStorePath="first.pem")})
    with running(text, tmp_path) as broker:
        port = broker.ports["tls"]
        file.write_text(text.replace("first.pem", "none.pem"), "utf-8")
        broker.await_said(" CFG-1002 ")
        assert served(port, authority) == first.certificate.public_bytes(Encoding.DER)
        read_again(broker, text.replace("first.pem", "second.pem"), file)
        lines = [line for line in broker.said.splitlines() if " acceptor=tls listening on " in line]
        port = int(lines[-1].partition("listening on ")[2].split()[0].rpartition(":")[2])
        assert served(port, authority) == second.certificate.public_bytes(Encoding.DER)
