"""What asyncio's transports lack: to be freed as soon as their connection is lost, and the client's certificate."""

from __future__ import annotations

import asyncio
from typing import Final

_BOUND: Final = ("_read_ready_cb", "_write_ready")
"""Attributes in which an asyncio transport keeps its own bound methods."""


def break_cycle(transport: asyncio.BaseTransport) -> None:
    """Let a transport with a lost connection be freed as soon as nothing refers to it.

    It refers to itself through its bound methods, so it would wait for the garbage collector, which has high thresholds
    here. Other loops' transports do not have these attributes.
    """
    attributes = getattr(transport, "__dict__", {})
    for name in _BOUND:
        if name in attributes:
            setattr(transport, name, None)


def client_certificate(transport: asyncio.BaseTransport) -> bytes | None:
    """The client's verified certificate as DER; None without TLS, and if the client has shown none."""
    socket = transport.get_extra_info("ssl_object")
    certificate: bytes | None = None if socket is None else socket.getpeercert(binary_form=True)
    return certificate
