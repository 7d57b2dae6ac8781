"""The connection of a stream that consumes a queue. A thread of its own has the socket, so that the broker hears of the
stream while a batch runs and nobody calls; the stream's thread says what it wants, and waits for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from artemis_py.errors import PipelineError, StompError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.acceptors import (
    NOT_NOW,
    Endpoint,
    LostError,
    has_more,
    is_passing,
    opened,
    received,
    refused_connection,
)
from artemis_py.spark.consume.conversation import Conversation
from artemis_py.spark.consume.unsettled import Unsettled
from artemis_py.spark.log.log import AwayError
from artemis_py.spark.read.options import QueueOptions
from artemis_py.stomp.client import HEART_BEAT, Client

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
_READ_BYTES: Final = 1 << 18


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
        self._client = Client(beats_ms=_BEATS_MS)
        self._heard_s = self._took_s = time.monotonic()
        """When bytes came from the broker, and when frames did."""
        self._turn = 0
        self._pause_s = _PAUSE_FIRST_S
        self._called_s = time.monotonic()
        self._sent_s = self._asked_s = 0.0
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
                except (LostError, StompError, OSError) as error:
                    self._trouble = str(error) or type(error).__name__
                    with self.changed:
                        self.talk.lost()
                        self.changed.notify_all()
                    self._rest()
            if not self._is_leaving:
                self._fail(PipelineError(f"queue {self._access.queue.name}: Spark's JVM is gone"))
        except PipelineError as error:
            self._fail(error)
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
        until_s = time.monotonic() + self._pause_s
        while not self._is_over() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.1))
        self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)

    def _live(self) -> None:
        """One connection, from its first byte to its last. Raises LostError, OSError, PipelineError."""
        endpoints = self._access.queue.endpoints
        endpoint = endpoints[self._turn % len(endpoints)]
        self._turn += 1
        if endpoint.has_tls and self._context is None:
            self._context = (self._access.tls or ClientTls()).context()
        connected = opened(endpoint, _CONNECT_S, self._context if endpoint.has_tls else None)
        self._heard_s = time.monotonic()
        with contextlib.closing(connected):
            client = self._client = Client(beats_ms=_BEATS_MS)
            self._greet(client, connected, endpoint)
            self._pause_s = _PAUSE_FIRST_S
            with self.changed:
                self.talk.begin()
            while not self._is_over():
                self._take(client)
                self._look_after()
                self._send(connected)
                client.feed(self._received(connected, endpoint))
            self._leave(connected)

    def _greet(self, client: Client, connected: socket.socket, endpoint: Endpoint) -> None:
        """Log in."""
        login = self._access.login
        with self.changed:
            self.talk.out += client.connect(endpoint.host, login.user, login.passcode)
        until_s = time.monotonic() + _CONNECT_S
        while (answer := client.next()) is None:
            if time.monotonic() > until_s:
                raise LostError(f"{endpoint} does not answer")
            self._send(connected)
            client.feed(self._received(connected, endpoint))
        if answer.command == "CONNECTED":
            return
        if is_passing(answer.reason) or self.talk.has_suited:
            raise LostError(f"{endpoint}: {answer.reason}")
        raise refused_connection(endpoint, login, answer.reason)

    def _received(self, connected: socket.socket, endpoint: Endpoint) -> bytes:
        """What has come from the broker; waits for it, but not long."""
        is_there = has_more(connected)
        writes = [connected] if self.talk.out else []
        wait_s = 0.0 if is_there else _TICK_S
        readable, _, _ = select.select([connected, self._ear], writes, [], wait_s)
        if self._ear in readable:
            with contextlib.suppress(BlockingIOError):
                self._ear.recv(4096)
        if connected not in readable and not is_there:
            return b""
        data = received(connected, endpoint, _READ_BYTES)
        if data == b"":
            raise LostError(f"{endpoint} closed the connection")
        self._heard_s = time.monotonic()
        return data or b""

    def _send(self, connected: socket.socket) -> None:
        with self.changed:
            out = bytes(self.talk.out[:_READ_BYTES])
            if not out:
                return
            try:
                count = connected.send(out)
            except NOT_NOW:
                return
            del self.talk.out[:count]
            self._sent_s = time.monotonic()

    def _take(self, client: Client) -> None:
        """Take the frames that are whole."""
        found = client.frames()
        if not found:
            return
        with self.changed:
            for frame in found:
                self.talk.take(frame)
            self._took_s = time.monotonic()
            self.changed.notify_all()

    def _look_after(self) -> None:
        """Beat, notice a broker that is gone, and give back what no batch has asked for in time."""
        client, now_s = self._client, time.monotonic()
        silence_s = client.silence_s or _SILENCE_S
        if now_s - self._heard_s > silence_s:
            raise LostError(f"the broker has been silent for {silence_s:g} s")
        with self.changed:
            if 0 < client.beat_s < now_s - self._sent_s:
                self.talk.out += HEART_BEAT
            if now_s - self._called_s > _IDLE_S and self.talk.backlog and not self._pool.planned:
                self.talk.want(0)

    def _leave(self, connected: socket.socket) -> None:
        """Say that this is the end, and wait a moment for the answer, so that nothing counts as failed."""
        with self.changed:
            self.talk.leave()
        until_s = time.monotonic() + _LEAVE_S / 2
        connected.setblocking(True)
        connected.settimeout(_LEAVE_S / 2)
        with contextlib.suppress(OSError):
            connected.sendall(bytes(self.talk.out))
            while time.monotonic() < until_s and connected.recv(_READ_BYTES):
                pass
