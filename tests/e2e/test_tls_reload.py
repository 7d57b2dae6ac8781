"""``sslAutoReload``: new connections get the new certificate, a broken file changes nothing, traffic goes on."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.kit.certificates import DAY, Authority, Issued
from tests.kit.client import connected, is_greeted
from tests.kit.meanwhile import meanwhile
from tests.kit.process import HTTP, STOMP, WAIT_S, BrokerProcess, configuration, running
from tests.kit.tls import TlsBroker, served, shake, uri


def await_served(world: TlsBroker, issued: Issued, acceptor: str = "stomp") -> None:
    wanted = issued.certificate.public_bytes(Encoding.DER)
    port = world.broker.ports[acceptor]
    world.broker.eventually("served", lambda: served(port, world.authority), lambda found: found == wanted)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TlsBroker]:
    """A broker that looks at its files ten times a second."""
    authority = Authority()
    authority.pem(tmp_path / "trust.pem")
    authority.revoke(tmp_path / "crl.pem")
    first = authority.issue("first")
    first.pem(tmp_path / "broker.pem")
    (tmp_path / "key.pem").write_bytes(first.key_pem())
    (tmp_path / "chain.pem").write_bytes(first.chain_pem())
    (tmp_path / "broker.pemcfg").write_text("source.key=key.pem\nsource.cert=chain.pem\n")
    acceptors = {
        "stomp": uri("STOMP", keyStorePath="broker.pem", sslAutoReload="true"),
        "parts": uri("STOMP", keyStorePath="broker.pemcfg", sslAutoReload="true"),
        "fixed": uri("STOMP", keyStorePath="broker.pem"),
        "crl": uri(
            "STOMP", keyStorePath="key.pemcfg", trustStorePath="trust.pem", needClientAuth="true", crlPath="crl.pem",
            sslAutoReload="true",
        ),
        "http": HTTP,
    }  # fmt: skip
    (tmp_path / "key.pemcfg").write_text("source.key=key.pem\nsource.cert=chain.pem\n")
    core = "<configuration-file-refresh-period>100</configuration-file-refresh-period>"
    text = configuration(acceptors, core=core)
    with running(text, tmp_path) as broker:
        yield TlsBroker(broker, tmp_path, authority)


def test_new_connections_get_the_new_certificate_while_others_work(world: TlsBroker) -> None:
    with connected(world.broker.port, "1.2", world.context()) as client:

        def traffic() -> None:
            client.ask("SEND", {"destination": "traffic"}, b"x" * 20_000)
            shake(world.broker.port, world.context()).close()

        with meanwhile(traffic):
            for number in range(5):
                issued = world.authority.issue(f"new{number}")
                issued.pem(world.folder / "broker.pem")
                await_served(world, issued)
    world.broker.await_said("ART-2003 acceptor=stomp new connections get the certificate CN=new4, valid until ")
    assert world.broker.metric("artemis_tls_reloads_total", acceptor="stomp") >= 5
    assert served(world.broker.ports["fixed"], world.authority) != issued.certificate.public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda world: (world.folder / "broker.pem").write_bytes(b"nothing"), "broker.pem is not a key or trust store"),
        (lambda world: (world.folder / "broker.pem").unlink(), "broker.pem cannot be read: No such file"),
        (
            lambda world: world.authority.issue("old", since=-2 * DAY, until=-DAY).pem(world.folder / "broker.pem"),
            "(CN=old) expired at ",
        ),
    ],
)
def test_a_broken_file_keeps_the_old_certificate(
    world: TlsBroker, spoil: Callable[[TlsBroker], object], words: str
) -> None:
    before = served(world.broker.port, world.authority)
    spoil(world)
    world.broker.await_said("a changed file is not used, and new connections still get the certificate loaded before: ")
    assert words in world.broker.said
    assert served(world.broker.port, world.authority) == before
    (warning,) = world.broker.api("/health/ready")["warnings"]
    assert words in warning
    assert world.broker.metric("artemis_tls_files_stale", acceptor="stomp") == 1
    issued = world.authority.issue("mended")
    issued.pem(world.folder / "broker.pem")
    await_served(world, issued)
    world.broker.eventually(
        "no warning", lambda: world.broker.api("/health/ready"), lambda found: "warnings" not in found
    )
    assert world.broker.metric("artemis_tls_files_stale", acceptor="stomp") == 0


def test_parts_that_do_not_fit_yet(world: TlsBroker) -> None:
    """A PEMCFG's files are watched, and replaced one after the other."""
    issued = world.authority.issue("second")
    (world.folder / "key.pem").write_bytes(issued.key_pem())
    world.broker.await_said("ART-2003 acceptor=parts warning: a changed file is not used")
    (world.folder / "chain.pem").write_bytes(issued.chain_pem())
    await_served(world, issued, "parts")


def test_a_new_list_of_revoked_certificates(world: TlsBroker) -> None:
    client = world.authority.issue("client")
    context = world.context(client)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # the refusal comes in the handshake

    is_accepted = partial(is_greeted, world.broker.ports["crl"], context)
    assert is_accepted()
    world.authority.revoke(world.folder / "crl.pem", client)
    world.broker.eventually("refused", is_accepted, lambda accepted: not accepted)
    world.authority.revoke(world.folder / "crl.pem", until=-DAY)
    world.broker.await_said("crl.pem (crlPath) is out of date since ")
    assert not is_accepted()


def test_a_start_with_a_wrong_password_ends_with_one_line(tmp_path: Path) -> None:
    Authority().issue("broker").pkcs12(tmp_path / "broker.p12")
    acceptors = {"plain": STOMP, "secure": uri("STOMP", keyStorePath="broker.p12", keyStorePassword="wrong")}
    (tmp_path / "broker.xml").write_text(configuration(acceptors))
    broker = BrokerProcess(["run", str(tmp_path / "broker.xml")], tmp_path / "broker.log")
    assert broker.process.wait(WAIT_S) == 1
    assert "acceptor secure cannot speak TLS: " in broker.said
    assert "broker.p12: the password is wrong" in broker.said
    assert "listening" not in broker.said
    assert "Traceback" not in broker.said
