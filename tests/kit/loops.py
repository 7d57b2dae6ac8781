"""Waits on an event loop: for conditions, and for what the loop was asked to call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

UNTIL_S = 10


async def until(condition: Callable[[], bool], within_s: float = UNTIL_S) -> None:
    """Lets the loop run until the condition holds. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():
            await called_back()


async def called_back() -> None:
    """Until the loop has called what it was asked to call before."""
    loop = asyncio.get_running_loop()
    reached = loop.create_future()
    loop.call_soon(reached.set_result, None)
    await reached
