"""Scenes of the operations on acceptors, diverts, bridges, disks, the journal, and settings."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.management.scene import Check, Scene, holds, posted, rows
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


def _journal(told: Told, answer: Any) -> None:
    assert len(answer["id"]) == 32
    assert (answer["files"], answer["cursors"]) == (1, 0)
    assert answer["bytes"] > 0


def _compacted(told: Told, answer: Any) -> None:
    assert answer["filesAfter"] <= answer["filesBefore"]


def _bridge(**values: object) -> Check:
    """Whatever the answer is, the bridge is so then."""
    return lambda told, _: holds(**values)(told, told.bridge())


SURROUNDINGS: Final[dict[str, Scene]] = {
    "listAcceptors": Scene({}, rows("name", {"stomp", "http"})),
    "listDiverts": Scene({}, rows("name", set())),
    "listBridges": Scene({}, rows("name", {"far"})),
    "bridge.start": Scene(
        {"bridge": "far"},
        holds(name="far", started=True),
        posted("/api/bridges/far/stop"),
        by_bean=_bridge(started=True),
    ),
    "bridge.stop": Scene(
        {"bridge": "far"}, holds(name="far", started=False, state="stopped"), by_bean=_bridge(state="stopped")
    ),
    "listDisks": Scene({}, _disks, stores=True),
    "getJournal": Scene({}, _journal, stores=True),
    "compact": Scene({}, _compacted, stores=True),
    "getAddressSettingsAsJSON": Scene({"address": "orders"}, _settings),
    "getRolesAsJSON": Scene({"address": "orders"}, _roles),
}
