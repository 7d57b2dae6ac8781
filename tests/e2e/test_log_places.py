"""What a running broker puts beside closed segments for readers that want a part of them alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from artemis_py.storage.format.address_index import decode_table, places_name
from tests.e2e.log_reader import LITTLE, logged, send
from tests.kit.client import connected
from tests.kit.process import BrokerProcess

pytestmark = pytest.mark.e2e


def surveyed(broker: BrokerProcess, count: int) -> list[dict[str, Any]]:
    """Wait until so many segments are closed and all of them have places."""
    return broker.eventually(
        "segments have places",
        lambda: [one for one in broker.api("/log")["segments"] if not one["is_current"]],
        lambda found: len(found) >= count and all("places" in one for one in found),
    )


def test_closed_segments_get_places_and_keep_them_when_they_are_retained(tmp_path: Path) -> None:
    with logged(tmp_path) as broker:
        for _ in range(3):
            send(broker, 60, "/queue/one")
            send(broker, 60, "/queue/two")
        found = surveyed(broker, 2)
        published = 0
        for one in found:
            status, data = broker.ask("GET", f"/log/segments/{one['segment']}/places").answer
            assert (status, len(data)) == (200, one["places"])
            table = decode_table(data)
            assert (table.of.number, table.of.last_lsn, table.of.size_bytes) == (
                one["segment"], one["last_lsn"], one["bytes"]
            )  # fmt: skip
            assert sum(table.messages.values()) == one["messages"] == sum(c[0] for c in one["counts"].values())
            assert sorted(table.addresses or ()) == one["addresses"]
            published += one["messages"]
        ids = sorted(tuple(span) for one in found for span in one["ids"])
        assert ids[0][0] == 1
        assert ids[-1][1] == published
        assert broker.ask("GET", "/log/segments/99/places").status == 404
        for address in ("one", "two"):
            with connected(broker.port) as client:
                client.take(f"/queue/{address}", 180)
        first = found[0]["segment"]
        retained = broker.eventually(
            "it is retained",
            lambda: broker.api("/log")["segments"][0],
            lambda one: one["segment"] == first and "Z.log" in one["name"],
        )
        beside = tmp_path / "kept" / places_name(retained["name"])
        assert broker.ask("GET", f"/log/segments/{first}/places").answer == (200, beside.read_bytes())
        assert beside.stat().st_mode & 0o077 == 0
    (tmp_path / "kept" / places_name("artemis-journal-000000009999-20260131T235959.999Z.log")).write_bytes(b"x")
    (tmp_path / "journal" / places_name("artemis-journal-000000009999.log")).write_bytes(b"x")
    with logged(tmp_path) as broker:
        assert not any(tmp_path.glob("*/*9999*"))
        surveyed(broker, len(found))


def test_places_go_with_their_segment(tmp_path: Path) -> None:
    with logged(tmp_path, kept=LITTLE) as broker:
        for _ in range(4):
            send(broker, 150, "/queue/one")
            with connected(broker.port) as client:
                client.take("/queue/one", 150)
        broker.eventually(
            "the first is gone", lambda: broker.ask("GET", "/log/segments/1").status, lambda status: status == 410
        )
        surveyed(broker, 2)
        assert broker.ask("GET", "/log/segments/1/places").status == 404
    names = {path.name for path in tmp_path.glob("*/artemis-journal-*")}
    logs = {name for name in names if name.endswith(".log")}
    assert {name.rpartition(".")[0] + ".log" for name in names} == logs
