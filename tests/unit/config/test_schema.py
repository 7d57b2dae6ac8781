"""What the XSD refuses and lets pass, and how well the refusals are worded."""

from __future__ import annotations

import time

import pytest

from artemis_py.config.xml.document import fast_schema
from tests.kit.documents import acceptor, divert, errors_of, load_core, problems_of, queue, setting

DIVERT = "<address>x</address><forwarding-address>y</forwarding-address>"
MAPPING = '<role-mapping from="a" to="b"/>'
PERMISSIONS = '<security-setting match="#"/>'
PLUGIN = '<security-setting-plugin class-name="x"/>'
PERCENT = "global-max-size-percent-of-jvm-max-memory"

REJECTED = {
    "an unknown element": "<naem>x</naem>",
    "an element twice": "<name>x</name><name>y</name>",
    "a setting twice": setting("<no-expiry>true</no-expiry><no-expiry>true</no-expiry>"),
    "text in core": "stray",
    "text in addresses": "<addresses>stray</addresses>",
    "no match": "<address-settings><address-setting/></address-settings>",
    "a setting in wrong case": setting("<Max-Size-Bytes>1</Max-Size-Bytes>"),
    "a lower-case word": setting("<address-full-policy>page</address-full-policy>"),
    "blanks around a word": setting("<address-full-policy> PAGE </address-full-policy>"),
    "TRUE": "<security-enabled>TRUE</security-enabled>",
    "yes": "<security-enabled>yes</security-enabled>",
    "an empty boolean without default": "<wildcard-addresses><routing-enabled/></wildcard-addresses>",
    "a unit on the reject threshold": setting("<max-size-bytes-reject-threshold>10M</max-size-bytes-reject-threshold>"),
    "a unit on max-size-messages": setting("<max-size-messages>10K</max-size-messages>"),
    "a unit on ring-size": queue('ring-size="10K"'),
    "durable as attribute": queue('durable="true"'),
    "a filter as text": queue(inside="<filter>a = 1</filter>"),
    "a queue among addresses": '<addresses><queue name="q"/></addresses>',
    "an address among addresses' addresses": '<addresses><address name="a"><address name="b"/></address></addresses>',
    "a divert without target": divert("<address>x</address>"),
    "a divert named like a number": divert(DIVERT, name="1d"),
    "two diverts of a name": f'<diverts><divert name="d">{DIVERT}</divert><divert name="d">{DIVERT}</divert></diverts>',
    "acceptors without acceptor": "<acceptors/>",
    "role-mapping first": f"<security-settings>{MAPPING}{PERMISSIONS}</security-settings>",
    "plug-in and settings": f"<security-settings>{PERMISSIONS}{PLUGIN}</security-settings>",
    "an unknown retention unit": '<journal-retention-directory unit="WEEKS" period="1">x</journal-retention-directory>',
    "journal-max-attic-files": "<journal-max-attic-files>1</journal-max-attic-files>",
    "file-deployment-enabled": "<file-deployment-enabled>true</file-deployment-enabled>",
    "backup-servers": "<backup-servers/>",
    "another namespace": '<name xmlns="">x</name>',
}

WRONG_LATER = {
    "a size in words": "<global-max-size>lots</global-max-size>",
    "an empty size": setting("<max-size-bytes/>"),
    "# in the middle of a match": setting("<no-expiry>true</no-expiry>", match="a.#.b"),
    "slow-consumer-threshold 0": setting("<slow-consumer-threshold>0</slow-consumer-threshold>"),
    "max-size-messages past 32 bits": setting("<max-size-messages>3000000000</max-size-messages>"),
    "empty literal-match-markers": "<literal-match-markers/>",
    "three literal-match-markers": "<literal-match-markers>(((</literal-match-markers>",
    "a percentage in words": f"<{PERCENT}>abc</{PERCENT}>",
    "an address without routing type": '<addresses><address name="a"/></addresses>',
    "retention without limits": "<journal-retention-directory>history</journal-retention-directory>",
    "retention without directory": '<journal-retention-directory period="1"/>',
    "retention of no time": '<journal-retention-directory period="0">x</journal-retention-directory>',
    "cursors of no time": '<journal-retention-directory period="1" cursor-ttl="0">x</journal-retention-directory>',
    "retention of no size": '<journal-retention-directory storage-limit="x">x</journal-retention-directory>',
}

ACCEPTED = {
    "an empty core": "",
    "any order": "<acceptors><acceptor>tcp://localhost:1</acceptor></acceptors><name>x</name>",
    "a boolean 1": "<security-enabled>1</security-enabled>",
    "an empty boolean": "<security-enabled/>",
    "an unknown permission": '<security-settings><security-setting match="#"><permission type="x" roles="y"/>'
    "</security-setting></security-settings>",
    "a delimiter of two characters": "<wildcard-addresses><delimiter>..</delimiter></wildcard-addresses>",
    "an acceptor without name": "<acceptors><acceptor>tcp://localhost:1</acceptor></acceptors>",
    "an address with blanks only": '<addresses><address name="a"> </address></addresses>',
    "metrics twice over": '<metrics><plugin class-name="x"/></metrics><metrics-plugin class-name="y"/>',
    "xml:base": '<addresses xml:base="x" xml:lang="en" xml:space="preserve" xml:id="i"/>',
    "both management matches": '<security-settings><security-setting match="activemq.management#"/>'
    '<security-setting match="activemq.management.#"/></security-settings>',
    "role mappings last": f"<security-settings>{PERMISSIONS}{MAPPING}</security-settings>",
    "retention": '<journal-retention-directory unit="HOURS" period="1" storage-limit="1G">x'
    "</journal-retention-directory>",
    "how long cursors hold": '<journal-retention-directory period="1" cursor-ttl="2">x</journal-retention-directory>',
    "a long ring": queue('ring-size="9223372036854775807"'),
}


def test_refused() -> None:
    assert [name for name, core in {**REJECTED, **WRONG_LATER}.items() if not errors_of(core)] == []


def test_accepted() -> None:
    assert {name: found for name, core in ACCEPTED.items() if (found := errors_of(core))} == {}


@pytest.mark.parametrize(
    ("core", "suggestion"),
    [
        ("<naem>x</naem>", "name"),
        ("<Persistence-Enabled>true</Persistence-Enabled>", "persistence-enabled"),
        ("<address-setings/>", "address-settings"),
        (setting("<ring-size>1</ring-size>"), "default-ring-size"),
        (setting("<max-size-byte>1</max-size-byte>"), "max-size-bytes"),
        (setting("<address-full-policy>page</address-full-policy>"), "PAGE"),
        (setting("<address-full-policy>BLOK</address-full-policy>"), "BLOCK"),
        (setting("<no-expiry>True</no-expiry>"), "true"),
        (setting("<no-expiry>yes</no-expiry>"), "true"),
        (setting("<no-expiry>off</no-expiry>"), "false"),
        (queue('ringsize="1"'), "ring-size"),
        (queue('MAX-CONSUMERS="1"'), "max-consumers"),
        ('<divert name="x"/>', "diverts"),
    ],
)
def test_the_nearest_right_name(core: str, suggestion: str) -> None:
    (problem,) = errors_of(core)
    assert problem.suggestion == suggestion


@pytest.mark.parametrize(
    ("core", "words"),
    [
        ("<name>x</name>\n<name>y</name>", "4: name appears more than once in core; the first is broker.xml:3"),
        (setting("<max-size-messages>10K</max-size-messages>"), "found '10K'; allowed: a whole number of 64 bits"),
        (setting("<address-full-policy>page</address-full-policy>"), "allowed: PAGE, BLOCK, FAIL, DROP"),
        (queue('durable="true"'), "<durable>false</durable> inside the queue"),
        ('<addresses><queue name="q"/></addresses>', "it belongs into anycast or"),
        ("<acceptors/>", "acceptors needs the element acceptor"),
        ("<address-settings><address-setting/></address-settings>", "needs the attribute match"),
        ('<name xmlns="">x</name>', "in no namespace; allowed: xmlns=\"urn:activemq:core\""),
        ("<addresses>stray</addresses>", "found 'stray'; allowed: elements only"),
        (divert(DIVERT, name="1d"), "a name that begins with a letter"),
        ("<name><b/></name>", "name takes a text, not the element b"),
        ('<ha-policy><replication/><shared-store/></ha-policy>', "shared-store is not allowed here in ha-policy"),
    ],
)  # fmt: skip
def test_the_message_says_what_is_wrong_and_what_is_allowed(core: str, words: str) -> None:
    assert any(words in str(problem) for problem in errors_of(core))


def test_every_problem_is_reported_at_once() -> None:
    core = "\n".join(
        [
            "<naem>x</naem>",
            "<security-enabled>TRUE</security-enabled>",
            "<max-disk-usage>101</max-disk-usage>",
            setting("<max-size-bytes>lots</max-size-bytes>"),
            queue('ring-size="-2"', '<filter string="a = "/>'),
            acceptor("nonsense"),
            divert("<address>x</address>"),
        ]
    )
    assert [problem.line for problem in errors_of(core)] == [3, 4, 5, 6, 7, 7, 8, 9]


def test_a_value_that_the_schema_refuses_is_reported_once() -> None:
    assert len(errors_of(setting("<max-size-messages>x</max-size-messages>"))) == 1
    assert len(errors_of(queue('ring-size="x"'))) == 1


def test_order_and_choice_are_checked_beside_other_problems() -> None:
    core = (
        '<security-settings>\n<role-mapping from="a" to="b"/>\n<security-setting match="#"/></security-settings>'
        "\n<naem/>"
    )
    assert [problem.line for problem in errors_of(core)] == [5, 6]


def test_long_values_are_cut_and_stay_on_a_line() -> None:
    (problem,) = errors_of(f"<global-max-size>{'x' * 1000}\ny</global-max-size>")
    assert len(str(problem)) < 300
    assert "\n" not in str(problem)


@pytest.mark.parametrize("text", ["1", ""])
def test_a_doubtful_boolean_counts_as_false_and_is_warned_of(text: str) -> None:
    core = f"<security-enabled>{text}</security-enabled>"
    assert load_core(core).security_enabled is False
    assert [each.severity for each in problems_of(core) if "read as false" in each.message] == ["warning"]


def test_errors_are_not_looked_up_in_a_tree() -> None:
    """With each one libxml2 would tell its path, for which it counts all siblings before."""
    addresses = "".join(f'<address name="a{one}" foo="1"/>' for one in range(300))
    assert len(errors_of(f"<addresses>{addresses}</addresses>")) > 100
    assert not fast_schema().error_log


def _cpu_s_of_attributes(count: int) -> float:
    unknown = " ".join(f"x{one}='1'" for one in range(count))
    began = time.thread_time()
    assert errors_of(f'<addresses><address name="a" {unknown}/></addresses>')
    return time.thread_time() - began


def test_very_many_unknown_attributes_cost_what_they_are() -> None:
    """A library in C does the work, so no lines can be counted: eight times as many may cost eight times as much, and
    where the cost of each grew with their number they cost fifty times as much.
    """
    _cpu_s_of_attributes(1)
    assert any(_cpu_s_of_attributes(40_000) < 25 * _cpu_s_of_attributes(5_000) for _ in range(5))


@pytest.mark.parametrize(
    ("core", "name", "nearest"),
    [
        ("<journal-lock-owner-timeout>1</journal-lock-owner-timeout>", "journal-lock-owner-timeout",
         "journal-lock-monitor-timeout"),
        ("<star-routing/>", "star-routing", None),
        ('<acceptors><acceptor name="a" zone="z">vm://0</acceptor></acceptors>', "zone", None),
        (setting("<max-replicas>1</max-replicas>"), "max-replicas", None),
    ],
)  # fmt: skip
def test_what_a_newer_artemis_may_have_is_said_to_be_so(core: str, name: str, nearest: str | None) -> None:
    (problem,) = (each for each in problems_of(core) if each.severity == "error")
    assert f" {name}; Artemis up to 2.57 does not know it either" in problem.message
    assert "may belong to a newer one: remove it to start without" in problem.message
    assert problem.suggestion == nearest


@pytest.mark.parametrize(
    ("core", "name"),
    [
        ("<naem>x</naem>", "name"),
        ("<journal-lock-acquisition-timeuot>1</journal-lock-acquisition-timeuot>", "journal-lock-acquisition-timeout"),
    ],
)
def test_a_slip_is_only_a_slip(core: str, name: str) -> None:
    (problem,) = (each for each in problems_of(core) if each.severity == "error")
    assert (problem.suggestion, "newer" in problem.message) == (name, False)
