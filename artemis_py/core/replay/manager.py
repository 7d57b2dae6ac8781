"""Moves replays through the log: who waits for a slice, for a time, or for what is published next."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.budget import Budget
from artemis_py.core.clock import Clock
from artemis_py.core.memory import Holdings
from artemis_py.core.replay.replay import (
    AWAITING,
    BUSY,
    DONE,
    FOLLOWING,
    HUNGRY,
    IDLE,
    READY,
    TIMED,
    WAITS,
    Replay,
    begin,
    removed,
    unreadable,
)
from artemis_py.core.replay.slices import SliceCache, SliceRequest
from artemis_py.core.replay.tail import Tail
from artemis_py.replay_log import CachedSlice, ReplayLog

# ---- replays ---------------------------------------------------------------------------------------------------------
#
# All replays of a broker: who reads which part of the log next, and who waits for what. A replay reads only what is
# durable, the last message as the first one. So there is no change from history to live that could lose or repeat
# anything. Those who have everything follow the end of the log together: what becomes durable is read once, and goes
# to those who want it.


_SERVED_UNITS_MAX: Final = 128
"""What one replay may spend before others get on."""
_ASKED_MAX: Final = 256
"""How many replays get a slice, or have one read, in a turn."""
_LOOK_MS: Final = 60_000
"""How often a replay that waits for a date looks whether it has come: somebody may set the clock."""
_SHARE: Final = 2
"""One part in this many of what replays may spend in a turn is for finding messages in slices, the rest for showing
them.
"""


@final
class Replays:
    """Moves replays through the log. The server calls ``take_arrived`` once a turn. Then it serves those that
    ``next_ready`` returns, one after the other: it checks the client's room, and calls ``serve`` or ``stall``.
    """

    __slots__ = (
        "_arrived", "_clock", "_hungry", "_is_feeding", "_ready", "_share", "_slices", "_timed",
        "alarms", "behind_receipts", "count", "log", "news", "tail",
    )  # fmt: skip

    def __init__(self, log: ReplayLog, holdings: Holdings, clock: Clock, syntax: WildcardSyntax) -> None:
        self.log = log
        self.count = 0
        """How many there are."""
        self.news: list[Replay] = []
        """Replays with news for their client that is no message: an error, or the end."""
        self.behind_receipts: dict[int, Replay] = {}
        """Replays, by number, whose output waits behind what is not durable yet. Whoever knows that it is takes them
        out.
        """
        self._clock = clock
        self._slices = SliceCache(log, holdings)
        self.tail = Tail(syntax)
        self._share = Budget()
        self._arrived: deque[SliceRequest] = deque()
        """Slices on the way to those who wait for them."""
        self._ready: OrderedDict[int, Replay] = OrderedDict()
        self._hungry: OrderedDict[int, Replay] = OrderedDict()
        """By number, the one that has waited longest first."""
        self._is_feeding = False
        """Are there replays that need a slice and were not looked at?"""
        self.alarms = clock.alarms()
        """When replays want to be looked at again, by their numbers."""
        self._timed: dict[int, Replay] = {}
        """The replays that have an alarm."""

    # ---- what the protocol asks ------------------------------------------------------------------

    def open(self, replay: Replay, now_ms: int) -> None:
        """Begin a replay. Raises BrokerError if retention has removed what it wants, and then it has not begun."""
        begin(replay, self.log)
        self.count += 1
        if replay.has_ended:
            self.news.append(replay)
        else:
            self._go_on(replay, now_ms)

    def close(self, replay: Replay) -> None:
        """End a replay. May be called twice."""
        if not replay.is_closed:
            replay.is_closed = True
            self.count -= 1
            self._rest(replay)
            self.tail.followers.forget(replay)
            self.behind_receipts.pop(replay.id, None)
            replay.outbox.clear()
            if not self.count:
                self._slices.clear()
                self._arrived.clear()
                self.news.clear()
                while self.alarms.due:
                    self.alarms.take()  # nothing looks at them without a replay

    def pause(self, replay: Replay, now_ms: int) -> None:
        """Show nothing more of it until ``resume``."""
        replay.pause(self._clock.steady_ms(now_ms))
        self._rest(replay)

    def resume(self, replay: Replay, now_ms: int) -> None:
        """Go on with a replay that was paused."""
        replay.resume(self._clock.steady_ms(now_ms))
        if replay.state == IDLE:
            self._go_on(replay, now_ms)

    def stall(self, replay: Replay) -> None:
        """Its client takes nothing more now."""
        replay.is_stalled = True
        self._rest(replay)

    def wake(self, replay: Replay, now_ms: int) -> None:
        """Its client takes more again."""
        if replay.is_stalled:
            replay.is_stalled = False
            self._go_on(replay, now_ms)

    # ---- the steps of a turn ---------------------------------------------------------------------

    @property
    def has_ready(self) -> bool:
        """Is there something to do in another turn that no thread has to do first?"""
        is_handing_out = bool(self._arrived) or self.tail.is_busy
        return bool(self._ready or self.news) or is_handing_out or self._slices.has_unscanned or self._is_feeding

    def take_arrived(self, budget: Budget, now_ms: int) -> None:
        """Handle due times and the slices that were read."""
        while self.alarms.due:
            replay = self._timed.pop(self.alarms.take(), None)
            if replay is not None:
                self._ring(replay, now_ms)
            budget.spend(1)
        share = self._share
        units = max(budget.left // _SHARE, 1)
        share.refill(units)
        for request in self._slices.scan_arrived(share):
            if request.follows:
                self.tail.receive(request)
            else:
                self._begin_to_hand_out(request)
        self._hand_out(share, now_ms)
        self._look_at_tail(share, now_ms)
        budget.spend(units - share.left)

    def next_ready(self) -> Replay | None:
        """A replay that may show messages, the one that has waited longest; None if there is none."""
        return self._ready.popitem(last=False)[1] if self._ready else None

    def serve(self, replay: Replay, budget: Budget, room_bytes: int, now_ms: int) -> None:
        """Let a replay that ``next_ready`` has returned put messages into its outbox."""
        units = max(min(budget.left, _SERVED_UNITS_MAX), 1)
        self._share.refill(units)
        outcome = replay.take(self.log, self._share, room_bytes, self._clock.steady_ms(now_ms))
        budget.spend(units - self._share.left)
        if outcome == BUSY:
            self._ready[replay.id] = replay
            return
        due_ms = replay.due_ms
        self._rest(replay)
        if outcome == WAITS:
            replay.state = TIMED
            self._wait(replay, due_ms)
        elif outcome == DONE:
            self._go_on(replay, now_ms)

    def request_slices(self) -> None:
        """Ask for slices, at the end of a turn: for what has become durable, and for those who need one."""
        self.tail.read_on(self._slices, self.log)
        self._share.refill(_ASKED_MAX)
        self._feed(self._share)

    # ---- where replays go ------------------------------------------------------------------------

    def _go_on(self, replay: Replay, now_ms: int) -> None:
        """Decide what a replay does next that does nothing now."""
        if not replay.may_go_on:
            return
        spot = replay.spot
        assert spot is not None
        is_end = spot.place >= self.log.end()
        if not is_end and not self.tail.is_behind(spot.place):
            replay.state = HUNGRY
            self._hungry[replay.id] = replay
            return
        if is_end:
            self._arrive(replay, self.log.durable_lsn)
            if replay.has_ended:
                return
        self.tail.join(replay, spot, is_end=is_end)
        if replay.bounds.until_ms >= 0:
            self._wait_for_end(replay, now_ms)

    def _wait_for_end(self, replay: Replay, now_ms: int) -> None:
        """A replay follows until the date is past at which it ends."""
        date_ms = min(replay.bounds.until_ms + 1, now_ms + _LOOK_MS)
        self._wait(replay, self._clock.steady_ms(date_ms))

    def _wait(self, replay: Replay, steady_ms: int) -> None:
        """Look at a replay at a steady time, and not at another one."""
        self._timed[replay.id] = replay
        self.alarms.set(replay.id, steady_ms)

    def _wait_no_more(self, replay: Replay) -> None:
        if self._timed.pop(replay.id, None) is not None:
            self.alarms.clear(replay.id)

    def _arrive(self, replay: Replay, lsn: int) -> None:
        """A replay has everything up to this lsn, the last one of the log."""
        replay.arrive(lsn)
        if replay.completes:
            self.news.append(replay)

    def _rest(self, replay: Replay) -> None:
        """Whatever a replay does or waits for, it does so no longer. What it has in memory may go."""
        state, replay.state = replay.state, IDLE
        if state == FOLLOWING:
            self.tail.leave(replay)
        elif state == HUNGRY:
            self._hungry.pop(replay.id, None)
        elif state == READY:
            self._ready.pop(replay.id, None)
        cached = replay.cached
        if cached is not None:
            replay.cached = None
            self._slices.give_back(cached)
        self._wait_no_more(replay)

    def _ring(self, replay: Replay, now_ms: int) -> None:
        """A time has come that a replay has waited for. One that follows wants nothing that is recorded from now on.
        What was recorded before may still become durable.
        """
        if replay.state == FOLLOWING:
            if now_ms <= replay.bounds.until_ms:
                self._wait_for_end(replay, now_ms)
                return
            self._rest(replay)
            self.tail.followers.forget(replay)
            replay.bounds.end_by(self.log.last_lsn)
        replay.state = IDLE
        self._go_on(replay, now_ms)

    def _fail(self, replay: Replay, text: str) -> None:
        """A replay cannot go on; its client gets the reason."""
        self._rest(replay)
        replay.fail(text)
        self.news.append(replay)

    # ---- slices ----------------------------------------------------------------------------------

    def _feed(self, budget: Budget) -> None:
        """Give slices to the replays that need one, or have them read, as far as there is room in memory."""
        hungry = self._hungry
        self._is_feeding = False
        while hungry and not budget.is_spent:
            number, replay = hungry.popitem(last=False)
            spot = replay.spot
            assert spot is not None
            cached = self._slices.take(spot, replay.addresses)
            if cached is not None:
                self._hold(replay, cached)
            elif self._slices.request(replay):
                replay.state = AWAITING
            else:
                hungry[number] = replay
                hungry.move_to_end(number, last=False)
                return
            budget.spend(1)
        self._is_feeding = bool(hungry)

    def _hold(self, replay: Replay, cached: CachedSlice) -> None:
        """A replay may show messages of a slice. Meanwhile the next one is read."""
        end = cached.slice.end
        if end.place < self.log.end() and not self.tail.is_behind(end.place):
            self._slices.read_ahead(end, replay.addresses)
        replay.cached = cached
        replay.bytes_asked = 0
        replay.state = READY
        self._ready[replay.id] = replay

    def _begin_to_hand_out(self, request: SliceRequest) -> None:
        """A slice has come that replays wait for."""
        if request.cached is not None:
            request.cached.users += 1
        self._arrived.append(request)

    def _hand_out(self, budget: Budget, now_ms: int) -> None:
        """Give slices to those who wait for them, within the budget. They may do something else by now."""
        arrived = self._arrived
        while arrived and not budget.is_spent:
            request = arrived[0]
            if request.replays:
                budget.spend(1)
                self._give(request, request.replays.pop(), now_ms)
                continue
            arrived.popleft()
            if request.cached is not None:
                self._slices.give_back(request.cached)

    def _give(self, request: SliceRequest, replay: Replay, now_ms: int) -> None:
        part, spot = request.slice, replay.spot
        assert part is not None
        if replay.state != AWAITING or spot is None or spot.place != part.begin.place:
            return
        replay.state = IDLE
        if part.is_gone:
            self._lose(replay, now_ms)
        elif part.failure:
            self._fail(replay, unreadable(replay.passed_lsn, part.failure))
        elif request.cached is None:
            replay.bytes_asked = part.bytes_needed
            self._go_on(replay, now_ms)
        else:
            request.cached.users += 1
            self._hold(replay, request.cached)

    def _lose(self, replay: Replay, now_ms: int) -> None:
        """What a replay wanted to read was removed."""
        spot = replay.spot
        assert spot is not None
        if replay.start_over(self.log):
            self._go_on(replay, now_ms)
        else:
            self._fail(replay, removed(replay.passed_lsn, self.log.first_lsn(spot.segment)))

    def _look_at_tail(self, budget: Budget, now_ms: int) -> None:
        """Hand out what has become durable, and have more of it read."""
        tail = self.tail
        if tail.is_gone or tail.failure:
            failure, tail.failure, tail.is_gone = tail.failure, "", False
            for replay in tail.followers.all():
                if failure:
                    self._fail(replay, unreadable(replay.passed_lsn, failure))
                else:
                    self._rest(replay)
                    self._lose(replay, now_ms)
        tail.step(self._slices, budget)
        if tail.woken:
            woken, tail.woken = tail.woken, []
            for replay in woken:
                self._wait_no_more(replay)
                self._ready[replay.id] = replay
                replay.state = READY
        if tail.arrived:
            arrived, tail.arrived = tail.arrived, []
            for replay in arrived:
                if replay.state == FOLLOWING:
                    self._arrive(replay, tail.lsn)
                if replay.has_ended:
                    self._rest(replay)
