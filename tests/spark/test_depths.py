"""Table ``metrics``: how deep a queue was, where the log tells of an arrival before what it displaced; no JVM."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from artemis_py.spark.read import plan
from artemis_py.storage.format import codec, records
from tests.spark.made_log import START_MS, MadeLog
from tests.spark.readers import rows_in


def depths(folder: Path) -> list[tuple[int, int]]:
    """The highest and the last of each interval."""
    return [(row["depthMax"], row["depthEnd"]) for row in rows_in(folder, "metrics", interval="1 second")]


class Ring(MadeLog):
    """Messages come to ``q`` in one turn, and the ring gives up some of the oldest in the same one."""

    def turn(self, now_ms: int, came: int, gone: list[int], reason: str = "replaced") -> None:
        """The records stand in the order in which the broker writes them."""
        self.batch(
            now_ms,
            lambda: self.sent(now_ms, came),
            lambda: self.record(records.SETTLED, codec.encode_settled(3, reason, gone)) if gone else b"",
        )


@pytest.mark.parametrize("reason", ["replaced", "superseded"])
def test_what_was_displaced_never_stood_beside_what_displaced_it(tmp_path: Path, reason: str) -> None:
    log = Ring(tmp_path)
    log.segment(START_MS)
    log.turn(START_MS, 8, [])
    log.turn(START_MS + 1000, 1, [1], reason)
    log.turn(START_MS + 2000, 12, [*range(2, 14)], reason)
    assert depths(tmp_path) == [(8, 8), (8, 8), (8, 8)]


def test_a_burst_into_an_empty_ring(tmp_path: Path) -> None:
    log = Ring(tmp_path)
    log.segment(START_MS)
    log.turn(START_MS, 20, [*range(1, 13)])
    assert depths(tmp_path) == [(8, 8)]


def test_what_was_consumed_did_stand_there(tmp_path: Path) -> None:
    """Also what a ring gave up in a later turn, as after a consumer gave messages back."""
    log = Ring(tmp_path)
    log.segment(START_MS)
    log.turn(START_MS, 9, [1, 2], "acked")
    log.turn(START_MS + 100, 3, [])
    log.turn(START_MS + 200, 0, [3, 4])
    assert depths(tmp_path) == [(10, 8)]


@pytest.mark.parametrize(
    ("spans", "before_ms", "lsn"),
    [
        ([(0, 50), (100, 150), (200, 250)], 220, 3),
        ([(0, 50), (100, 150), (200, 250)], 120, 2),
        ([(0, 500), (100, 150), (200, 250)], 220, 1),
        ([(0, 50), (100, 220), (110, 150)], 220, 2),
        ([(0, 50), (100, 150)], 300, 2),
    ],
)
def test_from_where_depths_are_summed_up(
    monkeypatch: pytest.MonkeyPatch, spans: list[tuple[int, int]], before_ms: int, lsn: int
) -> None:
    """Not from behind what is of that time or later, which a clock that was set back leaves in an earlier segment."""
    segments = [
        SimpleNamespace(first_ms=first, last_ms=last, first_lsn=number) for number, (first, last) in enumerate(spans, 1)
    ]
    monkeypatch.setattr(plan, "_depths_ms", lambda _log, segment: segment.first_ms)
    log: Any = None
    listing: Any = SimpleNamespace(segments=segments)
    assert plan.depths_told_lsn(log, listing, before_ms) == lsn
