"""The connection of a stream that consumes a queue. A thread of its own has the socket, so that the broker hears of the
stream while a batch runs and nobody calls; the stream's thread says what it wants, and waits for it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from artemis_py.client.retry import Pauses
from artemis_py.client.stomp_connection import (
    CertificateError,
    LostError,
    RefusedError,
    StompConnection,
    StompConnectionError,
)
from artemis_py.errors import PipelineError, StompError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.consume.conversation import Conversation
from artemis_py.spark.consume.unsettled import Unsettled
from artemis_py.spark.log.log import AwayError
from artemis_py.spark.read.options import QueueOptions
from artemis_py.spark.shared_options import NAMED, is_passing, refused_connection
from artemis_py.stomp.client import HEART_BEAT

_CONNECT_S: Final = 5.0
_PAUSE_FIRST_S: Final = 0.1
_PAUSE_MAX_S: Final = 3.0
_TICK_S: Final = 0.25
_BEATS_MS: Final = (10_000, 10_000)
_SILENCE_S: Final = 30.0
"""After so long without a byte a broker that promised no heart-beats is not there any more: it answers every second."""
_IDLE_S: Final = 1.0
"""After so long without a call, messages that wait for a batch go back: others may take them."""
_REFRESH_S: Final = 1.0
_LEAVE_S: Final = 1.0
_WRITE_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the queue."""

    queue: QueueOptions
    login: ClientLogin
    tls: ClientTls | None
    wait_s: float
    """How long to wait for a broker that does not answer."""


@final
class Link:
    """One connection at a time. ``changed`` guards ``talk`` and the pool, which both threads use; the methods here take
    it themselves.
    """

    def __init__(self, access: Access, pool: Unsettled, prove: Callable[[], None]) -> None:
        """``prove`` is called before anything is acknowledged over a new connection. It raises PipelineError when the
        broker is not the one that it was.
        """
        self.changed = threading.Condition()
        self.talk = Conversation(access.queue, pool)
        self._access = access
        self._pool = pool
        self._prove = prove
        self._proven_life = 0
        self._context: ssl.SSLContext | None = None
        self._turn = 0
        self._pauses = Pauses(_PAUSE_FIRST_S, _PAUSE_MAX_S)
        self._took_s = self._called_s = time.monotonic()
        """When frames came from the broker, and when the stream called."""
        self._asked_s = 0.0
        self._error: PipelineError | None = None
        self._trouble = "no answer"
        self._is_leaving = False
        self._parent_id = os.getppid()
        self._bell, self._ear = socket.socketpair()
        self._bell.setblocking(False)
        self._ear.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="artemis queue", daemon=True)
        self._thread.start()

    # ---- what the stream calls -------------------------------------------------------------------

    def await_open(self) -> None:
        """Wait for a connection to a queue that suits. Raises PipelineError when the broker refuses, AwayError when it
        does not answer in time.
        """
        with self.changed:
            self._await(lambda: self.talk.is_open)

    def want(self, backlog: int) -> None:
        """Hold at most so many messages from now on; 0: give everything back."""
        with self.changed:
            self.talk.want(backlog)
            self._ring()

    def acknowledge(self, bookmarks: Sequence[int]) -> set[int]:
        """Acknowledge messages, and wait for the broker's confirmation, over lost connections. Returns those that are
        still on the queue. Raises PipelineError, AwayError.
        """
        talk = self.talk
        while True:
            self.await_open()
            life = talk.life
            if life != self._proven_life:
                self._prove()
                self._proven_life = life
            with self.changed:
                if not talk.is_in(life):
                    continue
                asks = talk.acknowledge(bookmarks)
                self._ring()
                self._await(lambda life=life, asks=asks: talk.is_answered(asks) or not talk.is_in(life))  # type: ignore[misc]
                if talk.is_in(life):
                    return asks[0].kept

    def note_call(self) -> float:
        """The stream calls. Returns how many seconds ago it did so before."""
        with self.changed:
            before, self._called_s = self._called_s, time.monotonic()
            return self._called_s - before

    def wait(self, wait_s: float, *, asks: bool) -> None:
        """Wait until something has come, but not longer; ``asks``: ask the broker how the queue is meanwhile. Raises
        PipelineError when the broker refuses.
        """
        with self.changed:
            if asks:
                self.talk.ask()
                self._ring()
            if self._error is None:
                self.changed.wait(wait_s)
            self._called_s = time.monotonic()
            self._check()

    def refresh(self) -> None:
        """Ask from time to time how the queue is, and wait for nothing but a connection. Raises PipelineError,
        AwayError.
        """
        self.await_open()
        with self.changed:
            if time.monotonic() - self._asked_s > _REFRESH_S:
                self._asked_s = time.monotonic()
                self.talk.ask()
                self._ring()
            self._check()

    def close(self) -> None:
        """Give everything back, and end. That does not count as a failure of what was held."""
        with self.changed:
            self._is_leaving = True
            self._ring()
        self._thread.join(_LEAVE_S)

    def _await(self, is_done: Callable[[], bool]) -> None:
        self._called_s = time.monotonic()
        since_s = self._called_s
        while not is_done():
            self._check()
            left_s = max(since_s, self._took_s) + self._access.wait_s - time.monotonic()
            if left_s <= 0:
                where = ", ".join(map(str, self._access.queue.endpoints))
                raise AwayError(
                    f"the broker at {where} did not answer for {self._access.wait_s:g} s ({self._trouble}): is it "
                    "running, and does it have an acceptor with protocols=STOMP there?"
                )
            self.changed.wait(min(left_s, 1.0))
        self._called_s = time.monotonic()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._bell.send(b"!")

    # ---- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_over():
                try:
                    self._live()
                except (LostError, StompError) as error:
                    self._trouble = str(error)
                    with self.changed:
                        self.talk.lost()
                        self.changed.notify_all()
                    self._rest()
            if not self._is_leaving:
                self._fail(PipelineError(f"queue {self._access.queue.name}: Spark's JVM is gone"))
        except PipelineError as error:
            self._fail(error)
        except CertificateError as error:
            self._fail(PipelineError(str(error)))
        except Exception as error:
            self._fail(PipelineError(f"queue {self._access.queue.name}: {type(error).__name__}: {error}"))
            raise
        finally:
            with self.changed:
                self.talk.lost()

    def _fail(self, error: PipelineError) -> None:
        with self.changed:
            self._error = error
            self.changed.notify_all()

    def _is_over(self) -> bool:
        """Is the connection unused? Spark's JVM may have been killed."""
        return self._is_leaving or os.getppid() != self._parent_id

    def _rest(self) -> None:
        """Before the next connection: a little longer each time."""
        until_s = time.monotonic() + self._pauses.next_s()
        while not self._is_over() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.1))

    def _live(self) -> None:
        """One connection, from its first byte to its last. Raises LostError, CertificateError, PipelineError."""
        with contextlib.closing(self._connected()) as connection:
            self._pauses.reset()
            with self.changed:
                self.talk.begin()
            while not self._is_over():
                self._take(connection)
                self._look_after(connection)
                self._send(connection)
                connection.wait(_TICK_S, writes=bool(self.talk.out), bell=self._ear)
                with contextlib.suppress(BlockingIOError):
                    self._ear.recv(4096)
            self._leave(connection)

    def _connected(self) -> StompConnection:
        """Connect to the next endpoint, and log in."""
        endpoints = self._access.queue.endpoints
        endpoint = endpoints[self._turn % len(endpoints)]
        self._turn += 1
        if endpoint.has_tls and self._context is None:
            self._context = (self._access.tls or ClientTls()).context()
        try:
            return StompConnection.open(
                endpoint,
                self._access.login,
                self._context,
                connect_s=_CONNECT_S,
                timeout_s=_CONNECT_S,
                named=NAMED,
                beats_ms=_BEATS_MS,
            )
        except RefusedError as error:
            if is_passing(error.reason) or self.talk.has_suited:
                raise LostError(str(error)) from None
            raise refused_connection(endpoint, self._access.login, error.reason) from None

    def _send(self, connection: StompConnection) -> None:
        with self.changed:
            out = bytes(self.talk.out[:_WRITE_BYTES])
            if out:
                del self.talk.out[: connection.write_some(out)]

    def _take(self, connection: StompConnection) -> None:
        """Take the frames that are whole."""
        found = connection.frames()
        if not found:
            return
        with self.changed:
            for frame in found:
                self.talk.take(frame)
            self._took_s = time.monotonic()
            self.changed.notify_all()

    def _look_after(self, connection: StompConnection) -> None:
        """Beat, notice a broker that is gone, and give back what no batch has asked for in time."""
        connection.check_beats(_SILENCE_S)
        with self.changed:
            if connection.has_to_beat:
                self.talk.out += HEART_BEAT
            if time.monotonic() - self._called_s > _IDLE_S and self.talk.backlog and not self._pool.planned:
                self.talk.want(0)

    def _leave(self, connection: StompConnection) -> None:
        """Say that this is the end, and wait a moment for the answer, so that nothing counts as failed."""
        with self.changed:
            self.talk.leave()
        connection.timeout_s = _LEAVE_S / 2
        until_s = time.monotonic() + _LEAVE_S / 2
        with contextlib.suppress(StompConnectionError):
            connection.write(bytes(self.talk.out))
            while connection.receive(until_s) is not None:
                pass
