"""What is ignored is said, once, with its reason, and only where it makes a difference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.cli import check
from artemis_py.config.problems import CODES
from tests.kit.documents import load_core, problems_of, queue, setting, settings, warnings_of

_RETENTION = '<journal-retention-directory period="7" unit="DAYS">kept</journal-retention-directory>'

LOCKS = """<lock-coordinators><lock-coordinator name="l" auto-start="false"><class-name>x</class-name>
<lock-id>i</lock-id><check-period>5</check-period><properties><property key="k" value="v"/></properties>
</lock-coordinator></lock-coordinators>"""
MIRROR = """<broker-connections><amqp-connection name="m" uri="tcp://h:1" lock-coordinator="l"><federation>
<local-address-policy name="p" allow-wildcard-groupings="true"/></federation></amqp-connection></broker-connections>"""


def ignored(core: str) -> list[str]:
    return [warning for warning in warnings_of(core) if " is ignored: " in warning]


def test_an_ignored_element_is_named_once_with_its_first_place() -> None:
    core = settings(
        ("a", "<redistribution-delay>0</redistribution-delay>"), ("b", "<redistribution-delay>5</redistribution-delay>")
    )
    assert ignored(core) == ["broker.xml:4: redistribution-delay is ignored: this broker is a single node"]


@pytest.mark.parametrize(
    "core",
    [
        "<journal-type>ASYNCIO</journal-type>",
        "<journal-file-size>10M</journal-file-size>",
        "<jmx-management-enabled>true</jmx-management-enabled>",
        setting("<redistribution-delay>-1</redistribution-delay>"),
        setting("<page-size-bytes>10485760</page-size-bytes>"),
        "<bridges/>",
        '<connectors><connector name="x">tcp://localhost:1</connector></connectors>',
        "<store><file-store/></store>",
        "<persistence-enabled>false</persistence-enabled>",
    ],
)
def test_what_makes_no_difference_is_not_named(core: str) -> None:
    assert ignored(core) == []


@pytest.mark.parametrize(
    ("core", "name"),
    [
        ("<broker-plugins><broker-plugin class-name='x'/></broker-plugins>", "broker-plugins"),
        ("<metrics><jvm-gc>true</jvm-gc></metrics>", "metrics"),
        (queue(inside="<user>u</user>"), "user"),
        ("<ha-policy><live-only><scale-down/></live-only></ha-policy>", "live-only"),
        (LOCKS, "lock-coordinators"),
        (
            '<acceptors><acceptor name="a" lock-coordinator="l">vm://0</acceptor></acceptors>',
            "lock-coordinator of an acceptor",
        ),
        ('<federations downstream-authorization="r"><federation name="f"/></federations>', "federations"),
        ("<journal-lock-monitor-max-retries>3</journal-lock-monitor-max-retries>", "journal-lock-monitor-max-retries"),
        (MIRROR, "broker-connections"),
    ],
)
def test_what_makes_a_difference_is_named(core: str, name: str) -> None:
    assert [warning.partition(" is ignored")[0] for warning in ignored(core)] == [f"broker.xml:3: {name}"]


def test_what_tunes_the_inside_of_artemis_is_one_note() -> None:
    core = """<journal-type>NIO</journal-type>
<journal-buffer-size>5</journal-buffer-size>
<journal-max-io>3</journal-max-io>"""
    (note,) = [problem for problem in problems_of(core) if problem.code == "tuning"]
    assert (note.severity, note.line) == ("note", 3)
    assert note.message.endswith(": journal-type (3), journal-buffer-size (4), journal-max-io (5)")


def test_a_file_that_opens_no_port_says_so_loudly() -> None:
    stomp = '<acceptor name="s">tcp://127.0.0.1:61613?protocols=STOMP{}</acceptor>'
    http = '<acceptor name="h">tcp://127.0.0.1:8161?protocols=HTTP</acceptor>'
    for inside in (http, stomp.format(";autoStart=false") + http, stomp.replace("127.0.0.1", "0.0.0.0").format("")):
        notices = load_core(f"<acceptors>{inside}</acceptors>").notices
        assert [problem.severity for problem in notices if problem.code == "no-port"] == ["warning"]
    assert not [
        each for each in load_core(f"<acceptors>{stomp.format('')}</acceptors>").notices if "PORT" in each.message
    ]


def test_a_database_is_named() -> None:
    tables = ["message-table-name", "bindings-table-name", "large-message-table-name", "page-store-table-name"]
    inside = "".join(f"<{table}>t</{table}>" for table in tables)
    assert ignored(f"<store><database-store>{inside}</database-store></store>") == [
        "broker.xml:3: store is ignored: the journal is stored in files"
    ]


@pytest.mark.parametrize("core", ["", "<persistence-enabled>true</persistence-enabled>"])
def test_persistence_is_nothing_to_speak_of(core: str) -> None:
    assert [each.message for each in load_core(core).notices if "persistence" in each.message] == []


@pytest.mark.parametrize(
    ("core", "said"),
    [
        (_RETENTION, []),
        ("<persistence-enabled>false</persistence-enabled>", []),
        (
            "<persistence-enabled>false</persistence-enabled>\n" + _RETENTION,
            [
                (
                    "broker.xml:4: journal-retention-directory without persistence-enabled: there is no journal, so "
                    "nothing is retained"
                )
            ],
        ),
    ],
)
def test_retention_needs_persistence(core: str, said: list[str]) -> None:
    assert warnings_of(core) == said


@pytest.mark.parametrize(
    "core",
    [
        "<journal-directory>elsewhere</journal-directory>",
        "<journal-file-size>1M</journal-file-size>",
        "<journal-sync-transactional>false</journal-sync-transactional>",
        "<journal-sync-non-transactional>false</journal-sync-non-transactional>",
        "<journal-datasync>false</journal-datasync>",
        "<journal-compact-min-files>3</journal-compact-min-files>",
        "<journal-compact-percentage>50</journal-compact-percentage>",
        "<create-journal-dir>false</create-journal-dir>",
        "<persist-id-cache>false</persist-id-cache>",
        "<max-disk-usage>50</max-disk-usage>",
        "<min-disk-free>1G</min-disk-free>",
        "<disk-scan-period>100</disk-scan-period>",
        setting("<disk-full-policy>FAIL</disk-full-policy>"),
    ],
)
def test_what_concerns_the_journal_and_its_disk_is_honoured(core: str) -> None:
    assert warnings_of(core) == []


@pytest.mark.parametrize(
    ("settings_text", "said"),
    [
        ("<page-limit-messages>5</page-limit-messages>", "page-limit-messages without page-full-policy"),
        ("<page-limit-bytes>5M</page-limit-bytes>", "page-limit-bytes without page-full-policy"),
        ("<page-full-policy>DROP</page-full-policy>", "page-full-policy without page-limit-bytes"),
        ("<page-limit-messages>5</page-limit-messages><page-full-policy>FAIL</page-full-policy>", None),
        ("<page-limit-messages>-1</page-limit-messages>", None),
        ("<max-size-bytes>1M</max-size-bytes><page-size-bytes>1K</page-size-bytes>", None),
        ("<max-read-page-messages>5</max-read-page-messages><prefetch-page-bytes>5</prefetch-page-bytes>", None),
    ],
)
def test_a_page_limit_needs_its_policy(settings_text: str, said: str | None) -> None:
    """Artemis ignores one without the other, too."""
    warnings = [each for each in warnings_of(setting(settings_text)) if "page-" in each]
    assert len(warnings) == (0 if said is None else 1)
    assert said is None or said in warnings[0]


def test_notices_come_in_the_order_of_lines() -> None:
    lines = [
        each.line
        for each in load_core(
            "<journal-type>NIO</journal-type>\n<bridges>\n</bridges>\n<journal-max-io>3</journal-max-io>"
        ).notices
    ]
    assert lines == sorted(lines)


def test_each_code_is_used_and_each_use_is_listed() -> None:
    package = Path(check.__file__).parents[1]
    files = [*(package / "config").rglob("*.py"), *(package / "security").rglob("*.py")]
    text = "\n".join(path.read_text() for path in sorted(files))
    used = set(re.findall(r'problems\.(?:warning|note)\(\s*"([a-z-]+)"', text))
    used |= {"bridge", "certificate", "doubtful-value", check.KEPT}  # of other files: stores, the journal
    assert used == set(CODES)
