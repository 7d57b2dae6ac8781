"""No connection's failure leaves its own step of a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from artemis_py.core.broker import Broker
from artemis_py.errors import StorageError
from artemis_py.server.client import Recipient
from artemis_py.server.stats import ServerStats
from artemis_py.stomp.session.session import Session


@final
class Isolation:
    """Ends the connection whose step failed, and logs and counts the failure. Errors of a failed disk pass: they
    concern all connections.
    """

    __slots__ = ("_broker", "_clock_ms", "_schedule", "_stats", "turn_ms")

    def __init__(
        self, broker: Broker, stats: ServerStats, clock_ms: Callable[[], int], schedule: Callable[[], None]
    ) -> None:
        self.turn_ms = 0
        """The date of the current turn, the same for all of its steps; 0 between turns."""
        self._broker = broker
        self._stats = stats
        self._clock_ms = clock_ms
        self._schedule = schedule

    def cut_off(self, connection: Recipient, step: str, error: Exception) -> None:
        """A step of this connection failed: the connection ends, and the failure is logged and counted. Raises the
        error if the disk failed, which concerns all connections.
        """
        if isinstance(error, StorageError):
            raise error
        self._stats.faults.note(connection.peer, step, error)
        now_ms = self.turn_ms or self._clock_ms()
        self._broker.step_broke_off(now_ms)
        connection.fail(now_ms)
        self._schedule()

    def end_session(self, session: Session, now_ms: int, *, failed: bool = True) -> None:
        """The client is gone: the session ends, even if a step of that fails; see ``Session.lost``."""
        try:
            session.lost(now_ms, failed=failed)
        except StorageError:
            raise
        except Exception as error:
            self._stats.faults.note(session.state.address, "lost", error)
            self._broker.step_broke_off(now_ms)

    def end_socket(self, peer: str, *ways: Callable[[], None]) -> bool:
        """Close a socket by the first of these ways that works; False if none does."""
        for way in ways:
            try:
                way()
                return True
            except Exception as error:
                self._stats.faults.note(peer, "end", error)
        return False

    def answer(self, call: Callable[[], None]) -> None:
        """Call a callback that waited for a durable record."""
        try:
            call()
        except Exception as error:
            self._stats.faults.note("", "answer", error)
