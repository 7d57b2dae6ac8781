"""The committed dashboards are what the code makes, and what Grafana's own models accept."""

from __future__ import annotations

import json

import pytest

from tests.monitoring.dashboard_files import DASHBOARDS, FOLDER

pytest.importorskip("grafana_foundation_sdk", reason="the package grafana-foundation-sdk (extra dev) is not installed")


def test_the_files_are_up_to_date() -> None:
    from monitoring.dashboards.__main__ import files

    committed = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")}
    made = dict(files())
    assert committed.keys() == made.keys(), "run `make dashboards`"
    for name, text in made.items():
        assert committed[name] == text, f"{name} is out of date: run `make dashboards`"


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_grafanas_models_read_each_file_and_write_the_same(uid: str) -> None:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    text = (FOLDER / f"{uid}.json").read_text("utf-8")
    read = Dashboard.from_json(json.loads(text))
    assert json.loads(JSONEncoder(sort_keys=True).encode(read)) == json.loads(text)
