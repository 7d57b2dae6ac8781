"""Replays in a turn: one that waits for what is durable goes on with it, and is let go with its client."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from artemis_py.core.consumer import Consumer
from artemis_py.core.replay.bookmarks import Bounds
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.recovery_points import Backfills
from artemis_py.core.replay.replay import Addresses, Replay, pace_of
from artemis_py.server.replays import ReplayTurns
from tests.kit.in_process import InProcessBroker, configuration
from tests.kit.journal_story import message
from tests.kit.journal_with_cursors import JournalWithCursors
from tests.unit.replay.reading import Reading


def test_who_waits_behind_receipts_goes_on_when_they_are_durable_and_may_leave_before(tmp_path: Path) -> None:
    world = InProcessBroker(configuration())
    kept = JournalWithCursors(tmp_path)
    broker, log = world.broker, Reading(kept.journal, tmp_path / "journal", kept.retention).log
    manager = Replays(log, broker.holdings, broker.clock, broker.config.wildcards)
    fills = Backfills(broker.host, broker.bindings, broker.registry, manager)
    durability: Any = SimpleNamespace(durable_lsn=1)
    turns = ReplayTurns(manager, fills, durability, world.turns.output, world.turns.isolation)
    lsn = kept.journal.records.published(message(1), [], 0)
    kept.turn()
    written: list[int] = []
    replaying = Mock(**{"room_bytes.return_value": 0})
    replaying.write.side_effect = lambda replay, _: written.extend(
        replay.outbox.pop(0).message.lsn for _ in range(len(replay.outbox))
    )
    session = SimpleNamespace(is_open=True, subscriptions=SimpleNamespace(replaying=replaying))
    client: Any = SimpleNamespace(session=session, socket=SimpleNamespace(writable=True), is_dirty=True)
    replays: list[Replay] = []
    for number in (1, 2):
        addresses = Addresses(("a",), broker.config.wildcards)
        choice = Consumer(number, None, settles=True, destructive=False)
        replay = Replay(number, client, 0, addresses, Bounds(0, -1), choice, pace_of(None, None))
        manager.open(replay, world.now_ms)
        replays.append(replay)

    def turn() -> None:
        for _ in range(10):
            turns.run(10_000, world.now_ms)

    turn()
    assert sorted(manager.behind_receipts) == [1, 2]
    manager.close(replays[0])
    assert list(manager.behind_receipts) == [2]
    replaying.room_bytes.return_value = 1000
    turn()
    assert written == []
    durability.durable_lsn = 2
    turn()
    assert written == [lsn]
    assert not manager.behind_receipts
