"""A real Prometheus that scrapes brokers several times a second."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.test_metrics_prometheus import Server, running
from tests.kit.ports import free_port
from tests.kit.process import LOOPBACK

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


class Prometheus:
    """Answers queries. ``targets`` are the instances that it scrapes, by name of the broker."""

    def __init__(self, server: Server, port: int, targets: Mapping[str, str]) -> None:
        self.server = server
        self.targets = targets
        self._url = f"http://{LOOPBACK}:{port}/api/v1/"

    def get(self, path: str, **parameters: str) -> Any:
        """What the API says under this path."""
        url = f"{self._url}{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=120) as answer:
            return json.load(answer)["data"]

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
    file = folder / "prometheus.yml"
    file.write_text(_CONFIGURATION.format(rules=folder / "rules.yml") + "".join(jobs), "utf-8")
    port = free_port()
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
    ]
    with running(command, folder / "prometheus.log", f"http://{LOOPBACK}:{port}/-/ready") as server:
        yield Prometheus(server, port, targets)
