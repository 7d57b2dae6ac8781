"""Kinds of broker.xml that people run Artemis with, and whose STOMP ports other machines can reach: each opens once
what its passwords and TLS need is beside it, and stays shut without.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from artemis_py.cli.main import main
from artemis_py.security.users.passwords import hashed
from tests.kit.certificates import Authority

SECRET = "changeit-9c1"
MASKED = "ENC(80cf731af62c290)"
AUTHORITY = Authority()
OPEN_TUNING = "tcpSendBufferSize=1048576;tcpReceiveBufferSize=1048576;"
CLIENTS = "amqpCredits=1000;amqpLowCredits=300;amqpMinLargeMessageSize=102400;amqpDuplicateDetection=true;"
OPENWIRE = "supportAdvisory=false;virtualTopicConsumerWildcards=Consumer.*.%3E%3B2;"
PREFIXES = "anycastPrefix=/queue/;multicastPrefix=/topic/"
SECURE = "tcp://0.0.0.0:61617?protocols=STOMP;sslEnabled=true;"
SUITES = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
KEY = f"keyStorePath=broker.p12;keyStorePassword={SECRET}"
TRUST = f"trustStorePath=trust.p12;trustStorePassword={SECRET}"


@dataclass(frozen=True)
class Kind:
    """An acceptor as such files write it, and what stands around it in ``core``."""

    name: str
    uri: str
    core: str = ""


PASSWORDS = (
    Kind("all protocols by silence", "tcp://0.0.0.0:61616"),
    Kind("all protocols by name", "tcp://0.0.0.0:61616?protocols=CORE,AMQP,STOMP,HORNETQ,MQTT,OPENWIRE"),
    Kind("what is generated", f"tcp://0.0.0.0:61616?{OPEN_TUNING}{CLIENTS}useEpoll=true;protocols=CORE,AMQP,STOMP"),
    Kind("STOMP alone", "tcp://0.0.0.0:61613?protocols=STOMP;useEpoll=true"),
    Kind("STOMP with buffers", f"tcp://0.0.0.0:61613?{OPEN_TUNING}protocols=STOMP;useEpoll=true"),
    Kind("prefixes", f"tcp://0.0.0.0:61613?protocols=STOMP;{PREFIXES}"),
    Kind("old prefixes", "tcp://0.0.0.0:61613?protocols=STOMP;anycastPrefix=jms.queue.;multicastPrefix=jms.topic."),
    Kind("a host from the environment", "tcp://${NO_SUCH_HOST:0.0.0.0}:61613?protocols=STOMP"),
    Kind("a port from the environment", "tcp://0.0.0.0:${NO_SUCH_PORT:61613}?protocols=STOMP"),
    Kind("IPv6", "tcp://[::]:61613?protocols=STOMP"),
    Kind("a host name", "tcp://broker.example.org:61613?protocols=STOMP"),
    Kind("a private address", "tcp://10.0.0.5:61613?protocols=STOMP"),
    Kind("a lower-case protocol", "tcp://0.0.0.0:61613?protocols=stomp"),
    Kind("the old parameter", "tcp://0.0.0.0:61613?protocol=STOMP"),
    Kind("ampersands", "tcp://0.0.0.0:61613?protocols=STOMP&amp;useEpoll=true&amp;connectionsAllowed=1000"),
    Kind("line breaks within", "\n      tcp://0.0.0.0:61613?\n        protocols=STOMP;\n        useEpoll=true\n    "),
    Kind("OpenWire's parameters", f"tcp://0.0.0.0:61616?protocols=CORE,STOMP,OPENWIRE;{OPENWIRE}useEpoll=true"),
    Kind("MQTT's parameters", "tcp://0.0.0.0:1883?protocols=MQTT,STOMP;maximumInFlightPublishMessages=100"),
    Kind("heart-beats", "tcp://0.0.0.0:61613?protocols=STOMP;heartBeatToConnectionTtlModifier=6;connectionTtl=60000"),
    Kind("a time to live", "tcp://0.0.0.0:61613?protocols=STOMP;connectionTtlMin=20000;connectionTtlMax=600000"),
    Kind("a window", "tcp://0.0.0.0:61613?protocols=STOMP;stompConsumerCredits=-1"),
    Kind("ids of messages", "tcp://0.0.0.0:61613?protocols=STOMP;stompEnableMessageId=true"),
    Kind("large messages", "tcp://0.0.0.0:61613?protocols=STOMP;stompMinLargeMessageSize=102400"),
    Kind("Web applications", "tcp://0.0.0.0:61614?protocols=STOMP;webSocketEncoderType=text"),
    Kind("frames of Web applications", "tcp://0.0.0.0:61614?protocols=STOMP;stompMaxFramePayloadLength=1048576"),
    Kind("threads", "tcp://0.0.0.0:61613?protocols=STOMP;remotingThreads=8;useGlobalWorkerPool=false;batchDelay=0"),
    Kind("direct delivery", "tcp://0.0.0.0:61613?protocols=STOMP;directDeliver=false;tcpNoDelay=true"),
    Kind("a limit", "tcp://0.0.0.0:61613?protocols=STOMP;connectionsAllowed=500;backlog=200"),
    Kind("TLS switched of", "tcp://0.0.0.0:61613?protocols=STOMP;sslEnabled=false"),
    Kind("security said", "tcp://0.0.0.0:61613?protocols=STOMP", "<security-enabled>true</security-enabled>"),
    Kind(
        "who sent it",
        "tcp://0.0.0.0:61613?protocols=STOMP",
        "<populate-validated-user>true</populate-validated-user>"
        "<security-invalidation-interval>20000</security-invalidation-interval>",
    ),
    Kind("another's name", "tcp://0.0.0.0:61613?protocols=STOMP;activemqServerName=other", "<name>mine</name>"),
)  # fmt: skip
TLS = (
    Kind("PKCS12", f"{SECURE}{KEY}"),
    Kind("PKCS12 called JKS", f"{SECURE}{KEY};keyStoreType=JKS"),
    Kind("PEM", f"{SECURE}keyStorePath=broker.pem;keyStoreType=PEM"),
    Kind("PEMCFG", f"{SECURE}keyStorePath=broker.pemcfg;keyStoreType=PEMCFG"),
    Kind("a masked password", f"{SECURE}keyStorePath=masked.p12;keyStorePassword={MASKED}"),
    Kind("all protocols", f"tcp://0.0.0.0:61617?{OPEN_TUNING}{CLIENTS}sslEnabled=true;{KEY}"),
    Kind("a folder's name", f"{SECURE}keyStorePath=${{NO_SUCH_DIR:.}}/broker.p12;keyStorePassword={SECRET}"),
    Kind("clients' certificates", f"{SECURE}{KEY};{TRUST};needClientAuth=true"),
    Kind("perhaps certificates", f"{SECURE}{KEY};{TRUST};wantClientAuth=true"),
    Kind("versions", f"{SECURE}{KEY};enabledProtocols=TLSv1.2,TLSv1.3"),
    Kind("old versions as well", f"{SECURE}{KEY};enabledProtocols=TLSv1,TLSv1.1,TLSv1.2"),
    Kind("suites", f"{SECURE}{KEY};enabledCipherSuites={SUITES}"),
    Kind("a provider", f"{SECURE}{KEY};sslProvider=OPENSSL"),
    Kind("a server name", f"{SECURE}{KEY};sniHost=.*%5C.example%5C.org;sslAutoReload=true"),
)  # fmt: skip
SHUT = (
    (
        Kind("a PKCS#11 device", f"{SECURE}keyStoreProvider=PKCS11"),
        "reads no keys from PKCS#11 devices",
    ),
    (
        Kind("a class", f"{SECURE}{KEY};trustManagerFactoryPlugin=a.B"),
        "it is a Java class; name the issuers with trustStorePath",
    ),
)

each_password = pytest.mark.parametrize("kind", PASSWORDS, ids=lambda kind: kind.name)
each_tls = pytest.mark.parametrize("kind", TLS, ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stores of a broker."""
    folder = tmp_path_factory.mktemp("stores")
    own = AUTHORITY.issue("broker")
    own.pkcs12(folder / "broker.p12", password=SECRET)
    own.pkcs12(folder / "masked.p12", password="guest")
    AUTHORITY.issue("clients").pkcs12(folder / "trust.p12", password=SECRET)
    own.pem(folder / "broker.pem")
    (folder / "broker.pemcfg").write_text("source.pem=broker.pem\n")
    return folder


class Checked(NamedTuple):
    """What ``artemis-py check`` says, and whether the port would be opened for STOMP."""

    code: int
    said: str
    is_opened: bool


def checked_by(folder: Path, kind: Kind, capsys: pytest.CaptureFixture[str]) -> Checked:
    """A file of this kind is checked."""
    file = folder / "broker.xml"
    file.write_text(
        '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">\n'
        f'<acceptors><acceptor name="theirs">{kind.uri}</acceptor></acceptors>{kind.core}\n'
        '<security-settings><security-setting match="#"><permission type="send" roles="shop"/></security-setting>'
        "</security-settings></core></configuration>"
    )
    code, said = main(["check", str(file)]), capsys.readouterr().out
    assert SECRET not in said
    opened = r"^(?:would listen|\S+Z \S+ .*listening) on \S+ for .*STOMP.* \(acceptor theirs\)$"
    return Checked(code, said, re.search(opened, said, re.MULTILINE) is not None)


def with_users(folder: Path) -> Path:
    """Users and roles as Artemis leaves them: one password hashed, one not."""
    (folder / "artemis-users.properties").write_text(f"anna = {hashed(SECRET, 1024)}\nbert = {SECRET}\n")
    (folder / "artemis-roles.properties").write_text("shop = anna,bert\n")
    return folder


@each_password
def test_it_opens_with_users_beside_it(kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = checked_by(with_users(tmp_path), kind, capsys)
    assert checked.code == 0, checked.said
    assert checked.is_opened, checked.said


@each_password
def test_it_stays_shut_without_users(kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = checked_by(tmp_path, kind, capsys)
    assert not checked.is_opened, checked.said
    assert "there are no users who could log in" in " ".join(checked.said.split())


@each_tls
def test_it_opens_with_stores_and_users_beside_it(
    kind: Kind, stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(stores, tmp_path, dirs_exist_ok=True)
    checked = checked_by(with_users(tmp_path), kind, capsys)
    assert checked.code == 0, checked.said
    assert checked.is_opened, checked.said
    assert "over TLS" in checked.said, checked.said


@each_tls
def test_it_stays_shut_without_stores(kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = checked_by(with_users(tmp_path), kind, capsys)
    assert checked.code == 2, checked.said
    assert "acceptor theirs cannot speak TLS" in checked.said


@pytest.mark.parametrize(("kind", "reason"), SHUT, ids=lambda each: getattr(each, "name", ""))
def test_what_stays_shut_says_why(
    kind: Kind, reason: str, stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(stores, tmp_path, dirs_exist_ok=True)
    checked = checked_by(with_users(tmp_path), kind, capsys)
    assert not checked.is_opened, checked.said
    assert reason in " ".join(checked.said.split())
