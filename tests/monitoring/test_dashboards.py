"""The committed dashboards, as Grafana needs them, and the files that start everything together."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kit.core import broker_of, queue_config
from tests.kit.metrics import exporter_of
from tests.kit.sources import ROOT
from tests.monitoring.dashboard_files import DASHBOARDS, EXPRESSIONS, FOLDER, panels

FOR_QUEUES = re.compile(r"\bartemis_(message|consumer|messages|delivering|oldest|slow|paged|persistent)_\w+\{")


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_panels_have_what_grafana_needs(uid: str) -> None:
    found = DASHBOARDS[uid]
    assert found["uid"] == uid
    ids = [panel["id"] for panel in found["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in panels(found):
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters), panel["title"]


def test_lines_have_a_legend_and_columns_a_header() -> None:
    for dashboard in DASHBOARDS.values():
        for panel in panels(dashboard):
            if panel["type"] == "timeseries":
                assert panel["options"]["legend"]["showLegend"], panel["title"]
            elif panel["type"] == "table":
                # Grafana calls the column of a query that is alone "Value", and "Value #A" if there are others.
                letters = [f"Value #{target['refId']}" for target in panel["targets"]]
                (options,) = (step["options"] for step in panel["transformations"] if step["id"] == "organize")
                headers = options["renameByName"]
                assert set(letters if len(letters) > 1 else ["Value"]) <= set(headers), panel["title"]
                named = {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]}
                assert named <= set(headers.values()), panel["title"]


def test_the_worst_alerts_come_first() -> None:
    """By a rank that each severity has, not by their names."""
    (panel,) = (one for one in panels(DASHBOARDS["artemis-overview"]) if one["title"] == "Alerts")
    _, order, columns = panel["transformations"]
    assert (order["id"], order["options"]["sort"]) == ("sortBy", [{"field": "rank"}])
    assert columns["options"]["excludeByName"]["rank"]
    (query,) = (target["expr"] for target in panel["targets"])
    ranked = re.findall(r'"rank", "(\d)", "severity", "(\w+)"', query)
    assert ranked == [("1", "critical"), ("2", "warning"), ("3", "info")]
    used = re.findall(r"severity: (\w+)", (ROOT / "monitoring" / "alerts.yml").read_text("utf-8"))
    assert {*used} <= {severity for _, severity in ranked}


def test_names_lead_to_the_console() -> None:
    for uid, dashboard in DASHBOARDS.items():
        assert "console" in {variable["name"] for variable in dashboard["templating"]["list"]}
        (url,) = (link["url"] for link in dashboard["links"] if link["title"] == "Console")
        page = "queues/${queue:percentencode}" if uid == "artemis-queue" else ""
        assert url == f"http://${{console}}/ui/#/{page}"
        for panel in panels(dashboard):
            if panel["type"] == "table":
                links = {
                    override["matcher"]["options"]: value["value"][0]["url"]
                    for override in panel["fieldConfig"]["overrides"]
                    for value in override["properties"]
                    if value["id"] == "links"
                }
                assert links["Queue"] == "http://${console}/ui/#/queues/${__data.fields.queue:percentencode}"
                assert links["Address"] == "http://${console}/ui/#/addresses/${__data.fields.address:percentencode}"


def test_no_panel_shows_all_queues_of_a_large_broker() -> None:
    for uid, title, expression in EXPRESSIONS:
        if FOR_QUEUES.search(expression) and uid != "artemis-queue":
            assert re.search(r"topk\(20|sum\(rate|count\(|sum by \((event|result)\)", expression), (uid, title)


def test_every_name_is_exported_or_prometheus_own() -> None:
    text = b"".join(exporter_of(broker_of(queue_config())).scrape("")[1]).decode()
    exported = {family.name for family in text_string_to_metric_families(text)}
    own = re.compile(r"\b((?:artemis|process|broker_queue)_\w+)")
    asked = {name for _, _, expression in EXPRESSIONS for name in own.findall(expression)}
    asked |= set(own.findall((ROOT / "monitoring" / "alerts.yml").read_text("utf-8").split("look:")[0]))
    unknown = {name for name in asked if re.sub(r"_(total|bucket|sum|count)$", "", name) not in exported}
    unknown -= exported
    # What a broker without a journal, limits or TLS does not have; the queries are tried on brokers that do.
    assert all(re.match(r"artemis_(journal|tls|disk_headroom|memory_headroom)", name) for name in unknown), unknown


def test_what_compose_mounts_and_builds_is_there() -> None:
    folder = ROOT / "monitoring"
    text = (folder / "compose.yml").read_text("utf-8")
    mounted = re.findall(r"- (\./[\w./-]+):(/[\w./-]+):ro", text)
    assert len(mounted) == 4
    for own, _ in mounted:
        assert (folder / own).exists(), own
    containerfile = re.search(r"dockerfile: (\S+) }", text)
    assert containerfile is not None
    assert (ROOT / containerfile[1]).is_file()
    where = dict(mounted)
    assert f"ARTEMIS_DASHBOARDS: {where['./grafana/dashboards']}\n" in text
    home = re.search(r"HOME_DASHBOARD_PATH: (\S+)/(\S+)", text)
    assert home is not None
    assert home[1] == where["./grafana/dashboards"]
    assert (FOLDER / home[2]).is_file()
    provider = (folder / "grafana" / "provisioning" / "dashboards" / "artemis.yml").read_text("utf-8")
    assert 'path: "$ARTEMIS_DASHBOARDS"' in provider
