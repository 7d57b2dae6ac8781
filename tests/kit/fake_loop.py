"""An event loop, a clock and sockets made of memory: the server's own turns run on them, deterministically."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final, cast

ROUNDS_MAX = 10_000
"""More rounds than this without the clock moving is a loop that never rests."""
Fails = Callable[[int, str], BaseException | None]
"""Given the number of a call, from 0 on, and its name: what it raises."""
CALLS: Final = (
    "get_extra_info", "set_write_buffer_limits", "get_write_buffer_size", "write", "write_eof", "pause_reading",
    "resume_reading", "is_closing", "close", "abort",
)  # fmt: skip
"""What a server calls of a socket."""


@dataclass(slots=True)
class Timer:
    """What ``call_later`` returns; ``asyncio.TimerHandle`` as far as the server uses it."""

    callback: Callable[..., object]
    arguments: tuple[object, ...]
    cancelled: bool = False

    def cancel(self) -> None:
        """Never call."""
        self.cancelled = True


@dataclass(eq=False)
class FakeLoop:
    """The methods of an event loop that turns and futures need, and a clock in ms that moves when told. Nobody sets
    it; the wall clock is ``ahead_ms`` ahead of it.
    """

    now_ms: int
    ahead_ms: int = 0
    _ready: deque[Timer] = field(default_factory=deque)
    _timers: list[tuple[int, int, Timer]] = field(default_factory=list)
    _added: int = 0

    def as_loop(self) -> asyncio.AbstractEventLoop:
        """Itself, typed as what the server takes."""
        return cast(asyncio.AbstractEventLoop, self)

    def clock_ms(self) -> int:
        """The time of day."""
        return self.now_ms + self.ahead_ms

    def get_debug(self) -> bool:
        """Futures ask for it."""
        return False

    def create_future(self) -> asyncio.Future[Any]:
        """A future whose callbacks are called at the next ``run``."""
        return asyncio.Future(loop=self.as_loop())

    def call_soon(self, callback: Callable[..., object], *arguments: object, context: object = None) -> Timer:
        """Call at the next ``run``."""
        timer = Timer(callback, arguments)
        self._ready.append(timer)
        return timer

    def call_later(self, delay_s: float, callback: Callable[..., object], *arguments: object) -> Timer:
        """Call when the clock has moved by ``delay_s``."""
        timer = Timer(callback, arguments)
        self._added += 1
        heappush(self._timers, (self.now_ms + round(delay_s * 1000), self._added, timer))
        return timer

    def run(self, rounds: int = ROUNDS_MAX) -> None:
        """Call what is ready, and what that makes ready, until nothing is, or for so many rounds."""
        for _ in range(rounds):
            if not self._ready:
                return
            for _ in range(len(self._ready)):
                timer = self._ready.popleft()
                if not timer.cancelled:
                    timer.callback(*timer.arguments)
        assert rounds < ROUNDS_MAX, "the server's turns never come to rest"

    def advance(self, duration_ms: int) -> None:
        """Move the clock, stopping at each timer on the way."""
        until_ms = self.now_ms + duration_ms
        self.run()
        while self._timers and self._timers[0][0] <= until_ms:
            due_ms, _, timer = heappop(self._timers)
            if not timer.cancelled:
                self.now_ms = max(due_ms, self.now_ms)
                self.call_soon(timer.callback, *timer.arguments)
                self.run()
        self.now_ms = until_ms


class FakeTransport(asyncio.Transport):
    """The server's end of a socket. What the server writes goes to ``taken`` while the client reads, else it waits."""

    def __init__(self, loop: FakeLoop, protocol: asyncio.BaseProtocol, peer: tuple[str, int] | None = None) -> None:
        super().__init__({"peername": peer} if peer else None)
        self._loop = loop
        self._protocol = protocol
        self._high_bytes = 65536
        self._waiting = bytearray()
        self._paused_writing = False
        self.closed = False
        """The server has ended the connection."""
        self.aborted = False
        self.lost = False
        self.taken = bytearray()
        self.written: bytearray | None = None
        """Everything that the server ever wrote, where somebody wants to know."""
        self.client_reads = True
        self.reading = True
        self.ended = False
        """The server said that nothing more comes."""

    # ---- the server's side -----------------------------------------------------------------------

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del low
        self._high_bytes = 65536 if high is None else high

    def get_write_buffer_size(self) -> int:
        return len(self._waiting)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        assert not self.ended, "the server writes after the end of its stream"
        assert not self.closed, "the server writes after it has closed"
        if self.lost:
            return
        if self.written is not None:
            self.written += data
        if self.client_reads:
            self.taken += data
            return
        self._waiting += data
        if len(self._waiting) > self._high_bytes and not self._paused_writing:
            self._paused_writing = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        self.ended = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed or self.lost

    def close(self) -> None:
        """What waits is still written; then the connection is lost."""
        self.closed = True
        if not self._waiting:
            self.lose()

    def abort(self) -> None:
        """What waits is thrown away."""
        self.closed = self.aborted = True
        self.lose()

    # ---- the client's side -----------------------------------------------------------------------

    def lose(self) -> None:
        """The client is gone, or has all that it gets."""
        self._waiting.clear()
        if not self.lost:
            self.lost = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def read_again(self) -> None:
        """The client takes what waits and goes on reading."""
        self.client_reads = True
        self.taken += self._waiting
        self._waiting.clear()
        if self._paused_writing:
            self._paused_writing = False
            self._protocol.resume_writing()
        if self.closed:
            self.lose()

    def read(self, count: int) -> None:
        """The client takes so many bytes of what waits, and no more."""
        self.taken += self._waiting[:count]
        del self._waiting[:count]


class FaultyTransport(FakeTransport):
    """Puts every call of the server into ``calls``, and raises where ``fails`` says so, before anything happens. What
    the client does is no call.
    """

    def __init__(self, loop: FakeLoop, protocol: asyncio.BaseProtocol, fails: Fails, calls: list[str]) -> None:
        super().__init__(loop, protocol, ("10.0.0.7", 4711))
        self._fails = fails
        self._calls = calls
        for name in CALLS:
            setattr(self, name, partial(self._called, name, getattr(self, name)))

    def _called(self, name: str, real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self._calls.append(name)
        error = self._fails(len(self._calls) - 1, name)
        if error is not None:
            raise error
        return real(*arguments, **named)
