"""The turn: the server's whole work, in one order.

1. process the input of ready connections, each within its share (``Rota``);
2. handle other events (pages read, connections lost, senders with room again);
3. ``broker.tick``: what is due;
4. dispatch, and write out what consumers got;
5. seal the turn's records;
6. flush every connection that has output, up to the durable lsn.

A turn runs when something happened: bytes arrived, a socket accepted output, a time came. Nothing in it awaits.

No connection's failure leaves its own step: whatever a step raises ends its connection (``cut_off``), and the loop
continues. A failure that belongs to no connection ends the broker (``on_failure``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sized
from os import sched_getaffinity
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from artemis_py.core.broker import Broker
from artemis_py.core.budget import TURN_UNITS
from artemis_py.core.events import Event
from artemis_py.core.queue.consumer import Consumer
from artemis_py.errors import ArtemisError, StorageError
from artemis_py.records import Durability
from artemis_py.server.blocked import Blocked
from artemis_py.server.faults import TurnError, shown
from artemis_py.server.memory_guard import MemoryGuard
from artemis_py.server.rota import Rota
from artemis_py.server.stats import ServerStats
from artemis_py.server.watches import Watches
from artemis_py.storage.large import LargeStore

if TYPE_CHECKING:
    from artemis_py.server.connection import Connection

READ_BYTES_MAX: Final = 65536
"""How many bytes of one connection are read at once. One buffer serves all: with a bigger one, malloc returns memory
after each read.
"""

UNBLOCK_UNITS: Final = 256
"""What a sender that waited for room may spend when it continues; the rest of its input waits in line."""

ATTEND_NS: Final = 60_000
"""How long a turn that waited for the disk polls for the sender's next frame. Not on a single processor, which the
sender needs.
"""
ATTEND_NS_MAX: Final = 1_000_000
"""After this much time with one sender, the event loop serves all others."""


_ASKED_MAX: Final = 256
"""How many blocked connections are checked at once for being alive."""


def _raise(failure: ArtemisError) -> None:
    raise failure


class Turns:
    """Runs turns on an event loop. ``clock_ms`` returns the date in epoch milliseconds and is read once a turn; it also
    tells ``broker.clock`` when the wall clock was set (``server/clocks.py``).
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
        self.rota = Rota()
        """Connections with input."""
        self.units = TURN_UNITS
        """The budget of a turn."""
        self.lost: list[Connection] = []
        self.blocked = Blocked()
        """Senders that wait for room."""
        self.dirty: list[Connection] = []
        self.waiting: set[Connection] = set()
        """Connections with output that depends on a record not yet durable."""
        self.on_failure: Callable[[ArtemisError], None] = _raise
        self.tell: Callable[[list[Event], int], None] | None = None
        """Gets the events once a turn (the operational log)."""
        self._loop = loop
        self._durability = durability
        self._durable_lsn = durability.durable_lsn
        self._scheduled = False
        self._turn_ms = 0
        """The date of the current turn, the same for all of its steps; 0 between turns."""
        self._at_hand: Sized | None = getattr(loop, "_ready", None) if isinstance(loop, asyncio.BaseEventLoop) else None
        """What asyncio's own loop will call in this round; None for other loops."""
        self._attends = len(sched_getaffinity(0)) > 1
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0
        self.guard = MemoryGuard(broker.holdings, broker.clock)
        self.watches = Watches()
        """Connections to check at a later time (heart-beats, handshake, lingering)."""
        self._origin = 0
        self._has_ended = False
        self._awaiting: deque[tuple[int, Callable[[], None]]] = deque()
        """Callbacks that wait for a durable lsn, in the order of lsn."""

    def next_origin(self) -> int:
        """A number that no connection has had before."""
        self._origin += 1
        return self._origin

    def schedule(self) -> None:
        """Run a turn as soon as the loop has collected everything that is ready."""
        if not self._scheduled and not self._has_ended:
            self._scheduled = True
            self._loop.call_soon(self.run)

    def arrived(self, connection: Connection) -> None:
        """Bytes arrived: run a turn, at once if the loop has nothing else to collect."""
        if self._at_hand is None or self._at_hand or self._scheduled:
            self.schedule()
        else:
            self.run()
            if self._durability.was_inline and self._attends:
                self._attend(connection)

    def _attend(self, connection: Connection) -> None:
        """A sender that waits for each receipt answers within microseconds: poll for its next frame a moment longer,
        which is faster than to sleep and be woken. Only while nothing else is ready, and not for long.
        """
        until_ns = perf_counter_ns() + ATTEND_NS_MAX
        while not self._at_hand and not self._scheduled and self._polls(connection):
            self.run()
            if not self._durability.was_inline or perf_counter_ns() > until_ns:
                return

    def _polls(self, connection: Connection) -> bool:
        try:
            return connection.poll(ATTEND_NS)
        except Exception as error:
            self.cut_off(connection, "poll", error)
            return False

    def run(self) -> None:
        """One turn. A failure in a step that belongs to no connection is reported to ``on_failure``; no turn
        follows.
        """
        self._scheduled = False
        if self._has_ended:
            return
        try:
            self._turn_ms = self.clock_ms()
            self._run(self._turn_ms)
        except StorageError as error:
            self._fail(error)
        except Exception as error:
            failure = TurnError(f"a turn failed: {shown(error)}")
            failure.__cause__ = error
            self._fail(failure)
        finally:
            self._turn_ms = 0

    def _fail(self, failure: ArtemisError) -> None:
        self._has_ended = True
        self.on_failure(failure)

    def _run(self, now_ms: int) -> None:
        started_ns = perf_counter_ns()
        broker = self.broker
        broker.budget.refill(self.units)
        durability = self._durability
        durability.poll()
        failure = durability.failure or self._poll_large()
        if failure is not None:
            self._fail(failure)
            return
        durability.inline = len(self.rota) <= 1 and not self.waiting
        self._read(now_ms)
        broker.take_in()
        self._take_in(now_ms)
        broker.tick(now_ms)
        self._beat(now_ms)
        broker.dispatch(now_ms)
        served = self._write_messages()
        broker.end_turn()
        durability.seal()
        if self.large is not None:
            self.large.seal(broker.log.last_lsn, durability.durable_lsn)
        self._flush(now_ms)
        self.guard.look(now_ms, self.cut_off)
        self._make_room(served)
        if self.tell is not None and not broker.happenings.is_empty:
            self.tell(broker.happenings.take(), broker.clock.steady_ms(now_ms))
        if self._has_more and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._loop.call_soon, self.run)  # behind what arrived meanwhile
        self._set_timer(now_ms)
        self.stats.turn_took(perf_counter_ns() - started_ns)

    @property
    def _has_more(self) -> bool:
        """Is there already work for another turn?"""
        if self.broker.has_ready or self.rota:
            return True
        if self.blocked and self.blocked.has_ready:
            return True
        return self.large is not None and self.large.has_released

    def cut_off(self, connection: Connection, step: str, error: Exception) -> None:
        """A step of this connection failed: the connection ends, and the failure is logged and counted. Raises the
        error if the disk failed, which concerns all connections.
        """
        if isinstance(error, StorageError):
            raise error
        self.stats.faults.note(connection.peer, step, error)
        now_ms = self._turn_ms or self.clock_ms()
        self.broker.step_broke_off(now_ms)
        connection.fail(now_ms)
        self.schedule()

    # ---- input -----------------------------------------------------------------------------------

    def _poll_large(self) -> ArtemisError | None:
        """Handle large bodies that were written, and pieces of them that were read."""
        if self.large is None:
            return None
        self.large.poll()
        for piece in self.large.take_fetched():
            reader: Connection = piece.owner  # type: ignore[assignment]
            reader.mark_dirty()
        return self.large.failure

    def _read(self, now_ms: int) -> None:
        def read(connection: Connection, stop_at: int) -> bool:
            try:
                return connection.read(now_ms, stop_at)
            except Exception as error:
                self.cut_off(connection, "read", error)
                return False

        self.rota.serve(self.broker.budget, read)

    def _take_in(self, now_ms: int) -> None:
        if self.lost:
            lost, self.lost = self.lost, []
            for connection in lost:
                if connection.in_line:
                    self.lost.append(connection)  # what came of it is carried out before
                else:
                    connection.lost(now_ms)
        if self.blocked:
            self._let_blocked_go_on(now_ms)

    def _let_blocked_go_on(self, now_ms: int) -> None:
        """Let senders whose wait is over continue, at least one of them, until the turn's budget is spent."""
        budget = self.broker.budget
        for awaited in self.blocked.ready():
            for connection in self.blocked.waiting_for(awaited):
                try:
                    connection.unblock(now_ms, budget.left - UNBLOCK_UNITS)
                except Exception as error:
                    self.cut_off(connection, "unblock", error)
                if budget.is_spent:
                    return

    def look_at_blocked(self) -> None:
        """Find blocked senders that are gone, some at a time; to be called regularly."""
        for connection in self.blocked.next_of(_ASKED_MAX):
            try:
                connection.ask_whether_gone()
            except Exception as error:
                self.cut_off(connection, "unblock", error)

    # ---- output ----------------------------------------------------------------------------------

    def _write_messages(self) -> list[Consumer]:
        served = self.broker.take_outgoing()
        for consumer in served:
            consumer.listed = False
            connection: Connection = consumer.owner  # type: ignore[assignment]
            try:
                connection.session.write_messages(consumer)
                connection.mark_dirty()
            except Exception as error:
                self.cut_off(connection, "write", error)
        return served

    def _flush(self, now_ms: int) -> None:
        durable_lsn = self._durability.durable_lsn
        if durable_lsn != self._durable_lsn:
            self._durable_lsn = durable_lsn
            for connection in self.waiting:
                connection.mark_dirty()
            self.waiting.clear()
            while self._awaiting and self._awaiting[0][0] <= durable_lsn:
                self._tell_durable(self._awaiting.popleft()[1])
        dirty, self.dirty = self.dirty, []
        for connection in dirty:
            try:
                connection.flush(durable_lsn, now_ms)
            except Exception as error:
                self.cut_off(connection, "flush", error)
            if connection.session.out.segments:
                self.waiting.add(connection)

    def _tell_durable(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            self.stats.faults.note("", "answer", error)

    def _make_room(self, served: list[Consumer]) -> None:
        """Give consumers a turn's worth of room again if their client accepted the output."""
        for consumer in served:
            connection: Connection = consumer.owner  # type: ignore[assignment]
            try:
                if connection.writable and not consumer.closed:
                    connection.session.subscriptions.make_room_for(consumer)
            except Exception as error:
                self.cut_off(connection, "room", error)

    def when_durable(self, lsn: int, call: Callable[[], None]) -> None:
        """Call ``call`` when everything up to the lsn of a record just written survives a crash. A turn is scheduled to
        make sure of it.
        """
        self._awaiting.append((lsn, call))
        self.schedule()

    # ---- time ------------------------------------------------------------------------------------

    def _beat(self, now_ms: int) -> None:
        for connection in self.watches.pop_due(self.broker.clock.steady_ms(now_ms)):
            try:
                connection.look(now_ms)
            except Exception as error:
                self.cut_off(connection, "beat", error)

    def _set_timer(self, now_ms: int) -> None:
        due_ms = self.broker.next_due_ms()
        watch_ms = self.watches.next_due_ms()
        if watch_ms is not None:
            watched_ms = self.broker.clock.date_ms(watch_ms)
            due_ms = watched_ms if due_ms is None else min(due_ms, watched_ms)
        if due_ms is None:
            return
        steady_due_ms = self.broker.clock.steady_ms(due_ms)
        if self._timer is not None:
            if self._timer_due_ms == steady_due_ms:
                return
            self._timer.cancel()
        self._timer_due_ms = steady_due_ms
        self._timer = self._loop.call_later(max(due_ms - now_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.schedule()

    def stop(self) -> None:
        """Run no more timed turns."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Run no more turns at all: the store may be closed now."""
        self.stop()
        self._has_ended = True
