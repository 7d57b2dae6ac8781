"""The turn: the server's whole work, in one order.

1. read every ready connection;
2. take in what else happened (pages read, connections lost, senders with room again);
3. ``broker.tick``: what is due;
4. dispatch, and write out what consumers got;
5. seal the turn's records;
6. flush every connection that has output, up to the durable lsn.

A turn runs when something happened: bytes arrived, a socket took what was written, a time came. Nothing in it awaits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sized
from heapq import heappop, heappush
from os import sched_getaffinity
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import Event
from artemis_py.errors import ArtemisError
from artemis_py.records import RecordLog
from artemis_py.server.stats import ServerStats
from artemis_py.storage.large import LargeStore

if TYPE_CHECKING:
    from artemis_py.server.connection import Connection

READ_BYTES_MAX: Final = 65536
"""How much of one connection is read at once. One buffer serves all: a bigger one makes malloc return memory after each
read.
"""

ATTEND_NS: Final = 60_000
"""How long a turn that waited for the disk looks for the sender's next frame. Not done where it would take the only
processor from that sender.
"""
ATTEND_NS_MAX: Final = 1_000_000
"""After this much time with one sender the event loop sees to all others."""


def _raise(failure: ArtemisError) -> None:
    raise failure


class Turns:
    """Runs turns on an event loop. ``clock_ms`` gives the time of day in epoch milliseconds, read once a turn."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker: Broker,
        log: RecordLog,
        stats: ServerStats,
        clock_ms: Callable[[], int],
        large: LargeStore | None = None,
    ) -> None:
        self.broker = broker
        self.large = large
        self.stats = stats
        self.clock_ms = clock_ms
        self.read_buffer = memoryview(bytearray(READ_BYTES_MAX))
        self.readable: list[Connection] = []
        self.lost: list[Connection] = []
        self.blocked: list[Connection] = []
        self.dirty: list[Connection] = []
        self.waiting: set[Connection] = set()
        """Connections with output that depends on a record not durable yet."""
        self.on_failure: Callable[[ArtemisError], None] = _raise
        self.tell: Callable[[list[Event], int], None] | None = None
        """Who is told what happened, once a turn (the operational log)."""
        self._loop = loop
        self._log = log
        self._durable_lsn = log.durable_lsn
        self._scheduled = False
        self._at_hand: Sized | None = getattr(loop, "_ready", None) if isinstance(loop, asyncio.BaseEventLoop) else None
        """What asyncio's own loop will call in this round; None for another loop."""
        self._attends = len(sched_getaffinity(0)) > 1
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0
        self._watched: list[tuple[int, int, Connection]] = []
        self._watches = 0
        self._origin = 0
        self._awaiting: deque[tuple[int, Callable[[], None]]] = deque()
        """Who waits for what to be durable, in the order of lsn."""

    def next_origin(self) -> int:
        """A number that no connection has had."""
        self._origin += 1
        return self._origin

    def schedule(self) -> None:
        """Have a turn run as soon as the loop has collected what is ready."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.run)

    def arrived(self, connection: Connection) -> None:
        """Bytes came: have a turn run, at once if the loop has nothing else at hand that it could collect."""
        if self._at_hand is None or self._at_hand or self._scheduled:
            self.schedule()
        else:
            self.run()
            if self._log.was_inline and self._attends:
                self._attend(connection)

    def _attend(self, connection: Connection) -> None:
        """A sender that waits for each receipt answers within microseconds: look for its next frame a moment longer,
        which is quicker than to sleep and be woken. Only while nothing else is at hand, and not for long.
        """
        until_ns = perf_counter_ns() + ATTEND_NS_MAX
        while not self._at_hand and not self._scheduled and connection.poll(ATTEND_NS):
            self.run()
            if not self._log.was_inline or perf_counter_ns() > until_ns:
                return

    def run(self) -> None:
        """One turn."""
        started_ns = perf_counter_ns()
        self._scheduled = False
        now_ms = self.clock_ms()
        broker = self.broker
        log = self._log
        log.poll()
        failure = log.failure or self._poll_large()
        if failure is not None:
            self.on_failure(failure)
            return
        log.inline = len(self.readable) <= 1 and not self.waiting
        self._read(now_ms)
        broker.take_in()
        self._take_in(now_ms)
        broker.tick(now_ms)
        self._beat(now_ms)
        broker.dispatch(now_ms)
        served = self._write_messages()
        broker.end_turn()
        log.seal()
        if self.large is not None:
            self.large.seal(log.last_lsn, log.durable_lsn)
        self._flush(now_ms)
        self._make_room(served)
        if self.tell is not None and not broker.happenings.is_empty:
            self.tell(broker.happenings.take(), now_ms)
        if self._has_more:
            self.schedule()
        self._set_timer(now_ms)
        self.stats.turn_took(perf_counter_ns() - started_ns)

    @property
    def _has_more(self) -> bool:
        """Is there work for another turn already?"""
        if self.broker.has_ready or self.readable:
            return True
        if self.blocked and any(connection.may_go_on for connection in self.blocked):
            return True
        return self.large is not None and self.large.has_released

    # ---- input -----------------------------------------------------------------------------------

    def _poll_large(self) -> ArtemisError | None:
        """Take note of large bodies that were written, and of pieces of them that were read."""
        if self.large is None:
            return None
        self.large.poll()
        for piece in self.large.take_fetched():
            reader: Connection = piece.owner  # type: ignore[assignment]
            reader.mark_dirty()
        return self.large.failure

    def _read(self, now_ms: int) -> None:
        readable, self.readable = self.readable, []
        for connection in readable:
            connection.read(now_ms)

    def _take_in(self, now_ms: int) -> None:
        if self.lost:
            lost, self.lost = self.lost, []
            for connection in lost:
                connection.session.lost(now_ms)
                connection.session.out.clear()
        if self.blocked:
            blocked, self.blocked = self.blocked, []
            for connection in blocked:
                connection.unblock(now_ms)

    # ---- output ----------------------------------------------------------------------------------

    def _write_messages(self) -> list[Consumer]:
        served = self.broker.outgoing
        if not served:
            return served
        self.broker.outgoing = []
        for consumer in served:
            consumer.listed = False
            connection: Connection = consumer.owner  # type: ignore[assignment]
            connection.session.write_messages(consumer)
            connection.mark_dirty()
        return served

    def _flush(self, now_ms: int) -> None:
        durable_lsn = self._log.durable_lsn
        if durable_lsn != self._durable_lsn:
            self._durable_lsn = durable_lsn
            for connection in self.waiting:
                connection.mark_dirty()
            self.waiting.clear()
            while self._awaiting and self._awaiting[0][0] <= durable_lsn:
                self._awaiting.popleft()[1]()
        dirty, self.dirty = self.dirty, []
        for connection in dirty:
            connection.flush(durable_lsn, now_ms)
            if connection.session.out.segments:
                self.waiting.add(connection)

    def _make_room(self, served: list[Consumer]) -> None:
        """Consumers whose client took what was written may be sent a turn's worth again."""
        for consumer in served:
            connection: Connection = consumer.owner  # type: ignore[assignment]
            if connection.writable and not consumer.closed:
                connection.session.make_room_for(consumer)

    def when_durable(self, lsn: int, call: Callable[[], None]) -> None:
        """Have ``call`` called when everything up to the lsn of a record just written survives a crash. A turn comes
        soon, so that it gets there.
        """
        self._awaiting.append((lsn, call))
        self.schedule()

    # ---- time ------------------------------------------------------------------------------------

    def watch(self, connection: Connection, due_ms: int) -> None:
        """Look at a connection again at ``due_ms`` (heart-beats, handshake, lingering)."""
        self._watches += 1
        heappush(self._watched, (due_ms, self._watches, connection))

    def _beat(self, now_ms: int) -> None:
        watched = self._watched
        while watched and watched[0][0] <= now_ms:
            due_ms, _, connection = heappop(watched)
            connection.look(due_ms, now_ms)

    def _set_timer(self, now_ms: int) -> None:
        due_ms = self.broker.next_due_ms()
        if self._watched and (due_ms is None or self._watched[0][0] < due_ms):
            due_ms = self._watched[0][0]
        if due_ms is None:
            return
        if self._timer is not None:
            if self._timer_due_ms == due_ms:
                return
            self._timer.cancel()
        self._timer_due_ms = due_ms
        self._timer = self._loop.call_later(max(due_ms - now_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.schedule()

    def stop(self) -> None:
        """No more turns by the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
