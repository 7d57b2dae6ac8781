"""The configuration, read again while the broker runs."""

from __future__ import annotations

from typing import Final

from tests.e2e.management.scene import Scene, Shows
from tests.e2e.management.told import ADDRESSES
from tests.kit.process import anycast, configuration

_ONE_MORE: Final = configuration(addresses=ADDRESSES + anycast("new"))
"""The file with another address. The broker sees that by itself, soon."""


CONFIGURATION: Final = {
    "reloadConfigurationFile": Scene(
        {},
        [
            {"failures": []},
            lambda _, it: it["result"] in ("applied", "unchanged"),
            Shows("/api/queues/new", {"messageCount": 0}),
        ],
        before=lambda told: told.file.write_text(_ONE_MORE, "utf-8"),
        by_bean=Shows("/api/queues/new", {"messageCount": 0}),
    ),
    "getConfiguration": Scene(
        {},
        [{"valid": True, "problems": [], "pendingRestart": []}, lambda _, it: bool(it["file"].endswith("broker.xml"))],
    ),
    "getConfigurationChanges": Scene({}, {"affected": []}),
}
