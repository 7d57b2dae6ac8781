"""``artemis-py check`` opens the stores of acceptors, as a start would, and says what is wrong and what to do."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from artemis_py.cli.main import main
from artemis_py.config.reader import load
from artemis_py.server.tls.context import TlsFiles
from tests.kit.certificates import DAY, PASSWORD, Authority
from tests.kit.documents import document, queue
from tests.kit.process import configuration
from tests.kit.tls import uri

AUTHORITY = Authority()


def checked(folder: Path, capsys: pytest.CaptureFixture[str], **params: object) -> tuple[int, str]:
    """The exit code and the words of ``check`` for an acceptor with these parameters."""
    file = folder / "broker.xml"
    file.write_text(configuration({"secure": uri("STOMP", **params)}))
    code = main(["check", str(file)])
    said = capsys.readouterr().out
    assert PASSWORD not in said
    return code, said


def test_what_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    AUTHORITY.issue("broker").pkcs12(tmp_path / "broker.p12")
    code, said = checked(tmp_path, capsys, keyStorePath="broker.p12", keyStorePassword=PASSWORD, keyStoreAlias="broker")
    assert code == 0
    assert "for STOMP over TLS (acceptor secure)" in said


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"keyStorePassword": "wrong"},
            "broker.p12: the password is wrong (keyStorePassword), or the file is damaged; try it with: keytool",
        ),
        ({"keyStorePassword": PASSWORD, "keyStoreAlias": "x"}, "has no key with the alias 'x', only: broker"),
        ({"keyStorePassword": PASSWORD, "keyStorePath": "trust.pem"}, "trust.pem has certificates but no private key"),
        ({"keyStorePassword": PASSWORD, "keyStorePath": "none.p12"}, "none.p12 cannot be read: No such file"),
        ({"keyStorePassword": PASSWORD, "crlPath": "trust.pem"}, "is not a list of revoked certificates"),
        ({"keyStorePassword": PASSWORD, "trustStorePath": "none.pem"}, "none.pem cannot be read: No such file"),
        ({"keyStorePassword": "ENC(00)"}, "keyStorePassword: the masked password does not belong to this key"),
    ],
)
def test_what_is_wrong_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], params: dict[str, str], words: str
) -> None:
    AUTHORITY.issue("broker").pkcs12(tmp_path / "broker.p12")
    AUTHORITY.pem(tmp_path / "trust.pem")
    code, said = checked(tmp_path, capsys, **{"keyStorePath": "broker.p12", **params})
    assert code == 2
    assert "acceptor secure cannot speak TLS: " in said
    assert "broker.xml:9: error: " in said
    assert "listening" not in said
    assert words in said


@pytest.mark.parametrize(
    ("params", "password", "words"),
    [
        ("trustStorePath=none.pem", "p", "none.pem cannot be read: No such file"),
        ("keyStorePath=trust.pem", "p", "trust.pem has certificates but no private key"),
        ("trustStorePath=trust.pem", "ENC(00)", "password: the masked password does not belong to this key"),
        ("trustStorePath=trust.pem;trustStorePassword=ENC(0", "p", "a masked password begins here that is not whole"),
    ],
)
def test_a_bridge_that_cannot_connect_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], params: str, password: str, words: str
) -> None:
    AUTHORITY.pem(tmp_path / "trust.pem")
    file = tmp_path / "broker.xml"
    file.write_text(
        document(
            f"""{queue()}<connectors><connector name="c">tcp://far:1?sslEnabled=true;{params}</connector></connectors>
            <bridges><bridge name="b"><queue-name>q</queue-name><user>u</user><password>{password}</password>
            <static-connectors><connector-ref>c</connector-ref></static-connectors></bridge></bridges>"""
        )
    )
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "broker.xml:4: warning[bridge]: bridge b cannot connect: " in said
    assert words in said


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [(-2 * DAY, -DAY, "its certificate (CN=broker) expired at "), (DAY, 2 * DAY, "is only valid from ")],
)
def test_a_certificate_that_no_client_accepts_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], since: object, until: object, words: str
) -> None:
    AUTHORITY.issue("broker", since=since, until=until).pem(tmp_path / "broker.pem")  # type: ignore[arg-type]
    code, said = checked(tmp_path, capsys, keyStorePath="broker.pem")
    assert code == 0
    assert words in said
    assert "warning[certificate]" in said


def test_a_masked_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As ``artemis mask`` writes ``secureexample``, with Artemis' default key."""
    AUTHORITY.issue("broker").pkcs12(tmp_path / "broker.p12", password="secureexample")
    masked = "ENC(2a7c211d21c295cdbcde3589c205decb)"
    assert checked(tmp_path, capsys, keyStorePath="broker.p12", keyStorePassword=masked)[0] == 0


def test_no_key_reaches_the_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written beside the store, nor where temporary files go, and no descriptor stays open."""
    AUTHORITY.issue("broker").pkcs12(tmp_path / "broker.p12")
    checked(tmp_path, capsys, keyStorePath="broker.p12", keyStorePassword=PASSWORD)
    config = load(tmp_path / "broker.xml")
    TlsFiles(config, config.acceptors[0]).load()  # imports what it needs, of which Python writes bytecode
    gc.collect()  # what other tests left does not close meanwhile
    before, files = len(os.listdir("/proc/self/fd")), set(tmp_path.iterdir())
    written: list[object] = []
    is_on = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if is_on and event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            written.append(arguments[0])

    sys.addaudithook(note)  # for ever: Python takes none away again
    TlsFiles(config, config.acceptors[0]).load()
    is_on = False
    assert written == []
    assert set(tmp_path.iterdir()) == files
    assert len(os.listdir("/proc/self/fd")) == before
