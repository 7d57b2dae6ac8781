"""Lets time pass on a running broker: from one date at which something is due to the next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from artemis_py.testing.moved_time import MovedTime

if TYPE_CHECKING:
    from artemis_py.server.server import Server

_NS_PER_MS: Final = 1_000_000
_ROUNDS_MAX: Final = 200
"""How many rounds (expiry, deletion) a span of time gets at most: days have thousands of them."""
_DATES_MAX: Final = 20_000
"""What is due closer together than this share of the span is due at once."""


async def let_pass(server: Server, moved: MovedTime, span_ms: int, *, silent: bool) -> None:
    """Move the time on by ``span_ms``. Without ``silent``, the clients of the broker count as heard."""
    until_ns = moved.ahead_ns + span_ms * _NS_PER_MS
    await _settle(server)
    while moved.ahead_ns < until_ns and server.failure is None:
        left_ms = (until_ns - moved.ahead_ns) // _NS_PER_MS
        moved.ahead_ns += min(_next_ms(server, moved, span_ms), left_ms) * _NS_PER_MS
        if not silent:
            now_ms = server.turns.clock_ms()
            for connection in server.stats.connections:
                connection.session.heartbeat.note_alive(now_ms)
        server.turns.run()
        await _settle(server)


def _next_ms(server: Server, moved: MovedTime, span_ms: int) -> int:
    """How long until the next date, at least 1 ms."""
    broker, now_ms = server.broker, moved.wall_ns() // _NS_PER_MS
    dates = [max(span_ms, 1)]
    exact_ms = broker.timers.next_due_ms()
    if exact_ms is not None:
        dates.append(max(exact_ms - now_ms, span_ms // _DATES_MAX, 1))
    due_ms = broker.next_due_ms()
    if due_ms is not None:
        dates.append(max(due_ms - now_ms, span_ms // _ROUNDS_MAX, 1))
    return min(dates)


async def _settle(server: Server) -> None:
    """Let the loop, and turns, do what there is to do now."""
    await asyncio.sleep(0)
    while server.failure is None and server.broker.has_ready:
        server.turns.run()
        await asyncio.sleep(0)
