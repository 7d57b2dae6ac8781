"""The lives of messages for operators: read in threads, a few at a time, and for a short time each."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from artemis_py.errors import LimitError, NotFoundError
from artemis_py.server import traces
from artemis_py.server.traces import KEPT_MAX, RUNNING_MAX, Traces
from artemis_py.storage.format.segment_index import index_name
from tests.kit.journal_story import message
from tests.kit.log_desk import Desk
from tests.kit.loops import until

WANTED = 2
LONG_S = 60.0


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path)
    found.keep(3)
    found.journal.records.settled(1, [message(WANTED, b"")], "acked")
    found.turn()
    return found


def asked(desk: Desk) -> Traces:
    return Traces(asyncio.get_running_loop(), desk.view, lambda number: f"queue {number}")


@pytest.mark.asyncio
async def test_a_life_at_once_and_in_parts(desk: Desk) -> None:
    life = await asked(desk).read_life(WANTED, 0, LONG_S)
    assert ([moment["what"] for moment in life.moments], life.is_whole) == (["arrived", "acknowledged"], True)
    assert life.read_bytes > 0
    assert life.moments[0]["queue"] == ""
    assert life.moments[1]["queue"] == "q"
    teller = asked(desk)
    parts = [await teller.read_life(WANTED, 0, 0.0)]
    while not parts[-1].is_whole:
        parts.append(await teller.read_life(WANTED, parts[-1].read_lsn, 0.0))
        assert parts[-1].is_whole or parts[-1].read_lsn > parts[-2].read_lsn
    assert [moment["what"] for part in parts for moment in part.moments] == ["arrived", "acknowledged"]
    assert len(parts) > 2, "each answer looks at 16 records when it has no time"


@pytest.mark.asyncio
async def test_a_part_that_nobody_asked_for_in_time_is_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "KEPT_S", 0.0)
    teller = asked(desk)
    life = await teller.read_life(WANTED, 0, 0.0)
    assert not life.is_whole
    await until(lambda: not teller._kept)
    with pytest.raises(NotFoundError, match="ask without after"):
        teller.read_life(WANTED, life.read_lsn, 0.0)


@pytest.mark.asyncio
async def test_few_are_kept(desk: Desk) -> None:
    teller = asked(desk)
    ends = [(number, (await teller.read_life(number, 0, 0.0)).read_lsn) for number in range(1, KEPT_MAX + 2)]
    with pytest.raises(NotFoundError):
        teller.read_life(*ends[0], 0.0)
    await teller.read_life(*ends[1], 0.0)


@pytest.mark.asyncio
async def test_few_are_read_at_once(desk: Desk) -> None:
    teller = asked(desk)
    running = [teller.read_life(WANTED, 0, LONG_S) for _ in range(RUNNING_MAX)]
    with pytest.raises(LimitError, match="2 messages"):
        teller.read_life(WANTED, 0, LONG_S)
    await asyncio.gather(*running)
    assert (await teller.read_life(WANTED, 0, LONG_S)).is_whole


@pytest.mark.asyncio
async def test_a_broker_that_stops_does_not_wait(desk: Desk) -> None:
    desk.view.stop()
    assert not (await asked(desk).read_life(WANTED, 0, LONG_S)).is_whole


@pytest.mark.asyncio
async def test_a_message_that_the_log_does_not_have(desk: Desk) -> None:
    life = await asked(desk).read_life(99_999, 0, LONG_S)
    assert (life.moments, life.is_whole, life.lost) == ([], True, 0)


@pytest.mark.asyncio
async def test_parts_that_are_gone_are_counted(desk: Desk) -> None:
    first = desk.journal.segments[0]
    for name in (first.name, index_name(first.name)):
        (desk.view._directory / name).unlink(missing_ok=True)
    life = await asked(desk).read_life(WANTED, 0, LONG_S)
    assert life.lost == 1
    assert life.is_whole


@pytest.mark.asyncio
async def test_what_is_still_there_comes_last(desk: Desk) -> None:
    life = await asked(desk).read_life(1, 0, LONG_S)
    assert [moment["what"] for moment in life.moments] == ["arrived", "there"]
    assert life.moments[-1]["time"] == 0
