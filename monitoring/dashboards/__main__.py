"""Writes the dashboards as JSON: ``python -m monitoring.dashboards``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from monitoring.dashboards import messages, server

FOLDER: Final = Path(__file__).resolve().parents[1] / "grafana" / "dashboards"


def files() -> Mapping[str, str]:
    """The text of each dashboard's file, by its name."""
    makers = (
        messages.overview, messages.queues, messages.one_queue, messages.losses, server.clients, server.storage,
        server.latency, server.internals, server.pipeline,
    )  # fmt: skip
    encoder = JSONEncoder(sort_keys=True, indent=2)
    made = [maker() for maker in makers]
    return {f"{dashboard.uid}.json": encoder.encode(dashboard) + "\n" for dashboard in made}


def main() -> None:
    """Write all of them, and remove files of dashboards that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = files()
    for path in FOLDER.glob("*.json"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
