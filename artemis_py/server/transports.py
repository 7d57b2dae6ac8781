"""What asyncio's transports need that they do not do themselves."""

from __future__ import annotations

import asyncio
from typing import Final

_BOUND: Final = ("_read_ready_cb", "_write_ready")
"""Attributes in which a transport of asyncio keeps methods of its own."""


def break_cycle(transport: asyncio.BaseTransport) -> None:
    """Let a transport whose connection is lost be freed when nobody refers to it any more.

    It refers to itself by its bound methods, so it would wait for the garbage collector, which has wide thresholds
    here. No other loop's transport has these attributes.
    """
    attributes = getattr(transport, "__dict__", {})
    for name in _BOUND:
        if name in attributes:
            setattr(transport, name, None)
