"""Replays in a turn: one that waits for what is durable goes on with it, and is let go with its client."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from artemis_py.core.consumer import Consumer
from artemis_py.core.replay.bookmarks import Bounds
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.recovery_points import Backfills
from artemis_py.core.replay.replay import Addresses, Replay, pace_of
from artemis_py.server.replays import ReplayTurns
from tests.kit.in_process import InProcessBroker, configuration
from tests.unit.core.made_log import MadeLog


@dataclass(eq=False)
class Replaying:
    """A client's part of its replays: its room, and what was written."""

    room: int = 0
    written: list[int] = field(default_factory=list)

    def room_bytes(self, durable_lsn: int) -> int:
        return self.room

    def write(self, replay: Replay, now_ms: int) -> None:
        self.written += [entry.message.lsn for entry in replay.outbox]
        replay.outbox.clear()


def client_of(replaying: Replaying) -> Any:
    session = SimpleNamespace(is_open=True, subscriptions=SimpleNamespace(replaying=replaying))
    return SimpleNamespace(session=session, socket=SimpleNamespace(writable=True), is_dirty=True)


def test_who_waits_behind_receipts_goes_on_when_they_are_durable_and_may_leave_before() -> None:
    world = InProcessBroker(configuration())
    broker, log = world.broker, MadeLog()
    manager = Replays(log, broker.holdings, broker.clock, broker.config.wildcards)
    fills = Backfills(broker.host, broker.bindings, broker.registry, manager)
    durability: Any = SimpleNamespace(durable_lsn=1)
    turns = ReplayTurns(manager, fills, durability, world.turns.output, world.turns.isolation)
    log.append("a")
    replaying = Replaying()
    replays: list[Replay] = []
    for number in (1, 2):
        addresses = Addresses(("a",), broker.config.wildcards)
        choice = Consumer(number, None, settles=True, destructive=False)
        replay = Replay(number, client_of(replaying), 0, addresses, Bounds(0, -1), choice, pace_of(None, None))
        manager.open(replay, world.now_ms)
        replays.append(replay)

    def turn() -> None:
        for _ in range(10):
            turns.run(10_000, world.now_ms)

    turn()
    assert sorted(manager.behind_receipts) == [1, 2]
    manager.close(replays[0])
    assert list(manager.behind_receipts) == [2]
    replaying.room = 1000
    turn()
    assert replaying.written == []
    durability.durable_lsn = 2
    turn()
    assert replaying.written == [log.last_lsn]
    assert not manager.behind_receipts
