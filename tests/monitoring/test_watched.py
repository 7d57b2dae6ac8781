"""Real brokers in trouble, and a real Prometheus that watches them: alerts fire, and every panel shows something."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.kit.process import BrokerProcess, eventually, for_the_module
from tests.kit.sources import ROOT
from tests.monitoring.dashboard_files import expressions, variables
from tests.monitoring.shortened import WINDOW, alerts_in, shortened_rules
from tests.monitoring.troubles import troubles
from tests.monitoring.watching import Prometheus, prometheus_of

pytestmark = [pytest.mark.e2e]

RULES = (ROOT / "monitoring" / "alerts.yml").read_text("utf-8")
FIRED = 'last_over_time(ALERTS{alertstate="firing"}[10m])'
WAIT_S = 120.0


world = for_the_module(troubles)
World = dict[str, BrokerProcess]


@pytest.fixture(scope="module")
def watched(prometheus: str, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus") / "server"
    ports = {name: broker.ports["http"] for name, broker in world.items()}
    with prometheus_of(prometheus, folder, shortened_rules(RULES), ports, {"slow": "2s"}) as server:
        yield server


@pytest.mark.parametrize("alert", [name for name in alerts_in(RULES) if name != "ArtemisDown"])
def test_each_alert_fires_for_what_it_is_about(watched: Prometheus, alert: str) -> None:
    eventually(alert, lambda: {one["alertname"] for one in watched.query(FIRED)}, lambda fired: alert in fired, WAIT_S)


def _filled_in(expression: str) -> str:
    """The expression with what Grafana would fill in."""
    values = {"$broker": ".*", "$queue": "held", "$__rate_interval": WINDOW}
    for name, value in values.items():
        expression = expression.replace(name, value)
    return shortened_rules(expression)


@pytest.mark.parametrize(("uid", "panel", "expression"), expressions())
def test_each_query_of_each_panel_finds_something(watched: Prometheus, uid: str, panel: str, expression: str) -> None:
    query = _filled_in(expression)
    eventually(f"{uid}, {panel}: {query}", lambda: watched.query(query), lambda found: len(found) > 0, WAIT_S)


@pytest.mark.parametrize(("uid", "query"), variables())
def test_each_variable_has_values(watched: Prometheus, uid: str, query: str) -> None:
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
    assert found is not None, uid
    assert all(found[2] in one for one in watched.query(_filled_in(found[1])))


def test_points_of_the_latency_panel_are_messages(watched: Prometheus, world: World) -> None:
    def exemplars() -> list[str]:
        now_s = time.time()
        bounds = {"start": str(now_s - 60), "end": str(now_s)}
        data = watched.get("query_exemplars", query="artemis_delivery_delay_seconds_bucket", **bounds)
        return [one["labels"]["message_id"] for series in data for one in series["exemplars"]]

    ids = eventually("exemplars", exemplars, lambda found: len(found) > 0, WAIT_S)
    assert all(int(number) > 0 for number in ids)


def test_a_broker_that_dies_is_told(watched: Prometheus, world: World) -> None:
    wanted = {("ArtemisDown", watched.targets["full"])}
    assert not [one for one in watched.query('ALERTS{alertname="ArtemisDown"}') if one["alertstate"] == "firing"]
    world["full"].kill()
    eventually(
        "ArtemisDown",
        lambda: {(one["alertname"], one["instance"]) for one in watched.query('ALERTS{alertname="ArtemisDown"}')},
        lambda fired: fired == wanted,
        WAIT_S,
    )
