"""Who may do what: the same operations of the same users on both brokers, and the same answers in the same words.

Artemis hides the reason of most denials from a STOMP client, but its audit log has it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.kit.permitted import denied, setting
from tests.kit.ports import free_port
from tests.kit.process import eventually
from tests.oracle import xml_parts as xml
from tests.oracle.artemis_broker import artemis_command
from tests.oracle.brokers import listening
from tests.oracle.client import Client

pytestmark = pytest.mark.timeout(300)

OWN_NAME = "?"
"""Stands for the name of a queue that the broker chose."""
CARRIED_OUT = "RECEIPT"
OTHER = "ERROR"
"""A refusal that is not about permissions."""

_ADMIN = dict.fromkeys(
    ("send", "consume", "browse", "manage", "createAddress", "deleteAddress", "createDurableQueue",
     "deleteDurableQueue", "createNonDurableQueue", "deleteNonDurableQueue"), "admin",
)  # fmt: skip
SECURITY = (
    setting("#", **_ADMIN),
    setting("s.#", send="r"),
    setting("sa.#", send="r", createAddress="r"),
    setting("sq.#", send="r", createDurableQueue="r"),
    setting("aq.#", createAddress="r", createDurableQueue="r"),
    setting("saq.#", send="r", createAddress="r", createDurableQueue="r"),
    setting("caq.#", consume="r", createAddress="r", createDurableQueue="r"),
    setting("c.#", consume="r"),
    setting("n.#", createNonDurableQueue="r"),
    setting("cn.#", consume="r", createNonDurableQueue="r"),
    setting("cnx.#", consume="r", createNonDurableQueue="r", deleteNonDurableQueue="r"),
    setting("d.#", createDurableQueue="r"),
    setting("cd.#", consume="r", createDurableQueue="r"),
    setting("cdx.#", consume="r", createDurableQueue="r", deleteDurableQueue="r"),
    setting("f.x::x1", send="r", consume="r"),
    setting("f.y", send="r", consume="r"),
    setting("f.y::y1", send="admin", consume="admin"),
    setting("f.z::*", send="r", consume="r"),
    setting("old", send="admin", consume="admin"),
    setting("old.old", send="r", consume="r"),
    setting("older", send="admin", consume="admin"),
    setting("older.*", consume="r"),
    setting("w.*", send="admin", consume="admin"),
    setting("w.#", send="r", consume="r"),
    setting("m.#", send="mapped"),
    setting("activemq.management", manage="r", send="other", createAddress="r,other", createDurableQueue="r,other"),
    '<role-mapping from="outside" to="mapped"/>',
)


_TOPICS = ("s", "c", "n", "cn", "cnx", "d", "cd", "cdx")
_OWN_QUEUES = ("s.any", "s.div", "secret", "c.any", "old", "older", "w.any", "w.any.deep", "m.any")
_QUEUES = {"s.bare": (), "f.x": ("x1", "x2"), "f.y": ("y1", "y2"), "f.z": ("z1",), "c.other": ("c.inner",)}
_ADDRESSES = (
    *map(xml.anycast, _OWN_QUEUES),
    *(xml.address(name, anycast=tuple(map(xml.queue, queues))) for name, queues in _QUEUES.items()),
    *(f'<address name="{kind}.multi"><multicast/></address>' for kind in _TOPICS),
    '<address name="cnx.made"><multicast/></address>',
)  # fmt: skip
_BROKER = """<?xml version="1.0"?>
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<name>oracle</name><persistence-enabled>false</persistence-enabled><max-disk-usage>100</max-disk-usage>
<populate-validated-user>true</populate-validated-user>
<acceptors><acceptor name="stomp">tcp://127.0.0.1:{port}?protocols=STOMP</acceptor></acceptors>
<security-settings>{security}</security-settings>
<diverts><divert name="d"><address>s.div</address><forwarding-address>secret</forwarding-address></divert></diverts>
<addresses>{addresses}</addresses>
<address-settings>
<address-setting match="#"><auto-create-addresses>true</auto-create-addresses>
<auto-create-queues>true</auto-create-queues><default-address-routing-type>ANYCAST</default-address-routing-type>
<default-queue-routing-type>ANYCAST</default-queue-routing-type></address-setting>
<address-setting match="*.multi"><auto-create-addresses>false</auto-create-addresses>
<default-address-routing-type>MULTICAST</default-address-routing-type>
<default-queue-routing-type>MULTICAST</default-queue-routing-type></address-setting>
</address-settings></core></configuration>
"""
_BOOTSTRAP = """<broker xmlns="http://activemq.apache.org/schema"><jaas-security domain="activemq"/>
<server configuration="file:{folder}/broker.xml"/></broker>
"""
_LOGIN = """activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
      org.apache.activemq.jaas.properties.user="users.properties"
      org.apache.activemq.jaas.properties.role="roles.properties";
};
"""
_AUDIT = """rootLogger.level=ERROR
rootLogger.appenderRef.console.ref=console
logger.audit.name=org.apache.activemq.audit.base
logger.audit.level=INFO
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%m%n
"""

FrameSent = tuple[str, dict[str, str]]


def send(to: str, type: str = "ANYCAST", **more: str) -> FrameSent:
    return "SEND", {"destination": to, "destination-type": type, **more}


def subscribe(to: str, type: str = "ANYCAST", **more: str) -> FrameSent:
    return "SUBSCRIBE", {"destination": to, "subscription-type": type, "id": "1", **more}


topic = partial(subscribe, type="MULTICAST")


def durable(name: str) -> dict[str, str]:
    return {"durable-subscription-name": name}


UNSUBSCRIBE: FrameSent = ("UNSUBSCRIBE", {"id": "1"})


@dataclass(frozen=True)
class Row:
    """What one user does on a connection, and the answers: those of Artemis, and ours where they differ on purpose."""

    user: str
    frames: tuple[FrameSent, ...]
    answers: tuple[str, ...]
    ours: tuple[str, ...] | None = None


no = partial(denied, "bob")


def row(frame: FrameSent, answer: str = CARRIED_OUT, *, user: str = "bob", ours: str | None = None) -> Row:
    return Row(user, (frame,), (answer,), None if ours is None else (ours,))


MANAGED = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "version"}
TABLE = (
    row(send("s.any")),
    row(send("s.any", "MULTICAST")),
    row(send("s.new"), no("CREATE_ADDRESS", "s.new")),
    row(send("s.bare"), no("CREATE_DURABLE_QUEUE", "s.bare", "s.bare")),
    row(send("sa.new"), no("CREATE_DURABLE_QUEUE", "sa.new", "sa.new")),
    row(send("sa.topic", "MULTICAST")),
    row(send("sq.new"), no("CREATE_ADDRESS", "sq.new")),
    row(send("aq.new"), no("SEND", "aq.new")),
    row(send("saq.new")),
    row(send("secret"), no("SEND", "secret")),
    row(send("secret"), denied("eve", "SEND", "secret"), user="eve"),
    row(send("s.any"), denied("ann", "SEND", "s.any"), user="ann"),
    row(send("s.div")),
    row(send("m.any"), user="out"),
    row(send("m.any"), no("SEND", "m.any")),
    row(subscribe("c.any")),
    row(subscribe("c.any", browser="true"), ours=no("BROWSE", "c.any", "c.any")),
    row(subscribe("c.new"), no("CREATE_ADDRESS", "c.new")),
    row(subscribe("secret"), no("CONSUME", "secret", "secret")),
    row(subscribe("aq.sub"), no("CONSUME", "aq.sub", "aq.sub")),
    row(subscribe("caq.sub")),
    row(subscribe("c.other"), no("CREATE_DURABLE_QUEUE", "c.other", "c.other"), ours=CARRIED_OUT),
    row(send("f.x::x1")),
    row(send("f.x::x2"), no("SEND", "f.x", "x2")),
    row(subscribe("f.x::x1")),
    row(subscribe("f.x::x2"), no("CONSUME", "f.x", "x2")),
    row(send("f.y::y2")),
    row(send("f.y::y1"), no("SEND", "f.y", "y1")),
    row(subscribe("f.y::y1"), no("CONSUME", "f.y", "y1")),
    row(send("f.z::z1"), no("SEND", "f.z", "z1")),
    row(send("s.any::third"), no("CREATE_DURABLE_QUEUE", "s.any", "third")),
    row(subscribe("c.any::third"), no("CREATE_DURABLE_QUEUE", "c.any", "third")),
    row(send("saq.full::first")),
    row(subscribe("old")),
    row(subscribe("old::old"), no("CONSUME", "old", "old")),
    row(subscribe("older"), no("CONSUME", "older", "older")),
    row(send("old::old"), no("SEND", "old", "old")),
    row(send("w.any"), no("SEND", "w.any")),
    row(send("w.any.deep")),
    row(topic("s.multi"), no("CREATE_NON_DURABLE_QUEUE", "s.multi", OWN_NAME)),
    row(topic("c.multi"), no("CREATE_NON_DURABLE_QUEUE", "c.multi", OWN_NAME)),
    row(topic("n.multi"), no("CONSUME", "n.multi", OWN_NAME)),
    Row("bob", (topic("cn.multi"), UNSUBSCRIBE),
        (CARRIED_OUT, no("DELETE_NON_DURABLE_QUEUE", "cn.multi", OWN_NAME))),
    Row("bob", (topic("cnx.multi"), UNSUBSCRIBE), (CARRIED_OUT, CARRIED_OUT)),
    row(topic("cnx.made"), no("CREATE_ADDRESS", "cnx.made", OWN_NAME), ours=CARRIED_OUT),
    row(topic("c.multi", **durable("c")), no("CREATE_DURABLE_QUEUE", "c.multi", "bob-id.c")),
    row(topic("d.multi", **durable("d")), no("CONSUME", "d.multi", "bob-id.d")),
    Row("bob", (topic("cd.multi", **durable("cd")), ("UNSUBSCRIBE", {"id": "1", **durable("cd")})),
        (CARRIED_OUT, no("DELETE_DURABLE_QUEUE", "cd.multi", "bob-id.cd"))),
    Row("bob", (topic("cdx.multi", **durable("cdx")), ("UNSUBSCRIBE", {"id": "1", **durable("cdx")})),
        (CARRIED_OUT, CARRIED_OUT)),
    row(send("activemq.management", **MANAGED)),
    row(send("activemq.management", **MANAGED), denied("eve", "MANAGE", "activemq.management"), user="eve"),
    Row("bob", (("BEGIN", {"transaction": "t"}), send("s.any", transaction="t"), send("secret", transaction="t"),
                ("COMMIT", {"transaction": "t"})),
        (CARRIED_OUT, CARRIED_OUT, no("SEND", "secret"), OTHER),
        (CARRIED_OUT, CARRIED_OUT, no("SEND", "secret"), CARRIED_OUT)),
)  # fmt: skip
"""Where we differ: a browser needs ``browse`` (Artemis' STOMP knows none); the only queue of an address may be read
without its name; a topic that exists need not be created; the management address is not served; a denied SEND leaves
its transaction as it was.
"""
USERS = {"bob": "r", "eve": "other", "ann": "admin", "out": "outside"}


def _instance(folder: Path, port: int) -> str:
    """The files for both; returns the text of broker.xml."""
    etc = folder / "etc"
    etc.mkdir(parents=True)
    text = _BROKER.format(port=port, security="".join(SECURITY), addresses="".join(_ADDRESSES))
    (etc / "broker.xml").write_text(text)
    (etc / "bootstrap.xml").write_text(_BOOTSTRAP.format(folder=etc))
    (etc / "login.config").write_text(_LOGIN)
    (etc / "log4j2.properties").write_text(_AUDIT)
    (etc / "users.properties").write_text("".join(f"{user}={user}\n" for user in USERS))
    (etc / "roles.properties").write_text("".join(f"{role}={user}\n" for user, role in USERS.items()))
    return text


def _played(port: int, each: Row, audit: Path | None = None) -> list[str]:
    """What becomes of each frame; ``audit`` is the log that has the reasons of denials."""
    with Client(port) as client:
        client.connect("1.1", login=each.user, passcode=each.user, client_id=f"{each.user}-id")
        answers: list[str] = []
        for command, headers in each.frames:
            seen = 0 if audit is None else len(_audited(audit))
            answer = client.request(command, headers, b"x" if command == "SEND" else b"")
            told = answer.headers.get("message", "")
            if answer.command == "RECEIPT":
                answers.append(CARRIED_OUT)
            elif audit is None:
                reason = told if told.startswith("AMQ229") else OTHER
                answers.append(re.sub(r"queue temporary-\w+", f"queue {OWN_NAME}", reason))
            elif "Error committing" in told:
                answers.append(OTHER)
            else:
                read = partial(_audited, audit)
                reasons = eventually("the denial is in the audit log", read, lambda found: len(found) > seen, 10)  # noqa: B023
                answers.append(re.sub(r"queue [0-9a-f]{8}-[0-9a-f-]{27}", f"queue {OWN_NAME}", reasons[-1]))
        return answers


def _audited(log: Path) -> list[str]:
    """The reasons of denials so far, from the log of Artemis, which also has those that were taken back."""
    return re.findall(r"^AMQ601264: .* reason = (AMQ.*)$", log.read_text(errors="replace"), re.MULTILINE)


def test_our_answers(tmp_path: Path) -> None:
    port = free_port()
    _instance(tmp_path / "instance", port)
    command = [sys.executable, "-m", "artemis_py", "run", str(tmp_path / "instance")]
    with listening(command, [port], tmp_path / "ours.log"):
        for each in TABLE:
            assert _played(port, each) == list(each.ours or each.answers), each
    log = (tmp_path / "ours.log").read_text()
    assert log.count(no("CREATE_ADDRESS", "s.new")) == 1, "a denial is told"


@pytest.mark.oracle
def test_the_answers_of_artemis(home: Path, tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "instance"
    etc = folder / "etc"
    options = [f"-Djava.security.auth.login.config={etc}/login.config"]
    options += [f"-Dlog4j2.configurationFile={etc}/log4j2.properties"]
    command = artemis_command(_instance(folder, port), folder, home, _BOOTSTRAP, options)
    log = tmp_path / "artemis.log"
    with listening(command, [port], log):
        for each in TABLE:
            assert _played(port, each, log) == list(each.answers), each
