"""Every kind of difference between two files has a row: what, from, to, where, and when it is in force."""

from __future__ import annotations

import pytest

from artemis_py.config.changes import NOTHING, NOW, RESTART, WHEN_IDLE, plan_of
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.fields import settings_of
from artemis_py.server.configuration.reading import in_force
from tests.kit.documents import load_core

_QUEUE = '<addresses><address name="a"><anycast><queue name="q" {}/></anycast></address>{}</addresses>'
_SETTING = '<address-settings><address-setting match="{}">{}</address-setting></address-settings>'
_ACCEPTOR = '<acceptors><acceptor name="s">tcp://127.0.0.1:{}?protocols=STOMP{}</acceptor></acceptors>'
_DIVERT = (
    '<diverts><divert name="d"><address>a</address><forwarding-address>{}</forwarding-address>{}</divert></diverts>'
)
_PERMISSION = (
    '<security-settings><security-setting match="{}"><permission type="send" roles="{}"/></security-setting>'
    "</security-settings>"
)
_PLAIN = _QUEUE.format("", "")
_RETAINED = '<journal-retention-directory unit="DAYS" period="7">kept</journal-retention-directory>'


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", []),
        ("<!-- one -->", "\n\n<!-- another -->", []),
        (_ACCEPTOR.format(1, ""), "\n" + _ACCEPTOR.format(1, ""), []),
        ("", "<name>n</name>", [("core: name", "localhost", "n", RESTART)]),
        (
            "",
            "<journal-buffer-size>1M</journal-buffer-size>",
            [("core: journal-buffer-size", "501760", "1048576", NOTHING)],
        ),
        (
            "",
            "<wildcard-addresses><delimiter>/</delimiter></wildcard-addresses>",
            [("wildcard-addresses", None, None, RESTART)],
        ),
        ("", _PLAIN, [("address a", None, None, NOW), ("queue q", None, None, NOW)]),
        (_PLAIN, "", [("address a", None, None, NOTHING), ("queue q", None, None, NOTHING)]),
        (
            _PLAIN,
            _SETTING.format("a", "<config-delete-addresses>FORCE</config-delete-addresses>"),
            [
                ("address-setting a: config-delete-addresses", None, "FORCE", NOW),
                ("address a", None, None, NOW),
                ("queue q", None, None, NOW),
            ],
        ),
        (
            _PLAIN,
            _SETTING.format("a", "<config-delete-queues>FORCE</config-delete-queues>")
            + '<addresses><address name="a"><anycast/></address></addresses>',
            [("address-setting a: config-delete-queues", None, "FORCE", NOW), ("queue q", None, None, NOW)],
        ),
        (_PLAIN, _QUEUE.format('ring-size="3"', ""), [("queue q: ring-size", "-1", "3", NOW)]),
        (_PLAIN, _QUEUE.format('group-buckets="3"', ""), [("queue q: group-buckets", "-1", "3", WHEN_IDLE)]),
        (_PLAIN, _QUEUE.format('sort-key="k"', ""), None),
        (  # not with the recovery-point that counts until then
            _RETAINED + _QUEUE.format('recovery-point="epoch"', ""),
            _RETAINED + _QUEUE.format('purge-on-no-consumers="true"', ""),
            [
                ("queue q: purge-on-no-consumers", "false", "true", RESTART),
                ("queue q: recovery-point", "epoch", None, RESTART),
            ],
        ),
        (  # what only switches groups off does not wait with what does so until then
            _QUEUE.format('non-destructive="true" exclusive="true"', ""),
            _QUEUE.format('max-backlog="5"', ""),
            [
                ("queue q: exclusive", "true", "false", NOW),
                ("queue q: non-destructive", "true", "false", RESTART),
                ("queue q: max-backlog", "-1", "5", RESTART),
            ],
        ),
        (
            _PLAIN,
            _QUEUE.format("", "").replace("anycast", "multicast"),
            [
                ("address a: routing types", "ANYCAST", "MULTICAST", NOW),
                ("queue q: routing type", "ANYCAST", "MULTICAST", NOW),
            ],
        ),
        (
            _SETTING.format("#", "<max-size-messages>9</max-size-messages>"),
            _SETTING.format("#", "<max-size-messages>8</max-size-messages>"),
            [("address-setting #: max-size-messages", "9", "8", NOW)],
        ),
        (
            _SETTING.format("#", "<max-size-messages>9</max-size-messages>"),
            "",
            [("address-setting #: max-size-messages", "9", None, NOW)],
        ),
        (
            "",
            _SETTING.format("#", "<default-sort-key>k</default-sort-key>"),
            [("address-setting #: default-sort-key", None, "k", RESTART)],
        ),
        (
            _PLAIN + _DIVERT.format("b", ""),
            _PLAIN + _DIVERT.format("c", ""),
            [("divert d: forwarding-address", "b", "c", NOW)],
        ),
        (_PLAIN, _PLAIN + _DIVERT.format("b", ""), [("divert d", None, None, NOW)]),
        (_PLAIN + _DIVERT.format("b", ""), _PLAIN, [("divert d", None, None, RESTART)]),
        (
            _PERMISSION.format("a", "x"),
            _PERMISSION.format("a", "x,y"),
            [("security-setting a: send", "x", "x, y", NOW)],
        ),
        ("", _PERMISSION.format("a", "x"), [("security-setting a", None, None, NOW)]),
        (_PERMISSION.format("a", "x"), "", [("security-setting a", None, None, NOW)]),
        ("", _ACCEPTOR.format(1, ""), [("acceptor s", None, None, NOW)]),
        (_ACCEPTOR.format(1, ""), "", [("acceptor s", None, None, NOW)]),
        (_ACCEPTOR.format(1, ""), _ACCEPTOR.format(2, ""), [("acceptor s: place", "127.0.0.1:1", "127.0.0.1:2", NOW)]),
        (
            _ACCEPTOR.format(1, ""),
            _ACCEPTOR.format(1, ";keyStorePassword=secret"),
            [("acceptor s: keyStorePassword", None, "****", NOW)],
        ),
    ],
)
def test_what_is_told(old: str, new: str, told: list[tuple[str, str | None, str | None, str]] | None) -> None:
    found = plan_of(load_core(old), load_core(new)).changes
    if told is None:
        assert {change.effect for change in found} == {RESTART}
        return
    assert [(one.what, one.old, one.new, one.effect) for one in found] == told


def test_each_row_has_its_place() -> None:
    new = "\n\n" + _QUEUE.format('ring-size="3"', "")
    (change,) = plan_of(load_core(_PLAIN), load_core(new)).changes
    assert (change.origin.file, change.origin.line) == ("broker.xml", 5)


def test_no_plain_element_of_core_changes_without_a_restart() -> None:
    """And none of them is in force in a running broker before."""
    old, new = (
        load_core(""),
        load_core("<name>n</name><max-disk-usage>50</max-disk-usage><id-cache-size>7</id-cache-size>"),
    )
    assert {change.effect for change in plan_of(old, new).changes} == {RESTART}
    reached = in_force(old, new)
    assert [
        row.name
        for row in settings_of(CoreSettings).values()
        if getattr(reached, row.attribute) != getattr(old, row.attribute)
    ] == []
