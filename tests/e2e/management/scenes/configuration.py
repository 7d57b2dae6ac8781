"""The configuration, read again while the broker runs."""

from __future__ import annotations

from typing import Final

from tests.e2e.management.scene import Scene, both, holds, right, shows
from tests.e2e.management.told import ADDRESSES, Told
from tests.kit.process import configuration

_ONE_MORE: Final = ADDRESSES + '      <address name="new"><anycast><queue name="new"/></anycast></address>\n'


def _edit(told: Told) -> None:
    """The file gets another address. The broker sees that by itself, soon."""
    text = configuration(addresses=_ONE_MORE)
    (told.broker.log.parent / "broker.xml").write_text(text, "utf-8")


CONFIGURATION: Final = {
    "reloadConfigurationFile": Scene(
        {},
        both(
            holds(failures=[]),
            right(lambda it: it["result"] in ("applied", "unchanged")),
            shows("/api/queues/new", messageCount=0),
        ),
        before=_edit,
        by_bean=shows("/api/queues/new", messageCount=0),
    ),
    "getConfiguration": Scene(
        {},
        both(
            holds(valid=True, problems=[], pendingRestart=[]),
            right(lambda it: bool(it["file"].endswith("broker.xml"))),
        ),
    ),
    "getConfigurationChanges": Scene({}, holds(affected=[])),
}
