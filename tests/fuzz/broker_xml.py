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
from tests.fuzz.fuzzing import Fuzzer, Input, Judge, judge_problems, outcome_of

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
INSIDES = ("", "x", "<a/>", "<a b='c'/>")


def _values(names: list[str], most: int, rng: random.Random, form: str) -> str:
    """So many settings at the most, each with any value."""
    return "".join(form.format(rng.choice(names), rng.choice(VALUES)) for _ in range(rng.randrange(most)))


def _queue(rng: random.Random) -> str:
    kind = rng.choice(("anycast", "multicast"))
    inside = rng.choice(("", "", '<filter string="a = 5"/>', "<durable>false</durable>", '<filter string="a ="/>'))
    attributes = "".join(f' {each}="{rng.choice(VALUES)}"' for each in rng.sample(QUEUE_NAMES, rng.randrange(3)))
    queue = f'<queue name="{rng.choice(("q", "r", "a"))}"{attributes}>{inside}</queue>'
    return f'<address name="{rng.choice(("a", "b", "a.b"))}"><{kind}>{queue}</{kind}></address>'


def _section(rng: random.Random) -> str:
    match rng.randrange(8):
        case 0:
            uri = f"tcp://127.0.0.1:{rng.randrange(3)}?protocols={rng.choice(PROTOCOLS)}"
            uri += _values(PARAMS, 3, rng, ";{}={}")
            acceptor = f'<acceptor name="{rng.choice(("stomp", "a", ""))}">{uri}</acceptor>'
            return f"<acceptors>{acceptor * rng.choice((1, 1, 2))}</acceptors>"
        case 1 | 2:
            return f"<addresses>{''.join(_queue(rng) for _ in range(rng.randrange(3)))}</addresses>"
        case 3 | 4:
            matches = rng.choices(("#", "a", "a.*", "b", "a.#.b", ""), k=rng.choice((1, 2)))
            rows = [(match, _values(SETTING_NAMES, 4, rng, "<{0}>{1}</{0}>")) for match in matches]
            inside = "".join(f'<address-setting match="{match}">{row}</address-setting>' for match, row in rows)
            return f"<address-settings>{inside}</address-settings>"
        case 5:
            kind = rng.choice(("send", "consume", "createAddress", "manage", "view", "edit", "browse", "fly"))
            permission = f'<permission type="{kind}" roles="{rng.choice(("a", "a,b", " a, b", ""))}"/>'
            setting = f'<security-setting match="{rng.choice(VALUES)}">{permission}</security-setting>'
            return f"<security-settings>{setting}</security-settings>"
        case 6:
            to = f"<forwarding-address>{rng.choice('abc')}</forwarding-address>"
            to += rng.choice(("", "<exclusive>true</exclusive>"))
            return f'<diverts><divert name="d"><address>{rng.choice("ab")}</address>{to}</divert></diverts>'
    name = rng.choice(SECTIONS)
    return f"<{name}>{rng.choice(INSIDES)}</{name}>"


def document(rng: random.Random) -> bytes:
    """A configuration with a few settings and sections, most of them valid."""
    parts = [_values(CORE_NAMES, 3, rng, "<{0}>{1}</{0}>\n")]
    parts += [_section(rng) for _ in range(rng.choice((0, 1, 1, 2)))]
    if rng.random() < 0.1:
        parts.append(rng.choice(FILES))
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
        assert any(problem.severity == "error" for problem in refusal.problems), "refused without an error"
        assert {problem.file for problem in refusal.problems} == {str(path)}, "a problem in another file"
        judge_problems(refusal.problems, one.data)
        return outcome_of(ValueError(refusal.problems[0].message.replace(str(path), "")))

    return judge


# libxml2 keeps each name that it has seen, for as long as a process lives.
BROKER_XML = Fuzzer("broker.xml", document, _open, TOKENS, growth_bytes_max=256 << 20)
