"""The rules of the shipped alerts: promtool's tests, and what people need with each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from artemis_py.management.table import OPERATIONS
from tests.kit.sources import ROOT
from tests.monitoring.shortened import ALERT, WINDOW, shortened_rules
from tests.tidy.documents import anchors

RULES = ROOT / "monitoring" / "alerts.yml"
TEXT = RULES.read_text("utf-8")
CASES = Path(__file__).parent / "alerts_test.yml"
RUNBOOK = ROOT / "docs" / "monitoring.md"
ROUTES = ROOT / "artemis_py" / "console" / "js" / "routes.js"
ALERTS = ALERT.findall(TEXT)


def test_promtool_accepts_the_rules(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def test_the_rules_fire_and_stay_silent_as_their_cases_say(promtool: str) -> None:
    done = subprocess.run([promtool, "test", "rules", str(CASES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_case_and_a_page(alert: str) -> None:
    assert f'alertname="{alert}"' in CASES.read_text("utf-8")
    assert alert.lower() in anchors(RUNBOOK.read_text("utf-8"))
    (rule,) = re.findall(rf"- alert: {alert}\n(.*?)(?=\n +- alert:|\n\n|\Z)", TEXT, re.DOTALL)
    assert f"runbook: docs/monitoring.md#{alert.lower()}" in rule
    assert re.search(r"severity: (critical|warning|info)", rule)
    assert 'look: "' in rule
    section = RUNBOOK.read_text("utf-8").split(f"### {alert}\n")[1].split("\n### ")[0]
    assert "- Look: " in section
    assert "- Do: " in section


@pytest.mark.parametrize("alert", [name for name in ALERTS if name != "ArtemisDown"])
def test_every_alert_leads_to_a_page_of_the_console(alert: str) -> None:
    """But for a broker that cannot be reached."""
    (rule,) = re.findall(rf"- alert: {alert}\n(.*?)(?=\n +- alert:|\n\n|\Z)", TEXT, re.DOTALL)
    found = re.search(r'console: "http://{{ \$labels.instance }}/ui/#/(.*)"\n', rule)
    assert found is not None
    routes = re.search(r"const PAGES = {(.*?)\n};", ROUTES.read_text("utf-8"), re.DOTALL)
    assert routes is not None
    known = {one or two for one, two in re.findall(r'^ +(?:"(.*?)"|(\w+)): \w+,$', routes[1], re.MULTILINE)}
    path = re.sub(r"{{.*?}}", "*", found[1])
    if path.startswith("list/"):
        assert f"/api/{path.removeprefix('list/')}" in {row.path for row in OPERATIONS if row.method == "GET"}
        path = "list/*"
    assert path in known


def test_no_page_is_about_an_alert_that_is_gone() -> None:
    assert re.findall(r"^### (Artemis\w+)$", RUNBOOK.read_text("utf-8"), re.MULTILINE) == ALERTS


def test_shortened_rules_are_the_same_rules() -> None:
    short = shortened_rules(TEXT)
    assert ALERT.findall(short) == ALERTS
    assert set(re.findall(r"\[\w+\]", short)) == {f"[{WINDOW}]"}
    assert set(re.findall(r" for: (\w+)", short)) == {"0s"}
    assert re.sub(r"\[\w+\]| for: \w+", "", short) == re.sub(r"\[\w+\]| for: \w+", "", TEXT)
