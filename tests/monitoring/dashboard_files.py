"""What the committed dashboards ask."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.kit.sources import ROOT

FOLDER = ROOT / "monitoring" / "grafana" / "dashboards"


DASHBOARDS: Final[dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))
}
"""By their uids."""


def panels(dashboard: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All panels that are no rows, also those inside rows."""
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            yield panel
        yield from panel.get("panels") or ()


EXPRESSIONS: Final[list[tuple[str, str, str]]] = [
    (uid, panel["title"], target["expr"])
    for uid, dashboard in DASHBOARDS.items()
    for panel in panels(dashboard)
    for target in panel["targets"]
]
"""The dashboard, panel and expression of each query."""
VARIABLES: Final[list[tuple[str, str]]] = [
    (uid, variable["query"])
    for uid, dashboard in DASHBOARDS.items()
    for variable in dashboard["templating"]["list"]
    if variable["type"] == "query"
]
"""The dashboard and the query of each variable that asks for labels."""
