"""Scenes of the operations on acceptors, diverts, bridges, disks, the journal, and settings."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tests.e2e.management.scene import Rows, Scene, verify
from tests.e2e.management.told import Told


def _settings(told: Told, answer: Any) -> None:
    found = {row["name"]: row for row in answer["data"]}
    assert found["max-delivery-attempts"]["value"] == "10"
    assert found["max-delivery-attempts"]["isDefault"] is True
    assert answer["count"] > len(found) == 100


def _disks(told: Told, answer: Any) -> None:
    assert {row["directory"].rpartition("/")[2] for row in answer["data"]} == {"journal", "paging", "large"}
    for row in answer["data"]:
        assert 0 < int(row["free"]) <= int(row["total"])
        assert 0 <= int(row["usedPercent"]) <= 100


def _bridge(told: Told, _answer: Any, **values: object) -> None:
    """Whatever the answer is, the bridge is so then."""
    verify(told, values, told.asked("GET", "/api/bridges")["data"][0])


SURROUNDINGS: Final[dict[str, Scene]] = {
    "listAcceptors": Scene({}, Rows("name", {"stomp", "http"})),
    "listDiverts": Scene({}, Rows("name", set())),
    "listBridges": Scene({}, Rows("name", {"far"})),
    "bridge.start": Scene(
        {"bridge": "far"},
        {"name": "far", "started": True},
        "/api/bridges/far/stop",
        by_bean=partial(_bridge, started=True),
    ),
    "bridge.stop": Scene(
        {"bridge": "far"},
        {"name": "far", "started": False, "state": "stopped"},
        by_bean=partial(_bridge, state="stopped"),
    ),
    "listDisks": Scene({}, _disks, stores=True),
    "getJournal": Scene(
        {},
        [{"files": 1, "cursors": 0}, lambda _, it: len(it["id"]) == 32 and it["bytes"] > 0],
        stores=True,
    ),
    "compact": Scene({}, lambda _, it: it["filesAfter"] <= it["filesBefore"], stores=True),
    "getAddressSettingsAsJSON": Scene({"address": "orders"}, _settings),
    "getRolesAsJSON": Scene(
        {"address": "orders"},
        lambda _, it: ("", None) in [(row["roles"], row["match"]) for row in it["data"] if row["permission"] == "send"],
    ),
}
