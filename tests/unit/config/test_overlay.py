"""Properties laid over the XML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artemis_py.config.problems import Problems
from artemis_py.config.properties_file import expand_paths, read_properties
from artemis_py.config.reader import load, loads
from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ConfigError
from tests.kit.documents import broker_xml, document

XML = """<name>xml</name>
<acceptors><acceptor name="stomp">tcp://localhost:61613?protocols=STOMP</acceptor></acceptors>
<security-settings><security-setting match="a"><permission type="send" roles="x,y"/></security-setting>
</security-settings>
<address-settings><address-setting match="a.b"><max-size-bytes>1M</max-size-bytes></address-setting></address-settings>
<addresses><address name="a"><anycast><queue name="q" ring-size="5"/></anycast></address></addresses>
<diverts><divert name="d"><address>a</address><forwarding-address>b</forwarding-address></divert></diverts>"""


def overlaid(tmp_path: Path, *lines: str, xml: str = XML, **environ: str) -> BrokerConfig:
    path = tmp_path / "over.properties"
    path.write_text("\n".join(lines), encoding="utf-8")
    return loads(document(xml), properties=[path], environ=environ)


def notices(config: BrokerConfig) -> list[str]:
    return [f"{Path(each.file).name}:{each.line}: {each.message}" for each in config.notices if "over" in each.file]


def test_plain_elements(tmp_path: Path) -> None:
    config = overlaid(
        tmp_path,
        "name=over",
        "globalMaxSize=10M",
        "messageExpiryScanPeriod = 5K",
        "max-disk-usage=50",
        "securityEnabled:false",
        "networkCheckURLList=x",
        "iDCacheSize=7",
    )
    assert (config.name, config.global_max_size, config.message_expiry_scan_period) == ("over", 10 * 1024**2, 5120)
    assert (config.max_disk_usage, config.security_enabled, config.network_check_url_list) == (50, False, "x")
    assert config.id_cache_size == 7
    assert (Path(config.origins["name"].file).name, config.origins["name"].line) == ("over.properties", 1)


def test_address_settings(tmp_path: Path) -> None:
    config = overlaid(
        tmp_path,
        'addressSettings."a.b".maxSizeBytes=1G',
        'addressSettings."a.b".redeliveryDelay=5K',
        "addressSettings.#.addressFullMessagePolicy=FAIL",
        "addressSettings.#.redeliveryMultiplier=2.5",
        "addressSettings.#.sendToDLAOnNoRoute=true",
        "addressSettings.#.defaultRingSize=9",
        "addressSettings.#.prefetchPageMessages=-1",
    )
    merged = config.settings_for("a.b")
    assert (merged.max_size_bytes, merged.redelivery_delay, merged.max_redelivery_delay) == (1024**3, 5120, 51200)
    assert (merged.address_full_policy, merged.redelivery_delay_multiplier) == ("FAIL", 2.5)
    assert (merged.send_to_dla_on_no_route, merged.default_ring_size) == (True, 9)
    traced = config.address_settings.trace("a.b")["max_size_bytes"]
    assert traced.match == "a.b"
    assert traced.origin is not None
    assert Path(traced.origin.file).name == "over.properties"


def test_addresses_and_queues(tmp_path: Path) -> None:
    config = overlaid(
        tmp_path,
        "addressConfigurations.a.queueConfigs.q.ringSize=7",
        "addressConfigurations.a.queueConfigs.q.filterString=x \\= 1",
        'addressConfigurations."n.m".routingTypes=ANYCAST,MULTICAST',
        'addressConfigurations."n.m".queueConfigs."n.q".routingType=ANYCAST',
        'addressConfigurations."n.m".queueConfigs."n.q".durable=false',
    )
    first, second = config.addresses
    assert (first.queues[0].ring_size, first.queues[0].filter) == (7, "x = 1")
    assert (second.name, second.routing_types) == ("n.m", ("ANYCAST", "MULTICAST"))
    assert [(each.name, each.routing_type, each.durable) for each in second.queues] == [("n.q", "ANYCAST", False)]


def test_acceptors(tmp_path: Path) -> None:
    config = overlaid(
        tmp_path,
        "acceptorConfigurations.stomp.params.port=61700",
        "acceptorConfigurations.stomp.extraParams.maxHeaders=5",
        "acceptorConfigurations.web.factoryClassName=netty",
        "acceptorConfigurations.web.params.host=127.0.0.1",
        "acceptorConfigurations.web.params.port=8161",
        "acceptorConfigurations.web.params.protocols=HTTP",
        "acceptorConfigurations.stomp.extraParams.maxHeadres=5",
    )
    stomp, web = config.acceptors
    assert (stomp.port, stomp.int_param("maxHeaders"), stomp.host) == (61700, 5, "localhost")
    assert (web.name, web.host, web.port, web.protocols) == ("web", "127.0.0.1", 8161, ("HTTP",))
    assert notices(config) == ["over.properties:7: acceptor 'stomp': unknown parameter maxHeadres is ignored"]


def test_properties_of_a_newer_artemis_are_said_to_be_so(tmp_path: Path) -> None:
    config = overlaid(tmp_path, "acceptorConfigurations.stomp.lockCoordinator=l", "quantumRouters.a.b=1")
    unknown, lock = sorted(notices(config), key=lambda text: "lock" in text)
    assert "'quantumRouters' has no meaning there; Artemis up to 2.57 does not know it either" in unknown
    assert lock.endswith(
        "lock-coordinator of an acceptor is ignored: this broker is a single node and opens the port at once"
    )


def test_diverts_permissions_and_wildcards(tmp_path: Path) -> None:
    config = overlaid(
        tmp_path,
        "divertConfigurations.d.forwardingAddress=c,e",
        "divertConfigurations.new.address=a",
        "divertConfigurations.new.forwardingAddress=z",
        "divertConfigurations.new.exclusive=true",
        "securityRoles.a.z.send=true",
        "securityRoles.a.x.send=false",
        "securityRoles.new.z.createTempQueue=true",
        "wildCardConfiguration.delimiter=/",
    )
    assert [(each.name, each.forwarding_addresses, each.exclusive) for each in config.diverts] == [
        ("d", ("c", "e"), False),
        ("new", ("z",), True),
    ]
    assert config.security.roles_for("a", "send") == ("y", "z")
    assert config.security.roles_for("new", "createNonDurableQueue") == ("z",)
    assert config.wildcards.delimiter == "/"


def test_a_dash_takes_away(tmp_path: Path) -> None:
    config = overlaid(
        tmp_path,
        "name=-",
        'addressSettings."a.b"=-',
        "divertConfigurations.d=-",
        "securityRoles.a.x=-",
        "acceptorConfigurations.stomp=-",
        "addressConfigurations.a.queueConfigs.q=-",
    )
    assert (config.name, config.settings_for("a.b").max_size_bytes) == ("localhost", -1)
    assert (config.diverts, config.acceptors, config.addresses[0].queues) == ((), (), ())
    assert config.security.roles_for("a", "send") == ("y",)
    whole = overlaid(tmp_path, "addressConfigurations.a=-", "securityRoles.a=-")
    assert (whole.addresses, whole.security.setting_for("a")) == ((), None)


def test_the_quotes_and_the_dash_can_be_changed(tmp_path: Path) -> None:
    config = overlaid(tmp_path, "name=-", "key.surround=$", "remove.value=!", "addressSettings.$a.b$.maxSizeBytes=!")
    assert (config.name, config.settings_for("a.b").max_size_bytes) == ("-", -1)


def test_placeholders(tmp_path: Path) -> None:
    assert overlaid(tmp_path, "name=${WHO:nobody} here", WHO="me").name == "me here"


@pytest.mark.parametrize(
    ("line", "words", "suggestion"),
    [
        ("nam=x", "'nam' has no meaning", "name"),
        ("globalMaxsize=1", "'globalMaxsize' has no meaning", "globalMaxSize"),
        ("addressSettings.a.maxSizeByte=1", "'maxSizeByte' has no meaning", "maxSizeBytes"),
        ("addressConfigurations.a.queueConfigs.q.ringsize=1", "'ringsize' has no meaning", "ringSize"),
        ("adressSettings.a.x=1", "'adressSettings' has no meaning", "addressSettings"),
        ("securityRoles.a.x.sent=true", "'sent' has no meaning", "send"),
        ("wildCardConfiguration.delimeter=/", "'delimeter' has no meaning", "delimiter"),
        ("addressSettings.a=1", "has no meaning", None),
        ("globalMaxSize=lots", "wrong value", None),
        ("addressSettings.a.addressFullMessagePolicy=page", "wrong value", None),
        ("addressConfigurations.a.routingTypes=BOTH", "wrong value", None),
        ("addressConfigurations.a.queueConfigs.q.routingType=x", "wrong value", None),
        ("acceptorConfigurations.stomp.params.port=x", "wrong value", None),
        ("wildCardConfiguration.delimiter=", "wrong value", None),
    ],
)
def test_bad_keys_and_values_are_warnings(tmp_path: Path, line: str, words: str, suggestion: str | None) -> None:
    config = overlaid(tmp_path, "# a comment", line)
    (problem,) = [each for each in config.notices if "over" in each.file]
    assert (problem.severity, problem.line, problem.suggestion) == ("warning", 2, suggestion)
    assert words in problem.message
    assert config.name == "xml"


def test_parts_without_effect_are_named(tmp_path: Path) -> None:
    config = overlaid(tmp_path, "clusterConfigurations.c.name=x", "connectorConfigurations.c.params.host=x")
    assert notices(config) == ["over.properties:1: cluster-connections is ignored: this broker is a single node"]


def test_a_port_is_not_opened_to_others_by_properties_either(tmp_path: Path) -> None:
    assert overlaid(tmp_path, "acceptorConfigurations.stomp.params.host=0.0.0.0").acceptors[0].refused is not None


def test_later_files_win(tmp_path: Path) -> None:
    (tmp_path / "b.properties").write_text("name=b")
    (tmp_path / "a.properties").write_text("name=a")
    both = [tmp_path / "b.properties", tmp_path / "a.properties"]
    assert loads(document(""), properties=both, environ={}).name == "a"


def test_folders_give_their_files_by_name_and_lists_give_each(tmp_path: Path) -> None:
    for name in ("2.properties", "1.json", "3.txt", "with,comma.properties"):
        (tmp_path / name).write_text("")
    problems = Problems()

    both = ["1.json", "2.properties", "with,comma.properties"]
    wrong = [f"{tmp_path}/?filter=(", f"{tmp_path}/nothing/", f"{tmp_path}/?sort=1"]
    for paths, found in (
        ([f"{tmp_path}/"], both),
        ([str(tmp_path)], both),
        ([f"{tmp_path}/3.txt, {tmp_path}/", f"{tmp_path}/1.json"], ["3.txt", *both, "1.json"]),
        ([f"{tmp_path}/?filter=.*txt"], ["3.txt"]),
        ([f"{tmp_path}/with,comma.properties"], ["with,comma.properties"]),
        (wrong, both),
    ):
        assert not problems.found
        assert [Path(each).name for each in expand_paths(paths, problems)] == found
    texts = [each.message for each in problems.found]
    assert len(texts) == 3
    assert texts[0].startswith("the filter is not a regular expression")
    assert texts[1].endswith("nothing/ cannot be read: No such file or directory")
    assert texts[2] == "?sort=1 has no meaning here"


PLACES = {
    "ConfigurationImpl": "{}",
    "AddressSettings": "addressSettings.a.{}",
    "QueueConfiguration": "addressConfigurations.a.queueConfigs.q.{}",
    "DivertConfiguration": "divertConfigurations.d.{}",
    "WildcardConfiguration": "wildcardConfiguration.{}",
}
STRUCTURES = {
    "acceptorConfigurations", "addressConfigurations", "addressSettings", "addressesSettings", "bridgeConfigurations",
    "connectorConfigurations", "divertConfigurations", "queueConfigs", "queueConfigurations", "resourceLimitSettings",
    "securityRoles", "wildCardConfiguration",
}  # fmt: skip
"""What has properties below it, which the other tests look at."""


def test_each_property_that_artemis_knows_means_something_here(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "beans.txt").read_text()
    beans = [line.split() for line in text.splitlines() if not line.startswith("#")]
    lines = [PLACES[kind].format(name) + "=1" for kind, name in beans if name not in STRUCTURES]
    assert len(lines) > 240
    try:
        problems = overlaid(tmp_path, *lines).notices
    except ConfigError as error:
        problems = tuple(error.problems)
    unknown = [each.message for each in problems if "has no meaning there" in each.message]
    assert unknown == []


@pytest.mark.parametrize(
    ("line", "attribute", "value"),
    [
        ("connectionTTLOverride=5000", "connection_ttl_override", 5000),
        ("IDCacheSize=7", "id_cache_size", 7),
        ("persistIDCache=false", "persist_id_cache", False),
        ("persistIDCache=off", "persist_id_cache", False),
        ("persistenceEnabled=yes", "persistence_enabled", True),
        ("persistenceEnabled=1", "persistence_enabled", True),
        ("securityEnabled=banana", "security_enabled", False),
        ("journalFileSize=20M", "journal_file_size", 20 * 1024**2),
    ],
)
def test_names_and_words_that_artemis_takes(tmp_path: Path, line: str, attribute: str, value: object) -> None:
    config = overlaid(tmp_path, line)
    assert getattr(config, attribute) == value
    assert not notices(config)


def test_retention_by_properties(tmp_path: Path) -> None:
    lines = ("journalRetentionDirectory=history", "journalRetentionPeriod=60000", "journalRetentionMaxBytes=1G")
    kept = overlaid(tmp_path, *lines).journal_retention
    assert kept is not None
    assert (kept.directory, kept.period_ms, kept.storage_limit, kept.cursor_ttl_s) == ("history", 60000, 1024**3, 86400)
    declared = XML + '<journal-retention-directory period="2">x</journal-retention-directory>'
    kept = overlaid(tmp_path, "journalRetentionPeriod=60000", xml=declared).journal_retention
    assert kept is not None
    assert (kept.directory, kept.period_ms) == ("x", 60000)
    assert overlaid(tmp_path, "journalRetentionDirectory=-", xml=declared).journal_retention is None
    with pytest.raises(ConfigError, match="needs journalRetentionPeriod"):
        overlaid(tmp_path, lines[0])
    config = overlaid(tmp_path, "journalRetentionPeriod=x", lines[1])
    assert config.journal_retention is None
    assert [text.partition(": ")[2] for text in notices(config)] == [
        "journalRetentionPeriod is ignored: wrong value",
        "nothing is retained: journalRetentionDirectory is not set or was removed",
    ]


def test_queues_without_an_address_around_them(tmp_path: Path) -> None:
    config = overlaid(
        tmp_path,
        "queueConfigurations.one.ringSize=4",
        "queueConfigurations.one.address=there",
        "queueConfigurations.two.routingType=ANYCAST",
    )
    found = {queue.name: (queue.address, queue.ring_size) for each in config.addresses for queue in each.queues}
    assert found == {"q": ("a", 5), "one": ("there", 4), "two": ("two", None)}


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "over.json"
    path.write_text(
        json.dumps(
            {
                "name": "json",
                "securityEnabled": False,
                "addressSettings": {"a.b": {"maxSizeBytes": 7}},
                "addressConfigurations": {"x": {"routingTypes": ["ANYCAST", "MULTICAST"]}},
            }
        )
    )
    config = loads(document(""), properties=[path], environ={})
    assert (config.name, config.security_enabled, config.settings_for("a.b").max_size_bytes) == ("json", False, 7)
    assert config.addresses[0].routing_types == ("ANYCAST", "MULTICAST")


@pytest.mark.parametrize(("name", "text"), [("x.json", "{"), ("x.json", "[1]"), ("missing.properties", None)])
def test_files_that_cannot_be_read_are_errors(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as refused:
        loads(document(""), properties=[tmp_path / name])
    assert Path(refused.value.problems[0].file).name == name


def test_two_escapes_are_one_character_and_one_alone_is_an_error(tmp_path: Path) -> None:
    assert overlaid(tmp_path, "name=\\ud83d\\ude00").name == "\U0001f600"
    with pytest.raises(ConfigError) as refused:
        overlaid(tmp_path, "", "name=\\ude00")
    assert "over.properties:2: property name has an escape for half of a surrogate pair" in str(refused.value)


def test_json_that_is_too_deep_is_refused_in_our_words(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"a":' * 100_000)
    with pytest.raises(ConfigError, match=r"deep.json: not valid JSON: values are nested too deeply"):
        loads(document(""), properties=[path])


def test_a_file_beside_the_configuration_is_used_when_none_is_named(tmp_path: Path) -> None:
    broker_xml(tmp_path, "<name>xml</name>")
    (tmp_path / "broker.properties").write_text("name=beside")
    (tmp_path / "other.properties").write_text("maxDiskUsage=7")
    assert load(tmp_path / "broker.xml", environ={}).name == "beside"
    named = load(tmp_path / "broker.xml", properties=[tmp_path / "other.properties"], environ={})
    assert (named.name, named.max_disk_usage) == ("xml", 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [("a", "b", 1)]),
        ("a = b ", [("a", "b ", 1)]),
        ("a:b", [("a", "b", 1)]),
        ("a b", [("a", "b", 1)]),
        ("a", [("a", "", 1)]),
        ("# x\n! y\n\n  a=b", [("a", "b", 4)]),
        ("a=b\\\n   c\nd=e", [("a", "bc", 1), ("d", "e", 3)]),
        ("a=b\\\\\nd=e", [("a", "b\\", 1), ("d", "e", 2)]),
        ("a\\=\\:\\ b=c", [("a=: b", "c", 1)]),
        ("a=\\u00fc\\t\\x", [("a", "ü\tx", 1)]),
        ("a=b\\\n# c", [("a", "b# c", 1)]),
        ("a=b=c:d", [("a", "b=c:d", 1)]),
        ("a=b\\", [("a", "b", 1)]),
    ],
)
def test_the_format_of_properties(tmp_path: Path, text: str, expected: list[tuple[str, str, int]]) -> None:
    path = tmp_path / "x.properties"
    path.write_text(text, encoding="utf-8")
    assert [(each.key, each.value, each.origin.line) for each in read_properties(str(path), Problems())] == expected
