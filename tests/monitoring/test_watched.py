"""Real brokers in trouble, and a real Prometheus that watches them: alerts fire, and every panel shows something."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.kit.process import LOOPBACK, BrokerProcess, eventually, for_the_module
from tests.kit.prometheus_server import Server, prometheus_with
from tests.kit.sources import ROOT
from tests.monitoring.dashboard_files import EXPRESSIONS, VARIABLES
from tests.monitoring.shortened import ALERT, WINDOW, shortened_rules
from tests.monitoring.troubles import troubles

pytestmark = [pytest.mark.e2e]

RULES = (ROOT / "monitoring" / "alerts.yml").read_text("utf-8")
FIRED = 'last_over_time(ALERTS{alertstate="firing"}[10m])'
WAIT_S = 120.0
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


world = for_the_module(troubles)
World = dict[str, BrokerProcess]


@pytest.fixture(scope="module")
def watched(prometheus: str, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It scrapes the brokers twice a second, but the slow one: a scrape may take as long as its interval."""
    folder = tmp_path_factory.mktemp("prometheus")
    rules = folder / "rules.yml"
    rules.write_text(shortened_rules(RULES), "utf-8")
    jobs = [
        _JOB.format(
            name=name, target=f"{LOOPBACK}:{broker.ports['http']}", interval="2s" if name == "slow" else "500ms"
        )
        for name, broker in world.items()
    ]
    text = _CONFIGURATION.format(rules=rules) + "".join(jobs)
    with prometheus_with(prometheus, text, folder, "--enable-feature=exemplar-storage") as server:
        yield server


@pytest.mark.parametrize("alert", [name for name in ALERT.findall(RULES) if name != "ArtemisDown"])
def test_each_alert_fires_for_what_it_is_about(watched: Server, alert: str) -> None:
    eventually(
        alert,
        lambda: {one["metric"]["alertname"] for one in watched.query(FIRED)},
        lambda fired: alert in fired,
        WAIT_S,
    )


def _filled_in(expression: str) -> str:
    """The expression with what Grafana would fill in."""
    values = {"$broker": ".*", "$queue": "held", "$__rate_interval": WINDOW}
    for name, value in values.items():
        expression = expression.replace(name, value)
    return shortened_rules(expression)


@pytest.mark.parametrize(("uid", "panel", "expression"), EXPRESSIONS)
def test_each_query_of_each_panel_finds_something(watched: Server, uid: str, panel: str, expression: str) -> None:
    query = _filled_in(expression)
    eventually(f"{uid}, {panel}: {query}", lambda: watched.query(query), lambda found: len(found) > 0, WAIT_S)


@pytest.mark.parametrize(("uid", "query"), VARIABLES)
def test_each_variable_has_values(watched: Server, uid: str, query: str) -> None:
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
    assert found is not None, uid
    assert all(found[2] in one["metric"] for one in watched.query(_filled_in(found[1])))


def test_points_of_the_latency_panel_are_messages(watched: Server, world: World) -> None:
    def exemplars() -> list[str]:
        now_s = time.time()
        bounds = {"start": str(now_s - 60), "end": str(now_s)}
        data = watched.get("query_exemplars", query="artemis_delivery_delay_seconds_bucket", **bounds)
        return [one["labels"]["message_id"] for series in data for one in series["exemplars"]]

    ids = eventually("exemplars", exemplars, lambda found: len(found) > 0, WAIT_S)
    assert all(int(number) > 0 for number in ids)


def test_a_broker_that_dies_is_told(watched: Server, world: World) -> None:
    expression = 'ALERTS{alertname="ArtemisDown"}'
    wanted = {("ArtemisDown", f"{LOOPBACK}:{world['full'].ports['http']}")}
    eventually(
        "all are up",
        lambda: {one["metric"]["alertstate"] for one in watched.query(expression)},
        lambda states: "firing" not in states,
        WAIT_S,
    )
    world["full"].kill()
    eventually(
        "ArtemisDown",
        lambda: {(one["metric"]["alertname"], one["metric"]["instance"]) for one in watched.query(expression)},
        lambda fired: fired == wanted,
        WAIT_S,
    )
