"""The configuration, read again while the broker runs."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.management.scene import Scene, holds
from tests.e2e.management.told import ADDRESSES, Told
from tests.kit.process import configuration

_ONE_MORE: Final = ADDRESSES + '      <address name="new"><anycast><queue name="new"/></anycast></address>\n'


def _edit(told: Told) -> None:
    """The file gets another address. The broker sees that by itself, soon."""
    text = configuration(addresses=_ONE_MORE)
    (told.broker.log.parent / "broker.xml").write_text(text, "utf-8")


def _is_there(told: Told, answer: Any) -> None:
    assert answer["result"] in ("applied", "unchanged")
    assert answer["failures"] == []
    assert told.queue("new")["messageCount"] == 0


def _shown(told: Told, answer: Any) -> None:
    assert (answer["valid"], answer["problems"], answer["pendingRestart"]) == (True, [], [])
    assert answer["file"].endswith("broker.xml")


CONFIGURATION: Final = {
    "reloadConfigurationFile": Scene({}, _is_there, before=_edit, by_bean=lambda told, _: told.queue("new")),
    "getConfiguration": Scene({}, _shown),
    "getConfigurationChanges": Scene({}, holds(affected=[])),
}
