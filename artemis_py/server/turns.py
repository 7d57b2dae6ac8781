"""Turns: the server's whole work in one order (``Turns._run``), and when the next one runs (``Wakeup``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized
from os import sched_getaffinity
from time import perf_counter_ns
from typing import Any, Final, final

from artemis_py.core.broker import Broker
from artemis_py.core.budget import TURN_UNITS
from artemis_py.core.clock import NEVER_MS
from artemis_py.core.events import Event
from artemis_py.core.notifications import CONNECTION_CREATED, CONNECTION_DESTROYED
from artemis_py.errors import ArtemisError, StorageError
from artemis_py.record_log import Durability
from artemis_py.server.events.notification_sender import Notifying
from artemis_py.server.failures import Isolation, TurnError, shown
from artemis_py.server.garbage_collector import WORK_MAX, GarbageCollector
from artemis_py.server.management_messages import ManagementMessages
from artemis_py.server.memory import MemoryGuard
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.server.replays import ReplayTurns
from artemis_py.server.stats import ServerStats
from artemis_py.server.turn_client import Client, Recipient
from artemis_py.server.turn_input import ConnectionWatches, TurnInput
from artemis_py.server.turn_output import TurnOutput
from artemis_py.storage.bodies import LargeStore


@final
class Wakeup:
    """Has the event loop call ``run``: once for everything that is ready together, and when its one timer is due."""

    __slots__ = ("_loop", "_run", "_timer", "due_ms", "has_ended", "is_due")

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Callable[[], None]) -> None:
        self.is_due = False
        """Will the loop call ``run`` in this round or the next one? ``run`` itself sets this back."""
        self.has_ended = False
        """No more turns at all."""
        self._loop = loop
        self._run = run
        self._timer: asyncio.TimerHandle | None = None
        self.due_ms = NEVER_MS
        """The steady time for which the timer is set."""

    def schedule(self) -> None:
        """Run a turn as soon as the loop has collected everything that is ready."""
        if not self.is_due and not self.has_ended:
            self.is_due = True
            self._loop.call_soon(self._run)

    def schedule_behind(self) -> None:
        """Run a turn after the input that arrived meanwhile."""
        if not self.is_due:
            self.is_due = True
            self._loop.call_soon(self._loop.call_soon, self._run)

    def wake_at(self, due_ms: int, steady_ms: int) -> None:
        """Run a turn at the steady time ``due_ms``; it is ``steady_ms`` now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.due_ms = due_ms
        if due_ms != NEVER_MS:
            self._timer = self._loop.call_later(max(due_ms - steady_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.due_ms = NEVER_MS
        self.schedule()

    def stop(self) -> None:
        """Run no more timed turns."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Run no more turns."""
        self.stop()
        self.has_ended = True


READ_BYTES_MAX: Final = 65536
"""How many bytes of one connection are read at once. One buffer serves all: with a bigger one, malloc returns memory
after each read.
"""

ATTEND_NS: Final = 60_000
"""How long a turn that waited for the disk polls for the sender's next frame. Not on a single processor, which the
sender needs.
"""
ATTEND_NS_MAX: Final = 1_000_000
"""After this much time with one sender, the event loop serves all others."""


def _raise(failure: ArtemisError) -> None:
    raise failure


@final
class Turns:
    """Runs turns on an event loop: ``_run`` is a turn, the server's whole work in one order.

    A turn runs when something happened: bytes arrived, a socket accepted output, a time came. Nothing in it awaits. No
    connection's failure leaves its own step: whatever a step raises ends its connection (``Isolation``), and the turn
    goes on. A failure that belongs to no connection ends the broker (``on_failure``).

    ``clock_ms`` returns the date in epoch milliseconds and is read once a turn; it also
    tells ``broker.clock`` when the wall clock was set (``server/wall_clock.py``).

    ``schedule`` runs a turn as soon as the loop has collected everything that is ready.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker: Broker,
        durability: Durability,
        stats: ServerStats,
        clock_ms: Callable[[], int],
        large: LargeStore | None = None,
    ) -> None:
        self.broker = broker
        self.large = large
        self.stats = stats
        self.clock_ms = clock_ms
        self.read_buffer = memoryview(bytearray(READ_BYTES_MAX))
        self.units = TURN_UNITS
        """The budget of a turn."""
        self.on_failure: Callable[[ArtemisError], None] = _raise
        self.tell: Callable[[list[Event], int], int] | None = None
        """Gets the events once a turn (the operational log); returns when it is to be called in any case."""
        self._log_alarms = broker.clock.alarms()
        """One alarm, at the steady time at which it is."""
        self.replays: ReplayTurns | None = None
        """Moves replays of the log on; None where no log is retained."""
        self.calls: OperatorRequests | None = None
        """Carries out what operators ask for; None where nobody can."""
        self.managing: ManagementMessages | None = None
        """Answers management messages."""
        self.notifying: Notifying | None = None
        """Sends notifications."""
        self.collector: GarbageCollector | None = None
        """Counts the work of turns; None: Python's garbage collector runs as it likes."""
        self.on_end: Callable[[], None] | None = None
        """Called at the end of each turn, when what happened in it can be looked at."""
        self._wakeup = Wakeup(loop, self.run)
        self.schedule = self._wakeup.schedule
        self.isolation = Isolation(broker, stats.faults, clock_ms, self.schedule)
        self._fail_client = self.isolation.fail  # bound once, not in each turn
        self.input = TurnInput(broker.budget, self.isolation)
        self.output = TurnOutput(broker, durability, self.isolation, stats.delays)
        self.guard = MemoryGuard(broker.holdings, broker.clock)
        self.watches = ConnectionWatches(broker.clock)
        """Connections to check at a later time (heart-beats, handshake, lingering)."""
        self._durability = durability
        self._disk_has_news = True
        """Has a thread of the disk finished something that no turn has looked at?"""
        self._at_hand: Sized | None = getattr(loop, "_ready", None) if isinstance(loop, asyncio.BaseEventLoop) else None
        """What asyncio's own loop will call in this round; None for uvloop's, which does not tell."""
        self._attends = len(sched_getaffinity(0)) > 1
        self._origin = 0

    def next_origin(self) -> int:
        """A number that no connection has had before."""
        self._origin += 1
        return self._origin

    def disk_has_news(self) -> None:
        """A thread of the disk has finished something, or failed: have a turn look at it."""
        self._disk_has_news = True
        self.schedule()

    def arrived(self, connection: Client) -> None:
        """Bytes arrived: run a turn, at once if the loop has nothing else to collect."""
        at_hand = self._at_hand  # as _has_more_at_hand, without a call
        is_more = len(self.stats.connections) > 1 if at_hand is None else len(at_hand) > 0
        if is_more or self._wakeup.is_due:
            self.schedule()
        else:
            self.run()
            if self._durability.was_inline and self._attends:
                self._attend(connection)

    def _has_more_at_hand(self) -> bool:
        """Will the loop call something else in this round? Where it does not tell, others may have sent, too."""
        at_hand = self._at_hand
        return self.stats.connections_open > 1 if at_hand is None else len(at_hand) > 0

    def _attend(self, connection: Client) -> None:
        """A sender that waits for each receipt answers within microseconds: poll for its next frame a moment longer,
        which is faster than to sleep and be woken. Only while nothing else is ready, and not for long.
        """
        until_ns = perf_counter_ns() + ATTEND_NS_MAX
        while not self._has_more_at_hand() and not self._wakeup.is_due:
            try:
                has_come = connection.poll(ATTEND_NS)
            except Exception as error:
                self.isolation.fail(connection, "poll", error)
                return
            if not has_come:
                return
            self.run()
            if not self._durability.was_inline or perf_counter_ns() > until_ns:
                return

    def run(self) -> None:
        """One turn. A failure in a step that belongs to no connection is reported to ``on_failure``; no turn
        follows.
        """
        self._wakeup.is_due = False
        if self._wakeup.has_ended:
            return
        try:
            now_ms = self.isolation.turn_ms = self.clock_ms()
            self._run(now_ms)
        except StorageError as refused:
            self._fail(refused)
        except Exception as error:
            failure = TurnError(f"a turn failed: {shown(error)}")
            failure.__cause__ = error
            self._fail(failure)
        finally:
            self.isolation.turn_ms = 0

    def _fail(self, failure: ArtemisError) -> None:
        self._wakeup.has_ended = True
        self.on_failure(failure)

    def _run(self, now_ms: int) -> None:  # noqa: PLR0912 - the whole order of a turn, on one page
        """1. Take in what the disk's threads have finished. 2. Process the input of ready connections, each within its
        share (``InputScheduler``). 3. Lost connections, senders that have room again, requests of operators, and
        notifications. 4. What is due: ``broker.tick``, heart-beats, slow consumers. 5. Dispatch, and write out what
        consumers got. 6. Seal the turn's records. 7. Flush every connection that has output, up to the durable lsn.
        8. Move replays of the log on (``server/replays.py``), and flush what they wrote. 9. Events for the log, and the
        time of the next turn.
        """
        started_ns = perf_counter_ns()
        broker, clock, durability, output = self.broker, self.broker.clock, self._durability, self.output
        steady_ms = now_ms - clock.shift_ms
        broker.begin_turn(self.units, now_ms)
        if self._disk_has_news:
            self._disk_has_news = False
            failure = self._take_news()
            if failure is not None:
                self._fail(failure)
                return
        arrivals = self.input
        durability.inline = arrivals.scheduler.count <= 1 and not output.waiting
        if arrivals.scheduler.count:
            arrivals.scheduler.serve(broker.budget, now_ms, self._fail_client)
        if arrivals.lost or arrivals.blocked.awaited:
            arrivals.take_lost_and_unblocked(now_ms)
        if self.calls is not None and (self.calls.is_due or self.calls.alarms.due):
            self.calls.run(steady_ms)
        if self.managing is not None and self.managing.answers:
            self.managing.run(now_ms)
        if self.notifying is not None and broker.notifications.noted:
            self.notifying.run(now_ms)
        now_ms = steady_ms + clock.shift_ms  # the input may have noticed that the clock was set
        broker.tick(now_ms)
        if broker.slow_consumers.killed:
            self._close_slow(now_ms)
        if self.watches.alarms.due:
            self.watches.check(now_ms, self._fail_client)
        broker.dispatch(now_ms)
        served = output.write_messages(now_ms) if broker.host.outgoing else None
        if broker.enqueuer.begun or broker.log.audit.is_enabled:
            broker.end_turn()
        durability.seal()
        large = self.large
        if large is not None and (large.released or large.leaving or large.body_writer.gathered):
            large.seal(broker.log.last_lsn, durability.durable_lsn)
        output.flush(now_ms)
        if self.guard.holders:
            self.guard.check(now_ms, self._fail_client)
        if served is not None:
            output.make_room(served)
        if self.replays is not None and self.replays.are_there:
            self.replays.run(self.units, now_ms)
            output.flush(now_ms)
        if self.tell is not None and (self._log_alarms.due or broker.events.noted):
            self._tell_events(self.tell, steady_ms)
        if clock.due_ms != self._wakeup.due_ms:
            self._wakeup.wake_at(clock.due_ms, steady_ms)
        if self._has_more:
            self._wakeup.schedule_behind()
        collector = self.collector
        if collector is not None:
            collector.message_count = broker.memory.account.message_count
            collector.work += self.units - broker.budget.left
            if collector.work >= WORK_MAX:
                collector.search_young()
        self.stats.turn_took(perf_counter_ns() - started_ns)
        if self.on_end is not None:
            self.on_end()

    def _tell_events(self, tell: Callable[[list[Event], int], int], steady_ms: int) -> None:
        while self._log_alarms.due:
            self._log_alarms.take()
        events = self.broker.events.take()
        self._log_alarms.set(0, tell(events, steady_ms))
        if events and self.notifying is not None:
            self.notifying.note_events(events)

    @property
    def _has_more(self) -> bool:
        """Is there already work for another turn?"""
        broker, large, replays, calls = self.broker, self.large, self.replays, self.calls
        if broker.host.ready or broker.agenda.tasks or self.input.scheduler.count:
            return True
        if broker.clock.due_ms <= broker.log.now_ms - broker.clock.shift_ms:
            return True
        if self.notifying is not None and broker.notifications.noted:
            return True
        if self.managing is not None and self.managing.answers:
            return True
        if self.input.blocked.awaited and self.input.blocked.has_ready:
            return True
        return (
            (calls is not None and calls.is_due and calls.have_ready)
            or (replays is not None and replays.have_ready)
            or (large is not None and bool(large.released))
        )

    def _take_news(self) -> ArtemisError | None:
        """Take in what the threads of the disk have finished: records that are durable, pages and parts of large bodies
        that were read. Returns why nothing more can be stored, or None.
        """
        durability, large = self._durability, self.large
        durability.poll()
        if large is not None:
            large.poll()
        failure = durability.failure or (None if large is None else large.failure)
        if failure is not None:
            return failure
        self.broker.take_fetched_pages()
        if large is None:
            return None
        for piece in large.take_fetched():
            if piece.owner is not None:  # an operator's download looks for itself
                reader: Recipient = piece.owner  # type: ignore[assignment]
                self.output.mark_dirty(reader)
        return None

    def _close_slow(self, now_ms: int) -> None:
        """Close the connections of consumers that are too slow (``slow-consumer-policy`` KILL)."""
        killed = self.broker.slow_consumers.killed
        while killed:
            consumer, reason = killed.pop()
            connection: Any = consumer.owner  # as in TurnOutput
            if consumer.closed or connection.session.is_closing:
                continue
            try:
                connection.disconnect(reason, now_ms)
            except Exception as error:
                self.isolation.fail(connection, "slow-consumer", error)

    def when_durable(self, lsn: int, call: Callable[[], None]) -> None:
        """Call ``call`` when everything up to the lsn of a record survives a crash. A turn is scheduled to make sure of
        it.
        """
        self.output.when_durable(lsn, call)
        self.schedule()

    def connected(self, connection: Client) -> None:
        """A client has connected: its memory counts from now on, and listeners get a notification."""
        self.guard.connected()
        self._tell(CONNECTION_CREATED, connection)

    def disconnected(self, connection: Client) -> None:
        """A client has disconnected."""
        self.guard.disconnected(connection)
        self._tell(CONNECTION_DESTROYED, connection)

    def _tell(self, type: str, connection: Client) -> None:
        notifications, state = self.broker.notifications, connection.session.state
        if notifications.is_heard:
            notifications.note(type, {"connection": state.origin, "remoteAddress": state.address})

    def forget(self, connection: Client) -> None:
        """A connection is gone: no part of a turn refers to it any more."""
        self.output.forget(connection)
        self.input.forget(connection)
        self.watches.forget(connection)

    def stop(self) -> None:
        """Run no more timed turns."""
        self._wakeup.stop()

    def end(self) -> None:
        """Run no more turns at all: the store may be closed now."""
        self._wakeup.end()
