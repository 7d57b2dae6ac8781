"""Scenes of the operations on acceptors, diverts, bridges, disks, the journal, and settings."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.e2e.management.scene import Scene, holds, rows
from tests.e2e.management.told import Told


def _settings(told: Told, answer: Any) -> None:
    found = {row["name"]: row for row in answer["data"]}
    assert found["max-delivery-attempts"]["value"] == "10"
    assert found["max-delivery-attempts"]["isDefault"] is True
    assert answer["count"] > len(found) == 100


def _roles(told: Told, answer: Any) -> None:
    found = {row["permission"]: row for row in answer["data"]}
    assert (found["send"]["roles"], found["send"]["match"]) == ("", None)


def _disks(told: Told, answer: Any) -> None:
    assert {row["directory"].rpartition("/")[2] for row in answer["data"]} == {"journal", "paging", "large"}
    for row in answer["data"]:
        assert 0 < int(row["free"]) <= int(row["total"])
        assert 0 <= int(row["usedPercent"]) <= 100


def _disks_in_texts(told: Told, answer: str) -> None:
    assert all(int(row["free"]) > 0 for row in json.loads(answer)["data"])


def _journal(told: Told, answer: Any) -> None:
    assert len(answer["id"]) == 32
    assert (answer["files"], answer["cursors"]) == (1, 0)
    assert answer["bytes"] > 0


def _compacted(told: Told, answer: Any) -> None:
    assert answer["filesAfter"] <= answer["filesBefore"]


def _stop_bridge(told: Told) -> None:
    told.ask("POST", "/api/bridges/far/stop")
    assert told.bridge()["state"] == "stopped"


def _bridge_runs(told: Told, _answer: Any) -> None:
    assert told.bridge()["started"] is True


def _bridge_rests(told: Told, _answer: Any) -> None:
    assert told.bridge()["state"] == "stopped"


SURROUNDINGS: Final[dict[str, Scene]] = {
    "listAcceptors": Scene({}, rows("name", {"stomp", "http"})),
    "listDiverts": Scene({}, rows("name", set())),
    "listBridges": Scene({}, rows("name", {"far"})),
    "bridge.start": Scene(
        {"bridge": "far"}, holds(name="far", started=True), before=_stop_bridge, by_bean=_bridge_runs
    ),
    "bridge.stop": Scene({"bridge": "far"}, holds(name="far", started=False, state="stopped"), by_bean=_bridge_rests),
    "listDisks": Scene({}, _disks, by_bean=_disks_in_texts, stores=True),
    "getJournal": Scene({}, _journal, stores=True),
    "compact": Scene({}, _compacted, stores=True),
    "getAddressSettingsAsJSON": Scene({"address": "orders"}, _settings),
    "getRolesAsJSON": Scene({"address": "orders"}, _roles),
}
