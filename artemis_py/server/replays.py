"""The step of a turn that moves replays on. It is the last one: what others wait for leaves before it."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.recovery_points import Backfills
from artemis_py.core.replay.replay import Replay
from artemis_py.record_log import Durability
from artemis_py.server.failures import Isolation
from artemis_py.server.turn_client import Client
from artemis_py.server.turn_output import TurnOutput

REPLAY_PARTS: Final = 250
"""Replays get one part in this many of a turn, so that turns stay short for others, however many replays there are."""


@final
class ReplayTurns:
    """Serves replays whose clients have room, in turn, within their part of each turn."""

    __slots__ = ("_budget", "_durability", "_durable_lsn", "_isolation", "_output", "backfills", "manager")

    def __init__(
        self, manager: Replays, backfills: Backfills, durability: Durability, output: TurnOutput, isolation: Isolation
    ) -> None:
        self.manager = manager
        self.backfills = backfills
        """The replays that put messages on queues instead of showing them."""
        self._durability = durability
        self._output = output
        self._isolation = isolation
        self._budget = Budget()
        self._durable_lsn = -1

    @property
    def are_there(self) -> bool:
        """Is there a replay, or something that one has left to do?"""
        return self.manager.count > 0 or self.backfills.has_ready or self.backfills.has_unfilled

    @property
    def have_ready(self) -> bool:
        """Is there something to do in another turn that nothing has to happen for?"""
        return (
            self.backfills.has_ready
            or self.backfills.has_unfilled
            or (self.manager.count > 0 and self.manager.has_ready)
        )

    def run(self, units: int, now_ms: int) -> None:
        """Move replays on. ``units`` are those of the whole turn."""
        manager, budget = self.manager, self._budget
        self.backfills.has_written = False
        if self.backfills.has_unfilled:
            self.backfills.begin()
        budget.refill(max(units // REPLAY_PARTS, 1))
        durable_lsn = self._durability.durable_lsn
        if durable_lsn != self._durable_lsn:
            self._durable_lsn = durable_lsn
            behind, manager.behind_receipts = manager.behind_receipts, {}
            for replay in behind.values():
                manager.wake(replay, now_ms)
        manager.take_arrived(budget, now_ms)
        while manager.news:
            replay = manager.news.pop()
            if self.backfills.is_backfill(replay):
                self.backfills.on_news(replay, now_ms)
            elif not replay.is_closed:
                self._write(replay, now_ms)
        budget.allow(2)
        if self.backfills.count:
            self.backfills.advance(budget, now_ms)
        while not budget.is_spent and (ready := manager.next_ready()) is not None:
            self._serve(ready, now_ms)
        manager.request_slices()

    def _serve(self, replay: Replay, now_ms: int) -> None:
        if self.backfills.is_backfill(replay):
            self.backfills.serve(replay, self._budget, now_ms)
            return
        connection: Client = replay.owner  # type: ignore[assignment]
        session = connection.session
        replaying = session.subscriptions.replaying
        if replaying is None or not session.is_open or not connection.socket.writable:
            self.manager.stall(replay)
            return
        room_bytes = replaying.room_bytes(self._durable_lsn)
        if room_bytes <= 0:
            self.manager.stall(replay)
            self.manager.behind_receipts[replay.id] = replay
            return
        try:
            self.manager.serve(replay, self._budget, room_bytes, now_ms)
        except Exception as error:
            self._isolation.fail(connection, "replay", error)
            return
        if replay.outbox or replay.completes:
            self._write(replay, now_ms)

    def _write(self, replay: Replay, now_ms: int) -> None:
        connection: Client = replay.owner  # type: ignore[assignment]
        session = connection.session
        replaying = session.subscriptions.replaying
        if replaying is None or not session.is_open:
            return
        try:
            reason = replaying.write(replay, now_ms)
            if reason is not None:
                session.refuse(reason, None, syntax=False)
            self._output.mark_dirty(connection)
        except Exception as error:
            self._isolation.fail(connection, "replay", error)
