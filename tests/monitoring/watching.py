"""A real Prometheus that scrapes brokers several times a second."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.process import LOOPBACK
from tests.kit.prometheus_server import Server, prometheus_with

_CONFIGURATION = """\
global:
  evaluation_interval: 250ms
rule_files: ["{rules}"]
scrape_configs:
"""
_JOB = """\
  - job_name: {name}
    scrape_interval: {interval}
    static_configs:
      - targets: ["{target}"]
        labels: {{ job: artemis }}
"""


@dataclass(frozen=True)
class Prometheus:
    """Answers queries. ``targets`` are the instances that it scrapes, by name of the broker."""

    server: Server
    targets: Mapping[str, str]

    def get(self, path: str, **parameters: str) -> Any:
        """What the API says under this path."""
        return json.loads(self.server.get(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))["data"]

    def query(self, expression: str) -> list[dict[str, str]]:
        """The labels of what an expression finds now."""
        return [sample["metric"] for sample in self.get("query", query=expression)["result"]]


@contextmanager
def prometheus_of(
    program: str, folder: Path, rules: str, ports: Mapping[str, int], intervals: Mapping[str, str]
) -> Iterator[Prometheus]:
    """One that evaluates these rules and scrapes the HTTP ports of these brokers, some of them at other intervals than
    twice a second. A scrape may take as long as its interval.
    """
    folder.mkdir()
    (folder / "rules.yml").write_text(rules, "utf-8")
    targets = {name: f"{LOOPBACK}:{port}" for name, port in ports.items()}
    jobs = [
        _JOB.format(name=name, target=target, interval=intervals.get(name, "500ms")) for name, target in targets.items()
    ]
    text = _CONFIGURATION.format(rules=folder / "rules.yml") + "".join(jobs)
    with prometheus_with(program, text, folder, "--enable-feature=exemplar-storage") as server:
        yield Prometheus(server, targets)
