"""What asyncio's transports lack: they show their client, and let lost connections be freed at once."""

from __future__ import annotations

import asyncio
from typing import Any, Final

CLIENT_CERTIFICATE: Final = "client_certificate"
"""``get_extra_info``: the client's verified certificate as DER. None if it has none, and without TLS."""
ENCRYPT: Final = "encrypt"
"""``get_extra_info``: a function that any thread may call, for bytes that are then written to the socket itself. None
without TLS.
"""
_BOUND: Final = ("_read_ready_cb", "_write_ready")
"""Attributes in which an asyncio transport keeps its own bound methods."""


def shown_address(peer: tuple[Any, ...] | str | None) -> str:
    """A socket's address as host:port; empty for one without, as a pair of sockets has."""
    if not peer or isinstance(peer, str):
        return ""
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def break_cycle(transport: asyncio.BaseTransport) -> None:
    """Let a transport with a lost connection be freed as soon as nothing refers to it.

    It refers to itself through its bound methods, so it would wait for the garbage collector, which has high thresholds
    here. Other loops' transports do not have these attributes.
    """
    attributes = getattr(transport, "__dict__", {})
    for name in _BOUND:
        if name in attributes:
            setattr(transport, name, None)
