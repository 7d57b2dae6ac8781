"""broker.xml: any file is accepted or refused with places in it, and a broker opens on what is accepted."""

from __future__ import annotations

import random
from pathlib import Path

from artemis_py.config.reader import load
from artemis_py.config.tables.acceptor import PARAMS as ACCEPTOR_PARAMS
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import QueueConfig
from artemis_py.config.tables.fields import names_of
from artemis_py.core.broker import Broker
from artemis_py.errors import ConfigError
from artemis_py.record_log import MemoryLog
from tests.fuzz.fuzzing import Fuzzer, Input, Judge, outcome_of

NOW_MS = 1_700_000_000_000
VALUES = (
    "true", "false", "-1", "0", "1", "10", "100M", "1K", "9" * 30, "PAGE", "BLOCK", "DROP", "FAIL", "ANYCAST",
    "MULTICAST", "a", "#", "a.#", "*", "x y", "", "1.5", "a > 5", "a &gt;", "${no:5}", "${HOME}", "&lt;", "&amp;",
    "ENC(123)", "FORCE", "KILL", "tcp://localhost:1?a=b;c", "\u00e9", "./data", "HALT", "50%", "10 Minutes",
)  # fmt: skip
PROTOCOLS = ("STOMP", "CORE,STOMP", "AMQP", "HTTP", "MQTT,OPENWIRE", "")
FILES = (
    '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="broker.xml"/>',
    '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="none.xml" xpointer="x"/>',
    '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/dev/zero"/>',
    '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>',
    "<?xml version='1.0' encoding='utf-16'?>",
    "<?xml version='1.0' encoding='no'?>",
    "<!-- a -->",
    "<![CDATA[x]]>",
    "&b;",
    "&#0;",
    "&#x10FFFF;",
)
CORE_NAMES = sorted(names_of(CoreSettings))
SETTING_NAMES = sorted(names_of(AddressSettings))
QUEUE_NAMES = sorted(names_of(QueueConfig))
PARAMS = sorted({each.name for each in ACCEPTOR_PARAMS})
SECTIONS = (
    "acceptors", "addresses", "address-settings", "security-settings", "diverts", "queues", "wildcard-addresses",
    "cluster-connections", "resource-limit-settings", "connectors", "ha-policy", "metrics", "broker-plugins",
)  # fmt: skip


def _pick(names: list[str] | tuple[str, ...], rng: random.Random) -> str:
    return rng.choice(names)


def _element(name: str, rng: random.Random) -> str:
    return f"<{name}>{_pick(VALUES, rng)}</{name}>"


def _attributes(names: list[str], rng: random.Random) -> str:
    return "".join(f' {each}="{_pick(VALUES, rng)}"' for each in rng.sample(names, rng.randrange(3)))


def _acceptor(rng: random.Random) -> str:
    params = "".join(f";{_pick(PARAMS, rng)}={_pick(VALUES, rng)}" for _ in range(rng.randrange(3)))
    uri = f"tcp://127.0.0.1:{rng.randrange(3)}?protocols={_pick(PROTOCOLS, rng)}{params}"
    return f'<acceptor name="{_pick(("stomp", "a", ""), rng)}">{uri}</acceptor>'


def _address(rng: random.Random) -> str:
    kind = _pick(("anycast", "multicast"), rng)
    inside = _pick(("", "", '<filter string="a = 5"/>', "<durable>false</durable>", '<filter string="a ="/>'), rng)
    queue = f'<queue name="{_pick(("q", "r", "a"), rng)}"{_attributes(QUEUE_NAMES, rng)}>{inside}</queue>'
    return f'<address name="{_pick(("a", "b", "a.b"), rng)}"><{kind}>{queue}</{kind}></address>'


def _setting(rng: random.Random) -> str:
    inside = "".join(_element(_pick(SETTING_NAMES, rng), rng) for _ in range(rng.randrange(4)))
    return f'<address-setting match="{_pick(("#", "a", "a.*", "b", "a.#.b", ""), rng)}">{inside}</address-setting>'


def _security(rng: random.Random) -> str:
    kind = _pick(("send", "consume", "createAddress", "manage", "view", "edit", "browse", "fly"), rng)
    roles = _pick(("a", "a,b", " a, b", ""), rng)
    permission = f'<permission type="{kind}" roles="{roles}"/>'
    return f'<security-setting match="{_pick(VALUES, rng)}">{permission}</security-setting>'


def _divert(rng: random.Random) -> str:
    to = f"<forwarding-address>{_pick(('a', 'b', 'c'), rng)}</forwarding-address>"
    exclusive = _pick(("", "<exclusive>true</exclusive>"), rng)
    return f'<divert name="d"><address>{_pick(("a", "b"), rng)}</address>{to}{exclusive}</divert>'


def _section(rng: random.Random) -> str:
    match rng.randrange(8):
        case 0:
            return f"<acceptors>{_acceptor(rng)}{_acceptor(rng) if rng.random() < 0.3 else ''}</acceptors>"
        case 1 | 2:
            return f"<addresses>{''.join(_address(rng) for _ in range(rng.randrange(3)))}</addresses>"
        case 3 | 4:
            return f"<address-settings>{''.join(_setting(rng) for _ in range(rng.randrange(1, 3)))}</address-settings>"
        case 5:
            return f"<security-settings>{_security(rng)}</security-settings>"
        case 6:
            return f"<diverts>{_divert(rng)}</diverts>"
    name = _pick(SECTIONS, rng)
    inside = _pick(("", "x", "<a/>", "<a b='c'/>"), rng)
    return f"<{name}>{inside}</{name}>"


def document(rng: random.Random) -> bytes:
    """A configuration with a few settings and sections, most of them valid."""
    parts = [_element(_pick(CORE_NAMES, rng), rng) for _ in range(rng.choice((0, 0, 1, 2)))]
    parts += [_section(rng) for _ in range(rng.choice((0, 1, 1, 2)))]
    if rng.random() < 0.1:
        parts.append(_pick(FILES, rng))
    core = "\n".join(parts)
    head = '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">'
    return f"{head}\n{core}\n</core></configuration>".encode()


TOKENS = tuple(
    each.encode()
    for each in (
        *VALUES, *FILES, *CORE_NAMES, *SETTING_NAMES, *QUEUE_NAMES, *PARAMS, "<", ">", "/>", "</", '"', "=", "?", ";",
        "<core>", "</core>", "${", "}", "${a:${b:1}}", "\0", "\r", "\u2028", "\ufeff", "<a:b/>", 'xmlns="urn:x"',
    )
)  # fmt: skip


def _judge_refusal(refusal: ConfigError, path: Path, lines: int) -> None:
    assert any(problem.severity == "error" for problem in refusal.problems), "refused without an error"
    for problem in refusal.problems:
        assert problem.file == str(path), f"a problem in {problem.file}"
        assert 0 <= problem.line <= lines, f"line {problem.line} of {lines}"
        assert str(problem).isprintable(), f"no line of text: {problem!s}"


def _open(folder: Path) -> Judge:
    path = folder / "broker.xml"

    def judge(one: Input) -> str:
        path.write_bytes(one.data)
        try:
            config = load(path, environ={"HOME": "/a", "b": "<&"})
        except ConfigError as error:
            refusal = error
        else:
            assert all(str(notice).isprintable() for notice in config.notices)
            broker = Broker(config, MemoryLog(), NOW_MS)
            broker.tick(NOW_MS)
            return "accepted " + " ".join(sorted({notice.code for notice in config.notices}))
        _judge_refusal(refusal, path, one.data.count(b"\n") + one.data.count(b"\r") + 2)
        return outcome_of(ValueError(refusal.problems[0].message.replace(str(path), "")))

    return judge


# libxml2 keeps each name that it has seen, for as long as a process lives.
BROKER_XML = Fuzzer("broker.xml", document, _open, TOKENS, growth_bytes_max=256 << 20)
