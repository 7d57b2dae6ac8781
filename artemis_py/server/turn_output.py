"""The output side of a turn: writes out what consumers got, and sends it once the records it depends on are durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, final

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.histogram import Histogram
from artemis_py.record_log import Durability
from artemis_py.server.failures import Isolation
from artemis_py.server.turn_client import Recipient


@final
class TurnOutput:
    """The connections with output, and the callbacks that wait for a durable record. A recipient may also be a client
    of HTTP that takes messages: it has an inbox instead of a session.
    """

    __slots__ = ("_awaiting", "_broker", "_delays", "_durable_lsn", "_durability", "_isolation", "dirty", "waiting")

    def __init__(self, broker: Broker, durability: Durability, isolation: Isolation, delays: Histogram) -> None:
        self.dirty: list[Recipient] = []
        """Connections to be flushed at the end of the turn."""
        self.waiting: set[Recipient] = set()
        """Connections with output that depends on a record not yet durable."""
        self._broker = broker
        self._durability = durability
        self._isolation = isolation
        self._delays = delays
        self._durable_lsn = durability.durable_lsn
        self._awaiting: deque[tuple[int, Callable[[], None]]] = deque()
        """Callbacks that wait for a durable lsn, in the order of lsn."""

    def mark_dirty(self, connection: Recipient) -> None:
        """Flush this connection at the end of the turn."""
        if not connection.is_dirty:
            connection.is_dirty = True
            self.dirty.append(connection)

    def write_messages(self, now_ms: int) -> list[Consumer]:
        """Write out what consumers got; returns these consumers."""
        served = self._broker.take_outgoing()
        if served:
            self._sample(served[0], now_ms)
        for consumer in served:
            consumer.listed = False
            connection: Any = consumer.owner
            try:
                connection.session.write_messages(consumer)
                self.mark_dirty(connection)
            except Exception as error:
                self._isolation.fail(connection, "write", error)
        return served

    def _sample(self, consumer: Consumer, now_ms: int) -> None:
        """Note how long the first message of this turn took from its sender to here: one message stands for all, so a
        turn costs the same with one and with a thousand.
        """
        first = consumer.handed or consumer.outbox
        if first:
            message = first[0].message
            self._delays.note_message(max(now_ms - message.timestamp_ms, 0), message.id, now_ms)

    def flush(self, now_ms: int) -> None:
        """Send everything that may leave, and call the callbacks that waited for it."""
        durable_lsn = self._durability.durable_lsn
        if durable_lsn != self._durable_lsn:
            self._durable_lsn = durable_lsn
            for connection in self.waiting:
                self.mark_dirty(connection)
            self.waiting.clear()
        while self._awaiting and self._awaiting[0][0] <= durable_lsn:
            self._isolation.answer(self._awaiting.popleft()[1])
        dirty, self.dirty = self.dirty, []
        for connection in dirty:
            try:
                if connection.flush(durable_lsn, now_ms):
                    self.waiting.add(connection)
            except Exception as error:
                self._isolation.fail(connection, "flush", error)

    def make_room(self, served: list[Consumer]) -> None:
        """Give consumers a turn's worth of room again if their client accepted the output."""
        for consumer in served:
            connection: Any = consumer.owner
            try:
                if connection.socket.writable and not consumer.closed:
                    connection.session.subscriptions.make_room_for(consumer)
            except Exception as error:
                self._isolation.fail(connection, "room", error)

    def when_durable(self, lsn: int, call: Callable[[], None]) -> None:
        """Call ``call`` when everything up to the lsn of a record survives a crash; the lsns of calls never fall."""
        self._awaiting.append((lsn, call))

    def forget(self, connection: Recipient) -> None:
        """A connection is gone: remove it everywhere."""
        self.waiting.discard(connection)
