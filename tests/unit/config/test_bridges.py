"""Bridges and connectors as they are declared, and what prevents them."""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.config.changes import NOTHING, NOW, plan_of
from artemis_py.config.reader import loads
from tests.kit.documents import document, errors_of, load_core, queue, warnings_of

CONNECTORS = """<connectors>
<connector name="berlin">tcp://berlin.example:61613?sslEnabled=true;trustStorePath=ca.pem</connector>
<connector name="paris">tcp://[::1]:61614</connector>
<connector name="artemis">vm://0?protocols=CORE</connector>
</connectors>"""


def bridged(inside: str = "", queue_name: str = "q", refs: str = "berlin", uri: str = "") -> str:
    """A broker with a queue and a bridge, to several brokers or to the one of an URI."""
    alone = f'<connectors><connector name="berlin">{uri}</connector></connectors>'
    names = "".join(f"<connector-ref>{ref}</connector-ref>" for ref in refs.split())
    return (
        f'{alone if uri else CONNECTORS}{queue()}<bridges><bridge name="b"><queue-name>{queue_name}</queue-name>'
        f"{inside}<static-connectors>{names}</static-connectors></bridge></bridges>"
    )


def test_a_bridge_with_everything() -> None:
    config = load_core(
        bridged(
            """<forwarding-address>/queue/orders</forwarding-address><filter string="colour = 'red'"/>
            <routing-type>ANYCAST</routing-type><user>u</user><password>ENC(abc)</password><client-id>c</client-id>
            <retry-interval>10</retry-interval><retry-interval-multiplier>1.5</retry-interval-multiplier>
            <max-retry-interval>90</max-retry-interval><initial-connect-attempts>3</initial-connect-attempts>
            <reconnect-attempts>4</reconnect-attempts><use-duplicate-detection>false</use-duplicate-detection>
            <confirmation-window-size>2K</confirmation-window-size><producer-window-size>-1</producer-window-size>
            <concurrency>2</concurrency>""",
            refs="berlin paris",
        )
    )
    (bridge,) = config.bridges
    assert (bridge.name, bridge.queue_name, bridge.forwarding_address) == ("b", "q", "/queue/orders")
    assert (bridge.filter, bridge.routing_type, bridge.concurrency) == ("colour = 'red'", "ANYCAST", 2)
    assert (bridge.user, bridge.password, bridge.client_id) == ("u", "ENC(abc)", "c")
    assert (bridge.retry_interval, bridge.retry_interval_multiplier, bridge.max_retry_interval) == (10, 1.5, 90)
    assert (bridge.initial_connect_attempts, bridge.reconnect_attempts) == (3, 4)
    assert not bridge.use_duplicate_detection
    assert bridge.window_bytes == 2048
    berlin, paris = bridge.connectors
    assert (berlin.place, berlin.is_tls, berlin.text("trustStorePath")) == ("berlin.example:61613", True, "ca.pem")
    assert (paris.place, paris.is_tls, paris.flag("verifyHost"), paris.connect_ms) == (
        "[::1]:61614",
        False,
        True,
        10_000,
    )
    assert bridge.places == "berlin.example:61613,[::1]:61614"
    assert [notice.code for notice in config.notices] == ["no-port"]
    assert "ENC" not in repr(bridge)
    assert "ENC" not in repr(config)


def test_a_bridge_with_little() -> None:
    (bridge,) = load_core(bridged()).bridges
    assert (bridge.forwarding_address, bridge.filter, bridge.user, bridge.routing_type) == (None, None, None, "PASS")
    assert (bridge.retry_interval, bridge.reconnect_attempts, bridge.window_bytes) == (2000, -1, 1_048_576)
    assert bridge.use_duplicate_detection


NO_CONNECTOR = bridged().replace("<static-connectors><connector-ref>berlin</connector-ref></static-connectors>", "")


@pytest.mark.parametrize(
    ("core", "line", "words"),
    [
        (bridged(refs="berlim"), 7, "there is no connector of this name"),
        (NO_CONNECTOR, 7, "bridge 'b' names no other broker"),
        (bridged("<filter string='a = = b'/>"), 7, "filter of bridge 'b' is not a valid selector"),
        (bridged("<password>secret</password>"), 7, "a password and no user"),
        (bridged("<concurrency>0</concurrency>"), 7, "concurrency has a wrong value"),
        (bridged("<discovery-group-ref discovery-group-name='g'/>"), 7, "name the other broker with static-connectors"),
        (bridged(uri="udp://x:1"), 3, "unknown scheme"),
        (bridged(uri="vm://0"), 3, "scheme vm"),
        (bridged(uri="tcp://x:0"), 3, "port is 0"),
        (
            bridged(uri="tcp://x:1?keyStorePath=k"),
            3,
            "keyStorePath needs sslEnabled=true",
        ),
        (bridged().replace('name="q" ', 'name="q" non-destructive="true" '), 7, "nothing leaves it"),
        (bridged().replace('name="q" ', 'name="q" delivery-semantics="at-most-once" '), 7, "what is sent is gone"),
        (bridged().replace("</bridges>", "") + bridged().partition("<bridges>")[2], 7, "two bridges are named 'b'"),
    ],
)
def test_what_prevents_a_bridge(core: str, line: int, words: str) -> None:
    errors = list(map(str, errors_of(core)))
    assert any(error.startswith(f"broker.xml:{line}: ") and words in error for error in errors), errors
    assert not any("secret" in error for error in errors)


@pytest.mark.parametrize(
    ("core", "words"),
    [
        (bridged(queue_name="other"), "queue 'other' is not declared"),
        (bridged().replace('name="q" ', 'name="q" purge-on-no-consumers="true" '), "it is emptied whenever"),
        (bridged("<transformer><class-name>x.Y</class-name></transformer>"), "transformer is ignored"),
        (bridged("<ha>true</ha>"), "ha is ignored: the connectors are tried in their order"),
        (bridged("<retry-interval>5000</retry-interval>"), "no pause is longer than max-retry-interval (2000 ms)"),
        (
            bridged(uri="tcp://x:1?verifyHots=a"),
            "unknown parameter verifyHots is ignored",
        ),
        (
            bridged(uri="tcp://x:1?sslEnabled=true;trustAll=true"),
            "with trustAll anybody between the brokers",
        ),
    ],
)
def test_what_may_not_be_meant(core: str, words: str) -> None:
    warnings = warnings_of(core)
    assert any(words in warning for warning in warnings), warnings


def test_connectors_that_no_bridge_names_are_not_looked_at() -> None:
    connectors = (
        '<connectors><connector name="in-vm">vm://0</connector><connector name="x">rubbish</connector></connectors>'
    )
    assert not warnings_of(connectors)


def test_properties_make_a_bridge_and_its_connector(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    path.write_text(
        "connectorConfigurations.far.params.host=far.example\n"
        "connectorConfigurations.far.params.port=61616\n"
        "connectorConfigurations.far.params.sslEnabled=true\n"
        "connectorConfigurations.far.params.trustStorePassword=a&b=c d%\n"
        "bridgeConfigurations.b.queueName=q\n"
        "bridgeConfigurations.b.forwardingAddress=there\n"
        "bridgeConfigurations.b.staticConnectors=far\n"
        "bridgeConfigurations.b.filterString=a > 1\n"
        "bridgeConfigurations.b.retryInterval=7\n"
    )
    (bridge,) = loads(document(queue()), properties=[path], environ={}).bridges
    assert (bridge.queue_name, bridge.forwarding_address, bridge.filter) == ("q", "there", "a > 1")
    assert bridge.retry_interval == 7
    (connector,) = bridge.connectors
    assert (connector.place, connector.is_tls) == ("far.example:61616", True)
    assert connector.text("trustStorePassword") == "a&b=c d%"


def test_a_reload_adds_changes_and_removes_bridges() -> None:
    none = load_core(CONNECTORS + queue())
    plain, changed = load_core(bridged()), load_core(bridged("<concurrency>3</concurrency><ha>true</ha>", refs="paris"))
    of_bridges = [("concurrency", NOW), ("ha", NOTHING), ("static-connectors", NOW)]
    for old, new, told in (
        (none, plain, [("bridge", "", "added", NOW)]),
        (plain, none, [("bridge", "", "removed", NOW)]),
        (plain, load_core(bridged()), []),
        (plain, changed, [("bridge", setting, "changed", effect) for setting, effect in of_bridges]),
    ):
        assert [(each.part, each.setting, each.action, each.effect) for each in plan_of(old, new).changes] == told


def test_a_plan_shows_no_password() -> None:
    old, new = (load_core(bridged(f"<user>u</user><password>{word}</password>")) for word in ("first", "second"))
    told = str([each.as_row() for each in plan_of(old, new).changes])
    assert "password" in told
    assert "first" not in told
    assert "second" not in told


def test_the_examples_of_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs" / "bridges.md").read_text("utf-8")
    examples = [block.partition("```")[0] for block in page.split("```xml\n")[1:]]
    assert len(examples) == 3
    for example in examples:
        config = load_core(example)
        assert [bridge.queue_name for bridge in config.bridges] == ["orders"]
        assert [notice.code for notice in config.notices] == ["no-port"]
    rabbit = load_core(examples[2]).bridges[0].connectors[0]
    assert rabbit.text("virtualHost") == "/"
