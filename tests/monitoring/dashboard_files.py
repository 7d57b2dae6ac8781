"""What the committed dashboards ask."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.kit.sources import ROOT

FOLDER = ROOT / "monitoring" / "grafana" / "dashboards"


def dashboards() -> dict[str, Any]:
    """Every dashboard by its uid."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def panels(dashboard: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All panels that are no rows, also those inside rows."""
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            yield panel
        yield from panel.get("panels") or ()


def expressions() -> list[tuple[str, str, str]]:
    """The dashboard, panel and expression of each query."""
    return [
        (uid, panel["title"], target["expr"])
        for uid, dashboard in dashboards().items()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def variables() -> list[tuple[str, str]]:
    """The dashboard and the query of each variable that asks for labels."""
    return [
        (uid, variable["query"])
        for uid, dashboard in dashboards().items()
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query"
    ]
