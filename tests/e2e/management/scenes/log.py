"""Scenes of the operations on the log and its cursors."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tests.e2e.management.scene import Scene
from tests.e2e.management.told import Told

_THREE: Final = partial(Told.send, destination="/queue/orders", bodies="xxx", persistent="true")
"""Three messages, which are on the disk."""


def _segments(_told: Told, answer: Any) -> None:
    """All that was sent is in the file that is written to."""
    (row,) = answer["data"]
    assert (row["segment"], row["firstLsn"], row["messages"], row["current"]) == (1, 1, 3, True)
    assert row["lastLsn"] > 0
    assert 0 < row["firstTime"] <= row["lastTime"]


def _two_cursors(told: Told) -> None:
    _THREE(told)
    for name, lsn in (("slow", 1), ("other", 2)):
        assert told.ask("PUT", f"/log/cursors/{name}", b'{"lsn": %d, "owner": "me"}' % lsn)[0] == 201


def _cursors(_told: Told, answer: Any) -> None:
    rows = {row["name"]: row for row in answer["data"]}
    assert list(rows) == ["other", "slow"]
    assert (rows["slow"]["lsn"], rows["slow"]["owner"], rows["slow"]["holds"]) == (1, "me", True)
    assert rows["slow"]["lag"] > rows["other"]["lag"] > 0
    assert rows["slow"].get("lapsesAt", 86_400_000 + rows["slow"]["movedAt"]) == 86_400_000 + rows["slow"]["movedAt"]


def _one_is_left(told: Told) -> None:
    assert [one["name"] for one in told.asked("GET", "/log/cursors")["cursors"]] == ["other"]


LOG: Final = {
    "listLogSegments": Scene({}, _segments, before=_THREE, stores=True),
    "listLogCursors": Scene({}, _cursors, before=_two_cursors, stores=True),
    "removeLogCursor": Scene(
        {"cursor": "slow"},
        {"removed": "slow"},
        before=_two_cursors,
        after=_one_is_left,
        stores=True,
    ),
}
